//! Machine code in memory, and the functions that it calls.
//!
//! # Why this is sound
//!
//! Compiled functions run only through [`Vm::run_compiled`], which passes the address of the [`Vm`] that it was
//! called on, borrowed exclusively while the function runs, and that of the machine's [`Context`]. Only machine
//! code calls the functions below, with these addresses. While one of them runs, nothing else uses the `Vm`:
//! machine code waits for its return, and the caller of `run_compiled` has lent the borrow. The address of the
//! [`Code`] is that of the code whose [`Tier`](super::Tier) owns the compiled function; the caller of a frame
//! holds a counted reference to it.
//!
//! Cells: machine code reads and writes only cells of the current frame, at `stack + 16 * (base + register)`.
//! [`Vm::enter`] has reserved all registers of the frame; the context holds the address of the stack, which
//! [`Jit::set_addresses`](super::Jit::set_addresses) updates after each growth, and machine code reloads it
//! after each call. Every cell of the stack is a valid [`Value`] at any time. Machine code writes the tag and
//! the number of the kinds in [`super::layout`], whose layout `repr(u8)` fixes and [`layout_holds`] checks when
//! the engine starts. It copies cells bitwise only if the tags show that neither owns memory, and moves a
//! result to the context bitwise, leaving an unset cell. Globals are only read, below their number at compile
//! time, which never decreases. Constants are read from the code, which is immutable.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::mem::{ManuallyDrop, offset_of};
use std::rc::Rc;

use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{Module, default_libcall_names};

use super::emit::{self, DONE, ERROR, JUMP, Source};
use super::flow::Flow;
use super::layout::{self, Addresses};
use crate::code::{Code, Op};
use crate::evaluate::Stop;
use crate::value::Value;
use crate::vm::{Flow as Step, Frame, Vm};

/// A compiled function: machine, context, base of the frame, entry.
type Entry = unsafe extern "C" fn(*mut Vm<'static>, *mut Context, u64, u64) -> u64;

/// State shared by machine code and the machine.
#[repr(C)]
pub(super) struct Context {
    pub stack: *mut Value,
    pub globals: *const Value,
    pub pc: u64,
    pub result: Value,
    light: *mut LightFrame,
    real: *mut LightFrame,
    calls_left: i64,
    pub capacity: u64,
    pub stop: Option<Stop>,
    lights: Vec<LightFrame>,
}

/// A call between compiled functions that has no frame of the interpreter yet.
#[derive(Clone, Copy)]
#[repr(C)]
struct LightFrame {
    code: *const Code,
    base: u64,
    caller: u64,
    func: u64,
}

/// Maximum number of light frames.
const MAX_LIGHT_FRAMES: usize = 1000;

const _: () = {
    assert!(offset_of!(Context, stack) == layout::context::STACK as usize);
    assert!(offset_of!(Context, globals) == layout::context::GLOBALS as usize);
    assert!(offset_of!(Context, pc) == layout::context::PC as usize);
    assert!(offset_of!(Context, result) == layout::context::RESULT as usize);
    assert!(offset_of!(Context, light) == layout::context::LIGHT as usize);
    assert!(offset_of!(Context, real) == layout::context::REAL as usize);
    assert!(offset_of!(Context, calls_left) == layout::context::CALLS_LEFT as usize);
    assert!(offset_of!(Context, capacity) == layout::context::CAPACITY as usize);
    assert!(offset_of!(LightFrame, code) == layout::light::CODE as usize);
    assert!(offset_of!(LightFrame, base) == layout::light::BASE as usize);
    assert!(offset_of!(LightFrame, caller) == layout::light::CALLER as usize);
    assert!(offset_of!(LightFrame, func) == layout::light::FUNC as usize);
    assert!(size_of::<LightFrame>() == layout::light::SIZE as usize);
    assert!(size_of::<Value>() == layout::CELL_SIZE);
};

impl Default for Context {
    fn default() -> Self {
        let none = LightFrame { code: std::ptr::null(), base: 0, caller: 0, func: 0 };
        let mut lights = vec![none; MAX_LIGHT_FRAMES];
        let first = lights.as_mut_ptr();
        Self {
            stack: std::ptr::null_mut(),
            globals: std::ptr::null(),
            pc: 0,
            result: Value::Unset,
            light: first,
            real: first,
            calls_left: 0,
            capacity: 0,
            stop: None,
            lights,
        }
    }
}

/// The memory of all compiled functions of a machine.
pub(super) struct Memory {
    module: RefCell<ManuallyDrop<JITModule>>,
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the module is not used again.
        let module = unsafe { ManuallyDrop::take(self.module.get_mut()) };
        // SAFETY: each compiled function holds a reference to this memory, so none exists. None runs either:
        // its caller holds it.
        unsafe { module.free_memory() };
    }
}

