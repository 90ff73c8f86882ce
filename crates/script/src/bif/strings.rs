//! Strings and patterns.

use super::{Table, WITH_NUL, arg, c_strings, has_nul};
use crate::diagnostics::Severity;
use crate::evaluate::Stop;
use crate::support::format::escape;
use crate::support::format::fmt::{Arg, Formatted, fmt as format, fmt_to as format_to};
use crate::support::pattern::{Modes, Pattern};
use crate::support::text;
use crate::value::describe::{self, cat as cat_value};
use crate::value::{Record, Value, Vector};
use crate::vm::Vm;
use std::rc::Rc;

type Result<T> = std::result::Result<T, Stop>;

/// The functions of this file.
pub(super) const TABLE: Table = &[
    ("cat", cat),
    ("cat_sep", cat_sep),
    ("fmt", fmt),
    ("clean", |_, a| Ok(escaped(a, escape::printed))),
    ("escape_string", |_, a| Ok(escaped(a, escape::escaped))),
    ("to_string_literal", |_, a| Ok(escaped(a, escape::literal))),
    ("string_to_ascii_hex", |_, a| Ok(Value::string_owned(text::to_hex(bytes(a, 0))))),
    ("compress_path", |_, a| Ok(Value::string_owned(text::compress_path(bytes(a, 0))))),
    ("count_substr", |_, a| Ok(Value::Count(text::count_substr(bytes(a, 0), bytes(a, 1))))),
    ("edit", edit),
    ("ends_with", |_, a| Ok(Value::Bool(bytes(a, 0).ends_with(bytes(a, 1))))),
    ("starts_with", |_, a| Ok(Value::Bool(bytes(a, 0).starts_with(bytes(a, 1))))),
    ("find_all", find_all),
    ("find_all_ordered", find_all_ordered),
    ("find_first", |_, a| {
        let found = pattern(a, 1).and_then(|p| p.find_first(bytes(a, 0), arg(a, 2).count()));
        Ok(Value::string(found.unwrap_or(&[])))
    }),
    ("find_last", |_, a| {
        let found = pattern(a, 1).and_then(|p| p.find_last(bytes(a, 0), arg(a, 2).count()));
        Ok(Value::string(found.unwrap_or(&[])))
    }),
    ("find_str", |vm, a| find_str(vm, a, false)),
    ("rfind_str", |vm, a| find_str(vm, a, true)),
    ("gsub", |vm, a| substituted(vm, a, true)),
    ("sub", |vm, a| substituted(vm, a, false)),
    ("hexdump", |_, a| Ok(Value::string_owned(text::hexdump(bytes(a, 0))))),
    ("is_alnum", |vm, a| Ok(all(vm, a, u8::is_ascii_alphanumeric))),
    ("is_alpha", |vm, a| Ok(all(vm, a, u8::is_ascii_alphabetic))),
    ("is_num", |vm, a| Ok(all(vm, a, u8::is_ascii_digit))),
    ("is_ascii", |_, a| Ok(Value::Bool(bytes(a, 0).is_ascii()))),
    ("join_string_set", join_string_set),
    ("join_string_vec", join_string_vec),
    ("levenshtein_distance", |_, a| Ok(Value::Count(text::levenshtein(bytes(a, 0), bytes(a, 1))))),
    ("zfill", |vm, a| {
        let string = bytes(a, 0);
        let width = usize::try_from(arg(a, 1).count()).unwrap_or(usize::MAX);
        vm.check_string(width)?;
        let zeros = vec![b'0'; width.saturating_sub(string.len())];
        // As in Zeek, a sign is not moved before the zeros.
        Ok(Value::string_owned([&zeros, string].concat()))
    }),
    ("ljust", |vm, a| justify(vm, a, "ljust")),
    ("rjust", |vm, a| justify(vm, a, "rjust")),
    ("strip", |_, a| Ok(Value::string(text::strip(bytes(a, 0))))),
    ("lstrip", |_, a| Ok(Value::string(text::lstrip(bytes(a, 0), bytes(a, 1))))),
    ("rstrip", |_, a| Ok(Value::string(text::rstrip(bytes(a, 0), bytes(a, 1))))),
    ("remove_prefix", |_, a| Ok(Value::string(text::remove_prefix(bytes(a, 0), bytes(a, 1))))),
    ("remove_suffix", |_, a| Ok(Value::string(text::remove_suffix(bytes(a, 0), bytes(a, 1))))),
    ("reverse", |_, a| Ok(Value::string_owned(bytes(a, 0).iter().rev().copied().collect()))),
    ("safe_shell_quote", |_, a| Ok(Value::string_owned(text::safe_shell_quote(bytes(a, 0))))),
    ("split_string", |vm, a| Ok(split(vm, a, false, 0))),
    ("split_string1", |vm, a| Ok(split(vm, a, false, 1))),
    ("split_string_all", |vm, a| Ok(split(vm, a, true, 0))),
    ("split_string_n", |vm, a| Ok(split(vm, a, arg(a, 2).truth(), arg(a, 3).count()))),
    ("str_smith_waterman", str_smith_waterman),
    ("str_split_indices", str_split_indices),
    ("strcmp", |_, a| {
        let (one, other) = (bytes(a, 0), bytes(a, 1));
        // The difference of the first bytes that differ, as glibc's `memcmp` returns it.
        let differ = one.iter().zip(other).find(|(one, other)| one != other);
        Ok(Value::Int(match differ {
            Some((one, other)) => i64::from(*one) - i64::from(*other),
            None => one.len().cmp(&other.len()) as i64,
        }))
    }),
    ("string_cat", string_cat),
    ("string_fill", |vm, a| {
        let len = usize::try_from(arg(a, 0).int()).unwrap_or(0);
        vm.check_string(len)?;
        Ok(Value::string_owned(text::string_fill(len, bytes(a, 1))))
    }),
    ("string_to_pattern", string_to_pattern),
    ("convert_for_pattern", |_, a| {
        Ok(Value::string_owned(crate::support::pattern::escape(bytes(a, 0))))
    }),
    ("strstr", |_, a| {
        let found = text::find(bytes(a, 0), bytes(a, 1));
        Ok(Value::Count(found.map_or(0, |at| at as u64 + 1)))
    }),
    ("sub_bytes", |_, a| {
        Ok(Value::string(text::sub_bytes(bytes(a, 0), arg(a, 1).count(), arg(a, 2).int())))
    }),
    ("subst_string", |vm, a| {
        let replaced = text::replace_all(bytes(a, 0), bytes(a, 1), bytes(a, 2), vm.m.max_string);
        check_length(vm, replaced)
    }),
    ("swap_case", |_, a| Ok(Value::string_owned(text::swap_case(bytes(a, 0))))),
    ("to_lower", |_, a| Ok(Value::string_mapped(bytes(a, 0), |b| b.to_ascii_lowercase()))),
    ("to_upper", |_, a| Ok(Value::string_mapped(bytes(a, 0), |b| b.to_ascii_uppercase()))),
    ("to_title", |_, a| Ok(Value::string_owned(text::to_title(bytes(a, 0))))),
    ("unescape_URI", |_, a| Ok(Value::string_owned(text::unescape_uri(bytes(a, 0))))),
    ("decode_netbios_name", |_, a| Ok(Value::string_owned(text::decode_netbios_name(bytes(a, 0))))),
    ("decode_netbios_name_type", |_, a| Ok(Value::Count(text::netbios_name_type(bytes(a, 0))))),
    ("uuid_to_string", uuid_to_string),
    ("bytestring_to_hexstr", |_, a| Ok(Value::string_owned(text::to_hex(bytes(a, 0))))),
    ("hexstr_to_bytestring", hexstr_to_bytestring),
    ("encode_base64", encode_base64),
    ("decode_base64", |vm, a| decode_base64(vm, bytes(a, 0), bytes(a, 1))),
    ("is_valid_base64", |_, a| {
        let letters = bytes(a, 1);
        let is_alphabet = matches!(letters.len(), 0 | 64);
        Ok(Value::Bool(is_alphabet && text::base64::is_valid(bytes(a, 0), alphabet(letters))))
    }),
    ("strftime", |vm, a| {
        let a = &c_strings(vm, a, &[0]);
        Ok(Value::string_owned(crate::support::format::time::strftime(
            bytes(a, 0),
            arg(a, 1).double(),
        )))
    }),
    ("strptime", strptime),
];

