//! Beginnings of connections that speak LDAP.

use crate::detect::Class;
use crate::detect::TcpRule;
use crate::detect::UdpRule;

/// The tag of any message.
const SEQUENCE: Class = Class::of(&[0x30]);

pub(super) const TCP: &[TcpRule] = &[
    TcpRule::sides(SEQUENCE, SEQUENCE, |s| login(s.orig) && message(s.resp)),
    TcpRule::sides(SEQUENCE, SEQUENCE, |s| login(s.resp) && message(s.orig)),
];

pub(super) const UDP: &[UdpRule] = &[UdpRule::response(message, login)];

/// A login.
fn login(d: &[u8]) -> bool {
    matches!(d, [0x30, _, 2, 1, _, 0x60, ..])
}

/// The beginning of any message.
fn message(d: &[u8]) -> bool {
    d.first() == Some(&0x30)
}
