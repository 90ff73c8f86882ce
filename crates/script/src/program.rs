//! A program: everything that the parser builds and everything else reads.

use crate::ast::{Body, Expr, Function, Stmt};
use crate::diagnostics::{Diagnostic, Diagnostics, Severity};
use crate::ids::{Arena, BodyId, ExprId, FuncId, Name, StmtId};
use crate::names::Names;
use crate::source::{Sources, Span};
use crate::symbols::Globals;
use crate::types::Types;

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
    /// `@prefixes`.
    pub prefixes: Vec<Box<str>>,
    /// Where diagnostics go.
    pub diagnostics: Diagnostics,
    /// Whether the command line sets variables.
    pub has_parameters: bool,
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
        self.emit(&Diagnostic { severity, span, location, text: text.into() });
    }

    /// Emits a diagnostic.
    pub fn emit(&mut self, diagnostic: &Diagnostic) {
        self.diagnostics.emit(diagnostic, &self.sources);
    }
}
