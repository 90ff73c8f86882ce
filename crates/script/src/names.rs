//! Interned names: identifiers, with their module where they have one, and names of fields.

use std::collections::HashMap;

use crate::ids::{Arena, Id, Name};

/// All names of a program; equal texts have equal [`Name`]s.
#[derive(Clone, Default, Debug)]
pub struct Names {
    texts: Arena<Name, Box<str>>,
    known: HashMap<Box<str>, Name>,
}

impl Names {
    /// The name of `text`.
    pub fn intern(&mut self, text: &str) -> Name {
        if let Some(name) = self.known.get(text) {
            return *name;
        }
        let name = self.texts.push(text.into());
        self.known.insert(text.into(), name);
        name
    }

    /// The name of `text` where it was interned.
    #[must_use]
    pub fn find(&self, text: &str) -> Option<Name> {
        self.known.get(text).copied()
    }

    /// The text of `name`.
    #[must_use]
    pub fn text(&self, name: Name) -> &str {
        if name.index() < self.texts.len() { &self.texts[name] } else { "" }
    }
}
