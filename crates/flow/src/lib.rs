//! Connections: who talks to whom, since when, and what arrived.
//!
//! [`Conn`] holds the facts of one connection that every stage may read; [`tcp::Tcp`] the state of
//! a TCP one. [`Table`] finds connections by their packets' addresses and keeps them in a slab;
//! [`Timers`] says which are to be looked at next, in packet time. [`Fragments`] puts IP datagrams
//! together. Nothing here knows application protocols: their bytes go to a [`tcp::Consumer`].

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
pub use conn::SIZE_CLASSES;
pub use conn::Services;
pub use conn::is_power_of_ten;
pub use conn::size_class;
pub use frag::FragmentEvent;
pub use frag::FragmentLimits;
pub use frag::Fragments;
pub use history::History;
pub use table::Found;
pub use table::Hash;
pub use table::Key;
pub use table::Slot;
pub use table::Spare;
pub use table::Table;
pub use timers::Timers;
