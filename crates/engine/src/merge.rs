//! The thread that puts rows in order and decides what takes all parts to decide.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;

use gannet_log::Key;
use gannet_log::Logs;
use gannet_log::Rows;
use gannet_log::StreamCount;
use gannet_protocols::later::Deferred;
use gannet_protocols::later::Whole;

use crate::queue::Closing;
use crate::reports::Reports;

/// What the merge tells while it works: the first error of a log.
#[derive(Default)]
pub(crate) struct Failure(Mutex<Option<io::Error>>);

impl Failure {
    fn set(&self, error: io::Error) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    pub(crate) fn check(&self) -> io::Result<()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), Err)
    }
}

/// What one part has reported and the logs do not have yet.
struct Part {
    reports: Arc<Reports>,
    /// All rows to come have this key or a later one; `None` when none will come.
    until: Option<Key>,
    deferred: Deferred,
}

/// One stream's rows, by part.
struct Stream {
    path: &'static str,
    parts: Vec<VecDeque<Pending>>,
}

/// Rows of which the first few may have been written.
struct Pending {
    rows: Rows,
    next: usize,
}

impl Pending {
    fn key(&self) -> Option<Key> {
        self.rows.marks.get(self.next).map(|m| m.0)
    }
}

/// Merges reports until all parts have ended; `failure` tells others of errors on the way. The
/// logs are left open.
pub(crate) fn run(
    mut logs: Logs,
    reports: Vec<Arc<Reports>>,
    failure: &Failure,
) -> (Logs, Vec<StreamCount>) {
    let closing: Vec<_> = reports.clone();
    let _no_more: Vec<_> = closing.iter().map(|r| Closing(&r.queue)).collect();
    let start = Some(Key::EARLIEST);
    let part = |reports| Part { reports, until: start, deferred: Deferred::default() };
    let mut parts: Vec<_> = reports.into_iter().map(part).collect();
    let mut streams: Vec<Stream> = Vec::new();
    let mut whole = Whole::default();
    loop {
        // The part that is behind holds all others up.
        let behind = (0..parts.len()).filter_map(|i| parts[i].until.map(|u| (u, i))).min();
        let Some((_, i)) = behind else { break };
        match parts[i].reports.queue.pop() {
            Some(report) => {
                parts[i].until = report.until;
                parts[i].deferred.append(report.deferred);
                keep(&mut streams, i, parts.len(), report.rows);
            }
            // Its thread is gone: there was a panic, which whoever joins it hears of.
            None => parts[i].until = None,
        }
        let until = parts.iter().filter_map(|p| p.until).min();
        for stream in &mut streams {
            write(stream, until, &mut logs, |i, rows| parts[i].reports.give_back(rows));
        }
        whole.decide(&mut logs, parts.iter_mut().map(|p| &mut p.deferred), until);
        if let Err(error) = logs.check() {
            failure.set(error);
        }
    }
    let counts = logs.counts();
    (logs, counts)
}

fn keep(streams: &mut Vec<Stream>, part: usize, parts: usize, rows: Vec<Rows>) {
    for rows in rows {
        let path = rows.shape.path;
        let at = streams.iter().position(|s| s.path == path).unwrap_or_else(|| {
            let parts = (0..parts).map(|_| VecDeque::new()).collect();
            streams.push(Stream { path, parts });
            streams.len() - 1
        });
        streams[at].parts[part].push_back(Pending { rows, next: 0 });
    }
}

/// Writes the rows that come before `until`, of all parts in the order of their keys.
/// What is written is `done` with, by part.
fn write(
    stream: &mut Stream,
    until: Option<Key>,
    logs: &mut Logs,
    mut done: impl FnMut(usize, Rows),
) {
    let parts = &mut stream.parts;
    loop {
        // The part with the next row, and the key up to which its rows come next.
        let mut next: Option<(Key, usize)> = None;
        let mut limit = until;
        for (i, part) in parts.iter().enumerate() {
            let Some(key) = part.front().and_then(Pending::key) else { continue };
            if next.is_none_or(|(least, _)| key < least) {
                if let Some((other, _)) = next {
                    limit = Some(least(limit, other));
                }
                next = Some((key, i));
            } else {
                limit = Some(least(limit, key));
            }
        }
        let Some((key, i)) = next else { return };
        if until.is_some_and(|u| key >= u) {
            return;
        }
        let part = &mut parts[i];
        let Some(pending) = part.front_mut() else { return };
        let from = pending.next;
        let rest = &pending.rows.marks[from..];
        // Keys of different parts differ; should they not, the first part comes first.
        let run = rest.iter().skip(1).take_while(|m| limit.is_none_or(|l| m.0 < l)).count() + 1;
        logs.add(&pending.rows, from..from + run);
        pending.next += run;
        if pending.next == pending.rows.marks.len()
            && let Some(written) = part.pop_front()
        {
            done(i, written.rows);
        }
    }
}

fn least(a: Option<Key>, b: Key) -> Key {
    a.map_or(b, |a| a.min(b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reports::Report;
    use gannet_base::Time;
    use gannet_log::Options;
    use proptest::prelude::*;

    gannet_log::row! {
        /// One row a number.
        struct Number = "number" {
            /// It.
            n: u64 = "n",
        }
    }

    fn key(n: u64) -> Key {
        Key { packet: n, due: Time::MAX, tie: 0 }
    }

    proptest! {
        /// However rows are dealt to parts and cut into reports, they come out in one order.
        #[test]
        fn rows_come_out_in_order(deal in prop::collection::vec((0_usize..3, any::<bool>()), 0..200)) {
            let queues: Vec<_> = (0..3).map(|_| Arc::new(Reports::new(1_000))).collect();
            let mut parts: Vec<_> = (0..3).map(|_| Logs::collecting(Options::default())).collect();
            let report = |part: &mut Logs, until, to: &Reports| {
                let rows = part.take(|path| to.spare(path));
                to.queue.push(Report { until, rows, deferred: Deferred::default() });
            };
            for (n, (part, cut)) in (0..).zip(&deal) {
                parts[*part].set_key(key(n));
                parts[*part].write(&Number { n });
                if *cut {
                    report(&mut parts[*part], Some(key(n + 1)), &queues[*part]);
                }
            }
            for (queue, part) in queues.iter().zip(&mut parts) {
                report(part, None, queue);
            }
            let (merged, counts) = run(Logs::new(Options::default()), queues, &Failure::default());
            let mut alone = Logs::new(Options::default());
            (0..deal.len() as u64).for_each(|n| { alone.write(&Number { n }); });
            prop_assert_eq!(merged.pending("number"), alone.pending("number"));
            prop_assert_eq!(counts, alone.counts());
        }
    }
}
