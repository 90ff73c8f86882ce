//! Rows of one log out of captures, which are analysed while they are read.

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
use crate::convert::fit;
use crate::listing::STDIN;
use crate::session::Shared;

/// Rows of the first batch: those who want few get them soon.
const FIRST: usize = 64;
/// Rows of a batch at the most.
const MOST: usize = 8 << 10;
/// A query that wants no more rows than this has them before several threads have begun.
const FEW: usize = 10_000;

/// One log of captures, read as one stream in the order of time.
#[derive(Debug)]
pub(crate) struct CaptureRows {
    pub(crate) schema: SchemaRef,
    /// Name of the log.
    pub(crate) log: &'static str,
    /// Its columns as the analysis makes them.
    pub(crate) fields: Vec<Field>,
    pub(crate) paths: Vec<PathBuf>,
    /// Whether the contents of all files are hashed.
    pub(crate) hashes: bool,
    /// Rows that the query wants at the most.
    pub(crate) limit: Option<usize>,
    /// The query wants no rows whose `ts` is later, in microseconds.
    pub(crate) until: Option<i64>,
    pub(crate) shared: Arc<Shared>,
}

type Rows = Sender<Result<RecordBatch, DataFusionError>>;

impl PartitionStream for CaptureRows {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let mut builder = RecordBatchReceiverStream::builder(Arc::clone(&self.schema), 2);
        let to = builder.tx();
        let scan = Scan {
            to,
            schema: Arc::clone(&self.schema),
            fields: self.fields.clone(),
            capture: None,
            done: Arc::new(AtomicBool::new(false)),
            sent: Arc::new(AtomicU64::new(0)),
            skip: 0,
        };
        let Self { log, hashes, limit, until, .. } = *self;
        let wanted = QueryNeeds { log, hashes, limit, until };
        let (paths, shared) = (self.paths.clone(), Arc::clone(&self.shared));
        builder.spawn_blocking(move || {
            if !shared.options.each {
                return analyse(&scan, wanted, &paths, &shared).map_err(DataFusionError::from);
            }
            for path in &paths {
                let capture = Some(path.display().to_string());
                let sent = Arc::new(AtomicU64::new(0));
                let scan = Scan { capture, sent, ..scan.clone() };
                if scan.is_done(&shared) {
                    break;
                }
                analyse(&scan, wanted, std::slice::from_ref(path), &shared)?;
            }
            Ok(())
        });
        builder.build()
    }
}

/// Takes the rows of the analysis, and is its output.
#[derive(Clone, Debug)]
struct Scan {
    to: Rows,
    schema: SchemaRef,
    fields: Vec<Field>,
    /// The name of the capture, where each is analysed alone.
    capture: Option<String>,
    /// The query wants no more.
    done: Arc<AtomicBool>,
    /// Rows that the query has.
    sent: Arc<AtomicU64>,
    /// Rows of this analysis that the query has already, from an earlier one that ended too soon.
    skip: u64,
}

impl Scan {
    /// Whether no more rows are wanted.
    fn is_done(&self, shared: &Shared) -> bool {
        let closed = self.done.load(Ordering::Relaxed) || self.to.is_closed();
        closed || shared.stop.load(Ordering::Relaxed)
    }
}

/// What a query wants of captures.
#[derive(Clone, Copy, Debug)]
struct QueryNeeds {
    log: &'static str,
    hashes: bool,
    limit: Option<usize>,
    until: Option<i64>,
}

/// Logs whose rows are written when their connection ends, or before: once all that began before a time have ended, no
/// row of that time comes any more.
const OF_CONNECTIONS: [&str; 6] = ["conn", "dns", "http", "smtp", "ssh", "ssl"];
/// Packets of captures may be a little out of order: the analysis goes on for this time. Packets that are later still are
/// found as well, but cost a second analysis.
const OUT_OF_ORDER: i64 = 60_000_000_000;

/// Ends an analysis once no more rows up to a time can come from packets in order.
struct StopTime {
    /// In nanoseconds; packets before it may have rows that the query wants.
    time: i64,
    /// Packet time of the next look at all connections, and how long to wait after it.
    next: i64,
    wait: i64,
}

impl StopTime {
    fn new(micros: i64) -> Self {
        let time = micros.saturating_add(1).saturating_mul(1_000);
        Self { time, next: time.saturating_add(OUT_OF_ORDER), wait: 1_000_000_000 }
    }

    /// Whether the batch was the last one that is needed.
    fn is_reached(&mut self, batch: &gannet_capture::Batch<'_>, engine: &Engine) -> bool {
        let last = batch.len().checked_sub(1).and_then(|last| batch.get(last));
        let Some(now) = last.map(|packet| packet.time.as_nanos()).filter(|now| *now >= self.next)
        else {
            return false;
        };
        self.next = now.saturating_add(self.wait);
        self.wait = (self.wait * 2).min(OUT_OF_ORDER);
        engine.earliest_open().is_some_and(|earliest| earliest.as_nanos() > self.time)
    }

    /// Whether a batch behind that has packets up to the time.
    fn has_late(&self, batch: &gannet_capture::Batch<'_>) -> bool {
        batch.iter().any(|packet| packet.time.as_nanos() <= self.time)
    }
}

pub(crate) fn is_stdin(path: &Path) -> bool {
    path == Path::new(STDIN)
}

