//! Stages between captures and what becomes of them.
//!
//! [`extract`] finds DNS messages in packets of any link type, fragments and TCP streams put in
//! order. Replay and scripts both begin with it. [`ring`] carries words from one thread to another.

pub mod extract;
pub mod ring;
