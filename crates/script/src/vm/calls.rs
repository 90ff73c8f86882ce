//! Calls of functions, hooks and event bodies.

use std::rc::Rc;

use super::{Callee, Frame, Vm};
use crate::code::{Code, Reg};
use crate::evaluate::Stop;
use crate::ids::{BodyId, ExprId, FuncId, Id as _};
use crate::source::Span;
use crate::types::Flavor;
use crate::value::{FuncValue, Value};

/// Number of registers that an instruction can address.
pub(crate) const WINDOW: usize = 1 << Reg::BITS;

/// The registers of a frame and the cells after them. An instruction cannot address a register beyond these, so the Rust compiler
/// omits bounds checks.
pub(super) type Window = [Value; WINDOW];

/// The registers of the frame that begins at `base`, which [`Vm::enter`] allocated.
#[inline(always)]
pub(super) fn window(stack: &mut [Value], base: usize) -> &mut Window {
    let cells = &mut stack[base..base + WINDOW];
    cells.first_chunk_mut().unwrap_or_else(|| unreachable!("the slice is as long"))
}

impl Vm<'_> {
    /// Calls a function value. A hook returns false if a body ended in `break`, else true.
    ///
    /// # Errors
    /// Returns [`Stop`] if the function did not come to its end.
    pub fn call(&mut self, func: &Rc<FuncValue>, args: &[Value]) -> Result<Value, Stop> {
        let site = self.m.native.last().map_or(ExprId(u32::MAX), |(site, _)| *site);
        self.call_at(func.func, Some(func), args, site)
    }

    /// Calls a function.
    ///
    /// # Errors
    /// Returns [`Stop`] if the function did not come to its end.
    pub fn call_func(&mut self, func: FuncId, args: &[Value]) -> Result<Value, Stop> {
        self.call_at(func, None, args, ExprId(u32::MAX))
    }

    pub(crate) fn call_at(
        &mut self,
        func: FuncId,
        value: Option<&Rc<FuncValue>>,
        args: &[Value],
        site: ExprId,
    ) -> Result<Value, Stop> {
        match self.callee(func) {
            Callee::Script(code) => self.execute(&code, args, value.cloned(), Some(func)),
            Callee::Native(native) => self.call_native(native, func, site, args),
            Callee::Bodies => self.run_hook(func, args),
            Callee::Unknown | Callee::Missing => {
                let assigned = self
                    .p
                    .functions
                    .find(func)
                    .and_then(|function| function.global)
                    .map(|global| self.global(global));
                if let Some(Value::Func(assigned)) = assigned
                    && assigned.func != func
                {
                    self.check_arguments(&assigned, args.len(), site)?;
                    return self.call_at(assigned.func, Some(&assigned), args, site);
                }
                let name = self.function_name(func);
                if site.0 == u32::MAX {
                    self.emit(
                        crate::diagnostics::Severity::Error,
                        Span::NOWHERE,
                        format!("no function body for {name}").into_bytes(),
                    );
                    Err(Stop::Error)
                } else {
                    let callee = self.p.exprs.find(site).and_then(|expr| match &expr.kind {
                        crate::ast::ExprKind::Call(call) => Some(call.callee),
                        _ => None,
                    });
                    Err(self.error_at(callee.unwrap_or(site), "value used but not set"))
                }
            }
        }
    }

    /// Reports an error if the number of arguments does not fit the type of a function value.
    pub(crate) fn check_arguments(
        &mut self,
        func: &FuncValue,
        given: usize,
        site: ExprId,
    ) -> Result<(), Stop> {
        let params = self.p.types.params(func.ty);
        let variadic = params.len() == 1
            && params.first().is_some_and(|param| self.p.name(param.name) == "va_args");
        if variadic || given == params.len() {
            return Ok(());
        }
        let amount = if given > params.len() { "many" } else { "few" };
        Err(self.error_at(site, format!("too {amount} arguments for function call")))
    }

    pub(crate) fn function_name(&self, func: FuncId) -> String {
        self.p.functions.find(func).map_or_else(String::new, |f| self.p.name(f.name).to_owned())
    }

    /// Resolves what a call of a function runs.
    pub(crate) fn callee(&mut self, func: FuncId) -> Callee {
        let index = func.index();
        if self.m.targets.len() <= index {
            let len = self.p.functions.len().max(index + 1);
            self.m.targets.resize(len, Callee::Unknown);
        }
        if let Some(target) = self.m.targets.get(index)
            && !matches!(target, Callee::Unknown)
        {
            return target.clone();
        }
        let Some(function) = self.p.functions.find(func) else { return Callee::Missing };
        let target = match function.flavor {
            Flavor::Hook | Flavor::Event => Callee::Bodies,
            Flavor::Function => match function.bodies.first().copied() {
                Some(body) => Callee::Script(self.code(body)),
                None => match self.m.natives.find(self.p.name(function.name)) {
                    Some(native) => Callee::Native(native),
                    None => return Callee::Missing,
                },
            },
        };
        if let Some(slot) = self.m.targets.get_mut(index) {
            *slot = target.clone();
        }
        target
    }

    pub(crate) fn call_native(
        &mut self,
        native: crate::bif::Native,
        func: FuncId,
        site: ExprId,
        args: &[Value],
    ) -> Result<Value, Stop> {
        if self.m.recorder.is_some() {
            self.note_call(func, args);
        }
        self.m.native.push((site, func));
        let result = native(self, args);
        self.m.native.pop();
        self.check_returned(site, result)
    }

    #[cold]
    fn note_call(&mut self, func: FuncId, args: &[Value]) {
        let Some(function) = self.p.functions.find(func) else { return };
        let name = self.p.names.text(function.name);
        if let Some(recorder) = &mut self.m.recorder {
            recorder.call(name, args.first().map_or(&[], Value::str_bytes));
        }
    }

    /// Calls a built-in function with the `n` arguments at `first` in the stack, and moves them out of it: registers of arguments belong to
    /// the callee. Stores the result in the cell `to`.
    #[inline]
    pub(crate) fn call_native_at(
        &mut self,
        native: crate::bif::Native,
        func: FuncId,
        site: ExprId,
        first: usize,
        n: usize,
        to: usize,
    ) -> Result<(), Stop> {
        let mut args = self.m.args.pop().unwrap_or_default();
        args.extend(self.m.stack[first..first + n].iter_mut().map(std::mem::take));
        if self.m.recorder.is_some() {
            self.note_call(func, &args);
        }
        self.m.native.push((site, func));
        let result = native(self, &args);
        self.m.native.pop();
        args.clear();
        self.m.args.push(args);
        let result = self.check_returned(site, result);
        Value::put_result(&mut self.m.stack[to], result)
    }

    /// The result type of the built-in function that is running.
    #[must_use]
    pub fn result_type(&self) -> crate::ids::TypeId {
        self.m
            .native
            .last()
            .and_then(|(_, func)| self.p.functions.find(*func))
            .and_then(|func| self.p.types.func(func.ty))
            .map_or(crate::ids::TypeId::VOID, |func| func.result)
    }

    /// Runs code in a new topmost frame.
    pub(crate) fn execute(
        &mut self,
        code: &Rc<Code>,
        args: &[Value],
        value: Option<Rc<FuncValue>>,
        func: Option<FuncId>,
    ) -> Result<Value, Stop> {
        let mut args = args.iter();
        let n = args.len();
        self.execute_with(code, n, |_| args.next().cloned().unwrap_or_default(), value, func)
    }

    /// Runs code in a new topmost frame whose first `n` registers are set to `arg(0)`, `arg(1)` and so on.
    #[inline]
    fn execute_with(
        &mut self,
        code: &Rc<Code>,
        n: usize,
        mut arg: impl FnMut(usize) -> Value,
        value: Option<Rc<FuncValue>>,
        func: Option<FuncId>,
    ) -> Result<Value, Stop> {
        let base = self.stack_top();
        let floor = self.m.frames.len();
        self.enter(code, base)?;
        if self.m.jit.is_on() {
            // Machine code may have left numbers in these registers.
            self.clear(base, code.registers);
        }
        if let Some(registers) = self.m.stack.get_mut(base..base + n) {
            for (register, slot) in registers.iter_mut().enumerate() {
                Value::put(slot, arg(register));
            }
        }
        self.m.frames.push(Frame {
            code: Rc::clone(code),
            base,
            pc: 0,
            dest: 0,
            value,
            func,
            keep: false,
        });
        let result = self.run_frame(code, base, floor);
        if result.is_err() {
            self.unwind(floor);
        }
        result
    }

    /// Runs the topmost frame from its first instruction.
    fn run_frame(&mut self, code: &Rc<Code>, base: usize, floor: usize) -> Result<Value, Stop> {
        if self.m.jit.is_on()
            && let Some(result) = self.run_hot(code, base, 0)?
        {
            self.unwind(floor);
            return Ok(result);
        }
        self.interpret(floor)
    }

    /// Runs the condition, body or timeout of a `when` on the registers that these share.
    pub(crate) fn execute_on(
        &mut self,
        code: &Rc<Code>,
        registers: &mut [Value],
    ) -> Result<Value, Stop> {
        let base = self.stack_top();
        let floor = self.m.frames.len();
        self.enter(code, base)?;
        if self.m.jit.is_on() {
            self.clear(base, code.registers);
        }
        for (slot, value) in self.m.stack.iter_mut().skip(base).zip(registers.iter_mut()) {
            *slot = std::mem::take(value);
        }
        self.m.frames.push(Frame {
            code: Rc::clone(code),
            base,
            pc: 0,
            dest: 0,
            value: None,
            func: None,
            keep: true,
        });
        let result = self.interpret(floor);
        if result.is_err() {
            self.unwind(floor);
        }
        for (slot, value) in registers.iter_mut().zip(self.m.stack.iter_mut().skip(base)) {
            *slot = std::mem::take(value);
        }
        self.clear(base, code.registers);
        result
    }

    /// The stack index at which the next frame begins.
    pub(crate) fn stack_top(&self) -> usize {
        self.m.frames.last().map_or(0, |frame| frame.base + frame.code.registers)
    }

    /// Grows the stack for the registers of a frame and a [`Window`] after them, so that a frame that begins at any of the registers
    /// has a full window, too.
    #[inline]
    pub(crate) fn enter(&mut self, code: &Code, base: usize) -> Result<(), Stop> {
        let need = base + code.registers + WINDOW;
        if self.m.budget.is_none()
            && self.m.frames.len() < self.m.max_depth
            && need <= self.m.stack.len()
        {
            return Ok(());
        }
        self.enter_checked(code, need)
    }

    #[cold]
    fn enter_checked(&mut self, code: &Code, need: usize) -> Result<(), Stop> {
        if self.m.budget.is_some() {
            match (&mut self.m.budget, self.m.frames.is_empty()) {
                (Some(spent), true) => spent.begin(),
                _ => self.check_budget()?,
            }
        }
        if self.m.frames.len() >= self.m.max_depth {
            let body = code.body.and_then(|body| self.p.bodies.find(body));
            let func = body.and_then(|body| body.func);
            return Err(self.too_deep(func));
        }
        if self.m.stack.len() < need {
            let len = (need - WINDOW).max(256) * 2 + WINDOW;
            // Most of the stack is the window: growth by doubling would waste memory.
            self.m.stack.reserve_exact(len - self.m.stack.len());
            self.m.stack.resize(len, Value::Unset);
            self.m.refresh();
        }
        Ok(())
    }

    /// Reports that calls are nested too deeply, at the location of the innermost function.
    fn too_deep(&mut self, func: Option<FuncId>) -> Stop {
        let max = self.m.max_depth;
        let text = format!("maximum recursion depth {max} exceeded");
        let function = func.and_then(|func| self.p.functions.find(func));
        // A lambda has no declaration.
        let declared = function.and_then(|f| f.global).map(|global| self.p.globals[global].span);
        let body = function.and_then(|function| function.bodies.first());
        let body = body.map(|body| self.p.bodies[*body].span);
        let span = match (declared, body) {
            (Some(declared), Some(body))
                if declared.file != body.file || declared.start < body.start =>
            {
                declared
            }
            (Some(_), Some(body)) => body,
            (declared, _) => declared.unwrap_or(Span::NOWHERE),
        };
        self.function_error(span, text)
    }

    /// The expression of the current instruction of the topmost frame.
    #[must_use]
    pub fn current_site(&self) -> ExprId {
        self.m
            .frames
            .last()
            .and_then(|frame| frame.code.sites.get(frame.pc.saturating_sub(1)).copied())
            .unwrap_or(ExprId(u32::MAX))
    }

    /// Pops frames until `floor` of them remain.
    pub(crate) fn unwind(&mut self, floor: usize) {
        while self.m.frames.len() > floor {
            if let Some(frame) = self.m.frames.pop()
                && !frame.keep
            {
                self.clear(frame.base, frame.code.registers);
            }
        }
    }

    pub(crate) fn clear(&mut self, base: usize, registers: usize) {
        for index in base..base + registers {
            if let Some(slot) = self.m.stack.get_mut(index)
                && slot.is_set()
            {
                Value::put(slot, Value::Unset);
            }
        }
    }

    /// Whether neither the module nor an event group of a body is disabled.
    pub(crate) fn is_enabled(&self, body: BodyId) -> bool {
        if self.m.disabled_groups.is_empty() && self.m.disabled_modules.is_empty() {
            return true;
        }
        let body = &self.p.bodies[body];
        !self.m.disabled_modules.contains(&body.module)
            && !body.groups.iter().any(|group| self.m.disabled_groups.contains(&**group))
    }

    /// Runs one body of an event or hook with the canonical arguments.
    pub(crate) fn run_body(
        &mut self,
        func: FuncId,
        body: BodyId,
        args: &[Value],
    ) -> Result<Value, Stop> {
        let code = self.code(body);
        let arg = |register: usize| {
            let param = code.params.get(register)?;
            args.get(*param as usize).cloned()
        };
        let n = code.params.len();
        self.execute_with(&code, n, |register| arg(register).unwrap_or_default(), None, Some(func))
    }

    /// Like [`run_body`](Self::run_body), for the last body: moves the arguments out of `args`.
    pub(crate) fn run_last_body(
        &mut self,
        func: FuncId,
        body: BodyId,
        args: &mut [Value],
    ) -> Result<Value, Stop> {
        let code = self.code(body);
        let mut arg = |register: usize| {
            let param = code.params.get(register)?;
            args.get_mut(*param as usize).map(std::mem::take)
        };
        let n = code.params.len();
        self.execute_with(&code, n, |register| arg(register).unwrap_or_default(), None, Some(func))
    }

    /// Runs the bodies of a hook. Returns false if one ended in `break`.
    fn run_hook(&mut self, func: FuncId, args: &[Value]) -> Result<Value, Stop> {
        if self.m.frames.len() >= self.m.max_depth {
            // This error ends the caller; an error in a body does not.
            return Err(self.too_deep(Some(func)));
        }
        let count = self.p.functions[func].bodies.len();
        for index in 0..count {
            let Some(body) = self.p.functions[func].bodies.get(index).copied() else { break };
            if !self.is_enabled(body) {
                continue;
            }
            match self.run_body(func, body, args) {
                Ok(Value::Bool(false)) => return Ok(Value::Bool(false)),
                Ok(_) | Err(Stop::Error) => (),
                Err(stop) => return Err(stop),
            }
        }
        Ok(Value::Bool(true))
    }

    /// Whether an event is to be raised: it has an enabled body, or `generate_all_events` was called.
    #[must_use]
    pub fn is_raised(&self, event: FuncId) -> bool {
        self.m.generate_all || self.has_bodies(event)
    }

    /// Whether an event or hook has an enabled body.
    #[must_use]
    pub fn has_bodies(&self, func: FuncId) -> bool {
        self.p
            .functions
            .find(func)
            .is_some_and(|function| function.bodies.iter().any(|body| self.is_enabled(*body)))
    }
}
