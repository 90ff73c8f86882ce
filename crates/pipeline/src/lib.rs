//! Stages of DNS message processing.
//!
//! [`extract`] extracts DNS messages from packets of any link type, and reassembles fragments and TCP streams; replay
//! and Lua scripts use it. [`question`] parses the question of a message, [`tally`] sums by keys such as questions, and
//! [`fingerprint`] identifies keys. [`worker_pool`] runs several threads on a stream of packets with results in order,
//! [`split`] distributes packets to outputs, [`pace`] computes when they are due, and [`ring`] passes words between
//! threads. `respdiff` stores queries and the answers of several servers for respdiff.

pub mod extract;
pub mod fingerprint;
pub mod pace;
pub mod question;
#[cfg(feature = "respdiff")]
pub mod respdiff;
pub mod ring;
pub mod split;
pub mod tally;
pub mod worker_pool;