/// A compiled function.
pub(super) struct Compiled {
    entry: Entry,
    /// Loop headers at which it can be entered.
    pub loops: Vec<u32>,
    /// The number of parameters.
    pub params: usize,
    _memory: Rc<Memory>,
}

impl std::fmt::Debug for Compiled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Compiled").field("loops", &self.loops).finish_non_exhaustive()
    }
}

impl Memory {
    /// Memory for this processor; `None` if machine code for it is not supported.
    pub(super) fn new() -> Option<Rc<Self>> {
        if size_of::<usize>() != 8 || cfg!(target_endian = "big") || !layout_holds() {
            return None;
        }
        let module = JITModule::new(JITBuilder::with_isa(processor()?, default_libcall_names()));
        Some(Rc::new(Self { module: RefCell::new(ManuallyDrop::new(module)) }))
    }
}

fn processor() -> Option<OwnedTargetIsa> {
    let mut flags = settings::builder();
    let verify = if cfg!(debug_assertions) { "true" } else { "false" };
    for (name, value) in [("opt_level", "speed"), ("is_pic", "false"), ("enable_verifier", verify)]
    {
        flags.set(name, value).ok()?;
    }
    cranelift_native::builder().ok()?.finish(settings::Flags::new(flags)).ok()
}

/// Whether cells have the layout of [`super::layout`].
fn layout_holds() -> bool {
    let plain = [
        (Value::Unset, layout::UNSET),
        (Value::Bool(true), layout::BOOL),
        (Value::Int(-2), 2),
        (Value::Count(5), 3),
        (Value::Double(2.5), 4),
        (Value::Time(3.5), 5),
        (Value::Interval(4.5), 6),
        (Value::string("short"), layout::LAST_PLAIN),
    ];
    plain.iter().all(|(value, tag)| {
        let at = std::ptr::from_ref(value).cast::<u8>();
        // SAFETY: an enum with `repr(u8)` begins with its tag.
        let same = unsafe { at.read() } == *tag;
        same && layout::bits_of(value).is_none_or(|bits| match value {
            // SAFETY: a `bool` directly follows the tag.
            Value::Bool(_) => u64::from(unsafe { at.add(1).read() }) == bits,
            // SAFETY: a number of eight bytes follows at its alignment.
            _ => bits == unsafe { at.add(layout::NUMBER as usize).cast::<u64>().read() },
        })
    }) && Value::string("a string that is long").owns_memory()
        && !Value::string("short").owns_memory()
}

/// Compiles code; `None` if it is too large.
pub(super) fn compile(vm: &Vm<'_>, memory: &Rc<Memory>, code: &Code) -> Option<Compiled> {
    let flow = Flow::new(vm.p, code)?;
    let source = Source {
        program: vm.p,
        code,
        flow: &flow,
        addresses: Addresses {
            copy: copy as *const () as usize,
            put_number: put_number as *const () as usize,
            clear: clear as *const () as usize,
            take_result: take_result as *const () as usize,
            pop: pop as *const () as usize,
            resume: resume as *const () as usize,
            step: address,
        },
        globals: vm.m.globals.len(),
        targets: if vm.m.jit.calls_directly() { &vm.m.targets } else { &[] },
    };
    let mut module = memory.module.borrow_mut();
    let mut context = module.make_context();
    let plain = module.make_signature();
    context.func.signature = emit::signature(plain.clone());
    let mut frontend = FunctionBuilderContext::new();
    let mut builder = FunctionBuilder::new(&mut context.func, &mut frontend);
    let loops = emit::emit(&mut builder, &plain, &source);
    builder.seal_all_blocks();
    builder.finalize(module.target_config());
    let id = module.declare_anonymous_function(&context.func.signature).ok()?;
    if let Err(error) = module.define_function(id, &mut context) {
        debug_assert!(false, "{error:?}\n{}", context.func.display());
        return None;
    }
    module.finalize_definitions().ok()?;
    // SAFETY: the function was made for this signature.
    let entry =
        unsafe { std::mem::transmute::<*const u8, Entry>(module.get_finalized_function(id)) };
    code.tier.set_entry(entry as *const () as usize);
    Some(Compiled { entry, loops, params: flow.params.len(), _memory: Rc::clone(memory) })
}

