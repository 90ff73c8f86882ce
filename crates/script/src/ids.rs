//! Arenas and the ids of their elements.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// An id of four bytes that an [`Arena`] gives out.
pub trait Id: Copy {
    /// The id of the `index`-th item.
    fn from_index(index: usize) -> Self;
    /// Which item of its arena this is.
    fn index(self) -> usize;
}

/// Declares an id type: a `u32` of its own kind.
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
    /// A file that was read, see [`crate::source::Sources`].
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

/// Items in the order of their creation, named by ids.
#[derive(Clone)]
pub struct Arena<I, T> {
    items: Vec<T>,
    ids: PhantomData<I>,
}

impl<I: Id, T> Arena<I, T> {
    /// An empty arena.
    #[must_use]
    pub const fn new() -> Self {
        Self { items: Vec::new(), ids: PhantomData }
    }

    /// Adds `item` and returns its id.
    pub fn push(&mut self, item: T) -> I {
        self.items.push(item);
        I::from_index(self.items.len() - 1)
    }

    /// An arena of these items, whose ids are their indices.
    #[must_use]
    pub fn from_items(items: Vec<T>) -> Self {
        Self { items, ids: PhantomData }
    }

    /// The number of items.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there are no items.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The item of `id`, where it exists.
    #[must_use]
    pub fn find(&self, id: I) -> Option<&T> {
        self.items.get(id.index())
    }

    /// All items with their ids.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (I, &T)> + ExactSizeIterator {
        self.items.iter().enumerate().map(|(index, item)| (I::from_index(index), item))
    }

    /// All ids.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = I> + ExactSizeIterator + use<I, T> {
        (0..self.items.len()).map(I::from_index)
    }
}

impl<I: Id, T> Default for Arena<I, T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<I: Id, T> Index<I> for Arena<I, T> {
    type Output = T;

    fn index(&self, id: I) -> &T {
        &self.items[id.index()]
    }
}

impl<I: Id, T> IndexMut<I> for Arena<I, T> {
    fn index_mut(&mut self, id: I) -> &mut T {
        &mut self.items[id.index()]
    }
}

impl<I, T: fmt::Debug> fmt::Debug for Arena<I, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.items).finish()
    }
}
