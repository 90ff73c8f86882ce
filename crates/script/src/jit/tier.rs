//! Execution counters of code, and the transitions to machine code and back.

use std::cell::{Cell, OnceCell};
use std::rc::Rc;

use super::Engine;
use super::machine::{Compiled, Context, Memory, RunOutcome, compile};
use crate::code::{Code, Op};
use crate::evaluate::Stop;
use crate::value::{FuncValue, Value};
use crate::vm::{Callee, Frame, Vm, WINDOW};

/// Number of calls and loop iterations after which code is compiled.
const HOT: u32 = 500;

/// Maximum number of nested runs of machine code: deeper calls are interpreted, which uses no native stack.
const MAX_NESTED_RUNS: u32 = 500;

/// Execution counters and machine code of a body.
#[derive(Debug, Default)]
pub(crate) struct Tier {
    heat: Cell<u32>,
    /// Number of exits to the interpreter.
    exits: Cell<u32>,
    /// Number of further calls that are interpreted before machine code is entered again.
    wait: Cell<u32>,
    compiled: OnceCell<Option<Compiled>>,
    /// Whether running it has no effect except its result.
    pub(super) pure: OnceCell<bool>,
    /// Address at which other machine code may call it; zero if it may not.
    entry: Cell<usize>,
}

impl Tier {
    /// The address of `entry`, which machine code reads to call this code.
    pub(super) fn entry_address(&self) -> *const usize {
        self.entry.as_ptr()
    }

    pub(super) fn set_entry(&self, entry: usize) {
        self.entry.set(entry);
    }
}

/// Number of exits after which code is no longer called directly.
const MAX_DIRECT_EXITS: u32 = 100;

/// The state of the engine.
pub(crate) struct Jit {
    engine: Engine,
    hot: u32,
    /// Whether the interpreter is verifying a call.
    pub(super) verifying: bool,
    pub(super) on: bool,
    depth: u32,
    memory: Option<Rc<Memory>>,
    pub(super) context: Box<Context>,
}

impl Default for Jit {
    fn default() -> Self {
        Self {
            engine: Engine::Interp,
            hot: HOT,
            verifying: false,
            on: false,
            depth: 0,
            memory: None,
            context: Box::default(),
        }
    }
}

impl Jit {
    pub(super) fn set_heat(&mut self, heat: u32) {
        self.hot = heat;
    }

    pub(super) fn start(&mut self, engine: Engine) -> Result<(), &'static str> {
        if engine != Engine::Interp && self.memory.is_none() {
            self.memory = Memory::new();
            if self.memory.is_none() {
                return Err("machine code is not supported on this processor");
            }
        }
        self.engine = engine;
        self.on = engine != Engine::Interp;
        Ok(())
    }

    /// Whether machine code may call machine code directly.
    pub(super) fn calls_directly(&self) -> bool {
        self.engine == Engine::Jit
    }

    /// Whether anything is compiled.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.on
    }

    #[inline]
    pub(super) fn set_addresses(
        &mut self,
        stack: *mut Value,
        capacity: usize,
        globals: *const Value,
    ) {
        // The interpreter, which code may exit to, needs free cells after each frame.
        self.context.capacity = capacity.saturating_sub(WINDOW) as u64;
        self.context.stack = stack;
        self.context.globals = globals;
    }
}

