//! A program: the result of the parser, which all later stages read.

use crate::ast::{Body, Expr, Function, Stmt};
use crate::coverage::Conditional;
use crate::diagnostics::{Diagnostic, Diagnostics, Severity, Subjects};
use crate::ids::{Arena, BodyId, ExprId, FuncId, GlobalId, LocalId, Name, StmtId, TypeId};
use crate::names::Names;
use crate::source::{Sources, Span};
use crate::symbols::Globals;
use crate::types::Types;

/// A use of a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Use {
    /// Where the name is.
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
    /// Statements at file level, run once after `zeek_init` is queued.
    pub main: Option<BodyId>,
    /// Files of `@load-sigs`, as resolved paths.
    pub signature_files: Vec<Box<str>>,
    /// Files of `-s`, as resolved paths.
    pub command_signatures: Vec<Box<str>>,
    /// Types that `type A: B;` declares: `A` and `B`, where `B` is a name.
    pub aliases: Vec<(Name, Name)>,
    /// `@prefixes`.
    pub prefixes: Vec<Box<str>>,
    /// Receiver of diagnostics.
    pub diagnostics: Diagnostics,
    /// Uses of names, if an index was requested (for editors).
    pub uses: Option<Vec<Use>>,
    /// Current position of the parser: the location of errors about items that were declared elsewhere.
    pub parser_span: Option<Span>,
    /// The type that the subject of the next message should have.
    pub expected_type: Option<TypeId>,
    /// `@if`s and their results if coverage is enabled. Statements are then counted.
    pub conditionals: Option<Vec<Conditional>>,
    /// Whether the command line sets variables.
    pub has_parameters: bool,
    /// Whether scripts see the Spicy analyzers that Zeek includes.
    pub has_spicy: bool,
}

impl Program {
    /// The text of `name`.
    #[must_use]
    pub fn name(&self, name: Name) -> &str {
        self.names.text(name)
    }

    /// Emits a diagnostic with a location and no object.
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
