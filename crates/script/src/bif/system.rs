//! The process and the system: time, files, commands, environment, termination.

use std::process::{Command, Stdio};
use std::rc::Rc;

use super::strings::{bytes, concatenated};
use super::{Table, WITH_NUL, arg, c_strings, has_nul};
use crate::diagnostics::Severity;
use crate::evaluate::Stop;
use crate::support::order::{Random, UidPools};
use crate::support::resolver::{self, Answer, Question};
use crate::types::Flavor;
use crate::value::object::FileSink;
use crate::value::{FileValue, Record, Value, Vector};
use crate::vm::Vm;
use crate::vm::events::wall_clock;

type Result<T> = std::result::Result<T, Stop>;

/// The functions of this file.
pub(super) const TABLE: Table = &[
    ("network_time", |vm, _| Ok(Value::Time(vm.m.now))),
    ("current_time", |_, _| Ok(Value::Time(wall_clock()))),
    ("set_network_time", |vm, a| {
        vm.m.now = arg(a, 0).double();
        Ok(Value::Bool(true))
    }),
    ("sleep", |vm, a| {
        vm.m.out.flush();
        const DAY: std::time::Duration = std::time::Duration::from_secs(86_400);
        let seconds = arg(a, 0).double();
        let begin = wall_clock();
        // Negative numbers and NaN are not valid times.
        let time = std::time::Duration::try_from_secs_f64(seconds).map_or_else(
            |_| if seconds > 0.0 { DAY } else { std::time::Duration::ZERO },
            |time| time.min(DAY),
        );
        std::thread::sleep(time);
        Ok(Value::Interval(wall_clock() - begin))
    }),
    ("getpid", |_, _| Ok(Value::Count(u64::from(std::process::id())))),
    ("gethostname", |_, _| {
        let name = std::fs::read_to_string("/proc/sys/kernel/hostname");
        Ok(Value::string(name.as_deref().map_or("<unknown>", str::trim)))
    }),
    ("getenv", |vm, a| {
        let a = &c_strings(vm, a, &[0]);
        let name = arg(a, 0).text();
        if name.is_empty() || name.contains('=') {
            return Ok(Value::string(""));
        }
        use std::os::unix::ffi::OsStringExt as _;
        Ok(match vm.m.state.environment.get(&name) {
            Some(value) => Value::string(value),
            None => Value::string_owned(std::env::var_os(name).unwrap_or_default().into_vec()),
        })
    }),
    ("setenv", |vm, a| {
        let a = &c_strings(vm, a, &[1, 0]);
        let (name, value) = (arg(a, 0).text(), bytes(a, 1));
        // Names that setenv(3) refuses.
        if name.is_empty() || name.contains('=') {
            return Ok(Value::Bool(false));
        }
        vm.m.state.environment.insert(name, value.to_vec());
        Ok(Value::Bool(true))
    }),
    ("exit", |_, a| Err(Stop::Exit(arg(a, 0).int() as i32))),
    ("terminate", |vm, _| {
        if vm.m.terminating || vm.m.stop_requested {
            return Ok(Value::Bool(false));
        }
        vm.m.stop_requested = true;
        vm.m.state.terminated = true;
        Ok(Value::Bool(true))
    }),
    ("suspend_processing", |vm, _| {
        if vm.m.state.suspended == 0 {
            vm.report(Severity::Info, "processing suspended");
        }
        vm.m.state.suspended = vm.m.state.suspended.saturating_add(1);
        Ok(Value::Bool(true))
    }),
    ("continue_processing", |vm, _| {
        if vm.m.state.suspended == 1 {
            vm.report(Severity::Info, "processing continued");
        }
        vm.m.state.suspended = vm.m.state.suspended.saturating_sub(1);
        Ok(Value::Bool(true))
    }),
    ("is_processing_suspended", |vm, _| Ok(Value::Bool(vm.m.state.suspended > 0))),
    ("bare_mode", |vm, _| Ok(Value::Bool(vm.m.state.bare))),
    ("reading_live_traffic", |vm, _| Ok(Value::Bool(vm.m.state.traffic.is_live))),
    ("reading_traces", |vm, _| Ok(Value::Bool(vm.m.state.traffic.reads_capture))),
    ("is_remote_event", |_, _| Ok(Value::Bool(false))),
    ("system", system),
    ("system_env", system),
    ("piped_exec", piped_exec),
    ("open", |vm, a| open(vm, a, false)),
    ("open_for_append", |vm, a| open(vm, a, true)),
    ("close", |_, a| {
        Ok(Value::Bool(match arg(a, 0) {
            Value::File(file) => file.close(),
            _ => false,
        }))
    }),
    ("active_file", |_, a| {
        Ok(Value::Bool(match arg(a, 0) {
            Value::File(file) => file.is_open(),
            _ => false,
        }))
    }),
    ("write_file", |vm, a| {
        Ok(Value::Bool(match arg(a, 0) {
            Value::File(file) if file.is_open() => {
                let file = Rc::clone(file);
                vm.m.out.write_file(&file, bytes(a, 1));
                true
            }
            _ => false,
        }))
    }),
    ("print_raw", |vm, a| {
        let mut rest = a;
        let text;
        if let [Value::File(file), others @ ..] = a {
            rest = others;
            let file = Rc::clone(file);
            text = concatenated(vm, rest)?;
            vm.m.out.write_file(&file, &text);
        } else {
            text = concatenated(vm, rest)?;
            vm.m.out.write(&text);
        }
        Ok(Value::Bool(true))
    }),
    ("set_buf", |_, a| {
        Ok(Value::Bool(match arg(a, 0) {
            Value::File(file) => file.set_buffered(arg(a, 1).truth()),
            _ => false,
        }))
    }),
    ("flush_all", |vm, _| Ok(Value::Bool(vm.m.out.flush_all()))),
    ("enable_raw_output", |_, a| {
        if let Value::File(file) = arg(a, 0) {
            file.raw.set(true);
        }
        Ok(Value::Unset)
    }),
    ("get_file_name", |_, a| {
        Ok(match arg(a, 0) {
            Value::File(file) => Value::string(&file.name),
            _ => Value::string(""),
        })
    }),
    ("file_size", |vm, a| {
        let a = &c_strings(vm, a, &[0]);
        Ok(Value::Double(
            std::fs::metadata(arg(a, 0).text()).map_or(-1.0, |data| data.len() as f64),
        ))
    }),
    ("mkdir", |vm, a| {
        if refused_in_sandbox(vm, "mkdir") {
            return Ok(Value::Bool(false));
        }
        let path = arg(&c_strings(vm, a, &[0]), 0).text();
        match std::fs::create_dir(&path) {
            Ok(()) => Ok(Value::Bool(true)),
            Err(_) if std::path::Path::new(&path).is_dir() => Ok(Value::Bool(true)),
            Err(error) => Ok(failed(vm, "cannot create directory", &path, &error)),
        }
    }),
    ("rmdir", |vm, a| {
        if refused_in_sandbox(vm, "rmdir") {
            return Ok(Value::Bool(false));
        }
        let path = arg(&c_strings(vm, a, &[0]), 0).text();
        match std::fs::remove_dir(&path) {
            Ok(()) => Ok(Value::Bool(true)),
            Err(error) => Ok(failed(vm, "cannot remove directory", &path, &error)),
        }
    }),
    ("unlink", |vm, a| {
        if refused_in_sandbox(vm, "unlink") {
            return Ok(Value::Bool(false));
        }
        let path = arg(&c_strings(vm, a, &[0]), 0).text();
        match std::fs::remove_file(&path) {
            Ok(()) => Ok(Value::Bool(true)),
            Err(error) => Ok(failed(vm, "cannot unlink file", &path, &error)),
        }
    }),
    ("rename", |vm, a| {
        if refused_in_sandbox(vm, "rename") {
            return Ok(Value::Bool(false));
        }
        let a = &c_strings(vm, a, &[0, 1]);
        let (from, to) = (arg(a, 0).text(), arg(a, 1).text());
        match std::fs::rename(&from, &to) {
            Ok(()) => Ok(Value::Bool(true)),
            Err(error) => {
                let reason = system_text(&error);
                let text = format!("cannot rename file '{from}' to '{to}': {reason}");
                vm.report(Severity::Warning, text);
                Ok(Value::Bool(false))
            }
        }
    }),
    ("file_mode", |_, a| Ok(Value::string(crate::support::text::file_mode(arg(a, 0).count())))),
    ("rotate_file", |vm, a| match arg(a, 0) {
        Value::File(file) if matches!(*file.sink.borrow(), Some(FileSink::File(_))) => {
            rotate(vm, &file.name, Some(file))
        }
        _ => not_rotated(vm),
    }),
    ("rotate_file_by_name", |vm, a| {
        let name = arg(a, 0).text();
        rotate(vm, &name, None)
    }),
    ("calc_next_rotate", |vm, a| {
        let mut interval = arg(a, 0).double();
        if interval == 0.0 {
            let text = "calc_next_rotate(): interval is zero, falling back to 24hrs";
            vm.report(Severity::Error, text);
            interval = 86_400.0;
        }
        let base = super::log::rotation_base(vm);
        Ok(Value::Interval(super::log::until_rotation(vm.m.now, interval, base)))
    }),
    ("syslog", |_, _| Ok(Value::Unset)),
    ("rand", |vm, a| {
        let max = arg(a, 0).count();
        Ok(Value::Count(vm.m.state.random.below(max)))
    }),
    ("srand", |vm, a| {
        vm.m.state.random.seed(arg(a, 0).count() as u32);
        Ok(Value::Unset)
    }),
    ("unique_id", |vm, a| {
        let a = &c_strings(vm, a, &[0]);
        Ok(unique(vm, UidPools::SCRIPT, bytes(a, 0)))
    }),
    ("unique_id_from", |vm, a| {
        let a = &c_strings(vm, a, &[1]);
        Ok(unique(vm, UidPools::custom(arg(a, 0).int()), bytes(a, 1)))
    }),
    ("enable_event_group", |vm, a| {
        let a = &c_strings(vm, a, &[0]);
        let group = arg(a, 0).text();
        let known = known_group(vm, &group, has_group);
        vm.m.disabled_groups.remove(&group);
        Ok(Value::Bool(known))
    }),
    ("disable_event_group", |vm, a| {
        let a = &c_strings(vm, a, &[0]);
        let group = arg(a, 0).text();
        let known = known_group(vm, &group, has_group);
        if known {
            vm.m.disabled_groups.insert(group);
        }
        Ok(Value::Bool(known))
    }),
    ("has_event_group", |vm, a| {
        let name = arg(&c_strings(vm, a, &[0]), 0).text();
        Ok(Value::Bool(has_group(vm, &name)))
    }),
    ("enable_module_events", |vm, a| {
        let a = &c_strings(vm, a, &[0]);
        let name = arg(a, 0).text();
        let known = known_group(vm, &name, has_module);
        if let Some(name) = vm.p.names.find(&name) {
            vm.m.disabled_modules.remove(&name);
        }
        Ok(Value::Bool(known))
    }),
    ("disable_module_events", |vm, a| {
        let a = &c_strings(vm, a, &[0]);
        let name = arg(a, 0).text();
        let known = known_group(vm, &name, has_module);
        if known && let Some(name) = vm.p.names.find(&name) {
            vm.m.disabled_modules.insert(name);
        }
        Ok(Value::Bool(known))
    }),
    ("has_module_events", |vm, a| {
        let name = arg(&c_strings(vm, a, &[0]), 0).text();
        Ok(Value::Bool(has_module(vm, &name)))
    }),
    ("generate_all_events", |vm, _| {
        vm.m.generate_all = true;
        Ok(Value::Bool(true))
    }),
    ("is_event_handled", is_event_handled),
    ("get_max_recursion_depth", |vm, _| Ok(Value::Count(vm.m.max_depth as u64))),
    ("set_max_recursion_depth", |vm, a| {
        vm.m.max_depth = match arg(a, 0).count() {
            // 0 disables the limit, except for the maximum of the engine.
            0 => 100_000,
            depth => usize::try_from(depth).unwrap_or(1000).min(100_000),
        };
        Ok(Value::Unset)
    }),
    ("zeek_version", |_, _| Ok(Value::string("9.1.0-dev"))),
    ("zeek_is_terminating", |vm, _| Ok(Value::Bool(vm.m.terminating || vm.m.stop_requested))),
    ("zeek_args", |vm, _| {
        // `gannet zeek …` stands for the command `zeek`.
        let all = &vm.m.state.command;
        let skips = usize::from(all.get(1).is_some_and(|command| command == "zeek"));
        let items = all.iter().skip(skips).map(Value::string).collect();
        Ok(strings(vm, items))
    }),
    ("backtrace", |vm, _| {
        let site = vm.m.native.last().map(|(site, _)| *site);
        let span = site.and_then(|site| vm.p.exprs.find(site)).map(|expr| expr.span);
        Ok(vm.backtrace("backtrace", span.unwrap_or(crate::source::Span::NOWHERE)))
    }),
    ("do_profiling", |_, _| Ok(Value::Unset)),
    ("__init_primary_bifs", |_, _| Ok(Value::Bool(true))),
    ("__init_secondary_bifs", |_, _| Ok(Value::Bool(true))),
    ("have_spicy", |_, _| Ok(Value::Bool(false))),
    ("have_spicy_analyzers", |vm, _| Ok(Value::Bool(vm.p.has_spicy))),
    ("find_in_zeekpath", find_in_zeekpath),
    ("is_local_interface", |_, a| {
        Ok(Value::Bool(match arg(a, 0) {
            Value::Addr4([127, ..]) => true,
            other => {
                other.addr_bytes().is_some_and(|addr| std::net::Ipv6Addr::from(addr).is_loopback())
            }
        }))
    }),
    ("packet_source", |vm, _| {
        let capture = &vm.m.state.traffic.capture;
        let path = if capture.is_empty() { Value::Unset } else { Value::string(capture) };
        Ok(Value::Record(Record::new(vm.result_type(), vec![Value::Bool(false), path])))
    }),
    ("lookup_addr", |vm, a| {
        if !in_condition(vm, "lookup_addr") {
            return Ok(Value::string("<error>"));
        }
        let addr = arg(a, 0).addr_bytes().unwrap_or_default();
        if !fakes_hosts() {
            let addr = std::net::Ipv6Addr::from(addr).to_canonical();
            return look_up(vm, "lookup_addr", Question::Addr(addr));
        }
        let text = crate::describe::address(addr);
        vm.answer_later(Value::string(format!("fake_addr_lookup_result_{text}")))
    }),
    ("lookup_hostname_txt", |vm, a| {
        if !in_condition(vm, "lookup_hostname_txt") {
            return Ok(Value::string("<error>"));
        }
        let name = arg(a, 0).text();
        if !fakes_hosts() {
            return look_up(vm, "lookup_hostname_txt", Question::Text(name));
        }
        vm.answer_later(Value::string(format!("fake_lookup_result_16_{name}")))
    }),
    ("lookup_hostname", |vm, a| {
        if !in_condition(vm, "lookup_hostname") {
            return Ok(Value::string("<error>"));
        }
        if !fakes_hosts() {
            return look_up(vm, "lookup_hostname", Question::Name(arg(a, 0).text()));
        }
        let found = fake_addresses(vm, a)?;
        vm.answer_later(found)
    }),
    ("blocking_lookup_hostname", |vm, a| {
        if fakes_hosts() {
            return fake_addresses(vm, a);
        }
        let question = Question::Name(arg(a, 0).text());
        let ty = vm.result_type();
        let is_refused = refused_in_sandbox(vm, "blocking_lookup_hostname");
        let found = if is_refused { Answer::Nothing } else { resolver::answer(&question) };
        Ok(vm.host_value(&question, found, ty))
    }),
];

