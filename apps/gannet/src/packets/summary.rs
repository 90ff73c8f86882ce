//! The summary of a capture: protocols by layer, hosts and pairs of hosts.

use std::collections::BTreeMap;
use std::fmt::Write;

use gannet_base::Addr;
use gannet_capture::Packet;
use gannet_wire::Contents;
use gannet_wire::Datagram;
use gannet_wire::Decoded;
use gannet_wire::Network;
use gannet_wire::Transport;
use gannet_wire::protocol;
use indicatif::HumanCount;

use super::line::name_of;
use crate::sums::Sum;
use crate::sums::Tally;

/// Maximum number of protocols listed below another.
const MAX_LISTED: usize = 12;

/// A protocol and the protocols inside of it.
#[derive(Debug, Default)]
struct Layer {
    sum: Sum,
    inside: BTreeMap<String, Layer>,
}

/// Sums up packets.
#[derive(Debug, Default)]
pub(super) struct Summary {
    all: Layer,
    hosts: Tally<Addr>,
    pairs: Tally<(Addr, Addr)>,
}

impl Summary {
    pub(super) fn packet(&mut self, packet: &Packet<'_>) {
        let bytes = u64::from(packet.wire_len);
        let mut layers = vec![packet.link_type.to_string()];
        let mut hosts = None;
        match gannet_wire::decode(packet.link_type.0, packet.data, packet.wire_len) {
            Ok(Decoded { frame, contents }) => {
                if frame.vlan.is_some() {
                    layers.push("VLAN".into());
                }
                match frame.network {
                    Network::Ip(_) => hosts = ip(&contents, &mut layers, 0),
                    Network::Arp(_) => layers.push("ARP".into()),
                    Network::Other { ethertype, .. } => {
                        layers.push(format!("type {ethertype:#06x}"));
                    }
                    Network::Aggregate(_) => layers.push("aggregate".into()),
                    Network::Nothing => {}
                }
            }
            Err(_) => layers.push("truncated or malformed".into()),
        }
        let mut layer = &mut self.all;
        layer.sum.add(bytes);
        for name in layers {
            layer = layer.inside.entry(name).or_default();
            layer.sum.add(bytes);
        }
        if let Some((src, dst)) = hosts {
            self.hosts.add(src, bytes);
            if src != dst {
                self.hosts.add(dst, bytes);
            }
            self.pairs.add((src.min(dst), src.max(dst)), bytes);
        }
    }

    /// The tables.
    pub(super) fn render(&self, top: usize) -> String {
        let mut out = format!("{:<44}{:>12}{:>16}{:>8}\n", "protocol", "packets", "bytes", "share");
        let all = self.all.sum;
        let mut line = |name: &str, sum: Sum| {
            let share = 100.0 * sum.bytes as f64 / all.bytes.max(1) as f64;
            let (packets, bytes) =
                (HumanCount(sum.packets).to_string(), HumanCount(sum.bytes).to_string());
            // Writing to a string does not fail.
            writeln!(out, "{name:<44}{packets:>12}{bytes:>16}{share:>6.1} %").unwrap_or_default();
        };
        line("all", all);
        layers(&self.all, 1, &mut line);
        let title = |out: &mut String, of: &str| {
            writeln!(out, "\n{of:<44}{:>12}{:>16}{:>8}", "packets", "bytes", "share")
                .unwrap_or_default();
        };
        let hosts = self.hosts.top(top).into_iter().map(|(a, sum)| (a.to_string(), sum));
        let pairs =
            self.pairs.top(top).into_iter().map(|((a, b), sum)| (format!("{a} - {b}"), sum));
        for (name, rows, others) in [
            ("host", hosts.collect::<Vec<_>>(), self.hosts.others),
            ("hosts", pairs.collect(), self.pairs.others),
        ] {
            title(&mut out, name);
            let mut line = |name: &str, sum: Sum| {
                let share = 100.0 * sum.bytes as f64 / all.bytes.max(1) as f64;
                let (packets, bytes) =
                    (HumanCount(sum.packets).to_string(), HumanCount(sum.bytes).to_string());
                writeln!(out, "{name:<44}{packets:>12}{bytes:>16}{share:>6.1} %")
                    .unwrap_or_default();
            };
            rows.iter().for_each(|(name, sum)| line(name, *sum));
            if others.packets > 0 {
                line("(hosts beyond the first million)", others);
            }
        }
        out
    }
}

/// Prints the layers inside of one, sorted by bytes.
fn layers(of: &Layer, depth: usize, line: &mut impl FnMut(&str, Sum)) {
    let mut all: Vec<_> = of.inside.iter().collect();
    all.sort_by_key(|(name, layer)| (std::cmp::Reverse(layer.sum.bytes), *name));
    let (shown, others) = all.split_at(all.len().min(MAX_LISTED));
    for (name, layer) in shown {
        line(&format!("{:width$}{name}", "", width = 2 * depth), layer.sum);
        layers(layer, depth + 1, line);
    }
    let mut sum = Sum::default();
    for (_, layer) in others {
        sum.packets += layer.sum.packets;
        sum.bytes += layer.sum.bytes;
    }
    if sum.packets > 0 {
        let name = format!("{:width$}{} others", "", others.len(), width = 2 * depth);
        line(&name, sum);
    }
}

/// Adds the layers of a datagram. Returns its hosts; for tunnels those of the outermost header.
fn ip(contents: &Contents<'_>, layers: &mut Vec<String>, tunnels: u8) -> Option<(Addr, Addr)> {
    let Contents::Datagram(Datagram { ip, transport }) = contents else {
        layers.push("IP, truncated or malformed".into());
        return None;
    };
    layers.push(if ip.version == 6 { "IPv6".into() } else { "IPv4".into() });
    layers.push(name_of(ip));
    let is_tunnel = matches!(ip.protocol, protocol::IPV4 | protocol::IPV6);
    match transport {
        Transport::Fragment => layers.push("fragment".into()),
        Transport::Other if is_tunnel && tunnels < gannet_wire::MAX_TUNNEL_DEPTH => {
            self::ip(&Contents::of(ip.payload, ip.payload_len), layers, tunnels + 1);
        }
        // The lower port is nearly always that of the server.
        _ => layers.extend(transport.ports().map(|(a, b)| format!("port {}", a.min(b)))),
    }
    Some((ip.src, ip.dst))
}
