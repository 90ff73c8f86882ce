//! Stages between captures and what becomes of them.
//!
//! [`extract`] finds DNS messages in packets of any link type, fragments and TCP streams put in
//! order. Replay and scripts both begin with it. [`question`] reads what a message asks for, and
//! [`tally`] counts by it; [`fingerprint`] is how keys are distinguished. [`crew`] has several threads work
//! on one stream whose results come back in order, [`split`] spreads packets over outputs, [`pace`] tells
//! when they are due, [`ring`] carries words from one thread to another.
//! `respdiff` keeps queries and the answers of several servers for respdiff.

pub mod crew;
pub mod extract;
pub mod fingerprint;
pub mod pace;
pub mod question;
#[cfg(feature = "respdiff")]
pub mod respdiff;
pub mod ring;
pub mod split;
pub mod tally;
