//! Redis, as its clients and servers speak: RESP 2 and 3 (the Redis documentation, "Redis serialization
//! protocol specification").
//!
//! A client sends commands, as lists of strings or as lines ([`command`]); a server answers each one with
//! a value, which may hold others ([`value`]). Both readers take a stream in any cut, and keep of a text
//! no more than what is logged. A row of redis.log is a command with its answer. Answers have no number:
//! the next answer is for the next command, but for commands that get none — because they subscribe, or
//! because `CLIENT REPLY` turned answers off.
//!
//! An answer after a command confirms the protocol. A server that speaks first is no Redis.

mod analyzer;
pub mod command;
pub mod events;
mod rows;
mod token;
pub mod value;

pub use analyzer::Analyzer;
pub use rows::RedisRow;
