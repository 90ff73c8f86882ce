//! The seam between the parser and the interpreter.
//!
//! Scripts are evaluated while they are parsed: initializers, conditions of `@if`, priorities. The parser calls
//! [`Evaluate`], which the interpreter implements and which keeps the values of globals. It is given the program so far; everything that
//! an expression refers to is in it. Functions are compiled when they are first called: a [`crate::ast::Function`] may still gain bodies.

use crate::ids::{ExprId, FuncId, GlobalId, TypeId};
use crate::literal::Literal;
use crate::program::Program;

/// Evaluation did not come to a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stop {
    /// A run-time error, which was reported.
    Error,
    /// A fatal error, which was reported: the process ends with status 1.
    Fatal,
    /// A script called `exit`.
    Exit(i32),
}

/// The effect of an initializer on its global.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Init {
    /// Declared without a value: containers start empty and records with their defaults, others unset.
    Empty,
    /// `=`.
    Full,
    /// `+=`: elements are added, `&add_func` is called where there is one.
    Extra,
    /// `-=`: elements are removed, `&delete_func` is called where there is one.
    Remove,
}

/// The value of a constant expression, for the parser.
#[derive(Clone, PartialEq, Debug)]
pub enum Constant {
    /// Of an atomic type.
    Literal(Literal),
    /// A set: its elements, each with one part per index type (atomic ones only).
    Set(Vec<Vec<Literal>>),
    /// Something else.
    Other,
}

/// The interpreter as the parser sees it.
pub trait Evaluate {
    /// Evaluates `expr` outside of any function. Errors are reported through [`Program::diagnostics`].
    ///
    /// # Errors
    /// [`Stop`] where there is no value.
    fn evaluate(&mut self, program: &mut Program, expr: ExprId) -> Result<Constant, Stop>;

    /// Gives `global` its value or changes it. `expr` is typed and coerced to the global's type; there is none with
    /// [`Init::Empty`]. A full initializer of a table brings the global's attributes along ([`crate::symbols::Global::attrs`]).
    ///
    /// # Errors
    /// [`Stop`] where the initializer failed; the parser reports nothing more.
    fn initialize(
        &mut self,
        program: &mut Program,
        global: GlobalId,
        init: Init,
        expr: Option<ExprId>,
    ) -> Result<(), Stop>;

    /// The record type `ty` (and its copies under other names) gained fields from `from` on: existing values are enlarged, tables keyed by them
    /// hashed again.
    fn record_extended(&mut self, program: &mut Program, ty: TypeId, from: usize);

    /// Attributes were added to `global` by `redef`, or taken away.
    fn attributes_changed(&mut self, program: &mut Program, global: GlobalId);

    /// Bodies of `func` were replaced or added after it may have been compiled.
    fn function_changed(&mut self, program: &mut Program, func: FuncId);

    /// A place that a cache may begin at: what was compiled is forgotten. Returns the values of globals for the cache, where one is to be
    /// written.
    fn checkpoint(&mut self) -> Option<(Vec<u8>, crate::cache::Recorder)> {
        None
    }

    /// A hash of bytes under the seeds of the run, where it has any.
    fn seeded_hash(&self, _bytes: &[u8]) -> Option<u64> {
        None
    }

    /// Zeek's text of the value of `global` (`-I`), where it has one.
    fn describe_global(&mut self, program: &mut Program, global: GlobalId) -> Option<Vec<u8>>;
}

/// An [`Evaluate`] that evaluates only literals: for tools that only check scripts, and for tests.
#[derive(Clone, Copy, Default, Debug)]
pub struct CheckOnly;

impl Evaluate for CheckOnly {
    fn evaluate(&mut self, program: &mut Program, expr: ExprId) -> Result<Constant, Stop> {
        match &program.exprs[expr].kind {
            crate::ast::ExprKind::Literal(literal) => Ok(Constant::Literal(literal.clone())),
            _ => Ok(Constant::Other),
        }
    }

    fn initialize(
        &mut self,
        _: &mut Program,
        _: GlobalId,
        _: Init,
        _: Option<ExprId>,
    ) -> Result<(), Stop> {
        Ok(())
    }

    fn record_extended(&mut self, _: &mut Program, _: TypeId, _: usize) {}

    fn attributes_changed(&mut self, _: &mut Program, _: GlobalId) {}

    fn function_changed(&mut self, _: &mut Program, _: FuncId) {}

    fn describe_global(&mut self, _: &mut Program, _: GlobalId) -> Option<Vec<u8>> {
        None
    }
}
