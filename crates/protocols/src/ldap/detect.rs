//! Detection rules of LDAP.

use crate::detect::Class;
use crate::detect::TcpRule;
use crate::detect::UdpRule;

/// Tag of a message.
const SEQUENCE: Class = Class::of(&[0x30]);

pub(super) const TCP: &[TcpRule] = &[
    TcpRule::sides(SEQUENCE, SEQUENCE, |s| login(s.orig) && message(s.resp)),
    TcpRule::sides(SEQUENCE, SEQUENCE, |s| login(s.resp) && message(s.orig)),
];

pub(super) const UDP: &[UdpRule] = &[UdpRule::response(message, login)];

/// Whether the data begins with a bind request.
fn login(d: &[u8]) -> bool {
    matches!(d, [0x30, _, 2, 1, _, 0x60, ..])
}

/// Whether the data begins with the tag of a message.
fn message(d: &[u8]) -> bool {
    d.first() == Some(&0x30)
}
