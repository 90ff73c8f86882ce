//! The scheduler: assigns work to threads.
//!
//! Queues hold blocks for shards and rows for the merge. Shards are not bound to threads: an idle
//! thread processes the next block of a shard that no thread is working on, or merges, or waits if
//! all queues are empty. So no thread is idle while work is queued, and the number of threads is
//! the requested one. A thread takes the shard or the merge that it works on out of the scheduler
//! and puts it back afterwards.

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

/// If this many blocks are queued for a shard, the caller's thread processes blocks instead of
/// adding more.
const MAX_QUEUED: usize = 8;
/// It continues to add blocks while fewer than this are queued for another shard, whose thread
/// would soon be idle, …
const MIN_QUEUED: usize = 2;
/// … up to this queue length.
const MAX_QUEUED_WHILE_OTHERS_STARVE: usize = 2 * MAX_QUEUED;
/// Every thread has a home shard, whose memory is in the cache of its core. It leaves that shard if
/// another shard has this many more queued blocks.
const HOME_PREFERENCE: usize = 4;
/// If more bytes of rows are queued, merging takes precedence.
const URGENT_BYTES: usize = 256 << 10;
/// If more bytes of rows are unmerged, only the shard with the earliest pending row runs.
const MAX_UNMERGED_BYTES: usize = 4 << 20;
/// Maximum number of row buffers kept for reuse.
const MAX_SPARE: usize = 32;
/// Maximum number of row buffers given to a shard at a time.
const SPARE_PER_SHARD: usize = 4;

/// The scheduler, shared by all threads.
#[derive(Default)]
pub(crate) struct Shared {
    scheduler: Mutex<Scheduler>,
    change: Condvar,
}

/// Pending work.
#[derive(Default)]
pub(crate) struct Scheduler {
    /// The queues of the shards; the last one is that of the global shard.
    queues: Vec<ShardQueue>,
    /// Reports for the merge, each with the index of its queue.
    reports: Vec<(usize, Report)>,
    /// Bytes of rows in reports, and bytes of rows in the merge.
    bytes: (usize, usize),
    spare: Vec<Rows>,
    /// Whether the input has ended.
    ended: bool,
    /// Whether only the caller's thread may merge.
    merges_in_caller: bool,
    /// Whether the merge has a listener, which may be slower than the analysis.
    is_listening: bool,
    /// Set if a thread panicked, or if the results are not needed any more.
    stopped: bool,
    /// Number of working threads, and number of waiting threads.
    busy: usize,
    idle: usize,
    /// Results of the shards that have finished, and of the merge.
    results: Ended,
}

/// Final results of shards and merge.
#[derive(Default)]
pub(crate) struct Ended {
    pub(crate) connections: u64,
    pub(crate) state: State,
    /// `None` while a thread merges.
    pub(crate) merge: Option<Box<Merge>>,
    /// The first error of a log that was not yet returned.
    pub(crate) error: Option<io::Error>,
}

/// A shard and its queued blocks.
struct ShardQueue {
    /// `None` while a thread works on the shard.
    task: Option<Box<ShardTask>>,
    blocks: VecDeque<Arc<Block>>,
    /// All future rows of the shard have this key or a later one; `None` if no rows follow.
    until: Option<Key>,
}

/// A unit of work.
enum Task {
    Block(Box<ShardTask>, Arc<Block>),
    Close(Box<ShardTask>),
    Merge(Box<Merge>, Vec<(usize, Report)>, Vec<Option<Key>>),
}

/// The result of a task, with what the scheduler gets back.
enum Done {
    ShardTask(Box<ShardTask>),
    Ended(Box<ShardTask>),
    Merge(Box<Merge>, io::Result<()>),
}

impl Shared {
    /// A scheduler for these shards and the global shard.
    pub(crate) fn new(shards: impl Iterator<Item = ShardTask>, merge: Merge) -> Self {
        let queue = |task, until| ShardQueue { task, blocks: VecDeque::new(), until: Some(until) };
        let shards = shards.map(|task| queue(Some(Box::new(task)), Key::EARLIEST));
        // Before the end of input, the global shard's rows are reported before other shards reach
        // the same packet.
        let queues = shards.chain([queue(None, CLOSING)]).collect();
        let results = Ended { merge: Some(Box::new(merge)), ..Ended::default() };
        let scheduler = Scheduler { queues, results, ..Scheduler::default() };
        Self { scheduler: Mutex::new(scheduler), change: Condvar::new() }
    }

    /// Sets that the merge has a listener; `in_caller`: the listener is bound to the caller's
    /// thread, so only that thread merges.
    pub(crate) fn listen(&mut self, in_caller: bool) {
        let scheduler = self.scheduler.get_mut().unwrap_or_else(PoisonError::into_inner);
        (scheduler.is_listening, scheduler.merges_in_caller) = (true, in_caller);
    }