/// Whether the condition of a `when` is being evaluated; reports an error otherwise.
fn in_condition(vm: &mut Vm<'_>, name: &str) -> bool {
    let evaluating = vm.m.whens.is_evaluating();
    if !evaluating {
        let text = format!("{name}() can only be called inside a when-condition");
        vm.builtin_error(&text);
    }
    evaluating
}

fn failed(vm: &mut Vm<'_>, action: &str, path: &str, error: &std::io::Error) -> Value {
    let reason = system_text(error);
    vm.report(Severity::Warning, format!("{action} '{path}': {reason}"));
    Value::Bool(false)
}

/// The error text of strerror(3).
pub(super) fn system_text(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}

fn command(vm: &Vm<'_>, line: &[u8]) -> Command {
    use std::os::unix::ffi::OsStrExt as _;
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(std::ffi::OsStr::from_bytes(line));
    for (name, value) in &vm.m.state.environment {
        command.env(name, std::ffi::OsStr::from_bytes(value));
    }
    command
}

/// Whether the run is a sandbox, in which scripts start no processes and change no files; reports an error if so.
pub(crate) fn refused_in_sandbox(vm: &mut Vm<'_>, action: &str) -> bool {
    if vm.m.state.sandbox {
        vm.builtin_error(format!("{action} is not allowed in a sandbox"));
    }
    vm.m.state.sandbox
}

