//! The Domain Name System and related protocols: DNS over UDP and TCP (RFC 1034, RFC 1035), multicast DNS
//! (RFC 6762), LLMNR (RFC 4795), dynamic update (RFC 2136) and the NetBIOS name service (RFC 1002).
//!
//! [`message`] parses headers and names, [`records`] the resource records; both borrow from the
//! packet and report errors as weirds. [`Analyzer`] walks over a message and reports its parts; `rows` receive these events,
//! join a query and its reply to an `Exchange` (`session`), and write its row. [`names`] holds the registries of numbers.
//!
//! Memory: an idle connection needs three words. Others store a query until its reply arrives (the
//! usual case), or at most about 2,500 unpaired messages of a side
//! ([`MAX_PENDING_IDS`] × [`MAX_PENDING_MESSAGES`], [`MAX_PENDING_BYTES`]). Scratch memory for
//! parsing is in [`Shared`] and reused.
//!
//! As in Zeek's default, only questions and answers are parsed: authority and additional sections
//! (and with them EDNS) would add nothing to a row.

mod analyzer;
mod answers;
pub mod events;
mod framing;
mod head;
pub mod message;
mod name;
pub mod names;
mod parts;
mod raise;
pub mod records;
mod rows;
mod session;
mod shared;
mod svcb;
mod walk;

pub use analyzer::Analyzer;
pub use message::MAX_QUESTIONS;
pub use rows::Dns;
pub use session::MAX_PENDING_BYTES;
pub use session::MAX_PENDING_IDS;
pub use session::MAX_PENDING_MESSAGES;
pub use shared::Shared;

use crate::Tag;
use crate::descriptor::Descriptor;
use crate::descriptor::Entry;
use crate::descriptor::Limit;
use crate::descriptor::Log;
use crate::descriptor::Ports;

/// Analyzers, events and logs of the protocol.
pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    entries: &[Entry {
        ports: Ports { tcp: &[53], udp: &[53, 137, 5353, 5355] },
        is_session: true,
        pending: Some(Limit {
            name: "pending-dns",
            default: MAX_PENDING_IDS,
            what: "DNS ids without a reply, and queries of one id; beyond, all are logged.",
            reported_by: "rows without a reply",
        }),
        ..Entry::new(Tag::Dns, "DNS", "dns")
    }],
    events: &[events::EVENTS],
    logs: &[Log::of::<Dns<'_>>()],
};