/// Outcome of a run of machine code.
pub(super) enum RunOutcome {
    /// The frame has ended.
    Done(Value),
    /// The interpreter continues at this instruction.
    Exit(usize),
}

impl Vm<'_> {
    /// Runs a compiled function on the topmost frame, which begins at `base`.
    pub(super) fn run_compiled(
        &mut self,
        compiled: &Compiled,
        base: usize,
        entry: u64,
    ) -> Result<RunOutcome, Stop> {
        self.m.refresh();
        let depth = self.m.max_depth.saturating_sub(self.m.frames.len());
        let context = &mut *self.m.jit.context;
        // Every light frame has a frame of the interpreter here, because each call out of machine code creates
        // them.
        let (light, left) = (context.light, context.calls_left);
        let used = (light.addr() - context.lights.as_ptr().addr()) / size_of::<LightFrame>();
        context.calls_left = depth.min(MAX_LIGHT_FRAMES - used) as i64;
        let context = std::ptr::from_mut(context);
        let vm = std::ptr::from_mut(self).cast::<Vm<'static>>();
        // SAFETY: see the module: `self` and its context are borrowed for the call.
        let status = unsafe { (compiled.entry)(vm, context, base as u64, entry) };
        let context = &mut *self.m.jit.context;
        (context.light, context.real, context.calls_left) = (light, light, left);
        match status as i64 {
            DONE => Ok(RunOutcome::Done(std::mem::take(&mut context.result))),
            ERROR => Err(context.stop.take().unwrap_or(Stop::Error)),
            _ => Ok(RunOutcome::Exit(context.pc as usize)),
        }
    }
}

/// Copies a value.
///
/// # Safety
/// Both are addresses of values; nothing else refers to `to`.
unsafe extern "C" fn copy(to: *mut Value, from: *const Value) {
    // SAFETY: by the contract.
    let value = unsafe { (*from).clone() };
    // SAFETY: by the contract. The old value is dropped after the new one is stored.
    Value::put(unsafe { &mut *to }, value);
}

/// Stores a number in a cell.
///
/// # Safety
/// `to` is the address of a value that nothing else refers to.
unsafe extern "C" fn put_number(to: *mut Value, tag: u64, bits: u64) {
    // SAFETY: by the contract.
    let old = unsafe { std::ptr::replace(to, layout::number(tag, bits)) };
    drop(old);
}

/// Unsets cells.
///
/// # Safety
/// `first` is the address of the first of `n` values that nothing else refers to.
unsafe extern "C" fn clear(first: *mut Value, n: u64) {
    for index in 0..n as usize {
        // SAFETY: by the contract.
        let old = unsafe { std::ptr::replace(first.add(index), Value::Unset) };
        drop(old);
    }
}

/// Moves the result of a call to a cell.
///
/// # Safety
/// Called by machine code: see the module.
unsafe extern "C" fn take_result(context: *mut Context, to: *mut Value) {
    // SAFETY: see the module: nothing else refers to the context or to the cell.
    let (to, context) = unsafe { (&mut *to, &mut *context) };
    Value::put(to, std::mem::take(&mut context.result));
}

