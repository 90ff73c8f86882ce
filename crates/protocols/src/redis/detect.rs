//! Detection rules for Redis.

use memchr::memmem;

use crate::detect::Class;
use crate::detect::TcpRule;
use crate::detect::text::after;

pub(super) const TCP: &[TcpRule] =
    &[TcpRule::sides(Class::ANY, Class::PUNCTUATION, |s| reply(s.resp) && has_crlf(s.orig))];

/// A simple value on a line, or the length line of another value.
fn reply(d: &[u8]) -> bool {
    match d {
        [b'-' | b'+' | b'_' | b',', rest @ ..] => has_crlf(rest),
        [b':' | b'$' | b'*' | b'#' | b'(' | b'!' | b'=' | b'%' | b'`' | b'~' | b'>', rest @ ..] => {
            let digits = rest.strip_prefix(b"-").or(rest.strip_prefix(b"+")).unwrap_or(rest);
            let tail = after(digits, |b| b.is_ascii_digit());
            let end = tail.strip_prefix(b".").map_or(tail, |t| after(t, |b| b.is_ascii_digit()));
            tail.len() < digits.len() && end.starts_with(b"\r\n")
        }
        _ => false,
    }
}

/// Whether there is a line end after the first line or a later one.
fn has_crlf(d: &[u8]) -> bool {
    memmem::find(d, b"\r\n").is_some()
}