fn system(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    if refused_in_sandbox(vm, "system") {
        return Ok(Value::Int(-1));
    }
    vm.m.out.flush_all();
    let args = &c_strings(vm, args, &[0]);
    // Output goes to standard error; the command runs in the background.
    let line = [b"(", bytes(args, 0), b"\n) 1>&2 &"].concat();
    let mut command = command(vm, &line);
    if let Some(table) = arg(args, 1).table() {
        for (key, value) in table.entries() {
            command.env(format!("ZEEK_ARG_{}", key.text()), value.text());
        }
    }
    use std::os::unix::process::ExitStatusExt as _;
    Ok(Value::Int(match command.status() {
        Ok(status) => i64::from(status.into_raw()),
        Err(_) => -1,
    }))
}

fn piped_exec(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    use std::io::Write as _;
    if refused_in_sandbox(vm, "piped_exec") {
        return Ok(Value::Bool(false));
    }
    vm.m.out.flush_all();
    let args = &c_strings(vm, args, &[0]);
    let child = command(vm, bytes(args, 0)).stdin(Stdio::piped()).spawn();
    let Ok(mut child) = child else {
        let text = [b"Failed to popen ", bytes(args, 0)].concat();
        vm.report(Severity::Error, text);
        return Ok(Value::Bool(false));
    };
    let written =
        child.stdin.take().is_none_or(|mut stdin| stdin.write_all(bytes(args, 1)).is_ok());
    let ended = child.wait().is_ok();
    Ok(Value::Bool(written && ended))
}

