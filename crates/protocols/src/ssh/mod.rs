//! SSH, versions 1.5 (draft-ylonen-ssh-protocol-00) and 2.0 (RFC 4253, with the key exchanges of
//! RFC 4419, RFC 4432, RFC 4462, RFC 5656, RFC 8731 and their post-quantum successors).
//!
//! Both sides send a line with their version ([`Version`]), then packets ([`message`]) with their
//! algorithms and the key exchange, then everything is encrypted. From then on only sizes are
//! visible: the server's first encrypted packets have known lengths, from which login attempts and
//! their success are inferred (`auth.rs`).
//!
//! The row of ssh.log is written when a login succeeded, or when the connection ends.

mod analyzer;
mod auth;
mod detect;
pub mod events;
mod limits;
pub mod message;
mod rows;
mod version;

pub use analyzer::Analyzer;
pub use rows::SshRow;
pub use version::Version;

use crate::Tag;
use crate::descriptor::Descriptor;
use crate::descriptor::Entry;
use crate::descriptor::Log;
use crate::descriptor::Ports;

/// Analyzers, events and logs of the protocol.
pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    entries: &[Entry {
        ports: Ports::tcp(&[22]),
        idle: Some(3600),
        tcp_rules: detect::TCP,
        ..Entry::new(Tag::Ssh, "SSH", "ssh")
    }],
    events: &[events::EVENTS],
    logs: &[Log::of::<SshRow<'_>>()],
};
