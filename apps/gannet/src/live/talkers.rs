//! The hosts and services with the most traffic, per second or over some seconds of little traffic: counted only while
//! `gannet top` requests them.

use std::time::Duration;
use std::time::Instant;

use gannet_base::Addr;
use gannet_capture::Batch;
use gannet_wire::Datagram;
use gannet_wire::Decoded;
use gannet_wire::protocol;
use serde_json::Value;
use serde_json::json;

use crate::sums::Sum;
use crate::sums::Tally;

/// Maximum number of hosts, of pairs and of services that are listed.
const MAX_LISTED: usize = 50;

/// Minimum number of packets for a report after one second.
const MIN_PACKETS: u64 = 50;

/// Maximum time that fewer packets are counted for.
const MAX_PERIOD: Duration = Duration::from_secs(10);

/// A protocol above IP, and the lower one of its ports: nearly always that of the server.
type Service = (u8, u16);

/// Packets since the start of the period, by host, pair of hosts and service.
#[derive(Debug)]
pub(crate) struct Talkers {
    since: Instant,
    packets: u64,
    hosts: Tally<Addr>,
    pairs: Tally<(Addr, Addr)>,
    services: Tally<Service>,
}

impl Talkers {
    pub(crate) fn new() -> Self {
        let (hosts, pairs, services) = (Tally::default(), Tally::default(), Tally::default());
        Self { since: Instant::now(), packets: 0, hosts, pairs, services }
    }

    pub(crate) fn add(&mut self, batch: &Batch<'_>) {
        for packet in batch {
            let bytes = u64::from(packet.wire_len);
            let decoded = gannet_wire::decode(packet.link_type.0, packet.data, packet.wire_len);
            let Some(Datagram { ip, transport }) =
                decoded.as_ref().ok().and_then(Decoded::datagram)
            else {
                continue;
            };
            self.packets += 1;
            self.hosts.add(ip.src, bytes);
            if ip.src != ip.dst {
                self.hosts.add(ip.dst, bytes);
            }
            self.pairs.add((ip.src.min(ip.dst), ip.src.max(ip.dst)), bytes);
            let port = transport.ports().map_or(0, |(a, b)| a.min(b));
            self.services.add((ip.protocol, port), bytes);
        }
    }

    /// Ends a second: writes a report to `to` and starts a new period, if there are enough packets or the period is long
    /// enough. Otherwise `to` is unchanged.
    pub(crate) fn second(&mut self, to: &mut Value) {
        let took = self.since.elapsed();
        let is_over = self.packets >= MIN_PACKETS || took >= MAX_PERIOD;
        if self.packets > 0 || is_over {
            *to = self.report(took);
        }
        if is_over {
            *self = Self::new();
        }
    }

    /// The talkers of the period as JSON: names with packets and bytes per second.
    fn report(&self, took: Duration) -> Value {
        let seconds = took.max(Duration::from_millis(1)).as_secs_f64();
        let row = |name: String, sum: Sum| {
            let rate = |count: u64| (10.0 * count as f64 / seconds).round() / 10.0;
            json!({ "name": name, "packets": rate(sum.packets), "bytes": rate(sum.bytes) })
        };
        let hosts =
            self.hosts.top(MAX_LISTED).into_iter().map(|(host, sum)| row(host.to_string(), sum));
        let pairs = self.pairs.top(MAX_LISTED);
        let pairs = pairs.into_iter().map(|((a, b), sum)| row(format!("{a} - {b}"), sum));
        let services = self.services.top(MAX_LISTED);
        let services = services.into_iter().map(|(service, sum)| row(service_name(service), sum));
        json!({
            "hosts": hosts.collect::<Value>(),
            "pairs": pairs.collect::<Value>(),
            "services": services.collect::<Value>(),
        })
    }
}

fn service_name((protocol, port): Service) -> String {
    match (protocol, port) {
        (protocol::TCP, port) => format!("TCP {port}"),
        (protocol::UDP, port) => format!("UDP {port}"),
        (protocol::ICMP, _) => "ICMP".into(),
        (protocol::ICMP6, _) => "ICMPv6".into(),
        (other, _) => format!("IP protocol {other}"),
    }
}

#[cfg(test)]
mod tests {
    use gannet_base::Addr;

    use super::*;

    fn add(talkers: &mut Talkers, packets: u64) {
        for _ in 0..packets {
            talkers.packets += 1;
            talkers.hosts.add(Addr::v4([10, 0, 0, 1]), 100);
        }
    }

    #[test]
    fn little_traffic_is_shown_for_some_seconds() {
        let mut talkers = Talkers::new();
        let mut shown = Value::Null;
        let before = |talkers: &mut Talkers, seconds| {
            talkers.since = Instant::now() - Duration::from_secs(seconds);
        };
        talkers.second(&mut shown);
        assert_eq!(shown, Value::Null);
        add(&mut talkers, 1);
        before(&mut talkers, 5);
        talkers.second(&mut shown);
        assert_eq!(shown["hosts"][0]["packets"], 0.2);
        // A second without packets: the last report stays.
        talkers.second(&mut shown);
        assert_eq!(shown["hosts"][0]["name"], "10.0.0.1");
        before(&mut talkers, 10);
        talkers.second(&mut shown);
        assert_eq!((talkers.packets, &shown["hosts"][0]["packets"]), (0, &json!(0.1)));
        talkers.second(&mut shown);
        assert_eq!(shown["hosts"][0]["name"], "10.0.0.1");
        before(&mut talkers, 10);
        talkers.second(&mut shown);
        assert_eq!(shown["hosts"], json!([]));
        // With much traffic, the report covers the last second.
        add(&mut talkers, MIN_PACKETS);
        before(&mut talkers, 1);
        talkers.second(&mut shown);
        assert_eq!((talkers.packets, &shown["hosts"][0]["packets"]), (0, &json!(50.0)));
    }
}
