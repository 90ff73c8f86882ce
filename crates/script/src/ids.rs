//! Arenas and the ids of their elements.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

use hashbrown::DefaultHashBuilder;

use crate::cache::Stored;

/// A map keyed by ids. Scripts cannot choose ids, so a fast hash suffices.
pub type IdMap<K, V> = HashMap<K, V, DefaultHashBuilder>;

/// A set of ids, hashed like [`IdMap`].
pub type IdSet<K> = HashSet<K, DefaultHashBuilder>;

/// An id of four bytes, the index of an item of an [`Arena`].
pub trait Id: Copy {
    /// The id of the `index`-th item.
    fn from_index(index: usize) -> Self;
    /// The index of the item in its arena.
    fn index(self) -> usize;
}

/// Declares an id type: a newtype of `u32`.
macro_rules! id {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub struct $name(pub u32);

        impl Id for $name {
            fn from_index(index: usize) -> Self {
                Self(u32::try_from(index).unwrap_or(u32::MAX))
            }

            fn index(self) -> usize {
                self.0 as usize
            }
        }
    )*};
}

id! {
    /// A file, see [`crate::source::Sources`].
    FileId;
    /// An interned name, see [`crate::names::Names`].
    Name;
    /// A type, see [`crate::types::Types`].
    TypeId;
    /// An expression, see [`crate::ast::Expr`].
    ExprId;
    /// A statement, see [`crate::ast::Stmt`].
    StmtId;
    /// A global identifier, see [`crate::symbols::Global`].
    GlobalId;
    /// A function, event, hook or lambda, see [`crate::ast::Function`].
    FuncId;
    /// One body of a function, event or hook, see [`crate::ast::Body`].
    BodyId;
    /// A local of a body: its slot in the frame, see [`crate::ast::Local`].
    LocalId;
}

/// Items in order of creation, addressed by ids.
#[derive(Clone)]
pub struct Arena<I, T> {
    /// The first items, if they come from the cache of scripts.
    stored: Option<Stored<T>>,
    /// The number of items in `stored`.
    stored_len: usize,
    /// The items after those of `stored`.
    items: Vec<T>,
    ids: PhantomData<I>,
}

impl<I: Id, T> Arena<I, T> {
    /// An empty arena.
    #[must_use]
    pub const fn new() -> Self {
        Self { stored: None, stored_len: 0, items: Vec::new(), ids: PhantomData }
    }

    /// Adds `item` and returns its id.
    pub fn push(&mut self, item: T) -> I {
        self.items.push(item);
        I::from_index(self.len() - 1)
    }

    /// An arena of these items, with their indices as ids.
    #[must_use]
    pub fn from_items(items: Vec<T>) -> Self {
        Self { items, ..Self::new() }
    }

    /// An arena of items that are decoded on first access.
    pub(crate) fn from_stored(stored: Stored<T>) -> Self {
        Self { stored_len: stored.len(), stored: Some(stored), ..Self::new() }
    }

    /// The number of items.
    #[must_use]
    pub fn len(&self) -> usize {
        self.stored_len + self.items.len()
    }

    /// Whether there are no items.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The item of `id`, if it exists.
    #[inline]
    #[must_use]
    pub fn find(&self, id: I) -> Option<&T> {
        match id.index().checked_sub(self.stored_len) {
            Some(index) => self.items.get(index),
            None => self.stored.as_ref()?.get(id.index()),
        }
    }

    /// All items with their ids.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (I, &T)> + ExactSizeIterator {
        self.ids().map(|id| (id, &self[id]))
    }

    /// All ids.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = I> + ExactSizeIterator + use<I, T> {
        (0..self.len()).map(I::from_index)
    }
}

impl<I: Id, T> Default for Arena<I, T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<I: Id, T> Index<I> for Arena<I, T> {
    type Output = T;

    #[inline]
    fn index(&self, id: I) -> &T {
        self.find(id).unwrap_or_else(|| missing(id.index(), self.len()))
    }
}

impl<I: Id, T> IndexMut<I> for Arena<I, T> {
    fn index_mut(&mut self, id: I) -> &mut T {
        let (index, len) = (id.index(), self.len());
        let item = match index.checked_sub(self.stored_len) {
            Some(index) => self.items.get_mut(index),
            None => self.stored.as_mut().and_then(|stored| stored.get_mut(index)),
        };
        item.unwrap_or_else(|| missing(index, len))
    }
}

#[cold]
fn missing(index: usize, len: usize) -> ! {
    panic!("no item {index} of {len}")
}

impl<I: Id, T: fmt::Debug> fmt::Debug for Arena<I, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(|(_, item)| item)).finish()
    }
}
