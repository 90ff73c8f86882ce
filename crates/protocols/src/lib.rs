//! Application protocols: one folder each.
//!
//! A folder holds `message.rs` (bytes → borrowed messages, no state), `analyzer.rs` (the state
//! machine of one connection, an [`Analyze`]) and `rows.rs` (its logs). The driver passes in-order
//! stream bytes or datagrams of one connection to an analyzer, together with a [`Context`]: the
//! connection's facts, the logs, the files, and the requests to the engine
//! ([`confirm`](Context::confirm), [`violation`](Context::violation), [`weird`](Context::weird),
//! [`start`](Context::start)). Requests are applied after the packet, in order.
//!
//! A new protocol is a new folder with a [`Descriptor`](descriptor::Descriptor), its module below
//! and a line in the list (`protocol_list.rs`). CONTRIBUTING.md describes the steps.

#[macro_use]
mod protocol_list;

mod activation;
mod analyze;
pub mod bittorrent;
pub mod conn_state;
mod context;
pub mod deferred;
pub mod descriptor;
mod env;
pub mod events;
pub mod failure;
mod first_packet;
pub mod global;
pub mod lifecycle;
mod local_nets;
mod nested;
pub mod packet;
mod pending;
pub mod policy;
mod ports;
pub mod registry;
mod schemas;
mod stack;
pub mod support;
mod tag;
#[cfg(test)]
mod testing;
pub mod tunnel;
mod violations;
pub mod weird;

pub mod dce_rpc;
pub mod detect;
pub mod dhcp;
pub mod dnp3;
pub mod dns;
pub mod finger;
pub mod ftp;
pub mod gnutella;
pub mod gssapi;
pub mod http;
pub mod ident;
pub mod imap;
pub mod irc;
pub mod krb;
pub mod ldap;
pub mod login;
pub mod modbus;
pub mod mqtt;
pub mod mysql;
pub mod ncp;
pub mod netbios;
pub mod ntlm;
pub mod ntp;
pub mod pop3;
pub mod postgresql;
pub mod quic;
pub mod radius;
pub mod rdp;
pub mod redis;
pub mod rfb;
pub mod rpc;
pub mod sip;
pub mod smb;
pub mod smtp;
pub mod snmp;
pub mod socks;
pub mod ssh;
pub mod ssl;
pub mod stream_event;
pub mod syslog;
pub mod tftp;
pub mod websocket;
pub mod xmpp;

pub use analyze::Analyze;
pub use analyze::AnyAnalyzer;
pub use analyze::Dispatched;
pub use context::Context;
pub use context::OnEvent;
pub use context::Piece;
pub use context::Replay;
pub use context::Request;
pub use context::ScriptRequest;
pub use context::TlsSecret;
pub use env::Announced;
pub use env::Env;
pub use env::Expected;
pub use env::Options;
pub use nested::Nested;
pub use pending::Pending;
pub use registry::Analyzer;
pub use schemas::schemas;
pub use stack::Scratch;
pub use stack::Session;
pub use stack::Stack;
pub use tag::Tag;
