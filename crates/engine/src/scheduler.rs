//! The scheduler: which thread does what next.
//!
//! Blocks wait for shards, and rows for the merge. No shard is bound to a thread: an idle thread
//! takes the next block of a shard that no thread is working on, or merges, or waits if there is
//! nothing to do. So no thread is idle while there is work, and there are no more threads than
//! requested. The thread that works on a shard or the merge takes it out of the scheduler and puts
//! it back.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::Condvar;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;

use gannet_log::Key;
use gannet_log::Logs;
use gannet_log::Rows;

use crate::block::Block;
use crate::gauge::Gauge;
use crate::merge::Merge;
use crate::merge::Report;
use crate::shard::Shard;
use crate::shard::clock::CLOSING;
use crate::shard_task::Results;
use crate::shard_task::ShardTask;
use crate::state::State;

/// With this many blocks waiting for a shard, the caller's thread works on them instead of adding
/// more.
const BLOCKS: usize = 8;
/// It continues to add blocks while fewer than this wait for another shard, whose thread would soon
/// be idle, …
const FEW: usize = 2;
/// … up to this many.
const MOST_BLOCKS: usize = 2 * BLOCKS;
/// Every thread has a home shard, whose memory is in its core's cache. It leaves that shard if this
/// many more blocks wait for another.
const STAY: usize = 4;
/// Bytes of rows from which merging takes precedence.
const URGENT: usize = 256 << 10;
/// Bytes of unmerged rows from which only the shard with the earliest pending row runs.
const MOST: usize = 4 << 20;
/// Most chunks whose memory is kept for reuse.
const SPARE: usize = 32;
/// Most of these given to a shard at a time.
const SPARE_OF_SHARD: usize = 4;

/// The scheduler, shared by its threads.
#[derive(Default)]
pub(crate) struct Shared {
    scheduler: Mutex<Scheduler>,
    change: Condvar,
}

/// Pending work.
#[derive(Default)]
pub(crate) struct Scheduler {
    /// The shards, and finally the global shard.
    queues: Vec<ShardQueue>,
    /// Reports for the merge, with the index of their queue.
    reports: Vec<(usize, Report)>,
    /// Bytes of rows in reports, and in the merge.
    bytes: (usize, usize),
    spare: Vec<Rows>,
    /// Whether there are no more blocks.
    ended: bool,
    /// Whether the caller's thread alone merges.
    merges_in_caller: bool,
    /// Whether the merge has a listener, which may take longer than the analysis.
    is_listening: bool,
    /// Set when a thread panicked, or the results are not needed any more.
    stopped: bool,
    /// Numbers of working and waiting threads.
    busy: usize,
    idle: usize,
    /// Results of finished shards and of the merge.
    left: Ended,
}

/// The final state of shards and merge.
#[derive(Default)]
pub(crate) struct Ended {
    pub(crate) connections: u64,
    pub(crate) state: State,
    /// `None` while a thread is merging.
    pub(crate) merge: Option<Box<Merge>>,
    /// The first error of a log, until it is returned.
    pub(crate) error: Option<io::Error>,
}

/// A shard and its queue of blocks.
struct ShardQueue {
    /// `None` while a thread works on it.
    part: Option<Box<ShardTask>>,
    blocks: VecDeque<Arc<Block>>,
    /// All future rows have this key or a later one; `None` if none will come.
    until: Option<Key>,
}

/// A unit of work.
enum Task {
    Block(Box<ShardTask>, Arc<Block>),
    Close(Box<ShardTask>),
    Merge(Box<Merge>, Vec<(usize, Report)>, Vec<Option<Key>>),
}

/// The result of a task.
enum Done {
    ShardTask(Box<ShardTask>),
    Ended(Box<ShardTask>),
    Merge(Box<Merge>, io::Result<()>),
}

