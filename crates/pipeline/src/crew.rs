//! Several threads at one stream of packets, whose work comes back in order.
//!
//! ```text
//!            ┌─▶ work ─┐
//! stream ────┼─▶ work ─┼──▶ blocks, in the order of the stream
//!            └─▶ work ─┘
//! ```
//!
//! A [`Crew`] is as many threads as were asked for, the caller's being one. Whoever has nothing to do
//! takes the next batch of the stream, keeps its packets (shared, not copied) and does its [`Work`] on
//! them; the caller gets one [`Block`] after the other as if it had done all of it alone. What need
//! not be in order, sums for instance, stays with each worker until the end.

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
use std::thread::JoinHandle;

use gannet_capture::Batch;
use gannet_capture::Error;
use gannet_capture::Kept;
use gannet_capture::Stream;
use gannet_capture::Tending;

/// Blocks for each thread that are read and not yet taken; at more, nobody reads on.
const AHEAD: u64 = 8;
/// Blocks that one of several threads reads at a time: as reading is for one at a time, others wait
/// for it, and waiting costs more than a block does.
const AT_ONCE: u64 = 2;

/// How often a thread asks for the stream before it sleeps: for some two hundred microseconds, in which
/// another one reads what it takes at once. To sleep and to be woken takes nearly as long.
const ASKED: u32 = 4_000;

/// How many batches later a thread of so many is likely to read again: where one alone reads the next one, and
/// two take turns. 0 of more threads, whose turns come as they may.
pub fn next_turn(threads: usize) -> usize {
    match threads {
        ..=1 => 1,
        2 => 2 * AT_ONCE as usize,
        _ => 0,
    }
}

/// What is done to each batch, by each thread with a worker of its own.
pub trait Work: Send + 'static {
    /// What becomes of a batch.
    type Made: Default + Send + 'static;

    /// Works on a batch; `made` may have been used for another one before.
    fn batch(&mut self, batch: Batch<'_>, made: &mut Self::Made);
}

/// A batch and what became of it.
#[derive(Debug, Default)]
pub struct Block<M> {
    /// Its packets.
    pub packets: Kept,
    /// What became of them.
    pub made: M,
}

/// Threads at work on a stream.
#[derive(Debug)]
pub struct Crew<W: Work> {
    shared: Arc<Shared<W::Made>>,
    own: Option<W>,
    threads: Vec<JoinHandle<W>>,
    next: u64,
}

#[derive(Debug)]
struct Shared<M> {
    source: Mutex<Source>,
    /// Whether somebody reads from it.
    is_read: Apart<AtomicBool>,
    desk: Mutex<Desk<M>>,
    changed: Condvar,
    /// Of the stream's files, where there are several threads.
    pages: Tending,
    ahead: u64,
    at_once: u64,
}

/// Something with lines of the cache of its own: who asks for it again and again takes no other line from
/// those who write there.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Apart<T>(T);

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
struct Desk<M> {
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
    /// Bytes read, as they lie on disk.
    pub bytes: u64,
    /// Bytes that there are; `None` if nobody knows.
    pub total: Option<u64>,
}

impl Progress {
    /// Of a stream.
    pub fn of(stream: &Stream) -> Self {
        Self { packets: stream.packets(), bytes: stream.bytes_done(), total: stream.bytes_total() }
    }
}

/// What came of trying to do a block.
enum Turn {
    Did,
    NoRoom,
    Ended,
}

