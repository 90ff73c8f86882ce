//! software.log: software that hosts run, as the software identifies itself.
//!
//! Analyzers report [`DetectedSoftware`]; it is parsed ([`version`](self), browsers separately) and
//! logged once a day for each host, name and version.

mod browser;
mod version;

use std::collections::HashMap;
use std::collections::HashSet;

use gannet_base::Addr;
use gannet_base::Interval;
use gannet_base::Time;
use gannet_dict::KeyedHash;
use gannet_log::Enum;
use gannet_log::Logs;
use gannet_log::Port;

use super::known::ensure_capacity;

pub use version::Software;
pub use version::Version;

gannet_log::row! {
    /// Software that hosts run, once a day for each host and version.
    pub struct SoftwareRow<'a> = "software", opt_in {
        /// Time at which it was seen.
        ts: Time = "ts",
        /// The host that runs it.
        host: Addr = "host",
        /// Its port, for servers.
        host_p: Option<Port> = "host_p",
        /// Kind of software, like `HTTP::BROWSER`.
        software_type: Enum = "software_type",
        /// Its name.
        name: &'a [u8] = "name",
        /// First number of its version.
        major: Option<u64> = "version.major",
        /// Second number.
        minor: Option<u64> = "version.minor",
        /// Third number.
        minor2: Option<u64> = "version.minor2",
        /// Fourth number.
        minor3: Option<u64> = "version.minor3",
        /// The text after the numbers.
        addl: Option<&'a [u8]> = "version.addl",
        /// The text with which the software identifies itself.
        unparsed_version: &'a [u8] = "unparsed_version",
    }
}

/// Software that identified itself.
#[derive(Clone, Copy, Debug)]
pub struct DetectedSoftware<'a> {
    /// Host that runs it.
    pub host: Addr,
    /// Its port, for some servers.
    pub port: Option<u16>,
    /// Type of software, as in the log.
    pub kind: &'static str,
    /// The text with which the software identifies itself.
    pub text: &'a [u8],
}

/// A finding is remembered for this long after it was first made for a host.
const DAY: Interval = Interval::from_secs(86_400);
/// A repeated finding within this time is ignored in any case.
const REPEATS: Interval = Interval::from_secs(600);
/// Versions of one piece of software on one host that are remembered: with one more it begins again.
const MAX_VERSIONS: usize = 20;
/// Maximum number of names of software kept per host.
const MAX_NAMES: usize = 1_000;
/// Maximum number of hosts in the table.
const MAX_HOSTS: usize = 100_000;
/// Maximum number of recent findings in the table.
const MAX_LATEST: usize = 100_000;

/// Software by host, and recent findings.
#[derive(Debug, Default)]
pub(super) struct Tracker {
    hosts: HashMap<Addr, Host, KeyedHash>,
    latest: HashMap<Latest, Time, KeyedHash>,
}

type Latest = (Addr, Option<u16>, &'static str, Box<[u8]>);

#[derive(Debug)]
struct Host {
    since: Time,
    /// By name, the texts with which its versions identified themselves.
    names: HashMap<Vec<u8>, HashSet<Box<[u8]>, KeyedHash>, KeyedHash>,
}

impl Tracker {
    pub(super) fn on_detected(&mut self, logs: &mut Logs, now: Time, found: &DetectedSoftware<'_>) {
        let key = (found.host, found.port, found.kind, found.text.into());
        if self.latest.get(&key).is_some_and(|at| now < *at + REPEATS) {
            return;
        }
        ensure_capacity(&mut self.latest, MAX_LATEST, |at| now < *at + REPEATS);
        self.latest.insert(key, now);
        let software = Software::parse(found.text);
        if self.insert_if_new(now, found.host, &software.name, found.text) {
            log(logs, now, found, &software);
        }
    }

    fn insert_if_new(&mut self, now: Time, host: Addr, name: &[u8], text: &[u8]) -> bool {
        if !self.hosts.contains_key(&host) {
            ensure_capacity(&mut self.hosts, MAX_HOSTS, |h| now < h.since + DAY);
        }
        let fresh = || Host { since: now, names: HashMap::default() };
        let host = self.hosts.entry(host).or_insert_with(fresh);
        if now >= host.since + DAY || host.names.len() >= MAX_NAMES {
            *host = fresh();
        }
        let versions = host.names.entry(name.to_vec()).or_default();
        if versions.contains(text) {
            return false;
        }
        if versions.len() >= MAX_VERSIONS {
            versions.clear();
        }
        versions.insert(text.into());
        true
    }
}

fn log(logs: &mut Logs, ts: Time, found: &DetectedSoftware<'_>, software: &Software) {
    let version = &software.version;
    logs.write(&SoftwareRow {
        ts,
        host: found.host,
        host_p: found.port.map(Port),
        software_type: Enum(found.kind),
        name: &software.name,
        major: version.major,
        minor: version.minor,
        minor2: version.minor2,
        minor3: version.minor3,
        addl: version.addl.as_deref(),
        unparsed_version: found.text,
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use gannet_log::Options;
    use gannet_log::Selection;

    #[test]
    fn once_a_day_for_each_host_and_version() {
        let selection = Selection::of(["software"]);
        let mut logs = Logs::new(Options { selection, ..Options::default() });
        let mut tracker = Tracker::default();
        let mut found = |at, host: u8, text: &str| {
            let host = Addr::v4([10, 0, 0, host]);
            let found = DetectedSoftware {
                host,
                port: Some(80),
                kind: "HTTP::SERVER",
                text: text.as_bytes(),
            };
            tracker.on_detected(&mut logs, Time::from_secs(at), &found);
            logs.counts().first().map_or(0, |c| c.rows)
        };
        assert_eq!(found(1, 1, "a/1.0"), 1);
        assert_eq!(found(700, 1, "a/1.0"), 1, "known");
        assert_eq!(found(701, 1, "a/1.1"), 2, "another version");
        assert_eq!(found(702, 2, "a/1.1"), 3, "another host");
        assert_eq!(found(86_401, 1, "a/1.0"), 4, "another day");
        // If there are too many versions, the table is cleared except for the current one.
        for n in 0..30 {
            found(90_000, 1, &format!("b/1.{n}"));
        }
        assert_eq!(found(90_001, 1, "b/1.0"), 34);
        assert_eq!(found(90_700, 1, "b/1.0"), 35);
    }
}
