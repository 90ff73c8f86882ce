//! RFB, the protocol of VNC (RFC 6143, and Apple's authentication).
//!
//! Both sides tell their versions, agree on how to authenticate, do so, and tell the screen.
//! What comes when depends on what was said: `analyzer.rs` keeps the state of both sides,
//! [`message`] says how long the message due is. After that only the client's messages are followed,
//! the server's pixels are not. The client's version confirms the protocol.

mod analyzer;
pub mod events;
pub mod message;
mod rows;

pub use analyzer::Analyzer;
pub use rows::RfbRow;
