//! MySQL's client/server protocol, versions 9 and 10.
//!
//! The server greets, the client logs in (possibly after requesting TLS, which goes to the SSL
//! analyzer), then the client sends commands and the server answers each. The parts of an answer
//! depend on the command and on the earlier parts: [`message`] parses them, `analyzer.rs` knows
//! which one is next. A client's login confirms the protocol.
//!
//! Each login and each command makes a row of mysql.log when its outcome is known, or the next
//! command comes, or the connection ends.

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

/// What the rest of gannet knows of the protocol.
pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    entries: &[Entry {
        ports: Ports::tcp(&[1434, 3306]),
        ..Entry::new(Tag::Mysql, "MYSQL", "mysql")
    }],
    events: &[events::EVENTS],
    logs: &[Log::of::<MysqlRow<'_>>().stream("mysql::LOG")],
};
