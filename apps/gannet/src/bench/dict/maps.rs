//! The maps compared, behind one trait.

use gannet_dict::{ByteKey, Dict};

use super::chained::Chained;

/// A map from keys, given as `Q`, to 8-byte values. Implementations are always inlined, so that the maps themselves are
/// measured.
pub(super) trait Map<Q: ?Sized>: Default {
    fn put(&mut self, key: &Q, value: u64);
    fn find(&self, key: &Q) -> bool;
    fn take(&mut self, key: &Q) -> bool;
}

/// hashbrown's default hash, for all maps with a choice of hash except the dictionary, which has the same hash with its own
/// secret.
pub(super) type Hash = hashbrown::DefaultHashBuilder;

pub(super) type Brown<K> = hashbrown::HashMap<K, u64, Hash>;
pub(super) type Index<K> = indexmap::IndexMap<K, u64, Hash>;
pub(super) type Std<K> = std::collections::HashMap<K, u64>;
pub(super) type Clustered<K> = Dict<K, u64>;

macro_rules! map {
    ($map:ty, $query:ty, $own:expr, $remove:ident) => {
        impl Map<$query> for $map {
            #[inline(always)]
            fn put(&mut self, key: &$query, value: u64) {
                self.insert($own(key), value);
            }
            #[inline(always)]
            fn find(&self, key: &$query) -> bool {
                self.get(key).is_some()
            }
            #[inline(always)]
            fn take(&mut self, key: &$query) -> bool {
                self.$remove(key).is_some()
            }
        }
    };
}

fn number(key: &u64) -> u64 {
    *key
}

fn boxed(key: &[u8]) -> Box<[u8]> {
    key.into()
}

map!(Clustered<u64>, u64, number, remove);
map!(Brown<u64>, u64, number, remove);
map!(Index<u64>, u64, number, swap_remove);
map!(Std<u64>, u64, number, remove);
map!(Clustered<ByteKey>, [u8], ByteKey::new, remove);
map!(Brown<Box<[u8]>>, [u8], boxed, remove);
map!(Index<Box<[u8]>>, [u8], boxed, swap_remove);
map!(Std<Box<[u8]>>, [u8], boxed, remove);

impl Map<u64> for Chained {
    #[inline(always)]
    fn put(&mut self, key: &u64, value: u64) {
        self.insert(&key.to_le_bytes(), value);
    }
    #[inline(always)]
    fn find(&self, key: &u64) -> bool {
        self.get(&key.to_le_bytes()).is_some()
    }
    #[inline(always)]
    fn take(&mut self, key: &u64) -> bool {
        self.remove(&key.to_le_bytes()).is_some()
    }
}

impl Map<[u8]> for Chained {
    #[inline(always)]
    fn put(&mut self, key: &[u8], value: u64) {
        self.insert(key, value);
    }
    #[inline(always)]
    fn find(&self, key: &[u8]) -> bool {
        self.get(key).is_some()
    }
    #[inline(always)]
    fn take(&mut self, key: &[u8]) -> bool {
        self.remove(key).is_some()
    }
}
