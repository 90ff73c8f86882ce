//! unknown_protocols.log: protocols that no analyzer reads.

use std::collections::HashMap;

use gannet_base::Interval;
use gannet_base::Time;
use gannet_dict::KeyedHash;
use gannet_log::Logs;
use gannet_log::Vector;

use crate::packet::events::UnknownProtocol;

gannet_log::row! {
    /// Packets of protocols that gannet does not parse, at transport layer and below: the first few
    /// of each kind.
    pub struct UnknownRow<'a> = "unknown_protocols", opt_in {
        /// Time of the packet.
        ts: Time = "ts",
        /// The layer that leads to it.
        analyzer: &'a str = "analyzer",
        /// Its number there, in hexadecimal.
        protocol_id: &'a str = "protocol_id",
        /// Its first bytes, in hexadecimal.
        first_bytes: &'a str = "first_bytes",
        /// The layers around it, the outermost first.
        analyzer_history: Vector<&'a str> = "analyzer_history",
    }
}

/// Number of packets of one kind that are logged before sampling begins.
const SAMPLE_AFTER: u64 = 3;
/// Sampling interval: one of this many further packets is logged.
const SAMPLE_EACH: u64 = 100_000;
/// Interval after which counting starts again.
const WINDOW: Interval = Interval::from_secs(3600);
/// Number of payload bytes that are logged.
const FIRST_BYTES: usize = 10;
/// Maximum number of kinds in the table; beyond it, the table is cleared.
const MAX: usize = 65_536;

/// A packet of an unknown protocol.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// Name of the layer's analyzer that contains the protocol.
    pub analyzer: &'static str,
    /// Number of the protocol in that layer.
    pub protocol: u32,
    /// The payload.
    pub data: &'a [u8],
    /// The enclosing layers, the outermost first.
    pub layers: &'a [&'static str],
}

/// Decides which packets are logged.
#[derive(Debug)]
pub struct Sampler {
    /// Number of payload bytes that are logged.
    pub first_bytes: usize,
    /// Packets of one kind before sampling begins.
    pub threshold: u64,
    /// One of this many further packets is reported; 0 means none.
    pub rate: u64,
    /// Interval after which counting starts again.
    pub duration: Interval,
    /// Start of the interval and number of packets in it, by layer and protocol number.
    counts: HashMap<(&'static str, u32), (Time, u64), KeyedHash>,
}

impl Default for Sampler {
    fn default() -> Self {
        Self {
            first_bytes: FIRST_BYTES,
            threshold: SAMPLE_AFTER,
            rate: SAMPLE_EACH,
            duration: WINDOW,
            counts: HashMap::default(),
        }
    }
}

impl Sampler {
    pub(super) fn seen(&mut self, logs: &mut Logs, now: Time, seen: &Seen<'_>) {
        if !self.permits(now, (seen.analyzer, seen.protocol)) {
            return;
        }
        let shown = &seen.data[..seen.data.len().min(self.first_bytes)];
        let first_bytes: String = shown.iter().map(|b| format!("{b:02x}")).collect();
        logs.write(&UnknownRow {
            ts: now,
            analyzer: seen.analyzer,
            protocol_id: &format!("{:#x}", seen.protocol),
            first_bytes: &first_bytes,
            analyzer_history: Vector(seen.layers.to_vec()),
        });
    }

    /// Raises the event of a packet, if it is to be reported.
    pub fn raise(&mut self, events: &mut gannet_event::Events, now: Time, seen: &Seen<'_>) {
        if !self.permits(now, (seen.analyzer, seen.protocol)) {
            return;
        }
        events.raise(&UnknownProtocol {
            analyzer_name: seen.analyzer,
            protocol: u64::from(seen.protocol),
            first_bytes: seen.data.get(..self.first_bytes).unwrap_or(seen.data),
            analyzer_history: seen.layers.to_vec(),
        });
    }

    fn permits(&mut self, now: Time, kind: (&'static str, u32)) -> bool {
        if self.counts.len() >= MAX && !self.counts.contains_key(&kind) {
            self.counts.clear();
        }
        let (since, count) = self.counts.entry(kind).or_insert((now, 0));
        if now - *since >= self.duration {
            (*since, *count) = (now, 0);
        }
        *count += 1;
        let further = count.checked_sub(self.threshold);
        further.is_none_or(|n| n == 0 || self.rate > 0 && n.is_multiple_of(self.rate))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gannet_log::Options;
    use gannet_log::Selection;

    #[test]
    fn three_of_a_kind_an_hour() {
        let selection = Selection::of(["unknown_protocols"]);
        let mut logs = Logs::new(Options { selection, ..Options::default() });
        let mut sampler = Sampler::default();
        let data = [2, 7, 4, 0, 0x22, 0x2d, 0x81, 0xdb, 0x10, 4, 9];
        let seen =
            Seen { analyzer: "ETHERNET", protocol: 0x88cc, data: &data, layers: &["ETHERNET"] };
        for at in [1, 2, 3, 4, 3600, 3601] {
            sampler.seen(&mut logs, Time::from_secs(at), &seen);
        }
        let text = String::from_utf8_lossy(logs.pending("unknown_protocols")).into_owned();
        let rows: Vec<_> = text.lines().filter(|l| !l.starts_with('#')).collect();
        assert_eq!(rows.len(), 4);
        assert_eq!(rows[0], "1.000000\tETHERNET\t0x88cc\t02070400222d81db1004\tETHERNET");
        assert!(rows[3].starts_with("3601.000000"));
    }

    #[test]
    fn scripts_choose_how_many_are_reported() {
        let permitted = |threshold, rate, times: &[i64]| {
            let duration = Interval::from_secs(60);
            let mut sampler = Sampler { threshold, rate, duration, ..Sampler::default() };
            let permits = |at: &&i64| sampler.permits(Time::from_secs(**at), ("ETHERNET", 1));
            times.iter().filter(permits).copied().collect::<Vec<_>>()
        };
        assert_eq!(permitted(2, 3, &[1, 2, 3, 4, 5, 6, 7, 8, 61, 62, 63]), [1, 2, 5, 8, 61, 62]);
        assert_eq!(permitted(1, 0, &[1, 2, 3]), [1]);
        assert_eq!(permitted(0, 2, &[1, 2, 3, 4]), [2, 4]);
    }
}