impl Shared {
    /// A scheduler for these shards and the global shard.
    pub(crate) fn new(shards: impl Iterator<Item = ShardTask>, merge: Merge) -> Self {
        let queue = |part, until| ShardQueue { part, blocks: VecDeque::new(), until: Some(until) };
        let shards = shards.map(|part| queue(Some(Box::new(part)), Key::EARLIEST));
        // Before the end, the global shard's rows are added before the shards reach the same
        // packet.
        let queues = shards.chain([queue(None, CLOSING)]).collect();
        let left = Ended { merge: Some(Box::new(merge)), ..Ended::default() };
        let scheduler = Scheduler { queues, left, ..Scheduler::default() };
        Self { scheduler: Mutex::new(scheduler), change: Condvar::new() }
    }

    /// The merge has a listener; `in_caller`: it is bound to the caller's thread, which alone merges then.
    pub(crate) fn listen(&mut self, in_caller: bool) {
        let scheduler = self.scheduler.get_mut().unwrap_or_else(PoisonError::into_inner);
        (scheduler.is_listening, scheduler.merges_in_caller) = (true, in_caller);
    }

    fn lock(&self) -> MutexGuard<'_, Scheduler> {
        self.scheduler.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, scheduler: MutexGuard<'_, Scheduler>) {
        if scheduler.idle > 0 {
            drop(scheduler);
            self.change.notify_all();
        }
    }

    /// Adds a block for all shards, with the global shard's results for its packets. If many blocks
    /// wait, works until they are fewer. Returns the first error since the last call, and whether
    /// work continues.
    pub(crate) fn add(&self, block: &Arc<Block>, global: &mut Shard) -> (io::Result<()>, bool) {
        let held = global.env.logs.collected_bytes() + global.env.deferred();
        let made = (held > 0 || global.env.logs.events.recorded() > 0).then(|| Report::of(global));
        let mut scheduler = self.lock();
        let shards = scheduler.queues.len().saturating_sub(1);
        if let Some(report) = made {
            scheduler.report(shards, report);
            global.env.logs.reuse(scheduler.spare());
        }
        for queue in scheduler.queues.iter_mut().take(shards) {
            queue.blocks.push_back(Arc::clone(block));
        }
        let has_enough = scheduler.has(BLOCKS) || scheduler.waits_for_caller();
        self.tell(scheduler);
        if has_enough {
            self.work(0, |scheduler| {
                !scheduler.has(BLOCKS / 2 + 1) && !scheduler.waits_for_caller()
            });
        }
        let mut scheduler = self.lock();
        (scheduler.left.error.take().map_or(Ok(()), Err), !scheduler.stopped)
    }

    /// Works until all added blocks are analysed, then writes the complete rows.
    pub(crate) fn write_out(&self) -> io::Result<()> {
        self.work(0, Scheduler::is_quiet);
        let mut scheduler = self.lock();
        if let Some(merge) = &mut scheduler.left.merge {
            merge.write_out()?;
        }
        scheduler.left.error.take().map_or(Ok(()), Err)
    }

    /// Works until all added blocks are analysed, then calls `work` with the logs.
    pub(crate) fn with_logs<T>(&self, work: impl FnOnce(&mut Logs) -> T) -> io::Result<Option<T>> {
        self.work(0, Scheduler::is_quiet);
        let mut scheduler = self.lock();
        let done = scheduler.left.merge.as_mut().map(|merge| work(merge.logs()));
        scheduler.left.error.take().map_or(Ok(done), Err)
    }

    /// Works until all added blocks are analysed, then sums up what the shards hold.
    pub(crate) fn gauge(&self) -> Gauge {
        self.work(0, Scheduler::is_quiet);
        let mut gauge = Gauge::default();
        for task in self.lock().queues.iter_mut().filter_map(|queue| queue.part.as_mut()) {
            gauge.add(&Gauge::of(task.shard()));
        }
        gauge
    }

    /// Ends the input; the global shard is closed like the others.
    pub(crate) fn end(&self, global: ShardTask) {
        let mut scheduler = self.lock();
        scheduler.ended = true;
        if let Some(queue) = scheduler.queues.last_mut() {
            queue.part = Some(Box::new(global));
        }
        self.tell(scheduler);
    }

    /// Stops all work, whatever is pending.
    pub(crate) fn stop(&self) {
        let mut scheduler = self.lock();
        scheduler.stopped = true;
        self.tell(scheduler);
    }

    /// Whether a thread panicked, or the results are not needed any more.
    pub(crate) fn is_stopped(&self) -> bool {
        self.lock().stopped
    }

    /// Works until `enough` or all is done, preferably on the home shard.
    pub(crate) fn work(&self, home: usize, enough: impl Fn(&Scheduler) -> bool) {
        let mut scheduler = self.lock();
        while !scheduler.stopped && !scheduler.is_done() && !enough(&scheduler) {
            let Some(task) = scheduler.next(home) else {
                scheduler.idle += 1;
                scheduler = self.change.wait(scheduler).unwrap_or_else(PoisonError::into_inner);
                scheduler.idle -= 1;
                continue;
            };
            scheduler.busy += 1;
            drop(scheduler);
            let done = task.run(self);
            scheduler = self.lock();
            scheduler.busy -= 1;
            scheduler.put_back(done);
            if scheduler.idle > 0 {
                self.change.notify_all();
            }
        }
    }

    /// The final state when all is done.
    pub(crate) fn ended(&self) -> Ended {
        std::mem::take(&mut self.lock().left)
    }
}