/// The bytes of a string argument.
pub(super) fn bytes(args: &[Value], index: usize) -> &[u8] {
    arg(args, index).str_bytes()
}

fn pattern(args: &[Value], index: usize) -> Option<&Rc<Pattern>> {
    arg(args, index).pattern()
}

fn escaped(args: &[Value], escape: fn(&mut Vec<u8>, &[u8])) -> Value {
    let mut out = Vec::new();
    escape(&mut out, bytes(args, 0));
    Value::string_owned(out)
}

fn all(vm: &mut Vm<'_>, args: &[Value], holds: fn(&u8) -> bool) -> Value {
    let text = bytes(args, 0);
    Value::Bool(!text.is_empty() && !has_nul(vm, text) && text.iter().all(holds))
}

/// The concatenated texts of values.
pub(super) fn concatenated(vm: &mut Vm<'_>, args: &[Value]) -> Result<Vec<u8>> {
    joined(vm, args, describe::Form::Raw)
}

fn joined(vm: &mut Vm<'_>, args: &[Value], form: describe::Form) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    for value in args {
        add(vm, &mut out, value, form)?;
    }
    Ok(out)
}

/// Appends the text of a value.
fn add(vm: &mut Vm<'_>, out: &mut Vec<u8>, value: &Value, form: describe::Form) -> Result<()> {
    let made;
    let text = match value.bytes() {
        Some(text) => text,
        None => {
            made = describe::describe(vm.p, value, form);
            &made
        }
    };
    vm.check_string(out.len() + text.len())?;
    out.extend_from_slice(text);
    Ok(())
}