fn open(vm: &mut Vm<'_>, args: &[Value], append: bool) -> Result<Value> {
    let name = arg(&c_strings(vm, args, &[0]), 0).text();
    let now = vm.m.now;
    let is_output = name == "-" && !append;
    let own = is_output || matches!(name.as_str(), "/dev/stdout" | "/dev/stderr");
    let opened = if !own && refused_in_sandbox(vm, "open") {
        None
    } else {
        Some(vm.m.out.open(&name, append, now))
    };
    match opened {
        Some(Ok(file)) => {
            // The file was opened before.
            if !is_output {
                vm.queue_named("file_opened", vec![Value::File(Rc::clone(&file))]);
            }
            Ok(Value::File(file))
        }
        failed => {
            if let Some(Err(error)) = failed {
                let reason = system_text(&error);
                vm.report(Severity::Error, format!("cannot open {name}: {reason}"));
            }
            Ok(Value::File(FileValue::closed(name, now)))
        }
    }
}

/// Renames a file and creates an empty one under its old name, which replaces the open file.
fn rotate(vm: &mut Vm<'_>, name: &str, open: Option<&FileValue>) -> Result<Value> {
    if refused_in_sandbox(vm, "rotate_file") {
        return rotation(vm, [name, name], [vm.m.now; 2]);
    }
    vm.m.out.flush_all();
    let first = format!("{name}.{}.{:.6}.tmp", std::process::id(), vm.m.now);
    let further = (2..).map(|n| format!("{first}-{n}"));
    // Rotations with the same timestamp get unique names.
    let is_free = |name: &String| !std::path::Path::new(name).exists();
    let new_name = std::iter::once(first.clone()).chain(further).find(is_free).unwrap_or_default();
    let fresh = format!("{new_name}.tmp");
    let rename = |from: &str, to: &str| {
        std::fs::rename(from, to)
            .map_err(|error| format!("can't move {from} to {to}: {}", system_text(&error)))
    };
    let made = std::fs::File::create(&fresh)
        .map_err(|error| format!("can't open {fresh}: {}", system_text(&error)))
        .and_then(|made| {
            let renamed = rename(name, &new_name);
            if renamed.is_err() {
                let _ = std::fs::remove_file(&fresh);
            }
            renamed.and_then(|()| rename(&fresh, name)).map(|()| made)
        });
    match made {
        Ok(made) => {
            let opened = open.map_or(vm.m.now, |file| file.opened);
            if let Some(file) = open {
                *file.sink.borrow_mut() = Some(FileSink::File(std::io::BufWriter::new(made)));
            }
            rotation(vm, [name, &new_name], [opened, vm.m.now])
        }
        Err(error) => {
            vm.report(Severity::Error, format!("rotate_file: {error}"));
            not_rotated(vm)
        }
    }
}

