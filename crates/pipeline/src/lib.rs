//! Stages between captures and what becomes of them.
//!
//! [`extract`] finds DNS messages in packets of any link type, and reassembles fragments and TCP
//! streams. Replay and scripts both use it. [`question`] parses the question of a message, and
//! [`tally`] counts by it; [`fingerprint`] identifies keys. [`worker_pool`] runs several threads on one
//! stream with results in order, [`split`] distributes packets to outputs, [`pace`] computes when
//! they are due, [`ring`] passes words between threads. `respdiff` stores queries and the answers
//! of several servers for respdiff.

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
