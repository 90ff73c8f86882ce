//! From the input to the senders: due times, clients, blocks.

use std::collections::HashMap;
use std::sync::mpsc::SyncSender;
use std::time::Duration;
use std::time::SystemTime;
use std::time::UNIX_EPOCH;

use foldhash::fast::RandomState;
use gannet_base::Addr;

use crate::Error;
use crate::Options;
use crate::block::Block;
use crate::block::Origin;
use crate::compare::Observer;
use crate::compare::Pairs;
use crate::rewrite::Rewriter;
use crate::source::InputItem;
use crate::source::Query;
use crate::source::Seen;
use crate::source::Source;

/// How long after the last query its answer is looked for in a capture, in nanoseconds.
const PATIENCE: i64 = 10_000_000_000;
/// Sources that are distinguished; more share clients.
const MAX_SOURCES: usize = 1 << 20;

/// Reads the input and deals its queries out.
pub(crate) struct Feed<'a> {
    options: &'a Options,
    source: Source,
    assignment: ClientAssignment<'a>,
    /// What earlier rounds over the input read.
    earlier: Seen,
    round: u64,
    ended: bool,
    /// Why the input could not be read to its end, or again.
    trouble: Option<String>,
    /// Where answers in the input are compared with those that come.
    pairs: Option<Pairs<'a>>,
}

/// The results of the feed.
pub(crate) struct FeedResults {
    pub(crate) seen: Seen,
    /// Queries that were to be changed and could not, and why the first of them.
    pub(crate) unchanged: Option<(u64, String)>,
    /// Queries whose answer in the input was not looked for to its end.
    pub(crate) forgotten: u64,
    /// Source addresses in the input; 0 for lists.
    pub(crate) sources: usize,
    /// Queries a second that the schedule asks for.
    pub(crate) asked: Option<f64>,
    /// When the last query was due, in nanoseconds.
    pub(crate) last_due: u64,
}

/// Gives queries their due times and clients.
struct ClientAssignment<'a> {
    options: &'a Options,
    /// A block a thread, being filled.
    blocks: Vec<Block>,
    sources: HashMap<Addr, u32, RandomState>,
    /// Queries dealt out.
    index: u64,
    /// Times of the capture's first query and of the latest.
    first: Option<i64>,
    time: i64,
    /// Offset of the latest query in its round, and where this round began.
    offset: u64,
    base: u64,
    last_due: u64,
    rewriter: Rewriter<'a>,
    /// When the feed was opened, shortly before the run starts, since the epoch.
    opened: Duration,
    /// The limit or the duration is reached.
    over: bool,
}

impl<'a> Feed<'a> {
    /// `answers` receives the answers in the input.
    pub(crate) fn open(options: &'a Options, answers: Option<&'a Observer>) -> Result<Self, Error> {
        let mut blocks = Vec::new();
        blocks.resize_with(options.threads.max(1), Block::default);
        let assignment = ClientAssignment {
            options,
            blocks,
            sources: HashMap::default(),
            index: 0,
            first: None,
            time: 0,
            offset: 0,
            base: 0,
            last_due: 0,
            rewriter: Rewriter::new(&options.rewrite),
            opened: since_epoch(),
            over: false,
        };
        let source = Source::open(&options.input)?;
        let pairs = answers.map(Pairs::new);
        Ok(Self {
            options,
            source,
            assignment,
            earlier: Seen::default(),
            round: 1,
            ended: false,
            trouble: None,
            pairs,
        })
    }

    /// Reads until there is something to send, so that a run does not begin by waiting.
    pub(crate) fn prepare(&mut self) -> Result<(), Error> {
        while self.assignment.index == 0 && !self.ended {
            self.read()?;
        }
        if self.assignment.index == 0 && !self.assignment.over {
            let seen = self.source.seen();
            return Err(Error::NoQueries {
                input: self.options.input.name(),
                is_list: !self.options.input.is_capture(),
                packets: seen.packets,
                responses: seen.responses,
                other: seen.skipped.not_dns + seen.bad_lines,
                first: seen.remarks.first().cloned(),
            });
        }
        Ok(())
    }

    /// Deals out everything, as fast as senders take it.
    pub(crate) fn run(
        &mut self,
        channels: Vec<SyncSender<Block>>,
        stopped: &dyn Fn() -> bool,
    ) -> Result<(), Error> {
        while !stopped() {
            for (block, channel) in self.assignment.blocks.iter_mut().zip(&channels) {
                // A sender that is gone has reported its error.
                if !block.items.is_empty() && channel.send(std::mem::take(block)).is_err() {
                    return Ok(());
                }
            }
            if self.ended {
                break;
            }
            if let Err(error) = self.read() {
                // What was sent needs its report all the same.
                self.trouble = Some(error.to_string());
                break;
            }
        }
        // Closing the channels ends the senders.
        drop(channels);
        if self.trouble.is_some() {
            return Ok(());
        }
        self.find_answers(stopped)
    }

