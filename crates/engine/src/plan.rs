//! What is to be done next, and by which thread.
//!
//! Blocks wait for parts, and rows for the merge. No thread has one of these for itself: whoever has
//! nothing to do takes the next block of a part that nobody is at, or merges, or waits if there is
//! nothing. So there are no more threads than were asked for, and none rests while there is work. A
//! part, and the merge, is taken out of the plan by who works on it, and put back.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::Condvar;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;

use gannet_log::Key;
use gannet_log::Rows;

use crate::block::Block;
use crate::merge::Merge;
use crate::merge::Report;
use crate::part::Part;
use crate::shard::Shard;
use crate::state::State;

/// Blocks that wait for a part, each of a batch of packets, from which on the caller's thread works on
/// them instead of adding more.
const BLOCKS: usize = 8;
/// It adds more nevertheless while fewer than these wait for another part, whose thread would soon have
/// nothing to do, …
const FEW: usize = 2;
/// … but no more than these.
const MOST_BLOCKS: usize = 2 * BLOCKS;
/// Every thread has a part whose memory its core has, and which it leaves if so many more blocks wait for
/// another.
const STAY: usize = 4;
/// Bytes of rows for which merging is more urgent than all else.
const URGENT: usize = 256 << 10;
/// Bytes of rows that wait to be merged, beyond which only the part goes on that is farthest behind.
const MOST: usize = 4 << 20;
/// Chunks of rows whose memory waits to be used again, at the most.
const SPARE: usize = 32;
/// Of these, so many go to a part at a time.
const SPARE_OF_PART: usize = 4;

/// No row of a packet has this key or a later one: those are of what is open in the end.
pub(crate) const CLOSING: Key = Key { packet: u64::MAX - 1, ..Key::EARLIEST };

/// The plan, and threads that wait for it to change.
#[derive(Default)]
pub(crate) struct Shared {
    plan: Mutex<Plan>,
    change: Condvar,
}

/// What there is to be done.
#[derive(Default)]
pub(crate) struct Plan {
    /// The parts, and in the end the hub.
    lanes: Vec<Lane>,
    /// For the merge, by lane.
    reports: Vec<(usize, Report)>,
    /// Bytes of rows in reports, and in the merge.
    bytes: (usize, usize),
    spare: Vec<Rows>,
    /// There will be no more blocks.
    ended: bool,
    /// Nothing is to be done any more: a thread has panicked, or nobody waits for what comes out.
    stopped: bool,
    /// Threads at work, and those that wait.
    busy: usize,
    idle: usize,
    /// Of parts that have ended, and of the merge.
    left: Ended,
}

/// The rest of parts and merge.
#[derive(Default)]
pub(crate) struct Ended {
    pub(crate) connections: u64,
    pub(crate) state: State,
    /// There while nobody merges.
    pub(crate) merge: Option<Box<Merge>>,
    /// The first error of a log, until somebody was told.
    pub(crate) error: Option<io::Error>,
}

/// A part and what waits for it.
struct Lane {
    /// There while nobody works on it.
    part: Option<Box<Part>>,
    blocks: VecDeque<Arc<Block>>,
    /// All rows to come have this key or a later one; `None` when none will come.
    until: Option<Key>,
}

/// One thing to do.
enum Task {
    Block(Box<Part>, Arc<Block>),
    Close(Box<Part>),
    Merge(Box<Merge>, Vec<(usize, Report)>, Vec<Option<Key>>),
}

/// What was done.
enum Done {
    Part(Box<Part>),
    Ended(Box<Part>),
    Merge(Box<Merge>, io::Result<()>),
}

