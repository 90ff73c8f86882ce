//! Parses settings from JSON.

use gannet_task::Settings;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::errors;

/// Parses the settings that the Python code serialized as JSON.
pub(crate) fn settings(json: &str) -> PyResult<Settings> {
    let value = parse_json(json)?;
    Settings::from_json(&value).map_err(|error| errors::exception(&error))
}

pub(crate) fn parse_json(json: &str) -> PyResult<serde_json::Value> {
    serde_json::from_str(json).map_err(|error| PyValueError::new_err(error.to_string()))
}
