//! Divides captures into tasks.

use std::num::NonZero;
use std::path::PathBuf;
use std::sync::mpsc::sync_channel;
use std::thread;

use gannet_task::PlanOptions;
use pyo3::prelude::*;

use crate::convert;
use crate::errors;
use crate::gil;

/// Returns the tasks of captures as JSON.
#[pyfunction]
#[pyo3(signature = (paths, settings, tasks, warm_up, threads))]
pub(crate) fn plan(
    paths: Vec<PathBuf>,
    settings: &str,
    tasks: Option<u32>,
    warm_up: Option<u32>,
    threads: usize,
) -> PyResult<String> {
    let settings = convert::settings(settings)?;
    let options = PlanOptions { tasks: tasks.and_then(NonZero::new), warm_up, threads };
    let (sender, receiver) = sync_channel(1);
    thread::Builder::new()
        .name("gannet-plan".into())
        .spawn(move || sender.send(gannet_task::plan(&paths, &settings, &options)))?;
    let plan = gil::wait(move |time| receiver.recv_timeout(time).ok())?;
    Ok(plan.map_err(|error| errors::exception(&error))?.to_json().to_string())
}
