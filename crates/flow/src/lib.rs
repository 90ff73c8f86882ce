//! Connections: who talks to whom, since when, and what arrived.
//!
//! [`Conn`] holds the facts of one connection that every stage may read.

mod conn;
mod history;

pub use conn::Conn;
pub use conn::Counts;
pub use history::History;