/// How an analysis ended.
enum Ended {
    /// With all rows that the query wants.
    Complete,
    /// At the time that the query wants rows up to; but packets of before come later in the capture.
    TooSoon,
}

fn analyse(
    scan: &Scan,
    wanted: QueryNeeds,
    paths: &[PathBuf],
    shared: &Shared,
) -> Result<(), Error> {
    // Standard input is not read a second time.
    let is_early = OF_CONNECTIONS.contains(&wanted.log) && !paths.iter().any(|path| is_stdin(path));
    let until = wanted.until.filter(|_| is_early).map(StopTime::new);
    if matches!(run(scan, wanted, until, paths, shared)?, Ended::TooSoon) {
        // An analysis of the same packets has the same rows in the same order, however many threads there are: the
        // first ones are those that the query has.
        let scan = Scan { skip: scan.sent.load(Ordering::Relaxed), ..scan.clone() };
        run(&scan, wanted, None, paths, shared)?;
    }
    Ok(())
}

fn run(
    scan: &Scan,
    wanted: QueryNeeds,
    mut until: Option<StopTime>,
    paths: &[PathBuf],
    shared: &Shared,
) -> Result<Ended, Error> {
    let QueryNeeds { log, hashes, limit, .. } = wanted;
    let access = gannet_capture::Options { access: Access::Read, ..Default::default() };
    let mut stream = match paths {
        [path] if is_stdin(path) => Stream::from_reader(shared.stdin()?),
        _ if paths.iter().any(|path| is_stdin(path)) => {
            let error = Error::input("-: standard input and other captures are not one table");
            let hint = "mergecap, or the captures in files, make them one stream";
            return Err(error.with_hint(Some(hint.to_owned())));
        }
        _ => Stream::open(paths, access).map_err(|e| Error::input(e.to_string()))?,
    };
    for error in stream.skipped() {
        shared.warn(format!("skipped {error}"));
    }
    let mut options = shared.options.analysis.clone();
    options.threads = match limit {
        Some(limit) if limit <= FEW => 1,
        // One thread knows all connections.
        _ if until.is_some() => 1,
        _ => shared.options.threads,
    };
    options.logs.dir = None;
    options.logs.format = Format::Packed;
    options.logs.selection = Selection::of([log]);
    // Optional columns are in the fields where the query names them.
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
    // Packets behind the end are read for their times only.
    let mut is_over = false;
    while !is_done() {
        let batch = match stream.next_batch() {
            Ok(Some(batch)) => batch,
            Ok(None) => break,
            // What was read before is right; the damage is reported with the answer.
            Err(error) => {
                shared.damaged(error.to_string());
                continue;
            }
        };
        if is_over {
            if until.as_ref().is_some_and(|until| until.has_late(&batch)) {
                return Ok(Ended::TooSoon);
            }
            continue;
        }
        shared.analysed(batch.len());
        let analysed = engine.batch(&batch);
        // Rows that are few wait in buffers: a query with a small limit gets them now.
        let flushed = if threads > 1 { Ok(()) } else { engine.flush() };
        if let Err(error) = analysed.and(flushed)
            && !is_done()
        {
            return Err(Error::new(crate::ErrorKind::Run, error.to_string()));
        }
        is_over = until.as_mut().is_some_and(|until| until.is_reached(&batch, &engine));
    }
    if is_done() && threads <= 1 {
        return Ok(Ended::Complete);
    }
    match engine.finish() {
        Err(error) if !is_done() => Err(Error::new(crate::ErrorKind::Run, error.to_string())),
        Ok((statistics, _)) => {
            if let Some(text) = statistics.checksum_warning() {
                shared.warn(text);
            }
            Ok(Ended::Complete)
        }
        Err(_) => Ok(Ended::Complete),
    }
}

impl Output for Scan {
    fn open(&self, _: &gannet_log::Options) -> Box<dyn PackedWriter> {
        Box::new(Collect { scan: self.clone(), batch: None, target: FIRST, skip: self.skip })
    }
}

struct Collect {
    scan: Scan,
    batch: Option<Batch>,
    /// Rows at which the batch is handed on.
    target: usize,
    /// Rows to come that the query has already.
    skip: u64,
}

impl PackedWriter for Collect {
    fn write(&mut self, _: &PackedStream<'_>, rows: PackedRows<'_>) -> io::Result<()> {
        for row in rows {
            if let Some(left) = self.skip.checked_sub(1) {
                self.skip = left;
                continue;
            }
            let Scan { schema, fields, .. } = &self.scan;
            let batch = self.batch.get_or_insert_with(|| {
                let wanted = |field: &Field| schema.index_of(field.name).is_ok();
                Batch::of_columns(fields, TimeUnit::Microseconds, self.target, wanted)
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

impl Collect {
    fn send(&mut self) -> io::Result<()> {
        let Some(batch) = self.batch.take() else { return Ok(()) };
        self.target = (self.target * 2).min(MOST);
        let Scan { schema, capture, .. } = &self.scan;
        let batch = fit(&batch.finish()?, schema, capture.as_deref()).map_err(io::Error::other)?;
        self.scan.sent.fetch_add(batch.num_rows() as u64, Ordering::Relaxed);
        self.scan.to.blocking_send(Ok(batch)).map_err(|_| {
            self.scan.done.store(true, Ordering::Relaxed);
            io::Error::other("the query needs no more rows")
        })
    }
}
