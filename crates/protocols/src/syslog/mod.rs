//! Syslog over UDP (RFC 3164, RFC 5424): a priority in angle brackets, then text.
//!
//! Each datagram is one message and one row. The text is logged unchanged, including the line end
//! or zero byte that some senders append. No content identifies syslog, so it is never confirmed.

mod analyzer;
pub mod events;
mod message;
mod rows;

pub use analyzer::Analyzer;
pub use message::Message;
pub use message::Priority;
pub use rows::SyslogRow;

use crate::Tag;
use crate::descriptor::Descriptor;
use crate::descriptor::Entry;
use crate::descriptor::Log;
use crate::descriptor::Ports;

/// Analyzers, events and logs of the protocol.
pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    entries: &[Entry {
        ports: Ports::udp(&[514]),
        servers: Some(Ports { tcp: &[514], udp: &[514] }),
        is_session: true,
        ..Entry::new(Tag::Syslog, "SYSLOG", "syslog")
    }],
    events: &[events::EVENTS],
    logs: &[Log::of::<SyslogRow<'_>>().stream("Syslog::LOG")],
};
