//! Worker threads that process a stream of packets and return results in order.
//!
//! ```text
//!            ┌─▶ work ─┐
//! stream ────┼─▶ work ─┼──▶ blocks, in the order of the stream
//!            └─▶ work ─┘
//! ```
//!
//! A [`WorkerPool`] is a pool of worker threads that includes the caller's. An idle worker reads the next batches of
//! the stream, keeps their packets without a copy and does its [`Work`] on them; the caller receives the results as
//! [`Block`]s in order. Results that need no order, such as sums, stay with each worker until the end.

use std::collections::BTreeMap;
use std::io;
use std::ops::Deref;
use std::ops::DerefMut;
use std::sync::Arc;
use std::sync::Condvar;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;

use gannet_capture::Batch;
use gannet_capture::Error;
use gannet_capture::OwnedBatch;
use gannet_capture::PageReadahead;
use gannet_capture::Stream;
use gannet_workers::OnPanic;
use gannet_workers::Workers;

/// Maximum number of blocks per thread that are read and not returned yet; above it, reading pauses.
const MAX_AHEAD: u64 = 8;
/// Number of blocks that one of several threads reads at a time: only one thread reads at a time, and the wait of
/// others costs more than reading a block.
const BLOCKS_PER_READ: u64 = 2;

/// Number of times that a thread polls the stream before it sleeps, for about 200 µs, in which another thread reads a
/// batch. Sleeping and waking takes nearly as long.
const POLLS: u32 = 4_000;

/// Expected number of batches from one read of a thread to its next one: 1 with one thread; with two threads, which
/// alternate, the batches of both; 0 for more threads, whose reads are irregular.
pub fn batches_between_reads(threads: usize) -> usize {
    match threads {
        ..=1 => 1,
        2 => 2 * BLOCKS_PER_READ as usize,
        _ => 0,
    }
}

/// The work on each batch; each thread has its own worker.
pub trait Work: Send + 'static {
    /// The result for a batch.
    type Output: Default + Send + 'static;

    /// Processes a batch; `output` may have the result of an earlier one, which is to be replaced.
    fn batch(&mut self, batch: Batch<'_>, output: &mut Self::Output);
}

/// A batch and its result.
#[derive(Debug, Default)]
pub struct Block<M> {
    /// Packets of the batch.
    pub packets: OwnedBatch,
    /// Result for the batch.
    pub output: M,
}

/// A pool of worker threads that process a stream.
#[derive(Debug)]
pub struct WorkerPool<W: Work> {
    shared: Arc<Shared<W::Output>>,
    own_worker: Option<W>,
    threads: Workers<W>,
    /// Number of the next block to return.
    next: u64,
}

#[derive(Debug)]
struct Shared<M> {
    source: Mutex<Source>,
    /// Whether a worker reads from the source.
    is_being_read: CacheAligned<AtomicBool>,
    reorder: Mutex<ReorderBuffer<M>>,
    changed: Condvar,
    /// Readahead of the stream's files, with several threads.
    pages: PageReadahead,
    /// Maximum number of blocks that are read and not returned yet.
    ahead: u64,
    /// Number of blocks that a thread reads at a time.
    blocks_per_read: u64,
}

/// A value on its own cache lines, so that polling it does not slow down writers of other fields.
#[derive(Debug, Default)]
#[repr(align(128))]
struct CacheAligned<T>(T);

/// Exclusive access to the stream for reading.
struct Reading<'a> {
    source: MutexGuard<'a, Source>,
    is_being_read: &'a AtomicBool,
}

impl Deref for Reading<'_> {
    type Target = Source;

    fn deref(&self) -> &Source {
        &self.source
    }
}

impl DerefMut for Reading<'_> {
    fn deref_mut(&mut self) -> &mut Source {
        &mut self.source
    }
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        self.is_being_read.store(false, Ordering::Release);
    }
}

#[derive(Debug)]
struct Source {
    stream: Stream,
    /// Number of blocks read.
    read: u64,
    ended: bool,
}

