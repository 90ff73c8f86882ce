//! File analyzers that only scripts need: data events, entropy and hashes that the analysis does not compute.

use std::collections::HashMap;

use gannet_base::Uid;
use gannet_event::{Raised, Value as Head};
use sha2::{Digest, Sha224, Sha384, Sha512};

use super::state::States;
use crate::evaluate::Stop;
use crate::ids::FuncId;
use crate::support::opaque::Entropy;
use crate::value::Value;
use crate::vm::Vm;

/// Requests of scripts for the contents of files.
#[derive(Default)]
pub(crate) struct FileContents {
    files: HashMap<Uid, RequestedContents>,
    /// Arguments of file extractions.
    extractions: HashMap<Uid, Value>,
}

#[derive(Default)]
struct RequestedContents {
    /// Events for chunks with their offset, and for chunks in order.
    chunk: Option<FuncId>,
    stream: Option<FuncId>,
    /// Offset after the last chunk that these events received.
    delivered: u64,
    hashes: Hashes,
}

/// Hashes of a file that the analysis does not compute itself, and its entropy, updated as data arrives.
#[derive(Default)]
struct Hashes {
    entropy: Option<FileConsumer<Box<Entropy>>>,
    sha224: Option<FileConsumer<Sha224>>,
    sha384: Option<FileConsumer<Sha384>>,
    sha512: Option<FileConsumer<Sha512>>,
}

/// A consumer of the bytes of a file.
#[derive(Default)]
struct FileConsumer<T> {
    /// Number of bytes consumed.
    seen: u64,
    consumer: T,
}

/// Passes the next bytes to a consumer, unless it has consumed them. A file with a gap has no hashes and no entropy.
fn consume<T>(
    slot: &mut Option<FileConsumer<T>>,
    offset: u64,
    data: &[u8],
    update: impl FnOnce(&mut T, &[u8]),
) {
    match slot {
        Some(FileConsumer { seen, consumer }) if *seen == offset => {
            update(consumer, data);
            *seen += data.len() as u64;
        }
        Some(FileConsumer { seen, .. }) if *seen < offset => *slot = None,
        _ => {}
    }
}

impl Hashes {
    fn set(&mut self, analyzer: &str, on: bool) {
        match analyzer {
            "Files::ANALYZER_SHA224" => self.sha224 = on.then(FileConsumer::default),
            "Files::ANALYZER_SHA384" => self.sha384 = on.then(FileConsumer::default),
            "Files::ANALYZER_SHA512" => self.sha512 = on.then(FileConsumer::default),
            _ => {}
        }
    }

    fn update(&mut self, offset: u64, data: &[u8]) {
        consume(&mut self.entropy, offset, data, |entropy, data| entropy.add(data));
        consume(&mut self.sha224, offset, data, |hash, data| hash.update(data));
        consume(&mut self.sha384, offset, data, |hash, data| hash.update(data));
        consume(&mut self.sha512, offset, data, |hash, data| hash.update(data));
    }

    /// Names and hexadecimal digests of the hashes.
    fn finish(self) -> impl Iterator<Item = (&'static str, String)> {
        fn hex<D: Digest>(slot: Option<FileConsumer<D>>) -> Option<String> {
            let octets = slot.filter(|slot| slot.seen > 0)?.consumer.finalize();
            Some(octets.iter().map(|octet| format!("{octet:02x}")).collect())
        }
        let all: [(_, Option<String>); 3] = [
            ("sha224", hex(self.sha224)),
            ("sha384", hex(self.sha384)),
            ("sha512", hex(self.sha512)),
        ];
        all.into_iter().filter_map(|(name, digits)| Some((name, digits?)))
    }
}

impl FileContents {
    /// Adds an analyzer of contents to a file; `chunk` and `stream` are the events in its arguments.
    pub(crate) fn add(&mut self, file: Uid, analyzer: &str, [chunk, stream]: [Option<FuncId>; 2]) {
        let request = self.files.entry(file).or_default();
        match analyzer {
            "Files::ANALYZER_ENTROPY" => {
                request.hashes.entropy.get_or_insert_default();
            }
            "Files::ANALYZER_DATA_EVENT" => {
                (request.chunk, request.stream, request.delivered) = (chunk, stream, 0);
            }
            other => request.hashes.set(other, true),
        }
    }

