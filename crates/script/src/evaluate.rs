//! The interface between the parser and the interpreter.
//!
//! Scripts are evaluated while they are parsed: initializers, conditions of `@if`, priorities. The parser calls
//! [`Evaluate`], which the interpreter implements and which stores the values of globals. It receives the
//! program parsed so far, which contains everything that an expression refers to. Functions are compiled at
//! their first call, because a [`crate::ast::Function`] may gain bodies until then.

use crate::ids::{ExprId, FuncId, GlobalId, TypeId};
use crate::literal::Literal;
use crate::program::Program;

/// Evaluation ended without a value.
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
    /// Declared without a value: containers and records get empty values, others stay unset.
    Empty,
    /// `=`.
    Full,
    /// `+=`: elements are added, and `&add_func` is called if present.
    Extra,
    /// `-=`: elements are removed, and `&delete_func` is called if present.
    Remove,
}

/// The value of a constant expression, as the parser needs it.
#[derive(Clone, PartialEq, Debug)]
pub enum Constant {
    /// Of an atomic type.
    Literal(Literal),
    /// A set of atomic values: its elements, each with one part per index type.
    Set(Vec<Vec<Literal>>),
    /// Any other value.
    Other,
}

/// The interpreter as the parser sees it.
pub trait Evaluate {
    /// Evaluates `expr` outside of any function. Errors are reported through [`Program::diagnostics`].
    ///
    /// # Errors
    /// [`Stop`] if the evaluation fails.
    fn evaluate(&mut self, program: &mut Program, expr: ExprId) -> Result<Constant, Stop>;

    /// Sets the value of `global` or changes it. `expr` has the type of the global; it is `None` for
    /// [`Init::Empty`]. An [`Init::Full`] initializer of a table also applies the global's attributes
    /// ([`crate::symbols::Global::attrs`]).
    ///
    /// # Errors
    /// [`Stop`] if the initializer failed; the error is already reported.
    fn initialize(
        &mut self,
        program: &mut Program,
        global: GlobalId,
        init: Init,
        expr: Option<ExprId>,
    ) -> Result<(), Stop>;

    /// The record type `ty` (and its copies under other names) gained fields, the first at offset `from`:
    /// existing values are enlarged, and tables keyed by them are rehashed.
    fn record_extended(&mut self, program: &mut Program, ty: TypeId, from: usize);

    /// `redef` added attributes to `global` or removed them.
    fn attributes_changed(&mut self, program: &mut Program, global: GlobalId);

    /// Bodies of `func` were replaced or added, possibly after it was compiled.
    fn function_changed(&mut self, program: &mut Program, func: FuncId);

    /// Called where a cached program may end: discards compiled code. Returns the values of globals for the
    /// cache if one is to be written.
    fn checkpoint(&mut self) -> Option<(Vec<u8>, crate::cache::Recorder)> {
        None
    }

    /// A hash of bytes with the seeds of the run, if it has any.
    fn seeded_hash(&self, _bytes: &[u8]) -> Option<u64> {
        None
    }

    /// Zeek's text of the value of `global` (`-I`), if it has one.
    fn describe_global(&mut self, program: &mut Program, global: GlobalId) -> Option<Vec<u8>>;
}

/// An [`Evaluate`] that evaluates only literals: for script checkers and tests.
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