impl Scheduler {
    /// Whether this many blocks wait for a shard, and not [few](FEW) for another, unless there are
    /// too many.
    fn has(&self, many: usize) -> bool {
        let shards = self.queues.len().saturating_sub(1);
        let waiting = || self.queues.iter().take(shards).map(|queue| queue.blocks.len());
        let (most, least) = (waiting().max().unwrap_or(0), waiting().min().unwrap_or(0));
        most >= many && (least >= FEW || most >= MOST_BLOCKS)
    }

    /// Whether much is to be merged, which the caller's thread does alone.
    fn waits_for_caller(&self) -> bool {
        self.merges_in_caller && self.bytes.0 >= URGENT
    }

    /// Whether there is no work until more blocks come.
    fn is_quiet(&self) -> bool {
        let waits = self.queues.iter().any(|queue| !queue.blocks.is_empty());
        !waits && self.busy == 0 && self.reports.is_empty()
    }

    fn is_done(&self) -> bool {
        let ended = self.queues.iter().all(|queue| queue.until.is_none());
        ended && self.busy == 0 && self.reports.is_empty()
    }

    fn report(&mut self, queue: usize, report: Report) {
        self.bytes.0 += report.bytes();
        self.reports.push((queue, report));
    }

    fn spare(&mut self) -> Vec<Rows> {
        let from = self.spare.len().saturating_sub(SPARE_OF_SHARD);
        self.spare.split_off(from)
    }

    /// The next task of a thread with this home shard.
    fn next(&mut self, home: usize) -> Option<Task> {
        let may_merge = home == 0 || !self.merges_in_caller;
        let urgent = if self.bytes.0 >= URGENT && may_merge { self.merge() } else { None };
        if urgent.is_none() && self.is_ahead_of_listener() {
            return None;
        }
        urgent.or_else(|| self.part(home)).or_else(|| if may_merge { self.merge() } else { None })
    }

    /// Whether much waits for a listener: shards wait, too, until the thread that merges is done.
    fn is_ahead_of_listener(&self) -> bool {
        self.is_listening
            && self.bytes.0 > MOST
            && (self.left.merge.is_none() || self.merges_in_caller)
    }

    fn merge(&mut self) -> Option<Task> {
        if self.reports.is_empty() {
            return None;
        }
        let merge = self.left.merge.take()?;
        let until = self.queues.iter().map(|queue| queue.until).collect();
        self.bytes = (0, self.bytes.0 + self.bytes.1);
        Some(Task::Merge(merge, std::mem::take(&mut self.reports), until))
    }

    fn part(&mut self, home: usize) -> Option<Task> {
        let at = self.queue(home)?;
        let queue = self.queues.get_mut(at)?;
        let part = queue.part.take()?;
        Some(match queue.blocks.pop_front() {
            Some(block) => Task::Block(part, block),
            None => Task::Close(part),
        })
    }

