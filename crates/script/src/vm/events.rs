//! The event queue, timers, and the start, main loop and end of a run.

use std::collections::VecDeque;
use std::rc::Weak;

use super::Vm;
use crate::diagnostics::Severity;
use crate::evaluate::Stop;
use crate::ids::{FuncId, GlobalId};
use crate::support::order::RobustWalk;
use crate::symbols::GlobalKind;
use crate::value::{Table, Value, cycles};

/// A queued event: its bodies have not run yet.
#[derive(Debug)]
pub struct QueuedEvent {
    /// The event.
    pub func: FuncId,
    /// Arguments in canonical order.
    pub args: Vec<Value>,
    /// The network time of the event.
    pub time: f64,
    /// The UID of the connection that the event is about, if none of its arguments is that connection.
    pub uid: Option<gannet_base::Uid>,
    /// The number of the analyzer that raised the event; 0 if no analyzer did.
    pub analyzer: u64,
}

/// The queue of events, in order, and the timers.
#[derive(Default)]
pub struct Queue {
    events: VecDeque<QueuedEvent>,
    /// An empty queue whose allocation is reused.
    spare: VecDeque<QueuedEvent>,
    timers: Timers,
}

/// The action of a timer.
#[derive(Debug)]
pub(crate) enum TimerAction {
    /// A scheduled event.
    Event(FuncId, Vec<Value>),
    /// The timeout of the `when` with this id.
    When(u64),
    /// Processes delayed log writes that are due.
    LogDelay,
    /// Rotates the log of this id.
    Rotate(u64),
    /// The next `connection_status_update` of a connection, by its UID and its endpoints.
    Status(gannet_base::Uid, (gannet_base::ConnId, u32)),
    /// Expires entries of a table.
    Expire(Weak<Table>, Option<ExpiryWalk>),
}

/// The progress of an expiry that visits the entries of a table in several steps.
#[derive(Debug)]
pub(crate) enum ExpiryWalk {
    /// An iteration in the order of slots, and the index of the next entry if it is known.
    Slots(RobustWalk, Option<u32>),
    /// An iteration in the order of insertion: the index of the next entry.
    Positions(usize),
}

struct Timer {
    time: f64,
    action: TimerAction,
}

/// A heap of timers. Timers of the same time fire in the order of Zeek's heap, in which the element at `i` has the
/// parent `i / 2`, so the element at 0 has one child.
#[derive(Default)]
struct Timers(Vec<Timer>, TimerCounts);

/// Counts of the timers of scripts.
#[derive(Clone, Copy, Default)]
pub(crate) struct TimerCounts {
    pub(crate) current: u64,
    /// Maximum number of timers at a time.
    pub(crate) peak: u64,
    /// Number of timers added so far.
    pub(crate) total: u64,
}

impl Timers {
    fn time(&self, index: usize) -> Option<f64> {
        self.0.get(index).map(|timer| timer.time)
    }

    /// The time of the earliest timer.
    fn next(&self) -> Option<f64> {
        self.time(0)
    }

    fn add(&mut self, timer: Timer) {
        let mut at = self.0.len();
        self.append(timer);
        while at > 0 && self.time(at / 2) > self.time(at) {
            self.0.swap(at, at / 2);
            at /= 2;
        }
    }

    fn append(&mut self, timer: Timer) {
        self.0.push(timer);
        self.1.peak = self.1.peak.max(self.0.len() as u64);
        self.1.total += 1;
    }

    fn pop(&mut self) -> Option<Timer> {
        if self.0.is_empty() {
            return None;
        }
        let first = self.0.swap_remove(0);
        let mut at = 0;
        while let (Some(time), Some(left)) = (self.time(at), self.time(2 * at)) {
            let child = match self.time(2 * at + 1) {
                Some(right) if left >= right => 2 * at + 1,
                _ => 2 * at,
            };
            if self.time(child).is_none_or(|child| child >= time) {
                break;
            }
            self.0.swap(at, child);
            at = child;
        }
        Some(first)
    }
}

impl Queue {
    pub(crate) fn timer_counts(&self) -> TimerCounts {
        TimerCounts { current: self.timers.0.len() as u64, ..self.timers.1 }
    }

    /// Whether no event is queued.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// The expiry timers: the time of each and its table, `None` for a table that was dropped. Returns `None` if events are queued or
    /// other timers exist.
    pub(crate) fn expiries(&self) -> Option<Vec<(f64, Option<std::rc::Rc<Table>>)>> {
        if !self.events.is_empty() {
            return None;
        }
        let expiry = |timer: &Timer| match &timer.action {
            TimerAction::Expire(table, None) => Some((timer.time, table.upgrade())),
            _ => None,
        };
        self.timers.0.iter().map(expiry).collect()
    }

