//! Rows of a log from captures, which are analysed while the query runs.

use std::io;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::stream::RecordBatchReceiverStream;
use datafusion::physical_plan::streaming::PartitionStream;
use gannet_base::Time;
use gannet_capture::Access;
use gannet_capture::Stream;
use gannet_columns::Batch;
use gannet_columns::TimeUnit;
use gannet_engine::Engine;
use gannet_log::Field;
use gannet_log::Format;
use gannet_log::Output;
use gannet_log::PackedRows;
use gannet_log::PackedStream;
use gannet_log::PackedWriter;
use gannet_log::Selection;
use tokio::sync::mpsc::Sender;

use crate::Error;
use crate::convert::to_schema;
use crate::listing::STDIN;
use crate::session::Shared;

/// Rows of the first batch. It is small, so that the first rows are available early.
const FIRST_BATCH_ROWS: usize = 64;
/// Maximum number of rows per batch.
const MAX_BATCH_ROWS: usize = 8 << 10;
/// Up to this limit a query is analysed in one thread, which returns the rows before several threads have started.
const SINGLE_THREAD_LIMIT: usize = 10_000;

/// A log from captures that are read as one stream, ordered by time.
#[derive(Debug)]
pub(crate) struct CaptureRows {
    pub(crate) schema: SchemaRef,
    /// Name of the log.
    pub(crate) log: &'static str,
    /// Its columns in the analysis.
    pub(crate) fields: Vec<Field>,
    pub(crate) paths: Vec<PathBuf>,
    /// Whether the contents of all files are hashed.
    pub(crate) hashes: bool,
    /// Maximum number of rows that the query needs.
    pub(crate) limit: Option<usize>,
    /// Latest `ts` of rows that the query needs, in microseconds.
    pub(crate) until: Option<i64>,
    pub(crate) shared: Arc<Shared>,
}

type RowSender = Sender<Result<RecordBatch, DataFusionError>>;

impl PartitionStream for CaptureRows {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let mut builder = RecordBatchReceiverStream::builder(Arc::clone(&self.schema), 2);
        let sender = builder.tx();
        let scan = Scan {
            sender,
            schema: Arc::clone(&self.schema),
            fields: self.fields.clone(),
            capture: None,
            done: Arc::new(AtomicBool::new(false)),
            sent: Arc::new(AtomicU64::new(0)),
            skip: 0,
        };
        let Self { log, hashes, limit, until, .. } = *self;
        let needs = QueryNeeds { log, hashes, limit, until };
        let (paths, shared) = (self.paths.clone(), Arc::clone(&self.shared));
        builder.spawn_blocking(move || {
            if !shared.options.each {
                return analyse_captures(&scan, needs, &paths, &shared)
                    .map_err(DataFusionError::from);
            }
            for path in &paths {
                let capture = Some(path.display().to_string());
                let sent = Arc::new(AtomicU64::new(0));
                let scan = Scan { capture, sent, ..scan.clone() };
                if scan.is_done(&shared) {
                    break;
                }
                analyse_captures(&scan, needs, std::slice::from_ref(path), &shared)?;
            }
            Ok(())
        });
        builder.build()
    }
}

/// The output of the analysis, which sends its rows to the query.
#[derive(Clone, Debug)]
struct Scan {
    sender: RowSender,
    schema: SchemaRef,
    fields: Vec<Field>,
    /// The name of the capture, if each is analysed separately.
    capture: Option<String>,
    /// The query needs no more rows.
    done: Arc<AtomicBool>,
    /// Number of rows sent to the query.
    sent: Arc<AtomicU64>,
    /// Number of rows to skip, because an earlier analysis that ended too early sent them.
    skip: u64,
}

impl Scan {
    /// Whether the query needs no more rows.
    fn is_done(&self, shared: &Shared) -> bool {
        let closed = self.done.load(Ordering::Relaxed) || self.sender.is_closed();
        closed || shared.stop.load(Ordering::Relaxed)
    }
}

/// The rows that a query needs.
#[derive(Clone, Copy, Debug)]
struct QueryNeeds {
    log: &'static str,
    hashes: bool,
    limit: Option<usize>,
    until: Option<i64>,
}

