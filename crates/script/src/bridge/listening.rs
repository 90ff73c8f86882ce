//! Analyzers of files that only scripts have: contents as events, and how random they look.

use std::collections::HashMap;

use gannet_base::Uid;
use gannet_event::{Raised, Value as Head};

use super::state::States;
use crate::evaluate::Stop;
use crate::ids::FuncId;
use crate::support::opaque::Entropy;
use crate::value::{Record, Value};
use crate::vm::Vm;

/// What scripts want of the contents of files.
#[derive(Default)]
pub(crate) struct Listening {
    files: HashMap<Uid, Wanted>,
}

#[derive(Default)]
struct Wanted {
    /// Events of parts with their offset, and of parts in order.
    chunk: Option<FuncId>,
    stream: Option<FuncId>,
    entropy: Option<Box<Entropy>>,
}

impl Listening {
    /// A script adds an analyzer of contents to a file: `fields` are the arguments' events.
    pub(crate) fn add(&mut self, file: Uid, analyzer: &str, [chunk, stream]: [Option<FuncId>; 2]) {
        let wanted = self.files.entry(file).or_default();
        if analyzer == "Files::ANALYZER_ENTROPY" {
            wanted.entropy.get_or_insert_default();
        } else {
            (wanted.chunk, wanted.stream) = (chunk, stream);
        }
    }

    /// A script removes one.
    pub(crate) fn remove(&mut self, file: Uid, analyzer: &str) {
        if let Some(wanted) = self.files.get_mut(&file) {
            match analyzer {
                "Files::ANALYZER_ENTROPY" => wanted.entropy = None,
                "Files::ANALYZER_DATA_EVENT" => (wanted.chunk, wanted.stream) = (None, None),
                _ => {}
            }
        }
    }
}

/// Part of a file: `gannet::file_data`.
pub(super) fn data(vm: &mut Vm<'_>, states: &mut States, event: &Raised<'_>) -> Result<(), Stop> {
    let mut reader = event.args();
    let mut args = event.decl.params.iter().map(|param| reader.param(param));
    let (
        Some(Some(Head::File(file))),
        Some(Some(Head::Count(offset))),
        Some(Some(Head::String(data))),
    ) = (args.next(), args.next(), args.next())
    else {
        return Ok(());
    };
    let Some(state) = event.file(file) else { return Ok(()) };
    let Some(wanted) = vm.m.state.traffic.listening.files.get_mut(&state.fuid) else {
        return Ok(());
    };
    if let Some(entropy) = &mut wanted.entropy {
        entropy.add(data);
    }
    let (chunk, stream) = (wanted.chunk, wanted.stream);
    if chunk.is_none() && stream.is_none() {
        return Ok(());
    }
    let Some(ty) = vm.type_named("fa_file") else { return Ok(()) };
    let file = states.file(vm, ty, state)?;
    if let Some(chunk) = chunk {
        let args = vec![file.clone(), Value::string(data), Value::Count(offset)];
        vm.queue_event(chunk, args);
    }
    if let Some(stream) = stream {
        vm.queue_event(stream, vec![file, Value::string(data)]);
    }
    Ok(())
}

/// A file ends: reports how random it looks.
pub(super) fn end(vm: &mut Vm<'_>, event: &Raised<'_>, file: Option<&Value>) {
    let mut reader = event.args();
    let first = event.decl.params.first().and_then(|param| reader.param(param));
    let Some(Head::File(index)) = first else { return };
    let Some(state) = event.file(index) else { return };
    let Some(wanted) = vm.m.state.traffic.listening.files.remove(&state.fuid) else { return };
    if let (Some(entropy), Some(ty), Some(file)) =
        (wanted.entropy, vm.type_named("entropy_test_result"), file)
        && state.seen_bytes > 0
    {
        let result = entropy.finish();
        let fields = [
            result.entropy,
            result.chi_square,
            result.mean,
            result.monte_carlo_pi,
            result.serial_correlation,
        ];
        let record = Record::new(ty, fields.map(Value::Double).to_vec());
        vm.queue_named("file_entropy", vec![file.clone(), Value::Record(record)]);
    }
}