impl Vm<'_> {
    /// Runs the topmost frame from `pc` as machine code, if its code is hot; returns its result. `None` if the
    /// interpreter is to continue, at the `pc` of the frame.
    pub(crate) fn run_hot(
        &mut self,
        code: &Rc<Code>,
        base: usize,
        pc: usize,
    ) -> Result<Option<Value>, Stop> {
        let Some(frame) = self.m.frames.last_mut() else { return Ok(None) };
        frame.pc = pc;
        if frame.keep {
            return Ok(None);
        }
        let Some(compiled) = self.compiled(code) else { return Ok(None) };
        let entry = if pc == 0 {
            0
        } else {
            match compiled.loops.iter().position(|at| *at as usize == pc) {
                Some(index) => index as u64 + 1,
                None => return Ok(None),
            }
        };
        self.run_tier(code, compiled, base, entry)
    }

    /// The machine code of hot code; compiles it when it gets hot.
    #[inline]
    fn compiled<'c>(&self, code: &'c Rc<Code>) -> Option<&'c Compiled> {
        let tier = &code.tier;
        let compiled = match tier.compiled.get() {
            Some(compiled) => compiled.as_ref()?,
            None => {
                let heat = tier.heat.get() + 1;
                tier.heat.set(heat);
                if heat < self.m.jit.hot && self.m.jit.engine != Engine::Verify {
                    return None;
                }
                let memory = self.m.jit.memory.as_ref()?;
                tier.compiled.get_or_init(|| compile(self, memory, code)).as_ref()?
            }
        };
        if self.m.jit.depth >= MAX_NESTED_RUNS {
            return None;
        }
        let wait = tier.wait.get();
        if wait > 0 {
            tier.wait.set(wait - 1);
            return None;
        }
        Some(compiled)
    }

    #[inline]
    fn run_tier(
        &mut self,
        code: &Rc<Code>,
        compiled: &Compiled,
        base: usize,
        entry: u64,
    ) -> Result<Option<Value>, Stop> {
        let expected = if self.m.jit.engine == Engine::Verify && entry == 0 {
            self.expected(code, compiled, base)
        } else {
            None
        };
        self.m.jit.verifying |= expected.is_some();
        self.m.jit.depth += 1;
        let ran = self.run_compiled(compiled, base, entry);
        self.m.jit.depth -= 1;
        if let Some(expected) = expected {
            self.m.jit.verifying = false;
            self.compare(code, &expected, &ran);
        }
        match ran? {
            RunOutcome::Done(value) => Ok(Some(value)),
            RunOutcome::Exit(pc) => {
                let exits = code.tier.exits.get() + 1;
                code.tier.exits.set(exits);
                // Code that exits often is entered with increasing delay.
                code.tier.wait.set((exits - 1).min(10_000));
                if let Some(frame) = self.m.frames.last_mut() {
                    frame.pc = pc;
                }
                Ok(None)
            }
        }
    }

    /// Runs the instruction before `pc`, a call of a function, for machine code.
    pub(super) fn call_from_machine_code(
        &mut self,
        code: &Code,
        base: usize,
        pc: usize,
    ) -> Result<(), Stop> {
        if let Some(frame) = self.m.frames.last_mut() {
            frame.pc = pc;
        }
        let site = code.sites[pc - 1];
        let (d, value) = match code.ops[pc - 1] {
            Op::Call { d, b, n, f } => {
                let known = match self.m.targets.get(f.0 as usize) {
                    Some(Callee::Unknown) | None => None,
                    Some(target) => Some(target.clone()),
                };
                let target = match known {
                    Some(target) => target,
                    None => self.callee(f),
                };
                let first = base + usize::from(b);
                let n = usize::from(n);
                if let Callee::Native(native) = target {
                    return self.call_native_at(native, f, site, first, n, base + usize::from(d));
                }
                let value = match target {
                    Callee::Script(callee)
                        if callee
                            .body
                            .is_some_and(|body| self.p.bodies[body].params.len() == n) =>
                    {
                        self.call_code(&callee, first, n, f, None)?
                    }
                    Callee::Script(_) => {
                        let ty = self.p.functions[f].ty;
                        self.check_arguments(&FuncValue::new(f, ty), n, site)?;
                        let args = self.m.stack[first..first + n].to_vec();
                        self.call_at(f, None, &args, site)?
                    }
                    _ => {
                        let args = self.m.stack[first..first + n].to_vec();
                        self.call_at(f, None, &args, site)?
                    }
                };
                (d, value)
            }
            Op::CallValue { d, b, n, f } => {
                let Value::Func(func) = &self.m.stack[base + usize::from(f)] else {
                    return Err(self.error_at(site, "not a function"));
                };
                let func = Rc::clone(func);
                let n = usize::from(n);
                self.check_arguments(&func, n, site)?;
                let first = base + usize::from(b);
                let value = match self.callee(func.func) {
                    Callee::Script(callee) => {
                        self.call_code(&callee, first, n, func.func, Some(func))?
                    }
                    _ => {
                        let args = self.m.stack[first..first + n].to_vec();
                        self.call_at(func.func, Some(&func), &args, site)?
                    }
                };
                (d, value)
            }
            _ => return Ok(()),
        };
        Value::put(&mut self.m.stack[base + usize::from(d)], value);
        Ok(())
    }

    /// Calls a script function whose arguments are in the registers where its frame begins.
    fn call_code(
        &mut self,
        callee: &Rc<Code>,
        base: usize,
        n: usize,
        func: crate::ids::FuncId,
        value: Option<Rc<FuncValue>>,
    ) -> Result<Value, Stop> {
        self.enter(callee, base)?;
        let floor = self.m.frames.len();
        let compiled = self.compiled(callee).filter(|compiled| compiled.params <= n);
        if compiled.is_none() {
            let (from, end) = (base + n, base + callee.registers);
            if from < end {
                self.m.stack[from..end].fill(Value::Unset);
            }
        }
        self.m.frames.push(Frame {
            code: Rc::clone(callee),
            base,
            pc: 0,
            dest: 0,
            value,
            func: Some(func),
            keep: false,
        });
        if let Some(compiled) = compiled
            && let Some(result) = self.run_tier(callee, compiled, base, 0)?
        {
            self.m.frames.pop();
            return Ok(result);
        }
        self.interpret(floor)
    }

    /// Runs the topmost frame, which machine code exited at `pc`, in the interpreter to its end.
    pub(super) fn finish_in_interpreter(&mut self, pc: usize) -> Result<Value, Stop> {
        let floor = self.m.frames.len().saturating_sub(1);
        if let Some(frame) = self.m.frames.last_mut() {
            frame.pc = pc;
            let tier = &frame.code.tier;
            tier.exits.set(tier.exits.get() + 1);
            if tier.exits.get() > MAX_DIRECT_EXITS {
                tier.entry.set(0);
            }
        }
        self.interpret(floor)
    }
}
