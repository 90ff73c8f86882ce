//! Introspection: types, globals, fields, enums.

use std::path::Path;

use super::{Table, arg};
use crate::comments;
use crate::describe;
use crate::diagnostics::Severity;
use crate::evaluate::Stop;
use crate::ids::{GlobalId, Name, TypeId};
use crate::source::Span;
use crate::symbols::GlobalKind;
use crate::types::{AttrKind, Tag, Type, attr_expr, find_attr};
use crate::value::{Record, Value, Vector};
use crate::vm::Vm;

type Result<T> = std::result::Result<T, Stop>;

/// The functions of this file.
pub(super) const TABLE: Table = &[
    ("type_name", |vm, a| Ok(Value::string(type_name(vm, arg(a, 0))))),
    ("type_aliases", type_aliases),
    ("lookup_ID", lookup_id),
    ("global_ids", global_ids),
    ("global_options", global_options),
    ("record_fields", record_fields),
    ("enum_names", enum_names),
    ("enum_to_int", |vm, a| match arg(a, 0) {
        Value::Enum(_, value) => Ok(Value::Int(*value)),
        _ => {
            vm.builtin_error("enum_to_int() requires enum value");
            Ok(Value::Int(-1))
        }
    }),
    ("get_identifier_declaring_script", |vm, a| {
        let name = arg(a, 0).text();
        let path = vm.find_global(&name).and_then(|global| {
            let span = vm.p.globals[global].span;
            vm.p.sources.files.find(span.file).map(|file| short_path(&file.path))
        });
        Ok(Value::string(path.unwrap_or_default()))
    }),
    ("get_record_field_declaring_script", |vm, a| {
        let path = field_span(vm, &arg(a, 0).text())
            .and_then(|span| vm.p.sources.files.find(span.file).map(|file| short_path(&file.path)));
        Ok(Value::string(path.unwrap_or_default()))
    }),
    ("get_identifier_comments", |vm, a| {
        let Some(global) = vm.find_global(&arg(a, 0).text()) else {
            return Ok(Value::string(""));
        };
        let mut all = comments_at(vm, Some(vm.p.globals[global].span));
        for more in comments_of_bodies(vm, global) {
            if !all.is_empty() {
                all.push(b'\n');
            }
            all.extend(more);
        }
        Ok(Value::string(all))
    }),
    ("get_package_readme", |vm, a| {
        let loader = format!("{}/__load__.zeek", arg(a, 0).text());
        let file = vm.p.sources.files.iter().find(|(_, file)| short_path(&file.path) == loader);
        let folder = file.and_then(|(_, file)| Path::new(&*file.path).parent());
        let text = folder.and_then(|folder| std::fs::read(folder.join("README")).ok());
        let text = text.unwrap_or_default();
        Ok(Value::string(text.strip_suffix(b"\n").unwrap_or(&text)))
    }),
    ("get_record_field_comments", |vm, a| {
        let span = field_span(vm, &arg(a, 0).text());
        Ok(Value::string(comments_at(vm, span)))
    }),
    ("get_script_comments", |vm, a| {
        let name = arg(a, 0).text();
        let file = vm.p.sources.files.iter().find(|(_, file)| short_path(&file.path) == name);
        Ok(Value::string(file.map_or_else(Vec::new, |(_, file)| comments::of_script(&file.text))))
    }),
    ("global_container_footprints", |vm, _| {
        let ty = vm.result_type();
        Ok(vm.new_table(ty, None))
    }),
];

/// The location of the declaration of `Record$field`.
fn field_span(vm: &Vm<'_>, name: &str) -> Option<Span> {
    let (record, field) = name.split_once('$')?;
    let ty = vm.type_named(record)?;
    let field = vm.p.names.find(field)?;
    let record = vm.p.types.record(ty)?;
    record.fields.iter().find(|known| known.name == field).map(|field| field.span)
}

/// The documentation of the declaration at `span`; empty if it has none.
fn comments_at(vm: &Vm<'_>, span: Option<Span>) -> Vec<u8> {
    let file = span.and_then(|span| Some((vm.p.sources.files.find(span.file)?, span)));
    file.map_or_else(Vec::new, |(file, span)| {
        comments::of_declaration(&file.text, span.start as usize)
    })
}

/// The documentation of the bodies of a function, in the order of their files, without that of its declaration.
fn comments_of_bodies(vm: &Vm<'_>, global: GlobalId) -> Vec<Vec<u8>> {
    let global = &vm.p.globals[global];
    let GlobalKind::Function(func) = global.kind else { return Vec::new() };
    let bodies = vm.p.functions[func].bodies.iter().map(|body| vm.p.bodies[*body].span);
    let is_declaration = |span: &Span| {
        span.file == global.span.file
            && span.start <= global.span.start
            && global.span.start < span.end
    };
    let mut spans: Vec<_> = bodies.filter(|span| !is_declaration(span)).collect();
    spans.sort_by_key(|span| (span.file, span.start));
    let texts = spans.iter().filter_map(|span| {
        let file = vm.p.sources.files.find(span.file)?;
        Some(comments::of_body(&file.text, span.start as usize))
    });
    texts.filter(|text| !text.is_empty()).collect()
}