    /// Where queries ended before the input did, reads on for the answers to the last of them.
    fn find_answers(&mut self, stopped: &dyn Fn() -> bool) -> Result<(), Error> {
        let Self { source, assignment, pairs, .. } = self;
        let Some(pairs) = pairs.as_mut().filter(|_| assignment.over) else { return Ok(()) };
        let last = assignment.time;
        let mut late = false;
        while !stopped() && !late && !pairs.is_empty() {
            let more = source.read(&mut |found| match found {
                InputItem::Query(query) => late |= query.time > last.saturating_add(PATIENCE),
                InputItem::Response { exchange, bytes } => pairs.answered(*exchange, bytes),
            })?;
            if !more {
                break;
            }
        }
        Ok(())
    }

    pub(crate) fn finish(self) -> FeedResults {
        let mut seen = self.earlier;
        add(&mut seen, self.source.seen());
        seen.remarks.extend(self.trouble);
        let rewriter = &self.assignment.rewriter;
        let unchanged = rewriter.first.map(|why| (rewriter.unchanged, why.to_string()));
        let queries = self.assignment.index;
        let seconds = self.assignment.last_due as f64 / 1e9;
        let asked = self
            .options
            .timing
            .asked(queries)
            .or_else(|| (seconds > 0.0 && queries > 1).then(|| (queries - 1) as f64 / seconds));
        let (sources, last_due) = (self.assignment.sources.len(), self.assignment.last_due);
        let forgotten = self.pairs.as_ref().map_or(0, Pairs::forgotten);
        FeedResults { seen, unchanged, forgotten, sources, asked, last_due }
    }

    /// Reads on by one batch.
    fn read(&mut self) -> Result<(), Error> {
        let Self { source, assignment, pairs, .. } = self;
        let more = source.read(&mut |found| match found {
            InputItem::Query(query) => {
                if let Some(origin) = assignment.add(query)
                    && let Some((pairs, exchange)) = pairs.as_mut().zip(query.exchange)
                {
                    pairs.asked(exchange, query.bytes, origin);
                }
            }
            InputItem::Response { exchange, bytes } => {
                if let Some(pairs) = pairs {
                    pairs.answered(*exchange, bytes);
                }
            }
        })?;
        if assignment.over {
            self.ended = true;
        } else if !more {
            let again = self.options.loops == 0 || self.round < self.options.loops;
            // What gave nothing once gives nothing again.
            if again && self.assignment.index > 0 {
                self.round += 1;
                self.assignment.next_round();
                add(&mut self.earlier, self.source.seen());
                self.source = Source::open(&self.options.input)?;
            } else {
                self.ended = true;
            }
        }
        Ok(())
    }
}

impl ClientAssignment<'_> {
    /// Passes a query to its sender; `None` once the limit of queries is reached.
    fn add(&mut self, query: &Query<'_>) -> Option<Origin> {
        let limit = self.options.limit.unwrap_or(u64::MAX);
        if self.over || self.index >= limit {
            self.over = true;
            return None;
        }
        let first = *self.first.get_or_insert(query.time);
        // Captures are not always in order; a query is never due before the one before it.
        let offset = u64::try_from(query.time.saturating_sub(first)).unwrap_or(0);
        self.offset = self.offset.max(offset);
        let due = self.options.timing.due(self.index, self.base + self.offset);
        let due = due.max(self.last_due);
        if self.options.duration.is_some_and(|d| u128::from(due) >= d.as_nanos()) {
            self.over = true;
            return None;
        }
        let client = self.client(query.exchange.map(|e| e.client.0));
        let origin = Origin { number: self.index, packet: query.packet, time: query.time };
        self.time = query.time;
        self.last_due = due;
        self.index += 1;
        let thread = client as usize % self.blocks.len();
        // Signatures have the time at which the query is due, or the present one if that is past.
        let now = || (self.opened + Duration::from_nanos(due)).max(since_epoch());
        let message = self.rewriter.change(query.bytes, now);
        self.blocks[thread].push(due, client, origin, message);
        Some(origin)
    }

    fn client(&mut self, source: Option<Addr>) -> u32 {
        let threads = self.blocks.len() as u32;
        let Some(source) = source else {
            return (self.index % u64::from(self.options.clients.unwrap_or(threads).max(1))) as u32;
        };
        let next = self.sources.len() as u32;
        let number = if self.sources.len() < MAX_SOURCES {
            *self.sources.entry(source).or_insert(next)
        } else {
            let shared = || u32::from(source.octets()[15]);
            self.sources.get(&source).copied().unwrap_or_else(shared)
        };
        self.options.clients.map_or(number, |n| number % n.max(1))
    }

    /// The input begins again: after the last query by the mean gap of the round.
    fn next_round(&mut self) {
        let queries = self.index.max(2) - 1;
        self.base += self.offset + (self.base + self.offset) / queries;
        self.offset = 0;
    }
}

fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn add(into: &mut Seen, other: &Seen) {
    into.packets += other.packets;
    into.queries += other.queries;
    into.responses += other.responses;
    into.bad_lines += other.bad_lines;
    into.skipped.packets += other.skipped.packets;
    into.skipped.truncated += other.skipped.truncated;
    into.skipped.not_dns += other.skipped.not_dns;
    into.skipped.streams += other.skipped.streams;
    if into.remarks.is_empty() {
        into.remarks.clone_from(&other.remarks);
    }
}
