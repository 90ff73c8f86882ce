//! The Dynamic Host Configuration Protocol (RFC 2131, options of RFC 2132 and others).
//!
//! [`message`] reads a datagram, borrowed. [`Analyzer`] hands what it says to [`Shared`], which
//! joins the messages of a transaction id over all connections into one row: with broadcasts and
//! addresses that change on the way, a transaction is no connection. A transaction's row is written
//! when it has been quiet for a while ([`Shared::expire`]), or at the end ([`Shared::finish`]).

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
