//! Interned names: identifiers, with their module if they have one, and field names.

use std::hash::BuildHasher as _;

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::ids::{Arena, Id, Name};

/// All names of a program; equal texts have equal [`Name`]s.
#[derive(Clone, Default, Debug)]
pub struct Names {
    texts: Arena<Name, Box<str>>,
    known: HashTable<Name>,
    hashes: DefaultHashBuilder,
}

impl Names {
    /// Names decoded from a cache, in order.
    pub(crate) fn from_texts(texts: Arena<Name, Box<str>>) -> Self {
        let mut names =
            Self { known: HashTable::with_capacity(texts.len()), texts, ..Self::default() };
        for (name, text) in names.texts.iter() {
            let hash = names.hashes.hash_one(&**text);
            let texts = &names.texts;
            names.known.insert_unique(hash, name, |name| names.hashes.hash_one(&*texts[*name]));
        }
        names
    }

    /// The texts in the order in which they were interned.
    pub(crate) fn texts(&self) -> &Arena<Name, Box<str>> {
        &self.texts
    }

    /// The name of `text`.
    pub fn intern(&mut self, text: &str) -> Name {
        let hash = self.hashes.hash_one(text);
        if let Some(name) = self.known.find(hash, |name| &*self.texts[*name] == text) {
            return *name;
        }
        let name = self.texts.push(text.into());
        let (texts, hashes) = (&self.texts, &self.hashes);
        self.known.insert_unique(hash, name, |name| hashes.hash_one(&*texts[*name]));
        name
    }

    /// The name of `text` if it is interned.
    #[must_use]
    pub fn find(&self, text: &str) -> Option<Name> {
        self.known.find(self.hashes.hash_one(text), |name| &*self.texts[*name] == text).copied()
    }

    /// The text of `name`.
    #[must_use]
    pub fn text(&self, name: Name) -> &str {
        if name.index() < self.texts.len() { &self.texts[name] } else { "" }
    }
}
