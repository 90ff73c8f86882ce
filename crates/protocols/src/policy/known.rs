//! known_hosts.log, known_services.log, known_certs.log and known_modbus.log: new hosts, services
//! and certificates, once a day.

use std::collections::HashMap;
use std::collections::HashSet;
use std::collections::VecDeque;
use std::hash::Hash;

use gannet_base::Addr;
use gannet_base::ConnId;
use gannet_base::Interval;
use gannet_base::Proto;
use gannet_base::Time;
use gannet_dict::KeyedHash;
use gannet_log::Enum;
use gannet_log::Logs;
use gannet_log::Port;
use gannet_log::Set;

use crate::Tag;

gannet_log::row! {
    /// Hosts that completed a TCP handshake, each once a day.
    pub struct HostRow = "known_hosts", opt_in {
        /// Time of the row.
        ts: Time = "ts",
        /// The host.
        host: Addr = "host",
    }
}

gannet_log::row! {
    /// Services that answered, with their protocols, each once a day.
    pub struct ServiceRow<'a> = "known_services", opt_in {
        /// Time of the row.
        ts: Time = "ts",
        /// The host that serves.
        host: Addr = "host",
        /// Its port.
        port_num: Port = "port_num",
        /// Transport.
        port_proto: Proto = "port_proto",
        /// Protocols newly recognized on the service; empty if none was recognized within five
        /// minutes.
        service: Set<&'a str> = "service",
    }
}

gannet_log::row! {
    /// Certificates of servers, each once a day for each server.
    pub struct CertificateRow<'a> = "known_certs", opt_in {
        /// Time of the row.
        ts: Time = "ts",
        /// The server.
        host: Addr = "host",
        /// Its port.
        port_num: Port = "port_num",
        /// Subject of the certificate.
        subject: &'a str = "subject",
        /// Its issuer.
        issuer_subject: &'a str = "issuer_subject",
        /// Its serial number.
        serial: &'a str = "serial",
    }
}

gannet_log::row! {
    /// Modbus hosts, once a day for each role.
    pub struct ModbusRow = "known_modbus", opt_in {
        /// Time of the row.
        ts: Time = "ts",
        /// The host.
        host: Addr = "host",
        /// Role of the host: `Known::MODBUS_MASTER` sends requests, `Known::MODBUS_SLAVE` replies.
        device_type: Enum = "device_type",
    }
}

/// A known item is logged again after this time.
const DAY: Interval = Interval::from_secs(86_400);
/// Maximum number of items of one kind; beyond it, the table is cleared.
const MAX: usize = 1_000_000;
/// A service is logged without a protocol if none was recognized on it within this time.
const UNKNOWN_AFTER: Interval = Interval::from_secs(300);

/// Items seen within a day.
#[derive(Debug)]
struct Daily<K> {
    since: HashMap<K, Time, KeyedHash>,
}

impl<K> Default for Daily<K> {
    fn default() -> Self {
        Self { since: HashMap::default() }
    }
}

impl<K: Hash + Eq> Daily<K> {
    fn insert_if_new(&mut self, now: Time, key: K) -> bool {
        if self.since.get(&key).is_some_and(|at| now < *at + DAY) {
            return false;
        }
        ensure_capacity(&mut self.since, MAX, |at| now < *at + DAY);
        self.since.insert(key, now);
        true
    }
}

/// Makes space for one more entry in a table of limited size: removes expired entries, or all of
/// them if few have expired, so that the next scan is much later.
pub(super) fn ensure_capacity<K: Hash + Eq, V>(
    map: &mut HashMap<K, V, KeyedHash>,
    max: usize,
    valid: impl Fn(&V) -> bool,
) {
    if map.len() >= max {
        map.retain(|_, v| valid(v));
        if map.len() > max - max / 8 {
            map.clear();
        }
    }
}

/// Hosts.
#[derive(Debug, Default)]
pub(super) struct Hosts(Daily<Addr>);

impl Hosts {
    pub(super) fn seen(&mut self, logs: &mut Logs, ts: Time, host: Addr) {
        if self.0.insert_if_new(ts, host) {
            logs.write(&HostRow { ts, host });
        }
    }
}

/// A certificate that a server presented.
#[derive(Clone, Copy, Debug)]
pub struct PresentedCertificate<'a> {
    /// The server.
    pub host: Addr,
    /// Its port.
    pub port: u16,
    /// SHA-256 of the certificate, in hexadecimal.
    pub fingerprint: &'a str,
    /// Subject.
    pub subject: &'a str,
    /// Issuer.
    pub issuer: &'a str,
    /// Serial number.
    pub serial: &'a str,
}

/// Certificates.
#[derive(Debug, Default)]
pub(super) struct Certificates(Daily<(Addr, Box<str>)>);