fn short_path(path: &str) -> String {
    for folder in std::env::var("ZEEKPATH").unwrap_or_default().split(':') {
        if !folder.is_empty()
            && let Some(rest) = path.strip_prefix(folder)
        {
            return rest.trim_start_matches('/').to_owned();
        }
    }
    path.strip_prefix("./").unwrap_or(path).to_owned()
}

fn type_name(vm: &Vm<'_>, value: &Value) -> String {
    match value {
        Value::Type(_) => "type".to_owned(),
        other => type_text(vm, other.ty()),
    }
}

/// The text of a type: records with their fields, nested named types by name.
pub(super) fn type_text(vm: &Vm<'_>, ty: TypeId) -> String {
    match vm.p.types.get(ty) {
        Type::Record(_) if vm.p.types.data(ty).name.is_none() => {
            describe::type_in(vm.p, ty, describe::Style::LONG)
        }
        Type::Vector(TypeId::VOID) => "vector()".to_owned(),
        Type::Func(func) if !func.captures.is_empty() => {
            let text = describe::type_text(vm.p, ty);
            text.rsplit_once('[').map_or(text.clone(), |(front, _)| front.to_owned())
        }
        _ => {
            let text = describe::type_text(vm.p, ty);
            text.replace("enum ", "")
        }
    }
}

fn type_aliases(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let result = vm.result_type();
    let table = vm.new_table(result, None);
    let ty = match arg(args, 0) {
        Value::Short(_) | Value::Long(_) => vm.type_named(&arg(args, 0).text()),
        Value::Type(ty) => Some(*ty),
        other => Some(other.ty()),
    };
    if let (Some(ty), Value::Table(table)) = (ty, &table) {
        for name in aliases(vm, ty) {
            table.insert(Value::string(vm.p.name(name)), Value::Unset, 0.0);
        }
    }
    Ok(table)
}

/// All names of a type: from its declaration, and from `type A: T;` in both directions.
fn aliases(vm: &Vm<'_>, ty: TypeId) -> Vec<Name> {
    let data = vm.p.types.data(ty);
    let Some(own) = data.name else { return Vec::new() };
    let mut names = vec![own];
    let mut at = 0;
    while let Some(name) = names.get(at).copied() {
        at += 1;
        let links = vm.p.aliases.iter().filter_map(|(alias, original)| {
            if *alias == name {
                Some(*original)
            } else if *original == name {
                Some(*alias)
            } else {
                None
            }
        });
        let new: Vec<Name> = links.filter(|link| !names.contains(link)).collect();
        names.extend(new);
    }
    names.sort_by_key(|name| vm.p.name(*name));
    names
}

fn lookup_id(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let name = arg(args, 0).text();
    let Some(global) = vm.find_global(&name) else {
        return Ok(Value::string("<unknown id>"));
    };
    let value = value_of(vm, global);
    // Type names have no value.
    let is_type = vm.p.globals[global].kind == GlobalKind::Type;
    Ok(if value.is_set() && !is_type { value } else { Value::string("<no ID value>") })
}

/// The value of a global; functions and enumerators are values, too.
pub(super) fn value_of(vm: &Vm<'_>, global: GlobalId) -> Value {
    let data = &vm.p.globals[global];
    match data.kind {
        GlobalKind::EnumValue(value) => Value::Enum(data.ty, value),
        GlobalKind::Function(func) => Value::Func(crate::value::FuncValue::new(func, data.ty)),
        GlobalKind::Type => Value::Type(data.ty),
        _ => vm.global(global),
    }
}

fn global_ids(vm: &mut Vm<'_>, _: &[Value]) -> Result<Value> {
    let result = vm.result_type();
    let table = vm.new_table(result, None);
    if !vm.m.state.began {
        let site = vm.call_site();
        let span = vm.p.exprs.find(site).map_or(Span::NOWHERE, |expr| expr.span);
        let text = b"top-level global_ids() call unsupported".to_vec();
        vm.emit(Severity::Error, span, text);
        return Ok(table);
    }
    let (Some(element), Some(attr_ty), Some(attrs_ty)) = (
        vm.type_named("script_id"),
        vm.type_named("script_id_attr"),
        vm.type_named("script_id_attrs"),
    ) else {
        return Ok(table);
    };
    let ids: Vec<GlobalId> = vm.p.globals.arena.ids().collect();
    let entry = |type_name: &str, flags: [bool; 6], value: Value, attrs: Value| {
        let mut fields = vec![Value::string(type_name)];
        fields.extend(flags.map(Value::Bool));
        fields.extend([value, attrs]);
        Value::Record(Record::new(element, fields))
    };
    if let Value::Table(table) = &table {
        let mut modules: Vec<String> =
            vm.p.globals.modules.iter().map(|name| vm.p.name(*name).to_owned()).collect();
        modules.sort();
        for name in modules {
            let value = entry("module", [false; 6], Value::Unset, Value::Unset);
            table.insert(Value::string(format!("module {name}")), value, vm.m.now);
        }
        for id in ids {
            let value = value_of(vm, id);
            let data = &vm.p.globals[id];
            let name = vm.p.name(data.name).to_owned();
            let flags = [
                data.exported,
                data.kind == GlobalKind::Constant,
                matches!(data.kind, GlobalKind::EnumValue(_)),
                data.kind == GlobalKind::Option,
                find_attr(&data.attrs, AttrKind::Redef).is_some()
                    || data.kind == GlobalKind::Option,
                find_attr(&data.attrs, AttrKind::Backend).is_some(),
            ];
            let attrs = if data.attrs.is_empty() {
                Value::Unset
            } else {
                let items = data
                    .attrs
                    .iter()
                    .map(|attr| {
                        let expr = attr.expr.map_or(Value::Unset, |expr| {
                            Value::string_owned(describe::expr(vm.p, expr))
                        });
                        let fields = vec![Value::string(attr.kind.name()), expr];
                        Value::Record(Record::new(attr_ty, fields))
                    })
                    .collect();
                Value::Vector(Vector::new(attrs_ty, items))
            };
            let ty = tag_text(vm, data.ty);
            let kept = if data.kind == GlobalKind::Type { Value::Unset } else { value };
            let record = entry(&ty, flags, kept, attrs);
            table.insert(Value::string(name), record, vm.m.now);
        }
    }
    Ok(table)
}

