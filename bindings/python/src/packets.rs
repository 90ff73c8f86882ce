//! Packets for Python.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::mpsc::SyncSender;
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Duration;

use gannet_capture::FileId;
use gannet_capture::Packet;
use gannet_capture::WriteOptions;
use gannet_capture::Writer;
use gannet_filter::Filter;
use gannet_index::Index;
use gannet_index::Slices;
use pyo3::exceptions::PyLookupError;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors;
use crate::gil;
use crate::source;
use crate::source::Source;

/// Packets, and bytes of them, that are handed over at a time at the most.
const CHUNK: usize = 256;
const CHUNK_BYTES: usize = 1 << 20;
/// How long an interrupt waits for the end of a file that is written.
const ENDING: Duration = Duration::from_secs(5);

/// A packet: nanoseconds since 1970, bytes on the wire, link type, number, bytes.
struct Owned(i64, u32, u16, u64, Vec<u8>);

impl Owned {
    fn of(packet: &Packet<'_>) -> Self {
        let Packet { time, wire_len, link_type, number, data, .. } = *packet;
        Self(time.as_nanos(), wire_len, link_type.0, number, data.to_vec())
    }
}

type PyPacket<'py> = (i64, u32, u16, u64, Bound<'py, PyBytes>);

fn to_python(py: Python<'_>, packets: Vec<Owned>) -> Vec<PyPacket<'_>> {
    let packet =
        |Owned(time, wire, link, number, data)| (time, wire, link, number, PyBytes::new(py, &data));
    packets.into_iter().map(packet).collect()
}

enum Item {
    Packets(Vec<Owned>),
    Damage(gannet_capture::Error),
    /// With remarks about the filter.
    End(Result<Vec<String>, gannet_task::Error>),
}

/// The packets of captures that match a filter.
#[pyclass(module = "gannet", frozen)]
pub(crate) struct PacketRun {
    from: Mutex<Option<Receiver<Item>>>,
    damage: Mutex<Vec<gannet_capture::Error>>,
}

#[pymethods]
impl PacketRun {
    /// Of a list of pairs of a source and its name.
    #[new]
    fn new(sources: &Bound<'_, PyAny>, filter: &str) -> PyResult<Self> {
        let sources = Source::all(sources)?;
        let filter = parse(filter)?;
        let (to, from) = sync_channel(2);
        thread::Builder::new().name("gannet-filter".into()).spawn(move || {
            let done = read(&filter, sources, &to);
            // A receiver that is gone needs no end.
            let _ = to.send(Item::End(done));
        })?;
        Ok(Self { from: Mutex::new(Some(from)), damage: Mutex::default() })
    }

    /// Some packets; `None` after the last.
    fn next<'py>(&self, py: Python<'py>) -> PyResult<Option<Vec<PyPacket<'py>>>> {
        loop {
            let item = gil::wait(|time| {
                let from = self.from.lock().unwrap_or_else(PoisonError::into_inner);
                match from.as_ref().map(|from| from.recv_timeout(time)) {
                    Some(Ok(item)) => Some(item),
                    Some(Err(RecvTimeoutError::Timeout)) => None,
                    Some(Err(RecvTimeoutError::Disconnected)) | None => {
                        Some(Item::End(Ok(Vec::new())))
                    }
                }
            })?;
            match item {
                Item::Packets(packets) => return Ok(Some(to_python(py, packets))),
                Item::Damage(error) => {
                    self.damage.lock().unwrap_or_else(PoisonError::into_inner).push(error);
                }
                Item::End(end) => {
                    *self.from.lock().unwrap_or_else(PoisonError::into_inner) = None;
                    let remarks = end.map_err(|error| errors::of(&error))?;
                    return errors::warn(&remarks).map(|()| None);
                }
            }
        }
    }

    /// The exceptions for what could not be read to its end.
    fn damage(&self, py: Python<'_>) -> Vec<Py<PyAny>> {
        let damage = self.damage.lock().unwrap_or_else(PoisonError::into_inner);
        damage.iter().map(|e| errors::of_capture(e).into_value(py).into_any()).collect()
    }
}

fn parse(filter: &str) -> PyResult<Filter> {
    Filter::parse(filter).map_err(|error| PyValueError::new_err(format!("filter: {error}")))
}

fn read(
    filter: &Filter,
    sources: Vec<Source>,
    to: &SyncSender<Item>,
) -> Result<Vec<String>, gannet_task::Error> {
    let mut stream = source::open(sources)?;
    let (mut packets, mut bytes) = (Vec::new(), 0);
    loop {
        match stream.next_batch() {
            Ok(Some(batch)) => {
                for packet in &batch {
                    if !filter.matches(packet.link_type.0, packet.data, packet.wire_len) {
                        continue;
                    }
                    bytes += packet.data.len();
                    packets.push(Owned::of(&packet));
                    if packets.len() >= CHUNK || bytes >= CHUNK_BYTES {
                        bytes = 0;
                        if to.send(Item::Packets(std::mem::take(&mut packets))).is_err() {
                            return Ok(Vec::new());
                        }
                    }
                }
            }
            Ok(None) => break,
            Err(error) => {
                if to.send(Item::Damage(error)).is_err() {
                    return Ok(Vec::new());
                }
            }
        }
    }
    // A receiver that is gone needs none.
    let _ = to.send(Item::Packets(packets));
    gannet_task::check_answered(filter, stream.packets())
}