/// The string with the first match, or all matches, of a pattern replaced.
fn substituted(vm: &mut Vm<'_>, args: &[Value], all: bool) -> Result<Value> {
    let Some(pattern) = pattern(args, 1) else { return Ok(Value::Unset) };
    let replaced = pattern.replace(bytes(args, 0), bytes(args, 2), all, vm.m.max_string);
    check_length(vm, replaced)
}

/// The string, or an error if its length would exceed the limit.
fn check_length(vm: &mut Vm<'_>, text: std::result::Result<Vec<u8>, usize>) -> Result<Value> {
    match text {
        Ok(text) => Ok(Value::string_owned(text)),
        Err(len) => vm.check_string(len).map(|()| Value::Unset),
    }
}

fn cat(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    joined(vm, args, describe::Form::Cat).map(Value::string_owned)
}

fn cat_sep(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let [separator, default, rest @ ..] = args else {
        let text = format!("cat_sep() takes at least 2 argument(s), got {}", args.len());
        vm.builtin_error(text);
        return Ok(Value::Unset);
    };
    for (name, value) in [("sep", separator), ("def", default)] {
        if value.bytes().is_none() {
            let ty = crate::describe::tag_name(vm.p.types.get(value.ty()));
            vm.builtin_error(format!("expected type string for {name}, got {ty}"));
            return Ok(Value::Unset);
        }
    }
    let separator = &c_strings(vm, std::slice::from_ref(separator), &[0]);
    let mut out = Vec::new();
    for (index, value) in rest.iter().enumerate() {
        if index > 0 {
            out.extend_from_slice(bytes(separator, 0));
        }
        match value.bytes() {
            Some([]) => add(vm, &mut out, default, describe::Form::Cat)?,
            _ => add(vm, &mut out, value, describe::Form::Cat)?,
        }
    }
    Ok(Value::string_owned(out))
}

fn fmt(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let [first, rest @ ..] = args else { return Ok(Value::string("")) };
    let Some(directives) = first.bytes() else {
        // Without a format the values are concatenated.
        return cat(vm, args);
    };
    let directives = if has_nul(vm, directives) { WITH_NUL.as_bytes() } else { directives };
    let strings = rest.iter().filter_map(Value::bytes).map(<[u8]>::len).sum::<usize>();
    vm.check_string(strings)?;
    // The common case: few arguments, and none that needs its text formatted separately.
    if rest.len() <= MAX_STACK_ARGS
        && let Some(formatted) = plain_arguments(rest)
    {
        let formatted = formatted.get(..rest.len()).unwrap_or(&[]);
        let result = format_to(std::mem::take(&mut vm.m.text), directives, formatted);
        return Ok(formatted_text(vm, first, rest, result));
    }
    let texts: Vec<Vec<u8>> = rest
        .iter()
        .map(|value| match plain_argument(value) {
            Some(_) => Vec::new(),
            None => cat_value(vm.p, value),
        })
        .collect();
    let formatted: Vec<Arg<'_>> = rest
        .iter()
        .zip(&texts)
        .map(|(value, text)| match value {
            Value::Bool(value) => Arg::Int(i64::from(*value), text),
            Value::Enum(_, value) => Arg::Int(*value, text),
            Value::Port(port) => Arg::Count(u64::from(port.number), text),
            other => plain_argument(other).unwrap_or(Arg::Text(text)),
        })
        .collect();
    let result = format(directives, &formatted);
    Ok(formatted_text(vm, first, rest, result))
}

