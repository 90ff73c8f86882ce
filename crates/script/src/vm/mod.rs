//! The interpreter: globals, frames, calls.
//!
//! A [`Machine`] keeps the state of a run: globals, compiled code, the event queue. A [`Vm`] is a
//! machine together with its program, for the time of a call. Script functions call each other
//! without recursion of the interpreter; built-in functions that call back, hooks and `&default`
//! functions start a loop of their own above the existing frames.

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

/// Most vectors for arguments that are kept.
const SPARE_ARGS: usize = 64;

/// What keeps the state of a run.
pub struct Machine {
    pub(crate) globals: Vec<Value>,
    pub(crate) codes: Vec<Option<Rc<Code>>>,
    pub(crate) exprs: IdMap<ExprId, Rc<Code>>,
    pub(crate) targets: Vec<Callee>,
    pub(crate) stack: Vec<Value>,
    pub(crate) frames: Vec<Frame>,
    pub(crate) max_depth: usize,
    /// The longest string that scripts may make.
    pub(crate) max_string: usize,
    /// The budget of handlers, where they have one.
    pub(crate) budget: Option<budget::BudgetState>,
    pub(crate) natives: Natives,
    /// First values of the fields of records, by type.
    pub(crate) templates: Vec<Option<Rc<init::Template>>>,
    /// Globals whose values templates have.
    pub(crate) defaulted: IdSet<GlobalId>,
    pub(crate) conversions: IdMap<(TypeId, TypeId), Rc<Vec<Option<usize>>>>,
    pub(crate) queue: Queue,
    pub(crate) args: Vec<Vec<Value>>,
    /// A buffer for texts that built-in functions make.
    pub(crate) text: Vec<u8>,
    /// Network time.
    pub(crate) now: f64,
    /// Groups of event handlers that are disabled.
    pub(crate) disabled_groups: HashSet<String>,
    pub(crate) disabled_modules: IdSet<Name>,
    pub(crate) whens: when::Triggers,
    pub(crate) out: files::Output,
    /// Whether `zeek_init` was queued.
    pub(crate) running: bool,
    pub(crate) terminating: bool,
    pub(crate) stop_requested: bool,
    pub(crate) reporting: bool,
    pub(crate) swallow: u32,
    /// State of the built-in functions, by their modules.
    pub(crate) state: crate::bif::State,
    /// Native calls in progress: expression and function.
    pub(crate) native: Vec<(ExprId, FuncId)>,
    pub(crate) delayed: bool,
    /// Whether a number has not fitted its type, which is the error that is being returned.
    pub(crate) overflowed: bool,
    pub(crate) event_time: f64,
    /// `new_event`, where it has a body: it sees every other event.
    pub(crate) observer: Option<FuncId>,
    /// The trace of `--event-trace`.
    pub(crate) event_trace: Option<Box<event_trace::EventTrace>>,
    /// How often statements ran, where coverage is asked for.
    pub(crate) runs: Vec<u64>,
    pub(crate) coverage: Option<crate::coverage::Coverage>,
    /// Whether `new_event` or the trace sees every event.
    pub(crate) is_watched: bool,
    /// Whether events without a body are raised, too.
    pub(crate) generate_all: bool,
    /// The first argument of the current event: errors name its connection.
    pub(crate) subject: Value,
    /// The connection that the event is about, where no argument is.
    pub(crate) subject_uid: Option<gannet_base::Uid>,
    pub(crate) vectors: IdMap<TypeId, TypeId>,
    /// Types of sets by their index.
    pub(crate) sets: IdMap<Vec<TypeId>, TypeId>,
    /// The profile of `--profile-scripts`.
    pub(crate) profile: Option<Box<profile::Profile>>,
    /// Record types of which values were made.
    pub(crate) instantiated: IdSet<TypeId>,
    /// The engine.
    pub(crate) jit: crate::jit::Jit,
    /// Notes what scripts do while they are read, for the cache.
    pub(crate) recorder: Option<Box<crate::cache::Recorder>>,
    /// The last field: all others are dropped before it.
    _cycles: crate::value::cycles::AtEnd,
}

/// The kind of a called function.
#[derive(Clone)]
pub(crate) enum Callee {
    /// Not looked at yet.
    Unknown,
    /// A function with a body.
    Script(Rc<Code>),
    /// A built-in function.
    Native(Native),
    /// A hook or event: all its bodies.
    Bodies,
    /// Nothing: declared only.
    Missing,
}

/// A call of a script function in progress.
pub(crate) struct Frame {
    pub code: Rc<Code>,
    pub base: usize,
    /// Where it continues.
    pub pc: usize,
    /// The register of the caller that takes the result.
    pub dest: Reg,
    pub value: Option<Rc<FuncValue>>,
    pub func: Option<FuncId>,
    /// Whether its registers stay when it ends.
    pub keep: bool,
}

/// A machine with its program.
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
            swallow: 0,
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
            _cycles: crate::value::cycles::AtEnd,
        }
    }
}

impl Machine {
    /// A machine of an empty program.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Uses seeds: random numbers, ids, hashes and the order of tables follow from them.
    pub fn seed(&mut self, seeds: &crate::support::order::Seeds) {
        self.state.seed(seeds);
    }

    /// A vector for the arguments of a call or an event, which may have room.
    #[inline]
    pub(crate) fn spare_args(&mut self) -> Vec<Value> {
        self.args.pop().unwrap_or_default()
    }

    /// Keeps the room of a vector of arguments for others.
    #[inline]
    pub(crate) fn recycle(&mut self, mut args: Vec<Value>) {
        args.clear();
        if self.args.len() < SPARE_ARGS {
            self.args.push(args);
        }
    }