impl Certificates {
    pub(super) fn seen(&mut self, logs: &mut Logs, ts: Time, seen: &PresentedCertificate<'_>) {
        if self.0.insert_if_new(ts, (seen.host, seen.fingerprint.into())) {
            logs.write(&CertificateRow {
                ts,
                host: seen.host,
                port_num: Port(seen.port),
                subject: seen.subject,
                issuer_subject: seen.issuer,
                serial: seen.serial,
            });
        }
    }
}

/// Modbus devices.
#[derive(Debug, Default)]
pub(super) struct Modbus(Daily<(Addr, &'static str)>);

impl Modbus {
    pub(super) fn seen(&mut self, logs: &mut Logs, ts: Time, id: &ConnId) {
        let parts = [(id.orig_h, "Known::MODBUS_MASTER"), (id.resp_h, "Known::MODBUS_SLAVE")];
        for (host, part) in parts {
            if self.0.insert_if_new(ts, (host, part)) {
                logs.write(&ModbusRow { ts, host, device_type: Enum(part) });
            }
        }
    }
}

/// The responder of a connection as a service.
#[derive(Clone, Copy, Debug)]
pub struct ObservedService<'a> {
    /// The responder.
    pub host: Addr,
    /// Its port.
    pub port: u16,
    /// Transport.
    pub proto: Proto,
    /// Protocols recognized so far, by the numbers that connections use.
    pub protocols: &'a [u8],
    /// Number of payload bytes that the responder sent.
    pub sent: u64,
    /// Whether the responder sent anything.
    pub answered: bool,
}

impl ObservedService<'_> {
    /// Whether the connection shows a service.
    pub(super) fn counts(&self) -> bool {
        let one = |tag| self.protocols == [tag as u8];
        // Data connections are announced by others and show no service; a DNS server must have
        // answered.
        self.answered && !one(Tag::FtpData) && !(one(Tag::Dns) && self.sent == 0)
    }
}

/// The name that a protocol has in the `service` of connections.
fn name(protocol: u8) -> &'static str {
    match Tag::ALL.get(usize::from(protocol)) {
        // These have no analyzer of their own.
        Some(tag @ (Tag::FtpData | Tag::IrcData | Tag::Gridftp)) => tag.service(),
        Some(tag) => tag.name(),
        None => "",
    }
}

type Service = (Addr, u16, Proto);

/// Services.
#[derive(Debug, Default)]
pub(super) struct Services {
    known: HashMap<Service, Known, KeyedHash>,
    /// Services of unknown protocol, with the time at which they are logged without one.
    waiting: VecDeque<(Time, Service)>,
}

#[derive(Debug)]
struct Known {
    since: Time,
    names: HashSet<&'static str, KeyedHash>,
}

impl Services {
    pub(super) fn seen(&mut self, logs: &mut Logs, now: Time, seen: &ObservedService<'_>) {
        let service = (seen.host, seen.port, seen.proto);
        if seen.protocols.is_empty() {
            if self.waiting.len() < MAX {
                self.waiting.push_back((now + UNKNOWN_AFTER, service));
            }
            return;
        }
        let names: Vec<_> = seen.protocols.iter().map(|p| name(*p)).collect();
        self.log(logs, now, now, service, &names);
    }

    /// Advances to the time of the next packet, and logs services that waited long enough.
    pub(super) fn arrive(&mut self, logs: &mut Logs, packet: Time) {
        while let Some((due, service)) = self.waiting.front().copied()
            && due <= packet
        {
            self.waiting.pop_front();
            self.log(logs, packet, due - UNKNOWN_AFTER, service, &[""]);
        }
    }

    /// Logs all waiting services at the end of input.
    pub(super) fn finish(&mut self, logs: &mut Logs, now: Time) {
        while let Some((due, service)) = self.waiting.pop_front() {
            self.log(logs, now, due - UNKNOWN_AFTER, service, &[""]);
        }
    }

