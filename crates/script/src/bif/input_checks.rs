//! Checks the description of an input stream: types of the destination, of events and of columns.

use super::input::columns;
use super::log::field;
use crate::diagnostics::Severity;
use crate::ids::TypeId;
use crate::support::field::Column;
use crate::types::{Flavor, Tag};
use crate::value::Value;
use crate::vm::Vm;

/// The error message; empty if an error was reported already.
type Checked<T> = Result<T, String>;

/// The checked description of a table stream.
pub(super) struct TableStream {
    pub index: TypeId,
    pub value: Option<TypeId>,
    pub columns: Vec<Column>,
    /// Number of columns that belong to the index.
    pub index_columns: usize,
    pub want_record: bool,
}

fn wants_record(vm: &Vm<'_>, description: &Value) -> bool {
    !matches!(field(vm, description, "want_record"), Value::Bool(false))
}

fn record_type(vm: &Vm<'_>, value: &Value) -> Option<TypeId> {
    match value {
        Value::Type(ty) if vm.p.types.tag(*ty) == Tag::Record => Some(*ty),
        _ => None,
    }
}

fn text(vm: &Vm<'_>, ty: TypeId) -> String {
    crate::describe::type_text(vm.p, ty)
}

fn tag(vm: &Vm<'_>, ty: TypeId) -> &'static str {
    crate::describe::tag_name(vm.p.types.get(ty))
}

/// Whether a type has this name.
fn is_named(vm: &Vm<'_>, ty: TypeId, name: &str) -> bool {
    vm.type_named(name).is_some_and(|named| vm.p.same_type(ty, named))
}

fn field_types(vm: &Vm<'_>, record: TypeId) -> Vec<TypeId> {
    vm.p.types
        .record(record)
        .map(|record| record.fields.iter().map(|field| field.ty).collect())
        .unwrap_or_default()
}

fn parameters(vm: &Vm<'_>, func: TypeId) -> Vec<TypeId> {
    vm.p.types.params(func).iter().map(|param| param.ty).collect()
}

/// The parameter types of the event in a field of the description; `None` if the field is unset.
fn event(
    vm: &Vm<'_>,
    description: &Value,
    name: &str,
    label: &str,
) -> Checked<Option<Vec<TypeId>>> {
    match field(vm, description, name) {
        Value::Unset => Ok(None),
        Value::Func(func) => {
            let is_event = vm.p.types.func(func.ty).is_some_and(|ty| ty.flavor == Flavor::Event);
            if !is_event {
                return Err(format!("{label} is a function, not an event"));
            }
            Ok(Some(parameters(vm, func.ty)))
        }
        _ => Err(format!("'{name}' field is not an event")),
    }
}

fn error_event(vm: &Vm<'_>, description: &Value, kind: &str) -> Checked<()> {
    let Some(params) = event(vm, description, "error_ev", "Error event")? else { return Ok(()) };
    let [first, second, third] = params.as_slice() else {
        return Err("Error event must take 3 arguments".to_owned());
    };
    if !is_named(vm, *first, kind) {
        return Err(format!("Error event's first attribute must be of type {kind}"));
    }
    if vm.p.types.tag(*second) != Tag::String {
        return Err("Error event's second attribute must be of type string".to_owned());
    }
    if !is_named(vm, *third, "Reporter::Level") {
        return Err("Error event's third attribute must be of type Reporter::Level".to_owned());
    }
    Ok(())
}

/// Checks the description of an event stream: the type of its fields, and its columns.
pub(super) fn event_stream(
    vm: &mut Vm<'_>,
    description: &Value,
) -> Checked<(TypeId, Vec<Column>, bool)> {
    let fields = field(vm, description, "fields");
    let Some(fields) = record_type(vm, &fields) else {
        return Err("'idx' field is not a record type".to_owned());
    };
    let want_record = wants_record(vm, description);
    let Some(params) = event(vm, description, "ev", "Stream event")? else {
        return Err("'ev' field is not an event".to_owned());
    };
    let [first, second, rest @ ..] = params.as_slice() else {
        return Err("Event does not take enough arguments".to_owned());
    };
    if !is_named(vm, *second, "Input::Event") {
        return Err("Event's second attribute must be of type Input::Event".to_owned());
    }
    if !is_named(vm, *first, "Input::EventDescription") {
        let kind = "Input::EventDescription";
        return Err(format!("Event's first attribute must be of type {kind}"));
    }
    if want_record {
        let [one] = rest else { return Err("Event has wrong number of arguments".to_owned()) };
        if !vm.p.same_type(*one, fields) {
            let (actual, needed) = (text(vm, *one), text(vm, fields));
            return Err(format!(
                "Incompatible type '{}':{actual} for event, which needs type '{}':{needed}\n",
                tag(vm, *one),
                tag(vm, fields)
            ));
        }
    } else {
        let expected = field_types(vm, fields);
        if expected.len() != rest.len() {
            return Err("Event has wrong number of arguments".to_owned());
        }
        for (position, (expected, actual)) in expected.into_iter().zip(rest).enumerate() {
            if !vm.p.same_type(*actual, expected) {
                return Err(format!(
                    "Incompatible type for event in field {}. Need type '{}':{}, got '{}':{}",
                    position + 3,
                    tag(vm, expected),
                    text(vm, expected),
                    tag(vm, *actual),
                    text(vm, *actual)
                ));
            }
        }
    }
    error_event(vm, description, "Input::EventDescription")?;
    let lenient = want_record && accepts_unsupported(vm);
    let mut all = Vec::new();
    if !columns(vm, fields, "", lenient, &mut all) {
        return Err("Problem unrolling".to_owned());
    }
    Ok((fields, all, want_record))
}

fn accepts_unsupported(vm: &Vm<'_>) -> bool {
    vm.global_named("Input::accept_unsupported_types").truth()
}

/// Checks the description of a table stream.
pub(super) fn table_stream(vm: &mut Vm<'_>, description: &Value) -> Checked<TableStream> {
    let index = field(vm, description, "idx");
    let Some(index) = record_type(vm, &index) else {
        return Err("'idx' field is not a record type".to_owned());
    };
    let value = match field(vm, description, "val") {
        Value::Unset => None,
        actual => match record_type(vm, &actual) {
            Some(ty) => Some(ty),
            None => return Err("'val' field is not a record type".to_owned()),
        },
    };
    let destination = field(vm, description, "destination");
    let Some(table) = destination.table().and_then(|table| vm.p.types.table(table.ty())) else {
        let ty = text(vm, destination.ty());
        return Err(format!("'destination' field has type {ty}, expected table or set identifier"));
    };
    let (keys, yields) = (table.index.clone(), table.value);
    let expected = field_types(vm, index);
    for (position, key) in keys.iter().enumerate() {
        let Some(expected) = expected.get(position) else {
            return Err("Table type has more indexes than index definition".to_owned());
        };
        if !vm.p.same_type(*expected, *key) {
            return Err(format!(
                "Table type does not match index type. Need type '{}':{}, got '{}':{}",
                tag(vm, *expected),
                text(vm, *expected),
                tag(vm, *key),
                text(vm, *key)
            ));
        }
    }
    if expected.len() != keys.len() {
        return Err("Table has less elements than index definition".to_owned());
    }
    let want_record = wants_record(vm, description);
    // The type of the table's values.
    let needed = value.and_then(|value| {
        if want_record { Some(value) } else { field_types(vm, value).first().copied() }
    });
    match (value, yields) {
        (Some(_), None) => {
            return Err("'destination' field is a set, but the 'val' field was also specified (did you mean to use a table instead of a set?)".to_owned());
        }
        (None, Some(_)) => {
            return Err("'destination' field is a table, but 'val' field is not provided (did you mean to use a set instead of a table?)".to_owned());
        }
        (Some(_), Some(yields)) => {
            if let Some(needed) = needed.filter(|needed| !vm.p.same_type(yields, *needed)) {
                return Err(format!(
                    "Table type does not match value type. Need type '{}', got '{}'",
                    text(vm, needed),
                    text(vm, yields)
                ));
            }
        }
        (None, None) => (),
    }
    if let Some(params) = event(vm, description, "ev", "Stream event")? {
        table_event(vm, &params, index, needed, want_record)?;
    }
    error_event(vm, description, "Input::TableDescription")?;
    let mut all = Vec::new();
    let mut unrolled = columns(vm, index, "", false, &mut all);
    let index_columns = all.len();
    if let (Some(value), true) = (value, unrolled) {
        let lenient = accepts_unsupported(vm);
        unrolled = columns(vm, value, "", lenient, &mut all);
    }
    if all.len() - index_columns > 1 && !want_record {
        return Err(
            "Stream does not want a record (want_record=F), but has more then one value field."
                .to_owned(),
        );
    }
    if !unrolled {
        return Err("Problem unrolling".to_owned());
    }
    Ok(TableStream { index, value, columns: all, index_columns, want_record })
}

fn table_event(
    vm: &Vm<'_>,
    params: &[TypeId],
    index: TypeId,
    value: Option<TypeId>,
    want_record: bool,
) -> Checked<()> {
    let count = if value.is_some() { 4 } else { 3 };
    let (3.., [first, second, third, rest @ ..]) = (params.len(), params) else {
        return Err(format!("Table event must take {count} arguments"));
    };
    if params.len() != count {
        return Err(format!("Table event must take {count} arguments"));
    }
    if !is_named(vm, *first, "Input::TableDescription") {
        let kind = "Input::TableDescription";
        return Err(format!("Table event's first attribute must be of type {kind}"));
    }
    if !is_named(vm, *second, "Input::Event") {
        return Err("Table event's second attribute must be of type Input::Event".to_owned());
    }
    if !vm.p.same_type(*third, index) {
        return Err(format!(
            "Table event's index attributes do not match. Need '{}', got '{}'",
            text(vm, index),
            text(vm, *third)
        ));
    }
    if let (Some(value), [fourth]) = (value, rest)
        && !vm.p.same_type(*fourth, value)
    {
        let label = if want_record { "attributes do" } else { "attribute does" };
        return Err(format!(
            "Table event's value {label} not match. Need '{}', got '{}'",
            text(vm, value),
            text(vm, *fourth)
        ));
    }
    Ok(())
}

/// Whether a reader can create values of a type.
pub(super) fn is_readable(vm: &Vm<'_>, ty: TypeId, atomic: bool) -> bool {
    match vm.p.types.tag(ty) {
        Tag::Bool
        | Tag::Int
        | Tag::Count
        | Tag::Port
        | Tag::Subnet
        | Tag::Addr
        | Tag::Double
        | Tag::Time
        | Tag::Interval
        | Tag::Enum
        | Tag::String
        | Tag::Pattern => true,
        Tag::Record => !atomic,
        Tag::Table => match vm.p.types.table(ty) {
            Some(table) if table.value.is_none() && !atomic => match *table.index {
                [one] => is_readable(vm, one, true),
                _ => false,
            },
            _ => false,
        },
        Tag::Vector => {
            !atomic && vm.p.types.element(ty).is_some_and(|element| is_readable(vm, element, true))
        }
        _ => false,
    }
}

/// Reports a field whose type cannot be read; returns whether it is omitted, as `lenient` streams do with optional files,
/// functions and opaque values.
pub(super) fn leaves_out(
    vm: &mut Vm<'_>,
    ty: TypeId,
    name: &str,
    optional: bool,
    lenient: bool,
) -> bool {
    let kind = tag(vm, ty);
    if lenient && optional && matches!(vm.p.types.tag(ty), Tag::File | Tag::Func | Tag::Opaque) {
        let text = format!(
            "Encountered incompatible type \"{kind}\" in type definition for field \"{name}\" in ReaderFrontend. Ignoring optional field."
        );
        vm.report(Severity::Info, text);
        return true;
    }
    let text = format!(
        "Incompatible type \"{kind}\" in type definition for field \"{name}\" in ReaderFrontend"
    );
    vm.report(Severity::Error, text);
    false
}
