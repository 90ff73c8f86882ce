//! Modbus over TCP (Modbus Application Protocol V1.1b, Modbus Messaging on TCP/IP V1.0b).
//!
//! Each message ([`message`]) is a header with a transaction number, a unit and a function, then
//! the function's arguments or results. Each header makes a row of modbus.log; an exception's row
//! waits for its code. A complete message confirms the protocol.

mod analyzer;
pub mod events;
pub mod message;
mod raise;
mod rows;

pub use analyzer::Analyzer;
pub use rows::ModbusRow;

use crate::Tag;
use crate::descriptor::Descriptor;
use crate::descriptor::Entry;
use crate::descriptor::Log;
use crate::descriptor::Ports;

/// Analyzers, events and logs of the protocol.
pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    entries: &[Entry { ports: Ports::tcp(&[502]), ..Entry::new(Tag::Modbus, "MODBUS", "modbus") }],
    events: &[events::EVENTS],
    logs: &[Log::of::<ModbusRow<'_>>().stream("Modbus::LOG")],
};