impl Shared {
    /// A plan for these parts, and a hub.
    pub(crate) fn new(parts: impl Iterator<Item = Part>, merge: Merge) -> Self {
        let lane = |part, until| Lane { part, blocks: VecDeque::new(), until: Some(until) };
        let parts = parts.map(|part| lane(Some(Box::new(part)), Key::EARLIEST));
        // Before the end, what the hub has made is there before others get to the same packet.
        let lanes = parts.chain([lane(None, CLOSING)]).collect();
        let left = Ended { merge: Some(Box::new(merge)), ..Ended::default() };
        let plan = Plan { lanes, left, ..Plan::default() };
        Self { plan: Mutex::new(plan), change: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, plan: MutexGuard<'_, Plan>) {
        if plan.idle > 0 {
            drop(plan);
            self.change.notify_all();
        }
    }

    /// Adds a block for all parts, and what the hub has made of its packets. If many blocks wait
    /// then, the caller's thread works until they are fewer. Returns the first error since the last
    /// call, and whether work goes on.
    pub(crate) fn add(&self, block: &Arc<Block>, hub: &mut Shard) -> (io::Result<()>, bool) {
        let made = (hub.env.logs.held() + hub.env.deferred() > 0).then(|| Report::of(hub));
        let mut plan = self.lock();
        let parts = plan.lanes.len().saturating_sub(1);
        if let Some(report) = made {
            plan.report(parts, report);
            hub.env.logs.reuse(plan.spare());
        }
        for lane in plan.lanes.iter_mut().take(parts) {
            lane.blocks.push_back(Arc::clone(block));
        }
        let has_enough = plan.has(BLOCKS);
        self.tell(plan);
        if has_enough {
            self.work(0, |plan| !plan.has(BLOCKS / 2 + 1));
        }
        let mut plan = self.lock();
        (plan.left.error.take().map_or(Ok(()), Err), !plan.stopped)
    }

    /// Works until all blocks that were added are analysed, then writes what is complete.
    pub(crate) fn write_out(&self) -> io::Result<()> {
        self.work(0, Plan::is_quiet);
        let mut plan = self.lock();
        if let Some(merge) = &mut plan.left.merge {
            merge.write_out()?;
        }
        plan.left.error.take().map_or(Ok(()), Err)
    }

    /// What a part has made so far, of which everything to come is `until` or later.
    pub(crate) fn report(&self, part: usize, shard: &mut Shard, until: Option<Key>) {
        let report = Report::of(shard);
        let mut plan = self.lock();
        if let Some(lane) = plan.lanes.get_mut(part) {
            lane.until = until;
        }
        plan.report(part, report);
        shard.env.logs.reuse(plan.spare());
        self.tell(plan);
    }

    /// There are no more blocks, and the hub ends like a part.
    pub(crate) fn end(&self, hub: Part) {
        let mut plan = self.lock();
        plan.ended = true;
        if let Some(lane) = plan.lanes.last_mut() {
            lane.part = Some(Box::new(hub));
        }
        self.tell(plan);
    }

    /// Nothing more is to be done, whatever is left.
    pub(crate) fn stop(&self) {
        let mut plan = self.lock();
        plan.stopped = true;
        self.tell(plan);
    }

    /// Whether a thread has panicked, or nobody waits for what comes out.
    pub(crate) fn is_stopped(&self) -> bool {
        self.lock().stopped
    }

    /// Works until it is `enough` or all is done, at one of the parts rather than at others.
    pub(crate) fn work(&self, home: usize, enough: impl Fn(&Plan) -> bool) {
        let mut plan = self.lock();
        while !plan.stopped && !plan.is_done() && !enough(&plan) {
            let Some(task) = plan.next(home) else {
                plan.idle += 1;
                plan = self.change.wait(plan).unwrap_or_else(PoisonError::into_inner);
                plan.idle -= 1;
                continue;
            };
            plan.busy += 1;
            drop(plan);
            let done = task.run(self);
            plan = self.lock();
            plan.busy -= 1;
            plan.put_back(done);
            if plan.idle > 0 {
                self.change.notify_all();
            }
        }
    }

    /// What is left when all is done.
    pub(crate) fn ended(&self) -> Ended {
        std::mem::take(&mut self.lock().left)
    }
}

impl Plan {
    /// Whether so many blocks wait for a part, and not [few](FEW) for another, unless they are too
    /// many.
    fn has(&self, many: usize) -> bool {
        let parts = self.lanes.len().saturating_sub(1);
        let waiting = || self.lanes.iter().take(parts).map(|lane| lane.blocks.len());
        let (most, least) = (waiting().max().unwrap_or(0), waiting().min().unwrap_or(0));
        most >= many && (least >= FEW || most >= MOST_BLOCKS)
    }

