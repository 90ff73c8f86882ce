//! Options, and reporter functions.

use std::collections::HashMap;
use std::rc::Rc;

use gannet_event::Command;

use super::{Table, arg};
use crate::describe;
use crate::diagnostics::Severity;
use crate::evaluate::Stop;
use crate::ids::{GlobalId, TypeId};
use crate::symbols::GlobalKind;
use crate::types::{Flavor, Tag};
use crate::value::{FuncValue, Value, Vector};
use crate::vm::Vm;

type Result<T> = std::result::Result<T, Stop>;

/// The functions of this file.
pub(super) const TABLE: Table = &[
    ("Option::set", set),
    ("Option::set_change_handler", set_change_handler),
    ("Option::any_set_to_any_vec", |vm, a| {
        let keys = arg(a, 0).table().map(|table| table.keys()).unwrap_or_default();
        Ok(Value::Vector(Vector::new(vm.result_type(), keys)))
    }),
    ("Reporter::info", |vm, a| message(vm, a, Severity::Info)),
    ("Reporter::warning", |vm, a| message(vm, a, Severity::Warning)),
    ("Reporter::error", |vm, a| message(vm, a, Severity::Error)),
    ("Reporter::fatal", |vm, a| {
        message(vm, a, Severity::Fatal)?;
        Err(Stop::Fatal)
    }),
    ("Reporter::fatal_error_with_core", |vm, a| {
        message(vm, a, Severity::Fatal)?;
        Err(Stop::Fatal)
    }),
    ("Reporter::net_weird", |vm, a| {
        let args = [0, 1, 2].map(|index| arg(a, index).clone());
        if permits_weird(vm, arg(a, 0), &[]) {
            vm.queue_named("net_weird", args.to_vec());
        }
        Ok(Value::Bool(true))
    }),
    ("Reporter::flow_weird", |vm, a| {
        let args = [0, 1, 2, 3, 4].map(|index| arg(a, index).clone());
        let ends = [arg(a, 1), arg(a, 2)].map(|end| {
            String::from_utf8_lossy(&crate::value::describe::cat(vm.p, end)).into_owned()
        });
        if permits_weird(vm, arg(a, 0), &ends) {
            vm.queue_named("flow_weird", args.to_vec());
        }
        Ok(Value::Bool(true))
    }),
    ("Reporter::conn_weird", |vm, a| {
        conn_weird(vm, [0, 1, 2, 3].map(|index| arg(a, index).clone()));
        Ok(Value::Bool(true))
    }),
    ("Reporter::limit_reached_weird", |vm, a| {
        let (limit, most) = (arg(a, 2).count(), arg(a, 3).count());
        let addl = if most > 0 { format!("{limit} > {most}") } else { limit.to_string() };
        let [name, connection, source] = [0, 1, 4].map(|index| arg(a, index).clone());
        crate::bridge::record_limit_in_history(vm, &super::log::field(vm, &connection, "id"));
        conn_weird(vm, [name, connection, Value::string(addl), source]);
        Ok(Value::Bool(true))
    }),
    ("Reporter::file_weird", |vm, a| {
        let args = [0, 1, 2, 3].map(|index| arg(a, index).clone());
        let id = super::log::field(vm, arg(a, 1), "id").text();
        if !vm.m.state.traffic.files.contains_key(id.as_bytes()) {
            return Ok(Value::Bool(false));
        }
        if permits_weird(vm, arg(a, 0), &[id]) {
            vm.queue_named("file_weird", args.to_vec());
        }
        Ok(Value::Bool(true))
    }),
    ("Reporter::get_weird_sampling_whitelist", |vm, _| get_sampling(vm, Sampling::Whitelist)),
    ("Reporter::get_weird_sampling_global_list", |vm, _| get_sampling(vm, Sampling::GlobalList)),
    ("Reporter::get_weird_sampling_rate", |vm, _| get_sampling(vm, Sampling::Rate)),
    ("Reporter::get_weird_sampling_threshold", |vm, _| get_sampling(vm, Sampling::Threshold)),
    ("Reporter::get_weird_sampling_duration", |vm, _| get_sampling(vm, Sampling::Duration)),
    ("Reporter::set_weird_sampling_whitelist", |vm, a| set_sampling(vm, a, Sampling::Whitelist)),
    ("Reporter::set_weird_sampling_global_list", |vm, a| set_sampling(vm, a, Sampling::GlobalList)),
    ("Reporter::set_weird_sampling_rate", |vm, a| set_sampling(vm, a, Sampling::Rate)),
    ("Reporter::set_weird_sampling_threshold", |vm, a| set_sampling(vm, a, Sampling::Threshold)),
    ("Reporter::set_weird_sampling_duration", |vm, a| set_sampling(vm, a, Sampling::Duration)),
];

