//! x509.log: each certificate once a day for each combination of `host_cert` and `client_cert`.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use gannet_base::Addr;
use gannet_base::Interval;
use gannet_base::Time;
use gannet_dict::KeyedHash;
use gannet_event::Sinks;
use gannet_files::x509::Certificate;
use gannet_log::Cut;
use gannet_log::Date;
use gannet_log::Limits;
use gannet_log::Row;
use gannet_log::Vector;

use super::super::events::X509Seen;
use crate::deferred::Queue;
use crate::schemas::report_cut;
use crate::weird::Weirds;

/// Time after which a certificate is logged again.
const RELOG_AFTER: Interval = Interval::from_secs(24 * 60 * 60);
/// Maximum number of logged certificates in the table; beyond that, a new certificate is logged
/// whenever it is seen.
const MAX_KNOWN: usize = 1_000_000;
/// Minimum interval between two scans for expired entries: a scan of a large table takes long.
const SWEEP: Interval = Interval::from_secs(60 * 60);
gannet_log::row! {
    /// X.509 certificates, each once a day.
    pub struct X509Row<'a> = "x509" limits(Limits { string: 4096, elements: 500 }) {
        /// Time of the row.
        ts: Time = "ts",
        /// SHA-256 of its encoding, in hexadecimal.
        fingerprint: &'a str = "fingerprint",
        /// Version, counted from one.
        version: u64 = "certificate.version",
        /// Serial number in hexadecimal.
        serial: &'a str = "certificate.serial",
        /// Subject.
        subject: &'a str = "certificate.subject",
        /// Issuer.
        issuer: &'a str = "certificate.issuer",
        /// Start of its validity.
        not_valid_before: Date = "certificate.not_valid_before",
        /// End of its validity.
        not_valid_after: Date = "certificate.not_valid_after",
        /// Algorithm of the key.
        key_alg: &'a str = "certificate.key_alg",
        /// Algorithm of the signature.
        sig_alg: &'a str = "certificate.sig_alg",
        /// Type of the key: `rsa`, `dsa`, `ecdsa`, …
        key_type: Option<&'a str> = "certificate.key_type",
        /// Bits of the key.
        key_length: Option<u64> = "certificate.key_length",
        /// Public exponent of an RSA key.
        exponent: Option<&'a str> = "certificate.exponent",
        /// Curve of an elliptic-curve key.
        curve: Option<&'a str> = "certificate.curve",
        /// Alternative names: hosts.
        san_dns: Option<Vector<&'a [u8]>> = "san.dns",
        /// Alternative names: URIs.
        san_uri: Option<Vector<&'a [u8]>> = "san.uri",
        /// Alternative names: mail addresses.
        san_email: Option<Vector<&'a [u8]>> = "san.email",
        /// Alternative names: addresses.
        san_ip: Option<Vector<Addr>> = "san.ip",
        /// Whether it may issue certificates, if the extension is present.
        ca: Option<bool> = "basic_constraints.ca",
        /// Maximum number of issuers below it in a chain.
        path_len: Option<u64> = "basic_constraints.path_len",
        /// Whether it is the first certificate of its chain, that of the sender.
        host_cert: bool = "host_cert",
        /// Whether the client sent it.
        client_cert: bool = "client_cert",
    }
}

/// Table of the certificates that were logged.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// Time at which certificates were logged, by fingerprint, `host_cert` and `client_cert`.
    known: HashMap<Key, Time, KeyedHash>,
    /// Time of the last scan for expired entries.
    swept: Option<Time>,
    deferred: Queue<Item>,
}

/// Fingerprint, `host_cert` and `client_cert`.
type Key = ([u8; 32], bool, bool);

/// A certificate that a shard saw, for [`Known::decide`].
#[derive(Clone, Debug)]
pub struct Item {
    now: Time,
    key: Key,
    /// The row is built only if it is written: most certificates are seen repeatedly.
    certificate: Arc<Certificate>,
}

