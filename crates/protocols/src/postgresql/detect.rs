//! Detection rules for PostgreSQL.

use memchr::memmem;

use crate::detect::Class;
use crate::detect::Sides;
use crate::detect::TcpRule;

pub(super) const TCP: &[TcpRule] =
    &[TcpRule::sides(Class::ANY, Class::ALPHANUMERIC, |s| tls(s) || startup(s))];

/// A TLS request and the reply to it.
fn tls(s: Sides<'_>) -> bool {
    matches!(s.resp, [b'S' | b'N', ..]) && s.orig.starts_with(b"\0\0\0\x08\x04\xd2\x16\x2f")
}

/// A startup message whose first parameter is the user, and a message shorter than 64 KB.
fn startup(s: Sides<'_>) -> bool {
    let (Some([0, 3, 0]), [ty, 0, 0, _, _, ..]) = (s.orig.get(4..7), s.resp) else { return false };
    let names = &s.orig[7..s.orig.len().min(7 + 256 + 5)];
    ty.is_ascii_alphanumeric() && memmem::find(names, b"user\0").is_some()
}
