//! What captures hold, and what logs there are.

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

/// The version of gannet.
#[pyfunction]
pub(crate) fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// What a capture holds, as JSON.
#[pyfunction]
pub(crate) fn info(source: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    let sources = Source::all(source)?;
    let (to, from) = sync_channel(1);
    thread::Builder::new().name("gannet-info".into()).spawn(move || {
        let read = |source: Source| Ok(Info::read(reader(source)?).json());
        to.send(sources.into_iter().map(read).collect::<Result<Vec<_>, _>>())
    })?;
    gil::wait(move |time| from.recv_timeout(time).ok())?.map_err(|e| errors::of_capture(&e))
}

fn reader(source: Source) -> Result<Reader, gannet_capture::Error> {
    source.reader(Access::Read)
}

/// Notes which packets of a capture belong to which connection; returns how many packets and uids there are.
#[pyfunction]
pub(crate) fn index(path: PathBuf, settings: &str) -> PyResult<(u64, u64)> {
    let settings = convert::settings(settings)?;
    let mut options = settings.options().map_err(|error| errors::of(&error))?;
    options.logs.selection = Selection::of(Vec::<String>::new());
    let (to, from) = sync_channel(1);
    thread::Builder::new()
        .name("gannet-index".into())
        .spawn(move || to.send(build(&path, options)))?;
    let (packets, lists) = gil::wait(move |time| from.recv_timeout(time).ok())??;
    Ok((packets, lists))
}

fn build(path: &PathBuf, mut options: Options) -> PyResult<(u64, u64)> {
    let builder = Arc::new(Builder::new(Analysis::of(&options)));
    options.index = Some(builder.clone());
    let mut stream = Stream::open(std::slice::from_ref(path), gannet_capture::Options::default())
        .map_err(|error| errors::of_capture(&error))?;
    builder.keep_restarts(&mut stream);
    let mut engine = Engine::new(options);
    loop {
        match stream.next_batch() {
            Ok(Some(batch)) => {
                engine.batch(&batch)?;
                builder.batch(&batch);
            }
            Ok(None) => break,
            // The packets before the damage are indexed; who reads the capture reports it.
            Err(_) => {}
        }
    }
    engine.finish()?;
    let built = builder.write(path).map_err(|error| errors::of_index(&error))?;
    Ok((built.packets, built.lists))
}

/// Names of the logs that settings select.
#[pyfunction]
pub(crate) fn log_names(settings: &str) -> PyResult<Vec<&'static str>> {
    let settings = convert::settings(settings)?;
    settings.options().map_err(|error| errors::of(&error))?;
    Ok(settings.paths())
}

/// A column: its name, Zeek's type, what it is, and whether it is optional.
type Column = (&'static str, String, &'static str, bool);

/// All logs: name, what a row is, whether it is written only where it is asked for, columns.
#[pyfunction]
pub(crate) fn log_declarations() -> Vec<(&'static str, &'static str, bool, Vec<Column>)> {
    let column = |f: &gannet_log::Field| (f.name, f.ty.to_string(), f.doc.trim(), f.optional);
    let schemas = gannet_engine::schemas().into_iter();
    schemas.map(|s| (s.path, s.doc, s.opt_in, s.fields.iter().map(column).collect())).collect()
}
