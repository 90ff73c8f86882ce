//! Name resolution.
//!
//! Globals and locals are looked up by full name: `x` in module `M` is `M::x`. This holds for locals, too, as
//! in Zeek, whose messages show it. Locals belong to the whole function; each is visible only in its block.

use super::Parser;
use crate::ast::{Capture, Local, LocalKind};
use crate::diagnostics::Severity;
use crate::ids::{BodyId, ExprId, GlobalId, IdMap, IdSet, LocalId, Name, TypeId};
use crate::program::{Target, Use};
use crate::source::Span;
use crate::symbols::{Global, GlobalKind, Symbol};
use crate::types::{AttrKind, Attrs, Flavor};

/// The owner of a scope.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ScopeKind {
    /// Statements at file level.
    Main,
    /// A function, event or hook.
    Function,
    /// A lambda.
    Lambda,
    /// A `when`.
    When,
}

/// The names of a body that is being parsed.
#[derive(Clone, Debug)]
pub(super) struct Scope {
    pub(super) kind: ScopeKind,
    pub(super) body: BodyId,
    pub(super) names: IdMap<Name, LocalId>,
    /// Locals of closed blocks.
    pub(super) hidden: IdSet<LocalId>,
    /// For each open block, the locals that it declared.
    pub(super) blocks: Vec<Vec<LocalId>>,
    pub(super) captures: Vec<Captured>,
    /// Locals of the enclosing function that it uses without capturing them.
    pub(super) missing: Vec<Name>,
    pub(super) flavor: Option<Flavor>,
    /// The result type; [`TypeId::VOID`] if no value may be returned, and in lambdas without a declared type
    /// until it is inferred.
    pub(super) result: TypeId,
    /// Whether the first returned value determines the result type.
    pub(super) infers_result: bool,
    /// Globals that the body refers to.
    pub(super) globals: Vec<GlobalId>,
    /// Whether the function has a `return` with a value.
    pub(super) returns_value: bool,
}

/// A capture of a scope.
#[derive(Clone, Debug)]
pub(super) struct Captured {
    pub(super) name: Name,
    pub(super) capture: Capture,
    pub(super) used: bool,
}

impl Scope {
    /// The scope of statements at file level.
    pub(super) fn main(body: BodyId) -> Self {
        Self::new(ScopeKind::Main, body)
    }

    /// An empty scope.
    pub(super) fn new(kind: ScopeKind, body: BodyId) -> Self {
        Self {
            kind,
            body,
            names: IdMap::default(),
            hidden: IdSet::default(),
            blocks: vec![Vec::new()],
            captures: Vec::new(),
            missing: Vec::new(),
            flavor: None,
            result: TypeId::VOID,
            infers_result: false,
            globals: Vec::new(),
            returns_value: false,
        }
    }
}

