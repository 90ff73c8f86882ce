//! An analysis for Python: returns batches, or a log as an Arrow stream.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;

use arrow_array::RecordBatch;
use arrow_array::RecordBatchReader;
use arrow_schema::ArrowError;
use arrow_schema::Schema;
use gannet_engine::Statistics;
use gannet_task::LogBatch;
use gannet_task::Next;
use gannet_task::Scan;
use gannet_task::Settings;
use gannet_task::Task;
use gannet_task::schema_of;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::exceptions::PyRuntimeError;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use pyo3::types::PyDict;

use crate::arrow::PyBatch;
use crate::arrow::stream_capsule;
use crate::convert;
use crate::errors;
use crate::gil;
use crate::source;
use crate::source::Source;

/// An analysis, which starts when its first rows are requested.
#[pyclass(module = "gannet", frozen)]
pub(crate) struct Run {
    state: Arc<State>,
}

struct State {
    settings: Settings,
    work: Mutex<Work>,
    /// Errors of captures that could not be read completely.
    damage: Mutex<Vec<gannet_capture::Error>>,
    /// The exception that ended a stream.
    raised: Mutex<Option<PyErr>>,
    statistics: Mutex<Statistics>,
}

enum Work {
    Sources(Vec<Source>),
    Task(Box<Task>),
    Running(Scan),
    Over,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    fn new(settings: Settings, work: Work) -> Arc<Self> {
        Arc::new(Self {
            settings,
            work: Mutex::new(work),
            damage: Mutex::default(),
            raised: Mutex::default(),
            statistics: Mutex::default(),
        })
    }

    /// Returns the next batch of any log; `None` at the end.
    fn next(&self) -> PyResult<Option<LogBatch>> {
        self.start().map_err(|error| errors::exception(&error))?;
        loop {
            let next = gil::wait(|time| match &mut *lock(&self.work) {
                Work::Running(scan) => match scan.next(time) {
                    Ok(Next::Nothing) => None,
                    other => Some(other),
                },
                _ => Some(Ok(Next::End(Box::default()))),
            });
            match next {
                Ok(Ok(Next::Batch(batch))) => return Ok(Some(batch)),
                Ok(Ok(Next::Damage(error))) => lock(&self.damage).push(error),
                Ok(Ok(Next::Nothing)) => {}
                Ok(Ok(Next::End(statistics))) => {
                    let mut work = lock(&self.work);
                    let mut remarks = Vec::new();
                    if let Work::Running(scan) = &*work {
                        *lock(&self.statistics) = *statistics;
                        remarks = scan.remarks().to_vec();
                        *work = Work::Over;
                    }
                    drop(work);
                    return errors::warn(&remarks).map(|()| None);
                }
                Ok(Err(error)) => {
                    *lock(&self.work) = Work::Over;
                    return Err(errors::exception(&error));
                }
                Err(raised) => {
                    *lock(&self.work) = Work::Over;
                    return Err(raised);
                }
            }
        }
    }

    fn start(&self) -> Result<(), gannet_task::Error> {
        let mut work = lock(&self.work);
        let scan = match std::mem::replace(&mut *work, Work::Over) {
            Work::Sources(sources) => {
                Scan::start(&self.settings, move || Ok(source::open(sources)?))?
            }
            Work::Task(task) => task.scan()?,
            other => {
                *work = other;
                return Ok(());
            }
        };
        *work = Work::Running(scan);
        Ok(())
    }
}

#[pymethods]
impl Run {
    /// Creates a run of `sources`, a list of pairs of a source (path, bytes or file object) and its name.
    #[new]
    fn new(sources: &Bound<'_, PyAny>, settings: &str) -> PyResult<Self> {
        let settings = convert::settings(settings)?;
        settings.options().map_err(|error| errors::exception(&error))?;
        Ok(Self { state: State::new(settings, Work::Sources(Source::all(sources)?)) })
    }

