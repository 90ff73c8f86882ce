//! DCE-RPC ([C706], [MS-RPCE]), over TCP and over SMB's named pipes.
//!
//! A client binds numbered contexts to interfaces and then calls their operations by number.
//! [`message`] parses packets; a [`Stream`] reassembles them from the bytes of one TCP connection
//! or pipe, and passes authentication tokens to GSSAPI and NTLM; [`Calls`] joins requests and responses to rows
//! of dce_rpc.log, for all pipes of a connection. [`Analyzer`] is the analyzer of a TCP connection.
//!
//! [C706]: https://pubs.opengroup.org/onlinepubs/9629399/
//! [MS-RPCE]: https://learn.microsoft.com/en-us/openspecs/windows_protocols/ms-rpce

mod analyzer;
mod detect;
pub mod events;
pub mod message;
mod rows;
mod stream;
mod tables;

pub use analyzer::Analyzer;
pub use rows::Calls;
pub use rows::DceRpcRow;
pub use stream::Stream;

use crate::Tag;
use crate::descriptor::Descriptor;
use crate::descriptor::Entry;
use crate::descriptor::Limit;
use crate::descriptor::Log;
use crate::descriptor::Ports;

/// Analyzers, events and logs of the protocol.
pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    entries: &[Entry {
        ports: Ports::tcp(&[135]),
        pending: Some(Limit {
            name: "pending-dce-rpc",
            default: 20,
            what: "DCE-RPC calls in fragments; beyond, the stream is given up.",
            reported_by: "too_many_dce_rpc_msgs_in_reassembly",
        }),
        tcp_rules: detect::TCP,
        ..Entry::new(Tag::DceRpc, "DCE_RPC", "dce_rpc")
    }],
    events: &[events::EVENTS],
    logs: &[Log::of::<DceRpcRow<'_>>()],
};
