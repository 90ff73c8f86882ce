//! Packets for Python.

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::mpsc::Receiver;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::mpsc::SyncSender;
use std::sync::mpsc::sync_channel;
use std::thread;

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
    End(Result<(), gannet_capture::Error>),
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
                    Some(Err(RecvTimeoutError::Disconnected)) | None => Some(Item::End(Ok(()))),
                }
            })?;
            match item {
                Item::Packets(packets) => return Ok(Some(to_python(py, packets))),
                Item::Damage(error) => {
                    self.damage.lock().unwrap_or_else(PoisonError::into_inner).push(error);
                }
                Item::End(end) => {
                    *self.from.lock().unwrap_or_else(PoisonError::into_inner) = None;
                    return end.map(|()| None).map_err(|error| errors::of_capture(&error));
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
) -> Result<(), gannet_capture::Error> {
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
                            return Ok(());
                        }
                    }
                }
            }
            Ok(None) => break,
            Err(error) => {
                if to.send(Item::Damage(error)).is_err() {
                    return Ok(());
                }
            }
        }
    }
    // A receiver that is gone needs none.
    let _ = to.send(Item::Packets(packets));
    Ok(())
}

/// What was filtered: packets read and written, and what could not be read to its end.
type Filtered = (u64, u64, Vec<gannet_capture::Error>);

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
    let (done, from) = sync_channel(1);
    thread::Builder::new()
        .name("gannet-filter".into())
        .spawn(move || done.send(write(&filter, sources, &to)))?;
    let written = gil::wait(move |time| from.recv_timeout(time).ok())?;
    let (read, kept, damage) = written.map_err(|error| errors::of_capture(&error))?;
    let damage = damage.iter().map(|e| errors::of_capture(e).into_value(py).into_any());
    Ok((read, kept, damage.collect()))
}

fn write(
    filter: &Filter,
    sources: Vec<Source>,
    to: &PathBuf,
) -> Result<Filtered, gannet_capture::Error> {
    let mut stream = source::open(sources)?;
    let mut writer = Writer::create(to, WriteOptions::default())?;
    let (mut kept, mut damage) = (0, Vec::new());
    loop {
        match stream.next_batch() {
            Ok(Some(batch)) => {
                for packet in &batch {
                    if filter.matches(packet.link_type.0, packet.data, packet.wire_len) {
                        writer.write(&packet)?;
                        kept += 1;
                    }
                }
            }
            Ok(None) => break,
            Err(error) => damage.push(error),
        }
    }
    writer.finish()?;
    Ok((stream.packets(), kept, damage))
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
