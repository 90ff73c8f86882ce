//! Signatures: patterns and conditions over packets, streams and items of protocols (Zeek's `.sig` files).
//!
//! ```text
//! file ──▶ lex ──tokens──▶ parse ──▶ rules ──▶ tree (tests of headers, one automaton a group) ──▶ matcher
//!                            ▲ Names: identifiers of scripts                        Host: conditions, actions ▲
//! ```
//!
//! | module | duty |
//! |---|---|
//! | `lex` | tokens and lines |
//! | `parse` | one rule after the other, errors in Zeek's words |
//! | `rules` | what a rule is |
//! | `tree` | rules by the tests of headers that they have in common, and their automata |
//! | `matcher` | the state of a connection: which patterns matched on which side, which rules are complete |
//!
//! Nothing here knows of scripts or of connections: [`Names`] finds identifiers, a [`Host`] evaluates conditions and
//! carries out actions. Automata are built as far as data asks for them, and never beyond a limit.

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
