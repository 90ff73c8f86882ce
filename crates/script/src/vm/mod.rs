//! The interpreter: globals, frames, calls.
//!
//! A [`Machine`] has the state of a run: globals, compiled code, the event queue. A [`Vm`] borrows a
//! machine and its program for the duration of a call. Calls between script functions do not recurse
//! in the interpreter; built-in functions that call back, hooks and `&default` functions start a
//! nested interpreter loop on top of the existing frames.

pub mod budget;
mod call_profile;
mod calls;
mod convert;
mod copy;
mod errors;
mod event_trace;
pub mod events;
mod expire;
pub(crate) mod files;
mod index;
mod init;
mod operators;
pub mod profile;
mod run;
mod statements;
mod step;
pub mod strings;
mod tables;
mod when;

use std::cell::Cell;
use std::collections::HashSet;
use std::rc::Rc;

use crate::bif::{Native, Natives};
use crate::code::{Code, Reg};
use crate::evaluate::{Constant, Evaluate, Init, Stop};
use crate::ids::{BodyId, ExprId, FuncId, GlobalId, Id as _, IdMap, IdSet, Name, TypeId};
use crate::program::Program;
use crate::value::{FuncValue, Value};

#[cfg(feature = "jit")]
pub(crate) use calls::WINDOW;
pub use convert::{parse_addr, parse_port, parse_subnet};
pub use events::{Queue, QueuedEvent};
#[cfg(feature = "jit")]
pub(crate) use step::Flow;

/// Maximum number of argument vectors kept for reuse.
const SPARE_ARGS: usize = 64;

/// The state of a run.
pub struct Machine {
    pub(crate) globals: Vec<Value>,
    /// Code of bodies, by [`BodyId`].
    pub(crate) codes: Vec<Option<Rc<Code>>>,
    /// Code of expressions outside of functions.
    pub(crate) exprs: IdMap<ExprId, Rc<Code>>,
    /// Resolved callees, by [`FuncId`].
    pub(crate) targets: Vec<Callee>,
    pub(crate) stack: Vec<Value>,
    pub(crate) frames: Vec<Frame>,
    pub(crate) max_depth: usize,
    /// Maximum length of a string that scripts create, in bytes.
    pub(crate) max_string: usize,
    /// The budget of handlers, if one is set.
    pub(crate) budget: Option<budget::BudgetState>,
    pub(crate) natives: Natives,
    /// Initial values of record fields, by record type.
    pub(crate) templates: Vec<Option<Rc<init::Template>>>,
    /// Globals whose values are copied into templates.
    pub(crate) defaulted: IdSet<GlobalId>,
    /// For two record types, the source field of each target field.
    pub(crate) conversions: IdMap<(TypeId, TypeId), Rc<Vec<Option<usize>>>>,
    pub(crate) queue: Queue,
    /// Empty vectors for arguments, kept for reuse.
    pub(crate) args: Vec<Vec<Value>>,
    /// A buffer for text that built-in functions build.
    pub(crate) text: Vec<u8>,
    /// Network time.
    pub(crate) now: f64,
    /// Groups of event handlers that are disabled.
    pub(crate) disabled_groups: HashSet<String>,
    pub(crate) disabled_modules: IdSet<Name>,
    pub(crate) whens: when::Triggers,
    pub(crate) out: files::Output,
    /// Whether the run has begun: `zeek_init` is queued and statements at file level have run.
    pub(crate) running: bool,
    pub(crate) terminating: bool,
    pub(crate) stop_requested: bool,
    /// Whether a handler of a `reporter_*` event runs: its messages raise no such events.
    pub(crate) reporting: bool,
    /// Nesting depth of sections in which messages are suppressed.
    pub(crate) suppressed: u32,
    /// State of the modules of built-in functions.
    pub(crate) state: crate::bif::State,
    /// Native calls in progress: expression and function.
    pub(crate) native: Vec<(ExprId, FuncId)>,
    /// Whether the error that is being returned means that a `when` condition waits for an answer.
    pub(crate) delayed: bool,
    /// Whether the error that is being returned is a numeric overflow in a conversion.
    pub(crate) overflowed: bool,
    /// Network time of the current event.
    pub(crate) event_time: f64,
    /// `new_event`, if it has a body: it runs before each other event.
    pub(crate) observer: Option<FuncId>,
    /// The trace of `--event-trace`.
    pub(crate) event_trace: Option<Box<event_trace::EventTrace>>,
    /// Executions of each statement, if coverage is requested.
    pub(crate) runs: Vec<u64>,
    pub(crate) coverage: Option<crate::coverage::Coverage>,
    /// Whether `new_event` has a body or events are traced.
    pub(crate) is_watched: bool,
    /// Whether events without a body are raised.
    pub(crate) generate_all: bool,
    /// The first argument of the current event: messages name its connection.
    pub(crate) subject: Value,
    /// The UID of the connection that the event is about, if none of its arguments is that connection.
    pub(crate) subject_uid: Option<gannet_base::Uid>,
    /// Types of vectors, by element type.
    pub(crate) vectors: IdMap<TypeId, TypeId>,
    /// Types of sets, by index types.
    pub(crate) sets: IdMap<Vec<TypeId>, TypeId>,
    /// The profile of `--profile-scripts`.
    pub(crate) profile: Option<Box<profile::Profile>>,
    /// Record types that have had values.
    pub(crate) instantiated: IdSet<TypeId>,
    /// The JIT compiler.
    pub(crate) jit: crate::jit::Jit,
    /// Records the effects of scripts while they are parsed, for the cache.
    pub(crate) recorder: Option<Box<crate::cache::Recorder>>,
    /// Frees cycles of values. The last field, so that all others are dropped before it.
    _cycles: crate::value::cycles::CollectOnDrop,
}

