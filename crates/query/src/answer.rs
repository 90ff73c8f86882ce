//! The rows that a query returns.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use datafusion::execution::SendableRecordBatchStream;
use futures::StreamExt as _;
use tokio::runtime::Handle;

use crate::Error;
use crate::ErrorKind;

/// How often a query that computes is asked whether it was cancelled.
const CANCEL: Duration = Duration::from_millis(20);

/// The rows of a query, batch by batch. What is not read is not computed.
pub struct Answer {
    pub(crate) sql: String,
    pub(crate) stream: SendableRecordBatchStream,
    pub(crate) runtime: Handle,
    pub(crate) stop: Arc<AtomicBool>,
}

impl Answer {
    /// The columns.
    pub fn schema(&self) -> SchemaRef {
        self.stream.schema()
    }

    /// The next rows; `None` at the end. Waits for them.
    ///
    /// # Errors
    /// Where the query fails, or is cancelled.
    #[expect(clippy::should_implement_trait, reason = "an iterator of results would go on after an error")]
    pub fn next(&mut self) -> Result<Option<RecordBatch>, Error> {
        let Self { sql, stream, runtime, stop } = self;
        runtime.block_on(async {
            loop {
                if stop.load(Ordering::Relaxed) {
                    return Err(Error::new(ErrorKind::Cancelled, "the query was cancelled"));
                }
                match tokio::time::timeout(CANCEL, stream.next()).await {
                    Err(_) => {}
                    Ok(None) => return Ok(None),
                    Ok(Some(Ok(batch))) if batch.num_rows() == 0 => {}
                    Ok(Some(Ok(batch))) => return Ok(Some(batch)),
                    Ok(Some(Err(error))) => return Err(Error::of(&error, sql)),
                }
            }
        })
    }
}