/// Pops the frame of the interpreter that was made for the light frame that has just ended.
///
/// # Safety
/// Called by machine code: see the module.
unsafe extern "C" fn pop(vm: *mut Vm<'static>, _: *mut Context) {
    // SAFETY: see the module.
    let vm = unsafe { &mut *vm };
    vm.m.frames.pop();
    vm.m.jit.context.real = vm.m.jit.context.light;
}

/// Makes the interpreter continue the frame that directly called machine code exited; its result goes to the
/// context.
///
/// # Safety
/// Called by machine code: see the module.
unsafe extern "C" fn resume(vm: *mut Vm<'static>, _: u64, _: u64, _: u64) -> u64 {
    // SAFETY: see the module.
    let vm = unsafe { &mut *vm };
    vm.materialize_frames();
    let pc = vm.m.jit.context.pc as usize;
    let result = vm.finish_in_interpreter(pc);
    match result {
        Ok(value) => {
            let context = &mut *vm.m.jit.context;
            context.result = value;
            context.light = context.light.wrapping_sub(1);
            context.real = context.light;
            context.calls_left += 1;
            0
        }
        Err(stop) => status(vm, &Err(stop)),
    }
}

impl Vm<'_> {
    /// Creates frames of the interpreter for light frames.
    #[inline]
    fn materialize_frames(&mut self) {
        if self.m.jit.context.light != self.m.jit.context.real {
            self.materialize_light_frames();
        }
    }

    #[cold]
    fn materialize_light_frames(&mut self) {
        while self.m.jit.context.light != self.m.jit.context.real {
            // SAFETY: the address is between the first and the last light frame, which machine code has
            // initialized.
            let light = unsafe { *self.m.jit.context.real };
            self.m.jit.context.real = self.m.jit.context.real.wrapping_add(1);
            if let Some(caller) = self.m.frames.last_mut() {
                caller.pc = light.caller as usize;
            }
            // SAFETY: the address is that of a code that `Machine::targets` contained when the call was
            // compiled, and that `Machine::codes` owns as long as the machine exists: it comes from
            // `Rc::as_ptr`, and the reference count is incremented first.
            let code = unsafe {
                Rc::increment_strong_count(light.code);
                Rc::from_raw(light.code)
            };
            self.m.frames.push(Frame {
                code,
                base: light.base as usize,
                pc: 0,
                dest: 0,
                value: None,
                func: Some(crate::ids::FuncId(light.func as u32)),
                keep: false,
            });
        }
    }
}

