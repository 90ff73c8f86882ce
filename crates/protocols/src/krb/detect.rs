//! Detection rules of Kerberos.

use crate::detect::Class;
use crate::detect::TcpRule;
use crate::detect::UdpRule;

pub(super) const TCP: &[TcpRule] = &[
    TcpRule::either_fifth(Class::of(&[0x6a, 0x6c]), |s| {
        request(skip4(s.orig)) || request(skip4(s.resp))
    }),
    TcpRule::either_fifth(Class::of(&[0x6b, 0x6d, 0x7e]), |s| {
        reply(skip4(s.orig)) || reply(skip4(s.resp))
    }),
];

pub(super) const UDP: &[UdpRule] = &[UdpRule::any(request), UdpRule::any(reply)];

/// Whether the data begins with an AS-REQ or TGS-REQ: application tag, sequence, `pvno` 5, `msg-type`.
fn request(d: &[u8]) -> bool {
    matches!(d.first(), Some(0x6a | 0x6c)) && fields(d, b"\xa1\x03\x02\x01\x05\xa2\x03\x02\x01")
}

/// Whether the data begins with an AS-REP, TGS-REP or KRB-ERROR.
fn reply(d: &[u8]) -> bool {
    matches!(d.first(), Some(0x6b | 0x6d | 0x7e))
        && fields(d, b"\xa0\x03\x02\x01\x05\xa1\x03\x02\x01")
}

/// Whether the sequence tag and then the fields follow, each after a length of one to four bytes.
fn fields(d: &[u8], fields: &[u8]) -> bool {
    (2..=5).any(|n| {
        d.get(n) == Some(&0x30)
            && (n + 2..=n + 5).any(|m| d.get(m..).is_some_and(|r| r.starts_with(fields)))
    })
}

fn skip4(d: &[u8]) -> &[u8] {
    d.get(4..).unwrap_or_default()
}
