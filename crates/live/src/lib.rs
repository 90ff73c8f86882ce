//! Captures packets on network interfaces, and counts every packet that is lost.
//!
//! A [`Source`] opens a capture ring ([`Ring`], AF_PACKET with TPACKET_V3) on each interface and returns
//! [`Batch`](gannet_capture::Batch)es, like the reader of capture files. [`Ledger`] counts packets that were read,
//! dropped at the ring, or dropped by the network card or the kernel before the ring. [`Sender`] sends frames, for
//! tests and measurements.
//!
//! # Data flow
//!
//! ```text
//! kernel ──writes──▶ block of the ring ──Lease──▶ Bytes ──▶ Batch ──▶ engine
//!                        ▲                                    │
//!                        └────── last reader is done ◀────────┘
//! ```
//!
//! The kernel fills a block and retires it; a batch shares the block, which returns to the kernel when the last reader
//! of the batch drops it. With one ring no packet is copied. Packets of several rings are merged in the order of their
//! timestamps, which copies them.
//!
//! Packets are restored to their form on the wire: a VLAN tag that the kernel stripped is inserted again, and a
//! checksum that is offloaded to the network card is computed ([`offload`]).
#![cfg(target_os = "linux")]

mod error;
mod interface;
mod ledger;
mod merge;
pub mod offload;
mod prefilter;
mod ring;
mod sandbox;
mod sender;
mod source;
mod sys;

pub use error::Error;
pub use interface::Interface;
pub use ledger::Ledger;
pub use ledger::LinkCounters;
pub use ledger::kernel_backlog_drops;
pub use ring::Ring;
pub use ring::RingCounters;
pub use ring::RingOptions;
pub use sandbox::Mode;
pub use sandbox::Refused;
pub use sandbox::Sandbox;
pub use sandbox::user_ids;
pub use sender::Sender;
pub use source::Next;
pub use source::Source;
pub use source::SourceOptions;
