//! Generation of traffic: deterministic captures for tests and benchmarks.
//!
//! [`frame`] builds single frames with correct lengths and checksums. A [`Trace`] is a clock with a
//! list of [`Frame`]s: it plays whole exchanges (TCP connections with handshake, data and close,
//! UDP datagrams, pings) and stamps each frame. [`dns`] writes DNS messages. [`mod@sample`]
//! generates the sample capture of the manual; [`traffic`] generates thousands of conversations of
//! many protocols, [`RandomPackets`] gigabytes of random packets; a [`Flood`] exhausts tables.
//!
//! The same calls produce the same bytes on every machine: the only source of randomness is
//! [`Rng`], seeded by the caller. Addresses and names are those set aside for documentation (RFC
//! 5737, 3849, 2606).
//!
//! ```
//! use gannet_base::Time;
//! use gannet_synth::Trace;
//!
//! let mut trace = Trace::new(Time::from_secs(1_700_000_000), 7);
//! let mut tcp = trace.connect("192.0.2.1:40000".parse()?, "198.51.100.1:80".parse()?);
//! tcp.send(b"GET / HTTP/1.0\r\n\r\n");
//! tcp.reply(b"HTTP/1.0 204 No Content\r\n\r\n");
//! tcp.close();
//! assert_eq!(trace.frames().len(), 3 + 2 + 2 + 3);
//! # Ok::<(), std::net::AddrParseError>(())
//! ```

pub mod corpus;
pub mod dns;
mod flood;
pub mod frame;
mod random;
mod rng;
mod sample;
mod trace;
pub mod traffic;

pub use flood::Flood;
pub use flood::Kind as FloodKind;
pub use random::RandomOptions;
pub use random::RandomPackets;
pub use rng::Rng;
pub use sample::sample;
pub use trace::Frame;
pub use trace::Paused;
pub use trace::Tcp;
pub use trace::Trace;