impl Parser<'_> {
    /// `name` qualified with the module in which it is written; `::name` is global.
    pub(super) fn full_name(&mut self, module: Name, name: &str) -> Name {
        if let Some(global) = name.strip_prefix("::") {
            return self.program.names.intern(global);
        }
        if module == self.global_module || name.contains("::") {
            let plain = name.strip_prefix("GLOBAL::").unwrap_or(name);
            return self.program.names.intern(plain);
        }
        let full = format!("{}::{name}", self.program.name(module));
        self.program.names.intern(&full)
    }

    /// The module part of a full name; `GLOBAL` if it has none.
    pub(super) fn module_of(&mut self, full: Name) -> Name {
        let text = self.program.name(full);
        match text.rfind("::") {
            Some(end) => {
                let module = text[..end].to_owned();
                self.program.names.intern(&module)
            }
            None => self.global_module,
        }
    }

    /// The symbol of `name` in this scope.
    pub(super) fn lookup(&mut self, name: &str) -> Option<Symbol> {
        self.lookup_in(name, false, true)
    }

    /// The symbol of `name`. With `same_module`, only this module is searched; with `check_export`, a name that
    /// is private to another module is an error.
    pub(super) fn lookup_in(
        &mut self,
        name: &str,
        same_module: bool,
        check_export: bool,
    ) -> Option<Symbol> {
        if name.starts_with("GLOBAL::") {
            self.error_here(&global_prefix(name));
        }
        let found = self.search(name, same_module, check_export);
        if self.program.uses.is_some()
            && let Some(symbol) = found
        {
            let target = match symbol {
                Symbol::Global(global) => Target::Global(global),
                Symbol::Local(local) => Target::Local(self.body(), local),
            };
            self.record_use(name, target);
        }
        found
    }

    /// Records that the last consumed token, if it is `name`, refers to `target`.
    pub(super) fn record_use(&mut self, name: &str, target: Target) {
        let span = self.previous;
        if self.program.uses.is_some()
            && self.text_of(span) == name
            && let Some(uses) = &mut self.program.uses
        {
            uses.push(Use { span, target });
        }
    }

    /// Records that the field of an assignment `$name=value` refers to `target`.
    pub(super) fn record_field(&mut self, assignment: ExprId, target: Target) {
        if self.program.uses.is_none() {
            return;
        }
        let span = self.program.exprs[assignment].span;
        let text = self.text_of(span);
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let (Some(from), true) = (text.find(is_part), text.starts_with('$')) else { return };
        let name = &text[from..];
        let len = name.find(|c| !is_part(c)).unwrap_or(name.len());
        let start = span.start + from as u32;
        let span = Span { start, end: start + len as u32, last: span.first, ..span };
        if let Some(uses) = &mut self.program.uses {
            uses.push(Use { span, target });
        }
    }

    fn search(&mut self, name: &str, same_module: bool, check_export: bool) -> Option<Symbol> {
        let module = self.module;
        let full = self.full_name(module, name);
        if let Some(local) = self.find_local(full) {
            return Some(Symbol::Local(local));
        }
        if let Some(global) = self.program.globals.find(full) {
            let home = self.module_of(full);
            if check_export
                && home != self.global_module
                && home != module
                && !self.program.globals[global].exported
                // Events of Spicy's analyzers are declared with their full names, outside of their modules.
                && self.program.globals[global].module != self.global_module
            {
                self.error_here(&format!("identifier is not exported: {name}"));
            }
            return Some(Symbol::Global(global));
        }
        if module == self.global_module || !same_module {
            let global = self.global_module;
            let plain = self.full_name(global, name);
            if let Some(local) = self.find_local(plain).filter(|_| name.contains("::")) {
                return Some(Symbol::Local(local));
            }
            return self.program.globals.find(plain).map(Symbol::Global);
        }
        None
    }

    /// The local `full`, through captures if it belongs to an enclosing function.
    fn find_local(&mut self, full: Name) -> Option<LocalId> {
        let mut level = self.scopes.len();
        let mut found = None;
        while level > 0 {
            level -= 1;
            let scope = &self.scopes[level];
            if let Some(local) = scope.names.get(&full) {
                found = Some(*local);
                break;
            }
            if matches!(scope.kind, ScopeKind::Main | ScopeKind::Function) {
                break;
            }
        }
        let mut local = found?;
        if let Some(captured) =
            self.scopes[level].captures.iter_mut().find(|captured| captured.capture.inner == local)
        {
            captured.used = true;
        }
        while level + 1 < self.scopes.len() {
            level += 1;
            local = self.capture_missing(level, full, local);
        }
        Some(local)
    }

    /// Adds the local `outer` of the enclosing scope to scope `level`, which did not capture it.
    fn capture_missing(&mut self, level: usize, name: Name, outer: LocalId) -> LocalId {
        let outer_body = self.scopes[level - 1].body;
        let local = self.program.bodies[outer_body].locals[outer].clone();
        let body = self.scopes[level].body;
        let inner =
            self.program.bodies[body].locals.push(Local { kind: LocalKind::Capture, ..local });
        let scope = &mut self.scopes[level];
        scope.names.insert(name, inner);
        scope.captures.push(Captured {
            name,
            capture: Capture { outer, inner, deep: false },
            used: true,
        });
        if !scope.missing.contains(&name) {
            scope.missing.push(name);
        }
        inner
    }

    /// Whether `@ifdef ( name )` is true: `name` is an identifier or a module.
    pub(super) fn is_defined(&mut self, name: &str) -> bool {
        if self.lookup_in(name, false, true).is_some() {
            return true;
        }
        let module = self.program.names.intern(name);
        self.program.globals.modules.contains(&module)
    }

    /// The scope of the body that is being parsed.
    pub(super) fn scope(&mut self) -> &mut Scope {
        let last = self.scopes.len() - 1;
        &mut self.scopes[last]
    }

    /// The body that is being parsed.
    pub(super) fn body(&self) -> BodyId {
        self.scopes[self.scopes.len() - 1].body
    }

    /// A local of the current body.
    pub(super) fn local(&self, local: LocalId) -> &Local {
        &self.program.bodies[self.body()].locals[local]
    }

    /// Adds a local to the current body.
    pub(super) fn add_local(&mut self, name: Name, ty: TypeId, kind: LocalKind) -> LocalId {
        let span = self.node_span;
        let body = self.body();
        let local = self.program.bodies[body].locals.push(Local {
            name,
            ty,
            kind,
            attrs: Attrs::new(),
            span,
        });
        let scope = self.scope();
        scope.names.insert(name, local);
        // A loop variable is visible after its loop, and a constant after its block.
        if kind == LocalKind::Variable
            && let Some(block) = scope.blocks.last_mut()
        {
            block.push(local);
        }
        if let Some(uses) = &mut self.program.uses {
            uses.push(Use { span, target: Target::Local(body, local) });
        }
        local
    }

    /// Opens a block.
    pub(super) fn enter_block(&mut self) {
        self.scope().blocks.push(Vec::new());
    }

    /// Closes a block: its locals are no longer visible.
    pub(super) fn leave_block(&mut self) {
        let scope = self.scope();
        if let Some(block) = scope.blocks.pop() {
            scope.hidden.extend(block);
        }
    }

    /// Adds a global named `name` as written here.
    pub(super) fn add_global(&mut self, name: &str, module: Name, kind: GlobalKind) -> GlobalId {
        let full = self.full_name(module, name);
        self.add_global_full(full, kind)
    }

    /// Adds a global by its full name.
    pub(super) fn add_global_full(&mut self, name: Name, kind: GlobalKind) -> GlobalId {
        let global = Global {
            name,
            kind,
            ty: TypeId::VOID,
            attrs: Attrs::new(),
            span: self.node_span,
            exported: self.exporting,
            initialized: false,
            module: self.module,
            uses: 0,
        };
        let span = global.span;
        let id = self.program.globals.add(global);
        if let Some(uses) = &mut self.program.uses {
            uses.push(Use { span, target: Target::Global(id) });
        }
        id
    }

    /// The global of a declaration: an existing one of this module, or a new one.
    pub(super) fn declared_global(&mut self, name: &str) -> GlobalId {
        match self.lookup_in(name, true, true) {
            Some(Symbol::Global(global)) => {
                if self.exporting {
                    self.program.globals[global].exported = true;
                }
                global
            }
            _ => {
                let module = self.module;
                self.add_global(name, module, GlobalKind::Unknown)
            }
        }
    }

    /// Warns if `global` is deprecated.
    pub(super) fn warn_deprecated(&mut self, global: GlobalId) {
        let Some(attr) =
            crate::types::find_attr(&self.program.globals[global].attrs, AttrKind::Deprecated)
        else {
            return;
        };
        let text = attr.expr;
        let name = self.program.name(self.program.globals[global].name).to_owned();
        self.deprecation(&format!("deprecated ({name})"), text);
    }

    /// Emits a deprecation warning, with the text of the attribute if it has one.
    pub(super) fn deprecation(&mut self, message: &str, text: Option<ExprId>) {
        if self.ignore_deprecations > 0 {
            return;
        }
        let text = text.and_then(|expr| match &self.program.exprs[expr].kind {
            crate::ast::ExprKind::Literal(crate::literal::Literal::String(text)) => {
                Some(String::from_utf8_lossy(text).into_owned())
            }
            _ => None,
        });
        let message = text.map_or_else(|| message.to_owned(), |text| format!("{message}: {text}"));
        self.report_here(Severity::Warning, &message);
    }
}

/// The error message for a name that begins with `GLOBAL::`.
pub(super) fn global_prefix(name: &str) -> String {
    format!("Using GLOBAL:: as a prefix is invalid. Use :: instead ({name})")
}
