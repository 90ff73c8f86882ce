//! `when`: conditions that are evaluated again when a value that they depend on changed.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use super::Vm;
use super::events::TimerAction;
use crate::code::WhenPlan;
use crate::evaluate::Stop;
use crate::ids::{ExprId, GlobalId, TypeId};
use crate::support::resolver::{self, Answer, Question};
use crate::value::{Table, Value};

/// The pending `when` statements.
#[derive(Default)]
pub(crate) struct Triggers {
    waiting: Vec<Rc<Trigger>>,
    /// Triggers to evaluate at the next drain, in the order of the changes that they depend on.
    queue: Vec<Rc<Trigger>>,
    next: u64,
    /// Triggers whose conditions are being evaluated, the outermost first.
    evaluating: Vec<Rc<Trigger>>,
    /// Results of asynchronous functions, for the next drain.
    answers: Vec<(Rc<Trigger>, ExprId, Value)>,
    /// Pending host lookups.
    lookups: Vec<Lookup>,
}

/// Maximum wait for host lookups at the end of a run.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(10);

/// A host lookup whose answer a condition waits for.
struct Lookup {
    trigger: Rc<Trigger>,
    call: ExprId,
    /// The result type of the call.
    ty: TypeId,
    question: Question,
    receiver: Receiver<Answer>,
}

/// A pending `when` statement.
pub(crate) struct Trigger {
    id: u64,
    plan: Rc<WhenPlan>,
    registers: RefCell<Vec<Value>>,
    watched: RefCell<HashSet<usize>>,
    done: Cell<bool>,
    /// Whether the condition waits for the result of an asynchronous call, and is not evaluated until then.
    delayed: Cell<bool>,
    /// The timeout in seconds, and the network time at which it began; 0 if network time was not known.
    timeout: Cell<Option<(f64, f64)>>,
    /// Results of asynchronous calls, by the call.
    results: RefCell<HashMap<ExprId, Value>>,
    /// For a `return when`: the trigger whose condition waits for the result, and the call in that condition.
    parent: Option<(Rc<Trigger>, ExprId)>,
}

impl Triggers {
    /// Whether a condition is being evaluated.
    pub(crate) fn is_evaluating(&self) -> bool {
        !self.evaluating.is_empty()
    }

    /// Queues a trigger for the next drain, unless it is queued.
    fn enqueue(&mut self, trigger: &Rc<Trigger>) {
        if !self.queue.iter().any(|queued| Rc::ptr_eq(queued, trigger)) {
            self.queue.push(Rc::clone(trigger));
        }
    }

    fn enqueue_where(&mut self, depends: impl Fn(&Trigger) -> bool) {
        for at in 0..self.waiting.len() {
            if let Some(trigger) = self.waiting.get(at)
                && depends(trigger)
            {
                let trigger = Rc::clone(trigger);
                self.enqueue(&trigger);
            }
        }
    }

    /// Whether a trigger is queued, or the result of an asynchronous function has arrived.
    pub(crate) fn has_work(&self) -> bool {
        !self.queue.is_empty() || !self.answers.is_empty()
    }

    /// Whether host lookups are pending.
    #[must_use]
    pub(crate) fn has_lookups(&self) -> bool {
        !self.lookups.is_empty()
    }

    /// Whether no `when` is pending and no condition is being evaluated.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.evaluating.is_empty()
    }
}

