//! Remote Desktop Protocol (MS-RDPBCGR) and its transport over UDP (MS-RDPEUDP).
//!
//! Over TCP, client and server agree on TLS or RDP's own encryption ([`message::Message`]), and in
//! the latter case tell each other what they are ([`blocks`]). TLS is handed to the SSL
//! analyzer; what RDP encrypts itself cannot be read. The client's or the server's settings
//! confirm the protocol. The row of rdp.log is written ten seconds after the first message, on a
//! violation, or at the end.
//!
//! Over UDP only the handshake matters: its second message confirms the protocol.

mod analyzer;
pub mod blocks;
pub mod events;
mod languages;
pub mod message;
mod raise;
mod rows;
mod udp;

pub use analyzer::Analyzer;
pub use rows::RdpRow;
pub use udp::Udp;