/// The result of a rotation: old and new name, and times of opening and closing.
fn rotation(vm: &Vm<'_>, names: [&str; 2], times: [f64; 2]) -> Result<Value> {
    let fields = names.map(Value::string).into_iter().chain(times.map(Value::Time));
    Ok(Value::Record(Record::new(vm.result_type(), fields.collect())))
}

/// The result if no file was rotated.
fn not_rotated(vm: &Vm<'_>) -> Result<Value> {
    rotation(vm, [""; 2], [0.0; 2])
}

fn unique(vm: &mut Vm<'_>, pool: u64, prefix: &[u8]) -> Value {
    let bits = match vm.global_named("bits_per_uid") {
        Value::Count(bits) => bits,
        _ => 96,
    };
    Value::string_owned(vm.m.state.uids.uid(pool, prefix, bits))
}

fn has_group(vm: &Vm<'_>, group: &str) -> bool {
    vm.p.bodies.iter().any(|(_, body)| body.groups.iter().any(|own| **own == *group))
}

fn has_module(vm: &Vm<'_>, name: &str) -> bool {
    let Some(name) = vm.p.names.find(name) else { return false };
    vm.p.bodies.iter().any(|(_, body)| {
        body.module == name
            && body
                .func
                .and_then(|func| vm.p.functions.find(func))
                .is_some_and(|func| func.flavor != Flavor::Function)
    })
}