    /// Whether nothing is to be done until more blocks come.
    fn is_quiet(&self) -> bool {
        let waits = self.lanes.iter().any(|lane| !lane.blocks.is_empty());
        !waits && self.busy == 0 && self.reports.is_empty()
    }

    fn is_done(&self) -> bool {
        let ended = self.lanes.iter().all(|lane| lane.until.is_none());
        ended && self.busy == 0 && self.reports.is_empty()
    }

    fn report(&mut self, lane: usize, report: Report) {
        self.bytes.0 += report.bytes();
        self.reports.push((lane, report));
    }

    fn spare(&mut self) -> Vec<Rows> {
        let from = self.spare.len().saturating_sub(SPARE_OF_PART);
        self.spare.split_off(from)
    }

    /// What a thread does next that is at home at a part.
    fn next(&mut self, home: usize) -> Option<Task> {
        let urgent = if self.bytes.0 >= URGENT { self.merge() } else { None };
        urgent.or_else(|| self.part(home)).or_else(|| self.merge())
    }

    fn merge(&mut self) -> Option<Task> {
        if self.reports.is_empty() {
            return None;
        }
        let merge = self.left.merge.take()?;
        let until = self.lanes.iter().map(|lane| lane.until).collect();
        self.bytes = (0, self.bytes.0 + self.bytes.1);
        Some(Task::Merge(merge, std::mem::take(&mut self.reports), until))
    }

    fn part(&mut self, home: usize) -> Option<Task> {
        let at = self.lane(home)?;
        let lane = self.lanes.get_mut(at)?;
        let part = lane.part.take()?;
        Some(match lane.blocks.pop_front() {
            Some(block) => Task::Block(part, block),
            None => Task::Close(part),
        })
    }

    /// Whose part is next for a thread that is at home at one of them.
    fn lane(&self, home: usize) -> Option<usize> {
        let is_ready = |lane: &Lane| {
            let has_work = self.ended || !lane.blocks.is_empty();
            lane.part.is_some() && lane.until.is_some() && has_work
        };
        let lanes = || self.lanes.iter().enumerate();
        if self.bytes.0 + self.bytes.1 > MOST && self.busy > 0 {
            let behind = lanes().filter_map(|(i, lane)| Some((lane.until?, i))).min()?.1;
            return self.lanes.get(behind).is_some_and(is_ready).then_some(behind);
        }
        let ready = lanes().filter(|(_, lane)| is_ready(lane));
        let (at, most) = ready.max_by_key(|(_, l)| (l.blocks.len(), Reverse(l.until)))?;
        let stays = self.lanes.get(home).is_some_and(|home| {
            let waiting = home.blocks.len();
            is_ready(home) && waiting > 0 && waiting + STAY > most.blocks.len()
        });
        Some(if stays { home } else { at })
    }