    /// Says whether the run is one of `-b`.
    pub fn set_bare(&mut self, bare: bool) {
        self.state.bare = bare;
    }

    /// Keeps scripts from starting processes and from changing files other than logs.
    pub fn set_sandbox(&mut self, sandbox: bool) {
        self.state.sandbox = sandbox;
    }

    /// Sets the length of the longest string that scripts may make; [`strings::MAX_STRING`] bytes by default.
    pub fn set_max_string(&mut self, bytes: usize) {
        self.max_string = bytes;
    }

    /// Sets how many files of logs are open at the most: 512 by default.
    pub fn set_max_open_logs(&mut self, files: usize) {
        self.state.log.set_max_open(files);
    }

    /// Gives every handler a budget.
    pub fn set_budget(&mut self, budget: Option<budget::Budget>) {
        self.budget = budget.map(budget::BudgetState::new);
    }

    /// Starts the profile of scripts, which is written to standard error or a file when the machine is dropped. Returns whether it
    /// could not be written then. One `of_calls` has Zeek's form, and is written to standard output or the file when the run ends.
    pub fn start_profile(&mut self, to: Option<String>, of_calls: bool) -> Rc<Cell<bool>> {
        let profile = profile::Profile::start(to, of_calls);
        let failed = profile.failed();
        self.profile = Some(Box::new(profile));
        failed
    }

    /// Starts the trace of events, which is written to this file when the run ends.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn trace_events(&mut self, path: &str) -> std::io::Result<()> {
        self.event_trace = Some(Box::new(event_trace::EventTrace::create(path)?));
        Ok(())
    }

    /// Whether a script called `terminate`.
    #[must_use]
    pub fn was_terminated(&self) -> bool {
        self.state.terminated
    }

    /// Where `print` writes to.
    pub fn set_output(&mut self, sink: Box<dyn std::io::Write>) {
        self.out.redirect(sink);
    }

    /// Writes out what scripts printed.
    pub fn flush(&mut self) {
        self.out.flush_all();
    }

    /// From now on what scripts do and what the parser asks the file system is noted, for the cache.
    pub(crate) fn record(&mut self) {
        self.recorder = Some(Box::default());
        crate::cache::probe::begin();
    }

    /// Forgets code and plans: they are made again when they are needed.
    pub(crate) fn forget_code(&mut self) {
        self.codes.clear();
        self.exprs.clear();
        self.targets.clear();
        self.templates.clear();
        self.conversions.clear();
    }

    /// Whether the machine has only values: no frame, no event that waits, no output, nothing switched off.
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

    /// Whether the main loop has something to do with the next packet, even where no timer is due and no event comes.
    pub(crate) fn has_work(&self) -> bool {
        !self.queue.is_empty()
            || self.whens.has_work()
            || self.whens.looks_up()
            || self.stop_requested
            || self.state.suspended > 0
            || self.state.is_polled()
            || crate::value::cycles::is_due()
    }

    /// Forgets values that were read from a cache which turned out to be damaged.
    pub(crate) fn forget_state(&mut self) {
        self.globals.clear();
        self.queue = Queue::default();
        self.vectors.clear();
        self.sets.clear();
        self.instantiated.clear();
        self.state.metrics = crate::bif::telemetry::Metrics::default();
        crate::value::order::forget_optional();
    }

    /// This machine with its program.
    pub fn with<'a>(&'a mut self, program: &'a mut Program) -> Vm<'a> {
        Vm { p: program, m: self }
    }
}

impl Vm<'_> {
    /// The value of a global; unset where it has none.
    #[must_use]
    pub fn global(&self, global: GlobalId) -> Value {
        self.m.globals.get(global.index()).cloned().unwrap_or_default()
    }

    /// A global without a value of its own: a function that is only declared, or an error.
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

    /// Gives scripts their arguments: the global `zeek_script_args`.
    pub fn set_script_args(&mut self, args: &[String]) {
        let Some(global) = self.find_global("zeek_script_args") else { return };
        let ty = self.p.globals[global].ty;
        let items = args.iter().map(Value::string).collect();
        self.set_global(global, Value::Vector(crate::value::Vector::new(ty, items)));
    }

    /// The global of a full name.
    #[must_use]
    pub fn find_global(&self, name: &str) -> Option<GlobalId> {
        self.p.globals.find(self.p.names.find(name)?)
    }

    /// The value of the global of a full name; unset where it has none.
    #[must_use]
    pub fn global_named(&self, name: &str) -> Value {
        self.find_global(name).map_or(Value::Unset, |global| self.global(global))
    }

    /// The type with this full name.
    #[must_use]
    pub fn type_named(&self, name: &str) -> Option<TypeId> {
        self.find_global(name).map(|global| self.p.globals[global].ty)
    }

    /// The value of the enum value of a full name.
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

    /// The function of a full name.
    #[must_use]
    pub fn function_named(&self, name: &str) -> Option<FuncId> {
        match self.p.globals[self.find_global(name)?].kind {
            crate::symbols::GlobalKind::Function(func) => Some(func),
            _ => None,
        }
    }

    /// The function that a global of this full name is: another one may have been assigned to it.
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

    /// The code of an expression outside of functions: of an attribute.
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

    /// The type of sets with this index.
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
    /// [`Stop`] where it has no value.
    pub fn eval(&mut self, expr: ExprId) -> Result<Value, Stop> {
        if let crate::ast::ExprKind::Literal(literal) = &self.p.exprs[expr].kind {
            return Ok(Value::literal(literal, self.p.exprs[expr].ty));
        }
        let code = self.expr_code(expr);
        self.execute(&code, &[], None, None)
    }
}

impl Machine {
    /// The value of an expression outside of functions, as the parser knows values.
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
        // Code and plans are made again, as they are where this state comes from a cache.
        self.forget_code();
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
