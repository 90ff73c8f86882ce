//! Several threads at one stream of packets, whose work comes back in order.
//!
//! ```text
//!            ┌─▶ work ─┐
//! stream ────┼─▶ work ─┼──▶ blocks, in the order of the stream
//!            └─▶ work ─┘
//! ```
//!
//! A [`WorkerPool`] is a pool of worker threads that includes the caller's. An idle worker takes the next
//! batch of the stream, shares its packets (without a copy) and does its [`Work`] on them; the
//! caller receives the results as [`Block`]s in order. Results that need no order, such as sums,
//! stay with each worker until the end.

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

/// Blocks for each thread that are read and not yet taken; beyond, reading pauses.
const AHEAD: u64 = 8;
/// Blocks that one of several threads reads at a time: as reading is for one at a time, others wait
/// for it, and waiting costs more than a block does.
const AT_ONCE: u64 = 2;

/// How often a thread polls the stream before it sleeps: for some two hundred microseconds, in
/// which another one reads a batch. Sleeping and waking takes nearly as long.
const ASKED: u32 = 4_000;

/// After how many batches a thread of this many is likely to read again: 1 alone, 2 for two that
/// take turns. 0 for more threads, whose turns are irregular.
pub fn next_turn(threads: usize) -> usize {
    match threads {
        ..=1 => 1,
        2 => 2 * AT_ONCE as usize,
        _ => 0,
    }
}

/// The work on each batch; each thread has a worker of its own.
pub trait Work: Send + 'static {
    /// What becomes of a batch.
    type Output: Default + Send + 'static;

    /// Works on a batch; `made` may hold the results of an earlier one.
    fn batch(&mut self, batch: Batch<'_>, output: &mut Self::Output);
}

/// A batch and what became of it.
#[derive(Debug, Default)]
pub struct Block<M> {
    /// Its packets.
    pub packets: OwnedBatch,
    /// What became of them.
    pub output: M,
}

/// Threads at work on a stream.
#[derive(Debug)]
pub struct WorkerPool<W: Work> {
    shared: Arc<Shared<W::Output>>,
    own: Option<W>,
    threads: Workers<W>,
    next: u64,
}

#[derive(Debug)]
struct Shared<M> {
    source: Mutex<Source>,
    /// Whether a worker is reading from it.
    is_read: OwnLines<AtomicBool>,
    reorder: Mutex<ReorderBuffer<M>>,
    changed: Condvar,
    /// Of the stream's files, where there are several threads.
    pages: PageReadahead,
    ahead: u64,
    at_once: u64,
}

/// A value on cache lines of its own, so that polling it does not disturb writers of other fields.
#[derive(Debug, Default)]
#[repr(align(128))]
struct OwnLines<T>(T);

/// The stream, while one thread reads from it.
struct Reading<'a> {
    source: MutexGuard<'a, Source>,
    is_read: &'a AtomicBool,
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
        self.is_read.store(false, Ordering::Release);
    }
}

#[derive(Debug)]
struct Source {
    stream: Stream,
    /// Blocks read.
    read: u64,
    ended: bool,
}

#[derive(Debug)]
struct ReorderBuffer<M> {
    done: BTreeMap<u64, Result<Block<M>, Error>>,
    /// Blocks that are read or may be.
    begun: u64,
    taken: u64,
    /// Number of all blocks, when it is known.
    total: Option<u64>,
    spare: Vec<Block<M>>,
    stopped: bool,
    /// Threads that wait for a change.
    waiting: usize,
    progress: Progress,
}

/// How far reading has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Packets read.
    pub packets: u64,
    /// Bytes read of the files on disk.
    pub bytes: u64,
    /// Total number of bytes; `None` if unknown.
    pub total: Option<u64>,
}

impl Progress {
    /// Of a stream.
    pub fn of(stream: &Stream) -> Self {
        Self { packets: stream.packets(), bytes: stream.bytes_done(), total: stream.bytes_total() }
    }
}

/// What came of trying to do a block.
enum Attempt {
    Did,
    NoRoom,
    Ended,
}

