//! NTLM logins ([MS-NLMP]), as SMB and DCE-RPC carry them, bare or inside GSSAPI.
//!
//! Three messages make a login: what the client can do, the server's challenge, and who the client
//! says it is. [`message`] reads them; a [`Session`] makes the row a connection gets, once GSSAPI
//! tells the outcome or the connection ends. [`Inner`] is the analyzer that other protocols hand
//! their tokens to.
//!
//! [MS-NLMP]: https://learn.microsoft.com/en-us/openspecs/windows_protocols/ms-nlmp

mod analyzer;
pub mod events;
pub mod message;
mod raise;
mod rows;

pub use analyzer::Inner;
pub use rows::NtlmRow;
pub use rows::Session;
