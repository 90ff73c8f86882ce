//! Signatures: patterns and conditions on packets, streams and protocol items (Zeek's `.sig` files).
//!
//! ```text
//! file ──▶ lex ──tokens──▶ parse ──▶ rules ──▶ tree (header tests, one automaton per group) ──▶ matcher
//!                            ▲ Names: identifiers of scripts                        Host: conditions, actions ▲
//! ```
//!
//! | module | purpose |
//! |---|---|
//! | `lex` | tokens and lines |
//! | `parse` | parses rules, with Zeek's error messages |
//! | `rules` | types of rules |
//! | `tree` | rules grouped by common header tests, and their automata |
//! | `matcher` | the state of a connection: matched patterns of each side, complete rules |
//!
//! This module does not depend on scripts or connections: [`Names`] resolves identifiers, a [`Host`] evaluates
//! conditions and executes actions. Automata are built lazily and have a size limit.

mod lex;
mod matcher;
mod parse;
mod rules;
mod tree;

pub use lex::references;
pub use matcher::{Connection, Headers, Host, Item, MatchContext};
pub use parse::parse;
pub use rules::{Action, Condition, Global, Kind, Names, Rule, Value, states};
pub use tree::{Limits, Signatures};

#[cfg(test)]
mod tests;