/// Raises the weird of a connection: name, connection, details and source.
fn conn_weird(vm: &mut Vm<'_>, [name, connection, addl, source]: [Value; 4]) {
    let uid = super::log::field(vm, &connection, "uid");
    if vm.m.state.packetless {
        // The connection no longer exists.
        let id = super::log::field(vm, &connection, "id");
        vm.queue_named("expired_conn_weird", vec![name, id, uid, addl, source]);
    } else if permits_weird(vm, &name, &[uid.text()]) {
        vm.queue_named("conn_weird", vec![name, connection, addl, source]);
    }
}

/// Whether sampling permits a weird; `scope` identifies its hosts, connection or file.
fn permits_weird(vm: &mut Vm<'_>, name: &Value, scope: &[String]) -> bool {
    vm.m.state.traffic.counts.weird(name.str_bytes());
    let contains = |vm: &Vm<'_>, parameter: Sampling| {
        let set = sampling(vm, parameter);
        set.table().is_some_and(|set| set.find(std::slice::from_ref(name)).is_some())
    };
    if contains(vm, Sampling::Whitelist) {
        return true;
    }
    let scope = if contains(vm, Sampling::GlobalList) { &[] } else { scope };
    let rate = sampling(vm, Sampling::Rate).count();
    let threshold = sampling(vm, Sampling::Threshold).count();
    let duration = sampling(vm, Sampling::Duration).double();
    let now = vm.m.now;
    let (seen, since) = vm.m.state.weirds.entry((name.text(), scope.join(" ")), now);
    if *since + duration <= now {
        (*seen, *since) = (0, now);
    }
    *seen += 1;
    *seen <= threshold || (rate > 0 && (*seen - threshold).is_multiple_of(rate))
}

/// A parameter of weird sampling.
#[derive(Clone, Copy)]
enum Sampling {
    Whitelist,
    GlobalList,
    Rate,
    Threshold,
    Duration,
}

impl Sampling {
    /// The option with its default value.
    fn option(self) -> &'static str {
        match self {
            Sampling::Whitelist => "Weird::sampling_whitelist",
            Sampling::GlobalList => "Weird::sampling_global_list",
            Sampling::Rate => "Weird::sampling_rate",
            Sampling::Threshold => "Weird::sampling_threshold",
            Sampling::Duration => "Weird::sampling_duration",
        }
    }
}

fn sampling(vm: &Vm<'_>, parameter: Sampling) -> Value {
    let set = vm.m.state.weirds.settings[parameter as usize].clone();
    set.unwrap_or_else(|| vm.global_named(parameter.option()))
}

/// Copies a set, so that later changes in scripts have no effect.
fn copied(vm: &mut Vm<'_>, value: &Value) -> Value {
    vm.try_copy(value).unwrap_or_else(|| value.clone())
}

fn get_sampling(vm: &mut Vm<'_>, parameter: Sampling) -> Result<Value> {
    let value = sampling(vm, parameter);
    Ok(copied(vm, &value))
}

fn set_sampling(vm: &mut Vm<'_>, args: &[Value], parameter: Sampling) -> Result<Value> {
    vm.m.state.weirds.settings[parameter as usize] = Some(copied(vm, arg(args, 0)));
    pass_sampling(vm);
    Ok(Value::Bool(true))
}

