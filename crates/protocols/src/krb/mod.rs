//! Kerberos 5 (RFC 4120) over UDP, over TCP (RFC 4120 §7.2.2) and inside other protocols.
//!
//! [`message`] parses one message; a [`Session`] joins the messages of a connection to its one
//! row. [`Udp`] and [`Tcp`] are the analyzers of connections to a key distribution
//! center; GSSAPI passes its tokens to an [`Inner`], whose row belongs to the outer connection.

mod analyzer;
mod certificates;
mod detect;
pub mod events;
pub mod message;
mod names;
mod raise;
mod reader;
mod rows;

pub use analyzer::Inner;
pub use analyzer::Tcp;
pub use analyzer::Udp;
pub use rows::KerberosRow;
pub use rows::Session;

use crate::Tag;
use crate::descriptor::Descriptor;
use crate::descriptor::Entry;
use crate::descriptor::Log;
use crate::descriptor::Ports;

/// Analyzers, events and logs of the protocol.
pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    entries: &[
        Entry {
            ports: Ports::udp(&[88]),
            names_files: true,
            udp_rules: detect::UDP,
            ..Entry::new(Tag::Krb, "KRB", "krb")
        },
        Entry {
            ports: Ports::tcp(&[88]),
            tcp_rules: detect::TCP,
            ..Entry::new(Tag::KrbTcp, "KRB_TCP", "krb_tcp")
        },
    ],
    events: &[events::EVENTS],
    logs: &[Log::of::<KerberosRow<'_>>().stream("KRB::LOG")],
};