/// The resolved target of a call.
#[derive(Clone)]
pub(crate) enum Callee {
    /// Not resolved yet.
    Unknown,
    /// A function with a body.
    Script(Rc<Code>),
    /// A built-in function.
    Native(Native),
    /// A hook or event: all its bodies.
    Bodies,
    /// No body: the function is only declared.
    Missing,
}

/// A call of a script function in progress.
pub(crate) struct Frame {
    pub code: Rc<Code>,
    pub base: usize,
    /// Index of the instruction at which the frame continues.
    pub pc: usize,
    /// The caller's register for the result.
    pub dest: Reg,
    /// The function value that was called, with its captures.
    pub value: Option<Rc<FuncValue>>,
    pub func: Option<FuncId>,
    /// Whether the registers keep their values when the frame ends: their owner is a `when`.
    pub keep: bool,
}

/// A machine and its program.
pub struct Vm<'a> {
    /// The program.
    pub p: &'a mut Program,
    /// The machine.
    pub m: &'a mut Machine,
}

impl Default for Machine {
    fn default() -> Self {
        Self {
            globals: Vec::new(),
            codes: Vec::new(),
            exprs: IdMap::default(),
            targets: Vec::new(),
            stack: Vec::new(),
            frames: Vec::new(),
            max_depth: 1000,
            max_string: strings::MAX_STRING,
            budget: None,
            natives: Natives::default(),
            templates: Vec::new(),
            defaulted: IdSet::default(),
            conversions: IdMap::default(),
            queue: Queue::default(),
            args: Vec::new(),
            text: Vec::new(),
            now: 0.0,
            disabled_groups: HashSet::new(),
            disabled_modules: IdSet::default(),
            whens: when::Triggers::default(),
            out: files::Output::default(),
            running: false,
            terminating: false,
            stop_requested: false,
            reporting: false,
            suppressed: 0,
            state: crate::bif::State::default(),
            native: Vec::new(),
            delayed: false,
            overflowed: false,
            event_time: 0.0,
            subject: Value::Unset,
            subject_uid: None,
            vectors: IdMap::default(),
            sets: IdMap::default(),
            observer: None,
            event_trace: None,
            runs: Vec::new(),
            coverage: None,
            is_watched: false,
            generate_all: false,
            profile: None,
            instantiated: IdSet::default(),
            jit: crate::jit::Jit::default(),
            recorder: None,
            _cycles: crate::value::cycles::CollectOnDrop,
        }
    }
}

impl Machine {
    /// A machine of an empty program.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the seeds from which random numbers, UIDs, hashes and the order of tables are derived.
    pub fn seed(&mut self, seeds: &crate::support::order::Seeds) {
        self.state.seed(seeds);
    }

    /// An empty vector for the arguments of a call or an event, whose allocation may be reused.
    #[inline]
    pub(crate) fn spare_args(&mut self) -> Vec<Value> {
        self.args.pop().unwrap_or_default()
    }

