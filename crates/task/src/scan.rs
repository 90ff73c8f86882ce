//! An analysis that runs in its own thread.

use std::io;
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::mpsc::SyncSender;
use std::sync::mpsc::sync_channel;
use std::thread;
use std::thread::available_parallelism;
use std::time::Duration;

use arrow_array::RecordBatch;
use gannet_capture::Stream;
use gannet_engine::Engine;
use gannet_engine::Options;
use gannet_engine::Statistics;
use gannet_log::Format;

use crate::Error;
use crate::Settings;
use crate::output::BatchOutput;
use crate::output::Ownership;
use crate::unanswered::check_answered;

/// Maximum number of batches queued for the caller.
const MAX_QUEUED: usize = 2;
/// Size in bytes below which captures are analysed by one thread.
const MAX_SINGLE_THREADED: u64 = 4 << 20;
/// Number of packet batches after which a task checks whether its connections have ended.
const CHECK_INTERVAL: u64 = 64;

/// Rows of a log.
#[derive(Clone, Debug)]
pub struct LogBatch {
    /// Name of the log.
    pub log: &'static str,
    /// The rows.
    pub rows: RecordBatch,
}

/// The next item of an analysis.
#[derive(Debug)]
pub enum Next {
    /// Rows of a log.
    Batch(LogBatch),
    /// A capture could not be read completely; the analysis continues with the others.
    Damage(gannet_capture::Error),
    /// The timeout has passed.
    Nothing,
    /// All rows have been returned.
    End(Box<Statistics>),
}

pub(crate) enum Item {
    Batch(LogBatch),
    Damage(gannet_capture::Error),
    End(Result<Outcome, Error>),
}

/// Result of an analysis: its statistics, and messages about the filter.
type Outcome = (Box<Statistics>, Vec<String>);

/// An analysis that runs in its own thread and returns rows. It ends when this is dropped.
///
/// At any time up to two batches are queued, one per log is being filled, and the caller has one. Each has up to
/// [`Settings::batch_rows`] rows and about 4 MiB.
#[derive(Debug)]
pub struct Scan {
    receiver: Receiver<Item>,
    stop: Arc<AtomicBool>,
    is_over: bool,
    remarks: Vec<String>,
}

/// The part of an analysis that a task is responsible for.
pub(crate) struct TaskScope {
    pub(crate) ownership: Ownership,
    /// Number of the packet after the task's last own packet.
    pub(crate) end: u64,
    /// The task's own files; damage of other files is not reported.
    pub(crate) files: Vec<PathBuf>,
}

impl Scan {
    /// Starts an analysis. `open` is called in the thread of the analysis.
    ///
    /// # Errors
    /// If the settings are not valid.
    pub fn start(
        settings: &Settings,
        open: impl FnOnce() -> Result<Stream, Error> + Send + 'static,
    ) -> Result<Self, Error> {
        Self::with_scope(settings, open, None)
    }

    pub(crate) fn with_scope(
        settings: &Settings,
        open: impl FnOnce() -> Result<Stream, Error> + Send + 'static,
        scope: Option<TaskScope>,
    ) -> Result<Self, Error> {
        let mut options = settings.options()?;
        let (sender, receiver) = sync_channel(MAX_QUEUED);
        let ownership = scope.as_ref().map(|scope| scope.ownership.clone());
        let batches = BatchOutput {
            sender: sender.clone(),
            max_rows: settings.batch_rows,
            times: settings.times,
            ownership,
        };
        options.logs.format = Format::Packed;
        options.logs.outputs = vec![Arc::new(batches)];
        if let Some(scope) = &scope {
            options.connection_observer = Some(scope.ownership.connections.clone());
        }
        let stop = Arc::new(AtomicBool::new(false));
        let stop_flag = Arc::clone(&stop);
        let threads = settings.threads;
        let work = move || {
            let end = analyse(options, threads, open, scope.as_ref(), (&sender, &stop_flag));
            // Sending fails if the `Scan` is dropped.
            let _ = sender.send(Item::End(end));
        };
        thread::Builder::new().name("gannet".into()).spawn(work)?;
        Ok(Self { receiver, stop, is_over: false, remarks: Vec::new() })
    }

