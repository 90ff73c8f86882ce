//! The merge: orders the rows of all shards and makes the decisions that need all shards.

use std::collections::VecDeque;
use std::io;

use gannet_base::Time;
use gannet_event::Command;
use gannet_event::Sinks;
use gannet_log::Key;
use gannet_log::Logs;
use gannet_log::Rows;
use gannet_log::StreamCount;
use gannet_protocols::deferred::Decider;
use gannet_protocols::deferred::Deferred;

use crate::shard::Shard;

/// Rows and deferred decisions of a shard since its last report.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) rows: Vec<Rows>,
    pub(crate) deferred: Deferred,
}

impl Report {
    /// Takes everything that a shard has not reported yet.
    pub(crate) fn take(shard: &mut Shard) -> Self {
        Self { rows: shard.env.logs.take(), deferred: shard.env.take_deferred() }
    }

    /// Size of the rows, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.rows.iter().map(bytes).sum::<usize>() + self.deferred.event_bytes()
    }
}

fn bytes(rows: &Rows) -> usize {
    rows.bytes.len() + size_of_val(&rows.marks[..])
}

/// Reports of all shards that are not yet written to the logs.
pub(crate) struct Merge {
    logs: Sinks,
    streams: Vec<Stream>,
    /// By shard index.
    deferred: Vec<Deferred>,
    decider: Decider,
    /// Bytes of rows that are not yet written.
    unwritten_bytes: usize,
    /// Allocations of written rows, for reuse.
    spare: Vec<Rows>,
}

/// The rows of one log stream, by shard.
struct Stream {
    path: &'static str,
    /// Index of the stream in the logs, once it has a row.
    index: Option<usize>,
    shards: Vec<VecDeque<Pending>>,
    /// Key of the next row of each shard.
    heads: Vec<Key>,
}

/// Rows of one report, some of which may have been written.
struct Pending {
    rows: Rows,
    next: usize,
}

/// The key that stands for "no row": later than all others.
const NO_ROW: Key = Key { packet: u64::MAX, due: Time::MAX, tie: u64::MAX };

impl Pending {
    fn key(&self) -> Key {
        self.rows.marks.get(self.next).map_or(NO_ROW, |m| m.0)
    }
}

impl Merge {
    /// A merge of the rows of `shards` shards into these logs.
    pub(crate) fn new(logs: impl Into<Sinks>, shards: usize) -> Self {
        let logs = logs.into();
        let mut decider = Decider::default();
        if logs.events.any() {
            decider.listen();
        }
        Self {
            logs,
            streams: Vec::new(),
            deferred: (0..shards).map(|_| Deferred::default()).collect(),
            decider,
            unwritten_bytes: 0,
            spare: Vec::new(),
        }
    }

    /// Applies commands that set the sampling of weirds, as the shards do.
    pub(crate) fn sample(&mut self, commands: &[Command]) {
        self.decider.configure_sampling(commands);
    }

    /// Adds reports, each with its shard, and writes all rows that no later row can precede: all
    /// future rows of the shards have the key `until` or a later one; `None` means that no rows
    /// follow.
    pub(crate) fn merge(
        &mut self,
        reports: Vec<(usize, Report)>,
        until: &[Option<Key>],
    ) -> io::Result<()> {
        for (shard, report) in reports {
            self.add(shard, report);
        }
        let until = until.iter().flatten().min().copied();
        for stream in &mut self.streams {
            write(stream, until, &mut self.logs, |rows| {
                self.unwritten_bytes -= bytes(&rows);
                if rows.is_chunk() {
                    self.spare.push(rows);
                }
            });
        }
        self.decider.decide(&mut self.logs, &mut self.deferred, until);
        if self.logs.events.has_commands() {
            obey_stop(self.logs.events.take_commands())?;
        }
        self.logs.check()
    }

    fn add(&mut self, shard: usize, report: Report) {
        let shards = self.deferred.len();
        let Some(deferred) = self.deferred.get_mut(shard) else { return };
        deferred.append(report.deferred);
        for rows in report.rows {
            self.unwritten_bytes += bytes(&rows);
            let (path, streams) = (rows.shape.path, &mut self.streams);
            let at = streams.iter().position(|s| s.path == path).unwrap_or_else(|| {
                let waits = (0..shards).map(|_| VecDeque::new()).collect();
                streams.push(Stream {
                    path,
                    index: None,
                    shards: waits,
                    heads: vec![NO_ROW; shards],
                });
                streams.len() - 1
            });
            let (stream, pending) = (&mut streams[at], Pending { rows, next: 0 });
            if stream.shards[shard].is_empty() {
                stream.heads[shard] = pending.key();
            }
            stream.shards[shard].push_back(pending);
        }
    }

    /// Returns the bytes of unwritten rows and events, and the allocations of written rows.
    pub(crate) fn bytes_and_spare(&mut self) -> (usize, Vec<Rows>) {
        let events: usize = self.deferred.iter().map(Deferred::event_bytes).sum();
        (self.unwritten_bytes + events, std::mem::take(&mut self.spare))
    }

    /// Flushes written rows to their files.
    pub(crate) fn write_out(&mut self) -> io::Result<()> {
        self.logs.write_out();
        self.logs.check()
    }

    /// The logs.
    pub(crate) fn logs(&mut self) -> &mut Logs {
        &mut self.logs
    }

    /// Returns the logs, still open, and their row counts.
    pub(crate) fn into_logs(mut self) -> (Sinks, Vec<StreamCount>) {
        self.logs.events.drain();
        let counts = self.logs.counts();
        (self.logs, counts)
    }
}

