//! Detection rules of DCE-RPC.

use crate::detect::Class;
use crate::detect::TcpRule;

pub(super) const TCP: &[TcpRule] =
    &[TcpRule::either(Class::of(&[5]), |s| packet(s.orig) || packet(s.resp))];

/// Whether the data begins with version 5.0 or 5.1 and a packet type.
fn packet(d: &[u8]) -> bool {
    matches!(d, [5, 0 | 1, 0..=0x13, ..])
}
