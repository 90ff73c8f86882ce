//! The profile of scripts (`--profile-scripts`): calls, time and allocations by function, time and allocations by line.
//!
//! A thread advances a clock; the interpreter compares it before each instruction and adds what passed to the line of the last instruction, to
//! its function, and to all functions that wait for that one. Reading the time before each instruction would take longer than most
//! instructions. Without a profile the interpreter's loop is compiled without any of this.

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

/// How often the clock advances.
const STEP: Duration = Duration::from_micros(200);

/// The lines that the report shows.
const LINES: usize = 40;

/// Counts allocations of the process so far.
static ALLOCATIONS: OnceLock<fn() -> u64> = OnceLock::new();

/// Lets profiles count allocations.
pub fn count_allocations(count: fn() -> u64) {
    // A second one would be the same.
    let _ = ALLOCATIONS.set(count);
}

/// What was used.
#[derive(Clone, Default)]
struct Usage {
    calls: u64,
    /// Microseconds, functions that it called among them.
    total: u64,
    /// Microseconds of its own.
    own: u64,
    allocations: u64,
    name: String,
}

/// A profile; it writes its report when it is dropped.
pub(crate) struct Profile {
    clock: Arc<AtomicU64>,
    done: Arc<AtomicBool>,
    /// The file of the report; standard error without.
    to: Option<String>,
    /// Whether the report could not be written.
    failed: Rc<Cell<bool>>,
    passed: u64,
    allocated: u64,
    /// Body, expression and depth of the last instruction, and whether it ends its frame.
    last: Option<(Option<BodyId>, ExprId, usize, bool)>,
    functions: Vec<Usage>,
    /// Initializers and other code outside of bodies.
    outside: Usage,
    lines: HashMap<(FileId, u32), Usage>,
    /// The calls, where the profile is one of calls in Zeek's form.
    calls: Option<CallProfile>,
}

impl Profile {
    /// Starts the clock; with `of_calls` for a profile in Zeek's form.
    pub(crate) fn start(to: Option<String>, of_calls: bool) -> Self {
        let clock = Arc::new(AtomicU64::new(0));
        let done = Arc::new(AtomicBool::new(false));
        let (advances, ends) = (Arc::clone(&clock), Arc::clone(&done));
        std::thread::spawn(move || {
            let start = Instant::now();
            while !ends.load(Ordering::Relaxed) {
                std::thread::sleep(STEP);
                let passed = u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX);
                advances.store(passed, Ordering::Relaxed);
            }
        });
        Self {
            clock,
            done,
            to,
            failed: Rc::default(),
            passed: 0,
            allocated: allocations(),
            last: None,
            functions: Vec::new(),
            outside: Usage { name: "(initial values)".to_owned(), ..Usage::default() },
            lines: HashMap::new(),
            calls: of_calls.then(|| CallProfile::new(allocations())),
        }
    }

    /// Whether the report could not be written: read when the profile is dropped.
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
        for usage in lines.into_iter().take(LINES) {
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
    /// Adds what passed since the last instruction to it, and notes the one at `pc`.
    #[cold]
    pub(crate) fn profile_step(&mut self, code: &Code, pc: usize) {
        let Some(mut profile) = self.m.profile.take() else { return };
        let passed = profile.clock.load(Ordering::Relaxed);
        let allocated = allocations();
        if passed != profile.passed || allocated != profile.allocated {
            let time = passed - profile.passed;
            let count = allocated.saturating_sub(profile.allocated);
            if let Some((body, site, ..)) = profile.last {
                self.add_usage(&mut profile, body, site, time, count);
            }
            profile.passed = passed;
        }
        let depth = self.m.frames.len();
        let site = code.sites.get(pc).copied().unwrap_or(ExprId(u32::MAX));
        let again = |last: (Option<BodyId>, ExprId, usize, bool)| {
            last.0 == code.body && last.2 == depth && !last.3
        };
        // A loop may return to the first instruction: that is no call.
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

    /// Writes the profile of calls: false where that failed, which is reported.
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
            let mut waiting: Vec<Option<BodyId>> =
                self.m.frames.iter().map(|frame| frame.code.body).collect();
            waiting.push(body);
            waiting.sort_unstable();
            waiting.dedup();
            for body in waiting {
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
        let place = self.p.sources.files.find(span.file);
        let place = place.map_or(String::new(), |file| format!("  {}:{}", file.path, span.first));
        let name = match self.p.bodies[body].func {
            Some(func) => self.function_name(func),
            None if Some(body) == self.p.main => "(statements of files)".to_owned(),
            None => "(when)".to_owned(),
        };
        name + &place
    }
}
