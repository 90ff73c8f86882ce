use gannet_base::Dir;

use super::events::*;
use super::message::Body;
use super::message::Kind;
use super::message::Message;
use super::message::TooLong;
use super::rows::Rows;
use crate::Analyze;
use crate::Context;
use crate::Tag;

/// The analyzer of one connection.
pub struct Analyzer {
    rows: Rows,
}

impl Analyzer {
    /// Creates the analyzer of a new connection.
    pub fn new(_cx: &mut Context<'_>) -> Self {
        Self { rows: Rows::default() }
    }
}

impl Analyzer {
    /// Reports a message.
    fn report(&mut self, cx: &mut Context<'_>, from: Dir, header: Header<'_>, body: Body<'_>) {
        let (rows, is_orig) = (&mut self.rows, from.is_orig());
        match body {
            Body::Pdu(Kind::Get, pdu) => {
                cx.report(rows, |c| SnmpGetRequest { c, is_orig, header, pdu });
            }
            Body::Pdu(Kind::GetNext, pdu) => {
                cx.report(rows, |c| SnmpGetNextRequest { c, is_orig, header, pdu });
            }
            Body::Pdu(Kind::Response, pdu) => {
                cx.report(rows, |c| SnmpResponse { c, is_orig, header, pdu });
            }
            Body::Pdu(Kind::Set, pdu) => {
                cx.report(rows, |c| SnmpSetRequest { c, is_orig, header, pdu });
            }
            Body::Pdu(Kind::Inform, pdu) => {
                cx.report(rows, |c| SnmpInformRequest { c, is_orig, header, pdu });
            }
            Body::Pdu(Kind::Trap, pdu) => {
                cx.report(rows, |c| SnmpTrapV2 { c, is_orig, header, pdu });
            }
            Body::Pdu(Kind::Report, pdu) => {
                cx.report(rows, |c| SnmpReport { c, is_orig, header, pdu });
            }
            Body::Bulk(pdu) => {
                cx.report(rows, |c| SnmpGetBulkRequest { c, is_orig, header, pdu });
            }
            Body::Trap(pdu) => cx.report(rows, |c| SnmpTrap { c, is_orig, header, pdu }),
            Body::Unknown(tag) => {
                let tag = tag.into();
                cx.report(rows, |c| SnmpUnknownPdu { c, is_orig, header, tag });
            }
            Body::Encrypted => cx.report(rows, |c| SnmpEncryptedPdu { c, is_orig, header }),
            Body::UnknownScoped(tag) => {
                let tag = tag.into();
                cx.report(rows, |c| SnmpUnknownScopedPdu { c, is_orig, header, tag });
            }
        }
    }
}

impl Analyze for Analyzer {
    fn datagram(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8], _len: u32) {
        let parsed = Message::parse_with(data, &mut |n| cx.report_long_integer(n));
        let header = parsed.as_ref().map_or_else(|e| e.after_header, |_| true);
        if parsed.as_ref().is_ok_and(|m| m.has_invalid_flags) {
            cx.violation(Tag::Snmp, "Invalid v3 HeaderData msgFlags", b"");
        }
        // The header is reported after the events of the contents: malformed data, and unknown
        // versions.
        let is_inside = |m: &Message<'_>| match &m.body {
            Some(body) => matches!(body, Body::Encrypted | Body::UnknownScoped(_)),
            None => !matches!(m.header.version, 0 | 1 | 3),
        };
        let is_late = parsed.as_ref().is_ok_and(is_inside);
        let confirms = header && !from.is_orig();
        if confirms && !is_late {
            cx.confirm(Tag::Snmp);
        }
        let message = match parsed {
            Err(e) => {
                cx.violation(Tag::Snmp, &e.reason.to_string(), &[]);
                e.partial.map(|m| *m)
            }
            Ok(m) => Some(m),
        };
        let Some(mut m) = message else { return };
        let Some(body) = m.body.take() else {
            let (is_orig, version) = (from.is_orig(), m.header.version);
            if !matches!(version, 0 | 1 | 3) {
                cx.raise(|c| SnmpUnknownHeaderVersion { c, is_orig, version });
            }
            if confirms && is_late {
                cx.confirm(Tag::Snmp);
            }
            return;
        };
        self.report(cx, from, m.header, body);
        if confirms && is_late {
            cx.confirm(Tag::Snmp);
        }
        for odd in &m.too_long {
            match odd {
                TooLong::Number(n) => cx.report_long_integer(*n),
                TooLong::SubIdentifier(n) => {
                    let (env, addl) = (&mut *cx.env, n.to_string());
                    let name = "asn_oid_subidentifier_too_long";
                    env.weirds.net(&mut env.logs, cx.now, name, &addl);
                }
            }
        }
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        cx.raise_session_done();
        self.rows.finish(cx);
    }
}

