//! The rows that a query returns.

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

/// How often a query that computes is asked whether it was cancelled.
const CANCEL: Duration = Duration::from_millis(20);

/// The rows of a query, batch by batch. What is not read is not computed.
pub struct Answer {
    sql: String,
    schema: SchemaRef,
    batches: Receiver<Result<RecordBatch, DataFusionError>>,
    /// There until the answer is dropped. Each query has threads of its own: a query that is abandoned may keep its threads for
    /// a while.
    runtime: Option<Runtime>,
    stop: Arc<AtomicBool>,
}

impl Answer {
    /// Starts a query. It computes in threads of its own, so that a caller who cancels it does not wait for the step
    /// that is computed.
    pub(crate) fn start(
        sql: &str,
        mut stream: SendableRecordBatchStream,
        labels: Vec<Option<String>>,
        runtime: Runtime,
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
        Self { sql: sql.to_owned(), schema, batches, runtime: Some(runtime), stop }
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
        let Self { sql, schema, batches, stop, .. } = self;
        // Timers of the runtime stand still while all its threads compute a step that does not yield.
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        let mut context = Context::from_waker(&waker);
        loop {
            if stop.load(Ordering::Relaxed) {
                return Err(Error::new(ErrorKind::Cancelled, "the query was cancelled"));
            }
            match batches.poll_recv(&mut context) {
                Poll::Pending => std::thread::park_timeout(CANCEL),
                Poll::Ready(None) => return Ok(None),
                Poll::Ready(Some(Ok(batch))) if batch.num_rows() == 0 => {}
                Poll::Ready(Some(Ok(batch))) => {
                    return named(batch, schema).map(Some).map_err(|e| Error::of(&e, sql));
                }
                Poll::Ready(Some(Err(error))) => return Err(Error::of(&error, sql)),
            }
        }
    }
}

impl Drop for Answer {
    /// A step that is computed runs to its end in the threads of the query, and nothing waits for it.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Wakes the thread that waits for rows.
struct Unpark(std::thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
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

/// The schema with labels where there are any. Of columns with the same name, the later ones have a number behind it.
fn labelled(schema: &SchemaRef, labels: Vec<Option<String>>) -> SchemaRef {
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
            // A column that is called like this itself keeps its name.
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
