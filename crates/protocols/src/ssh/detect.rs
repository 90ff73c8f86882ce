//! Beginnings of connections that speak SSH.

use crate::detect::TcpRule;
use crate::detect::text::has_word;

pub(super) const TCP: &[TcpRule] =
    &[TcpRule::sides(is_s, is_s, |s| version(s.orig) && version(s.resp))];

fn version(d: &[u8]) -> bool {
    has_word(d, b"SSH-") && matches!(d.get(4..6), Some(b"1." | b"2."))
}

fn is_s(b: u8) -> bool {
    b.eq_ignore_ascii_case(&b'S')
}
