//! An analysis in a thread of its own.

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
use crate::output::Batches;
use crate::output::Owner;
use crate::unanswered::check_answered;

/// Batches that wait for the caller at the most.
const WAITING: usize = 2;
/// Captures of fewer bytes are analysed by one thread.
const SMALL: u64 = 4 << 20;
/// Batches of packets after which a task asks whether its connections have ended.
const ASK_EVERY: u64 = 64;

/// Rows of a log.
#[derive(Clone, Debug)]
pub struct LogBatch {
    /// The log.
    pub log: &'static str,
    /// Its rows.
    pub rows: RecordBatch,
}

/// The next item of an analysis.
#[derive(Debug)]
pub enum Next {
    /// Rows of a log.
    Batch(LogBatch),
    /// A capture could not be read to its end; the analysis continues with the others.
    Damage(gannet_capture::Error),
    /// Nothing has come in the time that was given.
    Nothing,
    /// All rows have been returned.
    End(Box<Statistics>),
}

pub(crate) enum Item {
    Batch(LogBatch),
    Damage(gannet_capture::Error),
    End(Result<Ended, Error>),
}

/// The end of an analysis: its statistics and remarks.
type Ended = (Box<Statistics>, Vec<String>);

/// An analysis in a thread of its own, whose rows are taken from here. It ends when this is dropped.
///
/// At any time two batches wait, one for each log is being filled, and the caller has one: each has up to
/// [`Settings::batch_rows`] rows, and about four megabytes.
#[derive(Debug)]
pub struct Scan {
    from: Receiver<Item>,
    stop: Arc<AtomicBool>,
    is_over: bool,
    remarks: Vec<String>,
}

/// What a task adds to an analysis.
pub(crate) struct Part {
    pub(crate) owner: Owner,
    /// Number of the packet behind the last that is the task's own.
    pub(crate) end: u64,
    /// The files of those packets: of others, damage is not reported.
    pub(crate) files: Vec<PathBuf>,
}

impl Scan {
    /// Begins. The captures are opened in the thread of the analysis.
    ///
    /// # Errors
    /// When the settings are not valid.
    pub fn start(
        settings: &Settings,
        open: impl FnOnce() -> Result<Stream, Error> + Send + 'static,
    ) -> Result<Self, Error> {
        Self::with_part(settings, open, None)
    }

    pub(crate) fn with_part(
        settings: &Settings,
        open: impl FnOnce() -> Result<Stream, Error> + Send + 'static,
        part: Option<Part>,
    ) -> Result<Self, Error> {
        let mut options = settings.options()?;
        let (to, from) = sync_channel(WAITING);
        let owner = part.as_ref().map(|part| part.owner.clone());
        let batches =
            Batches { to: to.clone(), rows: settings.batch_rows, times: settings.times, owner };
        options.logs.format = Format::Packed;
        options.logs.outputs = vec![Arc::new(batches)];
        if let Some(part) = &part {
            options.connection_observer = Some(part.owner.connections.clone());
        }
        let stop = Arc::new(AtomicBool::new(false));
        let stops = Arc::clone(&stop);
        let threads = settings.threads;
        let work = move || {
            let end = analyse(options, threads, open, part.as_ref(), (&to, &stops));
            // A receiver that is gone needs no end.
            let _ = to.send(Item::End(end));
        };
        thread::Builder::new().name("gannet".into()).spawn(work)?;
        Ok(Self { from, stop, is_over: false, remarks: Vec::new() })
    }

    /// What comes next, waiting for it no longer than this.
    ///
    /// # Errors
    /// When a capture cannot be opened, or the analysis fails; that is the end of it.
    pub fn next(&mut self, wait: Duration) -> Result<Next, Error> {
        if self.is_over {
            return Ok(Next::End(Box::default()));
        }
        match self.from.recv_timeout(wait) {
            Ok(Item::Batch(batch)) => Ok(Next::Batch(batch)),
            Ok(Item::Damage(error)) => Ok(Next::Damage(error)),
            Err(RecvTimeoutError::Timeout) => Ok(Next::Nothing),
            Ok(Item::End(end)) => {
                self.is_over = true;
                let (statistics, remarks) = end?;
                self.remarks = remarks;
                Ok(Next::End(statistics))
            }
            // The thread panicked, which its message says.
            Err(RecvTimeoutError::Disconnected) => {
                self.is_over = true;
                Err(io::Error::other("its thread ended").into())
            }
        }
    }

    /// A sentence for each link type for which the filter has no answer; complete at the end.
    pub fn remarks(&self) -> &[String] {
        &self.remarks
    }
}

impl Drop for Scan {
    fn drop(&mut self) {
        // The thread sees either this, or that its channel is closed.
        self.stop.store(true, Ordering::Relaxed);
    }
}

impl Part {
    /// Whether this task reports the damage of a file.
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
    part: Option<&Part>,
    (to, stop): (&SyncSender<Item>, &AtomicBool),
) -> Result<Ended, Error> {
    let mut stream = open()?;
    // Clones share the counters of packets without an answer.
    let filter = options.filter.clone();
    let is_small = stream.bytes_total().is_some_and(|bytes| bytes < SMALL);
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
    let mut failed = Ok(());
    while !stop.load(Ordering::Relaxed) {
        match stream.next_batch() {
            Ok(Some(batch)) => {
                failed = engine.batch(&batch);
                let next = batch.get(0).map_or(0, |first| first.number + batch.len() as u64);
                batches += 1;
                if let Some(Part { owner: Owner { connections, .. }, end, .. }) = part
                    && next >= *end
                    && (batches.is_multiple_of(ASK_EVERY) || connections.live() == 0)
                {
                    failed = failed.and_then(|()| engine.flush());
                    if connections.live() == 0 {
                        break;
                    }
                }
                if failed.is_err() {
                    break;
                }
            }
            Ok(None) => break,
            Err(error) => {
                let is_reported = part.is_none_or(|part| part.reports(&error));
                if is_reported && to.send(Item::Damage(error)).is_err() {
                    break;
                }
            }
        }
    }
    let finished = engine.finish();
    failed?;
    let statistics = Box::new(finished?.0);
    let remarks = match &filter {
        Some(filter) => check_answered(filter, statistics.packets)?,
        None => Vec::new(),
    };
    Ok((statistics, remarks))
}