/// What was filtered.
struct Filtered {
    /// Packets that were read.
    read: u64,
    /// Packets that were written.
    kept: u64,
    /// What could not be read to its end.
    damage: Vec<gannet_capture::Error>,
    /// About the filter.
    remarks: Vec<String>,
}

/// Writes the packets that match to a capture; returns how many were read and written, and exceptions for damage.
#[pyfunction]
pub(crate) fn filter_to(
    py: Python<'_>,
    sources: &Bound<'_, PyAny>,
    filter: &str,
    to: PathBuf,
) -> PyResult<(u64, u64, Vec<Py<PyAny>>)> {
    let sources = Source::all(sources)?;
    let filter = parse(filter)?;
    if let Some(id) = FileId::of(&to) {
        let is_input = |source: &Source| matches!(source, Source::Path(path) if FileId::of(path).as_ref() == Some(&id));
        if sources.iter().any(is_input) {
            let text = format!("{} is an input: write to another file", to.display());
            return Err(PyValueError::new_err(text));
        }
    }
    let (done, mut from) = sync_channel(1);
    let stop = Arc::new(AtomicBool::new(false));
    let stops = Arc::clone(&stop);
    thread::Builder::new()
        .name("gannet-filter".into())
        .spawn(move || done.send(write(&filter, sources, &to, &stops)))?;
    let waiting = &mut from;
    let written = match gil::wait(move |time| waiting.recv_timeout(time).ok()) {
        Ok(written) => written,
        Err(interrupt) => {
            stop.store(true, Ordering::Relaxed);
            // The file gets its end and its name. A source that delivers nothing must not hold up the interrupt.
            py.detach(move || from.recv_timeout(ENDING)).ok();
            return Err(interrupt);
        }
    };
    let written = written.map_err(|error| errors::of(&error))?;
    errors::warn(&written.remarks)?;
    let Filtered { read, kept, damage, .. } = written;
    let damage = damage.iter().map(|e| errors::of_capture(e).into_value(py).into_any());
    Ok((read, kept, damage.collect()))
}

fn write(
    filter: &Filter,
    sources: Vec<Source>,
    to: &PathBuf,
    stop: &AtomicBool,
) -> Result<Filtered, gannet_task::Error> {
    let mut stream = source::open(sources)?;
    // Made for the first packet that the filter applies to: without one, a file of this name stays as it is.
    let mut writer = None;
    let create = || Writer::create(to, WriteOptions::default());
    let (mut kept, mut damage) = (0, Vec::new());
    while !stop.load(Ordering::Relaxed) {
        match stream.next_batch() {
            Ok(Some(batch)) => {
                for packet in &batch {
                    if writer.is_none() && filter.engine(packet.link_type.0).is_ok() {
                        writer = Some(create()?);
                    }
                    if filter.matches(packet.link_type.0, packet.data, packet.wire_len)
                        && let Some(writer) = &mut writer
                    {
                        writer.write(&packet)?;
                        kept += 1;
                    }
                }
            }
            Ok(None) => break,
            Err(error) => damage.push(error),
        }
    }
    let remarks = gannet_task::check_answered(filter, stream.packets())?;
    writer.map_or_else(create, Ok)?.finish()?;
    Ok(Filtered { read: stream.packets(), kept, damage, remarks })
}

/// The packets of connections, by the index of a capture.
#[pyfunction]
pub(crate) fn packets_of(
    py: Python<'_>,
    capture: PathBuf,
    uids: Vec<String>,
) -> PyResult<Vec<PyPacket<'_>>> {
    let found = py.detach(|| -> Result<_, gannet_index::Error> {
        let mut index = Index::open(&capture)?;
        let mut numbers = Vec::new();
        for uid in &uids {
            numbers.extend(index.packets(uid.as_bytes())?.unwrap_or_default());
        }
        numbers.sort_unstable();
        numbers.dedup();
        let mut packets = Vec::with_capacity(numbers.len());
        Slices::new(&capture, &mut index).read(&numbers, |packet| {
            packets.push(Owned::of(packet));
            Ok::<_, gannet_index::Error>(())
        })?;
        Ok(packets)
    });
    match found {
        Ok(packets) if packets.is_empty() => {
            let text = format!("{} has no packets of {}", capture.display(), uids.join(", "));
            Err(PyLookupError::new_err(text))
        }
        Ok(packets) => Ok(to_python(py, packets)),
        Err(error) => Err(errors::of_index(&error)),
    }
}
