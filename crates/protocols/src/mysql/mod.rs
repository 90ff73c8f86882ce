//! MySQL's client/server protocol, versions 9 and 10.
//!
//! The server greets, the client logs in (perhaps after asking for TLS, which is handed to the
//! SSL analyzer), then the client sends commands and the server answers each. What an answer
//! consists of depends on the command and on what of it was seen: [`message`] reads the pieces,
//! `analyzer.rs` knows which piece is due. A client's login confirms the protocol.
//!
//! Each login and each command makes a row of mysql.log when its outcome is known, or the next
//! command comes, or the connection ends.

mod analyzer;
pub mod events;
pub mod message;
mod rows;

pub use analyzer::Analyzer;
pub use rows::MysqlRow;
