//! Detection rules for XMPP.

use memchr::memmem;

use crate::detect::Class;
use crate::detect::TcpRule;
use crate::detect::text::after;

pub(super) const TCP: &[TcpRule] =
    &[TcpRule::either(Class::SPACE.or(Class::of(b"<")), |s| stream(s.orig) || stream(s.resp))];

/// A stream element in a `jabber:` namespace, possibly after an XML declaration.
fn stream(d: &[u8]) -> bool {
    if d.first().is_none_or(|b| !matches!(b, b'<' | b'\n' | b'\r' | b' ')) {
        return false;
    }
    let d = match d.strip_prefix(b"<?xml") {
        Some(rest) => match after(rest, |b| !matches!(b, b'?' | b'>')).strip_prefix(b"?>") {
            Some(rest) => rest,
            None => return false,
        },
        None => d,
    };
    let d = after(d, |b| matches!(b, b'\n' | b'\r' | b' '));
    let Some(attributes) = d.strip_prefix(b"<stream:stream ") else { return false };
    let end = memchr::memchr(b'>', attributes).unwrap_or(attributes.len());
    // The namespace contains no '>'.
    memmem::find(&attributes[..end], b"xmlns='jabber:").is_some()
}