    /// Stores the arguments of an extraction.
    pub(crate) fn extract(&mut self, file: Uid, args: Value) {
        self.extractions.insert(file, args);
    }

    /// Drops the extraction of a file that has ended.
    pub(crate) fn forget(&mut self, file: Uid) {
        if !self.extractions.is_empty() {
            self.extractions.remove(&file);
        }
    }

    /// Removes an analyzer.
    pub(crate) fn remove(&mut self, file: Uid, analyzer: &str) {
        if let Some(request) = self.files.get_mut(&file) {
            match analyzer {
                "Files::ANALYZER_ENTROPY" => request.hashes.entropy = None,
                "Files::ANALYZER_DATA_EVENT" => (request.chunk, request.stream) = (None, None),
                other => request.hashes.set(other, false),
            }
        }
    }
}

/// Handles `gannet::file_data`: a chunk of a file.
pub(super) fn data(vm: &mut Vm<'_>, states: &mut States, event: &Raised<'_>) -> Result<(), Stop> {
    let mut reader = event.args();
    let mut args = event.decl.params.iter().map(|param| reader.param(param));
    let (
        Some(Some(Head::File(file))),
        Some(Some(Head::Count(offset))),
        Some(Some(Head::String(data))),
        Some(Some(Head::Bool(is_replayed))),
    ) = (args.next(), args.next(), args.next(), args.next())
    else {
        return Ok(());
    };
    let Some(state) = event.file(file) else { return Ok(()) };
    let Some(request) = vm.m.state.traffic.file_contents.files.get_mut(&state.fuid) else {
        return Ok(());
    };
    request.hashes.update(offset, data);
    let (chunk, stream) = (request.chunk.filter(|_| !is_replayed), request.stream);
    if (chunk.is_none() && stream.is_none()) || offset < request.delivered {
        return Ok(());
    }
    request.delivered = offset.saturating_add(data.len() as u64);
    let Some(ty) = vm.type_named("fa_file") else { return Ok(()) };
    let file = states.file(vm, ty, state, event)?;
    if let Some(stream) = stream {
        vm.queue_event(stream, vec![file.clone(), Value::string(data)]);
    }
    if let Some(chunk) = chunk {
        vm.queue_event(chunk, vec![file, Value::string(data), Value::Count(offset)]);
    }
    Ok(())
}

/// Handles `gannet::file_extraction_limit`: the next bytes of a file exceed the limit of its extraction.
pub(super) fn limit(vm: &mut Vm<'_>, states: &mut States, event: &Raised<'_>) -> Result<(), Stop> {
    let mut reader = event.args();
    let mut args = event.decl.params.iter().map(|param| reader.param(param));
    let (
        Some(Some(Head::File(file))),
        Some(Some(Head::Count(limit))),
        Some(Some(Head::Count(len))),
    ) = (args.next(), args.next(), args.next())
    else {
        return Ok(());
    };
    let (Some(state), Some(ty)) = (event.file(file), vm.type_named("fa_file")) else {
        return Ok(());
    };
    let Some(args) = vm.m.state.traffic.file_contents.extractions.get(&state.fuid) else {
        return Ok(());
    };
    let args = args.clone();
    let file = states.file(vm, ty, state, event)?;
    let args = vec![file, args, Value::Count(limit), Value::Count(len)];
    vm.queue_named("file_extraction_limit", args);
    Ok(())
}

