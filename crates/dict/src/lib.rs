//! The clustered dictionary: hash tables for a program that keeps millions of tiny ones and a few huge ones.
//!
//! [`Dict`] is the map; [`OrderedDict`] keeps the order of insertion and removes in constant time;
//! [`ExpiringDict`] forgets what was not created, read or written for a while of packet time. [`ByteKey`] is a
//! byte string of 16 bytes as a key, [`KeyedHash`] the default hash.
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
//! A segment is a *clustered* array: entries are in one array about in the order of their homes, the cells that 32 bits
//! of their hashes name: each in its home or in one of the fifteen cells behind, others making room for it where they may
//! stand further behind. A search compares the sixteen tags from the home on at once and nearly always knows then which
//! entry to compare, or that there is none: it never has to go on. Removal frees a cell: there are no tombstones, and a
//! table that lived long is as good as a new one.
//!
//! Segments keep between 66 and 88 % of their cells filled and take the sizes that allocators hand out anyway. A full one is
//! rebuilt in the next size, one of some 450 entries is split by the next bit of the hash (extendible
//! hashing), sparse halves are joined. The directory doubles and halves a few places at a time, beside the one that
//! searches go on in. So memory follows
//! the number of entries closely both ways, and no single operation ever moves the whole table.
//!
//! Hashes that do not spread may leave a segment without room for an entry though it is far from full. Such entries stand
//! apart in a list, which searches go through that come to nothing in their segments. An operation makes a large segment
//! again once: should an entry find no room even then, it stands apart until the next one comes to that segment.
//!
//! A search waits for three places in turn: the directory, the tags, the entry. A program that looks up one key after another
//! waits for those of several keys at once, as many as the processor has room for their instructions and results: so it is
//! few instructions that make searches quick, in large tables, too, and to ask for an entry before the tags tell where it
//! stands does not pay. It does where entries are so large that those of a table of 100,000 are behind the second cache
//! and their keys often behind pointers: there the line behind its home is asked for with the tags.
//!
//! Because segments are ordered by their hashes through all this, a walk can be told by hashes: a [`Cursor`]
//! survives every change of the dictionary.
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
