//! Certificates: each is parsed once and shared; the submodule decides when it is logged.

mod rows;

use std::collections::HashMap;
use std::sync::Arc;

use gannet_dict::KeyedHash;
use gannet_files::x509;
use gannet_files::x509::Certificate;

pub use rows::Item;
use rows::Known;
pub use rows::X509Row;
pub(super) use rows::with_row;

/// Maximum number of parsed certificates in the cache.
const MAX_PARSED: usize = 1024;
/// Maximum total length of their encodings, in bytes.
const MAX_PARSED_BYTES: usize = 4 << 20;

/// The certificates seen on all connections.
#[derive(Debug, Default)]
pub struct Certificates {
    /// Parsed certificates by their encoding; `None` for those that cannot be parsed.
    parsed: HashMap<Box<[u8]>, Parsed, KeyedHash>,
    parsed_bytes: usize,
    /// State of the rows of x509.log.
    pub(crate) rows: Known,
}

/// A certificate and its fingerprint in binary form.
pub(super) type Parsed = Option<(Arc<Certificate>, [u8; 32])>;

impl Certificates {
    /// Parses a certificate, unless it is in the cache.
    pub(super) fn parse(&mut self, der: &[u8]) -> Parsed {
        if let Some(parsed) = self.parsed.get(der) {
            return parsed.clone();
        }
        let parsed = x509::parse(der).ok().map(|c| {
            let digest = digest(&c.fingerprint);
            (Arc::new(c), digest)
        });
        if self.parsed.len() >= MAX_PARSED || self.parsed_bytes + der.len() > MAX_PARSED_BYTES {
            self.parsed.clear();
            self.parsed_bytes = 0;
        }
        self.parsed_bytes += der.len();
        self.parsed.insert(der.into(), parsed.clone());
        parsed
    }
}

/// Converts a fingerprint in hexadecimal to binary form.
fn digest(hex: &str) -> [u8; 32] {
    let nibble = |c: u8| char::from(c).to_digit(16).unwrap_or(0) as u8;
    let mut out = [0; 32];
    for (byte, pair) in out.iter_mut().zip(hex.as_bytes().chunks_exact(2)) {
        *byte = nibble(pair[0]) << 4 | nibble(pair[1]);
    }
    out
}

#[cfg(test)]
mod tests {
    use gannet_base::Dir;
    use gannet_base::Proto;

    use super::super::Analyzer;
    use super::super::samples;
    use super::*;
    use crate::Analyze;
    use crate::testing::Harness;

    const FINGERPRINT: &str = "9ff05f8391cf62d3e9e606150243b986e6857d8bf1e21cbf4e389935af821b7f";

    /// A session in which a client connects to `host`, and the server presents a chain of two
    /// certificates.
    fn session(h: &mut Harness, host: &[u8]) {
        let mut a = Analyzer::new(&mut h.cx());
        let hello = samples::client_hello(0x0303, &[], &[samples::server_name(host)]);
        let record = samples::record(22, &samples::message(1, &hello));
        a.stream(&mut h.cx(), Dir::Orig, &record);
        let chain = samples::chain(&[&samples::CERTIFICATE, b"nothing"]);
        let record = samples::record(22, &samples::message(11, &chain));
        a.stream(&mut h.cx(), Dir::Resp, &record);
        a.finish(&mut h.cx());
    }

    #[test]
    fn a_chain_in_both_logs() {
        let mut h = Harness::new(Proto::Tcp, 443);
        session(&mut h, b"example.com");
        session(&mut h, b"example.org");
        let rows = h.rows("ssl");
        assert_eq!(rows.len(), 2);
        for (row, matches) in rows.iter().zip(["T", "F"]) {
            assert_eq!(row["ssl_history"], "Cx");
            assert_eq!(row["cert_chain_fps"], FINGERPRINT);
            assert_eq!(row["client_cert_chain_fps"], "(empty)");
            assert_eq!(row["sni_matches_cert"], matches);
        }
        let rows = h.rows("x509");
        assert_eq!(rows.len(), 1);
        let row = &rows[0];
        assert_eq!(row["fingerprint"], FINGERPRINT);
        assert_eq!(row["certificate.serial"], "2A");
        assert_eq!(row["certificate.subject"], "CN=example.com");
        assert_eq!(row["certificate.not_valid_before"], "1795256166.000000");
        assert_eq!(row["san.dns"], "example.com");
        assert_eq!(row["san.ip"], "-");
        assert_eq!(row["basic_constraints.ca"], "T");
        assert_eq!((row["host_cert"].as_str(), row["client_cert"].as_str()), ("T", "F"));
    }

    #[test]
    fn weirds_of_a_certificate_are_weirds_of_its_file() {
        let mut h = Harness::new(Proto::Tcp, 443);
        h.listen("file_weird");
        session(&mut h, b"example.com");
        let row = &h.rows("weird")[0];
        assert_eq!((&*row["name"], &*row["uid"]), ("x509_cert_parse_error", "-"));
        // The second certificate of the chain; the listener gets no details of the file.
        let fuid = h.env.uids.file(h.conn.uid, u64::MAX - 2);
        assert_eq!(row["addl"], fuid.to_string());
        assert_eq!(h.events(), [r#"file_weird "addl":"","source":"""#]);
        // Its identifier does not depend on listeners.
        let mut silent = Harness::new(Proto::Tcp, 443);
        session(&mut silent, b"example.com");
        assert_eq!(silent.rows("weird"), h.rows("weird"));
    }

    #[test]
    fn what_does_not_parse_is_remembered_too() {
        let mut c = Certificates::default();
        assert!(c.parse(b"no certificate").is_none());
        assert!(c.parse(b"no certificate").is_none());
        assert_eq!((c.parsed.len(), c.parsed_bytes), (1, 14));
        for i in 0..2 * MAX_PARSED {
            c.parse(&i.to_be_bytes());
        }
        assert!(c.parsed.len() <= MAX_PARSED);
    }

    #[test]
    fn digests_from_their_digits() {
        let d = digest("00ff10aa");
        assert_eq!(d[..4], [0, 0xff, 0x10, 0xaa]);
        assert_eq!(d[4..], [0; 28]);
    }
}
