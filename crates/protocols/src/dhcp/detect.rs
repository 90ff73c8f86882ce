//! Detection rules of DHCP.

use crate::detect::UdpRule;

pub(super) const UDP: &[UdpRule] = &[UdpRule::any(message)];

/// Whether the magic cookie follows the fixed part of a BOOTP message.
fn message(d: &[u8]) -> bool {
    d.get(236..240) == Some(b"\x63\x82\x53\x63")
}
