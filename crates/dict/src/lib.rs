//! The clustered dictionary: hash tables for a program that keeps millions of tiny ones and a few huge ones.
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
//! segment          │ cells for entries │    │ tags of 8 bits, one for each cell │
//! ```
//!
//! A segment is a *clustered* array: entries are in one array, roughly in the order of their homes,
//! the cells given by 32 bits of their hashes. Each entry is in its home or in one of the fifteen
//! cells behind; insertion moves others further back where allowed. A search compares the sixteen
//! tags from the home on at once and then nearly always knows which entry to compare, or that there
//! is none. Removal frees a cell without a tombstone, so an old table is as fast as a new one.
//!
//! Segments keep between 66 and 88 % of their cells filled and have the sizes of the allocator's
//! classes. A full one is rebuilt in the next size, one of some 450 entries is split by the next
//! bit of the hash (extendible hashing), sparse halves are joined. The directory doubles and halves
//! a few slots at a time, while searches use the old one. So memory follows the number of entries
//! closely both ways, and no single operation moves the whole table.
//!
//! Hashes that do not spread may leave a segment without room for an entry though it is far from
//! full. Such entries are in a separate list, which a search scans if its segment has no match. An
//! operation rebuilds a large segment only once: if an entry finds no room even then, it is in the
//! list until the next entry comes to that segment.
//!
//! A search waits for three dependent loads: the directory, the tags, the entry. In a loop of
//! searches the processor overlaps those of several keys, as many as fit into its buffers: so a
//! small number of instructions makes searches fast, in large tables, too, and prefetching an entry
//! before its tags are read does not pay. It pays for entries so large that a table of 100,000
//! exceeds the second-level cache and keys are often behind pointers: there the line behind the
//! home is prefetched with the tags.
//!
//! Because segments are always ordered by their hashes, a hash is a stable position in a walk: a
//! [`Cursor`] survives every change of the dictionary.
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
