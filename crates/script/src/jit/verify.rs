//! Verification: calls without side effects are run by both engines.

use std::rc::Rc;

use super::machine::{Compiled, RunOutcome};
use crate::code::{Code, Op};
use crate::diagnostics::Severity;
use crate::evaluate::Stop;
use crate::value::Value;
use crate::value::describe::{Form, describe};
use crate::vm::{Callee, Vm};

impl Vm<'_> {
    /// The interpreter's result of the call that begins in the topmost frame, if the call has no effect except
    /// its result.
    pub(super) fn expected(
        &mut self,
        code: &Rc<Code>,
        compiled: &Compiled,
        base: usize,
    ) -> Option<Result<Value, Stop>> {
        if self.m.jit.verifying || !self.is_pure(code) {
            return None;
        }
        let args = self.m.stack.get(base..base + compiled.params)?.to_vec();
        let (value, func) = self.m.frames.last().map(|frame| (frame.value.clone(), frame.func))?;
        // Errors are reported once, by the engine under test.
        self.m.suppressed += 1;
        self.m.jit.on = false;
        let result = self.execute(code, &args, value, func);
        self.m.jit.on = true;
        self.m.suppressed -= 1;
        Some(result)
    }

    /// Reports a difference.
    pub(super) fn compare(
        &mut self,
        code: &Code,
        expected: &Result<Value, Stop>,
        found: &Result<RunOutcome, Stop>,
    ) {
        let text = |vm: &Self, value: &Value| {
            String::from_utf8_lossy(&describe(vm.p, value, Form::Raw)).into_owned()
        };
        let [expected, found] = match (expected, found) {
            // After an exit, the interpreter computes the rest.
            (_, Ok(RunOutcome::Exit(_))) => return,
            (Ok(expected), Ok(RunOutcome::Done(found))) => {
                [text(self, expected), text(self, found)]
            }
            (Err(_), Err(_)) => return,
            (Ok(expected), Err(_)) => [text(self, expected), "an error".to_owned()],
            (Err(_), Ok(RunOutcome::Done(found))) => ["an error".to_owned(), text(self, found)],
        };
        if expected != found {
            let span = code
                .body
                .and_then(|body| self.p.bodies.find(body))
                .map_or(crate::source::Span::NOWHERE, |body| body.span);
            let line = format!("engines differ: {expected} interpreted, {found} compiled");
            self.emit(Severity::InternalError, span, line.into_bytes());
        }
    }

    /// Whether code has no effect except its result.
    fn is_pure(&self, code: &Code) -> bool {
        if let Some(pure) = code.tier.pure.get() {
            return *pure;
        }
        let pure = code.ops.iter().all(|op| match op {
            Op::Call { f, .. } => match self.m.targets.get(f.0 as usize) {
                Some(Callee::Script(callee)) => {
                    std::ptr::eq(&raw const **callee, code)
                        || callee.tier.pure.get().copied().unwrap_or(false)
                }
                _ => false,
            },
            Op::Move { .. }
            | Op::Pass { .. }
            | Op::Const { .. }
            | Op::Global { .. }
            | Op::Capture { .. }
            | Op::Check { .. }
            | Op::Jump { .. }
            | Op::JumpIf { .. }
            | Op::JumpIfNot { .. }
            | Op::SkipUnset { .. }
            | Op::JumpC { .. }
            | Op::JumpCK { .. }
            | Op::JumpI { .. }
            | Op::JumpIK { .. }
            | Op::AddC { .. }
            | Op::SubC { .. }
            | Op::MulC { .. }
            | Op::DivC { .. }
            | Op::ModC { .. }
            | Op::AddCK { .. }
            | Op::SubCK { .. }
            | Op::MulCK { .. }
            | Op::DivCK { .. }
            | Op::ModCK { .. }
            | Op::AddI { .. }
            | Op::SubI { .. }
            | Op::MulI { .. }
            | Op::AddIK { .. }
            | Op::AddD { .. }
            | Op::SubD { .. }
            | Op::MulD { .. }
            | Op::DivD { .. }
            | Op::CmpC { .. }
            | Op::CmpI { .. }
            | Op::CmpD { .. }
            | Op::Binary { .. }
            | Op::Unary { .. }
            | Op::Not { .. }
            | Op::Append { .. }
            | Op::HasField { .. }
            | Op::JumpHas { .. }
            | Op::JumpSame { .. }
            | Op::IndexVector { .. }
            | Op::Slice { .. }
            | Op::Coerce { .. }
            | Op::Is { .. }
            | Op::NewVector { .. }
            | Op::NewList { .. }
            | Op::Return { .. }
            | Op::End
            | Op::Fail { .. } => true,
            _ => false,
        });
        // A function that was never called is checked again.
        let undecided = code.ops.iter().any(|op| match op {
            Op::Call { f, .. } => match self.m.targets.get(f.0 as usize) {
                Some(Callee::Script(callee)) => callee.tier.pure.get().is_none(),
                None | Some(Callee::Unknown) => true,
                _ => false,
            },
            _ => false,
        });
        if !undecided {
            let _ = code.tier.pure.set(pure);
        }
        pure
    }
}
