//! unknown_protocols.log: protocols that packets lead to and nothing here reads.

use std::collections::HashMap;

use gannet_base::Interval;
use gannet_base::Time;
use gannet_dict::KeyedHash;
use gannet_log::Logs;
use gannet_log::Vector;

use crate::packet::events::UnknownProtocol;

gannet_log::row! {
    /// Protocols below transport, and transports, that gannet does not parse: the first few packets of
    /// each.
    pub struct UnknownRow<'a> = "unknown_protocols", opt_in {
        /// When it was seen.
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

/// Packets of one kind that are logged, before sampling begins.
const SAMPLE_AFTER: u64 = 3;
/// Of the further ones only each so-manieth is.
const SAMPLE_EACH: u64 = 100_000;
/// How long the packets of a kind are counted.
const WINDOW: Interval = Interval::from_secs(3600);
/// Bytes that are shown.
const FIRST_BYTES: usize = 10;
/// Kinds that are remembered; with more it begins again.
const MAX: usize = 65_536;

/// A packet of an unknown protocol.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// The layer that leads to it, as analyzers are called.
    pub analyzer: &'static str,
    /// Its number there.
    pub protocol: u32,
    /// The payload.
    pub data: &'a [u8],
    /// The layers around it, the outermost first.
    pub layers: &'a [&'static str],
}

/// Decides which packets are logged.
#[derive(Debug)]
pub struct Sampler {
    /// Bytes that are shown.
    pub first_bytes: usize,
    /// Packets of one kind before sampling begins.
    pub threshold: u64,
    /// One of this many further packets is reported; none of them where it is 0.
    pub rate: u64,
    /// How long that lasts.
    pub duration: Interval,
    /// By layer and number, since when and how often.
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

    /// Raises the event of a packet, where it is one that is reported.
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