    fn lock(&self) -> MutexGuard<'_, Scheduler> {
        self.scheduler.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn notify(&self, scheduler: MutexGuard<'_, Scheduler>) {
        if scheduler.idle > 0 {
            drop(scheduler);
            self.change.notify_all();
        }
    }

    /// Adds a block for all shards, with the global shard's results for its packets. If queues are
    /// long, works until they are shorter. Returns the first error since the last call, and whether
    /// the analysis continues.
    pub(crate) fn add(&self, block: &Arc<Block>, global: &mut Shard) -> (io::Result<()>, bool) {
        let held = global.env.logs.collected_bytes() + global.env.deferred();
        let report =
            (held > 0 || global.env.logs.events.recorded() > 0).then(|| Report::take(global));
        let mut scheduler = self.lock();
        let shards = scheduler.queues.len().saturating_sub(1);
        if let Some(report) = report {
            scheduler.report(shards, report);
            global.env.logs.reuse(scheduler.spare());
        }
        for queue in scheduler.queues.iter_mut().take(shards) {
            queue.blocks.push_back(Arc::clone(block));
        }
        let is_congested = scheduler.is_congested(MAX_QUEUED) || scheduler.waits_for_caller();
        self.notify(scheduler);
        if is_congested {
            self.work(0, |scheduler| {
                !scheduler.is_congested(MAX_QUEUED / 2 + 1) && !scheduler.waits_for_caller()
            });
        }
        let mut scheduler = self.lock();
        (scheduler.results.error.take().map_or(Ok(()), Err), !scheduler.stopped)
    }

    /// Works until all added blocks are analyzed, then writes the complete rows.
    pub(crate) fn write_out(&self) -> io::Result<()> {
        self.work(0, Scheduler::is_quiet);
        let mut scheduler = self.lock();
        if let Some(merge) = &mut scheduler.results.merge {
            merge.write_out()?;
        }
        scheduler.results.error.take().map_or(Ok(()), Err)
    }

    /// Works until all added blocks are analyzed, then calls `work` with the logs.
    pub(crate) fn with_logs<T>(&self, work: impl FnOnce(&mut Logs) -> T) -> io::Result<Option<T>> {
        self.work(0, Scheduler::is_quiet);
        let mut scheduler = self.lock();
        let done = scheduler.results.merge.as_mut().map(|merge| work(merge.logs()));
        scheduler.results.error.take().map_or(Ok(done), Err)
    }

    /// Works until all added blocks are analyzed, then returns the sum of the shards' gauges.
    pub(crate) fn gauge(&self) -> Gauge {
        self.work(0, Scheduler::is_quiet);
        let mut gauge = Gauge::default();
        for task in self.lock().queues.iter_mut().filter_map(|queue| queue.task.as_mut()) {
            gauge.add(&Gauge::measure(task.shard()));
        }
        gauge
    }

    /// Ends the input and queues the global shard for closing.
    pub(crate) fn end(&self, global: ShardTask) {
        let mut scheduler = self.lock();
        scheduler.ended = true;
        if let Some(queue) = scheduler.queues.last_mut() {
            queue.task = Some(Box::new(global));
        }
        self.notify(scheduler);
    }

    /// Stops all threads, whatever is queued.
    pub(crate) fn stop(&self) {
        let mut scheduler = self.lock();
        scheduler.stopped = true;
        self.notify(scheduler);
    }

    /// Whether a thread panicked, or the results are not needed any more.
    pub(crate) fn is_stopped(&self) -> bool {
        self.lock().stopped
    }

    /// Works until `enough` holds or all work is done, preferably on the home shard.
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

    /// The final results, once all work is done.
    pub(crate) fn ended(&self) -> Ended {
        std::mem::take(&mut self.lock().results)
    }
}

impl Scheduler {
    /// Whether at least `min_length` blocks are queued for a shard, and [`MIN_QUEUED`] for every other shard
    /// unless the longest queue is full.
    fn is_congested(&self, min_length: usize) -> bool {
        let shards = self.queues.len().saturating_sub(1);
        let waiting = || self.queues.iter().take(shards).map(|queue| queue.blocks.len());
        let (longest, shortest) = (waiting().max().unwrap_or(0), waiting().min().unwrap_or(0));
        longest >= min_length
            && (shortest >= MIN_QUEUED || longest >= MAX_QUEUED_WHILE_OTHERS_STARVE)
    }

    /// Whether only the caller's thread merges, and the number of unmerged rows is urgent.
    fn waits_for_caller(&self) -> bool {
        self.merges_in_caller && self.bytes.0 >= URGENT_BYTES
    }

    /// Whether no work is queued or in progress.
    fn is_quiet(&self) -> bool {
        let is_queued = self.queues.iter().any(|queue| !queue.blocks.is_empty());
        !is_queued && self.busy == 0 && self.reports.is_empty()
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
        let from = self.spare.len().saturating_sub(SPARE_PER_SHARD);
        self.spare.split_off(from)
    }

