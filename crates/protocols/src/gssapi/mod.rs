//! GSSAPI's negotiation of a login (SPNEGO, [RFC 4178]), as SMB and DCE-RPC carry it.
//!
//! [`message`] takes a token apart; what lies in it goes to Kerberos or NTLM. [`Inner`] is the
//! analyzer that other protocols hand their tokens to; the rows of all logins of a connection are
//! its [`Logins`].
//!
//! [RFC 4178]: https://www.rfc-editor.org/rfc/rfc4178

mod analyzer;
pub mod events;
pub mod message;

pub use analyzer::Inner;
pub use analyzer::Logins;
