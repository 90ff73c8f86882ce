//! The dictionary: hash tables for a program that keeps millions of tiny ones and a few huge ones.
//!
//! [`Dict`] is the map; [`OrderedDict`] keeps the order of insertion and removes in constant time;
//! [`ExpiringDict`] drops entries that were not created, read or written for some packet time.
//! [`ByteKey`] is a byte string of 16 bytes as a key, [`KeyedHash`] the default hash.
//!
//! # Layout
//!
//! ```text
//! 0..=2 entries    Dict [ entry | entry ]                    no heap, no hash
//! 3..=15           Dict ──▶ [ tags | entry | entry | … ]     one array, a tag of 8 bits each
//! more             Dict ──▶ directory    0 1 0 2             by some low bits of the hash
//!                           segments     ┌──0──┐ ┌──1──┐ ┌──2──┐
//!
//! segment          │ free cells │ cells for entries │ groups of 15 tags and 15 numbers of cells │
//! ```
//!
//! A segment has up to 184 cells in a row, and up to 16 *groups* of 32 bytes: bits of a hash select
//! a group, the entry's *home*, whose tags of 8 bits are compared at once; next to a tag is the number of its cell. A
//! search nearly always knows after one comparison which entry to compare, or that there is none. An entry whose
//! home is full is in the group behind it, and each group counts the entries that passed it, so removal needs no
//! tombstones and an old table is as fast as a new one.
//!
//! As entries are in cells and not in places that hashes determine, a segment is nearly full at any size, and gets
//! more cells by being copied as it is: no entry is hashed for it. The sizes are those of the allocator's classes. Only
//! a full segment is filled again: it is split by the next bit of the hash (extendible hashing). Sparse
//! halves are joined. The directory doubles and halves a few slots at a time, while searches use the old one. So
//! memory follows the number of entries closely both ways, no single operation moves the whole table, and an
//! entry moves by its hash about once for each doubling of the table.
//!
//! A full segment that cannot be split, as the directory is still being doubled or as too many hashes are equal, puts
//! entries into a separate list, which a search scans if its segment has no match.
//!
//! A search waits for three dependent loads: the directory, the group, the entry. In a loop of
//! searches the processor overlaps those of several keys, as many as fit into its buffers: so a
//! small number of instructions makes searches fast, in large tables, too.
//!
//! Because segments are always ordered by their hashes, a hash is a stable position in a walk: a
//! [`Cursor`] survives every change of the dictionary.
//!
//! # Sources
//!
//! Entries in one array and small numbers in the hash table are the design of Python's dictionary (Raymond Hettinger, 2012); tags
//! compared by a vector instruction, that of Swiss tables (Google, 2017); counts of entries that passed a group, that of
//! F14 (Facebook, 2019). The directory is that of extendible hashing (Fagin, Nievergelt, Pippenger and Strong, 1979).

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
pub use hash::{KeyedHash, KeyedHasher, TableHash};
pub use lookup::Lookup;
pub use ordered::OrderedDict;
pub use raw::secret::Drawn;
pub use stats::Stats;
pub use table::Reshaped;
