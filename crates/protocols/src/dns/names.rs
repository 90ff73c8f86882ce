//! Registered numbers of DNS and their names in logs.

use gannet_log::Encoder;
use gannet_log::Type;
use gannet_log::Value;

/// Name of a number in logs: the registered name, or a prefix with the number (`query-4711`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberName {
    known: Option<&'static str>,
    prefix: &'static str,
    number: u16,
}

impl NumberName {
    /// Appends the text.
    pub fn write(self, out: &mut Vec<u8>) {
        match self.known {
            Some(name) => out.extend_from_slice(name.as_bytes()),
            None => {
                out.extend_from_slice(self.prefix.as_bytes());
                gannet_log::write_count(out, u64::from(self.number));
            }
        }
    }
}

impl Value for NumberName {
    const TYPE: Type = Type::Scalar("string");

    #[inline(always)]
    fn put<E: Encoder>(&self, e: &mut E) {
        match self.known {
            Some(name) => e.plain(name.as_bytes()),
            None => {
                e.plain(self.prefix.as_bytes());
                e.count(u64::from(self.number));
            }
        }
    }
}

/// Resource record types.
pub mod rr {
    /// IPv4 address (RFC 1035).
    pub const A: u16 = 1;
    /// Authoritative name server (RFC 1035).
    pub const NS: u16 = 2;
    /// Canonical name (RFC 1035).
    pub const CNAME: u16 = 5;
    /// Start of a zone of authority (RFC 1035).
    pub const SOA: u16 = 6;
    /// Well-known services (RFC 1035).
    pub const WKS: u16 = 11;
    /// Domain name pointer (RFC 1035).
    pub const PTR: u16 = 12;
    /// Host information (RFC 1035).
    pub const HINFO: u16 = 13;
    /// Mail exchange (RFC 1035).
    pub const MX: u16 = 15;
    /// Text strings (RFC 1035).
    pub const TXT: u16 = 16;
    /// IPv6 address (RFC 3596).
    pub const AAAA: u16 = 28;
    /// Location (RFC 1876).
    pub const LOC: u16 = 29;
    /// NetBIOS general name service (RFC 1002).
    pub const NB: u16 = 32;
    /// Server selection (RFC 2782); NetBIOS node status on port 137.
    pub const SRV: u16 = 33;
    /// Naming authority pointer (RFC 3403).
    pub const NAPTR: u16 = 35;
    /// IPv6 address with a prefix name (RFC 2874).
    pub const A6: u16 = 38;
    /// EDNS options (RFC 6891).
    pub const OPT: u16 = 41;
    /// Delegation signer (RFC 4034).
    pub const DS: u16 = 43;
    /// SSH key fingerprint (RFC 4255).
    pub const SSHFP: u16 = 44;
    /// Signature over a record set (RFC 4034).
    pub const RRSIG: u16 = 46;
    /// Next secure name (RFC 4034).
    pub const NSEC: u16 = 47;
    /// Zone key (RFC 4034).
    pub const DNSKEY: u16 = 48;
    /// Hashed next secure name (RFC 5155).
    pub const NSEC3: u16 = 50;
    /// Parameters of NSEC3 (RFC 5155).
    pub const NSEC3PARAM: u16 = 51;
    /// Service binding (RFC 9460).
    pub const SVCB: u16 = 64;
    /// Service binding of HTTPS (RFC 9460).
    pub const HTTPS: u16 = 65;
    /// Sender policy (RFC 4408, obsolete).
    pub const SPF: u16 = 99;
    /// Transaction key (RFC 2930).
    pub const TKEY: u16 = 249;
    /// Transaction signature (RFC 8945).
    pub const TSIG: u16 = 250;
    /// Any type; in queries and updates.
    pub const ANY: u16 = 255;
    /// Certification authority authorization (RFC 8659).
    pub const CAA: u16 = 257;
    /// Signing state of BIND 9, a private type.
    pub const BIND_SIGNING: u16 = 65534;
}

/// Classes with a special meaning in dynamic updates (RFC 2136).
pub mod class {
    /// No class.
    pub const NONE: u16 = 254;
    /// Any class.
    pub const ANY: u16 = 255;
}

