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
//! 16..=106         Dict ──▶ segment of 128 homes             nothing else on the heap
//! more             Dict ──▶ directory    0 1 0 2             8 bytes each, by some low bits of the hash
//!                           segments     ┌──0──┐ ┌──1──┐ ┌──2──┐
//!
//! segment          │ tags of 8 bits │ numbers of cells │ cells for entries │
//! ```
//!
//! A segment has an index of 264 lanes, a tag and the number of a cell each, and behind it the cells for up to some 213
//! entries. The index is *clustered*: an entry's lane is its home, which the upper eight bits of its hash name, or one of the
//! fifteen lanes behind; insertion moves others further back where allowed. A search compares the sixteen tags from the
//! home on at once and then nearly always knows which entry to compare, or that there is none. Removal frees a lane and a cell
//! without a tombstone, so an old table is as fast as a new one.
//!
//! A single segment has 128 homes, and an index of half the size: a table of a hundred entries then fits into 2 KB. Beyond 106
//! entries, or where one finds no lane, it becomes a table with a directory; with 35 entries left it is a single segment again.
//!
//! The index has lanes to spare, at two bytes each, and is of one size. The cells are filled as entries come: their array has
//! the sizes of the allocator's classes, and grows without a look at the entries, which keep their numbers. So an entry is
//! hashed again only when its segment, which is full at some 213 entries, is split by the next bit of the hash (extendible
//! hashing): once while a table doubles. Sparse halves are merged. The directory doubles and halves some slots at a
//! time, while searches use the old one. So memory follows the number of entries closely both ways, and no single operation
//! moves the whole table.
//!
//! Hashes that do not spread may leave a segment without a lane for an entry though it is far from full. Such entries are in a
//! separate list, which a search scans if their segment has no match.
//!
//! A search waits for four dependent loads: the directory, the tags, the number, the entry. In a loop of searches the
//! processor overlaps those of several keys, as many as fit into its buffers: so a small number of instructions makes
//! searches fast, in large tables, too. Homes are one byte of the hash, and index and cells are one allocation, so that neither
//! a multiplication nor a second pointer is needed; the number is asked for together with the tags. A place of the directory
//! is a pointer and nothing else, so that more of the directory stays in the first cache: depth and number of cells are in the
//! segment. A search that does not
//! end at the first match costs a mispredicted branch, and with it what the processor had begun for other keys: so the index
//! has lanes to spare, and most entries are in their homes.
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