/// Passes the parameters of weird sampling to the analysis.
pub(crate) fn pass_sampling(vm: &mut Vm<'_>) {
    let names = |parameter| match sampling(vm, parameter) {
        Value::Table(table) => {
            let keys = table.keys().into_iter();
            let name = |key: Value| Some(crate::value::table::parts(&key).first()?.text());
            keys.filter_map(name).collect()
        }
        _ => Vec::new(),
    };
    let (exempt, global) = (names(Sampling::Whitelist), names(Sampling::GlobalList));
    let threshold = sampling(vm, Sampling::Threshold).count();
    let rate = sampling(vm, Sampling::Rate).count();
    let duration = (sampling(vm, Sampling::Duration).double() * 1e9) as u64;
    let numbers =
        [(Sampling::Threshold, threshold), (Sampling::Rate, rate), (Sampling::Duration, duration)];
    let settings =
        numbers.map(|(parameter, value)| Command::Setting { name: parameter.option(), value });
    let commands = &mut vm.m.state.traffic.commands;
    commands.extend(settings);
    commands.push(Command::WeirdNames { exempt, global });
}

/// Number of weirds that scripts reported, by name and hosts, connection or file, and when the first of them was.
///
/// At most [`SampledWeirds::REMEMBERED`] entries are stored: beyond that the oldest half is dropped, and the count of dropped entries
/// starts again.
#[derive(Default)]
pub(crate) struct SampledWeirds {
    /// Parameters that scripts set, by [`Sampling`].
    settings: [Option<Value>; 5],
    young: HashMap<(String, String), (u64, f64)>,
    old: HashMap<(String, String), (u64, f64)>,
}

impl SampledWeirds {
    const REMEMBERED: usize = 1 << 17;

    fn entry(&mut self, key: (String, String), now: f64) -> &mut (u64, f64) {
        if self.young.len() >= Self::REMEMBERED / 2 && !self.young.contains_key(&key) {
            self.old = std::mem::take(&mut self.young);
        }
        let kept = if self.old.is_empty() { None } else { self.old.remove(&key) };
        let entry = self.young.entry(key);
        entry.or_insert_with(|| kept.unwrap_or((0, now)))
    }
}

/// An option change handler.
pub struct Handler {
    option: GlobalId,
    priority: i64,
    func: Rc<FuncValue>,
}

fn message(vm: &mut Vm<'_>, args: &[Value], severity: Severity) -> Result<Value> {
    let site = vm.call_site();
    let span = vm.p.exprs.find(site).map_or(crate::source::Span::NOWHERE, |expr| expr.span);
    let args = super::c_strings(vm, args, &[0]);
    vm.emit(severity, span, arg(&args, 0).str_bytes().to_vec());
    Ok(Value::Bool(true))
}

fn find(vm: &mut Vm<'_>, name: &str) -> Option<GlobalId> {
    let Some(global) = vm.find_global(name) else {
        vm.builtin_error(format!("Could not find ID named '{name}'"));
        return None;
    };
    if vm.p.globals[global].kind != GlobalKind::Option {
        vm.builtin_error(format!("ID '{name}' is not an option"));
        return None;
    }
    Some(global)
}

fn tag_text(vm: &Vm<'_>, ty: TypeId) -> String {
    describe::tag_name(vm.p.types.get(ty)).to_owned()
}

fn set(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let name = arg(args, 0).text();
    let Some(global) = find(vm, &name) else { return Ok(Value::Bool(false)) };
    if vm.m.terminating {
        return Ok(Value::Bool(false));
    }
    let ty = vm.p.globals[global].ty;
    let mut value = arg(args, 1).clone();
    let own = value.ty();
    let empty_container = match &value {
        Value::Table(table) => {
            table.is_empty() && vm.p.types.table(own).is_some_and(|table| table.index.is_empty())
        }
        Value::Vector(vector) => vector.is_empty(),
        _ => false,
    };
    if empty_container && vm.p.types.tag(own) == vm.p.types.tag(ty) {
        value = vm.convert(&value, ty)?;
    } else if !vm.is_type(&value, ty) {
        if vm.p.types.tag(own) == Tag::Record && vm.p.record_promotable(ty, own) {
            value = vm.convert(&value, ty)?;
        } else {
            let (got, need) = (tag_text(vm, own), tag_text(vm, ty));
            vm.builtin_error(format!(
                "Incompatible type for set of ID '{name}': got '{got}', need '{need}'"
            ));
            return Ok(Value::Bool(false));
        }
    }
    let handlers: Vec<Rc<FuncValue>> =
        vm.m.state
            .handlers
            .iter()
            .filter(|handler| handler.option == global)
            .map(|handler| Rc::clone(&handler.func))
            .collect();
    for func in handlers {
        let mut call = vec![arg(args, 0).clone(), value.clone()];
        if vm.p.types.params(func.ty).len() == 3 {
            call.push(arg(args, 2).clone());
        }
        match vm.call(&func, &call) {
            Ok(new) if new.is_set() => value = new,
            Ok(_) | Err(Stop::Error) => return Ok(Value::Bool(false)),
            Err(stop) => return Err(stop),
        }
    }
    // Later changes of the argument do not change the option.
    let value = vm.try_copy(&value).unwrap_or(value);
    vm.set_global(global, value);
    crate::bridge::setting_changed(vm, &name);
    Ok(Value::Bool(true))
}

