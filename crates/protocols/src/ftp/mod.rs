//! FTP: RFC 959, with EPRT and EPSV (RFC 2428), AUTH TLS (RFC 4217) and ADAT (RFC 2228).
//!
//! The control connection is a Telnet terminal: `Terminal` splits it into lines, [`Request`] and
//! [`Reply`] parse them, and `Session` matches replies with commands and writes a [`FtpRow`] for
//! each file-related command. PORT, PASV, EPRT and EPSV announce a data connection: it is stored in
//! [`Shared`] and among the expected connections of [`Env`](crate::Env), and [`Data`] is started on
//! it. Its content is a file, whose name and type reach the control connection's row through
//! [`Shared`].

mod analyzer;
mod commands;
pub(crate) mod data;
mod detect;
pub mod events;
mod message;
mod nvt;
mod paths;
mod rows;
mod security;
mod session;
mod shared;

pub use analyzer::Analyzer;
pub use data::Data;
pub use message::Endpoint;
pub use message::Reply;
pub use message::Request;
pub use rows::FtpRow;
pub use shared::Shared;
pub use shared::Transfer;

use crate::Tag;
use crate::descriptor::Descriptor;
use crate::descriptor::Entry;
use crate::descriptor::Kind;
use crate::descriptor::Limit;
use crate::descriptor::Log;
use crate::descriptor::Ports;

/// Analyzers, events and logs of the protocol.
pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    entries: &[
        Entry {
            ports: Ports::tcp(&[21, 2811]),
            idle: Some(3600),
            pending: Some(Limit {
                name: "pending-ftp",
                default: 20,
                what: "FTP commands without a reply; further ones are ignored.",
                reported_by: "FTP_too_many_pending_commands",
            }),
            tcp_rules: detect::TCP,
            ..Entry::new(Tag::Ftp, "FTP", "ftp")
        },
        Entry { kind: Kind::Service, ..Entry::new(Tag::FtpData, "FTP_DATA", "ftp-data") },
        Entry::new(Tag::Gridftp, "GRIDFTP", "gridftp"),
    ],
    events: &[events::EVENTS],
    logs: &[Log::of::<FtpRow<'_>>()],
};