impl<W: Work> Crew<W> {
    /// Starts so many threads less one; the caller's is among them.
    ///
    /// # Errors
    /// Where the system gives no thread.
    pub fn start(
        mut stream: Stream,
        threads: usize,
        mut worker: impl FnMut() -> W,
    ) -> io::Result<Self> {
        let desk = Desk {
            done: BTreeMap::new(),
            begun: 0,
            taken: 0,
            total: None,
            spare: Vec::new(),
            stopped: false,
            waiting: 0,
            progress: Progress::default(),
        };
        let mut pages = Tending::default();
        if threads > 1 {
            stream.set_batch_packets(gannet_capture::BATCH_PACKETS);
            pages = stream.tend();
        }
        let shared = Arc::new(Shared {
            source: Mutex::new(Source { stream, read: 0, ended: false }),
            desk: Mutex::new(desk),
            changed: Condvar::new(),
            pages,
            is_read: Apart::default(),
            ahead: AHEAD * threads.max(1) as u64,
            at_once: if threads > 1 { AT_ONCE } else { 1 },
        });
        let mut crew = Self { shared, own: Some(worker()), threads: Vec::new(), next: 0 };
        for _ in 1..threads {
            let (shared, mut work) = (Arc::clone(&crew.shared), worker());
            let run = move || {
                let _last = Last(&shared);
                shared.work_on(&mut work);
                work
            };
            crew.threads.push(std::thread::Builder::new().name("pipeline".into()).spawn(run)?);
        }
        Ok(crew)
    }

    /// The next block; `None` after the last.
    ///
    /// # Errors
    /// As [`Stream::next_batch`], in its place among the blocks; the next call goes on.
    ///
    /// # Panics
    /// Where another thread did.
    pub fn next_block(&mut self) -> Result<Option<Block<W::Made>>, Error> {
        loop {
            let mut desk = self.shared.desk();
            if let Some(block) = desk.done.remove(&self.next) {
                self.next += 1;
                desk.taken += 1;
                self.shared.tell(desk);
                return block.map(Some);
            }
            if desk.total.is_some_and(|total| self.next >= total) {
                return Ok(None);
            }
            if desk.stopped {
                drop(desk);
                // Either this crew was finished, or somebody panicked.
                self.join();
                return Ok(None);
            }
            drop(desk);
            let Some(own) = &mut self.own else { return Ok(None) };
            if matches!(self.shared.turn(own), Turn::Did) {
                continue;
            }
            let desk = self.shared.desk();
            let waits = desk.total.is_none_or(|total| self.next < total);
            if waits && !desk.done.contains_key(&self.next) && !desk.stopped {
                self.shared.wait(desk);
            }
        }
    }

    /// A block's memory may be used again.
    pub fn give_back(&self, mut block: Block<W::Made>) {
        block.packets.clear();
        let mut desk = self.shared.desk();
        if (desk.spare.len() as u64) < self.shared.ahead {
            desk.spare.push(block);
        }
    }

    /// How far reading has come.
    pub fn progress(&self) -> Progress {
        self.shared.desk().progress
    }

    /// Ends all work; the workers with what they kept, the caller's first.
    pub fn finish(&mut self) -> Vec<W> {
        self.stop();
        let mut all: Vec<W> = self.own.take().into_iter().collect();
        all.extend(self.join());
        all
    }

    fn stop(&self) {
        self.shared.desk().stopped = true;
        self.shared.changed.notify_all();
    }

    /// The workers of threads that end; panics go on here.
    fn join(&mut self) -> Vec<W> {
        let joined = self.threads.drain(..).map(JoinHandle::join);
        joined
            .map(|worker| worker.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    }
}

impl<W: Work> Drop for Crew<W> {
    fn drop(&mut self) {
        self.stop();
        for thread in self.threads.drain(..) {
            // It has nothing to tell any more.
            let _ = thread.join();
        }
    }
}

/// Stops everybody where a thread panics, so that nobody waits for it.
struct Last<'a, M>(&'a Shared<M>);

impl<M> Drop for Last<'_, M> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.desk().stopped = true;
            self.0.changed.notify_all();
        }
    }
}

