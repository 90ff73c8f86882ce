//! Tools for script authors.
//!
//! | module | purpose |
//! |---|---|
//! | [`session`] | parses scripts into a program without running it, and collects diagnostics |
//! | [`finding`] | a diagnostic with labelled spans and a hint; follow-up errors are omitted |
//! | [`explain`] | codes and hints of messages |
//! | `hints` | hints that depend on the program: suggested names, parameters, syntax of values |
//! | `words` | keywords, attributes and directives |
//! | [`render`] | findings as text with source lines and carets |
//! | [`warn`] | warnings that Zeek lacks |
//! | [`tokens`] | a file as tokens, comments and directives |
//! | [`mod@format`] | the formatter |
//! | [`query`] | queries of editors: meaning, declaration, documentation, completion |
//! | [`stages`] | the output of each compiler stage for a file, as text |

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
