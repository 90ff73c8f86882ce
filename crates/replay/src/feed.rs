//! The feed: reads queries from the input, assigns due times and clients, and passes blocks to the
//! senders.

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

/// Time after the last query during which its answer is searched for in a capture, in nanoseconds.
const ANSWER_SEARCH_TIME: i64 = 10_000_000_000;
/// Maximum number of distinguished source addresses; further ones share clients.
const MAX_SOURCES: usize = 1 << 20;

/// Reads the input and distributes its queries to the senders.
pub(crate) struct Feed<'a> {
    options: &'a Options,
    source: Source,
    assignment: ClientAssignment<'a>,
    /// Counts of earlier rounds over the input.
    earlier: Seen,
    round: u64,
    ended: bool,
    /// The error that ended reading of the input before its end, or in a later round.
    input_error: Option<String>,
    /// Finds the answers in the input, if they are compared with received ones.
    pairs: Option<Pairs<'a>>,
}

/// The results of the feed.
pub(crate) struct FeedResults {
    pub(crate) seen: Seen,
    /// Number of queries that could not be rewritten, and the reason for the first.
    pub(crate) unchanged: Option<(u64, String)>,
    /// Queries that were forgotten before their answer was found in the input.
    pub(crate) forgotten: u64,
    /// Source addresses in the input; 0 for lists.
    pub(crate) sources: usize,
    /// Queries per second that the schedule requests.
    pub(crate) requested_rate: Option<f64>,
    /// Due time of the last query, in nanoseconds.
    pub(crate) last_due: u64,
}

/// Assigns due times and clients to queries.
struct ClientAssignment<'a> {
    options: &'a Options,
    /// The block being filled for each thread.
    blocks: Vec<Block>,
    sources: HashMap<Addr, u32, RandomState>,
    /// Number of queries distributed.
    index: u64,
    /// Capture times of the first and the latest query, in nanoseconds since the epoch.
    first: Option<i64>,
    time: i64,
    /// Offset of the latest query in its round, and the start of this round, in nanoseconds.
    offset: u64,
    base: u64,
    last_due: u64,
    rewriter: Rewriter<'a>,
    /// Time since the epoch at which the feed was opened, shortly before the run starts.
    opened: Duration,
    /// Whether the limit of queries or the duration is reached.
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
            input_error: None,
            pairs,
        })
    }

    /// Reads up to the first query, so that a run does not begin with a wait.
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

    /// Distributes all queries, as fast as the senders accept them.
    pub(crate) fn run(
        &mut self,
        channels: Vec<SyncSender<Block>>,
        stopped: &dyn Fn() -> bool,
    ) -> Result<(), Error> {
        while !stopped() {
            for (block, channel) in self.assignment.blocks.iter_mut().zip(&channels) {
                // A sender that has ended has reported its error.
                if !block.items.is_empty() && channel.send(std::mem::take(block)).is_err() {
                    return Ok(());
                }
            }
            if self.ended {
                break;
            }
            if let Err(error) = self.read() {
                // Queries that were sent still need their report.
                self.input_error = Some(error.to_string());
                break;
            }
        }
        // Closing the channels ends the senders.
        drop(channels);
        if self.input_error.is_some() {
            return Ok(());
        }
        self.find_answers(stopped)
    }

    /// If the queries ended before the input, continues reading to find the answers to the last of
    /// them.
    fn find_answers(&mut self, stopped: &dyn Fn() -> bool) -> Result<(), Error> {
        let Self { source, assignment, pairs, .. } = self;
        let Some(pairs) = pairs.as_mut().filter(|_| assignment.over) else { return Ok(()) };
        let last = assignment.time;
        let mut late = false;
        while !stopped() && !late && !pairs.is_empty() {
            let more = source.read(&mut |found| match found {
                InputItem::Query(query) => {
                    late |= query.time > last.saturating_add(ANSWER_SEARCH_TIME);
                }
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
        seen.remarks.extend(self.input_error);
        let rewriter = &self.assignment.rewriter;
        let unchanged = rewriter.first.map(|why| (rewriter.unchanged, why.to_string()));
        let queries = self.assignment.index;
        let seconds = self.assignment.last_due as f64 / 1e9;
        let requested_rate = self
            .options
            .timing
            .requested_rate(queries)
            .or_else(|| (seconds > 0.0 && queries > 1).then(|| (queries - 1) as f64 / seconds));
        let (sources, last_due) = (self.assignment.sources.len(), self.assignment.last_due);
        let forgotten = self.pairs.as_ref().map_or(0, Pairs::forgotten);
        FeedResults { seen, unchanged, forgotten, sources, requested_rate, last_due }
    }

    /// Reads the next batch.
    fn read(&mut self) -> Result<(), Error> {
        let Self { source, assignment, pairs, .. } = self;
        let more = source.read(&mut |found| match found {
            InputItem::Query(query) => {
                if let Some(origin) = assignment.add(query)
                    && let Some((pairs, exchange)) = pairs.as_mut().zip(query.exchange)
                {
                    pairs.query_sent(exchange, query.bytes, origin);
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
            // An input without queries is not read again.
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
    /// Adds a query to the block of its sender; `None` once the limit of queries is reached.
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
        // Signatures have the due time of the query, or the current time if that is later.
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

    /// Starts another round over the input: its first query is due the mean gap of the round after
    /// the last query.
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
