//! Metadata of captures, packet indexes, and declarations of logs.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread;

use gannet_capture::Access;
use gannet_capture::Info;
use gannet_capture::Reader;
use gannet_capture::Stream;
use gannet_engine::Engine;
use gannet_engine::Options;
use gannet_index::Analysis;
use gannet_index::Builder;
use gannet_log::Selection;
use pyo3::prelude::*;

use crate::convert;
use crate::errors;
use crate::gil;
use crate::source::Source;

/// Returns the version of gannet.
#[pyfunction]
pub(crate) fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// Returns the metadata of captures as JSON.
#[pyfunction]
pub(crate) fn info(source: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    let sources = Source::all(source)?;
    let (sender, receiver) = sync_channel(1);
    thread::Builder::new().name("gannet-info".into()).spawn(move || {
        let read = |source: Source| Ok(Info::read(reader(source)?).json());
        sender.send(sources.into_iter().map(read).collect::<Result<Vec<_>, _>>())
    })?;
    gil::wait(move |time| receiver.recv_timeout(time).ok())?
        .map_err(|e| errors::capture_exception(&e))
}

fn reader(source: Source) -> Result<Reader, gannet_capture::Error> {
    source.reader(Access::Read)
}

/// Writes an index of the packets of each connection. Returns the numbers of packets and uids.
#[pyfunction]
pub(crate) fn index(path: PathBuf, settings: &str) -> PyResult<(u64, u64)> {
    let settings = convert::settings(settings)?;
    let mut options = settings.options().map_err(|error| errors::exception(&error))?;
    options.logs.selection = Selection::of(Vec::<String>::new());
    let (sender, receiver) = sync_channel(1);
    thread::Builder::new()
        .name("gannet-index".into())
        .spawn(move || sender.send(build(&path, options)))?;
    let (packets, lists) = gil::wait(move |time| receiver.recv_timeout(time).ok())??;
    Ok((packets, lists))
}

fn build(path: &PathBuf, mut options: Options) -> PyResult<(u64, u64)> {
    let builder = Arc::new(Builder::new(Analysis::of(&options)));
    options.index = Some(builder.clone());
    let mut stream = Stream::open(std::slice::from_ref(path), gannet_capture::Options::default())
        .map_err(|error| errors::capture_exception(&error))?;
    builder.keep_restarts(&mut stream);
    let mut engine = Engine::new(options);
    loop {
        match stream.next_batch() {
            Ok(Some(batch)) => {
                engine.batch(&batch)?;
                builder.batch(&batch);
            }
            Ok(None) => break,
            // The packets before the damage are indexed. Readers of the capture report the damage.
            Err(_) => {}
        }
    }
    engine.finish()?;
    let built = builder.write(path).map_err(|error| errors::index_exception(&error))?;
    Ok((built.packets, built.lists))
}

/// Returns the names of the logs that the settings select.
#[pyfunction]
pub(crate) fn log_names(settings: &str) -> PyResult<Vec<&'static str>> {
    let settings = convert::settings(settings)?;
    settings.options().map_err(|error| errors::exception(&error))?;
    Ok(settings.paths())
}

/// A column: name, Zeek's type, description, and whether it is optional.
type Column = (&'static str, String, &'static str, bool);

/// Returns all logs: name, description, whether it is written only if requested, and columns.
#[pyfunction]
pub(crate) fn log_declarations() -> Vec<(&'static str, &'static str, bool, Vec<Column>)> {
    let column = |f: &gannet_log::Field| (f.name, f.ty.to_string(), f.doc.trim(), f.optional);
    let schemas = gannet_engine::schemas().into_iter();
    schemas.map(|s| (s.path, s.doc, s.opt_in, s.fields.iter().map(column).collect())).collect()
}
