//! Replay of DNS queries from captures and lists with their original timing, and measurement of the
//! answers.
//!
//! ```text
//! capture ─▶ extract ─┐                       ┌─▶ sender ─▶ sockets ─▶ server
//!                     ├─▶ feed ─▶ blocks ─▶ ──┤     ▲                    │
//! list ────▶ text ────┘   (due times)         └─▶ sender ◀── answers ◀───┘
//! ```
//!
//! A [`Source`] returns queries: an [`Extractor`](gannet_pipeline::extract::Extractor) finds them
//! in any capture (UDP, and reassembled TCP streams), [`text`] reads them from a list. The feed
//! assigns each query its *due time* by the [`Timing`], counted from the start of the run, so that
//! delays do not add up. It packs them into blocks, and bounded channels pass the blocks to the
//! sender threads: each owns its client sockets, sends due queries in as few system calls as
//! possible, and matches answers to queries by socket, id and question. Threads share only counters
//! for the progress display.
//!
//! There are two kinds of senders: one for datagrams, and one for the connections of
//! [`Transport::Tcp`], [`Transport::Tls`], [`Transport::Https`] and `Transport::Quic`, whose
//! lifetime a [`Policy`] sets.
//!
//! The numbers of a [`Report`] add up: every query that the kernel accepted was answered, lost, or
//! still open when the run was stopped.
//!
//! [`compare()`] compares the answers with those in the capture or those of a second server.
//! [`serve()`] is an echo server for tests and measurements that can drop, delay and corrupt its
//! answers.

mod batch;
mod block;
mod byte_stream;
mod compare;
mod connection;
mod error;
mod feed;
mod h2;
mod https;
mod inflight;
mod json;
mod matching;
mod message;
mod paced_queue;
mod plot;
mod poller;
#[cfg(feature = "quic")]
mod quic;
mod report;
mod rewrite;
mod run;
mod sender;
mod serve;
mod socket;
mod source;
mod stats;
mod streams;
mod sys;
mod table;
mod target;
pub mod text;
mod timing;
mod tls;
mod transport;
mod transport_link;

pub use compare::Compared;
pub use compare::FIELDS;
pub use compare::FieldError;
pub use compare::Fields;
pub use compare::ReferenceAnswers;
pub use compare::compare;
pub use error::Error;
pub use https::Https;
pub use inflight::Verdict;
pub use report::Report;
pub use rewrite::Edns;
pub use rewrite::Rewrite;
pub use rewrite::Subnet;
pub use rewrite::SubnetError;
pub use rewrite::Tsig;
pub use rewrite::TsigError;
pub use run::Live;
pub use run::Options;
pub use run::run;
pub use serve::Served;
pub use serve::Server;
pub use serve::ServerBehaviour;
pub use serve::serve;
pub use source::Exchange;
pub use source::Input;
pub use source::InputItem;
pub use source::Query;
pub use source::Seen;
pub use source::Source;
pub use stats::Counts;
pub use stats::Interval;
pub use stats::Times;
pub use target::Range;
pub use target::Target;
pub use target::TargetError;
pub use target::host;
pub use target::parse_range;
pub use timing::Timing;
pub use timing::TimingError;
pub use tls::Blocking;
pub use tls::Identity;
pub use tls::Tls;
pub use tls::Trust;
pub use transport::Policy;
pub use transport::Transport;
pub use transport::TransportError;
