//! The memory of tables: all unsafe code of the crate.
//!
//! * `block`: one segment; a clustered index, and cells.
//! * `directory`: a map from hashes to blocks; several slots may refer to one block.
//! * `few`: one small array with a tag for each entry.
//! * `bytes`: byte strings in sixteen bytes, with a pointer where they are longer.
//! * `pieces`: byte strings of 16 to 64 bytes, hashed and compared without branches on their
//!   length.
//! * `secret`: the key of the default hash.
//! * `simd`: tags compared a group at a time, and prefetching.
//!
//! The interface to the rest of the crate is safe: no sequence of calls, and no `Hash` or `Eq` of a
//! user, however wrong, reads a cell that is not filled or drops an entry twice.
#![allow(unsafe_code)]

pub(crate) mod block;
pub(crate) mod bytes;
pub(crate) mod directory;
pub(crate) mod few;
pub(crate) mod pieces;
pub(crate) mod secret;
pub(crate) mod simd;
