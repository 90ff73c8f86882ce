//! Detection rules for QUIC.

use crate::detect::UdpRule;

pub(super) const UDP: &[UdpRule] = &[UdpRule::any(long_header)];

/// A long header of version 1, or an Initial packet of version 2.
fn long_header(d: &[u8]) -> bool {
    matches!(d, [0xc0..=0xcf, 0, 0, 0, 1, ..] | [0xd0..=0xdf, 0x6b, 0x33, 0x43, 0xcf, ..])
}
