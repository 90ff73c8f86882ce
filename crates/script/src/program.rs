//! A program: everything that the parser builds and everything else reads.

use crate::ast::{Body, Expr, Function, Stmt};
use crate::coverage::Conditional;
use crate::diagnostics::{Diagnostic, Diagnostics, Severity, Subjects};
use crate::ids::{Arena, BodyId, ExprId, FuncId, GlobalId, LocalId, Name, StmtId, TypeId};
use crate::names::Names;
use crate::source::{Sources, Span};
use crate::symbols::Globals;
use crate::types::Types;

/// A name in a file and its meaning.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Use {
    /// The place of the name.
    pub span: Span,
    /// Its meaning.
    pub target: Target,
}

/// The meaning of a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    /// A global.
    Global(GlobalId),
    /// A local of a body.
    Local(BodyId, LocalId),
    /// A field of a record type, by its offset.
    Field(TypeId, u32),
}

/// All arenas of a program.
#[derive(Debug, Default)]
pub struct Program {
    /// Files.
    pub sources: Sources,
    /// Interned names.
    pub names: Names,
    /// Types.
    pub types: Types,
    /// Expressions.
    pub exprs: Arena<ExprId, Expr>,
    /// Statements.
    pub stmts: Arena<StmtId, Stmt>,
    /// Globals.
    pub globals: Globals,
    /// Functions, events, hooks and lambdas.
    pub functions: Arena<FuncId, Function>,
    /// Their bodies, and the frames of file-level statements and of `when`s.
    pub bodies: Arena<BodyId, Body>,
    /// Statements at file level, run once after `zeek_init` was queued.
    pub main: Option<BodyId>,
    /// Files that `@load-sigs` names, as found.
    pub signature_files: Vec<Box<str>>,
    /// Files that `-s` names, as found.
    pub command_signatures: Vec<Box<str>>,
    /// Types that `type A: B;` declares: `A` and `B`, where `B` is a name.
    pub aliases: Vec<(Name, Name)>,
    /// `@prefixes`.
    pub prefixes: Vec<Box<str>>,
    /// Where diagnostics go.
    pub diagnostics: Diagnostics,
    /// Names as they are used, where an index was requested: for editors.
    pub uses: Option<Vec<Use>>,
    /// Where the parser is: the place of errors about items that were declared elsewhere.
    pub near: Option<Span>,
    /// The type that the subject of the next message should have had.
    pub wanted: Option<TypeId>,
    /// `@if`s and their results, where coverage is asked for: statements are counted then.
    pub conditionals: Option<Vec<Conditional>>,
    /// Whether the command line sets variables.
    pub has_parameters: bool,
    /// Whether scripts see the analyzers that Zeek has with Spicy.
    pub has_spicy: bool,
}

impl Program {
    /// The text of `name`.
    #[must_use]
    pub fn name(&self, name: Name) -> &str {
        self.names.text(name)
    }

    /// Emits a diagnostic with a place and no object.
    pub fn report(&mut self, severity: Severity, span: Span, text: impl Into<Vec<u8>>) {
        let location = self.sources.location(span);
        let about = Subjects::default();
        self.emit(&Diagnostic { severity, span, location, text: text.into(), about });
    }

    /// Emits a diagnostic.
    pub fn emit(&mut self, diagnostic: &Diagnostic) {
        self.diagnostics.emit(diagnostic, &self.sources);
    }
}