#[derive(Debug)]
struct ReorderBuffer<M> {
    /// Completed blocks by number.
    done: BTreeMap<u64, Result<Block<M>, Error>>,
    /// Number of blocks that are read, or reserved to be read.
    started: u64,
    /// Number of blocks returned to the caller.
    returned: u64,
    /// Number of all blocks, once it is known.
    total: Option<u64>,
    /// Blocks for reuse.
    spare: Vec<Block<M>>,
    stopped: bool,
    /// Number of threads that wait for `changed`.
    waiting: usize,
    progress: Progress,
}

/// Progress of reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Number of packets read.
    pub packets: u64,
    /// Number of bytes read from the files on disk.
    pub bytes: u64,
    /// Size of all files in bytes; `None` if unknown.
    pub total: Option<u64>,
}

impl Progress {
    /// The progress of a stream.
    pub fn of(stream: &Stream) -> Self {
        Self { packets: stream.packets(), bytes: stream.bytes_done(), total: stream.bytes_total() }
    }
}

/// Result of an attempt to process blocks.
enum Attempt {
    Done,
    QueueFull,
    Ended,
}

impl<W: Work> WorkerPool<W> {
    /// Starts the workers: one thread less than `threads`, because the caller's is one of them.
    ///
    /// # Errors
    /// If the system cannot start a thread.
    pub fn start(
        mut stream: Stream,
        threads: usize,
        mut worker: impl FnMut() -> W,
    ) -> io::Result<Self> {
        let reorder = ReorderBuffer {
            done: BTreeMap::new(),
            started: 0,
            returned: 0,
            total: None,
            spare: Vec::new(),
            stopped: false,
            waiting: 0,
            progress: Progress::default(),
        };
        let mut pages = PageReadahead::default();
        if threads > 1 {
            stream.set_batch_packets(gannet_capture::BATCH_PACKETS);
            pages = stream.share_pages();
        }
        let shared = Arc::new(Shared {
            source: Mutex::new(Source { stream, read: 0, ended: false }),
            reorder: Mutex::new(reorder),
            changed: Condvar::new(),
            pages,
            is_being_read: CacheAligned::default(),
            ahead: MAX_AHEAD * threads.max(1) as u64,
            blocks_per_read: if threads > 1 { BLOCKS_PER_READ } else { 1 },
        });
        let mut pool =
            Self { shared, own_worker: Some(worker()), threads: Workers::default(), next: 0 };
        for _ in 1..threads {
            let (shared, mut work) = (Arc::clone(&pool.shared), worker());
            let run = move || {
                // No thread waits for one that has panicked.
                let _guard = OnPanic(|| shared.stop());
                shared.run(&mut work);
                work
            };
            pool.threads.start("pipeline", run)?;
        }
        Ok(pool)
    }

    /// Returns the next block; `None` after the last one.
    ///
    /// # Errors
    /// Those of [`Stream::next_batch`], in order with the blocks; the next call continues.
    ///
    /// # Panics
    /// If another thread has panicked.
    pub fn next_block(&mut self) -> Result<Option<Block<W::Output>>, Error> {
        loop {
            let mut reorder = self.shared.reorder();
            if let Some(block) = reorder.done.remove(&self.next) {
                self.next += 1;
                reorder.returned += 1;
                self.shared.notify(reorder);
                return block.map(Some);
            }
            if reorder.total.is_some_and(|total| self.next >= total) {
                return Ok(None);
            }
            if reorder.stopped {
                drop(reorder);
                // The pool was finished, or a worker panicked.
                self.threads.join();
                return Ok(None);
            }
            drop(reorder);
            let Some(own_worker) = &mut self.own_worker else { return Ok(None) };
            if matches!(self.shared.read_and_work(own_worker), Attempt::Done) {
                continue;
            }
            let reorder = self.shared.reorder();
            let waits = reorder.total.is_none_or(|total| self.next < total);
            if waits && !reorder.done.contains_key(&self.next) && !reorder.stopped {
                self.shared.wait(reorder);
            }
        }
    }

    /// Returns a block for reuse of its memory.
    pub fn recycle(&self, mut block: Block<W::Output>) {
        block.packets.clear();
        let mut reorder = self.shared.reorder();
        if (reorder.spare.len() as u64) < self.shared.ahead {
            reorder.spare.push(block);
        }
    }