impl<W: Work> WorkerPool<W> {
    /// Starts the workers: one thread less than `threads`, since the caller's counts.
    ///
    /// # Errors
    /// Where the system gives no thread.
    pub fn start(
        mut stream: Stream,
        threads: usize,
        mut worker: impl FnMut() -> W,
    ) -> io::Result<Self> {
        let reorder = ReorderBuffer {
            done: BTreeMap::new(),
            begun: 0,
            taken: 0,
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
            is_read: OwnLines::default(),
            ahead: AHEAD * threads.max(1) as u64,
            at_once: if threads > 1 { AT_ONCE } else { 1 },
        });
        let mut pool = Self { shared, own: Some(worker()), threads: Workers::default(), next: 0 };
        for _ in 1..threads {
            let (shared, mut work) = (Arc::clone(&pool.shared), worker());
            let run = move || {
                // No thread waits for one that has panicked.
                let _guard = OnPanic(|| shared.stop());
                shared.work_on(&mut work);
                work
            };
            pool.threads.start("pipeline", run)?;
        }
        Ok(pool)
    }

    /// The next block; `None` after the last.
    ///
    /// # Errors
    ///
    /// As [`Stream::next_batch`], in its position among the blocks; the next call continues.
    ///
    /// # Panics
    /// Where another thread did.
    pub fn next_block(&mut self) -> Result<Option<Block<W::Output>>, Error> {
        loop {
            let mut reorder = self.shared.reorder();
            if let Some(block) = reorder.done.remove(&self.next) {
                self.next += 1;
                reorder.taken += 1;
                self.shared.tell(reorder);
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
            let Some(own) = &mut self.own else { return Ok(None) };
            if matches!(self.shared.turn(own), Attempt::Did) {
                continue;
            }
            let reorder = self.shared.reorder();
            let waits = reorder.total.is_none_or(|total| self.next < total);
            if waits && !reorder.done.contains_key(&self.next) && !reorder.stopped {
                self.shared.wait(reorder);
            }
        }
    }

    /// A block's memory may be used again.
    pub fn give_back(&self, mut block: Block<W::Output>) {
        block.packets.clear();
        let mut reorder = self.shared.reorder();
        if (reorder.spare.len() as u64) < self.shared.ahead {
            reorder.spare.push(block);
        }
    }

    /// How far reading has come.
    pub fn progress(&self) -> Progress {
        self.shared.reorder().progress
    }

    /// Ends all work; returns the workers with their results, the caller's first.
    pub fn finish(&mut self) -> Vec<W> {
        self.shared.stop();
        let mut all: Vec<W> = self.own.take().into_iter().collect();
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
    fn work_on<W: Work<Output = M>>(&self, work: &mut W) {
        loop {
            match self.turn(work) {
                Attempt::Did => {}
                Attempt::Ended => return,
                Attempt::NoRoom => {
                    let reorder = self.reorder();
                    if reorder.begun - reorder.taken >= self.ahead && !reorder.stopped {
                        self.wait(reorder);
                    }
                }
            }
        }
    }

    /// Reads some batches, if there is room for them, and works on them.
    fn turn<W: Work<Output = M>>(&self, work: &mut W) -> Attempt {
        let mut spare = {
            let mut reorder = self.reorder();
            if reorder.stopped || reorder.total.is_some() {
                return Attempt::Ended;
            }
            let room = self.ahead.saturating_sub(reorder.begun - reorder.taken).min(self.at_once);
            if room == 0 {
                return Attempt::NoRoom;
            }
            reorder.begun += room;
            let from = reorder.spare.len().saturating_sub(room as usize);
            let mut spare = reorder.spare.split_off(from);
            spare.resize_with(room as usize, Block::default);
            spare
        };
        let mut source = self.source();
        let first = source.read;
        let mut found = Vec::with_capacity(spare.len());
        while !source.ended
            && let Some(mut block) = spare.pop()
        {
            match source.stream.next_batch() {
                Ok(Some(batch)) => {
                    block.packets.keep(&batch);
                    found.push(Ok(block));
                }
                Ok(None) => source.ended = true,
                Err(error) => found.push(Err(error)),
            }
        }
        source.read += found.len() as u64;
        let total = source.ended.then_some(source.read);
        let progress = Progress::of(&source.stream);
        drop(source);
        self.pages.prepare();
        for block in found.iter_mut().flatten() {
            work.batch(block.packets.batch(), &mut block.output);
        }
        let turn = if found.is_empty() { Attempt::Ended } else { Attempt::Did };
        let mut reorder = self.reorder();
        reorder.done.extend((first..).zip(found));
        reorder.total = reorder.total.or(total);
        if progress.packets >= reorder.progress.packets {
            reorder.progress = progress;
        }
        self.tell(reorder);
        turn
    }
}

impl<M> Shared<M> {
    /// The stream, once no other worker reads from it. It polls, since sleeping and waking would
    /// take longer; and it polls a flag, not the lock, which is next to data that its owner writes.
    fn source(&self) -> Reading<'_> {
        let is_read = &self.is_read.0;
        let source = (0..ASKED).find_map(|_| {
            if !is_read.load(Ordering::Relaxed)
                && let Ok(source) = self.source.try_lock()
            {
                return Some(source);
            }
            std::hint::spin_loop();
            None
        });
        // After polling this often it sleeps; a panic of another worker changes nothing here.
        let source =
            source.unwrap_or_else(|| self.source.lock().unwrap_or_else(PoisonError::into_inner));
        is_read.store(true, Ordering::Relaxed);
        Reading { source, is_read }
    }

    /// Ends all work.
    fn stop(&self) {
        self.reorder().stopped = true;
        self.changed.notify_all();
    }

    fn reorder(&self) -> MutexGuard<'_, ReorderBuffer<M>> {
        self.reorder.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until something has changed.
    fn wait(&self, mut reorder: MutexGuard<'_, ReorderBuffer<M>>) {
        reorder.waiting += 1;
        let mut reorder = self.changed.wait(reorder).unwrap_or_else(PoisonError::into_inner);
        reorder.waiting -= 1;
    }

    /// Wakes waiting workers, if there are any.
    fn tell(&self, reorder: MutexGuard<'_, ReorderBuffer<M>>) {
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

    /// Sums packets' bytes by itself, and notes their numbers for the caller.
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
    fn blocks_come_in_order_and_sums_are_whole() {
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
                pool.give_back(block);
            }
            assert_eq!(next, 30_001, "{threads} threads");
            assert_eq!(pool.progress().packets, 30_000);
            let sum: u64 = pool.finish().iter().map(|worker| worker.0).sum();
            assert_eq!(sum, (1..=30_000).map(|n| n % 90).sum::<u64>());
        }
    }

    #[test]
    fn damage_comes_in_its_place() {
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
    fn a_crew_that_is_left_ends() {
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
    fn a_panic_goes_on_in_the_caller() {
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
