//! The Network Time Protocol (RFC 5905), its control messages (RFC 1305 appendix B, RFC 9327) and
//! the private messages of ntpd (mode 7).
//!
//! [`message`] parses a datagram; [`Analyzer`] makes one row of it: in ntp.log for modes 1 to 5,
//! ntp_control.log for mode 6, ntp_private.log for mode 7. On a connection that mixes kinds, every
//! message also repeats the last row of each other kind, as in Zeek, so these rows are kept.

mod analyzer;
pub mod events;
pub mod message;
mod raise;
mod rows;

pub use analyzer::Analyzer;
pub use rows::Control;
pub use rows::Ntp;
pub use rows::Private;

use crate::Tag;
use crate::descriptor::Descriptor;
use crate::descriptor::Entry;
use crate::descriptor::Log;
use crate::descriptor::Ports;

/// Analyzers, events and logs of the protocol.
pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    entries: &[Entry {
        ports: Ports::udp(&[123]),
        is_session: true,
        ..Entry::new(Tag::Ntp, "NTP", "ntp")
    }],
    events: &[events::EVENTS],
    logs: &[
        Log::of::<Control>().stream("NTP::CONTROL_LOG"),
        Log::of::<Ntp>(),
        Log::of::<Private>().stream("NTP::PRIVATE_LOG"),
    ],
};
