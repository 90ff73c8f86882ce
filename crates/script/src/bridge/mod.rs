//! Events of packets for scripts: what analyzers raise becomes calls of script handlers.
//!
//! ```text
//! analyzers ──Raised──▶ Handlers (a Listener) ──plan of the event──▶ values ──▶ event queue of the Vm
//!                 packet done ─────────────────────────────────────────────────▶ drain
//! ```
//!
//! | module | duty |
//! |---|---|
//! | `plan` | how the packed arguments of an event become script values |
//! | `state` | the records of connections and files, which live as long as these |
//!
//! A [`Source`] reads the packets: this crate knows events only. Analyzers run on the thread of the scripts: values
//! of scripts are not shared with other threads, so the run is kept in the thread and [`Handlers`] finds it there.

mod plan;
mod state;

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use gannet_base::Time;
use gannet_event::{Decl, Interest, Listener, Raised};

use crate::command::Options;
use crate::evaluate::Stop;
use crate::ids::FuncId;
use crate::program::Program;
use crate::value::Value;
use crate::vm::{Machine, Vm};

use plan::Plan;
use state::States;

/// Where packets come from: what turns them into events.
pub trait Source: Send {
    /// All events that there are.
    fn catalogue(&self) -> Vec<&'static Decl>;

    /// Opens the capture that the options name.
    ///
    /// # Errors
    /// The error, in a line.
    fn open(&mut self, options: &Options) -> Result<(), String>;

    /// Reads all packets on the calling thread, and delivers the events of `interest` to `listener`. Ends early once
    /// [`stops`] holds.
    ///
    /// # Errors
    /// The error, in a line; packets read before it count.
    fn run(&mut self, interest: Interest, listener: Box<dyn Listener>) -> Result<(), String>;
}

/// Whether scripts ended the run: no more packets are read.
#[must_use]
pub fn stops() -> bool {
    RUN.with_borrow(|run| {
        run.as_ref().is_some_and(|run| run.stop.is_some() || run.machine.stop_requested)
    })
}

/// Whether the scripts ended in an error, or with `exit`: connections that are open are not ended either.
#[must_use]
pub fn failed() -> bool {
    RUN.with_borrow(|run| run.as_ref().is_some_and(|run| run.stop.is_some()))
}

/// Runs a program over the packets of `source`, from `zeek_init` to `zeek_done`. Returns the exit status.
pub fn run(mut program: Program, mut machine: Machine, source: &mut dyn Source) -> i32 {
    let mut result = machine.with(&mut program).begin(0.0, false);
    if result.is_ok() && !machine.stop_requested {
        let interest = interest(&machine.with(&mut program), source);
        let states = States::new(&machine.with(&mut program));
        let run = Run { program, machine, plans: HashMap::new(), states, fired: false, stop: None };
        RUN.set(Some(Box::new(run)));
        let read = source.run(interest, Box::new(Handlers));
        let Some(run) = RUN.take() else { return 1 };
        let Run { program: p, machine: m, stop, .. } = *run;
        (program, machine) = (p, m);
        if let Err(message) = read {
            let mut vm = machine.with(&mut program);
            vm.m.out.flush();
            vm.report(crate::diagnostics::Severity::Error, &message);
        }
        result = match stop {
            Some(stop) => Err(stop),
            None => machine.with(&mut program).after_packets(),
        };
    }
    let mut vm = machine.with(&mut program);
    let status = vm.end(result);
    vm.m.out.flush_all();
    status
}

/// The life of a run by themselves: no event of an analyzer.
const OWN: [&str; 3] = ["zeek_init", "zeek_done", "network_time_init"];

/// Events that scripts handle, and those that the records of connections and files need.
fn interest(vm: &Vm<'_>, source: &dyn Source) -> Interest {
    let handled = |name: &str| {
        vm.function_named(name).is_some_and(|func| !vm.p.functions[func].bodies.is_empty())
    };
    let mut any = false;
    let mut interest = Interest::of(source.catalogue().into_iter(), |decl| {
        !OWN.contains(&decl.name) && !decl.scripted && handled(decl.name)
    });
    any |= interest.any();
    if any {
        for decl in source.catalogue() {
            if ["new_connection", "connection_state_remove", "file_state_remove"]
                .contains(&decl.name)
            {
                interest.add(decl.id);
            }
        }
    }
    interest
}

