//! Detection rules for SIP.

use memchr::memchr_iter;

use crate::detect::UdpRule;

pub(super) const UDP: &[UdpRule] = &[UdpRule::any(request), UdpRule::any(reply)];

/// A request: ` SIP/n.n` at the end of any line.
fn request(d: &[u8]) -> bool {
    memchr_iter(b'\n', d).any(|n| {
        n >= 9
            && matches!(&d[n - 9..n], [b' ', b'S', b'I', b'P', b'/', a, b'.', b, b'\r']
                if a.is_ascii_digit() && b.is_ascii_digit())
    })
}

/// A reply: `SIP/n.n` followed by a status, or alone on its line.
fn reply(d: &[u8]) -> bool {
    let d = d.strip_prefix(b" ").unwrap_or(d);
    match d {
        [b'S', b'I', b'P', b'/', a, b'.', b, rest @ ..]
            if a.is_ascii_digit() && b.is_ascii_digit() =>
        {
            rest.starts_with(b"\r\n")
                || matches!(rest, [b' ', x, y, z, b' ', ..]
                    if x.is_ascii_digit() && y.is_ascii_digit() && z.is_ascii_digit())
        }
        _ => false,
    }
}
