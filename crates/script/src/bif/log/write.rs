//! Writes to log streams: policies, filters, paths, delays.

use std::rc::Rc;

use super::super::arg;
use super::{Filter, output};
use crate::diagnostics::Severity;
use crate::evaluate::Stop;
use crate::ids::TypeId;
use crate::types::Tag;
use crate::value::{FuncValue, OpaqueValue, Record, Value, Vector};
use crate::vm::Vm;

type Result<T> = std::result::Result<T, Stop>;

/// A write that is inside of the policy of its stream.
pub(super) struct Writing {
    id: i64,
    record: Value,
    /// Tokens of delays, and the functions to call afterwards.
    tokens: Vec<u64>,
    callbacks: Vec<Rc<FuncValue>>,
}

/// A write that waits.
pub(super) struct Delayed {
    record: Value,
    tokens: Vec<u64>,
    callbacks: Vec<Rc<FuncValue>>,
    due: f64,
}

/// A token of `Log::delay`.
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
    if let Some(event) = event {
        vm.queue_event(event, vec![record.clone()]);
    }
    let mut allowed = true;
    if let Some(hook) = vm.function_named("Log::log_stream_policy")
        && vm.has_bodies(hook)
    {
        vm.m.state.log.writing.push(Writing {
            id: number,
            record: record.clone(),
            tokens: Vec::new(),
            callbacks: Vec::new(),
        });
        let result = vm.call_func(hook, &[record.clone(), id.clone()]);
        let writing = vm.m.state.log.writing.pop();
        allowed = result?.truth();
        if let Some(writing) = writing
            && allowed
            && !writing.tokens.is_empty()
        {
            let now = vm.m.now;
            let mut due = now;
            if let Some(stream) = vm.m.state.log.streams.get_mut(&number) {
                due = now + stream.max_delay;
                stream.delayed.push(Delayed {
                    record,
                    tokens: writing.tokens,
                    callbacks: writing.callbacks,
                    due,
                });
            }
            vm.add_timer(due, crate::vm::events::Due::LogDelay);
            shrink_delays(vm, number)?;
            return Ok(Value::Bool(true));
        }
    }
    write_filters(vm, id, &record, allowed)?;
    Ok(Value::Bool(true))
}

/// Gives a record to all filters of a stream.
fn write_filters(vm: &mut Vm<'_>, id: &Value, record: &Value, allowed: bool) -> Result<()> {
    let filters: Vec<Rc<Filter>> =
        vm.m.state
            .log
            .streams
            .get(&id.int())
            .map(|stream| stream.filters.clone())
            .unwrap_or_default();
    for filter in filters {
        if let Some(policy) = &filter.policy {
            let args = [record.clone(), id.clone(), filter.value.clone()];
            if !vm.call(policy, &args)?.truth() {
                continue;
            }
        }
        if !allowed {
            continue;
        }
        let Some(path) = path_of(vm, id, record, &filter)? else { continue };
        if filter.local {
            output::write(vm, id, &filter, &path, record)?;
        }
    }
    Ok(())
}

/// The path that a filter writes a record to.
fn path_of(
    vm: &mut Vm<'_>,
    id: &Value,
    record: &Value,
    filter: &Rc<Filter>,
) -> Result<Option<String>> {
    let known = filter.path.borrow().clone();
    let Some(func) = &filter.path_func else { return Ok(known) };
    let wanted = vm.p.types.params(func.ty).get(2).map_or(TypeId::ANY, |param| param.ty);
    let rec = if vm.p.types.tag(wanted) == Tag::Record {
        vm.convert(record, wanted)?
    } else {
        record.clone()
    };
    let given = Value::string(known.clone().unwrap_or_default());
    let result = match vm.call(func, &[id.clone(), given, rec]) {
        Ok(result) => result,
        Err(Stop::Error) => return Ok(None),
        Err(stop) => return Err(stop),
    };
    if result.bytes().is_none() {
        return Ok(None);
    }
    let path = result.text();
    if known.is_none() {
        *filter.path.borrow_mut() = Some(path.clone());
    }
    Ok(Some(path))
}