/// Maximum number of arguments of `fmt` that are passed without an allocation.
const MAX_STACK_ARGS: usize = 8;

/// An argument of `fmt` that can be formatted from its value alone.
fn plain_argument(value: &Value) -> Option<Arg<'_>> {
    Some(match value {
        Value::Int(value) => Arg::Int(*value, &[]),
        Value::Count(value) => Arg::Count(*value, &[]),
        Value::Double(value) => Arg::Double(*value),
        Value::Time(value) => Arg::Time(*value),
        Value::Interval(value) => Arg::Interval(*value),
        Value::Addr4(_) | Value::Addr6(_) => Arg::Addr(value.addr_bytes().unwrap_or_default()),
        Value::Short(_) | Value::Long(_) => Arg::Text(value.str_bytes()),
        _ => return None,
    })
}

fn plain_arguments(values: &[Value]) -> Option<[Arg<'_>; MAX_STACK_ARGS]> {
    let mut all = [Arg::Text(&[]); MAX_STACK_ARGS];
    for (slot, value) in all.iter_mut().zip(values) {
        *slot = plain_argument(value)?;
    }
    Some(all)
}

/// The result of `fmt`; errors are reported.
fn formatted_text(vm: &mut Vm<'_>, first: &Value, rest: &[Value], result: Formatted) -> Value {
    for error in &result.errors {
        let (message, index) = error.message();
        let shown = match index {
            Some(index) => rest.get(index),
            None if error.shows_format() => Some(first),
            None => None,
        };
        match shown.cloned() {
            Some(value) => vm.builtin_error_with(message, &value),
            None => vm.builtin_error(message),
        }
    }
    // Short texts are copied, so that the buffer can be reused.
    if result.text.len() > MAX_COPIED {
        return Value::string_owned(result.text);
    }
    let text = Value::string(&result.text);
    vm.m.text = result.text;
    text
}

/// Maximum length of a result of `fmt` that is copied out of the buffer, in bytes.
const MAX_COPIED: usize = 1024;

fn edit(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    if bytes(args, 1).len() != 1 {
        vm.builtin_error_with("not exactly one edit character", arg(args, 1));
    }
    // As in Zeek, which reads the terminating NUL of an empty string.
    let erase = bytes(args, 1).first().copied().unwrap_or(0);
    Ok(Value::string_owned(text::edit(bytes(args, 0), erase)))
}

/// The script constant that limits the length of the string that `find_all` searches.
const FIND_ALL_LIMIT: &str = "max_find_all_string_length";

/// Whether a string exceeds the limit; reports a weird if so.
fn too_long(vm: &mut Vm<'_>, args: &[Value]) -> bool {
    let length = bytes(args, 0).len() as u64;
    let (limit, source) = match arg(args, 2).int() {
        -1 => (vm.global_named(FIND_ALL_LIMIT).int(), format!("(from constant {FIND_ALL_LIMIT}")),
        limit => (limit, String::new()),
    };
    // Zero disables the limit.
    let Some(limit) = u64::try_from(limit).ok().filter(|limit| (1..length).contains(limit)) else {
        return false;
    };
    let site = vm.call_site();
    let span = vm.p.exprs.find(site).map_or(crate::source::Span::NOWHERE, |expr| expr.span);
    let location = vm.p.sources.location(span);
    let text = format!("{location}: length {length} exceeded {limit}{source}");
    let name = Value::string("max_find_all_string_length_exceeded");
    vm.queue_named("net_weird", vec![name, Value::string(text), Value::string("")]);
    true
}

