//! Connections: their table, transport state, reassembly and timers.
//!
//! [`Conn`] holds the facts of one connection that every stage may read, [`tcp::Tcp`] the state of
//! a TCP connection. [`Table`] finds connections by the addresses of their packets and stores them
//! in a slab; [`Timers`] returns the connections that are due for a check in packet time.
//! [`Fragments`] reassembles IP datagrams. Nothing here knows application protocols: stream bytes
//! go to a [`tcp::Consumer`].

mod conn;
mod frag;
mod history;
mod index;
mod slab;
mod table;
pub mod tcp;
mod timers;

pub use conn::Conn;
pub use conn::Counts;
pub use conn::Numbers;
pub use conn::SIZE_CLASSES;
pub use conn::Services;
pub use conn::is_power_of_ten;
pub use conn::size_class;
pub use frag::FragmentEvent;
pub use frag::FragmentLimits;
pub use frag::Fragments;
pub use history::History;
pub use table::FoundConnection;
pub use table::Hash;
pub use table::Key;
pub use table::Slot;
pub use table::Spare;
pub use table::Table;
pub use timers::Timers;