/// `Log::delay`.
pub(super) fn delay(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let id = arg(args, 0).int();
    vm.m.state.log.tokens += 1;
    let number = vm.m.state.log.tokens;
    let matches =
        vm.m.state
            .log
            .writing
            .last()
            .is_some_and(|writing| writing.id == id && writing.record.same_object(arg(args, 1)));
    if !matches {
        return Err(vm.builtin_exception("invalid Log::delay() call: outside of active write"));
    }
    if let Some(writing) = vm.m.state.log.writing.last_mut() {
        writing.tokens.push(number);
        if let Value::Func(func) = arg(args, 2) {
            writing.callbacks.push(Rc::clone(func));
        }
    }
    let ty = vm.result_type();
    Ok(Value::Opaque(OpaqueValue::new(ty, Token(number))))
}

/// `Log::delay_finish`.
pub(super) fn delay_finish(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let id = arg(args, 0).int();
    let Some(token) =
        arg(args, 2).opaque().and_then(|opaque| opaque.with(|token: &mut Token| token.0))
    else {
        return Ok(Value::Bool(false));
    };
    let mut found = false;
    if let Some(writing) = vm.m.state.log.writing.last_mut()
        && writing.id == id
    {
        let before = writing.tokens.len();
        writing.tokens.retain(|other| *other != token);
        found = writing.tokens.len() < before;
    }
    let mut ready = false;
    if let Some(stream) = vm.m.state.log.streams.get_mut(&id) {
        for delayed in &mut stream.delayed {
            let before = delayed.tokens.len();
            delayed.tokens.retain(|other| *other != token);
            if delayed.tokens.len() < before {
                found = true;
                ready |= delayed.tokens.is_empty();
            }
        }
    }
    if !found {
        vm.builtin_error("invalid Log::delay_finish() call: non-existing delay token");
        return Ok(Value::Bool(false));
    }
    if ready {
        release(vm, id, |delayed, _| delayed.tokens.is_empty())?;
    }
    Ok(Value::Bool(true))
}

/// Writes what waited and is ready.
fn release(vm: &mut Vm<'_>, id: i64, ready: fn(&Delayed, f64) -> bool) -> Result<()> {
    loop {
        let now = vm.m.now;
        let Some(stream) = vm.m.state.log.streams.get_mut(&id) else { return Ok(()) };
        let Some(at) = stream.delayed.iter().position(|delayed| ready(delayed, now)) else {
            return Ok(());
        };
        let delayed = stream.delayed.remove(at);
        finish_one(vm, id, &delayed)?;
    }
}

fn finish_one(vm: &mut Vm<'_>, id: i64, delayed: &Delayed) -> Result<()> {
    let Some(stream_id) = vm.m.state.log.streams.get(&id).map(|stream| stream.id.clone()) else {
        return Ok(());
    };
    let mut allowed = true;
    for callback in &delayed.callbacks {
        let result = match vm.call(callback, &[delayed.record.clone(), stream_id.clone()]) {
            Ok(result) => result,
            Err(Stop::Error) => Value::Unset,
            Err(stop) => return Err(stop),
        };
        allowed &= !matches!(result, Value::Bool(false));
    }
    if allowed {
        write_filters(vm, &stream_id, &delayed.record, true)?;
    }
    Ok(())
}

/// Writes what waits beyond the limit of a stream.
pub(super) fn shrink_delays(vm: &mut Vm<'_>, id: i64) -> Result<()> {
    loop {
        let Some(stream) = vm.m.state.log.streams.get_mut(&id) else { return Ok(()) };
        if stream.delayed.len() <= stream.max_delay_queue {
            return Ok(());
        }
        let delayed = stream.delayed.remove(0);
        finish_one(vm, id, &delayed)?;
    }
}

/// Delayed writes are due.
///
/// # Errors
/// [`Stop`] where the program stops.
pub fn delay_due(vm: &mut Vm<'_>) -> Result<()> {
    let ids: Vec<i64> = vm.m.state.log.streams.keys().copied().collect();
    for id in ids {
        release(vm, id, |delayed, now| delayed.due <= now)?;
    }
    Ok(())
}

/// Writes all that waits: the run ends.
pub(super) fn release_all(vm: &mut Vm<'_>) -> Result<()> {
    let ids: Vec<i64> = vm.m.state.log.streams.keys().copied().collect();
    for id in ids {
        release(vm, id, |_, _| true)?;
    }
    Ok(())
}

/// Writes what `print` prints to a log; returns whether it did.
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