    /// Keeps a vector of arguments for reuse.
    #[inline]
    pub(crate) fn recycle(&mut self, mut args: Vec<Value>) {
        args.clear();
        if self.args.len() < SPARE_ARGS {
            self.args.push(args);
        }
    }

    /// Sets whether the run is in bare mode (`-b`).
    pub fn set_bare(&mut self, bare: bool) {
        self.state.bare = bare;
    }

    /// Sets whether scripts are prevented from starting processes and from changing files other than logs.
    pub fn set_sandbox(&mut self, sandbox: bool) {
        self.state.sandbox = sandbox;
    }

    /// Sets the maximum length of strings in bytes; [`strings::MAX_STRING`] by default.
    pub fn set_max_string(&mut self, bytes: usize) {
        self.max_string = bytes;
    }

    /// Sets the maximum number of open log files: 512 by default.
    pub fn set_max_open_logs(&mut self, files: usize) {
        self.state.log.set_max_open(files);
    }

    /// Sets the budget of every handler.
    pub fn set_budget(&mut self, budget: Option<budget::Budget>) {
        self.budget = budget.map(budget::BudgetState::new);
    }

    /// Starts the profile of scripts, which is written to standard error or the file `to` when the machine is dropped. Returns a flag
    /// that is set if it could not be written. A profile `of_calls` has Zeek's form, and is written to standard output or the file when
    /// the run ends.
    pub fn start_profile(&mut self, to: Option<String>, of_calls: bool) -> Rc<Cell<bool>> {
        let profile = profile::Profile::start(to, of_calls);
        let failed = profile.failed();
        self.profile = Some(Box::new(profile));
        failed
    }

    /// Starts the event trace, which is written to the file `path` when the run ends.
    ///
    /// # Errors
    /// Returns an error if the file cannot be created.
    pub fn trace_events(&mut self, path: &str) -> std::io::Result<()> {
        self.event_trace = Some(Box::new(event_trace::EventTrace::create(path)?));
        Ok(())
    }

    /// Whether a script called `terminate`.
    #[must_use]
    pub fn was_terminated(&self) -> bool {
        self.state.terminated
    }

    /// Redirects `print` to `sink`.
    pub fn set_output(&mut self, sink: Box<dyn std::io::Write>) {
        self.out.redirect(sink);
    }

    /// Flushes the output of scripts.
    pub fn flush(&mut self) {
        self.out.flush_all();
    }

    /// Starts recording the effects of scripts and the parser's file-system queries, for the cache.
    pub(crate) fn record(&mut self) {
        self.recorder = Some(Box::default());
        crate::cache::probe::begin();
    }

    /// Discards compiled code and everything derived from types; both are rebuilt on demand.
    pub(crate) fn discard_code(&mut self) {
        self.codes.clear();
        self.exprs.clear();
        self.targets.clear();
        self.templates.clear();
        self.conversions.clear();
    }

    /// Whether the state consists of values only: no frame, no queued event, no output, no disabled group.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.frames.is_empty()
            && self.queue.is_empty()
            && self.whens.is_empty()
            && self.disabled_groups.is_empty()
            && self.disabled_modules.is_empty()
            && !self.out.used
            && !self.running
            && !self.stop_requested
            && self.profile.is_none()
            && crate::value::order::hashes().is_none()
    }

    /// Whether the main loop has work at the next packet even if no timer is due and the packet raises no event.
    pub(crate) fn has_work(&self) -> bool {
        !self.queue.is_empty()
            || self.whens.has_work()
            || self.whens.has_lookups()
            || self.stop_requested
            || self.state.suspended > 0
            || self.state.is_polled()
            || crate::value::cycles::is_due()
    }

    /// Discards values that were read from a damaged cache.
    pub(crate) fn discard_state(&mut self) {
        self.globals.clear();
        self.queue = Queue::default();
        self.vectors.clear();
        self.sets.clear();
        self.instantiated.clear();
        self.state.metrics = crate::bif::telemetry::Metrics::default();
        crate::value::order::clear_optional();
    }

    /// Combines the machine with its program.
    pub fn with<'a>(&'a mut self, program: &'a mut Program) -> Vm<'a> {
        Vm { p: program, m: self }
    }
}