fn string_vector(vm: &Vm<'_>, parts: impl IntoIterator<Item = Vec<u8>>) -> Value {
    let items = parts.into_iter().map(Value::string_owned).collect();
    Value::Vector(Vector::new(vm.result_type(), items))
}

fn find_all(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let ty = vm.result_type();
    let table = vm.new_table(ty, None);
    if let (Some(pattern), Value::Table(table)) = (pattern(args, 1), &table)
        && !too_long(vm, args)
    {
        for found in pattern.find_all(bytes(args, 0)) {
            table.insert(Value::string(found), Value::Unset, 0.0);
        }
    }
    Ok(table)
}

fn find_all_ordered(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let found = match pattern(args, 1) {
        Some(pattern) if !too_long(vm, args) => pattern.find_all(bytes(args, 0)),
        _ => Vec::new(),
    };
    Ok(string_vector(vm, found.into_iter().map(<[u8]>::to_vec)))
}

fn find_str(vm: &mut Vm<'_>, args: &[Value], last: bool) -> Result<Value> {
    let found = text::find_str(
        bytes(args, 0),
        bytes(args, 1),
        arg(args, 2).count(),
        arg(args, 3).int(),
        last,
        arg(args, 4).truth(),
    );
    match found {
        Ok(at) => Ok(Value::Int(at)),
        Err(_) => {
            vm.report(
                Severity::Error,
                "find_str: end position must be greater than start position",
            );
            Ok(Value::Int(-1))
        }
    }
}

fn join<'v>(
    vm: &mut Vm<'_>,
    parts: impl Iterator<Item = &'v Value>,
    separator: &Value,
) -> Result<Value> {
    let mut out = Vec::new();
    for (index, part) in parts.enumerate() {
        if index > 0 {
            add(vm, &mut out, separator, describe::Form::Raw)?;
        }
        if part.is_set() {
            add(vm, &mut out, part, describe::Form::Raw)?;
        }
    }
    Ok(Value::string_owned(out))
}

fn join_string_set(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let keys = arg(args, 0).table().map(|table| table.keys()).unwrap_or_default();
    join(vm, keys.iter(), arg(args, 1))
}

fn join_string_vec(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let items = arg(args, 0).vector().map(|vector| vector.items().clone()).unwrap_or_default();
    join(vm, items.iter(), arg(args, 1))
}

fn justify(vm: &mut Vm<'_>, args: &[Value], name: &str) -> Result<Value> {
    let string = bytes(args, 0);
    let [fill] = bytes(args, 2) else {
        vm.report(
            Severity::Error,
            format!("Fill string passed to {name}() must be a single character"),
        );
        return Ok(Value::Unset);
    };
    let fill = if has_nul(vm, &[*fill]) { &b'<' } else { fill };
    let width = usize::try_from(arg(args, 1).count()).unwrap_or(usize::MAX);
    vm.check_string(width)?;
    let missing = width.saturating_sub(string.len());
    let padding = vec![*fill; missing];
    Ok(Value::string_owned(if name == "ljust" {
        [string, &padding].concat()
    } else {
        [&padding, string].concat()
    }))
}

fn split(vm: &Vm<'_>, args: &[Value], separators: bool, max: u64) -> Value {
    let mut items = Vec::with_capacity(4);
    if let Some(pattern) = pattern(args, 1) {
        let add = |part| items.push(Value::string(part));
        pattern.split_each(bytes(args, 0), separators, max, add);
    }
    Value::Vector(Vector::new(vm.result_type(), items))
}

fn str_smith_waterman(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let (min, variant) = match arg(args, 2) {
        Value::Record(record) => (record.get(0).count(), record.get(1).count()),
        _ => (0, 0),
    };
    let found = text::smith_waterman(bytes(args, 0), bytes(args, 1), min, variant == 1);
    let (Some(substring), Some(align), Some(aligns)) =
        (vm.type_named("sw_substring"), vm.type_named("sw_align"), vm.type_named("sw_align_vec"))
    else {
        return Ok(Value::Unset);
    };
    let items = found
        .into_iter()
        .map(|part| {
            let strings = [bytes(args, 0), bytes(args, 1)];
            let aligns_of = strings
                .iter()
                .zip(part.at)
                .map(|(string, at)| {
                    let fields = vec![Value::string(string), Value::Count(at as u64)];
                    Value::Record(Record::new(align, fields))
                })
                .collect();
            Value::Record(Record::new(
                substring,
                vec![
                    Value::string_owned(part.bytes),
                    Value::Vector(Vector::new(aligns, aligns_of)),
                    Value::Bool(part.begins),
                ],
            ))
        })
        .collect();
    Ok(Value::Vector(Vector::new(vm.result_type(), items)))
}

