//! Exports record batches through Arrow's C data interface.

use arrow_array::Array;
use arrow_array::RecordBatch;
use arrow_array::RecordBatchReader;
use arrow_array::StructArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_data::ffi::FFI_ArrowArray;
use arrow_schema::Schema;
use arrow_schema::ffi::FFI_ArrowSchema;
use gannet_task::schema_of;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::convert;
use crate::errors;

/// Returns the schema of a log as a capsule.
#[pyfunction]
pub(crate) fn schema_capsule<'py>(
    py: Python<'py>,
    log: &str,
    settings: &str,
) -> PyResult<Bound<'py, PyCapsule>> {
    let schema =
        schema_of(log, &convert::settings(settings)?).map_err(|e| errors::exception(&e))?;
    schema_to_capsule(py, &schema)
}

fn schema_to_capsule<'py>(py: Python<'py>, schema: &Schema) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = FFI_ArrowSchema::try_from(schema).map_err(invalid)?;
    PyCapsule::new_with_value(py, schema, c"arrow_schema")
}

/// Returns a stream of batches as a capsule.
pub(crate) fn stream_capsule<'py>(
    py: Python<'py>,
    reader: Box<dyn RecordBatchReader + Send>,
) -> PyResult<Bound<'py, PyCapsule>> {
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(reader), c"arrow_array_stream")
}

fn invalid(error: arrow_schema::ArrowError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// A batch of rows of a log.
#[pyclass(name = "Batch", module = "gannet", frozen)]
pub(crate) struct PyBatch {
    pub(crate) log: &'static str,
    pub(crate) rows: RecordBatch,
}

#[pymethods]
impl PyBatch {
    /// Name of the log.
    #[getter]
    fn log(&self) -> &'static str {
        self.log
    }

    /// Number of rows.
    #[getter]
    fn num_rows(&self) -> usize {
        self.rows.num_rows()
    }

    /// Size of the columns in bytes.
    #[getter]
    fn nbytes(&self) -> usize {
        self.rows.get_array_memory_size()
    }

    fn __len__(&self) -> usize {
        self.rows.num_rows()
    }

    fn __repr__(&self) -> String {
        format!("<gannet.Batch of {}: {} rows>", self.log, self.rows.num_rows())
    }

    /// The schema through Arrow's C data interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_to_capsule(py, &self.rows.schema())
    }

    /// The rows through Arrow's C data interface, without a copy.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        // The specification allows a producer to ignore the requested schema.
        let _ = requested_schema;
        let schema = schema_to_capsule(py, &self.rows.schema())?;
        let rows = StructArray::from(self.rows.clone());
        let array = FFI_ArrowArray::new(&rows.to_data());
        Ok((schema, PyCapsule::new_with_value(py, array, c"arrow_array")?))
    }
}
