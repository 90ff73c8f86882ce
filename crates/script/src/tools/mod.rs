//! Tools for authors of scripts.
//!
//! | module | duty |
//! |---|---|
//! | [`session`] | scripts are read into a program, nothing is run; diagnostics are collected |
//! | [`finding`] | a diagnostic with labelled places and a hint, follow-up errors left out |
//! | [`explain`] | codes and hints of messages |
//! | `hints` | hints that depend on the program: names that were meant, parameters, how values are written |
//! | `words` | the words of the language |
//! | [`render`] | findings as text with source lines and carets |
//! | [`warn`] | warnings that Zeek lacks |
//! | [`tokens`] | a file as tokens, comments and directives |
//! | [`mod@format`] | the formatter |
//! | [`query`] | questions of editors: meaning, declaration, documentation, completion |
//! | [`stages`] | what each stage makes of a file, as text |

pub mod explain;
pub mod finding;
pub mod format;
mod hints;
pub mod query;
pub mod render;
pub mod session;
pub mod stages;
pub mod tokens;
pub mod warn;
mod words;
