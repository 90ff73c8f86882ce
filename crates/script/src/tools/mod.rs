//! Tools for authors of scripts.
//!
//! | module | duty |
//! |---|---|
//! | [`session`] | scripts are read into a program, nothing is run; diagnostics are collected |
//! | [`finding`] | a diagnostic with labelled places and a hint, follow-up errors left out |
//! | [`explain`] | codes and hints of messages |
//! | [`render`] | findings as text with source lines and carets |
//! | [`warn`] | warnings that Zeek lacks |

pub mod explain;
pub mod finding;
pub mod render;
pub mod session;
pub mod warn;
