//! Detection rules for RDP.

use memchr::memmem;

use crate::detect::Class;
use crate::detect::TcpRule;
use crate::detect::UdpRule;

pub(super) const TCP: &[TcpRule] = &[
    TcpRule::sides(Class::ANY, Class::ANY, |s| s.seen.rdp(s.resp, 1) && client(s.orig)),
    TcpRule::sides(Class::ANY, Class::ANY, |s| s.seen.rdp(s.orig, 0) && client(s.resp)),
];

pub(super) const UDP: &[UdpRule] = &[UdpRule::any(syn)];

/// A connection request with a cookie, or a client's settings with a channel.
fn client(d: &[u8]) -> bool {
    memmem::find(d, b"Cookie: mstshash=").is_some()
        || memmem::find(d, b"Duca").is_some_and(|n| {
            let channels: [&[u8]; 4] = [b"rdpdr", b"rdpsnd", b"drdynvc", b"cliprdr"];
            channels.iter().any(|c| memmem::find(&d[n + 4..], c).is_some())
        })
}

/// A SYN of RDP over UDP, padded to the maximum size that is probed.
fn syn(d: &[u8]) -> bool {
    (1132..=1232).contains(&d.len()) && d.starts_with(&[0xff; 4]) && d[7] == 1
}
