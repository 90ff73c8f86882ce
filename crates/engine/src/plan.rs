//! What is to be done next, and by which thread.
//!
//! Blocks wait for parts, and rows for the merge. No thread has one of these for itself: whoever has
//! nothing to do takes the next block of a part that nobody is at, or merges, or waits if there is
//! nothing. So there are no more threads than were asked for, and none rests while there is work. A
//! part, and the merge, is taken out of the plan by who works on it, and put back.

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

/// Blocks that wait for a part at the most, each of a batch of packets.
const BLOCKS: usize = 8;
/// A thread stays with a part, whose memory its core has, until so many more blocks wait for another.
const STAY: usize = 4;
/// Bytes of rows for which merging is more urgent than all else.
const URGENT: usize = 256 << 10;
/// Bytes of rows that wait to be merged, beyond which only the part goes on that is farthest behind.
const MOST: usize = 8 << 20;
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

/// What is left of parts and merge.
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
        let full = plan.waiting() >= BLOCKS;
        self.tell(plan);
        if full {
            self.work(|plan| plan.waiting() <= BLOCKS / 2);
        }
        let mut plan = self.lock();
        (plan.left.error.take().map_or(Ok(()), Err), !plan.stopped)
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

    /// Works until it is `enough` or all is done.
    pub(crate) fn work(&self, enough: impl Fn(&Plan) -> bool) {
        let mut last = 0;
        let mut plan = self.lock();
        while !plan.stopped && !plan.is_done() && !enough(&plan) {
            let Some(task) = plan.next(&mut last) else {
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
    /// The most blocks that wait for any part.
    fn waiting(&self) -> usize {
        self.lanes.iter().map(|lane| lane.blocks.len()).max().unwrap_or(0)
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

    /// What a thread that was last at that lane does next.
    fn next(&mut self, last: &mut usize) -> Option<Task> {
        let urgent = if self.bytes.0 >= URGENT { self.merge() } else { None };
        urgent.or_else(|| self.part(last)).or_else(|| self.merge())
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

    fn part(&mut self, last: &mut usize) -> Option<Task> {
        let ended = self.ended;
        let is_ready =
            |l: &Lane| l.part.is_some() && l.until.is_some() && (ended || !l.blocks.is_empty());
        let ready = self.lanes.iter().enumerate().filter(|(_, lane)| is_ready(lane));
        let most = ready.max_by_key(|(_, l)| (l.blocks.len(), std::cmp::Reverse(l.until)));
        let (mut at, lane) = most?;
        let stays = |l: &&Lane| is_ready(l) && l.blocks.len() + STAY > lane.blocks.len();
        if !lane.blocks.is_empty()
            && self.lanes.get(*last).filter(stays).is_some_and(|l| !l.blocks.is_empty())
        {
            at = *last;
        }
        if self.bytes.0 + self.bytes.1 > MOST && self.busy > 0 {
            let until = |(i, l): (usize, &Lane)| l.until.map(|until| (until, i));
            let (_, behind) = self.lanes.iter().enumerate().filter_map(until).min()?;
            if !self.lanes.get(behind).is_some_and(is_ready) {
                return None;
            }
            at = behind;
        }
        *last = at;
        let lane = self.lanes.get_mut(at)?;
        let part = lane.part.take()?;
        Some(match lane.blocks.pop_front() {
            Some(block) => Task::Block(part, block),
            None => Task::Close(part),
        })
    }

    fn put_back(&mut self, done: Done) {
        match done {
            Done::Part(mut part) => {
                let at = part.me();
                let Some(lane) = self.lanes.get_mut(at) else { return };
                if part.is_unreported() && lane.blocks.is_empty() {
                    // Nobody is to wait for what this part has made while it waits for blocks.
                    lane.until = Some(part.reported());
                    let report = Report::of(part.shard());
                    let spare = self.spare.len().saturating_sub(SPARE_OF_PART);
                    part.shard().env.logs.reuse(self.spare.split_off(spare));
                    lane.part = Some(part);
                    self.report(at, report);
                } else {
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
