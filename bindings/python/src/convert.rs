//! Settings from their JSON.

use gannet_task::Settings;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::errors;

/// What Python's side wrote as JSON.
pub(crate) fn settings(json: &str) -> PyResult<Settings> {
    let value = value(json)?;
    Settings::from_json(&value).map_err(|error| errors::of(&error))
}

pub(crate) fn value(json: &str) -> PyResult<serde_json::Value> {
    serde_json::from_str(json).map_err(|error| PyValueError::new_err(error.to_string()))
}
