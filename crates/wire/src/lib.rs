//! One decode per packet, from the link layer to the transport, and views of tunnels.
//!
//! [`decode`] turns a captured packet into a single value, [`Decoded`]: its link layer, its
//! [`Datagram`] and the [`Transport`] of that, as far as each is valid. All functions return views
//! (small `Copy` structs that borrow the captured bytes). This crate keeps no state, does not
//! allocate, reads no clock, does not panic, and does not know connections. A caller that reports
//! faults or enters tunnels calls the functions of single layers:
//!
//! ```text
//! decode = link ──▶ Frame ──▶ datagram ──▶ Datagram { Ip, Transport }
//!            ▲                   ▲            │
//!            └────── tunnel::{ip_in_ip, gre, teredo, ayiya, gtpv1, vxlan, geneve}
//! ```
//!
//! [`plain_ipv4`] and [`plain_ipv6`] parse the headers of plain packets, which nearly all packets
//! are, in one step. [`Outline`] and [`Outline6`] contain only the hosts and ports of a packet.
//!
//! A function checks the length of its header once; after that no field access can fail. A fault
//! that stops the dissection is returned as an [`Error`]; faults that do not stop it are passed to
//! the sink of the `_with` variants. Lengths come in pairs: slices contain the captured bytes,
//! `_len` fields count the bytes on the wire, so counts are correct for packets truncated to the
//! snap length.
//!
//! ```
//! let packet = [
//!     2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, // Ethernet, IPv4 inside
//!     0x45, 0, 0, 31, 0, 1, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2, // IPv4, UDP inside
//!     0, 53, 4, 210, 0, 11, 0, 0, b'h', b'i', b'!', // UDP
//! ];
//! let decoded = gannet_wire::decode(1, &packet, packet.len() as u32)?;
//! let datagram = decoded.datagram().ok_or("no IP")?;
//! assert_eq!(datagram.ip.ttl, 64);
//! assert_eq!(datagram.transport.ports(), Some((53, 1234)));
//! assert_eq!(datagram.transport.payload(), Some(&b"hi!"[..]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod arp;
mod bytes;
pub mod checksum;
mod decode;
mod error;
mod icmp;
pub mod igmp;
mod ip;
mod ipv4;
mod ipv6;
mod link;
mod outline;
pub mod protocol;
mod tcp;
pub mod tunnel;
mod udp;

pub use arp::Arp;
pub use arp::arp;
pub use checksum::Checksum;
pub use decode::Contents;
pub use decode::Datagram;
pub use decode::Decoded;
pub use decode::Transport;
pub use decode::datagram;
pub use decode::datagram_with;
pub use decode::decode;
pub use decode::decode_with;
pub use error::Error;
pub use error::Hosts;
pub use error::Ipv6Fault;
pub use error::Layer;
pub use icmp::Counterpart;
pub use icmp::Icmp;
pub use icmp::icmp;
pub use ip::Fragment;
pub use ip::Ip;
pub use ip::UpperLayer;
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
pub use link::plain_ipv6;
pub use link::pppoe_session;
pub use outline::Outline;
pub use outline::Outline6;
pub use tcp::Tcp;
pub use tcp::TcpFlags;
pub use tcp::TcpOption;
pub use tcp::options as tcp_options;
pub use tcp::tcp;
pub use tcp::urgent as tcp_urgent;
pub use udp::Udp;
pub use udp::udp;

/// Maximum number of dissected layers of a packet, including those of tunnels. Beyond it the
/// dissection stops with [`Error::TooDeep`].
pub const MAX_DEPTH: u8 = 25;

/// Maximum number of nested tunnels that are dissected. The caller must stop beyond it.
pub const MAX_TUNNEL_DEPTH: u8 = 4;
