//! Events for Python, serialized as JSON lines.

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

use gannet_engine::Engine;
use gannet_engine::Options;
use gannet_event::Interest;
use gannet_event::Listener;
use gannet_event::Raised;
use gannet_event::write_json;
use gannet_log::Selection;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::convert;
use crate::errors;
use crate::gil;
use crate::source;
use crate::source::Source;

/// Approximate size of a chunk of lines in bytes.
const CHUNK_BYTES: usize = 64 << 10;
/// Maximum number of queued chunks.
const MAX_QUEUED_CHUNKS: usize = 4;

enum Item {
    Lines(Vec<u8>),
    Damage(gannet_capture::Error),
    /// The end of the analysis, with warnings about the filter.
    End(Result<Vec<String>, gannet_task::Error>),
}

/// An analysis that returns events.
#[pyclass(module = "gannet", frozen)]
pub(crate) struct EventRun {
    receiver: Mutex<Option<Receiver<Item>>>,
    damage: Mutex<Vec<gannet_capture::Error>>,
}

#[pymethods]
impl EventRun {
    /// Starts an analysis of `sources`, a list of pairs of a source and its name, with the events `names`.
    #[new]
    fn new(sources: &Bound<'_, PyAny>, names: Vec<String>, settings: &str) -> PyResult<Self> {
        let sources = Source::all(sources)?;
        let settings = convert::settings(settings)?;
        let mut options = settings.options().map_err(|error| errors::exception(&error))?;
        options.logs.selection = Selection::of(Vec::<String>::new());
        let (sender, receiver) = sync_channel(MAX_QUEUED_CHUNKS);
        let work = move || {
            let done = analyse(options, sources, &names, &sender);
            // Sending fails if the receiver was dropped.
            let _ = sender.send(Item::End(done));
        };
        thread::Builder::new().name("gannet-events".into()).spawn(work)?;
        Ok(Self { receiver: Mutex::new(Some(receiver)), damage: Mutex::default() })
    }

    /// Returns a chunk of JSON lines; `None` at the end.
    fn next<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
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
                Item::Lines(lines) => return Ok(Some(PyBytes::new(py, &lines))),
                Item::Damage(error) => {
                    self.damage.lock().unwrap_or_else(PoisonError::into_inner).push(error);
                }
                Item::End(end) => {
                    self.close();
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

    /// Cancels the analysis.
    fn close(&self) {
        *self.receiver.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

fn analyse(
    options: Options,
    sources: Vec<Source>,
    names: &[String],
    sender: &SyncSender<Item>,
) -> Result<Vec<String>, gannet_task::Error> {
    let filter = options.filter.clone();
    let mut stream = source::open(sources)?;
    let interest = Interest::of(gannet_engine::events(), |d| names.iter().any(|n| n == d.name));
    let closed = Arc::new(AtomicBool::new(false));
    let lines =
        JsonListener { sender: sender.clone(), lines: Vec::new(), closed: Arc::clone(&closed) };
    let mut engine = Engine::with_listener(options, interest, Box::new(lines));
    while !closed.load(Ordering::Relaxed) {
        match stream.next_batch() {
            Ok(Some(batch)) => engine.batch(&batch)?,
            Ok(None) => break,
            Err(error) => {
                if sender.send(Item::Damage(error)).is_err() {
                    break;
                }
            }
        }
    }
    // The listener sends its last lines when it is dropped.
    let (statistics, _) = engine.finish()?;
    match &filter {
        Some(filter) => gannet_task::check_answered(filter, statistics.packets),
        None => Ok(Vec::new()),
    }
}

struct JsonListener {
    sender: SyncSender<Item>,
    lines: Vec<u8>,
    /// Whether the receiver was dropped.
    closed: Arc<AtomicBool>,
}

impl JsonListener {
    fn send_lines(&mut self) {
        let lines = std::mem::take(&mut self.lines);
        if !lines.is_empty() && self.sender.send(Item::Lines(lines)).is_err() {
            self.closed.store(true, Ordering::Relaxed);
        }
    }
}

impl Listener for JsonListener {
    fn event(&mut self, event: &Raised<'_>) {
        if self.closed.load(Ordering::Relaxed) {
            return;
        }
        write_json(&mut self.lines, event);
        self.lines.push(b'\n');
        if self.lines.len() >= CHUNK_BYTES {
            self.send_lines();
        }
    }
}

impl Drop for JsonListener {
    fn drop(&mut self) {
        self.send_lines();
    }
}

/// A parameter: name, Zeek's type, whether it may be unset, and description.
type Param = (&'static str, String, bool, &'static str);

/// Returns all events: name, description, whether it is raised only if requested by name, and parameters.
#[pyfunction]
pub(crate) fn event_declarations() -> Vec<(&'static str, String, bool, Vec<Param>)> {
    let param = |p: &gannet_event::Param| (p.name, p.ty.to_string(), p.optional, p.doc.trim());
    let all = gannet_engine::events();
    all.map(|d| (d.name, d.doc.trim().to_owned(), d.opt_in, d.params.iter().map(param).collect()))
        .collect()
}
