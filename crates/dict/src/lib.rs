//! The clustered dictionary: hash tables for a program that keeps millions of tiny ones and a few huge ones.
//!
//! [`Dict`] is the map; [`OrderedDict`] keeps the order of insertion and removes in constant time;
//! [`ExpiringDict`] forgets what was not created, read or written for a while of packet time. [`ByteKey`] is a
//! byte string of 16 bytes as a key, [`KeyedHash`] the default hash.
//!
//! # Layout
//!
//! ```text
//! 0..=2 entries    Dict [ entry | entry ]                         no heap, no hash
//! 3..=12           Dict ──▶ [ entry | entry | … ]                 one array, no hash
//! more             Dict ──▶ directory   0 0 1 2                   by the leading bits of the hash
//!                           segments    ┌──────0──────┐ ┌──1──┐ ┌──2──┐
//!                           tags        │ 3 4 4 9 · 12│ │     │ │     │    2 bytes a cell
//!                           entries     │ a b c d   e │ │     │ │     │    the bare key and value
//!                                       └─────────────┘ └─────┘ └─────┘
//! ```
//!
//! A segment is a *clustered* array: entries stand in the order of their hashes, each at its bucket or, where
//! that is taken, as near behind it as the order allows (linear displacement). The tag, the next 15 bits of
//! the hash, says which bucket that is, so neither hash nor distance is stored. A search counts the lesser tags
//! of a window of eight, which compilers turn into a few vector instructions, and arrives at the entry; a
//! tag that equals by chance costs one comparison in 32,768. Removal moves the rest of the cluster back by one
//! cell: there are no tombstones, and a table that lived long is as good as a new one.
//!
//! Segments keep between 78 and 90 % of their buckets filled. A full one is rebuilt a sixth larger, one of 512
//! entries is split by the next bit of the hash (extendible hashing), sparse neighbours are joined. So memory
//! follows the number of entries closely both ways, and no single operation ever moves the whole table.
//!
//! Because the order of entries is that of their hashes through all this, a position in a walk is a hash:
//! [`Cursor`] survives every change of the dictionary.
//!
//! # Sources
//!
//! Clustered hashing is the design of Zeek's dictionary (Jason Lu, `clustered hashing`, 2020), itself a
//! relative of Robin Hood hashing (Celis, 1986) and of linear probing in sorted order (Amble and Knuth,
//! "Ordered hash tables", 1974). The directory is that of extendible hashing (Fagin, Nievergelt, Pippenger and
//! Strong, 1979).

mod byte_key;
mod dict;
mod digest;
mod expiring;
mod hash;
mod lookup;
mod ordered;
mod raw;
mod stats;
mod table;

pub use byte_key::{ByteKey, INLINE};
pub use dict::{Cursor, Dict, Handle};
pub use expiring::{ExpireOn, ExpiringDict};
pub use hash::KeyedHash;
pub use lookup::Lookup;
pub use ordered::OrderedDict;
pub use stats::Stats;
pub use table::Reshaped;