#[cfg(test)]
mod tests {
    use super::super::message::tests::tlv;
    use super::super::message::tests::v2c;
    use super::*;
    use crate::testing::Harness;
    use gannet_base::Interval;
    use gannet_base::Proto;
    use gannet_base::Time;

    #[test]
    fn a_row_a_connection() {
        let mut h = Harness::new(Proto::Udp, 161);
        h.now = Time::from_secs(100);
        let mut a = Analyzer::new(&mut h.cx());
        let oid = b"\x2b\x06\x01\x02\x01\x01\x03\x00";
        let get = v2c(0xa0, &[(oid, tlv(5, &[]))]);
        let reply = v2c(0xa2, &[(oid, tlv(0x43, &[b"\x03\xe8"]))]);
        a.datagram(&mut h.cx(), Dir::Orig, &get, 0);
        assert!(!h.confirmed(Tag::Snmp));
        h.now += Interval::from_secs(1);
        a.datagram(&mut h.cx(), Dir::Resp, &reply, 0);
        a.finish(&mut h.cx());
        assert!(h.confirmed(Tag::Snmp));
        let rows = h.rows("snmp");
        assert_eq!(rows.len(), 1);
        let r = &rows[0];
        assert_eq!((&*r["version"], &*r["community"]), ("2c", "public"));
        assert_eq!((&*r["get_requests"], &*r["get_responses"]), ("1", "1"));
        assert_eq!((&*r["duration"], &*r["up_since"]), ("1.000000", "91.000000"));
    }

    #[test]
    fn flags_are_a_byte() {
        let n = tlv(2, &[b"\x03"]);
        let s = |text: &[u8]| tlv(4, &[text]);
        for (flags, odd) in [(&b"\x00"[..], false), (b"", true), (b"\x00\x00", true)] {
            let global = tlv(0x30, &[&n, &n, &s(flags), &tlv(2, &[b"\x01"])]);
            let m = tlv(0x30, &[&n, &global, &s(b""), &s(b"secret")]);
            let mut h = Harness::new(Proto::Udp, 161);
            let mut a = Analyzer::new(&mut h.cx());
            a.datagram(&mut h.cx(), Dir::Orig, &m, 0);
            assert_eq!(h.violated(Tag::Snmp), odd);
        }
    }

    #[test]
    fn a_version_that_is_unknown_is_reported() {
        let mut h = Harness::new(Proto::Udp, 161);
        h.listen("snmp_unknown_header_version");
        let mut a = Analyzer::new(&mut h.cx());
        let of = |version: &[u8]| tlv(0x30, &[&tlv(2, &[version]), &tlv(4, &[b"public"])]);
        a.datagram(&mut h.cx(), Dir::Resp, &of(b"\x02"), 0);
        assert_eq!(h.events(), [r#"snmp_unknown_header_version "is_orig":false,"version":2"#]);
        assert!(h.confirmed(Tag::Snmp));
        for version in [b"\x00", b"\x01", b"\x03"] {
            a.datagram(&mut h.cx(), Dir::Orig, &of(version), 0);
        }
        assert!(h.events().is_empty());
        a.finish(&mut h.cx());
        assert!(h.rows("snmp").is_empty());
    }

    #[test]
    fn other_bytes_are_a_violation() {
        let mut h = Harness::new(Proto::Udp, 161);
        let mut a = Analyzer::new(&mut h.cx());
        a.datagram(&mut h.cx(), Dir::Resp, b"hello", 5);
        a.finish(&mut h.cx());
        assert!(h.violated(Tag::Snmp));
        assert!(!h.confirmed(Tag::Snmp));
        assert!(h.rows("snmp").is_empty());
        assert!(h.rows("weird").is_empty());
        a.datagram(&mut h.cx(), Dir::Resp, b"\x30\x89\0\0\0\0\0\0\0\0\0", 11);
        let r = &h.rows("weird")[0];
        assert_eq!((&*r["name"], &*r["addl"]), ("asn_binary_to_int64_shift_too_large", "9"));
        assert_eq!(r["uid"], "-");
    }
}