fn str_split_indices(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let indices: Vec<u64> = arg(args, 1)
        .vector()
        .map(|vector| vector.items().iter().map(Value::count).collect())
        .unwrap_or_default();
    let parts: Vec<Vec<u8>> =
        text::split_indices(bytes(args, 0), &indices).into_iter().map(<[u8]>::to_vec).collect();
    Ok(string_vector(vm, parts))
}

fn string_cat(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    if args.iter().any(|value| value.bytes().is_none()) {
        vm.report(Severity::Error, "string_cat() requires string arguments");
        return Ok(Value::string(""));
    }
    concatenated(vm, args).map(Value::string_owned)
}

fn string_to_pattern(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let text = if arg(args, 1).truth() {
        crate::support::pattern::escape(bytes(args, 0))
    } else {
        bytes(args, 0).to_vec()
    };
    let pattern = Pattern::new(&text, Modes::default());
    for error in pattern.errors() {
        vm.report(Severity::Error, error);
    }
    Ok(Value::Pattern(Rc::new(pattern)))
}

fn uuid_to_string(_: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    Ok(Value::string(if bytes(args, 0).len() < 16 {
        "<Invalid UUID>".to_owned()
    } else {
        text::uuid(bytes(args, 0))
    }))
}

fn hexstr_to_bytestring(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let args = &c_strings(vm, args, &[0]);
    match text::from_hex(bytes(args, 0)) {
        Ok(bytes) => Ok(Value::string_owned(bytes)),
        Err(message) => {
            vm.report(Severity::Error, message);
            Ok(Value::string(""))
        }
    }
}

fn alphabet(text: &[u8]) -> Option<&[u8; 64]> {
    text.try_into().ok()
}

fn encode_base64(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let own = bytes(args, 1);
    if !own.is_empty() && own.len() != 64 {
        vm.report(
            Severity::Error,
            format!("base64 alphabet is not 64 characters: {}", arg(args, 1).text()),
        );
        vm.report(Severity::Error, "Broker query has an invalid data store");
        return Ok(Value::string(""));
    }
    Ok(Value::string_owned(text::base64::encode(bytes(args, 0), alphabet(own))))
}

fn decode_base64(vm: &mut Vm<'_>, encoded: &[u8], own: &[u8]) -> Result<Value> {
    let (decoded, messages) = if own.is_empty() || own.len() == 64 {
        text::base64::decode(encoded, alphabet(own))
    } else {
        let own = String::from_utf8_lossy(own);
        let text = format!("base64 decoding alphabet is not 64 characters: {own}");
        (None, vec![text])
    };
    for message in messages {
        vm.report(Severity::Error, message);
    }
    match decoded {
        Some(bytes) => Ok(Value::string_owned(bytes)),
        None => {
            let encoded = if has_nul(vm, encoded) { WITH_NUL.as_bytes() } else { encoded };
            let text = [b"error in decoding string ", encoded].concat();
            vm.report(Severity::Error, text);
            Ok(Value::string(""))
        }
    }
}

fn strptime(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let args = &c_strings(vm, args, &[0, 1]);
    match crate::support::format::time::strptime(bytes(args, 0), bytes(args, 1)) {
        Some(time) => Ok(Value::Time(time)),
        None => {
            let mut message = b"strptime conversion failed: fmt:".to_vec();
            message.extend_from_slice(bytes(args, 0));
            message.extend_from_slice(b" d:");
            message.extend_from_slice(bytes(args, 1));
            vm.report(Severity::Warning, message);
            Ok(Value::Time(0.0))
        }
    }
}

/// The text of a value on one line.
pub(super) fn short(vm: &Vm<'_>, value: &Value) -> String {
    String::from_utf8_lossy(&describe::describe(vm.p, value, describe::Form::Short)).into_owned()
}
