//! The profile of scripts (`--profile-scripts`): calls, time and allocations by function, time and allocations by line.
//!
//! A thread advances a clock. Before each instruction the interpreter reads it and adds the elapsed time to the line of the last
//! instruction, to its function, and to the functions on the call stack. Reading the system's time before each instruction would take
//! longer than most instructions. Without a profile, the interpreter runs a loop that is compiled without this code.

use std::cell::Cell;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::call_profile::{self, CallProfile, Step};
use super::{Callee, Vm};
use crate::code::{Code, Op, Reg};
use crate::ids::{BodyId, ExprId, FileId, FuncId, Id as _};

/// Interval between updates of the clock.
const CLOCK_INTERVAL: Duration = Duration::from_micros(200);

/// Maximum number of script lines in the report.
const MAX_LINES: usize = 40;

/// Returns the number of allocations of the process so far.
static ALLOCATIONS: OnceLock<fn() -> u64> = OnceLock::new();

/// Sets the function that profiles use to count allocations.
pub fn count_allocations(count: fn() -> u64) {
    // A second call would set the same function.
    let _ = ALLOCATIONS.set(count);
}

/// Calls, time and allocations of a function or line.
#[derive(Clone, Default)]
struct Usage {
    calls: u64,
    /// Microseconds, callees included.
    total: u64,
    /// Microseconds without callees.
    own: u64,
    allocations: u64,
    name: String,
}

/// A profile; it writes its report when it is dropped.
pub(crate) struct Profile {
    clock: Arc<AtomicU64>,
    done: Arc<AtomicBool>,
    /// The file of the report; `None` for standard error, or standard output for a profile of calls.
    to: Option<String>,
    /// Whether the report could not be written.
    failed: Rc<Cell<bool>>,
    elapsed_micros: u64,
    allocated: u64,
    /// Body, expression and depth of the last instruction, and whether it ends its frame.
    last: Option<(Option<BodyId>, ExprId, usize, bool)>,
    functions: Vec<Usage>,
    /// Initializers and other code outside of bodies.
    outside: Usage,
    lines: HashMap<(FileId, u32), Usage>,
    /// The calls, if the profile has Zeek's form.
    calls: Option<CallProfile>,
}

impl Profile {
    /// Starts the clock. `of_calls` selects a profile in Zeek's form.
    pub(crate) fn start(to: Option<String>, of_calls: bool) -> Self {
        let clock = Arc::new(AtomicU64::new(0));
        let done = Arc::new(AtomicBool::new(false));
        let (advances, ends) = (Arc::clone(&clock), Arc::clone(&done));
        std::thread::spawn(move || {
            let start = Instant::now();
            while !ends.load(Ordering::Relaxed) {
                std::thread::sleep(CLOCK_INTERVAL);
                let elapsed_micros = u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX);
                advances.store(elapsed_micros, Ordering::Relaxed);
            }
        });
        Self {
            clock,
            done,
            to,
            failed: Rc::default(),
            elapsed_micros: 0,
            allocated: allocations(),
            last: None,
            functions: Vec::new(),
            outside: Usage { name: "(initial values)".to_owned(), ..Usage::default() },
            lines: HashMap::new(),
            calls: of_calls.then(|| CallProfile::new(allocations())),
        }
    }

    /// A flag that is set when the profile is dropped and the report could not be written.
    pub(crate) fn failed(&self) -> Rc<Cell<bool>> {
        Rc::clone(&self.failed)
    }

    fn function(&mut self, body: Option<BodyId>) -> &mut Usage {
        let Some(body) = body else { return &mut self.outside };
        if self.functions.len() <= body.index() {
            self.functions.resize(body.index() + 1, Usage::default());
        }
        &mut self.functions[body.index()]
    }

    /// The report.
    fn report(&self) -> String {
        let mut functions: Vec<&Usage> = self.functions.iter().collect();
        functions.push(&self.outside);
        functions.retain(|usage| usage.calls + usage.own + usage.total + usage.allocations > 0);
        functions.sort_by(|a, b| {
            (b.own, b.total, b.calls, &a.name).cmp(&(a.own, a.total, a.calls, &b.name))
        });
        let mut lines: Vec<&Usage> = self.lines.values().collect();
        lines.sort_by(|a, b| (b.own, b.allocations, &a.name).cmp(&(a.own, a.allocations, &b.name)));
        let ms = |micros: u64| format!("{}.{:03}", micros / 1000, micros % 1000);
        let mut text = String::from("      calls    total ms      own ms  allocations  function\n");
        for usage in functions {
            let _ = writeln!(
                text,
                "{:>11} {:>11} {:>11} {:>12}  {}",
                usage.calls,
                ms(usage.total),
                ms(usage.own),
                usage.allocations,
                usage.name
            );
        }
        text.push_str("\n     own ms  allocations  line\n");
        for usage in lines.into_iter().take(MAX_LINES) {
            let _ =
                writeln!(text, "{:>11} {:>12}  {}", ms(usage.own), usage.allocations, usage.name);
        }
        text
    }
}