/// The analysis is ahead of the listener, so the only command obeyed is the one to stop: it ends
/// the delivery of events.
fn obey_stop(commands: Vec<Command>) -> io::Result<()> {
    match commands.into_iter().find(|command| *command != Command::Stop) {
        Some(command) => Err(io::Error::other(format!("too late for a listener: {command:?}"))),
        None => Ok(()),
    }
}

/// Writes the rows of all shards before `until`, in key order, and passes exhausted reports to
/// `done`.
fn write(stream: &mut Stream, until: Option<Key>, logs: &mut Logs, mut done: impl FnMut(Rows)) {
    let until = until.unwrap_or(NO_ROW);
    while let Some(Next { first, second, limit }) = Next::new(&stream.heads, until) {
        let Stream { index, shards, heads, .. } = &mut *stream;
        let Some(pending) = shards.get_mut(first).and_then(VecDeque::front_mut) else { return };
        let index = *index.get_or_insert_with(|| logs.stream_index(&pending.rows));
        if let Some(second) = second {
            let both = [first.min(second), first.max(second)];
            let Ok([a, b]) = shards.get_disjoint_mut(both) else { return };
            let (Some(a), Some(b)) = (a.front_mut(), b.front_mut()) else { return };
            let rows = [(&a.rows, a.next), (&b.rows, b.next)];
            [a.next, b.next] = logs.add_merged(index, rows, limit);
            update_head(shards, heads, second, &mut done);
        } else {
            let from = pending.next;
            let rest = pending.rows.marks.get(from + 1..).unwrap_or_default();
            // Keys of different shards differ. If they are equal nevertheless, the row of the lower
            // shard comes first.
            pending.next = from + 1 + rest.iter().take_while(|m| m.0 < limit).count();
            logs.add_at(index, &pending.rows, from..pending.next);
        }
        update_head(shards, heads, first, &mut done);
    }
}

/// Updates the next key of a shard after some of its rows were written.
fn update_head(
    shards: &mut [VecDeque<Pending>],
    heads: &mut [Key],
    i: usize,
    done: &mut impl FnMut(Rows),
) {
    let (Some(shard), Some(head)) = (shards.get_mut(i), heads.get_mut(i)) else { return };
    if shard.front().is_some_and(|pending| pending.next >= pending.rows.marks.len())
        && let Some(written) = shard.pop_front()
    {
        done(written.rows);
    }
    *head = shard.front().map_or(NO_ROW, Pending::key);
}

/// The shards whose rows come next in key order.
struct Next {
    /// The shard with the next row.
    first: usize,
    /// Another shard whose rows alternate with those of the first, if there is one.
    second: Option<usize>,
    /// No other shard has a row before this key.
    limit: Key,
}

impl Next {
    /// Computed from the next key of each shard. `None` if no row precedes `until`.
    fn new(heads: &[Key], until: Key) -> Option<Self> {
        let (mut first, mut second, mut others) = ((NO_ROW, 0), (NO_ROW, 0), until);
        for (i, head) in heads.iter().enumerate() {
            let mut later = (*head, i);
            if later.0 < first.0 {
                std::mem::swap(&mut later, &mut first);
            }
            if later.0 < second.0 {
                std::mem::swap(&mut later, &mut second);
            }
            others = others.min(later.0);
        }
        let takes_turns = second.0 < others;
        let limit = if takes_turns { others } else { others.min(second.0) };
        (first.0 < until).then_some(Self {
            first: first.1,
            second: takes_turns.then_some(second.1),
            limit,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gannet_log::Options;
    use proptest::prelude::*;

    gannet_log::row! {
        /// A row for each number.
        struct Number = "number" {
            /// It.
            n: u64 = "n",
        }
    }

    fn key(n: u64) -> Key {
        Key { packet: n, due: Time::MAX, tie: 0 }
    }

    proptest! {
        /// Checks that the order of written rows does not depend on how rows are distributed to
        /// shards and reports.
        #[test]
        fn rows_come_out_in_order(
            assign in prop::collection::vec((0_usize..3, any::<bool>(), any::<bool>()), 0..200),
        ) {
            let mut shards: Vec<_> = (0..3).map(|_| Logs::collecting(Options::default())).collect();
            let mut merge = Merge::new(Logs::new(Options::default()), 3);
            let mut until = vec![Some(Key::EARLIEST); 3];
            let mut reports = Vec::new();
            for (n, (shard, cut, merges)) in (0..).zip(&assign) {
                shards[*shard].set_key(key(n));
                shards[*shard].write(&Number { n });
                if *cut {
                    let rows = shards[*shard].take();
                    reports.push((*shard, Report { rows, ..Report::default() }));
                    until[*shard] = Some(key(n + 1));
                }
                if *merges {
                    merge.merge(std::mem::take(&mut reports), &until).unwrap();
                    shards[*shard].reuse(merge.bytes_and_spare().1);
                }
            }
            for (i, shard) in shards.iter_mut().enumerate() {
                reports.push((i, Report { rows: shard.take(), ..Report::default() }));
            }
            merge.merge(reports, &[None; 3]).unwrap();
            prop_assert_eq!(merge.bytes_and_spare().0, 0);
            let (merged, counts) = merge.into_logs();
            let mut alone = Logs::new(Options::default());
            (0..assign.len() as u64).for_each(|n| { alone.write(&Number { n }); });
            prop_assert_eq!(merged.pending("number"), alone.pending("number"));
            prop_assert_eq!(counts, alone.counts());
        }
    }
}
