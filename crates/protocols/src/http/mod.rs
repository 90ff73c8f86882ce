//! HTTP/1.x and HTTP/0.9 (RFC 9110, RFC 9112).
//!
//! Each direction of a connection has a [`Feed`](feed::Feed) that splits the stream into lines, or
//! passes bytes through where a length is known. [`Analyzer`] parses request and status lines and
//! passes everything else to the current [`Message`](body::Message): header lines, then the body, as
//! a chain of entities (the message, and the parts of a multipart one). Content goes to file
//! analysis in place, without a copy, unless it has to be decoded.
//!
//! The analyzer reports requests, replies, headers, entities and ends of messages. The
//! [`Exchanges`](state::Exchanges) of the connection receive these events, pair requests with responses, and pass
//! each event on to the rows of its exchange.
//!
//! [`message`] parses lines and values, without state.

mod analyzer;
mod body;
mod coding;
mod detect;
mod entity;
pub mod events;
mod exchanges;
mod feed;
pub(crate) mod field;
mod files;
mod header;
pub mod message;
mod opening;
mod rows;
mod scope;
mod shared;
mod state;
mod syntax;
#[cfg(test)]
mod tests;

pub use analyzer::Analyzer;
pub use rows::HttpRow;
pub use shared::Shared;

use crate::Context;
use crate::Tag;
use crate::descriptor::Descriptor;
use crate::descriptor::Entry;
use crate::descriptor::Limit;
use crate::descriptor::Log;
use crate::descriptor::Ports;

/// Analyzers, events and logs of the protocol.
pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    entries: &[Entry {
        ports: Ports::tcp(&[80, 81, 631, 1080, 3128, 8000, 8080, 8888]),
        pending: Some(Limit {
            name: "pending-http",
            default: 100,
            what: "HTTP requests without a response; beyond, all are logged.",
            reported_by: "HTTP_excessive_pipelining",
        }),
        tcp_rules: detect::TCP,
        ..Entry::new(Tag::Http, "HTTP", "http")
    }],
    events: &[events::EVENTS],
    logs: &[Log::of::<HttpRow<'_>>()],
};

/// Reports an exceeded limit: a weird, and `X` in the connection's history.
fn limit_reached(cx: &mut Context<'_>, name: &'static str, addl: &str) {
    crate::support::limit_reached(cx, name, addl, Some("HTTP"));
}
