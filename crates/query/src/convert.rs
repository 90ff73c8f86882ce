//! Converts record batches to the schema of a table.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::RecordBatch;
use arrow_array::RecordBatchOptions;
use arrow_array::StringArray;
use arrow_array::new_null_array;
use arrow_schema::ArrowError;
use arrow_schema::SchemaRef;
use datafusion::arrow::compute::cast;

/// Name of the column that contains the capture of a row.
pub(crate) const CAPTURE: &str = "capture";

/// Converts a batch to `schema`, by column names: missing columns are null, and columns of another type are cast. If
/// `capture` is given, it is the value of the column `capture`.
pub(crate) fn to_schema(
    batch: &RecordBatch,
    schema: &SchemaRef,
    capture: Option<&str>,
) -> Result<RecordBatch, ArrowError> {
    let column = |field: &Arc<arrow_schema::Field>| -> Result<ArrayRef, ArrowError> {
        if let Some(capture) = capture.filter(|_| field.name() == CAPTURE) {
            let names = StringArray::new_repeated(capture, batch.num_rows());
            return Ok(Arc::new(names));
        }
        match batch.column_by_name(field.name()) {
            None => Ok(new_null_array(field.data_type(), batch.num_rows())),
            Some(array) if array.data_type() == field.data_type() => Ok(Arc::clone(array)),
            Some(array) => cast(array, field.data_type()),
        }
    };
    let columns = schema.fields().iter().map(column).collect::<Result<_, _>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)
}