    /// The next shard for a thread with this home shard.
    fn queue(&self, home: usize) -> Option<usize> {
        let is_ready = |queue: &ShardQueue| {
            let has_work = self.ended || !queue.blocks.is_empty();
            queue.part.is_some() && queue.until.is_some() && has_work
        };
        let queues = || self.queues.iter().enumerate();
        if self.bytes.0 + self.bytes.1 > MOST && self.busy > 0 {
            let behind = queues().filter_map(|(i, queue)| Some((queue.until?, i))).min()?.1;
            return self.queues.get(behind).is_some_and(is_ready).then_some(behind);
        }
        let ready = queues().filter(|(_, queue)| is_ready(queue));
        let (at, most) = ready.max_by_key(|(_, l)| (l.blocks.len(), Reverse(l.until)))?;
        let stays = self.queues.get(home).is_some_and(|home| {
            let waiting = home.blocks.len();
            is_ready(home) && waiting > 0 && waiting + STAY > most.blocks.len()
        });
        Some(if stays { home } else { at })
    }

    fn put_back(&mut self, done: Done) {
        match done {
            Done::ShardTask(mut part) => {
                let at = part.me();
                let is_waiting = self.queues.get(at).is_some_and(|queue| queue.blocks.is_empty());
                let mut until = None;
                if part.is_unreported() && is_waiting {
                    // Other shards must not wait for the rows of one that waits for blocks.
                    until = Some(part.reported());
                    self.report(at, Report::of(part.shard()));
                    part.shard().env.logs.reuse(self.spare());
                }
                if let Some(queue) = self.queues.get_mut(at) {
                    queue.until = until.or(queue.until);
                    queue.part = Some(part);
                }
            }
            Done::Ended(mut part) => {
                self.left.connections += part.shard().connections();
                self.left.state.add(&part.shard().evictor.report);
            }
            Done::Merge(mut merge, result) => {
                let (bytes, spare) = merge.rest();
                self.bytes.1 = bytes;
                let room = SPARE.saturating_sub(self.spare.len());
                self.spare.extend(spare.into_iter().take(room));
                self.left.merge = Some(merge);
                if let Err(error) = result {
                    self.left.error.get_or_insert(error);
                }
            }
        }
    }
}

impl Results for Shared {
    fn report(&self, part: usize, shard: &mut Shard, until: Option<Key>) {
        let report = Report::of(shard);
        let mut scheduler = self.lock();
        if let Some(queue) = scheduler.queues.get_mut(part) {
            queue.until = until;
        }
        scheduler.report(part, report);
        shard.env.logs.reuse(scheduler.spare());
        self.tell(scheduler);
    }
}