fn tag_text(vm: &Vm<'_>, ty: TypeId) -> String {
    type_text(vm, ty)
}

fn global_options(vm: &mut Vm<'_>, _: &[Value]) -> Result<Value> {
    let result = vm.result_type();
    let table = vm.new_table(result, None);
    if let Value::Table(table) = &table {
        for (_, global) in vm.p.globals.arena.iter() {
            if global.kind == GlobalKind::Option {
                table.insert(Value::string(vm.p.name(global.name)), Value::Unset, vm.m.now);
            }
        }
    }
    Ok(table)
}

/// The name of a field's type; named types have their kind as prefix.
fn field_type(vm: &Vm<'_>, ty: TypeId) -> String {
    let name = || vm.p.types.data(ty).name.map_or("", |name| vm.p.name(name));
    match vm.p.types.get(ty) {
        Type::Enum(_) => format!("enum {}", name()),
        Type::Record(_) => format!("record {}", name()),
        Type::Vector(element) => format!("vector of {}", field_type(vm, *element)),
        Type::Table(table) => {
            let index: Vec<_> = table.index.iter().map(|part| field_type(vm, *part)).collect();
            let index = index.join(",");
            match table.value {
                Some(value) => format!("table[{index}] of {}", field_type(vm, value)),
                None => format!("set[{index}]"),
            }
        }
        other => describe::tag_name(other).to_owned(),
    }
}

fn record_fields(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let result = vm.result_type();
    let table = super::ordered_table(vm, result);
    let Some(element) = vm.type_named("record_field") else { return Ok(table) };
    let record = arg(args, 0).record().cloned();
    let ty = match arg(args, 0) {
        Value::Record(record) => Some(record.ty()),
        Value::Type(ty) => Some(*ty),
        other if other.bytes().is_some() => {
            let found = vm.type_named(&other.text());
            if found.is_none_or(|ty| vm.p.types.tag(ty) != Tag::Record) {
                let text = "record_fields string argument does not name a record type";
                vm.report(Severity::Error, text);
            }
            found
        }
        _ => None,
    };
    let is_record = ty.is_some_and(|ty| vm.p.types.tag(ty) == Tag::Record);
    if !is_record && arg(args, 0).bytes().is_none() {
        vm.report(Severity::Error, "non-record value/type passed to record_fields");
    }
    let fields = ty
        .and_then(|ty| vm.p.types.record(ty))
        .map(|record| record.fields.clone())
        .unwrap_or_default();
    for (index, field) in fields.iter().enumerate() {
        let value = record.as_ref().map(|record| record.get(index)).unwrap_or_default();
        let default = match attr_expr(&field.attrs, AttrKind::Default) {
            Some(expr) => vm.eval(expr)?,
            None => Value::Unset,
        };
        let optional = find_attr(&field.attrs, AttrKind::Optional).is_some() || default.is_set();
        let entry = Value::Record(Record::new(
            element,
            vec![
                Value::string(field_type(vm, field.ty)),
                Value::Bool(find_attr(&field.attrs, AttrKind::Log).is_some()),
                value,
                default,
                Value::Bool(optional),
            ],
        ));
        if let Value::Table(table) = &table {
            table.insert(Value::string(vm.p.name(field.name)), entry, vm.m.now);
        }
    }
    Ok(table)
}

fn enum_names(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let result = vm.result_type();
    let table = vm.new_table(result, None);
    let ty = match arg(args, 0) {
        Value::Type(ty) => Some(*ty),
        value => vm.type_named(&value.text()),
    };
    let Some(Type::Enum(values)) = ty.map(|ty| vm.p.types.get(ty)) else {
        return Ok(table);
    };
    if let Value::Table(table) = &table {
        for value in &values.values {
            table.insert(Value::string(vm.p.name(value.name)), Value::Unset, vm.m.now);
        }
    }
    Ok(table)
}
