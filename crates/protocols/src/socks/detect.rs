//! Detection rules for SOCKS.

use crate::detect::Class;
use crate::detect::TcpRule;

pub(super) const TCP: &[TcpRule] = &[
    TcpRule::sides(Class::of(&[4]), Class::of(&[0]), |s| client4(s.orig) && server4(s.resp)),
    TcpRule::sides(Class::of(&[0]), Class::of(&[4]), |s| client4(s.resp) && server4(s.orig)),
    TcpRule::sides(Class::of(&[5]), Class::of(&[5]), |s| client5(s.orig) && server5(s.resp)),
];

/// Version 4, CONNECT or BIND, and a zero byte within 32 bytes.
fn client4(d: &[u8]) -> bool {
    matches!(d, [4, 1 | 2, rest @ ..] if rest[..rest.len().min(33)].contains(&0))
}

fn server4(d: &[u8]) -> bool {
    matches!(d, [0, 0x5a..=0x5d, ..])
}

/// Version 5, and a first method with an assigned number.
fn client5(d: &[u8]) -> bool {
    matches!(d, [5, _, 0..=3 | 5..=9, ..])
}

fn server5(d: &[u8]) -> bool {
    matches!(d, [5, 0..=3 | 5..=9 | 0xff, ..])
}