/// Operation codes.
pub mod opcode {
    /// Standard query (RFC 1035).
    pub const QUERY: u8 = 0;
    /// A zone changed (RFC 1996).
    pub const NOTIFY: u8 = 4;
    /// Dynamic update (RFC 2136); a registration in the NetBIOS name service.
    pub const UPDATE: u8 = 5;

    /// Whether queries and replies of this operation are joined.
    #[inline]
    pub(in super::super) fn is_tracked(code: u8) -> bool {
        matches!(code, QUERY | NOTIFY | UPDATE)
    }
}

/// Name of a query type.
pub fn query_type(number: u16) -> NumberName {
    let known = match number {
        1 => "A",
        2 => "NS",
        3 => "MD",
        4 => "MF",
        5 => "CNAME",
        6 => "SOA",
        7 => "MB",
        8 => "MG",
        9 => "MR",
        10 => "NULL",
        11 => "WKS",
        12 => "PTR",
        13 => "HINFO",
        14 => "MINFO",
        15 => "MX",
        16 => "TXT",
        17 => "RP",
        18 => "AFSDB",
        19 => "X25",
        20 => "ISDN",
        21 => "RT",
        22 => "NSAP",
        23 => "NSAP-PTR",
        24 => "SIG",
        25 => "KEY",
        26 => "PX",
        27 => "GPOS",
        28 => "AAAA",
        29 => "LOC",
        30 => "NXT",
        31 => "EID",
        32 => "NIMLOC",
        33 => "SRV",
        34 => "ATMA",
        35 => "NAPTR",
        36 => "KX",
        37 => "CERT",
        38 => "A6",
        39 => "DNAME",
        40 => "SINK",
        41 => "OPT",
        42 => "APL",
        43 => "DS",
        44 => "SSHFP",
        45 => "IPSECKEY",
        46 => "RRSIG",
        47 => "NSEC",
        48 => "DNSKEY",
        49 => "DHCID",
        50 => "NSEC3",
        51 => "NSEC3PARAM",
        52 => "TLSA",
        53 => "SMIMEA",
        55 => "HIP",
        56 => "NINFO",
        57 => "RKEY",
        58 => "TALINK",
        59 => "CDS",
        60 => "CDNSKEY",
        61 => "OPENPGPKEY",
        62 => "CSYNC",
        63 => "ZONEMD",
        64 => "SVCB",
        65 => "HTTPS",
        99 => "SPF",
        100 => "UINFO",
        101 => "UID",
        102 => "GID",
        103 => "UNSPEC",
        104 => "NID",
        105 => "L32",
        106 => "L64",
        107 => "LP",
        108 => "EUI48",
        109 => "EUI64",
        249 => "TKEY",
        250 => "TSIG",
        251 => "IXFR",
        252 => "AXFR",
        253 => "MAILB",
        254 => "MAILA",
        255 => "*",
        256 => "URI",
        257 => "CAA",
        32768 => "TA",
        32769 => "DLV",
        65281 => "WINS",
        65282 => "WINS-R",
        65422 => "XPF",
        65521 => "INTEGRITY",
        _ => return NumberName { known: None, prefix: "query-", number },
    };
    NumberName { known: Some(known), prefix: "", number }
}

/// Name of a query type on port 137, where type 33 queries the status of a node.
pub fn netbios_query_type(number: u16) -> NumberName {
    match number {
        rr::SRV => NumberName { known: Some("NBSTAT"), prefix: "", number },
        _ => query_type(number),
    }
}

/// Name of a query class.
pub fn query_class(number: u16) -> NumberName {
    let known = match number {
        1 => Some("C_INTERNET"),
        2 => Some("C_CSNET"),
        3 => Some("C_CHAOS"),
        4 => Some("C_HESIOD"),
        class::NONE => Some("C_NONE"),
        class::ANY => Some("C_ANY"),
        _ => None,
    };
    NumberName { known, prefix: "qclass-", number }
}

/// Name of a response code (four bits of the header).
pub fn response_code(number: u8) -> NumberName {
    const NAMES: [&str; 11] = [
        "NOERROR", "FORMERR", "SERVFAIL", "NXDOMAIN", "NOTIMP", "REFUSED", "YXDOMAIN", "YXRRSET",
        "NXRRSet", "NOTAUTH", "NOTZONE",
    ];
    let known = NAMES.get(usize::from(number)).copied();
    NumberName { known, prefix: "unassigned-", number: u16::from(number) }
}

