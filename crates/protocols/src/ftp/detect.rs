//! Detection rules of FTP.

use crate::detect::Class;
use crate::detect::Sides;
use crate::detect::TcpRule;
use crate::detect::text::after;
use crate::detect::text::later_lines;

pub(super) const TCP: &[TcpRule] = &[TcpRule::resp(Class::SPACE.or(Class::of(b"12")), login)];

/// Whether the client sends USER to a server that requests a login.
fn login(s: Sides<'_>) -> bool {
    s.seen.user() && server(s.resp)
}

/// Whether a server sends a greeting with 220 or 120 and, on a later line, 230 or 331.
fn server(d: &[u8]) -> bool {
    let d = after(d, |b| matches!(b, b'\n' | b'\r' | b' '));
    code(d, &[b"120", b"220"])
        && later_lines(&d[4..]).any(|l| code(after(l, |b| b == b' '), &[b"230", b"331"]))
}

/// Whether the data begins with one of the codes and no further digit.
fn code(d: &[u8], numbers: &[&[u8; 3]]) -> bool {
    d.len() > 3 && !d[3].is_ascii_digit() && numbers.iter().any(|n| d[..3] == n[..])
}
