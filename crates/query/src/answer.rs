//! The result of a query.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::task::Context;
use std::task::Poll;
use std::task::Wake;
use std::task::Waker;
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_array::RecordBatchOptions;
use arrow_schema::Field;
use arrow_schema::Schema;
use arrow_schema::SchemaRef;
use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use futures::StreamExt as _;
use tokio::runtime::Runtime;
use tokio::sync::mpsc::Receiver;
use tokio::sync::mpsc::channel;

use crate::Error;
use crate::ErrorKind;

/// How often `Answer::next` checks for cancellation while it waits.
const CANCEL_INTERVAL: Duration = Duration::from_millis(20);

/// The result of a query, as a sequence of batches that are computed as they are read.
pub struct Answer {
    sql: String,
    schema: SchemaRef,
    batches: Receiver<Result<RecordBatch, DataFusionError>>,
    /// `None` only while the answer is dropped. Each query has its own threads, because an abandoned query may occupy
    /// them for a while.
    runtime: Option<Runtime>,
    stop: Arc<AtomicBool>,
}

impl Answer {
    /// Starts a query in its own threads, so that a caller who cancels it does not wait for the current step.
    pub(crate) fn start(
        sql: &str,
        mut stream: SendableRecordBatchStream,
        labels: Vec<Option<String>>,
        runtime: Runtime,
        stop: Arc<AtomicBool>,
    ) -> Self {
        let schema = label_columns(&stream.schema(), labels);
        let (sender, batches) = channel(1);
        runtime.spawn(async move {
            while let Some(batch) = stream.next().await {
                // The answer was dropped. Dropping the stream ends the analysis of captures.
                if sender.send(batch).await.is_err() {
                    break;
                }
            }
        });
        Self { sql: sql.to_owned(), schema, batches, runtime: Some(runtime), stop }
    }

    /// Returns the schema of the result.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// Waits for the next batch; returns `None` at the end.
    ///
    /// # Errors
    /// If the query fails, or is cancelled.
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator of results would go on after an error"
    )]
    pub fn next(&mut self) -> Result<Option<RecordBatch>, Error> {
        let Self { sql, schema, batches, stop, .. } = self;
        // The runtime's timers do not fire while all its threads are busy, so this thread parks itself with a timeout.
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        let mut context = Context::from_waker(&waker);
        loop {
            if stop.load(Ordering::Relaxed) {
                return Err(Error::new(ErrorKind::Cancelled, "the query was cancelled"));
            }
            match batches.poll_recv(&mut context) {
                Poll::Pending => std::thread::park_timeout(CANCEL_INTERVAL),
                Poll::Ready(None) => return Ok(None),
                Poll::Ready(Some(Ok(batch))) if batch.num_rows() == 0 => {}
                Poll::Ready(Some(Ok(batch))) => {
                    return rename_columns(batch, schema).map(Some).map_err(|e| Error::of(&e, sql));
                }
                Poll::Ready(Some(Err(error))) => return Err(Error::of(&error, sql)),
            }
        }
    }
}

impl Drop for Answer {
    /// Does not wait for the step that the query's threads compute.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Wakes a thread that waits for rows.
struct Unpark(std::thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Renames the columns of a batch to those of the schema.
fn rename_columns(batch: RecordBatch, schema: &Schema) -> Result<RecordBatch, DataFusionError> {
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

/// Replaces column names by labels if given. A number is appended to repeated names.
fn label_columns(schema: &SchemaRef, labels: Vec<Option<String>>) -> SchemaRef {
    let mut names: Vec<String> = schema.fields().iter().map(|f| f.name().clone()).collect();
    if labels.len() == names.len() {
        let labels = names.iter().cloned().zip(labels);
        let labels: Vec<_> = labels.map(|(name, label)| label.unwrap_or(name)).collect();
        if labels.iter().collect::<BTreeSet<_>>().len() == labels.len() {
            names = labels;
        }
    }
    let mut used: BTreeSet<String> = names.iter().cloned().collect();
    let mut seen = BTreeSet::new();
    let fields = schema.fields().iter().zip(names).map(|(field, name)| {
        let mut unique = name.clone();
        let mut number = 0;
        while !seen.insert(unique.clone()) {
            // Skips a name that another column has.
            loop {
                number += 1;
                unique = format!("{name}_{number}");
                if used.insert(unique.clone()) {
                    break;
                }
            }
        }
        match *field.name() == unique {
            true => Arc::clone(field),
            false => Arc::new(field.as_ref().clone().with_name(unique)),
        }
    });
    let fields: Vec<_> = fields.collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}