    /// Returns the next item; waits for it at most this long.
    ///
    /// # Errors
    /// If a capture cannot be opened, or the analysis fails; the scan has ended then.
    pub fn next(&mut self, timeout: Duration) -> Result<Next, Error> {
        if self.is_over {
            return Ok(Next::End(Box::default()));
        }
        match self.receiver.recv_timeout(timeout) {
            Ok(Item::Batch(batch)) => Ok(Next::Batch(batch)),
            Ok(Item::Damage(error)) => Ok(Next::Damage(error)),
            Err(RecvTimeoutError::Timeout) => Ok(Next::Nothing),
            Ok(Item::End(end)) => {
                self.is_over = true;
                let (statistics, remarks) = end?;
                self.remarks = remarks;
                Ok(Next::End(statistics))
            }
            // The thread panicked; the panic hook has reported that.
            Err(RecvTimeoutError::Disconnected) => {
                self.is_over = true;
                Err(io::Error::other("its thread ended unexpectedly").into())
            }
        }
    }

    /// A message for each link type to which the filter does not apply; available after [`Next::End`].
    pub fn remarks(&self) -> &[String] {
        &self.remarks
    }
}

impl Drop for Scan {
    fn drop(&mut self) {
        // The thread detects either this flag or the closed channel.
        self.stop.store(true, Ordering::Relaxed);
    }
}

impl TaskScope {
    /// Whether the task reports an error of a file.
    fn reports(&self, error: &gannet_capture::Error) -> bool {
        use gannet_capture::Error as E;
        match error {
            E::NotACapture { file, .. }
            | E::Unsupported { file, .. }
            | E::Damaged { file, .. }
            | E::Cut { file, .. }
            | E::Io { file, .. } => self.files.contains(file),
            _ => true,
        }
    }
}

fn analyse(
    mut options: Options,
    threads: Option<NonZero<u8>>,
    open: impl FnOnce() -> Result<Stream, Error>,
    scope: Option<&TaskScope>,
    (sender, stop): (&SyncSender<Item>, &AtomicBool),
) -> Result<Outcome, Error> {
    let mut stream = open()?;
    // Clones share the counters of packets to which the filter does not apply.
    let filter = options.filter.clone();
    let is_small = stream.bytes_total().is_some_and(|bytes| bytes < MAX_SINGLE_THREADED);
    options.threads = match threads {
        Some(threads) => threads.get().into(),
        None if is_small => 1,
        None => available_parallelism().map_or(1, NonZero::get),
    };
    stream.set_unpack_threads(options.threads);
    if options.threads > 1 {
        stream.set_batch_packets(gannet_capture::BATCH_PACKETS);
    }
    let mut engine = Engine::new(options);
    let mut batches = 0_u64;
    let mut result = Ok(());
    while !stop.load(Ordering::Relaxed) {
        match stream.next_batch() {
            Ok(Some(batch)) => {
                result = engine.batch(&batch);
                let next = batch.get(0).map_or(0, |first| first.number + batch.len() as u64);
                batches += 1;
                if let Some(TaskScope { ownership: Ownership { connections, .. }, end, .. }) = scope
                    && next >= *end
                    && (batches.is_multiple_of(CHECK_INTERVAL) || connections.live() == 0)
                {
                    result = result.and_then(|()| engine.flush());
                    if connections.live() == 0 {
                        break;
                    }
                }
                if result.is_err() {
                    break;
                }
            }
            Ok(None) => break,
            Err(error) => {
                let is_reported = scope.is_none_or(|scope| scope.reports(&error));
                if is_reported && sender.send(Item::Damage(error)).is_err() {
                    break;
                }
            }
        }
    }
    let finished = engine.finish();
    result?;
    let statistics = Box::new(finished?.0);
    let remarks = match &filter {
        Some(filter) => check_answered(filter, statistics.packets)?,
        None => Vec::new(),
    };
    Ok((statistics, remarks))
}
