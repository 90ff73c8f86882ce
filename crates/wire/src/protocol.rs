//! IP protocol numbers (IANA registry) that the dissection uses.

/// IPv6 hop-by-hop options.
pub const IPV6_HOP_BY_HOP: u8 = 0;
/// ICMP.
pub const ICMP: u8 = 1;
/// IGMP.
pub const IGMP: u8 = 2;
/// IPv4 in IP.
pub const IPV4: u8 = 4;
/// TCP.
pub const TCP: u8 = 6;
/// UDP.
pub const UDP: u8 = 17;
/// IPv6 in IP.
pub const IPV6: u8 = 41;
/// IPv6 routing header.
pub const IPV6_ROUTING: u8 = 43;
/// IPv6 fragment header.
pub const IPV6_FRAGMENT: u8 = 44;
/// Generic routing encapsulation.
pub const GRE: u8 = 47;
/// Encapsulating security payload.
pub const ESP: u8 = 50;
/// Authentication header.
pub const AH: u8 = 51;
/// ICMPv6.
pub const ICMP6: u8 = 58;
/// No next header.
pub const NONE: u8 = 59;
/// IPv6 destination options.
pub const IPV6_DEST_OPTIONS: u8 = 60;
/// IPv6 mobility header.
pub const MOBILITY: u8 = 135;
