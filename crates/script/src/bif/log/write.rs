//! Writes to log streams: policies, filters, paths, delays.

use std::collections::BTreeMap;
use std::collections::HashMap;
use std::rc::Rc;

use super::super::arg;
use super::{Filter, output};
use crate::diagnostics::Severity;
use crate::evaluate::Stop;
use crate::ids::TypeId;
use crate::types::{Flavor, Tag};
use crate::value::{FuncValue, OpaqueValue, Record, Value, Vector};
use crate::vm::Vm;

type Result<T> = std::result::Result<T, Stop>;

/// A write whose stream policy, or whose callbacks after a delay, are running.
pub(super) struct Writing {
    id: i64,
    record: Value,
    delay: Option<Delay>,
}

/// The delay of a write.
#[derive(Default)]
struct Delay {
    /// The token that scripts refer to.
    token: u64,
    /// Calls of `Log::delay` without a matching `Log::delay_finish`.
    refs: u64,
    /// Callbacks that run when the delay ends.
    callbacks: Vec<Rc<FuncValue>>,
    due: f64,
}

/// A delayed write.
pub(super) struct Delayed {
    record: Value,
    delay: Delay,
}

/// Delayed writes of a stream, in the order in which their delays began.
#[derive(Default)]
pub(super) struct Queue {
    waiting: BTreeMap<u64, Delayed>,
    /// Keys in `waiting` by token.
    keys: HashMap<u64, u64>,
    next: u64,
}

impl Queue {
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    fn push(&mut self, delayed: Delayed) {
        self.keys.insert(delayed.delay.token, self.next);
        self.waiting.insert(self.next, delayed);
        self.next += 1;
    }

    fn contains(&self, token: u64) -> bool {
        self.keys.contains_key(&token)
    }

    fn get_mut(&mut self, token: u64) -> Option<&mut Delayed> {
        self.waiting.get_mut(self.keys.get(&token)?)
    }

    fn remove(&mut self, token: u64) -> Option<Delayed> {
        self.waiting.remove(&self.keys.remove(&token)?)
    }

    /// The oldest write.
    fn first(&self) -> Option<&Delayed> {
        self.waiting.first_key_value().map(|(_, delayed)| delayed)
    }
}

/// A token of `Log::delay`; 0 if there is no delay.
#[derive(Clone)]
struct Token(u64);

/// `Log::__write`.
pub(super) fn write(vm: &mut Vm<'_>, id: &Value, columns: &Value) -> Result<Value> {
    let number = id.int();
    let Some((enabled, ty, event)) =
        vm.m.state
            .log
            .streams
            .get(&number)
            .map(|stream| (stream.enabled, stream.columns, stream.event))
    else {
        return Ok(Value::Bool(false));
    };
    if !enabled {
        return Ok(Value::Bool(true));
    }
    count(vm, number);
    let record = match columns {
        Value::Record(record) if record.ty() == ty => columns.clone(),
        Value::Record(record) if vm.p.record_promotable(ty, record.ty()) => {
            vm.convert(columns, ty)?
        }
        _ => {
            vm.report(Severity::Error, "incompatible log record type");
            return Ok(Value::Bool(false));
        }
    };
    if let Some(event) = event
        && vm.is_raised(event)
    {
        vm.queue_event(event, vec![record.clone()]);
    }
    let mut allowed = true;
    let policy = &vm.m.state.log.policy;
    if let Some(hook) = *policy.get_or_init(|| vm.function_named("Log::log_stream_policy"))
        && vm.has_bodies(hook)
    {
        let writing = Writing { id: number, record: record.clone(), delay: None };
        vm.m.state.log.writing.push(writing);
        let result = vm.call_func(hook, &[record.clone(), id.clone()]);
        let delay = vm.m.state.log.writing.pop().and_then(|writing| writing.delay);
        allowed = result?.truth();
        if let Some(delay) = delay.filter(|_| allowed) {
            enqueue(vm, number, Delayed { record, delay })?;
            return Ok(Value::Bool(true));
        }
    }
    write_filters(vm, id, &record, allowed)?;
    Ok(Value::Bool(true))
}

