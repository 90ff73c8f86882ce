//! Detection rules for SMB.

use crate::detect::Class;
use crate::detect::TcpRule;

pub(super) const TCP: &[TcpRule] =
    &[TcpRule::either_fifth(Class::of(&[0xfe, 0xff]), |s| message(s.orig) || message(s.resp))];

fn message(d: &[u8]) -> bool {
    matches!(d, [_, _, _, _, 0xfe | 0xff, b'S', b'M', b'B', ..])
}
