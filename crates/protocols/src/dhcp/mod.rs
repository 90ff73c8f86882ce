//! The Dynamic Host Configuration Protocol (RFC 2131, options of RFC 2132 and others).
//!
//! [`message`] parses a datagram, borrowed. [`Analyzer`] passes its facts to [`Shared`], which
//! joins the messages of a transaction id over all connections into one row: because of broadcasts
//! and changing addresses, a transaction is not a connection. A transaction's row is written after
//! some silence ([`Shared::expire`]), or at the end ([`Shared::finish`]).

mod analyzer;
pub mod events;
pub mod message;
mod raise;
mod rows;
mod shared;

pub use analyzer::Analyzer;
pub use rows::Dhcp;
pub use rows::MessageType;
pub use shared::MAX_MESSAGES;
pub use shared::MAX_TRANSACTIONS;
pub use shared::MAX_UIDS;
pub use shared::Shared;
