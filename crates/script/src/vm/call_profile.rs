//! The profile of calls in Zeek's form (`--profile-script-call-stacks`): for each body and each built-in function the
//! number of its calls, its time and allocations, those of its callees, and the stacks that it was called from.
//!
//! The interpreter passes each instruction to [`CallProfile::step`] before it runs; calls and returns are derived from the number of
//! frames. A built-in function lasts until the next instruction of the frame that called it.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::time::Instant;

use crate::code::Op;
use crate::ids::{BodyId, FuncId};
use crate::program::Program;
use crate::types::Flavor;

/// The location of functions that are in no file.
const NOWHERE: &str = "<no-location>";

/// The callee of a call.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Callee {
    /// A body of a function, an event or a hook.
    Body(BodyId),
    /// A built-in function.
    Native(FuncId),
}

/// Time in seconds, and allocations.
#[derive(Clone, Copy, Default)]
struct Usage {
    time: f64,
    allocations: u64,
}

impl Usage {
    fn add(&mut self, other: Self) {
        self.time += other.time;
        self.allocations += other.allocations;
    }
}

/// The calls of one body or function.
struct Entry {
    callee: Callee,
    calls: u64,
    total: Usage,
    /// Usage of its callees.
    callee_usage: Usage,
    /// Calls and usage by stack: its own name, then those of its callers from the outermost.
    stacks: BTreeMap<String, (u64, Usage)>,
}

/// A call in progress.
struct Active {
    entry: usize,
    /// Number of frames while it runs.
    depth: usize,
    began: Usage,
}

/// An instruction that is about to run.
pub(super) struct Step {
    /// Number of frames.
    pub(super) depth: usize,
    /// The body that the frame runs; `None` for code outside of bodies.
    pub(super) body: Option<BodyId>,
    /// Whether this is the first instruction of the frame.
    pub(super) begins: bool,
    /// Whether the frame ends with this instruction.
    pub(super) ends: bool,
    /// The built-in function that the instruction calls.
    pub(super) calls: Option<FuncId>,
    /// Number of allocations of the process so far.
    pub(super) allocations: u64,
}

/// The profile of all calls so far.
pub(super) struct CallProfile {
    start: Instant,
    began: u64,
    entries: Vec<Entry>,
    entry_indexes: HashMap<Callee, usize>,
    active: Vec<Active>,
    /// Usage of outermost calls.
    outermost: Usage,
    /// Number of returns from an outermost call, plus one.
    exits: u64,
}

impl CallProfile {
    pub(super) fn new(allocations: u64) -> Self {
        Self {
            start: Instant::now(),
            began: allocations,
            entries: Vec::new(),
            entry_indexes: HashMap::new(),
            active: Vec::new(),
            outermost: Usage::default(),
            exits: 1,
        }
    }

    /// Records an instruction that is about to run.
    pub(super) fn step(&mut self, program: &Program, step: &Step) {
        let now = Usage { time: self.start.elapsed().as_secs_f64(), allocations: step.allocations };
        // Frames that ended in an error had no last instruction.
        while let Some(active) = self.active.last() {
            let is_native = matches!(self.entries[active.entry].callee, Callee::Native(_));
            let is_over = match active.depth.cmp(&step.depth) {
                std::cmp::Ordering::Greater => true,
                std::cmp::Ordering::Equal => is_native || step.begins,
                std::cmp::Ordering::Less => false,
            };
            if !is_over {
                break;
            }
            self.end(program, now);
        }
        if let (true, Some(body)) = (step.begins, step.body) {
            self.begin(Callee::Body(body), step.depth, now);
        }
        if let Some(func) = step.calls {
            self.begin(Callee::Native(func), step.depth, now);
        }
        let is_of_frame = self.active.last().is_some_and(|active| active.depth == step.depth);
        if step.ends && is_of_frame {
            self.end(program, now);
        }
    }

    fn begin(&mut self, callee: Callee, depth: usize, began: Usage) {
        let entry = *self.entry_indexes.entry(callee).or_insert_with(|| {
            self.entries.push(Entry {
                callee,
                calls: 0,
                total: Usage::default(),
                callee_usage: Usage::default(),
                stacks: BTreeMap::new(),
            });
            self.entries.len() - 1
        });
        self.entries[entry].calls += 1;
        self.active.push(Active { entry, depth, began });
    }

    fn end(&mut self, program: &Program, now: Usage) {
        let Some(ended) = self.active.pop() else { return };
        let used = Usage {
            time: now.time - ended.began.time,
            allocations: now.allocations.saturating_sub(ended.began.allocations),
        };
        let mut stack = name(program, self.entries[ended.entry].callee);
        for caller in &self.active {
            stack.push(';');
            stack += &name(program, self.entries[caller.entry].callee);
        }
        let entry = &mut self.entries[ended.entry];
        entry.total.add(used);
        let (calls, of_stack) = entry.stacks.entry(stack).or_default();
        *calls += 1;
        of_stack.add(used);
        match self.active.last() {
            Some(caller) => self.entries[caller.entry].callee_usage.add(used),
            None => {
                self.outermost.add(used);
                self.exits += 1;
            }
        }
    }

