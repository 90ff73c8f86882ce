//! Indexes compared with an oracle: for each TCP and UDP connection of the conformance corpus, which is next to the
//! project or at `GANNET_SHARED`, the index has the packets that the oracle finds by reading all packets. The oracle
//! does not track connections: it compares addresses and ports, also of fragments and of packets that ICMP errors
//! quote. It decodes only IP-in-IP tunnels, so connections in other tunnels are left out, as are endpoints with several
//! connections. A message is printed if the corpus is missing.
// Tests may unwrap and print; Clippy allows that only in functions marked as tests.
#![allow(clippy::print_stderr, clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use gannet_base::Addr;
use gannet_capture::Packet;
use gannet_capture::Stream;
use gannet_engine::Engine;
use gannet_engine::Options;
use gannet_index::Builder;
use gannet_index::Error;
use gannet_index::Index;
use gannet_index::Slices;
use gannet_wire::Ip;
use gannet_wire::Network;
use gannet_wire::protocol;

/// Maximum size of a capture, in bytes; larger ones are left out.
const MAX_SIZE: u64 = 300 << 10;

/// Protocol and both endpoints, the lower one first.
type Endpoints = (u8, (Addr, u16), (Addr, u16));

fn endpoints(protocol: u8, src: (Addr, u16), dst: (Addr, u16)) -> Endpoints {
    (protocol, src.min(dst), src.max(dst))
}

/// Packet numbers by endpoints, from each packet on its own.
#[derive(Default)]
struct Oracle {
    by_endpoints: HashMap<Endpoints, BTreeSet<u64>>,
    /// ICMP errors by the endpoints of the quoted packet.
    quoted: HashMap<Endpoints, BTreeSet<u64>>,
    /// Fragments by source, destination, protocol and identification.
    fragments: HashMap<(Addr, Addr, u8, u32), Vec<Fragment>>,
}

struct Fragment {
    number: u64,
    from: u32,
    len: u32,
    more: bool,
    endpoints: Option<Endpoints>,
}

impl Oracle {
    fn add_packet(&mut self, packet: &Packet<'_>) {
        let frame = gannet_wire::link(packet.link_type.0, packet.data, packet.wire_len);
        if let Ok(frame) = frame
            && let Network::Ip(bytes) = frame.network
        {
            self.ip(packet.number, bytes, frame.wire_len);
        }
    }

    fn ip(&mut self, number: u64, bytes: &[u8], wire_len: u32) {
        let Ok(ip) = gannet_wire::ip(bytes, wire_len, false) else { return };
        if let Some(fragment) = &ip.fragment {
            let key = (ip.src, ip.dst, ip.protocol, fragment.id);
            let endpoints = (fragment.offset == 0).then(|| ports(&ip)).flatten();
            let (from, len, more) = (fragment.offset, ip.payload_len, fragment.more);
            let piece = Fragment { number, from, len, more, endpoints };
            self.fragments.entry(key).or_default().push(piece);
            return;
        }
        match ip.protocol {
            protocol::TCP | protocol::UDP => {
                let header = if ip.protocol == protocol::TCP { 20 } else { 8 };
                if let Some(endpoints) = ports(&ip).filter(|_| ip.payload.len() >= header) {
                    self.by_endpoints.entry(endpoints).or_default().insert(number);
                }
            }
            protocol::ICMP | protocol::ICMP6 => {
                let Some(icmp) = gannet_wire::icmp(&ip).ok().filter(|icmp| icmp.is_error()) else {
                    return;
                };
                if let Some(endpoints) = quoted(icmp.payload) {
                    self.quoted.entry(endpoints).or_default().insert(number);
                }
            }
            protocol::IPV4 | protocol::IPV6 => self.ip(number, ip.payload, ip.payload_len),
            _ => {}
        }
    }

    /// Endpoints of datagrams whose fragments cannot be assigned unambiguously, because some overlap or are missing.
    fn ambiguous(&self) -> BTreeSet<Endpoints> {
        let ambiguous = self.fragments.values().filter(|fragments| !is_whole(fragments));
        ambiguous
            .flat_map(|fragments| fragments.iter().filter_map(|piece| piece.endpoints))
            .collect()
    }

    /// The packets of the only connection between these endpoints.
    fn packets(&self, endpoints: &Endpoints) -> Vec<u64> {
        let mut all = self.by_endpoints.get(endpoints).cloned().unwrap_or_default();
        for fragments in self.fragments.values().filter(|fragments| is_whole(fragments)) {
            if fragments.iter().any(|piece| piece.endpoints == Some(*endpoints)) {
                all.extend(fragments.iter().map(|piece| piece.number));
            }
        }
        let first = all.first().copied().unwrap_or(u64::MAX);
        let quoted = self.quoted.get(endpoints).into_iter().flatten();
        all.extend(quoted.filter(|number| **number > first).copied().collect::<Vec<_>>());
        all.into_iter().collect()
    }
}

fn is_whole(fragments: &[Fragment]) -> bool {
    let mut sorted: Vec<_> = fragments.iter().collect();
    sorted.sort_by_key(|piece| piece.from);
    let mut end = 0;
    let follows = sorted.iter().all(|piece| {
        let follows = piece.from == end;
        end = piece.from + piece.len;
        follows
    });
    follows && sorted.iter().filter(|piece| !piece.more).count() == 1
}

fn ports(ip: &Ip<'_>) -> Option<Endpoints> {
    let [a, b, c, d] = *ip.payload.first_chunk()?;
    let (from, to) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
    Some(endpoints(ip.protocol, (ip.src, from), (ip.dst, to)))
}