/// Counts a write to a stream.
fn count(vm: &mut Vm<'_>, number: i64) {
    let state = &mut vm.m.state;
    let Some(stream) = state.log.streams.get_mut(&number) else { return };
    let metrics = &mut state.metrics;
    let metric = *stream.writes.get_or_insert_with(|| {
        let help = b"Total number of log writes for the given stream";
        let kind = super::super::telemetry::Kind::Counter;
        let family = metrics.family(kind, b"zeek", b"log_stream_writes", b"", help, Vec::new());
        let module = stream.name.split_once("::").map_or("GLOBAL", |(module, _)| module);
        let labels = [("module", module), ("stream", &stream.name)];
        metrics.metric(family, labels.map(|(name, value)| (name.into(), value.into())).into())
    });
    metrics.add(metric, 1.0);
}

/// Writes a record to all filters of a stream.
fn write_filters(vm: &mut Vm<'_>, id: &Value, record: &Value, allowed: bool) -> Result<()> {
    let Some(filters) =
        vm.m.state.log.streams.get(&id.int()).map(|stream| Rc::clone(&stream.filters))
    else {
        return Ok(());
    };
    for filter in filters.iter() {
        if let Some(policy) = filter.policy.as_ref().filter(|policy| has_body(vm, policy)) {
            let args = [record.clone(), id.clone(), filter.value.clone()];
            if !vm.call(policy, &args)?.truth() {
                continue;
            }
        }
        if !allowed {
            continue;
        }
        let Some(path) = path_of(vm, id, record, filter)? else { continue };
        if filter.local {
            output::write(vm, id, filter, &path, record)?;
        }
    }
    Ok(())
}

/// Whether a policy hook has a body.
fn has_body(vm: &Vm<'_>, policy: &FuncValue) -> bool {
    vm.p.functions.find(policy.func).is_none_or(|function| function.flavor != Flavor::Hook)
        || vm.has_bodies(policy.func)
}

/// The path that a filter writes a record to.
fn path_of(
    vm: &mut Vm<'_>,
    id: &Value,
    record: &Value,
    filter: &Rc<Filter>,
) -> Result<Option<Rc<str>>> {
    let known = filter.path.borrow().clone();
    let Some(func) = &filter.path_func else { return Ok(known) };
    let wanted = vm.p.types.params(func.ty).get(2).map_or(TypeId::ANY, |param| param.ty);
    let rec = if vm.p.types.tag(wanted) == Tag::Record {
        vm.convert(record, wanted)?
    } else {
        record.clone()
    };
    let given = Value::string(known.as_deref().unwrap_or_default());
    let result = match vm.call(func, &[id.clone(), given, rec]) {
        Ok(result) => result,
        Err(Stop::Error) => return Ok(None),
        Err(stop) => return Err(stop),
    };
    if result.bytes().is_none() {
        return Ok(None);
    }
    let path: Rc<str> = result.text().into();
    if known.is_none() {
        *filter.path.borrow_mut() = Some(Rc::clone(&path));
    }
    Ok(Some(path))
}

/// `Log::delay`.
pub(super) fn delay(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let id = arg(args, 0).int();
    let ty = vm.result_type();
    let token = |number| Ok(Value::Opaque(OpaqueValue::new(ty, Token(number))));
    let log = &vm.m.state.log;
    let Some(writing) = log.writing.last() else {
        let text = "invalid Log::delay() call: outside of Log::log_stream_policy() hook";
        vm.report(Severity::Error, text);
        return token(0);
    };
    if writing.id != id || !writing.record.same_object(arg(args, 1)) {
        let text = "invalid Log::delay() call: argument mismatch with active Log::write()";
        vm.report(Severity::Error, text);
        return token(0);
    }
    let max = log.streams.get(&id).map_or(0.0, |stream| stream.max_delay);
    let due = vm.m.now + max;
    let log = &mut vm.m.state.log;
    let Some(writing) = log.writing.last_mut() else { return token(0) };
    let delay = writing.delay.get_or_insert_with(|| {
        log.tokens += 1;
        Delay { token: log.tokens, due, ..Delay::default() }
    });
    delay.refs += 1;
    if let Value::Func(func) = arg(args, 2) {
        delay.callbacks.push(Rc::clone(func));
    }
    token(delay.token)
}

