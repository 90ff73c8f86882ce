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

/// Maximum number of packets in a chunk.
const CHUNK_PACKETS: usize = 256;
/// Approximate maximum size of a chunk in bytes.
const CHUNK_BYTES: usize = 1 << 20;
/// How long an interrupted `filter_to` waits for the output file to be completed.
const FINISH_TIMEOUT: Duration = Duration::from_secs(5);

/// A copied packet: time in nanoseconds since 1970, length on the wire, link type, number, and data.
struct PacketCopy(i64, u32, u16, u64, Vec<u8>);

impl PacketCopy {
    fn of(packet: &Packet<'_>) -> Self {
        let Packet { time, wire_len, link_type, number, data, .. } = *packet;
        Self(time.as_nanos(), wire_len, link_type.0, number, data.to_vec())
    }
}

type PyPacket<'py> = (i64, u32, u16, u64, Bound<'py, PyBytes>);

fn to_python(py: Python<'_>, packets: Vec<PacketCopy>) -> Vec<PyPacket<'_>> {
    let packet = |PacketCopy(time, wire, link, number, data)| {
        (time, wire, link, number, PyBytes::new(py, &data))
    };
    packets.into_iter().map(packet).collect()
}

enum Item {
    Packets(Vec<PacketCopy>),
    Damage(gannet_capture::Error),
    /// The end of the stream, with warnings about the filter.
    End(Result<Vec<String>, gannet_task::Error>),
}

/// A stream of the packets that match a filter.
#[pyclass(module = "gannet", frozen)]
pub(crate) struct PacketRun {
    receiver: Mutex<Option<Receiver<Item>>>,
    damage: Mutex<Vec<gannet_capture::Error>>,
}

#[pymethods]
impl PacketRun {
    /// Starts to read `sources`, a list of pairs of a source and its name.
    #[new]
    fn new(sources: &Bound<'_, PyAny>, filter: &str) -> PyResult<Self> {
        let sources = Source::all(sources)?;
        let filter = parse(filter)?;
        let (sender, receiver) = sync_channel(2);
        thread::Builder::new().name("gannet-filter".into()).spawn(move || {
            let done = read(&filter, sources, &sender);
            // Sending fails if the receiver was dropped.
            let _ = sender.send(Item::End(done));
        })?;
        Ok(Self { receiver: Mutex::new(Some(receiver)), damage: Mutex::default() })
    }

    /// Returns a chunk of packets; `None` at the end.
    fn next<'py>(&self, py: Python<'py>) -> PyResult<Option<Vec<PyPacket<'py>>>> {
        loop {
            let item = gil::wait(|time| {
                let receiver = self.receiver.lock().unwrap_or_else(PoisonError::into_inner);
                match receiver.as_ref().map(|receiver| receiver.recv_timeout(time)) {
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
                    *self.receiver.lock().unwrap_or_else(PoisonError::into_inner) = None;
                    let remarks = end.map_err(|error| errors::exception(&error))?;
                    return errors::warn(&remarks).map(|()| None);
                }
            }
        }
    }

    /// Returns the exceptions for captures that could not be read completely.
    fn damage(&self, py: Python<'_>) -> Vec<Py<PyAny>> {
        let damage = self.damage.lock().unwrap_or_else(PoisonError::into_inner);
        damage.iter().map(|e| errors::capture_exception(e).into_value(py).into_any()).collect()
    }
}

fn parse(filter: &str) -> PyResult<Filter> {
    Filter::parse(filter).map_err(|error| PyValueError::new_err(format!("filter: {error}")))
}

fn read(
    filter: &Filter,
    sources: Vec<Source>,
    sender: &SyncSender<Item>,
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
                    packets.push(PacketCopy::of(&packet));
                    if packets.len() >= CHUNK_PACKETS || bytes >= CHUNK_BYTES {
                        bytes = 0;
                        if sender.send(Item::Packets(std::mem::take(&mut packets))).is_err() {
                            return Ok(Vec::new());
                        }
                    }
                }
            }
            Ok(None) => break,
            Err(error) => {
                if sender.send(Item::Damage(error)).is_err() {
                    return Ok(Vec::new());
                }
            }
        }
    }
    // Sending fails if the receiver was dropped.
    let _ = sender.send(Item::Packets(packets));
    gannet_task::check_answered(filter, stream.packets())
}

/// Result of `filter_to`.
struct Filtered {
    /// Number of packets read.
    read: u64,
    /// Number of packets written.
    kept: u64,
    /// Errors of captures that could not be read completely.
    damage: Vec<gannet_capture::Error>,
    /// Warnings about the filter.
    remarks: Vec<String>,
}

/// Writes the matching packets to a capture. Returns the numbers of packets read and written, and the exceptions for
/// damage.
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
    let (sender, mut receiver) = sync_channel(1);
    let stop = Arc::new(AtomicBool::new(false));
    let writer_stop = Arc::clone(&stop);
    thread::Builder::new()
        .name("gannet-filter".into())
        .spawn(move || sender.send(write(&filter, sources, &to, &writer_stop)))?;
    let receiver_ref = &mut receiver;
    let written = match gil::wait(move |time| receiver_ref.recv_timeout(time).ok()) {
        Ok(written) => written,
        Err(interrupt) => {
            stop.store(true, Ordering::Relaxed);
            // Waits until the file is completed and renamed, but not for long, in case the source blocks.
            py.detach(move || receiver.recv_timeout(FINISH_TIMEOUT)).ok();
            return Err(interrupt);
        }
    };
    let written = written.map_err(|error| errors::exception(&error))?;
    errors::warn(&written.remarks)?;
    let Filtered { read, kept, damage, .. } = written;
    let damage = damage.iter().map(|e| errors::capture_exception(e).into_value(py).into_any());
    Ok((read, kept, damage.collect()))
}

fn write(
    filter: &Filter,
    sources: Vec<Source>,
    to: &PathBuf,
    stop: &AtomicBool,
) -> Result<Filtered, gannet_task::Error> {
    let mut stream = source::open(sources)?;
    // Created at the first packet of a link type that the filter supports, so that an existing file is kept if no
    // packet has one.
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

/// Returns the packets of connections, using the index of a capture.
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
            packets.push(PacketCopy::of(packet));
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
        Err(error) => Err(errors::index_exception(&error)),
    }
}
