//! How much may wait at one connection, by protocol.

use crate::Tag;
use crate::descriptor::Limit;
use crate::tag::TAGS;

/// Requests without a reply, and the like, that one connection may have: for each protocol whose
/// [descriptor](crate::descriptor::Entry::pending) declares a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending([usize; TAGS]);

impl Pending {
    /// All limits, with their protocols.
    pub fn limits() -> impl Iterator<Item = (Tag, &'static Limit)> {
        Tag::ALL.iter().filter_map(|tag| Some((*tag, tag.entry().pending.as_ref()?)))
    }

    /// The limit of a protocol.
    #[inline]
    pub fn of(&self, tag: Tag) -> usize {
        self.0[tag as usize]
    }

    /// Sets the limit of a protocol.
    pub fn set(&mut self, tag: Tag, most: usize) {
        self.0[tag as usize] = most;
    }
}

impl Default for Pending {
    fn default() -> Self {
        let mut all = Self([usize::MAX; TAGS]);
        Self::limits().for_each(|(tag, limit)| all.set(tag, limit.default));
        all
    }
}
