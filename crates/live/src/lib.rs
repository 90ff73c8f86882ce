//! Packets from network interfaces, and an account of every packet that was lost.
//!
//! A [`Source`] opens a capture ring ([`Ring`], AF_PACKET with TPACKET_V3) on each interface and hands out the same
//! [`Batch`](gannet_capture::Batch)es that captures in files give. [`Ledger`] sums up where packets went: read,
//! dropped at the ring, dropped by the network card or by the kernel before the ring. [`Sender`] sends frames, for
//! tests and measurements.
//!
//! # How data moves
//!
//! ```text
//! kernel ──writes──▶ block of the ring ──Lease──▶ Bytes ──▶ Batch ──▶ engine
//!                        ▲                                    │
//!                        └────── last reader is done ◀────────┘
//! ```
//!
//! The kernel fills a block and gives it away; a batch borrows the block, and the kernel gets it back when the last
//! reader of the batch is done. With one ring no packet is copied. Packets of several rings are merged in the order
//! of their times, which copies them.
//!
//! Before packets are handed out, they are made what was on the wire: a VLAN tag that the kernel stripped is put back,
//! and a checksum that the network card was to fill in is computed ([`offload`]).
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
