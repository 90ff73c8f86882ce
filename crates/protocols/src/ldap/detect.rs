//! Beginnings of connections that speak LDAP.

use crate::detect::TcpRule;
use crate::detect::UdpRule;

pub(super) const TCP: &[TcpRule] = &[
    TcpRule::sides(is_sequence, is_sequence, |s| login(s.orig) && message(s.resp)),
    TcpRule::sides(is_sequence, is_sequence, |s| login(s.resp) && message(s.orig)),
];

pub(super) const UDP: &[UdpRule] = &[UdpRule::answer(message, login)];

/// A login.
fn login(d: &[u8]) -> bool {
    matches!(d, [0x30, _, 2, 1, _, 0x60, ..])
}

/// The beginning of any message.
fn message(d: &[u8]) -> bool {
    d.first() == Some(&0x30)
}

fn is_sequence(b: u8) -> bool {
    b == 0x30
}