/// The endpoints of a quoted packet, which is truncated and may have wrong length fields.
fn quoted(bytes: &[u8]) -> Option<Endpoints> {
    let v4 = |at: usize| Some(Addr::v4(*bytes.get(at..)?.first_chunk()?));
    let v6 = |at: usize| Some(Addr::v6(*bytes.get(at..)?.first_chunk()?));
    let (protocol, src, dst, at) = match bytes.first()? >> 4 {
        4 if u16::from_be_bytes([*bytes.get(6)?, *bytes.get(7)?]) & 0x1fff != 0 => return None,
        4 => (*bytes.get(9)?, v4(12)?, v4(16)?, usize::from(bytes[0] & 15) * 4),
        6 => (*bytes.get(6)?, v6(8)?, v6(24)?, 40),
        _ => return None,
    };
    let [a, b, c, d] = *bytes.get(at..)?.first_chunk()?;
    let has_ports = matches!(protocol, protocol::TCP | protocol::UDP);
    let (from, to) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
    has_ports.then(|| endpoints(protocol, (src, from), (dst, to)))
}

/// Analyses a capture with an index; returns `None` if the file is not a capture or is damaged.
fn index(capture: &Path, out: &Path) -> Option<Oracle> {
    fs::create_dir_all(out).unwrap();
    let builder = Arc::new(Builder::default());
    let logs = gannet_log::Options { dir: Some(out.to_owned()), ..Default::default() };
    let index: Arc<Builder> = builder.clone();
    let options = Options { threads: 1, logs, index: Some(index), ..Options::default() };
    let mut engine = Engine::new(Options { ignore_checksums: true, ..options });
    let paths = [capture.to_owned()];
    let mut stream = Stream::open(&paths, gannet_capture::Options::default()).ok()?;
    builder.keep_restarts(&mut stream);
    let mut oracle = Oracle::default();
    while let Some(batch) = stream.next_batch().ok()? {
        engine.batch(&batch).unwrap();
        builder.batch(&batch);
        batch.iter().for_each(|packet| oracle.add_packet(&packet));
    }
    engine.finish().unwrap();
    builder.write(capture).unwrap();
    Some(oracle)
}

/// The rows of a log; each maps column names to values.
fn rows(log: &Path) -> Vec<BTreeMap<String, String>> {
    let text = fs::read_to_string(log).unwrap_or_default();
    let mut names = Vec::new();
    let mut rows = Vec::new();
    for line in text.lines() {
        if let Some(fields) = line.strip_prefix("#fields\t") {
            names = fields.split('\t').map(str::to_owned).collect();
        } else if !line.starts_with('#') {
            let values = line.split('\t').map(str::to_owned);
            rows.push(names.iter().cloned().zip(values).collect());
        }
    }
    rows
}

fn endpoints_of(row: &BTreeMap<String, String>) -> Option<Endpoints> {
    let end = |host: &str, port: &str| Some((row[host].parse().ok()?, row[port].parse().ok()?));
    let protocol = match &*row["proto"] {
        "tcp" => protocol::TCP,
        "udp" => protocol::UDP,
        _ => return None,
    };
    Some(endpoints(protocol, end("id.orig_h", "id.orig_p")?, end("id.resp_h", "id.resp_p")?))
}

#[test]
fn indexed_packets_equal_those_of_the_oracle() {
    let all = gannet_synth::corpus::captures(&["conformance/captures"]);
    let work_dir = std::env::temp_dir().join(format!("gannet-index-oracle-{}", std::process::id()));
    fs::create_dir_all(&work_dir).unwrap();
    let (mut checked, mut left_out, mut wrong) = (0, 0, Vec::new());
    for capture in all.iter().filter(|capture| fs::metadata(capture).unwrap().len() < MAX_SIZE) {
        let (copy, out) = (work_dir.join("copy"), work_dir.join("out"));
        fs::copy(capture, &copy).unwrap();
        let _ = fs::remove_dir_all(&out);
        let Some(oracle) = index(&copy, &out) else { continue };
        let mut index = Index::open(&copy).unwrap();
        let rows = rows(&out.join("conn.log"));
        let ambiguous = oracle.ambiguous();
        let mut known = HashMap::new();
        rows.iter()
            .filter_map(endpoints_of)
            .for_each(|endpoints| *known.entry(endpoints).or_insert(0) += 1);
        for row in &rows {
            let Some(endpoints) = endpoints_of(row) else { continue };
            let expected = oracle.packets(&endpoints);
            let is_tunnelled = row["tunnel_parents"] != "-";
            if known[&endpoints] > 1
                || ambiguous.contains(&endpoints)
                || is_tunnelled && expected.is_empty()
            {
                left_out += 1;
                continue;
            }
            let found = index.packets(row["uid"].as_bytes()).unwrap().unwrap();
            let mut read = Vec::new();
            Slices::new(&copy, &mut index)
                .read(&found, |p: &Packet<'_>| {
                    read.push(p.number);
                    Ok::<_, Error>(())
                })
                .unwrap();
            checked += 1;
            if found != expected || read != expected {
                wrong.push(format!(
                    "{} {}: {endpoints:?}\n  index {found:?}\n  read {read:?}\n  oracle {expected:?}",
                    capture.display(),
                    row["uid"]
                ));
            }
        }
    }
    fs::remove_dir_all(work_dir).unwrap();
    eprintln!("{checked} connections checked, {left_out} left out");
    assert!(wrong.is_empty(), "{} of {checked}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(all.len() == 1 || checked > 4_000, "{checked} connections");
}
