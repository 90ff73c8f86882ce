//! The thread that puts rows in order and decides what takes all parts to decide.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;

use gannet_base::Time;
use gannet_log::Key;
use gannet_log::Logs;
use gannet_log::Rows;
use gannet_log::StreamCount;
use gannet_protocols::later::Deferred;
use gannet_protocols::later::Whole;

use crate::queue::Closing;
use crate::reports::CLOSING;
use crate::reports::Report;
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
    /// Where in the logs, once there is a row.
    place: Option<usize>,
    parts: Vec<VecDeque<Pending>>,
    /// By part, the key of the next row.
    heads: Vec<Key>,
}

/// Rows of which the first few may have been written.
struct Pending {
    rows: Rows,
    next: usize,
}

/// In place of the key of the next row, where there is none.
const NONE: Key = Key { packet: u64::MAX, due: Time::MAX, tie: u64::MAX };

impl Pending {
    fn key(&self) -> Key {
        self.rows.marks.get(self.next).map_or(NONE, |m| m.0)
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
    let part = |reports: Arc<Reports>| Part {
        until: Some(reports.from),
        reports,
        deferred: Deferred::default(),
    };
    let mut parts: Vec<_> = reports.into_iter().map(part).collect();
    let mut streams: Vec<Stream> = Vec::new();
    let mut whole = Whole::default();
    loop {
        // The part that is behind holds all others up.
        let behind = (0..parts.len()).filter_map(|i| parts[i].until.map(|u| (u, i))).min();
        let Some((_, i)) = behind else { break };
        let report = parts[i].reports.queue.pop();
        take(&mut parts, &mut streams, i, report);
        for i in 0..parts.len() {
            // What the hub has made meanwhile.
            while parts[i].until == Some(CLOSING)
                && let Some(report) = parts[i].reports.queue.try_pop()
            {
                take(&mut parts, &mut streams, i, Some(report));
            }
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

/// What a part reported, or that its thread is gone: there was a panic, which whoever joins it hears
/// of.
fn take(parts: &mut [Part], streams: &mut Vec<Stream>, part: usize, report: Option<Report>) {
    let n = parts.len();
    let Some(from) = parts.get_mut(part) else { return };
    from.until = report.as_ref().and_then(|r| r.until);
    let Some(report) = report else { return };
    from.deferred.append(report.deferred);
    for rows in report.rows {
        let path = rows.shape.path;
        let at = streams.iter().position(|s| s.path == path).unwrap_or_else(|| {
            let parts = (0..n).map(|_| VecDeque::new()).collect();
            streams.push(Stream { path, place: None, parts, heads: vec![NONE; n] });
            streams.len() - 1
        });
        let (stream, pending) = (&mut streams[at], Pending { rows, next: 0 });
        if stream.parts[part].is_empty() {
            stream.heads[part] = pending.key();
        }
        stream.parts[part].push_back(pending);
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
    let until = until.unwrap_or(NONE);
    loop {
        // The part with the next row, and the key up to which its rows come next.
        let (mut i, mut key, mut limit) = (0, NONE, until);
        for (at, head) in stream.heads.iter().enumerate() {
            if *head < key {
                limit = limit.min(key);
                (i, key) = (at, *head);
            } else {
                limit = limit.min(*head);
            }
        }
        if key >= until {
            return;
        }
        let (Some(part), Some(head)) = (stream.parts.get_mut(i), stream.heads.get_mut(i)) else {
            return;
        };
        let Some(pending) = part.front_mut() else { return };
        let from = pending.next;
        let rest = pending.rows.marks.get(from + 1..).unwrap_or_default();
        // Keys of different parts differ; should they not, the first part comes first.
        pending.next = from + 1 + rest.iter().take_while(|m| m.0 < limit).count();
        let place = *stream.place.get_or_insert_with(|| logs.place(&pending.rows));
        logs.add_at(place, &pending.rows, from..pending.next);
        *head = pending.key();
        if pending.next == pending.rows.marks.len()
            && let Some(written) = part.pop_front()
        {
            done(i, written.rows);
            *head = part.front().map_or(NONE, Pending::key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
                let rows = part.take();
                part.reuse(to.spare());
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