impl<M: Default + Send + 'static> Shared<M> {
    fn work_on<W: Work<Made = M>>(&self, work: &mut W) {
        loop {
            match self.turn(work) {
                Turn::Did => {}
                Turn::Ended => return,
                Turn::NoRoom => {
                    let desk = self.desk();
                    if desk.begun - desk.taken >= self.ahead && !desk.stopped {
                        self.wait(desk);
                    }
                }
            }
        }
    }

    /// Reads some batches, if there is room for them, and works on them.
    fn turn<W: Work<Made = M>>(&self, work: &mut W) -> Turn {
        let mut spare = {
            let mut desk = self.desk();
            if desk.stopped || desk.total.is_some() {
                return Turn::Ended;
            }
            let room = self.ahead.saturating_sub(desk.begun - desk.taken).min(self.at_once);
            if room == 0 {
                return Turn::NoRoom;
            }
            desk.begun += room;
            let from = desk.spare.len().saturating_sub(room as usize);
            let mut spare = desk.spare.split_off(from);
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
        self.pages.see_to();
        for block in found.iter_mut().flatten() {
            work.batch(block.packets.batch(), &mut block.made);
        }
        let turn = if found.is_empty() { Turn::Ended } else { Turn::Did };
        let mut desk = self.desk();
        desk.done.extend((first..).zip(found));
        desk.total = desk.total.or(total);
        if progress.packets >= desk.progress.packets {
            desk.progress = progress;
        }
        self.tell(desk);
        turn
    }
}

impl<M> Shared<M> {
    /// The stream, once nobody reads from it: soon, so that to sleep and be woken would take longer than
    /// to ask again. What is asked is not the lock itself, which is next to what its owner writes.
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
        // Who has asked so often sleeps; and a panic of another one changes nothing here.
        let source =
            source.unwrap_or_else(|| self.source.lock().unwrap_or_else(PoisonError::into_inner));
        is_read.store(true, Ordering::Relaxed);
        Reading { source, is_read }
    }

    fn desk(&self) -> MutexGuard<'_, Desk<M>> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until something has changed.
    fn wait(&self, mut desk: MutexGuard<'_, Desk<M>>) {
        desk.waiting += 1;
        let mut desk = self.changed.wait(desk).unwrap_or_else(PoisonError::into_inner);
        desk.waiting -= 1;
    }

    /// Tells those who wait, if there are any, that something has.
    fn tell(&self, desk: MutexGuard<'_, Desk<M>>) {
        let waiting = desk.waiting;
        drop(desk);
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
        type Made = Vec<u64>;

        fn batch(&mut self, batch: Batch<'_>, made: &mut Vec<u64>) {
            made.clear();
            for packet in batch {
                self.0 += packet.data.len() as u64;
                made.push(packet.number);
            }
        }
    }

    fn capture(packets: u64) -> Vec<u8> {
        let path = std::env::temp_dir().join(format!(
            "gannet-crew-{}-{:?}",
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
            let mut crew = Crew::start(stream(&bytes), threads, Sum::default).unwrap();
            let mut next = 1;
            while let Some(block) = crew.next_block().unwrap() {
                assert_eq!(block.made.len(), block.packets.batch().len());
                for number in &block.made {
                    assert_eq!(*number, next);
                    next += 1;
                }
                crew.give_back(block);
            }
            assert_eq!(next, 30_001, "{threads} threads");
            assert_eq!(crew.progress().packets, 30_000);
            let sum: u64 = crew.finish().iter().map(|worker| worker.0).sum();
            assert_eq!(sum, (1..=30_000).map(|n| n % 90).sum::<u64>());
        }
    }

    #[test]
    fn damage_comes_in_its_place() {
        let mut bytes = capture(5_000);
        bytes.truncate(bytes.len() - 3);
        let mut crew = Crew::start(stream(&bytes), 3, Sum::default).unwrap();
        let (mut packets, mut errors) = (0, 0);
        loop {
            match crew.next_block() {
                Ok(Some(block)) => packets += block.made.len(),
                Ok(None) => break,
                Err(_) => errors += 1,
            }
        }
        assert_eq!((packets, errors), (4_999, 1));
    }

    #[test]
    fn a_crew_that_is_left_ends() {
        let bytes = capture(30_000);
        let mut crew = Crew::start(stream(&bytes), 3, Sum::default).unwrap();
        assert!(crew.next_block().unwrap().is_some());
    }

    struct Panics;

    impl Work for Panics {
        type Made = ();

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
            let mut crew = Crew::start(stream(&bytes), 2, || Panics).unwrap();
            while crew.next_block().unwrap().is_some() {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        };
        assert!(std::thread::spawn(all).join().is_err());
    }
}