/// Name of an operation; the NetBIOS name service has its own operations.
pub fn operation(number: u8, netbios: bool) -> NumberName {
    let (known, prefix) = if netbios {
        let known = match number {
            0 => Some("netbios-query"),
            5 => Some("netbios-registration"),
            6 => Some("netbios-release"),
            7 => Some("netbios-wack"),
            8 => Some("netbios-refresh"),
            _ => None,
        };
        (known, "netbios-opcode-")
    } else {
        let known = match number {
            0 => Some("query"),
            1 => Some("iquery"),
            2 => Some("server-status"),
            4 => Some("notify"),
            5 => Some("dynamic-update"),
            6 => Some("dso"),
            _ => None,
        };
        (known, "opcode-")
    };
    NumberName { known, prefix, number: u16::from(number) }
}

/// Decodes a NetBIOS name in first-level encoding, 32 letters `a` to `p` (RFC 1001 §14.1). Returns the name without its
/// padding and its sixteenth byte, the suffix. `None` if the encoding is invalid or the name is empty.
pub fn netbios_name(encoded: &[u8]) -> Option<([u8; 15], usize)> {
    if encoded.len() != 32 {
        return None;
    }
    let mut name = [0; 15];
    let mut len = 0;
    for (i, pair) in encoded.chunks_exact(2).enumerate() {
        let half = |c: u8| c.to_ascii_uppercase().checked_sub(b'A').filter(|v| *v < 16);
        let byte = half(pair[0])? << 4 | half(pair[1])?;
        // \x00 to \x02 occur at the start of names (\x01\x02__MSBROWSE__\x02).
        if !(byte.is_ascii_graphic() || byte == b' ' || byte < 3) {
            break;
        }
        if let Some(slot) = name.get_mut(i) {
            *slot = byte;
            len = i + 1;
        }
    }
    while len > 0 && matches!(name[len - 1], b' ' | 0) {
        len -= 1;
    }
    (len > 0).then_some((name, len))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(c: NumberName) -> String {
        let mut out = Vec::new();
        c.write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn known_and_unknown_numbers() {
        assert_eq!(text(query_type(28)), "AAAA");
        assert_eq!(text(query_type(54)), "query-54");
        assert_eq!(text(netbios_query_type(33)), "NBSTAT");
        assert_eq!(text(query_class(32769)), "qclass-32769");
        assert_eq!(text(response_code(3)), "NXDOMAIN");
        assert_eq!(text(response_code(12)), "unassigned-12");
        assert_eq!(text(operation(5, false)), "dynamic-update");
        assert_eq!(text(operation(5, true)), "netbios-registration");
        assert_eq!(text(operation(9, true)), "netbios-opcode-9");
    }

    fn decoded(encoded: &[u8]) -> Option<Vec<u8>> {
        netbios_name(encoded).map(|(name, len)| name[..len].to_vec())
    }

    #[test]
    fn netbios_names() {
        // "*" and zeros: the wildcard of a node status query.
        assert_eq!(decoded(b"ckaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"), Some(b"*".to_vec()));
        assert_eq!(decoded(b"fhepfcelehfcepfffacacacacacacabl"), Some(b"WORKGROUP".to_vec()));
        assert_eq!(
            decoded(b"abacfpfpenfdecfcepfhfdefFPFPACAB").unwrap(),
            b"\x01\x02__MSBROWSE__\x02"
        );
        assert_eq!(decoded(b"zz"), None);
        assert_eq!(decoded(b"ckaaaaaaaaaaaaaaaaaaaaaaaaaaaaaz"), None);
        assert_eq!(decoded(b"cacacacacacacacacacacacacacacaca"), None);
    }

    proptest! {
        #[test]
        fn netbios_decodes_what_was_encoded(name in "[!-~]{1,15}") {
            let mut padded = name.clone().into_bytes();
            padded.resize(16, b' ');
            let encoded: Vec<u8> =
                padded.iter().flat_map(|b| [b'a' + (b >> 4), b'A' + (b & 15)]).collect();
            prop_assert_eq!(decoded(&encoded), Some(name.into_bytes()));
        }
    }
}
