//! The remote desktop protocol ([MS-RDPBCGR]) over TCP, and the handshake of its transport over
//! UDP ([MS-RDPEUDP]).
//!
//! [`message`] reads the connection sequence up to where encryption begins; the row of rdp.log is
//! made of it. What follows goes to the TLS analyzer where the two sides agreed on TLS, and is
//! passed over where they encrypt by themselves. [`Udp`] only recognises its protocol.
//!
//! [MS-RDPBCGR]: https://learn.microsoft.com/en-us/openspecs/windows_protocols/ms-rdpbcgr
//! [MS-RDPEUDP]: https://learn.microsoft.com/en-us/openspecs/windows_protocols/ms-rdpeudp

mod analyzer;
pub mod message;
mod names;
mod rows;
mod udp;

pub use analyzer::Analyzer;
pub use rows::RdpRow;
pub use udp::Udp;