/// A step of the interpreter, or a call: machine, code, base of the frame, next instruction.
type Call = unsafe extern "C" fn(*mut Vm<'static>, *const Code, u64, u64) -> u64;

#[inline(always)]
fn status(vm: &mut Vm<'_>, result: &Result<Step, Stop>) -> u64 {
    match result {
        Ok(Step::Next) => 0,
        Ok(Step::Jump(_)) => JUMP as u64,
        // Instructions that are run as a step never end a frame.
        Ok(Step::Leave(_)) => ERROR as u64,
        Err(stop) => {
            vm.m.jit.context.stop = Some(*stop);
            ERROR as u64
        }
    }
}

/// Separate functions for frequent instructions: the compiler keeps one match arm in each.
macro_rules! steps {
    ($($name:ident: $pattern:pat => $op:expr;)*) => {
        $(
            /// # Safety
            /// Called by machine code: see the module.
            unsafe extern "C" fn $name(
                vm: *mut Vm<'static>,
                code: *const Code,
                base: u64,
                pc: u64,
            ) -> u64 {
                // SAFETY: see the module.
                let (vm, code) = unsafe { (&mut *vm, &*code) };
                vm.materialize_frames();
                let pc = pc as usize;
                let $pattern = code.ops[pc - 1] else { return ERROR as u64 };
                let result = vm.step(code, base as usize, pc, $op);
                status(vm, &result)
            }
        )*
    };
}

steps! {
    field: Op::Field { d, r, i } => Op::Field { d, r, i };
    path: Op::Path { d, r, i, j } => Op::Path { d, r, i, j };
    set_field: Op::SetField { r, i, s } => Op::SetField { r, i, s };
    has_field: Op::HasField { d, r, i } => Op::HasField { d, r, i };
    jump_has: Op::JumpHas { r, i, is_set, to } => Op::JumpHas { r, i, is_set, to };
    jump_same: Op::JumpSame { a, b, is_same, to } => Op::JumpSame { a, b, is_same, to };
    jump_in: Op::JumpIn { t, k, n, is_in, to } => Op::JumpIn { t, k, n, is_in, to };
    index_table: Op::IndexTable { d, t, k, n } => Op::IndexTable { d, t, k, n };
    set_table: Op::SetTable { t, k, n, s } => Op::SetTable { t, k, n, s };
    in_table: Op::InTable { d, t, k, n } => Op::InTable { d, t, k, n };
    index_vector: Op::IndexVector { d, v, i } => Op::IndexVector { d, v, i };
    set_vector: Op::SetVector { v, i, s } => Op::SetVector { v, i, s };
    next_entry: Op::NextEntry { w, k, n, v, to } => Op::NextEntry { w, k, n, v, to };
    next_item: Op::NextItem { w, k, v, to } => Op::NextItem { w, k, v, to };
    set_global: Op::SetGlobal { g, s } => Op::SetGlobal { g, s };
    binary: Op::Binary { op, d, a, b } => Op::Binary { op, d, a, b };
    is_in: Op::In { d, a, b } => Op::In { d, a, b };
    add_to: Op::AddTo { d, a, b } => Op::AddTo { d, a, b };
    add_key: Op::AddKey { t, k, n } => Op::AddKey { t, k, n };
    delete_key: Op::DeleteKey { t, k, n } => Op::DeleteKey { t, k, n };
    new_record: Op::NewRecord { d, b, plan } => Op::NewRecord { d, b, plan };
    unary: Op::Unary { op, d, a } => Op::Unary { op, d, a };
    append: Op::Append { d, s } => Op::Append { d, s };
}

/// Any other instruction.
///
/// # Safety
/// Called by machine code: see the module.
unsafe extern "C" fn other(vm: *mut Vm<'static>, code: *const Code, base: u64, pc: u64) -> u64 {
    // SAFETY: see the module.
    let (vm, code) = unsafe { (&mut *vm, &*code) };
    vm.materialize_frames();
    let pc = pc as usize;
    let result = vm.step(code, base as usize, pc, code.ops[pc - 1]);
    status(vm, &result)
}

/// A call of a script or built-in function.
///
/// # Safety
/// Called by machine code: see the module.
unsafe extern "C" fn call(vm: *mut Vm<'static>, code: *const Code, base: u64, pc: u64) -> u64 {
    // SAFETY: see the module.
    let (vm, code) = unsafe { (&mut *vm, &*code) };
    vm.materialize_frames();
    let result = vm.call_from_machine_code(code, base as usize, pc as usize);
    status(vm, &result.map(|()| Step::Next))
}

/// The function that runs an instruction.
fn address(op: &Op) -> usize {
    let function: Call = match op {
        Op::Call { .. } | Op::CallValue { .. } => call,
        Op::Field { .. } => field,
        Op::Path { .. } => path,
        Op::SetField { .. } => set_field,
        Op::HasField { .. } => has_field,
        Op::JumpHas { .. } => jump_has,
        Op::JumpSame { .. } => jump_same,
        Op::JumpIn { .. } => jump_in,
        Op::IndexTable { .. } => index_table,
        Op::SetTable { .. } => set_table,
        Op::InTable { .. } => in_table,
        Op::IndexVector { .. } => index_vector,
        Op::SetVector { .. } => set_vector,
        Op::NextEntry { .. } => next_entry,
        Op::NextItem { .. } => next_item,
        Op::SetGlobal { .. } => set_global,
        Op::Append { .. } => append,
        Op::Binary { .. } => binary,
        Op::In { .. } => is_in,
        Op::AddTo { .. } => add_to,
        Op::AddKey { .. } => add_key,
        Op::DeleteKey { .. } => delete_key,
        Op::NewRecord { .. } => new_record,
        Op::Unary { .. } => unary,
        _ => other,
    };
    function as *const () as usize
}