    fn log(
        &mut self,
        logs: &mut Logs,
        now: Time,
        ts: Time,
        service: Service,
        names: &[&'static str],
    ) {
        if !self.known.contains_key(&service) {
            ensure_capacity(&mut self.known, MAX, |k| now < k.since + DAY);
        }
        let fresh = || Known { since: now, names: HashSet::default() };
        let known = self.known.entry(service).or_insert_with(fresh);
        if now >= known.since + DAY {
            *known = fresh();
        }
        let new_names: Vec<_> = names.iter().copied().filter(|n| known.names.insert(n)).collect();
        if !new_names.is_empty() {
            let (host, port, port_proto) = service;
            let port_num = Port(port);
            logs.write(&ServiceRow { ts, host, port_num, port_proto, service: Set(new_names) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gannet_log::Options;
    use gannet_log::Selection;

    const A: Addr = Addr::v4([10, 0, 0, 1]);
    const B: Addr = Addr::v4([10, 0, 0, 2]);

    fn logs() -> Logs {
        Logs::new(Options { selection: Selection::of(["policy"]), ..Options::default() })
    }

    fn rows(logs: &Logs, path: &str) -> Vec<String> {
        let text = String::from_utf8_lossy(logs.pending(path)).into_owned();
        text.lines().filter(|l| !l.starts_with('#')).map(str::to_owned).collect()
    }

    #[test]
    fn room_is_made_for_many_at_once() {
        let map = |old: usize| -> HashMap<usize, bool, KeyedHash> {
            (0..16).map(|n| (n, n >= old)).collect()
        };
        for (old, left) in [(0, 0), (1, 0), (2, 14), (16, 0)] {
            let mut map = map(old);
            ensure_capacity(&mut map, 17, |valid| *valid);
            assert_eq!(map.len(), 16, "there is room");
            ensure_capacity(&mut map, 16, |valid| *valid);
            assert_eq!(map.len(), left, "{old} are out of date");
        }
    }

    #[test]
    fn hosts_are_news_once_a_day() {
        let (mut logs, mut hosts) = (logs(), Hosts::default());
        for at in [1, 86_400, 86_401] {
            hosts.seen(&mut logs, Time::from_secs(at), A);
        }
        assert_eq!(rows(&logs, "known_hosts"), ["1.000000\t10.0.0.1", "86401.000000\t10.0.0.1"]);
    }

    #[test]
    fn certificates_and_devices() {
        let mut logs = logs();
        let seen = PresentedCertificate {
            host: A,
            port: 443,
            fingerprint: "00",
            subject: "CN=a",
            issuer: "CN=b",
            serial: "01",
        };
        let mut certificates = Certificates::default();
        certificates.seen(&mut logs, Time::from_secs(1), &seen);
        certificates.seen(&mut logs, Time::from_secs(2), &seen);
        certificates.seen(&mut logs, Time::from_secs(3), &PresentedCertificate { host: B, ..seen });
        let first = "1.000000\t10.0.0.1\t443\tCN=a\tCN=b\t01";
        assert_eq!(rows(&logs, "known_certs")[0], first);
        assert_eq!(rows(&logs, "known_certs").len(), 2);
        let id = ConnId { orig_h: A, orig_p: 1, resp_h: B, resp_p: 502 };
        let mut modbus = Modbus::default();
        modbus.seen(&mut logs, Time::from_secs(1), &id);
        modbus.seen(&mut logs, Time::from_secs(1), &id);
        let rows = rows(&logs, "known_modbus");
        let expected =
            ["1.000000\t10.0.0.1\tKnown::MODBUS_MASTER", "1.000000\t10.0.0.2\tKnown::MODBUS_SLAVE"];
        assert_eq!(rows, expected);
    }

    #[test]
    fn services_by_protocol() {
        let (mut logs, mut services) = (logs(), Services::default());
        let at = Time::from_secs;
        let protocols = [Tag::Smb as u8, Tag::KrbTcp as u8];
        let seen = |protocols| ObservedService {
            host: A,
            port: 445,
            proto: Proto::Tcp,
            protocols,
            sent: 1,
            answered: true,
        };
        services.seen(&mut logs, at(1), &seen(&protocols[..1]));
        services.seen(&mut logs, at(2), &seen(&protocols));
        services.seen(&mut logs, at(3), &seen(&protocols));
        services.seen(&mut logs, at(4), &seen(&[]));
        services.arrive(&mut logs, at(303));
        assert_eq!(rows(&logs, "known_services").len(), 2);
        services.arrive(&mut logs, at(304));
        services.seen(&mut logs, at(305), &seen(&[]));
        services.finish(&mut logs, at(305));
        let expected = [
            "1.000000\t10.0.0.1\t445\ttcp\tSMB",
            "2.000000\t10.0.0.1\t445\ttcp\tKRB_TCP",
            "4.000000\t10.0.0.1\t445\ttcp\t(empty)",
        ];
        assert_eq!(rows(&logs, "known_services"), expected);
    }

    #[test]
    fn what_shows_no_service() {
        let dns = [Tag::Dns as u8];
        let seen = ObservedService {
            host: A,
            port: 53,
            proto: Proto::Udp,
            protocols: &dns,
            sent: 1,
            answered: true,
        };
        assert!(seen.counts());
        assert!(!ObservedService { sent: 0, ..seen }.counts());
        assert!(!ObservedService { answered: false, ..seen }.counts());
        assert!(!ObservedService { protocols: &[Tag::FtpData as u8], ..seen }.counts());
        assert!(ObservedService { protocols: &[], sent: 0, ..seen }.counts());
    }
}