impl Known {
    /// Handles a seen certificate. Returns whether it is to be logged immediately; if another shard
    /// may have logged it, the decision is deferred.
    pub(in crate::ssl) fn is_to_be_logged(
        &mut self,
        logs: &Sinks,
        now: Time,
        seen: &X509Seen<'_>,
    ) -> bool {
        let X509Seen { is_host, is_client, digest, .. } = *seen;
        let key = (digest, is_host, is_client);
        if logs.key().is_none() {
            return self.insert_if_new(key, now);
        }
        if logs.selection().wants::<X509Row<'_>>() {
            let certificate = Arc::clone(seen.certificate.0);
            self.deferred.push(logs, Item { now, key, certificate });
        }
        false
    }

    /// Whether a certificate is to be logged. Called once whenever it is seen.
    fn insert_if_new(&mut self, key: Key, now: Time) -> bool {
        if self.known.get(&key).is_some_and(|&logged| now - logged < RELOG_AFTER) {
            return false;
        }
        if self.known.len() >= MAX_KNOWN && self.swept.is_none_or(|swept| now - swept >= SWEEP) {
            self.swept = Some(now);
            self.known.retain(|_, &mut logged| now - logged < RELOG_AFTER);
        }
        if self.known.len() < MAX_KNOWN {
            self.known.insert(key, now);
        }
        true
    }

    /// The items that a shard deferred, in order.
    pub(crate) fn deferred(&mut self) -> &mut Queue<Item> {
        &mut self.deferred
    }

    /// Writes the row of an item that a shard deferred, unless the certificate was logged.
    pub(crate) fn decide(&mut self, logs: &mut Sinks, weirds: &mut Weirds, item: &Item) {
        if self.insert_if_new(item.key, item.now) {
            let (_, host, client) = item.key;
            let cut = with_row(item.now, &item.certificate, host, client, |row| logs.write(row));
            if cut != Cut::default() {
                report_cut(weirds, logs, item.now, X509Row::PATH, cut);
            }
        }
    }
}

/// Builds a row and passes it to `then`.
pub(in crate::ssl) fn with_row<T>(
    ts: Time,
    c: &Certificate,
    host_cert: bool,
    client_cert: bool,
    then: impl FnOnce(&X509Row<'_>) -> T,
) -> T {
    let key = c.key.as_ref();
    let names = c.alternative_names.as_ref();
    let row = X509Row {
        ts,
        fingerprint: &c.fingerprint,
        version: c.version,
        serial: &c.serial,
        subject: &c.subject,
        issuer: &c.issuer,
        not_valid_before: Date(c.not_before),
        not_valid_after: Date(c.not_after),
        key_alg: &c.key_algorithm,
        sig_alg: &c.signature_algorithm,
        key_type: key.map(|k| k.kind),
        key_length: key.and_then(|k| k.bits),
        exponent: key.and_then(|k| k.exponent.as_deref()),
        curve: key.and_then(|k| k.curve),
        san_dns: names.and_then(|n| list(&n.dns)),
        san_uri: names.and_then(|n| list(&n.uri)),
        san_email: names.and_then(|n| list(&n.email)),
        san_ip: names.and_then(|n| n.ip.as_ref()).map(|ip| {
            let address = |&ip: &IpAddr| match ip {
                IpAddr::V4(ip) => Addr::v4(ip.octets()),
                IpAddr::V6(ip) => Addr::v6(ip.octets()),
            };
            Vector(ip.iter().map(address).collect())
        }),
        ca: c.basic_constraints.map(|b| b.ca),
        path_len: c.basic_constraints.and_then(|b| b.path_len),
        host_cert,
        client_cert,
    };
    then(&row)
}

fn list(names: &[Vec<u8>]) -> Option<Vector<&[u8]>> {
    (!names.is_empty()).then(|| Vector(names.iter().map(Vec::as_slice).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without the interval between scans, each new certificate beyond the limit would scan a
    /// million entries.
    #[test]
    fn many_certificates_are_not_searched_for_each_new_one() {
        let mut seen = Known::default();
        let key = |n: usize| {
            let mut digest = [0; 32];
            digest[..8].copy_from_slice(&n.to_be_bytes());
            (digest, true, false)
        };
        let (begin, day) = (Time::from_secs(0), RELOG_AFTER);
        assert!((0..MAX_KNOWN).all(|n| seen.insert_if_new(key(n), begin)));
        let late = begin + day - Interval::from_secs(1);
        for n in MAX_KNOWN..MAX_KNOWN + 2000 {
            assert!(seen.insert_if_new(key(n), late));
        }
        assert!(!seen.insert_if_new(key(0), late));
        // All entries are a day old, but a scan was made just before.
        assert!(seen.insert_if_new(key(MAX_KNOWN), begin + day));
        assert_eq!(seen.known.len(), MAX_KNOWN);
        assert!(seen.insert_if_new(key(MAX_KNOWN), late + SWEEP));
        assert_eq!(seen.known.len(), 1);
        assert!(!seen.insert_if_new(key(MAX_KNOWN), late + SWEEP));
    }

    #[test]
    fn once_a_day_in_each_part() {
        let mut c = Known::default();
        let at = |h: i64| Time::from_secs(1_000_000 + h * 3600);
        let key = |host, client| ([1; 32], host, client);
        assert!(c.insert_if_new(key(true, false), at(0)));
        assert!(!c.insert_if_new(key(true, false), at(23)));
        assert!(c.insert_if_new(key(false, false), at(23)));
        assert!(c.insert_if_new(key(true, true), at(23)));
        assert!(c.insert_if_new(key(true, false), at(24)));
        assert!(!c.insert_if_new(key(true, false), at(25)));
    }
}
