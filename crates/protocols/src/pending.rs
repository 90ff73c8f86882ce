//! Limits of pending items per connection, by protocol.

use crate::Tag;
use crate::descriptor::Limit;
use crate::tag::TAGS;

/// Maximum number of pending items, such as requests without a reply, that one connection may
/// have: for each protocol whose [descriptor](crate::descriptor::Entry::pending) declares a limit.
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
    pub fn set(&mut self, tag: Tag, limit: usize) {
        self.0[tag as usize] = limit;
    }
}

impl Default for Pending {
    fn default() -> Self {
        let mut all = Self([usize::MAX; TAGS]);
        Self::limits().for_each(|(tag, limit)| all.set(tag, limit.default));
        all
    }
}
