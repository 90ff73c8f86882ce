//! Files to which scripts write the streams of connections.

use std::collections::HashMap;
use std::rc::Rc;

use gannet_base::{Proto, Uid};
use gannet_event::{Command, ConnCommand, ConnState, Raised, Value as Head};

use crate::bif::{Table, arg};
use crate::diagnostics::Severity;
use crate::evaluate::Stop;
use crate::value::Value;
use crate::vm::Vm;

type Result<T> = std::result::Result<T, Stop>;

/// The functions of this file.
pub(crate) const TABLE: Table =
    &[("set_contents_file", set_file), ("get_contents_file", |vm, a| Ok(file(vm, a)))];

/// The files of connections: of the originator's stream, and of the responder's.
#[derive(Default)]
pub(crate) struct Recordings(HashMap<Uid, [Option<Value>; 2]>);

impl Recordings {
    /// Removes a connection that has ended.
    pub(crate) fn forget(&mut self, conn: Uid) {
        if !self.0.is_empty() {
            self.0.remove(&conn);
        }
    }
}

/// Error for a connection that has no streams.
const NO_STREAM: &str = "analyzer type does not support writing to a contents file";

/// Whether two values are the same file.
fn is_same(a: &Value, b: &Value) -> bool {
    matches!((a, b), (Value::File(a), Value::File(b)) if Rc::ptr_eq(a, b))
}

/// The sides that a `Direction` selects.
fn sides(direction: &Value) -> [bool; 2] {
    let number = direction.count();
    [number & 1 != 0, number & 2 != 0]
}

fn set_file(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let [_, direction, file] = [0, 1, 2].map(|at| arg(args, at).clone());
    let Some(id) = super::natives::conn_id(vm, arg(args, 0)) else {
        return Ok(Value::Bool(false));
    };
    let Some(known) = vm.m.state.traffic.conns.get(&id) else {
        return Ok(Value::Bool(false));
    };
    let (uid, ip_proto, proto, is_over) = (known.uid, known.ip_proto, known.proto, known.is_over);
    let selected = sides(&direction);
    let is_none = selected == [false; 2];
    let is_open = matches!(&file, Value::File(file) if file.is_open());
    if !is_none && !is_open {
        vm.report(Severity::Error, format!("no such file \"{}\"", file.text()));
        return Ok(Value::Bool(true));
    }
    if proto != Proto::Tcp {
        vm.report(Severity::Error, NO_STREAM);
        return Ok(Value::Bool(true));
    }
    let traffic = &mut vm.m.state.traffic;
    let files = traffic.recordings.0.entry(uid).or_default();
    for (known, selected) in files.iter_mut().zip(selected) {
        if selected {
            *known = Some(file.clone());
        } else if is_none {
            *known = None;
        }
    }
    let sides = [files[0].is_some(), files[1].is_some()];
    let what = ConnCommand::Contents { sides };
    // After the end of the capture the analysis carries out no commands.
    if !is_over {
        traffic.commands.push(Command::Connection { uid, id: id.0, ip_proto, what });
    }
    Ok(Value::Bool(true))
}

fn file(vm: &mut Vm<'_>, args: &[Value]) -> Value {
    let known = super::natives::conn_id(vm, arg(args, 0));
    let traffic = &vm.m.state.traffic;
    let known = known.and_then(|id| traffic.conns.get(&id));
    let Some((uid, is_stream)) = known.map(|known| (known.uid, known.proto == Proto::Tcp)) else {
        vm.builtin_error_with("unknown connection id in get_contents_file()", arg(args, 0));
        return Value::File(vm.m.out.standard_error(vm.m.now));
    };
    let files = traffic.recordings.0.get(&uid);
    let found = files.and_then(|files| match sides(arg(args, 1)) {
        // A file for both sides exists only if both have the same.
        [true, true] => files[0]
            .as_ref()
            .filter(|file| files[1].as_ref().is_some_and(|other| is_same(file, other))),
        [true, false] => files[0].as_ref(),
        [false, true] => files[1].as_ref(),
        [false, false] => None,
    });
    if let Some(file) = found {
        return file.clone();
    }
    if !is_stream {
        vm.report(Severity::Error, NO_STREAM);
    }
    vm.builtin_error("no contents file for given direction");
    Value::File(vm.m.out.standard_error(vm.m.now))
}

/// Handles `gannet::stream_contents`: a chunk of a stream that scripts write to a file.
pub(super) fn write(vm: &mut Vm<'_>, event: &Raised<'_>) {
    let mut reader = event.args();
    let mut args = event.decl.params.iter().map(|param| reader.param(param));
    let (
        Some(Some(Head::Connection(conn))),
        Some(Some(Head::Bool(is_orig))),
        Some(Some(Head::Count(missing))),
        Some(Some(Head::String(contents))),
    ) = (args.next(), args.next(), args.next(), args.next())
    else {
        return;
    };
    let Some(state) = event.connection(conn) else { return };
    let Some(files) = vm.m.state.traffic.recordings.0.get(&state.uid) else { return };
    if let Some(Value::File(file)) = &files[usize::from(!is_orig)] {
        let file = Rc::clone(file);
        if missing > 0 {
            let text = format!("\n<<gap {missing}>>\n");
            if vm.m.out.try_write_file(&file, text.as_bytes()).is_err() {
                let texts = ["contents gap write failed", "reassembler gap write failure"];
                failed(vm, state, is_orig, texts);
            }
        }
        if vm.m.out.try_write_file(&file, contents).is_err() {
            let texts = ["contents write failed", "reassembler content write failure"];
            failed(vm, state, is_orig, texts);
        }
    }
}

/// Reports a failed write: the error, and the message of `contents_file_write_failure`.
fn failed(vm: &mut Vm<'_>, state: &ConnState, is_orig: bool, [error, text]: [&str; 2]) {
    vm.report(Severity::Error, format!("TCP_Reassembler {error}"));
    let key = super::state::key(&vm.m.state.traffic, state);
    if let Some(record) = super::state::record_of(vm, &key) {
        let text = Value::string(format!("TCP {text}"));
        let args = vec![Value::Record(record), Value::Bool(is_orig), text];
        vm.queue_named("contents_file_write_failure", args);
    }
}