    /// Appends an expiry timer; the order of calls is that of [`expiries`](Self::expiries).
    pub(crate) fn add_expiry(&mut self, time: f64, table: Weak<Table>) {
        self.timers.append(Timer { time, action: TimerAction::Expire(table, None) });
    }

    /// The time of the next timer.
    #[must_use]
    pub fn next_timer(&self) -> Option<f64> {
        self.timers.next()
    }

    /// Number of queued events.
    pub(crate) fn waiting(&self) -> usize {
        self.events.len()
    }
}

impl Vm<'_> {
    /// Queues an event if [`is_raised`](Self::is_raised) holds for it.
    pub fn queue_event(&mut self, func: FuncId, args: Vec<Value>) {
        if self.is_raised(func) {
            let time = self.m.now;
            self.m.queue.events.push_back(QueuedEvent { func, args, time, uid: None, analyzer: 0 });
        }
    }

    /// Like [`queue_event`](Self::queue_event), for an event that the analyzer of this number raised.
    pub(crate) fn queue_event_of(
        &mut self,
        func: FuncId,
        args: Vec<Value>,
        uid: Option<gannet_base::Uid>,
        analyzer: u64,
    ) {
        if self.is_raised(func) {
            let time = self.m.now;
            self.m.queue.events.push_back(QueuedEvent { func, args, time, uid, analyzer });
        }
    }

    /// Queues the event with a full name, if it exists.
    pub fn queue_named(&mut self, name: &str, args: Vec<Value>) {
        if let Some(func) = self.function_named(name) {
            self.queue_event(func, args);
        }
    }

    pub(crate) fn post_event(&mut self, global: GlobalId, args: Vec<Value>) {
        if let Some(func) = self.event_func(global) {
            self.note_script_event(func);
            self.queue_event(func, args);
        }
    }

    /// Records for the event trace that a script raises or schedules an event.
    fn note_script_event(&mut self, func: FuncId) {
        if let Some(trace) = &mut self.m.event_trace {
            trace.raised_by_script(func);
        }
    }

    fn event_func(&self, global: GlobalId) -> Option<FuncId> {
        if let Value::Func(func) = self.global(global) {
            return Some(func.func);
        }
        match self.p.globals[global].kind {
            GlobalKind::Function(func) => Some(func),
            _ => None,
        }
    }

    /// `schedule when { event(args) }`.
    pub(crate) fn schedule(&mut self, when: &Value, global: GlobalId, args: Vec<Value>) {
        if self.m.terminating {
            return;
        }
        let time = match when {
            Value::Time(time) => *time,
            other => self.m.now + other.double(),
        };
        if time.is_nan() {
            let name = self.p.name(self.p.globals[global].name);
            let text = format!("{name} is not scheduled: its time is not a number");
            return self.report(Severity::Warning, text);
        }
        if let Some(func) = self.event_func(global) {
            self.note_script_event(func);
            crate::bridge::watch(self, &args);
            self.add_timer(time, TimerAction::Event(func, args));
        }
    }

    pub(crate) fn add_timer(&mut self, time: f64, action: TimerAction) {
        // NaN has no order, and timers are ordered by time.
        let time = if time.is_nan() { f64::INFINITY } else { time };
        self.m.queue.timers.add(Timer { time, action });
    }

    /// Fires all timers that are due at `now`.
    ///
    /// # Errors
    /// Returns [`Stop`] if the program stops.
    #[inline]
    pub fn fire_timers(&mut self, now: f64) -> Result<(), Stop> {
        if self.m.queue.timers.next().is_some_and(|time| time <= now) {
            self.fire_due_timers(now)?;
        }
        Ok(())
    }

    fn fire_due_timers(&mut self, now: f64) -> Result<(), Stop> {
        while self.m.queue.timers.next().is_some_and(|time| time <= now) {
            let Some(timer) = self.m.queue.timers.pop() else { break };
            match timer.action {
                TimerAction::Event(func, args) => {
                    if self.is_raised(func) {
                        let time = if self.m.terminating { self.m.now } else { timer.time };
                        let event = QueuedEvent { func, args, time, uid: None, analyzer: 0 };
                        self.m.queue.events.push_back(event);
                    }
                }
                TimerAction::When(id) => self.when_timeout(id)?,
                TimerAction::LogDelay => crate::bif::log::delay_due(self)?,
                TimerAction::Rotate(id) => crate::bif::log::rotate_due(self, id)?,
                TimerAction::Status(uid, key) => {
                    if !self.m.terminating {
                        crate::bridge::status_due(self, uid, key);
                    }
                }
                TimerAction::Expire(table, walk) => {
                    if !self.m.terminating
                        && let Some(table) = table.upgrade()
                    {
                        self.expire(&table, walk)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Runs the queued events, then the events that they queue; events queued by those wait
    /// for the next drain. Then checks the `when` conditions.
    ///
    /// # Errors
    /// Returns [`Stop`] if the program stops.
    #[inline]
    pub fn drain(&mut self) -> Result<(), Stop> {
        // After most packets there is nothing to do.
        let has_work = self.m.whens.has_work() || self.m.state.resolver.has_answers();
        if self.m.queue.events.is_empty() && !has_work && !cycles::is_due() {
            return Ok(());
        }
        self.drain_queue()
    }

    fn drain_queue(&mut self) -> Result<(), Stop> {
        for _ in 0..2 {
            if self.m.queue.events.is_empty() {
                break;
            }
            let next = std::mem::take(&mut self.m.queue.spare);
            let mut generation = std::mem::replace(&mut self.m.queue.events, next);
            while let Some(event) = generation.pop_front() {
                self.dispatch(event)?;
            }
            self.m.queue.spare = generation;
        }
        self.run_triggers()?;
        if cycles::is_due() {
            cycles::collect_if_needed();
        }
        Ok(())
    }

    /// Drains until the queue is empty.
    ///
    /// # Errors
    /// Returns [`Stop`] if the program stops.
    pub fn drain_all(&mut self) -> Result<(), Stop> {
        loop {
            self.drain()?;
            if self.m.queue.is_empty() {
                return Ok(());
            }
        }
    }

    /// Runs the bodies of an event.
    ///
    /// # Errors
    /// Returns [`Stop`] if the program stops; errors of bodies end only these.
    pub fn dispatch(&mut self, event: QueuedEvent) -> Result<(), Stop> {
        if self.m.is_watched { self.dispatch_watched(event) } else { self.run_event(event) }
    }

    /// Runs the bodies of an event, without `new_event` and the event trace.
    pub(super) fn run_event(&mut self, event: QueuedEvent) -> Result<(), Stop> {
        let QueuedEvent { func, mut args, time, uid, analyzer } = event;
        self.m.state.analyzer = analyzer;
        let calls = &mut self.m.state.invocations;
        let func_index = func.0 as usize;
        if func_index >= calls.len() {
            calls.resize(func_index + 1, 0);
        }
        calls[func_index] += 1;
        if calls[func_index] == 1 && self.function_name(func).starts_with("reporter_") {
            self.m.state.reporters.push(func);
        }
        let before = std::mem::replace(&mut self.m.event_time, time);
        let subject = args.first().cloned().unwrap_or_default();
        let subject_before = std::mem::replace(&mut self.m.subject, subject);
        let uid_before = std::mem::replace(&mut self.m.subject_uid, uid);
        let reporting = self.m.reporting;
        self.m.reporting |= self.m.state.reporters.contains(&func);
        let count = self.p.functions[func].bodies.len();
        for index in 0..count {
            let Some(body) = self.p.functions[func].bodies.get(index).copied() else { break };
            if !self.is_enabled(body) {
                continue;
            }
            let result = if index + 1 == count {
                self.run_last_body(func, body, &mut args)
            } else {
                self.run_body(func, body, &args)
            };
            match result {
                Ok(_) | Err(Stop::Error) => (),
                Err(stop) => return Err(stop),
            }
        }
        self.m.reporting = reporting;
        self.m.event_time = before;
        self.m.subject = subject_before;
        self.m.subject_uid = uid_before;
        self.m.recycle(args);
        Ok(())
    }

    /// Runs the bodies of `new_event`, which run before the event's own bodies.
    pub(super) fn run_new_event(
        &mut self,
        func: FuncId,
        args: &[Value],
        time: f64,
    ) -> Result<(), Stop> {
        let Some(observer) = self.m.observer else { return Ok(()) };
        if observer == func || !self.has_bodies(observer) {
            return Ok(());
        }
        let name = Value::string(self.p.name(self.p.functions[func].name));
        let args = self.call_arguments(func, args);
        let event =
            QueuedEvent { func: observer, args: vec![name, args], time, uid: None, analyzer: 0 };
        self.dispatch(event)
    }

    /// Runs the parsed program from `zeek_init` to `zeek_done`. Returns the exit status.
    pub fn run(&mut self) -> i32 {
        let result = self.run_all();
        let status = match result {
            Ok(()) | Err(Stop::Error) => 0,
            Err(Stop::Fatal) => 1,
            Err(Stop::Exit(status)) => status,
        };
        self.end_output(status)
    }

    /// Flushes the output of scripts and reports write errors. Returns `status`, or 1 if that is 0 and output or rows of text logs
    /// were lost.
    pub(crate) fn end_output(&mut self, status: i32) -> i32 {
        crate::bif::save_stores(self);
        let is_covered = self.write_coverage();
        self.write_event_trace();
        self.m.out.flush_all();
        let is_covered = self.write_call_profile() && is_covered;
        let failures = self.m.out.take_failures();
        for (name, error) in &failures {
            self.report(Severity::Error, format!("{name}: {error}"));
        }
        let is_lost = !is_covered || self.m.out.rows_lost || !failures.is_empty();
        if status == 0 && is_lost { 1 } else { status }
    }

    /// Writes the coverage if it was requested. Returns false, and reports the error, if that failed.
    fn write_coverage(&mut self) -> bool {
        let Some(coverage) = self.m.coverage.take() else { return true };
        let written = coverage.write(self.p, &self.m.runs);
        if let Err(text) = &written {
            self.report(Severity::Error, text.clone());
        }
        written.is_ok()
    }

    fn run_all(&mut self) -> Result<(), Stop> {
        self.m.state.packetless = true;
        let now = if self.follows_wall_clock() { wall_clock() } else { self.m.now };
        self.begin(now, true)?;
        // Without work a run ends before a signal could arrive.
        let waits = self.global_named("exit_only_after_terminate").truth();
        if waits || crate::bif::has_work(self) {
            self.main_loop()?;
            self.report_termination();
        }
        self.finish(true)
    }

    /// Waits after the last packet, before [`Vm::end`]: for termination if scripts request that, and for host lookups.
    pub(crate) fn after_packets(&mut self) -> Result<(), Stop> {
        if self.global_named("exit_only_after_terminate").truth() {
            self.main_loop()?;
        }
        self.finish_lookups()?;
        self.report_termination();
        Ok(())
    }

    /// Finishes a run over packets whose processing returned `result`. Returns the exit status.
    pub(crate) fn end(&mut self, result: Result<(), Stop>) -> i32 {
        match result.and_then(|()| self.finish(false)) {
            Ok(()) | Err(Stop::Error) => 0,
            Err(Stop::Fatal) => 1,
            Err(Stop::Exit(status)) => status,
        }
    }

    /// Waits while scripts suspend the processing of packets; their input and timers continue.
    pub(crate) fn wait_while_suspended(&mut self) -> Result<(), Stop> {
        while self.m.state.suspended > 0 && !self.m.stop_requested {
            let now = self.m.now;
            self.fire_timers(now)?;
            self.drain()?;
            let busy = crate::bif::poll(self)?;
            self.drain()?;
            if !busy && self.m.queue.is_empty() {
                self.m.out.flush();
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        }
        Ok(())
    }

    fn report_termination(&mut self) {
        if self.m.state.terminated {
            self.m.out.flush();
            self.report(Severity::Info, "received termination signal");
        }
    }

    /// Begins the run at network time `now`: runs `zeek_init` and statements at file level. If not `timed`, the first packet raises
    /// `network_time_init`.
    pub(crate) fn begin(&mut self, now: f64, timed: bool) -> Result<(), Stop> {
        self.m.now = now;
        self.m.state.began = true;
        // Templates built while parsing do not use the values of constants.
        self.m.templates.clear();
        cycles::find_cyclic_types(self.p);
        self.m.observer = self.function_named("new_event").filter(|func| self.has_bodies(*func));
        self.m.is_watched = self.m.observer.is_some() || self.m.event_trace.is_some();
        crate::bif::prepare(self)?;
        self.queue_named("zeek_init", Vec::new());
        if timed {
            self.queue_named("network_time_init", Vec::new());
        }
        if let Some(main) = self.p.main {
            let code = self.code(main);
            match self.execute(&code, &[], None, None) {
                Ok(_) => (),
                Err(Stop::Error) => {
                    self.m.out.flush_all();
                    self.report(
                        Severity::Fatal,
                        "failed to execute script statements at top-level scope",
                    );
                    return Err(Stop::Fatal);
                }
                Err(stop) => return Err(stop),
            }
        }
        self.m.running = true;
        self.queue_scripts_loaded();
        self.drain()?;
        self.m.state.initialized = true;
        if self.p.diagnostics.errors > 0 && std::env::var_os("ZEEK_ALLOW_INIT_ERRORS").is_none() {
            self.m.out.flush_all();
            self.report(Severity::Fatal, "errors occurred while initializing");
            return Err(Stop::Fatal);
        }
        crate::bif::log::report_failures(self);
        Ok(())
    }

    /// Whether network time follows the wall clock if no packets set it.
    pub(crate) fn follows_wall_clock(&self) -> bool {
        !matches!(self.global_named("allow_network_time_forward"), Value::Bool(false))
    }

    fn queue_scripts_loaded(&mut self) {
        let Some(func) = self.function_named("zeek_script_loaded") else { return };
        if !self.is_raised(func) {
            return;
        }
        let files: Vec<(String, u32)> = self
            .p
            .sources
            .files
            .iter()
            .map(|(_, file)| (file.path.to_string(), file.depth))
            .collect();
        for (path, depth) in files {
            self.queue_event(func, vec![Value::string(path), Value::Count(u64::from(depth))]);
        }
    }

    fn main_loop(&mut self) -> Result<(), Stop> {
        loop {
            let waits_for_terminate = self.global_named("exit_only_after_terminate").truth();
            if self.m.stop_requested || (!waits_for_terminate && !crate::bif::has_work(self)) {
                break;
            }
            let now = wall_clock();
            if self.follows_wall_clock() {
                self.m.now = self.m.now.max(now);
            }
            let now = self.m.now;
            let busy = crate::bif::poll(self)?;
            self.fire_timers(now)?;
            self.drain()?;
            if !busy && self.m.queue.is_empty() && !self.m.stop_requested {
                self.m.out.flush();
                let wait = self.m.queue.next_timer().map_or(0.01, |time| time - wall_clock());
                let wait = wait.clamp(0.0, 0.005);
                std::thread::sleep(std::time::Duration::from_secs_f64(wait));
            }
        }
        Ok(())
    }

    /// Polls the Input framework before the next packet. If scripts suspended the processing of packets, waits until they continue
    /// it; network time does not advance meanwhile.
    pub(crate) fn before_packet(&mut self) -> Result<(), Stop> {
        while self.m.state.suspended > 0 && !self.m.stop_requested {
            self.fire_timers(self.m.now)?;
            self.drain()?;
            let busy = crate::bif::poll(self)?;
            self.drain()?;
            if !busy && self.m.queue.is_empty() {
                self.m.out.flush();
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        }
        crate::bif::poll(self).map(|_| ())
    }

    /// Ends the run: fires the remaining timers, runs `zeek_done` and finishes logs.
    fn finish(&mut self, net_done: bool) -> Result<(), Stop> {
        self.m.terminating = true;
        let now = self.m.now;
        if let Some(func) = self.function_named("net_done").filter(|_| net_done) {
            // Queued events run before its handlers.
            if self.has_bodies(func) {
                self.drain()?;
            }
            self.dispatch(QueuedEvent {
                func,
                args: vec![Value::Time(now)],
                time: now,
                uid: None,
                analyzer: 0,
            })?;
        }
        self.fire_timers(f64::INFINITY)?;
        self.drain()?;
        self.drain()?;
        if net_done {
            // In runs over packets, connections and files end here.
            self.drain()?;
            self.drain()?;
        }
        self.queue_named("zeek_done", Vec::new());
        self.fire_timers(f64::INFINITY)?;
        self.drain_all()?;
        self.drain()?;
        crate::bif::finish(self)?;
        self.drain_all()
    }
}

/// Seconds since 1970.
#[must_use]
pub fn wall_clock() -> f64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0.0, |time| (time.as_micros() as f64) / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fired(times: &[f64]) -> Vec<(f64, u64)> {
        let mut timers = Timers::default();
        for (number, time) in times.iter().enumerate() {
            timers.add(Timer { time: *time, action: TimerAction::When(number as u64) });
        }
        let mut fired = Vec::new();
        while let Some(timer) = timers.pop() {
            let TimerAction::When(number) = timer.action else { continue };
            fired.push((timer.time, number));
        }
        fired
    }

    #[test]
    fn timers_fire_by_time() {
        let times: Vec<f64> = (0..200).map(|n| f64::from(n * 37 % 101)).collect();
        let fired = fired(&times);
        assert_eq!(fired.len(), times.len());
        assert!(fired.is_sorted_by(|a, b| a.0 <= b.0));
    }

    #[test]
    fn timers_of_the_same_time_fire_in_the_order_of_the_heap() {
        let order: Vec<u64> = fired(&[1.0; 5]).iter().map(|timer| timer.1).collect();
        assert_eq!(order, [0, 4, 3, 2, 1]);
    }
}