impl Drop for Profile {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Relaxed);
        if self.calls.is_some() {
            return;
        }
        let text = self.report();
        let written = match &self.to {
            Some(file) => std::fs::write(file, &text),
            None => std::io::stderr().write_all(text.as_bytes()),
        };
        if let (Err(error), Some(file)) = (written, &self.to) {
            let _ = writeln!(std::io::stderr(), "error: {file}: {error}");
            self.failed.set(true);
        }
    }
}

fn allocations() -> u64 {
    ALLOCATIONS.get().map_or(0, |count| count())
}

impl Vm<'_> {
    /// Adds the usage since the last instruction to that one, and records the one at `pc`.
    #[cold]
    pub(crate) fn profile_step(&mut self, code: &Code, pc: usize) {
        let Some(mut profile) = self.m.profile.take() else { return };
        let elapsed_micros = profile.clock.load(Ordering::Relaxed);
        let allocated = allocations();
        if elapsed_micros != profile.elapsed_micros || allocated != profile.allocated {
            let time = elapsed_micros - profile.elapsed_micros;
            let count = allocated.saturating_sub(profile.allocated);
            if let Some((body, site, ..)) = profile.last {
                self.add_usage(&mut profile, body, site, time, count);
            }
            profile.elapsed_micros = elapsed_micros;
        }
        let depth = self.m.frames.len();
        let site = code.sites.get(pc).copied().unwrap_or(ExprId(u32::MAX));
        let again = |last: (Option<BodyId>, ExprId, usize, bool)| {
            last.0 == code.body && last.2 == depth && !last.3
        };
        // A loop may jump to the first instruction: that is no call.
        let begins = pc == 0 && !profile.last.is_some_and(again);
        if let Some(calls) = &mut profile.calls {
            let op = code.ops.get(pc);
            let called = match op {
                Some(Op::Call { f, .. }) => Some(*f),
                Some(Op::CallValue { f, .. }) => self.value_called(*f),
                _ => None,
            };
            let step = Step {
                depth,
                body: code.body,
                begins,
                ends: call_profile::ends(op),
                calls: called.filter(|func| matches!(self.callee(*func), Callee::Native(_))),
                allocations: allocated,
            };
            calls.step(self.p, &step);
        }
        if begins {
            let name = self.profile_name(code.body);
            let usage = profile.function(code.body);
            usage.calls += 1;
            if usage.name.is_empty() {
                usage.name = name;
            }
        }
        let ends = matches!(code.ops.get(pc), Some(Op::Return { .. } | Op::End));
        profile.last = Some((code.body, site, depth, ends));
        profile.allocated = allocations();
        self.m.profile = Some(profile);
    }

    /// The function in a register of the current frame.
    fn value_called(&self, reg: Reg) -> Option<FuncId> {
        let base = self.m.frames.last()?.base;
        let value = self.m.stack.get(base + usize::from(reg))?;
        value.func().map(|func| func.func)
    }

    /// Writes the profile of calls. Returns false, and reports the error, if that failed.
    pub(super) fn write_call_profile(&mut self) -> bool {
        let Some(profile) = &mut self.m.profile else { return true };
        let Some(calls) = &mut profile.calls else { return true };
        let text = calls.report(self.p, allocations());
        let written = match &profile.to {
            Some(file) => std::fs::write(file, &text),
            None => std::io::stdout().write_all(text.as_bytes()),
        };
        if let (Err(error), Some(file)) = (&written, &profile.to) {
            let text = format!("{file}: {error}");
            self.report(crate::diagnostics::Severity::Error, text);
        }
        written.is_ok()
    }

    fn add_usage(
        &self,
        profile: &mut Profile,
        body: Option<BodyId>,
        site: ExprId,
        time: u64,
        count: u64,
    ) {
        let usage = profile.function(body);
        usage.own += time;
        usage.allocations += count;
        if time > 0 {
            let mut on_stack: Vec<Option<BodyId>> =
                self.m.frames.iter().map(|frame| frame.code.body).collect();
            on_stack.push(body);
            on_stack.sort_unstable();
            on_stack.dedup();
            for body in on_stack {
                profile.function(body).total += time;
            }
        }
        let Some(expr) = self.p.exprs.find(site) else { return };
        let (span, sources) = (expr.span, &self.p.sources);
        let entry = profile.lines.entry((span.file, span.first)).or_insert_with(|| {
            let file = sources.files.find(span.file);
            let line = file.and_then(|file| {
                file.text.split(|byte| *byte == b'\n').nth(span.first.saturating_sub(1) as usize)
            });
            let line = String::from_utf8_lossy(line.unwrap_or_default()).trim().to_owned();
            let path = file.map_or("", |file| &*file.path);
            Usage { name: format!("{path}:{}  {line}", span.first), ..Usage::default() }
        });
        entry.own += time;
        entry.allocations += count;
    }

    fn profile_name(&self, body: Option<BodyId>) -> String {
        let Some(body) = body else { return String::new() };
        let span = self.p.stmts[self.p.bodies[body].stmt].span;
        let location = self.p.sources.files.find(span.file);
        let location =
            location.map_or(String::new(), |file| format!("  {}:{}", file.path, span.first));
        let name = match self.p.bodies[body].func {
            Some(func) => self.function_name(func),
            None if Some(body) == self.p.main => "(statements of files)".to_owned(),
            None => "(when)".to_owned(),
        };
        name + &location
    }
}
