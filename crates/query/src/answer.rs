//! The rows that a query returns.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_array::RecordBatchOptions;
use arrow_schema::Field;
use arrow_schema::Schema;
use arrow_schema::SchemaRef;
use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use futures::StreamExt as _;
use tokio::runtime::Handle;
use tokio::sync::mpsc::Receiver;
use tokio::sync::mpsc::channel;

use crate::Error;
use crate::ErrorKind;

/// How often a query that computes is asked whether it was cancelled.
const CANCEL: Duration = Duration::from_millis(20);

/// The rows of a query, batch by batch. What is not read is not computed.
pub struct Answer {
    sql: String,
    schema: SchemaRef,
    batches: Receiver<Result<RecordBatch, DataFusionError>>,
    runtime: Handle,
    stop: Arc<AtomicBool>,
}

impl Answer {
    /// Starts a query. It computes in threads of its own, so that a caller who cancels it does not wait for the step
    /// that is computed.
    pub(crate) fn start(
        sql: &str,
        mut stream: SendableRecordBatchStream,
        labels: Vec<Option<String>>,
        runtime: &Handle,
        stop: Arc<AtomicBool>,
    ) -> Self {
        let schema = labelled(&stream.schema(), labels);
        let (to, batches) = channel(1);
        runtime.spawn(async move {
            while let Some(batch) = stream.next().await {
                // The answer was dropped: so is the stream, which ends the analysis of captures.
                if to.send(batch).await.is_err() {
                    break;
                }
            }
        });
        Self { sql: sql.to_owned(), schema, batches, runtime: runtime.clone(), stop }
    }

    /// The columns.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// The next rows; `None` at the end. Waits for them.
    ///
    /// # Errors
    /// Where the query fails, or is cancelled.
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator of results would go on after an error"
    )]
    pub fn next(&mut self) -> Result<Option<RecordBatch>, Error> {
        let Self { sql, schema, batches, runtime, stop } = self;
        runtime.block_on(async {
            loop {
                if stop.load(Ordering::Relaxed) {
                    return Err(Error::new(ErrorKind::Cancelled, "the query was cancelled"));
                }
                match tokio::time::timeout(CANCEL, batches.recv()).await {
                    Err(_) => {}
                    Ok(None) => return Ok(None),
                    Ok(Some(Ok(batch))) if batch.num_rows() == 0 => {}
                    Ok(Some(Ok(batch))) => {
                        return named(batch, schema).map(Some).map_err(|e| Error::of(&e, sql));
                    }
                    Ok(Some(Err(error))) => return Err(Error::of(&error, sql)),
                }
            }
        })
    }
}

/// The batch with the names of the schema.
fn named(batch: RecordBatch, schema: &Schema) -> Result<RecordBatch, DataFusionError> {
    let (own, columns, rows) = batch.into_parts();
    let name = |(field, named): (&Arc<Field>, &Arc<Field>)| {
        if field.name() == named.name() {
            return Arc::clone(field);
        }
        Arc::new(field.as_ref().clone().with_name(named.name()))
    };
    let fields: Vec<_> = own.fields().iter().zip(schema.fields()).map(name).collect();
    let schema = Arc::new(Schema::new_with_metadata(fields, own.metadata().clone()));
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(schema, columns, &options)?)
}

/// The schema with labels where there are any, and where no two columns have one name then.
fn labelled(schema: &SchemaRef, labels: Vec<Option<String>>) -> SchemaRef {
    if labels.len() != schema.fields().len() {
        return Arc::clone(schema);
    }
    let label = |(field, label): (&Arc<Field>, Option<String>)| match label {
        Some(label) => Arc::new(field.as_ref().clone().with_name(label)),
        None => Arc::clone(field),
    };
    let fields: Vec<_> = schema.fields().iter().zip(labels).map(label).collect();
    let names: BTreeSet<_> = fields.iter().map(|field| field.name()).collect();
    if names.len() < fields.len() {
        return Arc::clone(schema);
    }
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}