impl Task {
    fn run(self, shared: &Shared) -> Done {
        match self {
            Self::Block(mut part, block) => {
                part.take(&block, shared);
                Done::ShardTask(part)
            }
            Self::Close(mut part) => match part.close(shared) {
                true => Done::Ended(part),
                false => Done::ShardTask(part),
            },
            Self::Merge(mut merge, reports, until) => {
                let result = merge.merge(reports, &until);
                Done::Merge(merge, result)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gannet_base::Time;
    use gannet_log::Logs;
    use gannet_workers::OnPanic;

    use crate::Options;
    use crate::role::Role;

    fn scheduler(shards: usize) -> Shared {
        let part = |me| ShardTask::new(me, Shard::new(Options::default(), Role::HostPairs));
        let merge = Merge::new(Logs::new(gannet_log::Options::default()), shards + 1);
        Shared::new((0..shards).map(part), merge)
    }

    fn global() -> Shard {
        Shard::new(Options::default(), Role::Global(Box::default()))
    }

    #[test]
    fn all_shards_and_the_global_one_end() {
        let (shared, mut global) = (scheduler(2), global());
        for _ in 0..3 * BLOCKS {
            let (written, goes_on) = shared.add(&Arc::default(), &mut global);
            assert!(written.is_ok() && goes_on && !shared.lock().has(BLOCKS));
        }
        shared.end(ShardTask::new(2, global));
        std::thread::scope(|scope| {
            scope.spawn(|| shared.work(1, |_| false));
            shared.work(0, |_| false);
        });
        assert!(shared.lock().is_done() && shared.ended().merge.is_some());
    }

    #[test]
    fn there_are_more_blocks_while_a_part_has_few() {
        let shared = scheduler(2);
        let mut scheduler = shared.lock();
        let add = |scheduler: &mut Scheduler, part: usize, count: usize| {
            scheduler.queues[part].blocks.extend((0..count).map(|_| Arc::default()));
        };
        assert!(!scheduler.has(BLOCKS));
        add(&mut scheduler, 0, BLOCKS);
        assert!(!scheduler.has(BLOCKS), "none for the other part");
        add(&mut scheduler, 1, FEW);
        assert!(scheduler.has(BLOCKS) && !scheduler.has(BLOCKS + 1));
        scheduler.queues[1].blocks.pop_front();
        assert!(!scheduler.has(BLOCKS));
        add(&mut scheduler, 0, MOST_BLOCKS - BLOCKS);
        assert!(scheduler.has(BLOCKS), "too many for one of them");
    }

    #[test]
    fn a_thread_leaves_its_part_for_one_that_is_far_behind() {
        let shared = scheduler(2);
        let mut scheduler = shared.lock();
        let queue = |scheduler: &Scheduler, home| scheduler.queue(home);
        assert_eq!(queue(&scheduler, 0), None, "no blocks");
        scheduler.queues[0].blocks.push_back(Arc::default());
        assert_eq!((queue(&scheduler, 0), queue(&scheduler, 1)), (Some(0), Some(0)));
        scheduler.queues[1].blocks.extend((0..STAY).map(|_| Arc::default()));
        assert_eq!((queue(&scheduler, 0), queue(&scheduler, 1)), (Some(0), Some(1)));
        scheduler.queues[1].blocks.push_back(Arc::default());
        assert_eq!(queue(&scheduler, 0), Some(1), "far behind");
        let away = scheduler.queues[1].part.take();
        assert_eq!(
            (queue(&scheduler, 0), queue(&scheduler, 1)),
            (Some(0), Some(0)),
            "somebody is at it"
        );
        // Too many rows wait for the merge: only the shard that delays it runs.
        scheduler.queues[1].part = away;
        (scheduler.busy, scheduler.bytes) = (1, (MOST, 1));
        scheduler.queues[0].until = Some(Key { packet: 7, due: Time::MAX, tie: 0 });
        assert_eq!((queue(&scheduler, 0), queue(&scheduler, 1)), (Some(1), Some(1)));
        scheduler.queues[1].part = None;
        assert_eq!(queue(&scheduler, 0), None);
    }

    #[test]
    fn shards_wait_for_a_listener_that_is_behind() {
        let mut shared = scheduler(2);
        shared.listen(true);
        let mut scheduler = shared.lock();
        scheduler.queues[0].blocks.push_back(Arc::default());
        scheduler.reports.push((0, Report::default()));
        scheduler.bytes = (MOST + 1, 0);
        assert!(scheduler.next(1).is_none(), "the caller's thread merges");
        let merge = scheduler.next(0);
        assert!(matches!(merge, Some(Task::Merge(..))));
        scheduler.bytes.0 = MOST + 1;
        assert!(scheduler.next(0).is_none() && scheduler.next(1).is_none(), "until that is done");
        scheduler.bytes.0 = MOST;
        assert!(matches!(scheduler.next(1), Some(Task::Block(..))));
    }

    #[test]
    fn a_panic_stops_who_works_and_who_waits() {
        let shared = scheduler(2);
        std::thread::scope(|scope| {
            let panics = scope.spawn(|| {
                let _guard = OnPanic(|| shared.stop());
                panic!("for the test");
            });
            shared.work(0, |_| false);
            assert!(panics.join().is_err());
        });
        let (_, goes_on) = shared.add(&Arc::default(), &mut global());
        assert!(!goes_on);
    }

    #[test]
    fn an_error_is_reported_once() {
        let (shared, mut global) = (scheduler(1), global());
        shared.lock().left.error = Some(io::Error::other("full"));
        assert!(shared.add(&Arc::default(), &mut global).0.is_err());
        assert!(shared.add(&Arc::default(), &mut global).0.is_ok());
    }
}
