//! Detection rules for SSH.

use crate::detect::Class;
use crate::detect::TcpRule;
use crate::detect::text::has_word;

/// First letter of a version line.
const S: Class = Class::of(b"Ss");

pub(super) const TCP: &[TcpRule] = &[TcpRule::sides(S, S, |s| version(s.orig) && version(s.resp))];

fn version(d: &[u8]) -> bool {
    has_word(d, b"SSH-") && matches!(d.get(4..6), Some(b"1." | b"2."))
}
