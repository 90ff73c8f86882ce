//! SMB, versions 1 to 3 ([MS-CIFS], [MS-SMB], [MS-SMB2]), directly over TCP or in NetBIOS sessions.
//!
//! The analyzer splits the stream into session messages and these into messages of either version,
//! which `v1` and `v2` parse. They report to the `Core` of a connection, which passes logins to
//! GSSAPI and NTLM, data of named pipes to DCE-RPC, and contents of files to file analysis
//! (`files`). The `Shares` of a connection resolve the tree, file and command of a message, and
//! report the actions on them.
//!
//! Encrypted messages of version 3 are skipped.
//!
//! [MS-CIFS]: https://learn.microsoft.com/en-us/openspecs/windows_protocols/ms-cifs
//! [MS-SMB]: https://learn.microsoft.com/en-us/openspecs/windows_protocols/ms-smb
//! [MS-SMB2]: https://learn.microsoft.com/en-us/openspecs/windows_protocols/ms-smb2

mod analyzer;
mod core;
mod cursor;
mod detect;
pub mod events;
mod files;
mod info;
mod raise;
mod rows;
mod shared;
mod shares;
mod v1;
mod v2;

pub use analyzer::Analyzer;
pub use rows::MappingRow;
pub use shared::Shared;
pub use shared::rows::FilesRow;

use crate::Tag;
use crate::descriptor::Descriptor;
use crate::descriptor::Entry;
use crate::descriptor::Limit;
use crate::descriptor::Log;
use crate::descriptor::Ports;

/// Analyzers, events and logs of the protocol.
pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    entries: &[Entry {
        ports: Ports::tcp(&[139, 445]),
        pending: Some(Limit {
            name: "pending-smb",
            default: 1_000,
            what: "SMB requests of a kind without a response; beyond, they are dropped.",
            reported_by: "SMB_discarded_messages_state",
        }),
        tcp_rules: detect::TCP,
        ..Entry::new(Tag::Smb, "SMB", "smb")
    }],
    events: &[events::EVENTS],
    logs: &[
        Log::of::<FilesRow<'_>>().stream("SMB::FILES_LOG"),
        Log::of::<MappingRow<'_>>().stream("SMB::MAPPING_LOG"),
    ],
};
