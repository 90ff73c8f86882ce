//! Kerberos 5 (RFC 4120) over UDP and TCP.
//!
//! A client asks the key distribution centre for tickets (AS, TGS) and shows them to services
//! (AP). Over TCP each message follows its length. A message that can be read confirms the
//! protocol. The first exchange of a connection makes its row of kerberos.log; errors that only ask
//! for pre-authentication do not count.

mod analyzer;
pub mod message;
mod names;
mod rows;

pub use analyzer::Tcp;
pub use analyzer::Udp;
pub use rows::KerberosRow;