    /// Progress of reading.
    pub fn progress(&self) -> Progress {
        self.shared.reorder().progress
    }

    /// Ends all work; returns the workers with their results, that of the caller first.
    pub fn finish(&mut self) -> Vec<W> {
        self.shared.stop();
        let mut all: Vec<W> = self.own_worker.take().into_iter().collect();
        all.extend(self.threads.join());
        all
    }
}

impl<W: Work> Drop for WorkerPool<W> {
    fn drop(&mut self) {
        self.shared.stop();
    }
}

impl<M: Default + Send + 'static> Shared<M> {
    fn run<W: Work<Output = M>>(&self, work: &mut W) {
        loop {
            match self.read_and_work(work) {
                Attempt::Done => {}
                Attempt::Ended => return,
                Attempt::QueueFull => {
                    let reorder = self.reorder();
                    if reorder.started - reorder.returned >= self.ahead && !reorder.stopped {
                        self.wait(reorder);
                    }
                }
            }
        }
    }

    /// Reads batches, unless too many blocks are not returned yet, and processes them.
    fn read_and_work<W: Work<Output = M>>(&self, work: &mut W) -> Attempt {
        let mut spare = {
            let mut reorder = self.reorder();
            if reorder.stopped || reorder.total.is_some() {
                return Attempt::Ended;
            }
            let capacity = self
                .ahead
                .saturating_sub(reorder.started - reorder.returned)
                .min(self.blocks_per_read);
            if capacity == 0 {
                return Attempt::QueueFull;
            }
            reorder.started += capacity;
            let from = reorder.spare.len().saturating_sub(capacity as usize);
            let mut spare = reorder.spare.split_off(from);
            spare.resize_with(capacity as usize, Block::default);
            spare
        };
        let mut source = self.source();
        let first = source.read;
        let mut blocks = Vec::with_capacity(spare.len());
        while !source.ended
            && let Some(mut block) = spare.pop()
        {
            match source.stream.next_batch() {
                Ok(Some(batch)) => {
                    block.packets.keep(&batch);
                    blocks.push(Ok(block));
                }
                Ok(None) => source.ended = true,
                Err(error) => blocks.push(Err(error)),
            }
        }
        source.read += blocks.len() as u64;
        let total = source.ended.then_some(source.read);
        let progress = Progress::of(&source.stream);
        drop(source);
        self.pages.prepare();
        for block in blocks.iter_mut().flatten() {
            work.batch(block.packets.batch(), &mut block.output);
        }
        let read_and_work = if blocks.is_empty() { Attempt::Ended } else { Attempt::Done };
        let mut reorder = self.reorder();
        reorder.done.extend((first..).zip(blocks));
        reorder.total = reorder.total.or(total);
        if progress.packets >= reorder.progress.packets {
            reorder.progress = progress;
        }
        self.notify(reorder);
        read_and_work
    }
}

