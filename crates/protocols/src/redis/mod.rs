//! Redis: RESP 2 and 3 (the Redis documentation, "Redis serialization protocol specification").
//!
//! A client sends commands, as lists of strings or as lines ([`command`]); a server replies to each
//! one with a value, which may contain others ([`value`]). Both parsers accept the stream in pieces
//! of any size, and store only the logged part of a text. A row of redis.log is a command with its
//! reply. Replies have no number: the next reply belongs to the next command, except for commands
//! without a reply (subscriptions, or after `CLIENT REPLY` turned replies off).
//!
//! A reply after a command confirms the protocol. A server that sends first is not Redis.

mod analyzer;
pub mod command;
mod detect;
pub mod events;
mod rows;
mod token;
pub mod value;

pub use analyzer::Analyzer;
pub use rows::RedisRow;

use crate::Tag;
use crate::descriptor::Descriptor;
use crate::descriptor::Entry;
use crate::descriptor::Log;
use crate::descriptor::Origin;
use crate::descriptor::Ports;

/// Analyzers, events and logs of the protocol.
pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    entries: &[Entry {
        ports: Ports::tcp(&[6379]),
        origin: Origin::Spicy,
        tcp_rules: detect::TCP,
        ..Entry::new(Tag::Redis, "REDIS", "redis")
    }],
    events: &[events::EVENTS],
    logs: &[Log::of::<RedisRow<'_>>().stream("Redis::LOG")],
};