impl Vm<'_> {
    /// Runs a `when` statement. Returns the result of its body if the condition holds at once.
    pub(crate) fn begin_when(
        &mut self,
        plan: &Rc<WhenPlan>,
        captures: Vec<Value>,
        timeout: Option<f64>,
    ) -> Result<Option<Value>, Stop> {
        let mut registers = vec![Value::Unset; plan.locals];
        for (capture, value) in plan.when.captures.iter().zip(captures) {
            let value = if capture.deep { self.copy(plan.when.condition, &value)? } else { value };
            if let Some(slot) = registers.get_mut(capture.inner.0 as usize) {
                *slot = value;
            }
        }
        let parent = if plan.when.returns {
            let call = self.outer_call();
            let parent = self.m.whens.evaluating.last().cloned().zip(call);
            if parent.is_none() {
                let text = "return trigger in context which does not allow delaying result";
                self.report(crate::diagnostics::Severity::Error, text);
                return Ok(None);
            }
            parent
        } else {
            None
        };
        self.m.whens.next += 1;
        let trigger = Rc::new(Trigger {
            id: self.m.whens.next,
            plan: Rc::clone(plan),
            registers: RefCell::new(registers),
            watched: RefCell::new(HashSet::new()),
            done: Cell::new(false),
            delayed: Cell::new(false),
            timeout: Cell::new(timeout.map(|wait| (wait, self.m.now))),
            results: RefCell::new(HashMap::new()),
            parent,
        });
        if let Some(result) = self.try_trigger(&trigger)? {
            return Ok(Some(result));
        }
        self.m.whens.waiting.push(Rc::clone(&trigger));
        if let Some(wait) = timeout {
            let at = self.m.now + wait;
            self.add_timer(at, TimerAction::When(trigger.id));
        }
        if let Some((parent, _)) = &trigger.parent {
            parent.delayed.set(true);
            self.m.delayed = true;
            return Err(Stop::Error);
        }
        Ok(None)
    }

    /// The call in the condition being evaluated that led to the current call.
    fn outer_call(&self) -> Option<ExprId> {
        let depth = self.m.frames.iter().rposition(|frame| frame.keep)?;
        let frame = self.m.frames.get(depth)?;
        frame.code.sites.get(frame.pc.checked_sub(1)?).copied()
    }

    /// Ends the evaluation of the condition that called the running asynchronous function; the next drain evaluates it again, with
    /// `answer` as the result of the call. Outside of conditions, returns `answer`.
    ///
    /// # Errors
    /// Returns [`Stop::Error`] if a condition waits.
    pub(crate) fn answer_later(&mut self, answer: Value) -> Result<Value, Stop> {
        let Some((trigger, call)) = self.m.whens.evaluating.last().cloned().zip(self.outer_call())
        else {
            return Ok(answer);
        };
        trigger.delayed.set(true);
        self.m.whens.answers.push((trigger, call, answer));
        self.m.delayed = true;
        Err(Stop::Error)
    }

    /// Starts a host lookup; its answer becomes the result of the running function. Outside of conditions, waits for the answer.
    ///
    /// # Errors
    /// Returns [`Stop::Error`] if a condition waits.
    pub(crate) fn look_up(&mut self, question: Question) -> Result<Value, Stop> {
        let ty = self.result_type();
        let waits = self.m.whens.evaluating.last().cloned().zip(self.outer_call());
        let Some((trigger, call)) = waits else {
            let found = resolver::answer(&question);
            return Ok(self.host_value(&question, found, ty));
        };
        trigger.delayed.set(true);
        let receiver = self.m.state.resolver.resolve(question.clone());
        self.m.whens.lookups.push(Lookup { trigger, call, ty, question, receiver });
        self.m.delayed = true;
        Err(Stop::Error)
    }

    /// Converts the answer of a host lookup to a script value.
    pub(crate) fn host_value(&mut self, question: &Question, found: Answer, ty: TypeId) -> Value {
        let addrs = match (question, found) {
            (_, Answer::Name(name)) => return Value::string(name),
            (_, Answer::Text(text)) => return Value::string_owned(text),
            (_, Answer::Addrs(addrs)) => addrs,
            (Question::Name(_), Answer::Nothing) => vec![IpAddr::from([0, 0, 0, 0])],
            (_, Answer::Nothing) => return Value::string("<???>"),
        };
        let table = self.new_table(ty, None);
        for addr in addrs {
            let octets = match addr {
                IpAddr::V4(addr) => addr.to_ipv6_mapped().octets(),
                IpAddr::V6(addr) => addr.octets(),
            };
            if let Value::Table(table) = &table {
                table.insert(Value::addr(octets), Value::Unset, self.m.now);
            }
        }
        table
    }

    /// Polls the pending host lookups, and discards those whose `when` is done.
    fn poll_lookups(&mut self) {
        for lookup in std::mem::take(&mut self.m.whens.lookups) {
            let resolver = &self.m.state.resolver;
            if lookup.trigger.done.get() {
                // Receiving updates the resolver's count of answers.
                let _ = resolver.try_receive(&lookup.receiver);
                continue;
            }
            match resolver.try_receive(&lookup.receiver) {
                None => self.m.whens.lookups.push(lookup),
                Some(found) => {
                    let Lookup { trigger, call, ty, question, .. } = lookup;
                    let answer = self.host_value(&question, found, ty);
                    self.m.whens.answers.push((trigger, call, answer));
                }
            }
        }
    }

    /// Waits for the pending host lookups and runs the `when`s that depend on them. Lookups that take too long get an empty answer.
    pub(crate) fn finish_lookups(&mut self) -> Result<(), Stop> {
        let started = Instant::now();
        while self.m.whens.has_lookups()
            && !self.m.stop_requested
            && started.elapsed() < LOOKUP_TIMEOUT
        {
            self.drain_all()?;
            // A trigger that has timed out needs no answer.
            self.m.whens.lookups.retain(|lookup| !lookup.trigger.done.get());
            std::thread::sleep(Duration::from_millis(1));
        }
        for lookup in std::mem::take(&mut self.m.whens.lookups) {
            let Lookup { trigger, call, ty, question, .. } = lookup;
            let answer = self.host_value(&question, Answer::Nothing, ty);
            self.m.whens.answers.push((trigger, call, answer));
        }
        self.drain_all()
    }

    /// Whether the condition being evaluated has a timeout; `None` if no condition is being evaluated.
    pub(crate) fn timeout_of_condition(&self) -> Option<bool> {
        Some(self.m.whens.evaluating.last()?.timeout.get().is_some())
    }

    /// The result of an asynchronous call for which the condition being evaluated had waited.
    pub(crate) fn cached_result(&self, call: ExprId) -> Option<Value> {
        self.m.whens.evaluating.last()?.results.borrow().get(&call).cloned()
    }

    /// Evaluates a condition, and runs the body if it holds.
    fn try_trigger(&mut self, trigger: &Rc<Trigger>) -> Result<Option<Value>, Stop> {
        let mut registers = trigger.registers.borrow().clone();
        self.watch_captures(trigger, &registers);
        self.m.whens.evaluating.push(Rc::clone(trigger));
        let result = self.execute_on(&trigger.plan.condition, &mut registers);
        self.m.whens.evaluating.pop();
        self.m.delayed = false;
        let holds = match result {
            Ok(value) => is_true(&value),
            Err(Stop::Error) => false,
            Err(stop) => return Err(stop),
        };
        if !holds {
            return Ok(None);
        }
        trigger.done.set(true);
        *trigger.registers.borrow_mut() = registers;
        self.run_when_code(trigger, false).map(Some)
    }

    fn run_when_code(&mut self, trigger: &Rc<Trigger>, timed_out: bool) -> Result<Value, Stop> {
        let code = if timed_out {
            match &trigger.plan.timeout {
                Some(code) => Rc::clone(code),
                None => return Ok(Value::Unset),
            }
        } else {
            Rc::clone(&trigger.plan.body)
        };
        let mut registers = trigger.registers.borrow().clone();
        let result = match self.execute_on(&code, &mut registers) {
            Ok(value) => value,
            Err(Stop::Error) => Value::Unset,
            Err(stop) => return Err(stop),
        };
        if let Some((parent, call)) = &trigger.parent {
            parent.delayed.set(false);
            if result.is_set() {
                parent.results.borrow_mut().insert(*call, result.clone());
                self.m.whens.enqueue(parent);
            }
        }
        Ok(result)
    }

    fn watch_captures(&self, trigger: &Trigger, registers: &[Value]) {
        let mut watched = trigger.watched.borrow_mut();
        watched.clear();
        watched.extend(registers.iter().filter_map(Value::address));
        for global in &trigger.plan.when.globals {
            watched.extend(self.global(*global).address());
        }
    }

    /// Queues the triggers that depend on an assigned global.
    pub(crate) fn global_changed(&mut self, global: GlobalId) {
        self.m.whens.enqueue_where(|trigger| trigger.plan.when.globals.contains(&global));
    }

    /// Queues the triggers that depend on a changed aggregate.
    pub(crate) fn object_changed(&mut self, value: &Value) {
        if let Some(address) = value.address() {
            self.m.whens.enqueue_where(|trigger| trigger.watched.borrow().contains(&address));
        }
    }

    pub(crate) fn object_changed_rc(&mut self, table: &Rc<Table>) {
        if !self.m.whens.is_empty() {
            self.object_changed(&Value::Table(Rc::clone(table)));
        }
    }

    /// Records a value read by index: the condition being evaluated depends on it if the read is in the condition itself.
    pub(crate) fn record_read(&self, value: &Value) {
        if let Some(trigger) = self.m.whens.evaluating.last()
            && self.m.frames.last().is_some_and(|frame| frame.keep)
        {
            trigger.watched.borrow_mut().extend(value.address());
        }
    }

    /// Whether packets are processed and the first has not arrived: results of asynchronous functions are delivered after it.
    fn is_before_packets(&self) -> bool {
        let state = &self.m.state;
        state.traffic.reads_capture
            && state.first_packet == 0.0
            && state.suspended == 0
            && !self.m.terminating
    }

    /// Evaluates the queued triggers. Triggers that this queues wait for the next drain.
    pub(crate) fn run_triggers(&mut self) -> Result<(), Stop> {
        if self.m.state.resolver.has_answers() {
            self.poll_lookups();
        }
        if !self.is_before_packets() {
            for (trigger, call, answer) in std::mem::take(&mut self.m.whens.answers) {
                trigger.results.borrow_mut().insert(call, answer);
                trigger.delayed.set(false);
                self.m.whens.enqueue(&trigger);
            }
        }
        if self.m.whens.queue.is_empty() {
            return Ok(());
        }
        for trigger in std::mem::take(&mut self.m.whens.queue) {
            if !trigger.done.get() && !trigger.delayed.get() {
                self.try_trigger(&trigger)?;
            }
        }
        self.m.whens.waiting.retain(|trigger| !trigger.done.get());
        Ok(())
    }

    /// Handles the timeout of a `when`.
    pub(crate) fn when_timeout(&mut self, id: u64) -> Result<(), Stop> {
        let found = self.m.whens.waiting.iter().find(|trigger| trigger.id == id).cloned();
        let Some(trigger) = found else { return Ok(()) };
        // A timeout that began before network time was known begins at the current time.
        if let Some((wait, 0.0)) = trigger.timeout.get()
            && self.m.now > 0.0
        {
            trigger.timeout.set(Some((wait, self.m.now)));
            self.add_timer(self.m.now + wait, TimerAction::When(id));
            return Ok(());
        }
        if trigger.done.replace(true) {
            return Ok(());
        }
        self.m.whens.waiting.retain(|trigger| trigger.id != id);
        // The timeout has fired and is cleared.
        trigger.timeout.set(None);
        self.run_when_code(&trigger, true)?;
        Ok(())
    }
}

/// Whether a condition holds: all values hold except false, zero and unset.
fn is_true(value: &Value) -> bool {
    match value {
        Value::Unset => false,
        Value::Bool(_)
        | Value::Int(_)
        | Value::Count(_)
        | Value::Double(_)
        | Value::Time(_)
        | Value::Interval(_)
        | Value::Enum(..) => value.double() != 0.0 || value.truth(),
        _ => true,
    }
}