/// A run that is going on.
struct Run {
    program: Program,
    machine: Machine,
    plans: HashMap<u16, Option<Rc<EventPlan>>>,
    states: States,
    /// Timers queued events that no drain has seen.
    fired: bool,
    /// How the scripts ended before the packets did.
    stop: Option<Stop>,
}

/// How an event becomes one of scripts.
struct EventPlan {
    func: FuncId,
    /// For each parameter of the declaration: the script's parameter, and how it is converted.
    params: Vec<(Option<usize>, Plan)>,
    /// How many parameters the script's event has.
    count: usize,
}

thread_local! {
    static RUN: RefCell<Option<Box<Run>>> = const { RefCell::new(None) };
}

/// The listener of the run of this thread.
struct Handlers;

impl Handlers {
    fn with(f: impl FnOnce(&mut Run) -> Result<(), Stop>) {
        RUN.with_borrow_mut(|run| {
            if let Some(run) = run
                && run.stop.is_none()
                && let Err(stop) = f(run)
                && stop != Stop::Error
            {
                run.stop = Some(stop);
            }
        });
    }
}

impl Listener for Handlers {
    fn event(&mut self, event: &Raised<'_>) {
        Self::with(|run| run.event(event));
    }

    fn packet(&mut self, time: Time, _: u64) {
        Self::with(|run| run.packet(plan::seconds(time.as_nanos())));
    }

    fn drained(&mut self) {
        Self::with(Run::drained);
    }
}

impl Run {
    fn event(&mut self, event: &Raised<'_>) -> Result<(), Stop> {
        let mut vm = self.machine.with(&mut self.program);
        let plan = match self.plans.get(&event.decl.id.get()) {
            Some(plan) => plan.clone(),
            None => {
                let plan = plan_of(&vm, event.decl).map(Rc::new);
                self.plans.insert(event.decl.id.get(), plan.clone());
                plan
            }
        };
        let Some(plan) = plan else { return self.states.note(&mut vm, event) };
        let mut args = vec![Value::Unset; plan.count];
        let mut reader = event.args();
        for ((slot, plan), param) in plan.params.iter().zip(event.decl.params) {
            let value = plan.param(&mut vm, &mut self.states, event, &mut reader, param)?;
            if let Some(arg) = slot.and_then(|slot| args.get_mut(slot)) {
                *arg = value;
            }
        }
        self.states.over(event);
        vm.queue_event(plan.func, args);
        Ok(())
    }

    /// Another packet begins: timers are due.
    fn packet(&mut self, now: f64) -> Result<(), Stop> {
        let mut vm = self.machine.with(&mut self.program);
        if std::mem::take(&mut self.fired) {
            vm.drain()?;
        }
        if vm.m.now == 0.0 && now > 0.0 {
            vm.m.now = now;
            vm.queue_named("network_time_init", Vec::new());
        }
        vm.m.now = vm.m.now.max(now);
        let now = vm.m.now;
        vm.fire_timers(now)?;
        vm.expire_tables(now)?;
        self.fired = !vm.m.queue.is_empty();
        Ok(())
    }

    /// All events of a packet are queued.
    fn drained(&mut self) -> Result<(), Stop> {
        self.fired = false;
        self.states.forget();
        self.machine.with(&mut self.program).drain()
    }
}

/// How an event becomes the one of scripts that has its name: parameters by their names, or by their places where scripts name them otherwise.
fn plan_of(vm: &Vm<'_>, decl: &'static Decl) -> Option<EventPlan> {
    let func = vm.function_named(decl.name)?;
    if vm.p.functions[func].bodies.is_empty() {
        return None;
    }
    let wanted = vm.p.types.params(vm.p.functions[func].ty);
    let named = |name: &str| wanted.iter().position(|field| vm.p.name(field.name) == name);
    let by_name = wanted
        .iter()
        .all(|field| decl.params.iter().any(|param| param.name == vm.p.name(field.name)));
    let params = decl
        .params
        .iter()
        .enumerate()
        .map(|(place, param)| {
            let slot = if by_name { named(param.name) } else { Some(place) };
            let field = slot.and_then(|slot| wanted.get(slot));
            let plan = field.map_or(Plan::Skip, |field| Plan::new(vm, &param.ty, field.ty));
            (slot, plan)
        })
        .collect();
    Some(EventPlan { func, params, count: wanted.len() })
}
