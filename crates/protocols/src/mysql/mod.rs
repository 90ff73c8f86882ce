//! MySQL's client/server protocol, versions 9 and 10.
//!
//! The server sends a greeting, the client logs in (possibly after requesting TLS, whose data the
//! SSL analyzer receives), then the client sends commands and the server replies to each. The
//! packets of a reply depend on the command and on the earlier packets: [`message`] parses them,
//! `analyzer.rs` determines which one is next. A client's login confirms the protocol.
//!
//! Each login and each command makes a row of mysql.log when its outcome is known, or when the next
//! command is sent or the connection ends.

mod analyzer;
pub mod events;
pub mod message;
mod rows;

pub use analyzer::Analyzer;
pub use rows::MysqlRow;

use crate::Tag;
use crate::descriptor::Descriptor;
use crate::descriptor::Entry;
use crate::descriptor::Log;
use crate::descriptor::Ports;

/// Analyzers, events and logs of the protocol.
pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    entries: &[Entry {
        ports: Ports::tcp(&[1434, 3306]),
        ..Entry::new(Tag::Mysql, "MYSQL", "mysql")
    }],
    events: &[events::EVENTS],
    logs: &[Log::of::<MysqlRow<'_>>().stream("mysql::LOG")],
};
