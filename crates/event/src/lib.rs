//! Typed events, which analyzers raise and listeners receive.
//!
//! An analyzer declares its events with [`events!`] and raises them as borrowed structs. The
//! declaration defines the event's [`Id`] (a bit in [`Interest`], the set of events that have a
//! listener), its [`Decl`] (name, parameters with Zeek's types, documentation) and its packed form.
//!
//! ```text
//! analyzer ──raise(|c| HttpRequest { c, method, … })──▶ Events ──drain──▶ Listener
//!                │ no listener: one test of a bit          │ packed arguments, connections, files
//! ```
//!
//! [`Events`] is the event queue of an analysis. As in Zeek, events raised for a packet are queued until the packet is
//! processed; all of them then contain the state that each connection had when an event last mentioned it. A
//! [`Listener`] receives each event with its declaration and reads the arguments that it needs with [`Args`], which
//! decodes the packed bytes by their declared [`Type`].
//!
//! Nothing here knows protocols, packets or threads.

mod command;
mod decl;
mod events;
mod json;
mod macros;
mod pack;
mod read;
mod recording;
mod records;
mod sampling;
mod sinks;
mod state;

pub use command::Command;
pub use command::ConnCommand;
pub use command::FileCommand;
pub use decl::Decl;
pub use decl::Id;
pub use decl::Interest;
pub use decl::Param;
pub use decl::Record;
pub use decl::Type;
pub use events::Event;
pub use events::Events;
pub use events::Listener;
pub use events::Raised;
pub use events::ThreadAffinity;
pub use json::write_json;
pub use json::write_json_value;
pub use pack::AnalyzerId;
pub use pack::Arg;
pub use pack::Bytes;
pub use pack::Connection;
pub use pack::Conns;
pub use pack::EnumName;
pub use pack::FileRef;
pub use pack::FromOne;
pub use pack::Id4;
pub use pack::Packer;
pub use pack::Port;
pub use pack::Seconds;
pub use pack::SetOf;
pub use pack::TableOf;
pub use read::Args;
pub use read::Reader;
pub use read::Value;
pub use recording::Recording;
pub use records::CONNECTION;
pub use records::ENDPOINT;
pub use records::FILE;
pub use sampling::SamplingRate;
pub use sampling::WeirdSamples;
pub use sampling::WeirdSampling;
pub use sinks::Sinks;
pub use state::ConnState;
pub use state::EndpointState;
pub use state::FilePart;
pub use state::FileState;
pub use state::TransportState;
pub use state::TunnelState;