/// `Log::delay_finish`.
pub(super) fn delay_finish(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let id = arg(args, 0).int();
    let token = arg(args, 2).opaque().and_then(|opaque| opaque.with(|token: &mut Token| token.0));
    let Some(token) = token.filter(|token| *token != 0) else {
        vm.report(Severity::Error, "invalid Log::delay_finish() call: invalid token provided");
        return Ok(Value::Bool(false));
    };
    let is_active =
        |writing: &&mut Writing| writing.delay.as_ref().is_some_and(|delay| delay.token == token);
    // Zeek reports addresses of records; here a record identifies its write.
    let given = token_of(&vm.m.state.log, arg(args, 1));
    let log = &mut vm.m.state.log;
    let waits = log.streams.get(&id).is_some_and(|stream| stream.delayed.contains(token));
    let known = match log.streams.get_mut(&id) {
        Some(stream) if waits => {
            let delayed = stream.delayed.get_mut(token);
            delayed.map(|delayed| (&delayed.record, &mut delayed.delay))
        }
        _ => log.writing.iter_mut().find(is_active).and_then(|writing| {
            let record = &writing.record;
            writing.delay.as_mut().map(|delay| (record, delay))
        }),
    };
    let problem = match known {
        None => Some(format!("non-existing log record for token={token}")),
        Some((record, _)) if !record.same_object(arg(args, 1)) => {
            Some(format!("record mismatch token={token} {given:#x} and {token:#x}"))
        }
        Some((_, delay)) if delay.refs == 0 => {
            Some(format!("delay reference underflow for token={token}"))
        }
        Some((_, delay)) => {
            delay.refs -= 1;
            if delay.refs > 0 || !waits {
                return Ok(Value::Bool(true));
            }
            None
        }
    };
    if let Some(problem) = problem {
        vm.report(Severity::Error, &problem);
        return Ok(Value::Bool(false));
    }
    complete(vm, id, token)?;
    Ok(Value::Bool(true))
}

/// The token of the delayed write of a record; 0 if the record is not delayed.
fn token_of(log: &super::Logs, record: &Value) -> u64 {
    let waiting = log.streams.values().flat_map(|stream| stream.delayed.waiting.values());
    let waiting = waiting.map(|delayed| (&delayed.record, &delayed.delay));
    let writing = log.writing.iter().filter_map(|now| Some((&now.record, now.delay.as_ref()?)));
    let mut all = waiting.chain(writing);
    all.find(|(known, _)| known.same_object(record)).map_or(0, |(_, delay)| delay.token)
}

/// Delays a write until its delay is finished or the maximum delay of the stream expires.
fn enqueue(vm: &mut Vm<'_>, id: i64, delayed: Delayed) -> Result<()> {
    let Delay { token, refs, due, .. } = delayed.delay;
    if let Some(stream) = vm.m.state.log.streams.get_mut(&id) {
        stream.delayed.push(delayed);
    }
    evict_excess(vm, id)?;
    if refs == 0 {
        return complete(vm, id, token);
    }
    vm.add_timer(due, crate::vm::events::TimerAction::LogDelay);
    Ok(())
}

/// Ends the delay of a write: runs its callbacks, which may delay the write again.
fn complete(vm: &mut Vm<'_>, id: i64, token: u64) -> Result<()> {
    let Some(stream) = vm.m.state.log.streams.get_mut(&id) else { return Ok(()) };
    let Some(Delayed { record, delay }) = stream.delayed.remove(token) else { return Ok(()) };
    let stream_id = stream.id.clone();
    let writing = Writing { id, record: record.clone(), delay: None };
    vm.m.state.log.writing.push(writing);
    let (mut allowed, mut stopped) = (true, None);
    for callback in &delay.callbacks {
        match vm.call(callback, &[record.clone(), stream_id.clone()]) {
            Ok(result) => allowed &= !matches!(result, Value::Bool(false)),
            Err(Stop::Error) => {}
            Err(stop) => {
                stopped = Some(stop);
                break;
            }
        }
    }
    let new_delay = vm.m.state.log.writing.pop().and_then(|writing| writing.delay);
    if let Some(stop) = stopped {
        return Err(stop);
    }
    match new_delay {
        Some(delay) => enqueue(vm, id, Delayed { record, delay }),
        None if allowed => write_filters(vm, &stream_id, &record, true),
        None => Ok(()),
    }
}

/// The oldest delayed write of a stream.
fn oldest(vm: &Vm<'_>, id: i64) -> Option<(u64, f64)> {
    let first = vm.m.state.log.streams.get(&id)?.delayed.first()?;
    Some((first.delay.token, first.delay.due))
}