impl<M> Shared<M> {
    /// Waits for exclusive access to the stream. It polls, because sleeping and waking would take longer; and it polls
    /// a flag instead of the lock, which is next to data that the reading thread writes.
    fn source(&self) -> Reading<'_> {
        let is_being_read = &self.is_being_read.0;
        let source = (0..POLLS).find_map(|_| {
            if !is_being_read.load(Ordering::Relaxed)
                && let Ok(source) = self.source.try_lock()
            {
                return Some(source);
            }
            std::hint::spin_loop();
            None
        });
        // Sleep after polling. A mutex poisoned by a panic of another worker is still valid.
        let source =
            source.unwrap_or_else(|| self.source.lock().unwrap_or_else(PoisonError::into_inner));
        is_being_read.store(true, Ordering::Relaxed);
        Reading { source, is_being_read }
    }

    /// Ends all work.
    fn stop(&self) {
        self.reorder().stopped = true;
        self.changed.notify_all();
    }

    fn reorder(&self) -> MutexGuard<'_, ReorderBuffer<M>> {
        self.reorder.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a change.
    fn wait(&self, mut reorder: MutexGuard<'_, ReorderBuffer<M>>) {
        reorder.waiting += 1;
        let mut reorder = self.changed.wait(reorder).unwrap_or_else(PoisonError::into_inner);
        reorder.waiting -= 1;
    }

    /// Wakes waiting threads.
    fn notify(&self, reorder: MutexGuard<'_, ReorderBuffer<M>>) {
        let waiting = reorder.waiting;
        drop(reorder);
        if waiting > 0 {
            self.changed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use gannet_base::Time;
    use gannet_capture::Format;
    use gannet_capture::LinkType;
    use gannet_capture::Packet;
    use gannet_capture::Reader;
    use gannet_capture::WriteOptions;
    use gannet_capture::Writer;

    use super::*;

    /// Sums the bytes of packets in the worker, and returns their numbers.
    #[derive(Default)]
    struct Sum(u64);

    impl Work for Sum {
        type Output = Vec<u64>;

        fn batch(&mut self, batch: Batch<'_>, output: &mut Vec<u64>) {
            output.clear();
            for packet in batch {
                self.0 += packet.data.len() as u64;
                output.push(packet.number);
            }
        }
    }

    fn capture(packets: u64) -> Vec<u8> {
        let path = std::env::temp_dir().join(format!(
            "gannet-pool-{}-{:?}",
            std::process::id(),
            std::thread::current().id()
        ));
        let mut writer = Writer::create(&path, WriteOptions::default()).unwrap();
        for number in 1..=packets {
            let data = vec![7; number as usize % 90];
            let packet = Packet {
                time: Time::from_secs(number as i64),
                wire_len: data.len() as u32,
                link_type: LinkType::RAW,
                interface: 0,
                format: Format::Pcap,
                number,
                data: &data,
            };
            writer.write(&packet).unwrap();
        }
        writer.finish().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        bytes
    }

    fn stream(bytes: &[u8]) -> Stream {
        let input = Box::new(io::Cursor::new(bytes.to_vec()));
        Stream::from_reader(Reader::from_read(input, "test").unwrap())
    }

    #[test]
    fn blocks_are_in_order_and_sums_are_complete() {
        let bytes = capture(30_000);
        for threads in 1..5 {
            let mut pool = WorkerPool::start(stream(&bytes), threads, Sum::default).unwrap();
            let mut next = 1;
            while let Some(block) = pool.next_block().unwrap() {
                assert_eq!(block.output.len(), block.packets.batch().len());
                for number in &block.output {
                    assert_eq!(*number, next);
                    next += 1;
                }
                pool.recycle(block);
            }
            assert_eq!(next, 30_001, "{threads} threads");
            assert_eq!(pool.progress().packets, 30_000);
            let sum: u64 = pool.finish().iter().map(|worker| worker.0).sum();
            assert_eq!(sum, (1..=30_000).map(|n| n % 90).sum::<u64>());
        }
    }

    #[test]
    fn errors_are_in_order_with_blocks() {
        let mut bytes = capture(5_000);
        bytes.truncate(bytes.len() - 3);
        let mut pool = WorkerPool::start(stream(&bytes), 3, Sum::default).unwrap();
        let (mut packets, mut errors) = (0, 0);
        loop {
            match pool.next_block() {
                Ok(Some(block)) => packets += block.output.len(),
                Ok(None) => break,
                Err(_) => errors += 1,
            }
        }
        assert_eq!((packets, errors), (4_999, 1));
    }

    #[test]
    fn a_dropped_pool_ends() {
        let bytes = capture(30_000);
        let mut pool = WorkerPool::start(stream(&bytes), 3, Sum::default).unwrap();
        assert!(pool.next_block().unwrap().is_some());
    }

    struct Panics;

    impl Work for Panics {
        type Output = ();

        fn batch(&mut self, _: Batch<'_>, (): &mut ()) {
            if std::thread::current().name() == Some("pipeline") {
                panic!("on purpose");
            }
        }
    }

    #[test]
    fn a_panic_is_resumed_in_the_caller() {
        let bytes = capture(30_000);
        let all = move || {
            let mut pool = WorkerPool::start(stream(&bytes), 2, || Panics).unwrap();
            while pool.next_block().unwrap().is_some() {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        };
        assert!(std::thread::spawn(all).join().is_err());
    }
}