    fn put_back(&mut self, done: Done) {
        match done {
            Done::Part(mut part) => {
                let at = part.me();
                let is_waiting = self.lanes.get(at).is_some_and(|lane| lane.blocks.is_empty());
                let mut until = None;
                if part.is_unreported() && is_waiting {
                    // Nobody is to wait for what this part has made while it waits for blocks.
                    until = Some(part.reported());
                    self.report(at, Report::of(part.shard()));
                    part.shard().env.logs.reuse(self.spare());
                }
                if let Some(lane) = self.lanes.get_mut(at) {
                    lane.until = until.or(lane.until);
                    lane.part = Some(part);
                }
            }
            Done::Ended(mut part) => {
                self.left.connections += part.shard().connections();
                self.left.state.add(&part.shard().keeper.report);
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

impl Task {
    fn run(self, shared: &Shared) -> Done {
        match self {
            Self::Block(mut part, block) => {
                part.take(&block, shared);
                Done::Part(part)
            }
            Self::Close(mut part) => match part.close(shared) {
                true => Done::Ended(part),
                false => Done::Part(part),
            },
            Self::Merge(mut merge, reports, until) => {
                let result = merge.merge(reports, &until);
                Done::Merge(merge, result)
            }
        }
    }
}

/// Stops all work if its owner's thread panics.
pub(crate) struct Stopping<'a>(pub(crate) &'a Shared);

impl Drop for Stopping<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gannet_base::Time;
    use gannet_log::Logs;

    use crate::Options;
    use crate::steer::Role;

    fn plan(parts: usize) -> Shared {
        let part = |me| Part::new(me, Shard::new(Options::default(), Role::Part));
        let merge = Merge::new(Logs::new(gannet_log::Options::default()), parts + 1);
        Shared::new((0..parts).map(part), merge)
    }

    fn hub() -> Shard {
        Shard::new(Options::default(), Role::Hub(Box::default()))
    }

    #[test]
    fn all_parts_and_the_hub_end() {
        let (shared, mut hub) = (plan(2), hub());
        for _ in 0..3 * BLOCKS {
            let (written, goes_on) = shared.add(&Arc::default(), &mut hub);
            assert!(written.is_ok() && goes_on && !shared.lock().has(BLOCKS));
        }
        shared.end(Part::new(2, hub));
        std::thread::scope(|scope| {
            scope.spawn(|| shared.work(1, |_| false));
            shared.work(0, |_| false);
        });
        assert!(shared.lock().is_done() && shared.ended().merge.is_some());
    }

    #[test]
    fn there_are_more_blocks_while_a_part_has_few() {
        let shared = plan(2);
        let mut plan = shared.lock();
        let add = |plan: &mut Plan, part: usize, count: usize| {
            plan.lanes[part].blocks.extend((0..count).map(|_| Arc::default()));
        };
        assert!(!plan.has(BLOCKS));
        add(&mut plan, 0, BLOCKS);
        assert!(!plan.has(BLOCKS), "none for the other part");
        add(&mut plan, 1, FEW);
        assert!(plan.has(BLOCKS) && !plan.has(BLOCKS + 1));
        plan.lanes[1].blocks.pop_front();
        assert!(!plan.has(BLOCKS));
        add(&mut plan, 0, MOST_BLOCKS - BLOCKS);
        assert!(plan.has(BLOCKS), "too many for one of them");
    }

    #[test]
    fn a_thread_leaves_its_part_for_one_that_is_far_behind() {
        let shared = plan(2);
        let mut plan = shared.lock();
        let lane = |plan: &Plan, home| plan.lane(home);
        assert_eq!(lane(&plan, 0), None, "no blocks");
        plan.lanes[0].blocks.push_back(Arc::default());
        assert_eq!((lane(&plan, 0), lane(&plan, 1)), (Some(0), Some(0)));
        plan.lanes[1].blocks.extend((0..STAY).map(|_| Arc::default()));
        assert_eq!((lane(&plan, 0), lane(&plan, 1)), (Some(0), Some(1)));
        plan.lanes[1].blocks.push_back(Arc::default());
        assert_eq!(lane(&plan, 0), Some(1), "far behind");
        let away = plan.lanes[1].part.take();
        assert_eq!((lane(&plan, 0), lane(&plan, 1)), (Some(0), Some(0)), "somebody is at it");
        // Too many rows wait for the merge: only who holds it up goes on.
        plan.lanes[1].part = away;
        (plan.busy, plan.bytes) = (1, (MOST, 1));
        plan.lanes[0].until = Some(Key { packet: 7, due: Time::MAX, tie: 0 });
        assert_eq!((lane(&plan, 0), lane(&plan, 1)), (Some(1), Some(1)));
        plan.lanes[1].part = None;
        assert_eq!(lane(&plan, 0), None);
    }

    #[test]
    fn a_panic_stops_who_works_and_who_waits() {
        let shared = plan(2);
        std::thread::scope(|scope| {
            let panics = scope.spawn(|| {
                let _stopping = Stopping(&shared);
                panic!("for the test");
            });
            shared.work(0, |_| false);
            assert!(panics.join().is_err());
        });
        let (_, goes_on) = shared.add(&Arc::default(), &mut hub());
        assert!(!goes_on);
    }

    #[test]
    fn an_error_is_told_once() {
        let (shared, mut hub) = (plan(1), hub());
        shared.lock().left.error = Some(io::Error::other("full"));
        assert!(shared.add(&Arc::default(), &mut hub).0.is_err());
        assert!(shared.add(&Arc::default(), &mut hub).0.is_ok());
    }
}