/// Logs whose rows are written at the latest when their connection ends: once all connections that began before a time
/// have ended, no more rows with an earlier `ts` follow.
const CONNECTION_LOGS: [&str; 6] = ["conn", "dns", "http", "smtp", "ssh", "ssl"];
/// Time in nanoseconds that the analysis continues after the stop time, because packets may be slightly out of order.
/// Packets that are further out of order require a second analysis.
const REORDER_NANOS: i64 = 60_000_000_000;

/// Determines when an analysis can end, because no more rows up to a time follow if packets are in order.
struct StopTime {
    /// In nanoseconds; earlier packets may have rows that the query needs.
    time: i64,
    /// Packet time of the next check of all connections, and the interval to the one after it.
    next: i64,
    wait: i64,
}

impl StopTime {
    fn new(micros: i64) -> Self {
        let time = micros.saturating_add(1).saturating_mul(1_000);
        Self { time, next: time.saturating_add(REORDER_NANOS), wait: 1_000_000_000 }
    }

    /// Whether the analysis needs no packets after this batch.
    fn is_reached(&mut self, batch: &gannet_capture::Batch<'_>, engine: &Engine) -> bool {
        let last = batch.len().checked_sub(1).and_then(|last| batch.get(last));
        let Some(now) = last.map(|packet| packet.time.as_nanos()).filter(|now| *now >= self.next)
        else {
            return false;
        };
        self.next = now.saturating_add(self.wait);
        self.wait = (self.wait * 2).min(REORDER_NANOS);
        engine.earliest_open().is_some_and(|earliest| earliest.as_nanos() > self.time)
    }

    /// Whether a later batch has packets before the stop time.
    fn has_late(&self, batch: &gannet_capture::Batch<'_>) -> bool {
        batch.iter().any(|packet| packet.time.as_nanos() <= self.time)
    }
}

pub(crate) fn is_stdin(path: &Path) -> bool {
    path == Path::new(STDIN)
}

/// How an analysis ended.
enum AnalysisEnd {
    /// All rows that the query needs were sent.
    Complete,
    /// The analysis ended at the stop time, but earlier packets follow in the capture.
    TooEarly,
}

fn analyse_captures(
    scan: &Scan,
    needs: QueryNeeds,
    paths: &[PathBuf],
    shared: &Shared,
) -> Result<(), Error> {
    // Standard input cannot be read a second time.
    let is_early = CONNECTION_LOGS.contains(&needs.log) && !paths.iter().any(|path| is_stdin(path));
    let until = needs.until.filter(|_| is_early).map(StopTime::new);
    if matches!(run_engine(scan, needs, until, paths, shared)?, AnalysisEnd::TooEarly) {
        // An analysis of the same packets returns the same rows in the same order with any number of threads, so its
        // first rows are those that were already sent.
        let scan = Scan { skip: scan.sent.load(Ordering::Relaxed), ..scan.clone() };
        run_engine(&scan, needs, None, paths, shared)?;
    }
    Ok(())
}