impl Vm<'_> {
    /// The value of a global; unset if it has none.
    #[must_use]
    pub fn global(&self, global: GlobalId) -> Value {
        self.m.globals.get(global.index()).cloned().unwrap_or_default()
    }

    /// The value of a global that is not set: a function value if it is a function, else an error.
    pub(crate) fn unset_global(&mut self, site: ExprId, global: GlobalId) -> Result<Value, Stop> {
        let data = &self.p.globals[global];
        if let crate::symbols::GlobalKind::Function(func) = data.kind {
            return Ok(Value::Func(FuncValue::new(func, data.ty)));
        }
        Err(self.error_at(site, "value used but not set"))
    }

    /// Changes a global.
    pub fn set_global(&mut self, global: GlobalId, value: Value) {
        if self.m.globals.len() <= global.index() {
            let len = self.p.globals.arena.len().max(global.index() + 1);
            self.m.globals.resize(len, Value::Unset);
            self.m.refresh();
        }
        if let Some(slot) = self.m.globals.get_mut(global.index()) {
            let old = std::mem::replace(slot, value);
            drop(old);
        }
        if self.m.defaulted.contains(&global) {
            self.m.defaulted.clear();
            self.m.templates.clear();
        }
    }

    /// Sets the arguments of scripts, the global `zeek_script_args`.
    pub fn set_script_args(&mut self, args: &[String]) {
        let Some(global) = self.find_global("zeek_script_args") else { return };
        let ty = self.p.globals[global].ty;
        let items = args.iter().map(Value::string).collect();
        self.set_global(global, Value::Vector(crate::value::Vector::new(ty, items)));
    }

    /// The global with a full name.
    #[must_use]
    pub fn find_global(&self, name: &str) -> Option<GlobalId> {
        self.p.globals.find(self.p.names.find(name)?)
    }

    /// The value of the global with a full name; unset if it has none.
    #[must_use]
    pub fn global_named(&self, name: &str) -> Value {
        self.find_global(name).map_or(Value::Unset, |global| self.global(global))
    }

    /// The type with a full name.
    #[must_use]
    pub fn type_named(&self, name: &str) -> Option<TypeId> {
        self.find_global(name).map(|global| self.p.globals[global].ty)
    }

    /// The enum value with a full name; unset if there is none.
    #[must_use]
    pub fn enum_named(&self, name: &str) -> Value {
        match self.find_global(name).map(|global| &self.p.globals[global]) {
            Some(crate::symbols::Global {
                kind: crate::symbols::GlobalKind::EnumValue(value),
                ty,
                ..
            }) => Value::Enum(*ty, *value),
            _ => Value::Unset,
        }
    }

    /// The function with a full name.
    #[must_use]
    pub fn function_named(&self, name: &str) -> Option<FuncId> {
        match self.p.globals[self.find_global(name)?].kind {
            crate::symbols::GlobalKind::Function(func) => Some(func),
            _ => None,
        }
    }

    /// The function value of the global with a full name, to which a script may have assigned another function.
    pub(crate) fn func_value(&self, name: &str) -> Option<Rc<FuncValue>> {
        if let Value::Func(func) = self.global_named(name) {
            return Some(func);
        }
        let func = self.function_named(name)?;
        Some(FuncValue::new(func, self.p.functions[func].ty))
    }

    /// The code of a body, compiled at its first use.
    pub(crate) fn code(&mut self, body: BodyId) -> Rc<Code> {
        let index = body.index();
        if self.m.codes.len() <= index {
            let len = self.p.bodies.len().max(index + 1);
            self.m.codes.resize(len, None);
        }
        if let Some(Some(code)) = self.m.codes.get(index) {
            return Rc::clone(code);
        }
        let code = Rc::new(crate::code::compile::compile_body(self.p, body));
        if let Some(slot) = self.m.codes.get_mut(index) {
            *slot = Some(Rc::clone(&code));
        }
        code
    }

    /// The code of an expression outside of functions, such as that of an attribute.
    pub(crate) fn expr_code(&mut self, expr: ExprId) -> Rc<Code> {
        if let Some(code) = self.m.exprs.get(&expr) {
            return Rc::clone(code);
        }
        let code = Rc::new(crate::code::compile::compile_expr(self.p, expr));
        self.m.exprs.insert(expr, Rc::clone(&code));
        code
    }

    /// The type of vectors of `element`.
    pub fn vector_of(&mut self, element: TypeId) -> TypeId {
        if let Some(ty) = self.m.vectors.get(&element) {
            return *ty;
        }
        let ty =
            self.p.types.add(crate::types::Type::Vector(element), crate::source::Span::NOWHERE);
        self.m.vectors.insert(element, ty);
        ty
    }

    /// The type of sets with these index types.
    pub fn set_of(&mut self, index: &[TypeId]) -> TypeId {
        if let Some(ty) = self.m.sets.get(index) {
            return *ty;
        }
        let nowhere = crate::source::Span::NOWHERE;
        let list = crate::types::ListType { types: index.to_vec(), pure: None };
        let list = self.p.types.add(crate::types::Type::List(list), nowhere);
        let table = crate::types::TableType { index: index.into(), value: None, list };
        let ty = self.p.types.add(crate::types::Type::Table(table), nowhere);
        self.m.sets.insert(index.to_vec(), ty);
        ty
    }

    /// Evaluates an expression outside of functions.
    ///
    /// # Errors
    /// Returns [`Stop`] if the expression has no value.
    pub fn eval(&mut self, expr: ExprId) -> Result<Value, Stop> {
        if let crate::ast::ExprKind::Literal(literal) = &self.p.exprs[expr].kind {
            return Ok(Value::literal(literal, self.p.exprs[expr].ty));
        }
        let code = self.expr_code(expr);
        self.execute(&code, &[], None, None)
    }
}

