//! Header views from the link layer to transport, and through tunnels.
//!
//! Everything here is a view (a small `Copy` struct that borrows the captured bytes) or a pure
//! function that makes one. Nothing here keeps state, allocates, reads a clock or knows of
//! connections. The caller decides what to do with a result:
//!
//! ```text
//! link ──▶ Frame ──▶ ip ──▶ Ip ──▶ tcp, udp, icmp
//!   ▲                ▲       │
//!   └────── tunnel::{ip_in_ip, gre, teredo, ayiya, gtpv1, vxlan, geneve}
//! ```
//!
//! A function checks the length of its header once; after that no field access can fail. A fault
//! that stops the dissection is an `Err` with its [`Weird`]; weirds that do not stop it go to the
//! sink of the `_with` variants. Lengths come in pairs: slices hold the captured bytes, `_len`
//! fields count the bytes on the wire, so captures cut by their snap length still count right.
//!
//! ```
//! let frame = [
//!     2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, // Ethernet, IPv4 inside
//!     0x45, 0, 0, 31, 0, 1, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2, // IPv4, UDP inside
//!     0, 53, 4, 210, 0, 11, 0, 0, b'h', b'i', b'!', // UDP
//! ];
//! let frame = gannet_wire::link(1, &frame, frame.len() as u32)?;
//! let gannet_wire::Network::Ip(data) = frame.network else { panic!("no IP") };
//! let ip = gannet_wire::ip(data, frame.wire_len, false)?;
//! let udp = gannet_wire::udp(&ip)?;
//! assert_eq!((udp.src_port, udp.dst_port, udp.payload), (53, 1234, &b"hi!"[..]));
//! # Ok::<(), gannet_wire::Weird>(())
//! ```

mod arp;
mod bytes;
pub mod checksum;
mod icmp;
mod ip;
mod ipv4;
mod ipv6;
mod link;
pub mod protocol;
mod tcp;
pub mod tunnel;
mod udp;
mod weird;

pub use arp::Arp;
pub use arp::arp;
pub use checksum::Checksum;
pub use icmp::Counterpart;
pub use icmp::Icmp;
pub use icmp::icmp;
pub use ip::Fragment;
pub use ip::Ip;
pub use ip::Upper;
pub use ip::ip;
pub use ip::ip_with;
pub use ipv4::plain as plain_ip;
pub use link::Frame;
pub use link::Network;
pub use link::PLAIN_LAYERS;
pub use link::Subframes;
pub use link::link;
pub use link::link_layers;
pub use link::link_type;
pub use link::link_with;
pub use link::passes_filter;
pub use link::plain_ipv4;
pub use tcp::Tcp;
pub use tcp::TcpFlags;
pub use tcp::TcpOption;
pub use tcp::options as tcp_options;
pub use tcp::tcp;
pub use udp::Udp;
pub use udp::udp;
pub use weird::Addl;
pub use weird::Scope;
pub use weird::Weird;

/// Most layers of one packet that are dissected, tunnels included. Beyond this the dissection stops
/// with `max_packet_analyzer_depth_exceeded`.
pub const MAX_DEPTH: u8 = 25;

/// Most nested tunnels that are dissected. Beyond this the dissection stops with
/// `exceeded_tunnel_max_depth`.
pub const MAX_TUNNEL_DEPTH: u8 = 4;