fn run_engine(
    scan: &Scan,
    needs: QueryNeeds,
    mut until: Option<StopTime>,
    paths: &[PathBuf],
    shared: &Shared,
) -> Result<AnalysisEnd, Error> {
    let QueryNeeds { log, hashes, limit, .. } = needs;
    let access = gannet_capture::Options { access: Access::Read, ..Default::default() };
    let mut stream = match paths {
        [path] if is_stdin(path) => Stream::from_reader(shared.stdin()?),
        _ if paths.iter().any(|path| is_stdin(path)) => {
            let error = Error::input("-: standard input and other captures cannot form one table");
            let hint = "merge them with mergecap, or write standard input to a file first";
            return Err(error.with_hint(Some(hint.to_owned())));
        }
        _ => Stream::open(paths, access).map_err(|e| Error::input(e.to_string()))?,
    };
    for error in stream.skipped() {
        shared.warn(format!("skipped {error}"));
    }
    let mut options = shared.options.analysis.clone();
    options.threads = match limit {
        Some(limit) if limit <= SINGLE_THREAD_LIMIT => 1,
        // With one thread, the engine knows all open connections.
        _ if until.is_some() => 1,
        _ => shared.options.threads,
    };
    options.logs.dir = None;
    options.logs.format = Format::Packed;
    options.logs.selection = Selection::of([log]);
    // The fields contain the optional columns that the query uses.
    let optional = scan.fields.iter().filter(|field| field.optional);
    options.logs.columns = optional.map(|field| field.name.to_owned()).collect();
    options.logs.outputs = vec![Arc::new(scan.clone())];
    options.hash_files |= hashes;
    stream.set_unpack_threads(options.threads);
    let threads = options.threads;
    if threads > 1 {
        stream.set_batch_packets(gannet_capture::BATCH_PACKETS);
    }
    let is_done = || scan.is_done(shared);
    let mut engine = Engine::new(options);
    // After the stop time, packets are read only to check their times.
    let mut is_past_stop_time = false;
    while !is_done() {
        let batch = match stream.next_batch() {
            Ok(Some(batch)) => batch,
            Ok(None) => break,
            // The packets read so far are valid; the damage is reported with the result.
            Err(error) => {
                shared.report_damage(error.to_string());
                continue;
            }
        };
        if is_past_stop_time {
            if until.as_ref().is_some_and(|until| until.has_late(&batch)) {
                return Ok(AnalysisEnd::TooEarly);
            }
            continue;
        }
        shared.analysed(batch.len());
        let analysed = engine.batch(&batch);
        // Flushes buffered rows, for queries with a small limit.
        let flushed = if threads > 1 { Ok(()) } else { engine.flush() };
        if let Err(error) = analysed.and(flushed)
            && !is_done()
        {
            return Err(Error::new(crate::ErrorKind::Run, error.to_string()));
        }
        is_past_stop_time = until.as_mut().is_some_and(|until| until.is_reached(&batch, &engine));
    }
    if is_done() && threads <= 1 {
        return Ok(AnalysisEnd::Complete);
    }
    match engine.finish() {
        Err(error) if !is_done() => Err(Error::new(crate::ErrorKind::Run, error.to_string())),
        Ok((statistics, _)) => {
            if let Some(text) = statistics.checksum_warning() {
                shared.warn(text);
            }
            Ok(AnalysisEnd::Complete)
        }
        Err(_) => Ok(AnalysisEnd::Complete),
    }
}

impl Output for Scan {
    fn open(&self, _: &gannet_log::Options) -> Box<dyn PackedWriter> {
        Box::new(BatchWriter {
            scan: self.clone(),
            batch: None,
            target: FIRST_BATCH_ROWS,
            skip: self.skip,
        })
    }
}

struct BatchWriter {
    scan: Scan,
    batch: Option<Batch>,
    /// Number of rows at which the batch is sent.
    target: usize,
    /// Number of rows still to be skipped.
    skip: u64,
}

impl PackedWriter for BatchWriter {
    fn write(&mut self, _: &PackedStream<'_>, rows: PackedRows<'_>) -> io::Result<()> {
        for row in rows {
            if let Some(remaining) = self.skip.checked_sub(1) {
                self.skip = remaining;
                continue;
            }
            let Scan { schema, fields, .. } = &self.scan;
            let batch = self.batch.get_or_insert_with(|| {
                let is_projected = |field: &Field| schema.index_of(field.name).is_ok();
                Batch::with_columns(fields, TimeUnit::Microseconds, self.target, is_projected)
            });
            batch.push(row);
            if batch.rows() >= self.target {
                self.send()?;
            }
        }
        Ok(())
    }

    fn close(&mut self, _: Time) -> io::Result<()> {
        self.send()
    }
}

impl BatchWriter {
    fn send(&mut self) -> io::Result<()> {
        let Some(batch) = self.batch.take() else { return Ok(()) };
        self.target = (self.target * 2).min(MAX_BATCH_ROWS);
        let Scan { schema, capture, .. } = &self.scan;
        let batch =
            to_schema(&batch.finish()?, schema, capture.as_deref()).map_err(io::Error::other)?;
        self.scan.sent.fetch_add(batch.num_rows() as u64, Ordering::Relaxed);
        self.scan.sender.blocking_send(Ok(batch)).map_err(|_| {
            self.scan.done.store(true, Ordering::Relaxed);
            io::Error::other("the query needs no more rows")
        })
    }
}
