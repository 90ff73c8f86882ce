//! The clustered dictionary: hash tables for a program that keeps millions of tiny ones and a few huge ones.
//!
//! [`Dict`] is the map; [`OrderedDict`] keeps the order of insertion and removes in constant time;
//! [`ExpiringDict`] drops entries that were not created, read or written for some packet time.
//! [`ByteKey`] is a byte string as a key, in a value of 16 bytes; [`KeyedHash`] is the default
//! hash.
//!
//! # Layout
//!
//! ```text
//! 0..=2 entries    Dict [ entry | entry ]                    no heap, no hash
//! 3..=15           Dict ──▶ [ tags | entry | entry | … ]     one array, a tag of 8 bits each
//! 16..=106         Dict ──▶ segment of 128 homes             one allocation
//! more             Dict ──▶ directory    0 1 0 2             8 bytes each, by some low bits of the hash
//!                           segments     ┌──0──┐ ┌──1──┐ ┌──2──┐
//!
//! segment          │ tags of 8 bits │ numbers of cells │ cells for entries │
//! ```
//!
//! A segment has an index of 264 lanes, each with a tag and the number of a cell, followed by the
//! cells for up to some 213 entries. The index is *clustered*: an entry's lane is its home,
//! selected by the upper eight bits of its hash, or one of the fifteen lanes after it; insertion
//! moves other entries further back where allowed. A search compares the sixteen tags from the home
//! on at once, which nearly always identifies the one entry to compare, or shows that the key is
//! absent. Removal frees a lane and a cell without a tombstone, so an old table is as fast as a new
//! one.
//!
//! A single segment has 128 homes, and an index of half the size: a table of a hundred entries then
//! fits into 2 KB. With more than 106 entries, or when an entry finds no free lane, it becomes a
//! table with a directory; at 35 entries the table becomes a single segment again.
//!
//! The index has a fixed size with spare lanes, at two bytes each. The cells are filled in order of
//! insertion: the size of their array follows the allocator's size classes, and growing it does not
//! access the entries, which keep their cell numbers. So an entry is hashed again only when its
//! segment, which is full at some 213 entries, is split by the next bit of the hash (extendible
//! hashing): once while a table doubles. Sparse halves are merged. The directory doubles and halves
//! some slots at a time, while searches use the old one. So memory follows the number of entries
//! closely in both directions, and no single operation moves the whole table.
//!
//! With badly distributed hashes, a segment may have no lane for an entry although it is far from
//! full. Such entries are in an overflow list, which a search scans if their segment has no match.
//!
//! A search waits for four dependent loads: the directory, the tags, the number, the entry. In a
//! loop of searches the processor overlaps the loads of as many keys as its reorder buffer holds,
//! so a small number of instructions makes searches fast in large tables, too. Homes are one byte
//! of the hash, and index and cells are one allocation, so that neither a multiplication nor a
//! second pointer is needed; the number is prefetched together with the tags. A slot of the
//! directory is only a pointer, so that more of the directory stays in the L1 cache: depth and
//! number of cells are in the segment. A search that does not end at the first match costs a
//! mispredicted branch, which discards the work that the processor had started for other keys.
//! Spare lanes in the index keep most entries in their homes.
//!
//! Because segments are always ordered by their hashes, a hash is a stable position in a walk, and
//! a [`Cursor`] survives every change of the dictionary.
//!
//! # Sources
//!
//! Clustered hashing is the design of Zeek's dictionary (Jason Lu, `clustered hashing`, 2020), itself a
//! relative of Robin Hood hashing (Celis, 1986) and of linear probing in sorted order (Amble and Knuth,
//! "Ordered hash tables", 1974). That entries stay within a window of their homes is hopscotch hashing (Herlihy, Shavit and
//! Tzafrir, 2008). The directory is that of extendible hashing (Fagin, Nievergelt, Pippenger and
//! Strong, 1979).

mod byte_key;
mod dict;
mod digest;
mod expiring;
mod hash;
mod lookup;
mod ordered;
mod raw;
mod single;
mod sizes;
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