    /// The report as tab-separated columns.
    pub(super) fn report(&mut self, program: &Program, allocations: u64) -> String {
        let now = Usage { time: self.start.elapsed().as_secs_f64(), allocations };
        while !self.active.is_empty() {
            self.end(program, now);
        }
        let mut text = String::from(
            "#fields\tfunction\tlocation\ttype\tncall\ttot_CPU\tchild_CPU\ttot_Mem\tchild_Mem\tstacks\tstack_calls\t\
             stack_CPU\tstack_memory\n#types\tstring\tstring\tstring\tcount\tinterval\tinterval\tcount\tcount\tstring\t\
             string\tstring\tstring\n",
        );
        let mut natives = (0, 0, Usage::default());
        let mut all = (0, 0, Usage::default());
        let mut functions: BTreeMap<FuncId, (u64, Usage)> = BTreeMap::new();
        for entry in &self.entries {
            entry.line(program, &mut text);
            let mut sums = vec![&mut all];
            match entry.callee {
                Callee::Native(_) => sums.push(&mut natives),
                Callee::Body(body) => {
                    if let Some(func) = program.bodies[body].func {
                        let (calls, used) = functions.entry(func).or_default();
                        *calls += entry.calls;
                        used.add(entry.total);
                    }
                }
            }
            for (entries, calls, used) in sums {
                *entries += 1;
                *calls += entry.calls;
                used.add(entry.total);
            }
        }
        let mut sum = |name: &str, locations: &str, kind: &str, calls: u64, used: Usage| {
            let _ = writeln!(
                text,
                "{name}\t{locations}\t{kind}\t{calls}\t{:.6}\t0.000000\t{}\t0\t-\t-\t-\t-",
                used.time, used.allocations
            );
        };
        for (func, (calls, used)) in functions {
            let function = &program.functions[func];
            let bodies = function.bodies.len();
            if bodies > 1 {
                let locations = format!("{bodies}-locations");
                let kind = flavor(function.flavor);
                sum(program.name(function.name), &locations, kind, calls, used);
            }
        }
        sum("all-BiFs", &format!("{}-locations", natives.0), "BiF", natives.1, natives.2);
        sum("total", &format!("{}-locations", all.0), "TOTAL", all.1, all.2);
        let outside = Usage {
            time: now.time - self.outermost.time,
            allocations: (now.allocations - self.began).saturating_sub(self.outermost.allocations),
        };
        sum("non-scripts", NOWHERE, "TOTAL", self.exits, outside);
        text
    }
}

impl Entry {
    fn line(&self, program: &Program, text: &mut String) {
        let (file_location, kind) = match self.callee {
            Callee::Native(_) => (NOWHERE.to_owned(), "BiF"),
            Callee::Body(body) => {
                let body = &program.bodies[body];
                let file = program.sources.files.find(body.span.file);
                let path = file.map_or("", |file| &*file.path);
                let function = body.func.and_then(|func| program.functions.find(func));
                let kind = function.map_or("statements", |function| flavor(function.flavor));
                let file_location = match path {
                    "" => NOWHERE.to_owned(),
                    path => format!("{path}:{}", body.span.first),
                };
                (file_location, kind)
            }
        };
        let stacks = |column: fn(&str, u64, Usage) -> String| {
            let all = self.stacks.iter().map(|(stack, (calls, used))| column(stack, *calls, *used));
            all.collect::<Vec<_>>().join("|")
        };
        let _ = writeln!(
            text,
            "{}\t{file_location}\t{kind}\t{}\t{:.6}\t{:.6}\t{}\t{}\t{}\t{}\t{}\t{}",
            name(program, self.callee),
            self.calls,
            self.total.time,
            self.callee_usage.time,
            self.total.allocations,
            self.callee_usage.allocations,
            stacks(|stack, _, _| stack.to_owned()),
            stacks(|_, calls, _| calls.to_string()),
            stacks(|_, _, used| format!("{:.6}", used.time)),
            stacks(|_, _, used| used.allocations.to_string()),
        );
    }
}

fn flavor(flavor: Flavor) -> &'static str {
    match flavor {
        Flavor::Function => "function",
        Flavor::Event => "event",
        Flavor::Hook => "hook",
    }
}

/// Whether an instruction ends its frame.
pub(super) fn ends(op: Option<&Op>) -> bool {
    matches!(op, Some(Op::Return { .. } | Op::End | Op::Break | Op::Fail { .. }))
}

fn name(program: &Program, callee: Callee) -> String {
    let func = match callee {
        Callee::Native(func) => Some(func),
        Callee::Body(body) if Some(body) == program.main => return "(statements)".to_owned(),
        Callee::Body(body) => program.bodies[body].func,
    };
    let function = func.and_then(|func| program.functions.find(func));
    function.map_or("(when)".to_owned(), |function| program.name(function.name).to_owned())
}