    /// Creates a run of a task.
    #[staticmethod]
    fn task(task: &str, threads: Option<u8>, batch_rows: Option<usize>) -> PyResult<Self> {
        let task = Task::from_json(&convert::parse_json(task)?);
        let mut task = task.map_err(|error| errors::exception(&error))?;
        task.settings.threads = threads.and_then(std::num::NonZero::new);
        if let Some(rows) = batch_rows {
            task.settings.batch_rows = rows.max(1);
        }
        Ok(Self { state: State::new(task.settings.clone(), Work::Task(Box::new(task))) })
    }

    /// Returns the next batch of any log; `None` at the end.
    fn next(&self) -> PyResult<Option<PyBatch>> {
        let batch = self.state.next()?;
        Ok(batch.map(|LogBatch { log, rows }| PyBatch { log, rows }))
    }

    /// Returns the rows of one log as a capsule with an Arrow stream. With `strict`, for readers that do not know this
    /// class, damage is an error at the end of the stream, and an interrupt is raised again.
    fn stream<'py>(
        &self,
        py: Python<'py>,
        log: &str,
        strict: bool,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        if matches!(&*lock(&self.state.work), Work::Running(_) | Work::Over) {
            return Err(PyRuntimeError::new_err("this run has begun: its rows are gone"));
        }
        if !self.state.settings.paths().contains(&log) {
            return Err(PyValueError::new_err(format!("{log} is not a log of this run")));
        }
        let schema =
            schema_of(log, &self.state.settings).map_err(|error| errors::exception(&error))?;
        let (log, state) = (log.to_owned(), Arc::clone(&self.state));
        stream_capsule(py, Box::new(LogStream { state, log, schema, strict, is_over: false }))
    }

    /// Returns the exceptions for captures that could not be read completely.
    fn damage(&self, py: Python<'_>) -> Vec<Py<PyAny>> {
        let damage = lock(&self.state.damage);
        damage.iter().map(|e| errors::capture_exception(e).into_value(py).into_any()).collect()
    }

    /// Takes the exception that ended a stream.
    fn take_raised(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        lock(&self.state.raised).take().map(|e| e.into_value(py).into_any())
    }

    /// Returns the statistics of a complete run.
    fn statistics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let statistics = *lock(&self.state.statistics);
        let dict = PyDict::new(py);
        dict.set_item("packets", statistics.packets)?;
        dict.set_item("bytes", statistics.bytes)?;
        dict.set_item("filtered", statistics.filtered)?;
        dict.set_item("connections", statistics.connections)?;
        dict.set_item("wrong_checksums", statistics.state.wrong_checksums)?;
        Ok(dict)
    }

    /// Cancels the analysis.
    fn close(&self) {
        *lock(&self.state.work) = Work::Over;
    }
}

/// Arrow stream of one log of a run.
struct LogStream {
    state: Arc<State>,
    log: String,
    schema: Arc<Schema>,
    strict: bool,
    is_over: bool,
}

impl Iterator for LogStream {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.is_over {
            match self.state.next() {
                Ok(Some(batch)) if batch.log == self.log => return Some(Ok(batch.rows)),
                Ok(Some(_)) => {}
                Ok(None) => {
                    self.is_over = true;
                    let first = lock(&self.state.damage).first().map(ToString::to_string);
                    return first.filter(|_| self.strict).map(|text| Err(error(text)));
                }
                Err(raised) => {
                    self.is_over = true;
                    let text = raised.to_string();
                    let is_interrupt =
                        Python::attach(|py| raised.is_instance_of::<PyKeyboardInterrupt>(py));
                    if self.strict && is_interrupt {
                        gil::interrupt_again();
                    }
                    *lock(&self.state.raised) = Some(raised);
                    return Some(Err(error(text)));
                }
            }
        }
        None
    }
}

impl RecordBatchReader for LogStream {
    fn schema(&self) -> Arc<Schema> {
        Arc::clone(&self.schema)
    }
}

/// Creates an Arrow error. The C stream interface does not allow NUL bytes in its text.
fn error(text: String) -> ArrowError {
    ArrowError::ExternalError(text.replace('\0', " ").into())
}