/// Ends the oldest delays while a stream has more delayed writes than its limit.
pub(super) fn evict_excess(vm: &mut Vm<'_>, id: i64) -> Result<()> {
    let Some(stream) = vm.m.state.log.streams.get_mut(&id) else { return Ok(()) };
    let size = stream.delayed.len();
    if stream.evicts || size <= stream.max_delay_queue {
        return Ok(());
    }
    stream.evicts = true;
    let mut result = Ok(());
    for round in 1..=size {
        let Some((token, _)) = oldest(vm, id) else { break };
        result = complete(vm, id, token);
        let Some(stream) = vm.m.state.log.streams.get(&id) else { break };
        if result.is_err() || stream.delayed.len() <= stream.max_delay_queue {
            break;
        }
        if round == size {
            let (len, name) = (stream.delayed.len(), stream_name(vm, id));
            let text = format!(
                "unable to evict delayed records for stream {name} queue_size={len}, all re-delayed?"
            );
            vm.report(Severity::Warning, &text);
        }
    }
    if let Some(stream) = vm.m.state.log.streams.get_mut(&id) {
        stream.evicts = false;
    }
    result
}

/// Ends delays that have expired.
///
/// # Errors
/// [`Stop`] where the program stops.
pub fn delay_due(vm: &mut Vm<'_>) -> Result<()> {
    for id in ids(vm) {
        // At the end of the run, all current delays end; writes that callbacks delay again remain.
        let waiting = vm.m.state.log.streams.get(&id).map_or(0, |stream| stream.delayed.len());
        for _ in 0..waiting {
            let Some((token, due)) = oldest(vm, id) else { break };
            if due > vm.m.now && !vm.m.terminating {
                break;
            }
            complete(vm, id, token)?;
        }
    }
    Ok(())
}

/// The name of a stream, such as `Conn::LOG`.
fn stream_name(vm: &Vm<'_>, id: i64) -> String {
    match vm.m.state.log.streams.get(&id).map(|stream| &stream.id) {
        Some(Value::Enum(ty, number)) => crate::value::describe::enum_name(vm.p, *ty, *number),
        _ => String::new(),
    }
}

/// Maximum number of delays that callbacks start while a stream is removed, so that callbacks that always delay again end.
const MAX_DELAYED_AGAIN: usize = 100_000;

/// Ends all delays at the end of the run.
pub(super) fn release_all(vm: &mut Vm<'_>) -> Result<()> {
    for id in ids(vm) {
        release(vm, id)?;
    }
    Ok(())
}

/// Ends all delays of a stream. Those that callbacks start again meanwhile are limited, and a warning states how many writes are
/// lost.
pub(super) fn release(vm: &mut Vm<'_>, id: i64) -> Result<()> {
    let waiting = |vm: &Vm<'_>| vm.m.state.log.streams.get(&id).map_or(0, |s| s.delayed.len());
    for _ in 0..waiting(vm).saturating_add(MAX_DELAYED_AGAIN) {
        let Some((token, _)) = oldest(vm, id) else { break };
        complete(vm, id, token)?;
    }
    let lost = waiting(vm);
    if lost > 0 {
        let name = stream_name(vm, id);
        let text =
            format!("{lost} delayed records of stream {name} are not written: all re-delayed");
        vm.report(Severity::Warning, &text);
    }
    Ok(())
}

/// The ids of the streams, sorted.
fn ids(vm: &Vm<'_>) -> Vec<i64> {
    let mut ids: Vec<i64> = vm.m.state.log.streams.keys().copied().collect();
    ids.sort_unstable();
    ids
}

/// Writes the output of `print` to the stream `Log::PRINTLOG`; returns false if that does not exist.
///
/// # Errors
/// [`Stop`] where the program stops.
pub fn write_print(vm: &mut Vm<'_>, texts: Vec<Value>) -> Result<bool> {
    let id = vm.enum_named("Log::PRINTLOG");
    let Some(ty) = vm.m.state.log.streams.get(&id.int()).map(|stream| stream.columns) else {
        return Ok(false);
    };
    let strings = vm.type_named("string_vec").unwrap_or(TypeId::UNSPECIFIED_VECTOR);
    let now = Value::Time(vm.m.now);
    let record = Record::new(ty, vec![now, Value::Vector(Vector::new(strings, texts))]);
    write(vm, &id, &Value::Record(record))?;
    Ok(true)
}
