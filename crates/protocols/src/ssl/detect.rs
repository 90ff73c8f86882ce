//! Detection rules for TLS and DTLS.

use crate::detect::Class;
use crate::detect::TcpRule;
use crate::detect::UdpRule;

pub(super) const TCP: &[TcpRule] = &[
    TcpRule::orig(Class::of(&[0x16]), |s| client(s.orig)),
    TcpRule::resp(Class::of(&[0x15, 0x16]), |s| server(s.resp)),
];

pub(super) const UDP: &[UdpRule] = &[UdpRule::any(datagram)];

/// A handshake record with a ClientHello of SSL 3 to TLS 1.2.
fn client(d: &[u8]) -> bool {
    matches!(d, [0x16, 3, 0..=3, _, _, 1, _, _, _, 3, 0..=3, ..])
}

/// A handshake record with a ServerHello, possibly after an alert; including drafts of TLS 1.3.
fn server(d: &[u8]) -> bool {
    let d = match d {
        [0x15, 3, 0..=3, _, _, _, _, rest @ ..] => rest,
        _ => d,
    };
    matches!(
        d,
        [0x16, 3, 0..=3, _, _, 2, _, _, _, 3, 0..=4, ..]
            | [0x16, 3, 0..=3, _, _, 2, _, _, _, 0x7f, 0..=0x50, ..]
    )
}

/// The first record of a connection, with a ClientHello of DTLS 1.0 or 1.2.
fn datagram(d: &[u8]) -> bool {
    d.len() > 26
        && matches!(d, [0x16, 0xfe, 0xff | 0xfd, 0, 0, 0, 0, 0, 0, 0, _, _, _, 1, ..])
        && d[25] == 0xfe
        && matches!(d[26], 0xff | 0xfd)
}
