//! The order of Zeek's tables and sets, and other values that depend on its seeds.
//!
//! A table stores its entries in slots ([`SlotDict`]). The slot of an entry depends on its hash, which is the
//! `SipHash` of the key's bytes ([`key`]) with a key from the [`Seeds`], and on the history of the table. So
//! the order is the same as Zeek's if the bytes and the history are.
//!
//! ```
//! use gannet_script::support::order::{KeyBytes, Seeds, SlotDict, key};
//!
//! let seeds = Seeds::parse(include_bytes!("../../../tests/seed.txt")).unwrap(); // a file for ZEEK_SEED_FILE
//! let hash = seeds.hashes();
//! // set("alpha", "beta", "gamma", "delta")
//! let mut set: SlotDict<&str, ()> = SlotDict::new();
//! for word in ["alpha", "beta", "gamma", "delta"] {
//!     set.insert(hash.key(key::string(word.as_bytes())), word, ());
//! }
//! let order: Vec<&str> = set.iter().map(|(word, ())| *word).collect();
//! assert_eq!(order, ["delta", "gamma", "alpha", "beta"]);
//!
//! // The key of [1, "x"] in a table[count, string]: each index in turn, aligned to its size.
//! let mut bytes = KeyBytes::new();
//! bytes.int(1);
//! bytes.string(b"x");
//! assert_eq!(bytes.finish(), b"\x01\0\0\0\0\0\0\0\x01\0\0\0x");
//! ```

mod dict;
pub mod key;
mod random;
mod seeds;
mod uid;

pub use dict::{RobustWalk, SlotDict};
pub use key::KeyBytes;
pub use random::Random;
pub use seeds::{Hashes, SaltedHashes, Seeds};
pub use uid::{UidPools, base62, uid_text};

#[cfg(test)]
mod tests;
