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
    /// `type`: the type that it names is the global's type.
    Type,
    /// A name of an enum, whose type is the global's: its number.
    EnumValue(i64),
    /// A function, event or hook by declaration or definition. Functions that built-in scripts only declare have no bodies.
    Function(FuncId),
    /// Known by a name that was used before anything declared it (after an error).
    Unknown,
}

/// A global identifier: variable, function, type or enum value.
#[derive(Clone, Debug)]
pub struct Global {
    /// Its full name: `Module::name`, without module in GLOBAL.
    pub name: Name,
    /// Its kind.
    pub kind: GlobalKind,
    /// Its type; [`TypeId::VOID`] before it is known.
    pub ty: TypeId,
    /// Attributes, those that `redef` added among them. Those of tables belong to the initial value.
    pub attrs: Attrs,
    /// Where it was declared.
    pub span: Span,
    /// Whether other modules see it.
    pub exported: bool,
    /// Whether an initializer or a `redef` was evaluated for it.
    pub initialized: bool,
    /// The file-level module in which it was declared.
    pub module: Name,
    /// How often it was referred to.
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
    /// Adds a global. One of the same name is no longer found.
    pub fn add(&mut self, global: Global) -> GlobalId {
        let name = global.name;
        let id = self.arena.push(global);
        self.by_name.insert(name, id);
        id
    }

    /// The globals that are found by their names.
    pub(crate) fn by_name(&self) -> &IdMap<Name, GlobalId> {
        &self.by_name
    }

    /// Globals that were read back.
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