    /// The next task for a thread with this home shard.
    fn next(&mut self, home: usize) -> Option<Task> {
        let may_merge = home == 0 || !self.merges_in_caller;
        let urgent = if self.bytes.0 >= URGENT_BYTES && may_merge { self.merge() } else { None };
        if urgent.is_none() && self.is_ahead_of_listener() {
            return None;
        }
        urgent
            .or_else(|| self.shard_task(home))
            .or_else(|| if may_merge { self.merge() } else { None })
    }

    /// Whether many events are queued for a listener: shards then wait until the merging thread is
    /// done.
    fn is_ahead_of_listener(&self) -> bool {
        self.is_listening
            && self.bytes.0 > MAX_UNMERGED_BYTES
            && (self.results.merge.is_none() || self.merges_in_caller)
    }

    fn merge(&mut self) -> Option<Task> {
        if self.reports.is_empty() {
            return None;
        }
        let merge = self.results.merge.take()?;
        let until = self.queues.iter().map(|queue| queue.until).collect();
        self.bytes = (0, self.bytes.0 + self.bytes.1);
        Some(Task::Merge(merge, std::mem::take(&mut self.reports), until))
    }

    fn shard_task(&mut self, home: usize) -> Option<Task> {
        let at = self.queue(home)?;
        let queue = self.queues.get_mut(at)?;
        let task = queue.task.take()?;
        Some(match queue.blocks.pop_front() {
            Some(block) => Task::Block(task, block),
            None => Task::Close(task),
        })
    }

    /// The shard whose block a thread with this home shard processes next.
    fn queue(&self, home: usize) -> Option<usize> {
        let is_ready = |queue: &ShardQueue| {
            let has_work = self.ended || !queue.blocks.is_empty();
            queue.task.is_some() && queue.until.is_some() && has_work
        };
        let queues = || self.queues.iter().enumerate();
        if self.bytes.0 + self.bytes.1 > MAX_UNMERGED_BYTES && self.busy > 0 {
            let behind = queues().filter_map(|(i, queue)| Some((queue.until?, i))).min()?.1;
            return self.queues.get(behind).is_some_and(is_ready).then_some(behind);
        }
        let ready = queues().filter(|(_, queue)| is_ready(queue));
        let (at, longest) = ready.max_by_key(|(_, l)| (l.blocks.len(), Reverse(l.until)))?;
        let stays = self.queues.get(home).is_some_and(|home| {
            let waiting = home.blocks.len();
            is_ready(home) && waiting > 0 && waiting + HOME_PREFERENCE > longest.blocks.len()
        });
        Some(if stays { home } else { at })
    }

    fn put_back(&mut self, done: Done) {
        match done {
            Done::ShardTask(mut task) => {
                let at = task.index();
                let is_waiting = self.queues.get(at).is_some_and(|queue| queue.blocks.is_empty());
                let mut until = None;
                if task.is_unreported() && is_waiting {
                    // Other shards must not wait for rows of a shard without blocks.
                    until = Some(task.reported());
                    self.report(at, Report::take(task.shard()));
                    task.shard().env.logs.reuse(self.spare());
                }
                if let Some(queue) = self.queues.get_mut(at) {
                    queue.until = until.or(queue.until);
                    queue.task = Some(task);
                }
            }
            Done::Ended(mut task) => {
                self.results.connections += task.shard().connections();
                self.results.state.add(&task.shard().evictor.report);
            }
            Done::Merge(mut merge, result) => {
                let (bytes, spare) = merge.bytes_and_spare();
                self.bytes.1 = bytes;
                let free = MAX_SPARE.saturating_sub(self.spare.len());
                self.spare.extend(spare.into_iter().take(free));
                self.results.merge = Some(merge);
                if let Err(error) = result {
                    self.results.error.get_or_insert(error);
                }
            }
        }
    }
}

impl Results for Shared {
    fn report(&self, index: usize, shard: &mut Shard, until: Option<Key>) {
        let report = Report::take(shard);
        let mut scheduler = self.lock();
        if let Some(queue) = scheduler.queues.get_mut(index) {
            queue.until = until;
        }
        scheduler.report(index, report);
        shard.env.logs.reuse(scheduler.spare());
        self.notify(scheduler);
    }
}

