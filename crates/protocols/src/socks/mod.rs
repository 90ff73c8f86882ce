//! SOCKS, versions 4, 4a and 5 (RFC 1928, RFC 1929).
//!
//! Client and server agree on where to connect to; from then on the connection carries
//! something else, which is found by its content. As in Zeek, each chunk of the stream is taken
//! for one message ([`message`]). The server's answer confirms the protocol. socks.log has a row
//! for each confirmed connection, tunnel.log one for each client, server and port.

mod analyzer;
pub mod message;
mod rows;

pub use analyzer::Analyzer;
pub use rows::ProxyRow;
pub use rows::Shared;
pub use rows::SocksRow;
