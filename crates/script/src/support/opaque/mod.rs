//! Implementations of the language's opaque types: digests, Bloom filters, counters of distinct values, most
//! frequent values, randomness tests, sets of globs.
//!
//! Values are added by the [bytes of their key](super::order::key), as used by a table with one index.
//!
//! ```
//! use gannet_script::support::opaque::*;
//! use gannet_script::support::order::{Seeds, key};
//!
//! let mut md5 = Digest::new(Algorithm::Md5);
//! md5.update(b"one");
//! assert_eq!(md5.finish_hex(), "f97c5d29941bfb1b2fdab0874906ab82");
//!
//! let seed = bloom::seed(b"", b"my_seed", 0); // name, global_hash_seed, first number of the seeds
//! let mut filter = BloomFilter::basic(0.1, 1000, seed).unwrap();
//! filter.add(&key::count(42));
//! assert_eq!(filter.count(&key::count(42)), 1);
//!
//! let hashes = Seeds::default().hashes();
//! let mut distinct = Cardinality::new(0.01, 0.95).unwrap();
//! distinct.add(hashes.key(key::string(b"a")));
//! assert_eq!(distinct.estimate().round(), 1.0);
//!
//! let mut top = TopK::new(10);
//! top.add(key::string(b"a"), "a");
//! assert_eq!(top.top(1), ["a"]);
//!
//! let globs = Globs::new([&b"*.com"[..], b"ab?"]);
//! assert_eq!(globs.matching(b"x.com"), [b"*.com"]);
//! ```

pub mod bloom;
mod cardinality;
mod digest;
mod entropy;
mod glob;
mod topk;

pub use bloom::BloomFilter;
pub use cardinality::Cardinality;
pub use digest::{
    Algorithm, Digest, fnv1a32, fnv1a64, hmac_md5, hmac_sha256, hrw_weight, typed_key,
};
pub use entropy::{Entropy, Randomness};
pub use glob::{Globs, fnmatch};
pub use topk::TopK;

#[cfg(test)]
mod tests;