impl Task {
    fn run(self, shared: &Shared) -> Done {
        match self {
            Self::Block(mut task, block) => {
                task.process(&block, shared);
                Done::ShardTask(task)
            }
            Self::Close(mut task) => match task.close(shared) {
                true => Done::Ended(task),
                false => Done::ShardTask(task),
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
        let task = |index| ShardTask::new(index, Shard::new(Options::default(), Role::HostPairs));
        let merge = Merge::new(Logs::new(gannet_log::Options::default()), shards + 1);
        Shared::new((0..shards).map(task), merge)
    }

    fn global() -> Shard {
        Shard::new(Options::default(), Role::Global(Box::default()))
    }

    #[test]
    fn all_shards_and_the_global_one_end() {
        let (shared, mut global) = (scheduler(2), global());
        for _ in 0..3 * MAX_QUEUED {
            let (written, goes_on) = shared.add(&Arc::default(), &mut global);
            assert!(written.is_ok() && goes_on && !shared.lock().is_congested(MAX_QUEUED));
        }
        shared.end(ShardTask::new(2, global));
        std::thread::scope(|scope| {
            scope.spawn(|| shared.work(1, |_| false));
            shared.work(0, |_| false);
        });
        assert!(shared.lock().is_done() && shared.ended().merge.is_some());
    }

    #[test]
    fn more_blocks_are_queued_while_a_shard_has_few() {
        let shared = scheduler(2);
        let mut scheduler = shared.lock();
        let add = |scheduler: &mut Scheduler, shard: usize, count: usize| {
            scheduler.queues[shard].blocks.extend((0..count).map(|_| Arc::default()));
        };
        assert!(!scheduler.is_congested(MAX_QUEUED));
        add(&mut scheduler, 0, MAX_QUEUED);
        assert!(!scheduler.is_congested(MAX_QUEUED), "none for the other shard");
        add(&mut scheduler, 1, MIN_QUEUED);
        assert!(scheduler.is_congested(MAX_QUEUED) && !scheduler.is_congested(MAX_QUEUED + 1));
        scheduler.queues[1].blocks.pop_front();
        assert!(!scheduler.is_congested(MAX_QUEUED));
        add(&mut scheduler, 0, MAX_QUEUED_WHILE_OTHERS_STARVE - MAX_QUEUED);
        assert!(scheduler.is_congested(MAX_QUEUED), "too many for one of them");
    }

    #[test]
    fn a_thread_leaves_its_home_shard_for_one_that_is_far_behind() {
        let shared = scheduler(2);
        let mut scheduler = shared.lock();
        let queue = |scheduler: &Scheduler, home| scheduler.queue(home);
        assert_eq!(queue(&scheduler, 0), None, "no blocks");
        scheduler.queues[0].blocks.push_back(Arc::default());
        assert_eq!((queue(&scheduler, 0), queue(&scheduler, 1)), (Some(0), Some(0)));
        scheduler.queues[1].blocks.extend((0..HOME_PREFERENCE).map(|_| Arc::default()));
        assert_eq!((queue(&scheduler, 0), queue(&scheduler, 1)), (Some(0), Some(1)));
        scheduler.queues[1].blocks.push_back(Arc::default());
        assert_eq!(queue(&scheduler, 0), Some(1), "far behind");
        let away = scheduler.queues[1].task.take();
        assert_eq!(
            (queue(&scheduler, 0), queue(&scheduler, 1)),
            (Some(0), Some(0)),
            "somebody is at it"
        );
        // Too many rows are unmerged: only the shard that delays the merge runs.
        scheduler.queues[1].task = away;
        (scheduler.busy, scheduler.bytes) = (1, (MAX_UNMERGED_BYTES, 1));
        scheduler.queues[0].until = Some(Key { packet: 7, due: Time::MAX, tie: 0 });
        assert_eq!((queue(&scheduler, 0), queue(&scheduler, 1)), (Some(1), Some(1)));
        scheduler.queues[1].task = None;
        assert_eq!(queue(&scheduler, 0), None);
    }

    #[test]
    fn shards_wait_for_a_listener_that_is_behind() {
        let mut shared = scheduler(2);
        shared.listen(true);
        let mut scheduler = shared.lock();
        scheduler.queues[0].blocks.push_back(Arc::default());
        scheduler.reports.push((0, Report::default()));
        scheduler.bytes = (MAX_UNMERGED_BYTES + 1, 0);
        assert!(scheduler.next(1).is_none(), "the caller's thread merges");
        let merge = scheduler.next(0);
        assert!(matches!(merge, Some(Task::Merge(..))));
        scheduler.bytes.0 = MAX_UNMERGED_BYTES + 1;
        assert!(scheduler.next(0).is_none() && scheduler.next(1).is_none(), "until that is done");
        scheduler.bytes.0 = MAX_UNMERGED_BYTES;
        assert!(matches!(scheduler.next(1), Some(Task::Block(..))));
    }

    #[test]
    fn a_panic_stops_working_and_waiting_threads() {
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
        shared.lock().results.error = Some(io::Error::other("full"));
        assert!(shared.add(&Arc::default(), &mut global).0.is_err());
        assert!(shared.add(&Arc::default(), &mut global).0.is_ok());
    }
}