impl Machine {
    /// The value of an expression outside of functions, in the parser's form.
    fn constant(&mut self, program: &mut Program, expr: ExprId) -> Result<Constant, Stop> {
        let mut vm = self.with(program);
        let code = Rc::new(crate::code::compile::compile_expr(vm.p, expr));
        let value = vm.execute(&code, &[], None, None)?;
        if let Some(literal) = value.to_literal() {
            return Ok(Constant::Literal(literal));
        }
        if let Value::Table(table) = &value
            && vm.p.types.is_set(table.ty())
        {
            let mut elements = Vec::new();
            for key in table.keys() {
                let parts: Option<Vec<_>> =
                    crate::value::table::parts(&key).iter().map(Value::to_literal).collect();
                match parts {
                    Some(parts) => elements.push(parts),
                    None => return Ok(Constant::Other),
                }
            }
            return Ok(Constant::Set(elements));
        }
        Ok(Constant::Other)
    }
}

impl Evaluate for Machine {
    fn seeded_hash(&self, bytes: &[u8]) -> Option<u64> {
        let hashes = self.state.uids.is_deterministic().then_some(self.state.hashes)?;
        Some(hashes.hash128(bytes)[0])
    }

    fn evaluate(&mut self, program: &mut Program, expr: ExprId) -> Result<Constant, Stop> {
        if let Some(recorder) = &mut self.recorder {
            recorder.condition_begins();
        }
        let result = self.constant(program, expr);
        if let Some(recorder) = &mut self.recorder {
            recorder.condition_ends(program, expr, result.as_ref().ok());
        }
        result
    }

    fn initialize(
        &mut self,
        program: &mut Program,
        global: GlobalId,
        init: Init,
        expr: Option<ExprId>,
    ) -> Result<(), Stop> {
        self.with(program).initialize_global(global, init, expr)
    }

    fn record_extended(&mut self, program: &mut Program, ty: TypeId, from: usize) {
        self.with(program).extend_records(ty, from);
    }

    fn attributes_changed(&mut self, program: &mut Program, global: GlobalId) {
        let mut vm = self.with(program);
        if let Value::Table(table) = vm.global(global) {
            let attrs = crate::code::compile::table_attrs(&vm.p.globals[global].attrs);
            table.set_attrs(attrs);
            vm.watch_expiry(&table);
        }
    }

    fn function_changed(&mut self, _: &mut Program, func: FuncId) {
        if let Some(target) = self.targets.get_mut(func.index()) {
            *target = Callee::Unknown;
        }
    }

    fn checkpoint(&mut self) -> Option<(Vec<u8>, crate::cache::Recorder)> {
        // Discarded code is rebuilt on demand, as it is after this state was read from a cache.
        self.discard_code();
        let recorder = self.recorder.take()?;
        if recorder.uncacheable {
            return None;
        }
        Some((crate::cache::state(self)?, *recorder))
    }

    fn describe_global(&mut self, program: &mut Program, global: GlobalId) -> Option<Vec<u8>> {
        let vm = self.with(program);
        let value = vm.global(global);
        value.is_set().then(|| {
            crate::value::describe::describe(vm.p, &value, crate::value::describe::Form::Raw)
        })
    }
}
