//! Matching received messages with queries.

use crate::Verdict;
use crate::compare::Observer;
use crate::inflight::Waiting;
use crate::message;
use crate::stats::Stats;

/// Matches a message received at `now` with `waiting` queries, counts it, and notifies the
/// observer; returns whether it completed a query.
pub(crate) fn match_response(
    stats: &mut Stats,
    waiting: &mut Waiting,
    bytes: &[u8],
    now: u64,
    observer: Option<&Observer>,
) -> bool {
    let counts = &mut stats.at(now).counts;
    counts.messages_received += 1;
    counts.received_bytes += bytes.len() as u64;
    if !message::is_response(bytes) {
        counts.garbage += 1;
        return false;
    }
    match waiting.answer(message::id(bytes), bytes) {
        Verdict::Answers(first_sent) => {
            let rcode = usize::from(message::rcode(bytes));
            stats.record_result(now, first_sent, |interval| {
                interval.counts.answered += 1;
                interval.counts.rcodes[rcode] += 1;
                interval.latency.record(now.saturating_sub(first_sent));
            });
            if let Some(observer) = observer
                && let Some(origin) = waiting.origin(message::id(bytes))
            {
                observer.answered(origin, bytes);
            }
            return true;
        }
        Verdict::Late => counts.late += 1,
        Verdict::Duplicate => counts.duplicates += 1,
        Verdict::Mismatch => counts.mismatched += 1,
        Verdict::Unexpected => counts.unexpected += 1,
    }
    false
}
