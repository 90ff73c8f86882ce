//! Events for Python, as JSON lines.

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

/// Bytes of lines that are handed over at a time, about.
const CHUNK: usize = 64 << 10;
/// Chunks that wait at the most.
const WAITING: usize = 4;

enum Item {
    Lines(Vec<u8>),
    Damage(gannet_capture::Error),
    /// With remarks about the filter.
    End(Result<Vec<String>, gannet_task::Error>),
}

/// Events of captures.
#[pyclass(module = "gannet", frozen)]
pub(crate) struct EventRun {
    from: Mutex<Option<Receiver<Item>>>,
    damage: Mutex<Vec<gannet_capture::Error>>,
}

#[pymethods]
impl EventRun {
    /// Of a list of pairs of a source and its name, with the events of these names.
    #[new]
    fn new(sources: &Bound<'_, PyAny>, names: Vec<String>, settings: &str) -> PyResult<Self> {
        let sources = Source::all(sources)?;
        let settings = convert::settings(settings)?;
        let mut options = settings.options().map_err(|error| errors::of(&error))?;
        options.logs.selection = Selection::of(Vec::<String>::new());
        let (to, from) = sync_channel(WAITING);
        let work = move || {
            let done = analyse(options, sources, &names, &to);
            // A receiver that is gone needs no end.
            let _ = to.send(Item::End(done));
        };
        thread::Builder::new().name("gannet-events".into()).spawn(work)?;
        Ok(Self { from: Mutex::new(Some(from)), damage: Mutex::default() })
    }

    /// Some lines of JSON; `None` after the last.
    fn next<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
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
                Item::Lines(lines) => return Ok(Some(PyBytes::new(py, &lines))),
                Item::Damage(error) => {
                    self.damage.lock().unwrap_or_else(PoisonError::into_inner).push(error);
                }
                Item::End(end) => {
                    self.close();
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

    /// Ends the analysis.
    fn close(&self) {
        *self.from.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

fn analyse(
    options: Options,
    sources: Vec<Source>,
    names: &[String],
    to: &SyncSender<Item>,
) -> Result<Vec<String>, gannet_task::Error> {
    let filter = options.filter.clone();
    let mut stream = source::open(sources)?;
    let interest = Interest::of(gannet_engine::events(), |d| names.iter().any(|n| n == d.name));
    let closed = Arc::new(AtomicBool::new(false));
    let lines = Lines { to: to.clone(), lines: Vec::new(), closed: Arc::clone(&closed) };
    let mut engine = Engine::with_listener(options, interest, Box::new(lines));
    while !closed.load(Ordering::Relaxed) {
        match stream.next_batch() {
            Ok(Some(batch)) => engine.batch(&batch)?,
            Ok(None) => break,
            Err(error) => {
                if to.send(Item::Damage(error)).is_err() {
                    break;
                }
            }
        }
    }
    // The listener hands over its last lines when it is dropped.
    let (statistics, _) = engine.finish()?;
    match &filter {
        Some(filter) => gannet_task::check_answered(filter, statistics.packets),
        None => Ok(Vec::new()),
    }
}

struct Lines {
    to: SyncSender<Item>,
    lines: Vec<u8>,
    /// The receiver of the lines is gone.
    closed: Arc<AtomicBool>,
}

impl Lines {
    fn hand_over(&mut self) {
        let lines = std::mem::take(&mut self.lines);
        if !lines.is_empty() && self.to.send(Item::Lines(lines)).is_err() {
            self.closed.store(true, Ordering::Relaxed);
        }
    }
}

impl Listener for Lines {
    fn event(&mut self, event: &Raised<'_>) {
        if self.closed.load(Ordering::Relaxed) {
            return;
        }
        write_json(&mut self.lines, event);
        self.lines.push(b'\n');
        if self.lines.len() >= CHUNK {
            self.hand_over();
        }
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        self.hand_over();
    }
}

/// A parameter: its name, Zeek's type, whether it may be unset, what it is.
type Param = (&'static str, String, bool, &'static str);

/// All events: name, what it reports, whether it comes only where it is asked for by name, parameters.
#[pyfunction]
pub(crate) fn event_declarations() -> Vec<(&'static str, String, bool, Vec<Param>)> {
    let param = |p: &gannet_event::Param| (p.name, p.ty.to_string(), p.optional, p.doc.trim());
    let all = gannet_engine::events();
    all.map(|d| (d.name, d.doc.trim().to_owned(), d.opt_in, d.params.iter().map(param).collect()))
        .collect()
}