fn set_change_handler(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let name = arg(args, 0).text();
    let Some(global) = find(vm, &name) else { return Ok(Value::Bool(false)) };
    let own = vm.p.globals[global].ty;
    let complaint = match arg(args, 1) {
        Value::Func(func) => {
            let flavor = vm.p.types.func(func.ty).map(|func| func.flavor);
            let result = vm.p.types.func(func.ty).map_or(TypeId::VOID, |func| func.result);
            let params: Vec<TypeId> =
                vm.p.types.params(func.ty).iter().map(|param| param.ty).collect();
            if flavor != Some(Flavor::Function) {
                Some("Option::on_change needs function argument; not hook or event".to_owned())
            } else if !(2..=3).contains(&params.len()) {
                Some(format!(
                    "Wrong number of arguments for passed function in Option::on_change for ID '{name}'; expected 2 or 3, got {}",
                    params.len()
                ))
            } else if params.first() != Some(&TypeId::STRING) {
                Some(format!(
                    "First argument of passed function has to be string in Option::on_change for ID '{name}'; got '{}'",
                    tag_text(vm, params.first().copied().unwrap_or(TypeId::VOID))
                ))
            } else if params.get(1).is_none_or(|ty| !vm.p.same_type(*ty, own)) {
                Some(format!(
                    "Second argument of passed function has to be {} in Option::on_change for ID '{name}'; got '{}'",
                    tag_text(vm, own),
                    tag_text(vm, params.get(1).copied().unwrap_or(TypeId::VOID))
                ))
            } else if params.get(2).is_some_and(|ty| *ty != TypeId::STRING) {
                Some(format!(
                    "Third argument of passed function has to be string in Option::on_change for ID '{name}'; got '{}'",
                    tag_text(vm, params.get(2).copied().unwrap_or(TypeId::VOID))
                ))
            } else if !vm.p.same_type(result, own) {
                Some(format!(
                    "Passed function needs to return type '{}' for ID '{name}'; got '{}'",
                    tag_text(vm, own),
                    tag_text(vm, result)
                ))
            } else {
                let handler =
                    Handler { option: global, priority: arg(args, 2).int(), func: Rc::clone(func) };
                // The newest handler is the first of its priority.
                let at =
                    vm.m.state.handlers.partition_point(|other| other.priority > handler.priority);
                vm.m.state.handlers.insert(at, handler);
                None
            }
        }
        other => Some(format!(
            "Option::on_change needs function argument; got '{}' for ID '{name}'",
            tag_text(vm, other.ty())
        )),
    };
    match complaint {
        Some(text) => {
            vm.builtin_error(text);
            Ok(Value::Bool(false))
        }
        None => Ok(Value::Bool(true)),
    }
}

#[cfg(test)]
mod tests {
    use super::SampledWeirds;

    #[test]
    fn at_most_the_limit_of_weirds_is_remembered() {
        let half = SampledWeirds::REMEMBERED / 2;
        for n in [10, 1_000, 100_000, 200_000] {
            let mut weirds = SampledWeirds::default();
            let key = |i: usize| ("name".to_owned(), i.to_string());
            for i in 0..n {
                weirds.entry(key(i), 1.0).0 += 1;
            }
            assert!(weirds.young.len() + weirds.old.len() <= 2 * half, "{n}");
            // The newer half is retained; dropped entries start again.
            for i in n - n.min(half)..n {
                assert_eq!(*weirds.entry(key(i), 2.0), (1, 1.0), "{n} {i}");
            }
        }
        let mut weirds = SampledWeirds::default();
        for i in 0..3 * half {
            weirds.entry((String::new(), i.to_string()), 1.0).0 += 1;
        }
        assert_eq!(*weirds.entry((String::new(), "0".to_owned()), 2.0), (0, 2.0));
    }
}