fn is_event_handled(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let name = arg(args, 0).text();
    let shown = if has_nul(vm, bytes(args, 0)) { WITH_NUL } else { &name };
    let kind = vm.find_global(&name).map(|global| vm.p.globals[global].kind.clone());
    let func = match kind {
        Some(crate::symbols::GlobalKind::Function(func))
            if vm.p.functions[func].flavor == Flavor::Event =>
        {
            func
        }
        _ => {
            vm.builtin_error(format!("is_event_handled: '{shown}' is not an event"));
            return Ok(Value::Bool(false));
        }
    };
    Ok(Value::Bool(vm.is_raised(func)))
}

fn find_in_zeekpath(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let name = arg(args, 0).text();
    if name.starts_with('/') || name.starts_with('.') {
        vm.report(Severity::Error, "find_in_zeek_path: path must be relative or absolute");
        return Ok(Value::string(""));
    }
    let path = std::env::var("ZEEKPATH").unwrap_or_else(|_| ".".to_owned());
    for folder in path.split(':') {
        let plain = format!("{folder}/{name}");
        for candidate in [format!("{plain}.zeek"), format!("{plain}/__load__.zeek"), plain] {
            if std::path::Path::new(&candidate).is_file() {
                return Ok(Value::string(candidate));
            }
        }
    }
    Ok(Value::string(""))
}

/// Whether host lookups return fake results that are the same in each run (`ZEEK_DNS_FAKE`).
fn fakes_hosts() -> bool {
    std::env::var_os("ZEEK_DNS_FAKE").is_some()
}

/// Looks up a host. A sandbox refuses this, since a query can send data to others.
fn look_up(vm: &mut Vm<'_>, function: &str, question: Question) -> Result<Value> {
    if refused_in_sandbox(vm, function) {
        let ty = vm.result_type();
        let nothing = vm.host_value(&question, Answer::Nothing, ty);
        return vm.answer_later(nothing);
    }
    vm.look_up(question)
}

/// Fake addresses of a host name, the same in each run.
fn fake_addresses(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let ty = vm.result_type();
    let table = vm.new_table(ty, None);
    let salt = vm.global_named("digest_salt");
    // The salt is unknown until all scripts are parsed.
    let hashes = if vm.m.state.began {
        crate::support::order::SaltedHashes::new(salt.str_bytes())
    } else {
        crate::support::order::SaltedHashes::unsalted()
    };
    let [high, low] = hashes.hash128(bytes(args, 0));
    let mut addr = [0; 16];
    addr[..8].copy_from_slice(&high.to_le_bytes());
    addr[8..].copy_from_slice(&low.to_le_bytes());
    if let Value::Table(table) = &table {
        table.insert(Value::addr(addr), Value::Unset, vm.m.now);
    }
    Ok(table)
}

/// The default random number generator, seeded by the system.
#[must_use]
pub(super) fn random() -> Random {
    Random::of_system((wall_clock() * 1e6) as u64 as u32)
}

/// A vector of string, of the result type of the running function.
#[must_use]
pub(super) fn strings(vm: &Vm<'_>, items: Vec<Value>) -> Value {
    Value::Vector(Vector::new(vm.result_type(), items))
}

/// Whether a group of event handlers exists; reports an error otherwise.
fn known_group(vm: &mut Vm<'_>, name: &str, has: fn(&Vm<'_>, &str) -> bool) -> bool {
    let known = has(vm, name);
    if !known {
        vm.builtin_error(format!("no such event group: {name}"));
    }
    known
}