/// Handles `gannet::file_violation`: a file does not have the format of an analyzer.
pub(super) fn violation(
    vm: &mut Vm<'_>,
    states: &mut States,
    event: &Raised<'_>,
) -> Result<(), Stop> {
    let mut reader = event.args();
    let mut args = event.decl.params.iter().map(|param| reader.param(param));
    let (
        Some(Some(Head::File(file))),
        Some(Some(Head::String(analyzer))),
        Some(Some(Head::String(reason))),
    ) = (args.next(), args.next(), args.next())
    else {
        return Ok(());
    };
    let types = ["fa_file", "AnalyzerViolationInfo", "AllAnalyzers::Tag"];
    let [Some(of_file), Some(of_info), Some(of_tag)] = types.map(|name| vm.type_named(name)) else {
        return Ok(());
    };
    let Some(state) = event.file(file) else { return Ok(()) };
    let file = states.file(vm, of_file, state, event)?;
    let name = format!("Files::ANALYZER_{}", String::from_utf8_lossy(analyzer));
    let tag = Value::Enum(of_tag, vm.enum_named(&name).int());
    let info = vm.new_record(of_info, &[], Vec::new())?;
    if let Some(record) = info.record() {
        let offsets = super::plan::field_offsets(vm, of_info, ["reason", "f"]);
        for (offset, value) in offsets.into_iter().zip([Value::string(reason), file]) {
            if let Some(offset) = offset {
                record.set(offset, value);
            }
        }
    }
    vm.queue_named("analyzer_violation_info", vec![tag, info]);
    Ok(())
}

/// Handles the end of a file: reports its hashes and entropy.
pub(super) fn end(vm: &mut Vm<'_>, event: &Raised<'_>, file: Option<&Value>) {
    let mut reader = event.args();
    let first = event.decl.params.first().and_then(|param| reader.param(param));
    let Some(Head::File(index)) = first else { return };
    let Some(state) = event.file(index) else { return };
    let Some(request) = vm.m.state.traffic.file_contents.files.remove(&state.fuid) else { return };
    let RequestedContents { mut hashes, .. } = request;
    let entropy = hashes.entropy.take();
    if let Some(file) = file {
        for (kind, digits) in hashes.finish() {
            let args = vec![file.clone(), Value::string(kind), Value::string(digits)];
            vm.queue_named("file_hash", args);
        }
    }
    if let (Some(entropy), Some(ty), Some(file)) =
        (entropy, vm.type_named("entropy_test_result"), file)
        && state.seen_bytes > 0
        && state.missing_bytes == 0
    {
        let result = crate::bif::randomness(ty, &entropy.consumer.finish());
        vm.queue_named("file_entropy", vec![file.clone(), result]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_of_a_file_without_gaps() {
        let mut hashes = Hashes::default();
        hashes.set("Files::ANALYZER_SHA224", true);
        hashes.set("Files::ANALYZER_SHA512", true);
        hashes.set("Files::ANALYZER_SHA512", false);
        hashes.update(0, b"a");
        hashes.update(1, b"bc");
        let found: Vec<_> = hashes.finish().collect();
        let digits = "23097d223405d8228642a477bda255b32aadbce4bda0b3f7e36c9da7";
        assert_eq!(found, [("sha224", digits.to_owned())]);
        let mut hashes = Hashes::default();
        hashes.set("Files::ANALYZER_SHA384", true);
        hashes.entropy = Some(FileConsumer::default());
        hashes.update(0, b"a");
        assert!(hashes.entropy.is_some());
        hashes.update(2, b"c");
        assert!(hashes.entropy.is_none());
        assert_eq!(hashes.finish().count(), 0);
    }

    #[test]
    fn hashes_added_late_use_the_replayed_beginning() {
        let mut hashes = Hashes::default();
        hashes.set("Files::ANALYZER_SHA512", true);
        hashes.update(0, b"a");
        hashes.set("Files::ANALYZER_SHA224", true);
        hashes.update(0, b"a");
        hashes.update(1, b"bc");
        let found: Vec<_> = hashes.finish().collect();
        let sha224 = "23097d223405d8228642a477bda255b32aadbce4bda0b3f7e36c9da7";
        assert_eq!(found[0], ("sha224", sha224.to_owned()));
        assert!(found[1].1.starts_with("ddaf35a193617aba"));
    }
}
