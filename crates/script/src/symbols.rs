//! Globals, modules and symbols.

use crate::ids::{Arena, FuncId, GlobalId, IdMap, IdSet, LocalId, Name, TypeId};
use crate::source::Span;
use crate::types::Attrs;

/// The kind of a global identifier.
#[derive(Clone, PartialEq, Debug)]
pub enum GlobalKind {
    /// `global`.
    Variable,
    /// `const`.
    Constant,
    /// `option`.
    Option,
    /// `type`: the type is that of the global.
    Type,
    /// A value of an enum: its number. The enum is the type of the global.
    EnumValue(i64),
    /// A declared or defined function, event or hook. Built-in functions have no bodies.
    Function(FuncId),
    /// A name that was used without a declaration (after an error).
    Unknown,
}

/// A global identifier: variable, function, type or enum value.
#[derive(Clone, Debug)]
pub struct Global {
    /// Its full name: `Module::name`, or only the name in module GLOBAL.
    pub name: Name,
    /// Its kind.
    pub kind: GlobalKind,
    /// Its type; [`TypeId::VOID`] until it is known.
    pub ty: TypeId,
    /// Attributes, including those added by `redef`. Those of tables belong to the initial value.
    pub attrs: Attrs,
    /// Where it was declared.
    pub span: Span,
    /// Whether other modules see it.
    pub exported: bool,
    /// Whether an initializer or a `redef` was evaluated for it.
    pub initialized: bool,
    /// The file-level module in which it was declared.
    pub module: Name,
    /// Number of references to it.
    pub uses: u32,
}

/// All globals, found by their full names.
#[derive(Clone, Default, Debug)]
pub struct Globals {
    /// The globals.
    pub arena: Arena<GlobalId, Global>,
    by_name: IdMap<Name, GlobalId>,
    /// Modules that were opened by a `module` declaration.
    pub modules: IdSet<Name>,
}

impl Globals {
    /// Adds a global. It replaces a global of the same name in lookups.
    pub fn add(&mut self, global: Global) -> GlobalId {
        let name = global.name;
        let id = self.arena.push(global);
        self.by_name.insert(name, id);
        id
    }

    /// Globals by full name.
    pub(crate) fn by_name(&self) -> &IdMap<Name, GlobalId> {
        &self.by_name
    }

    /// Globals decoded from a cache.
    pub(crate) fn from_parts(
        arena: Arena<GlobalId, Global>,
        by_name: IdMap<Name, GlobalId>,
        modules: IdSet<Name>,
    ) -> Self {
        Self { arena, by_name, modules }
    }

    /// The global with the full name `name`.
    #[must_use]
    pub fn find(&self, name: Name) -> Option<GlobalId> {
        self.by_name.get(&name).copied()
    }
}

impl std::ops::Index<GlobalId> for Globals {
    type Output = Global;

    fn index(&self, id: GlobalId) -> &Global {
        &self.arena[id]
    }
}

impl std::ops::IndexMut<GlobalId> for Globals {
    fn index_mut(&mut self, id: GlobalId) -> &mut Global {
        &mut self.arena[id]
    }
}

/// The meaning of a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Symbol {
    /// A global.
    Global(GlobalId),
    /// A local of the body that is being parsed.
    Local(LocalId),
}
