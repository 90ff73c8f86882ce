//! GSSAPI's negotiation of a login (SPNEGO, [RFC 4178]), as SMB and DCE-RPC carry it.
//!
//! [`message`] parses a token; its contents go to Kerberos or NTLM. [`Inner`] is the analyzer to
//! which other protocols pass their tokens; [`Logins`] holds the rows of all logins of a
//! connection.
//!
//! [RFC 4178]: https://www.rfc-editor.org/rfc/rfc4178

mod analyzer;
pub mod events;
pub mod message;

pub use analyzer::Inner;
pub use analyzer::Logins;
