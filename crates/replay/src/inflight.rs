//! The table of the queries of one client that wait for answers, by message id.

use crate::block::Origin;
use crate::message::QuestionKey;

/// Initial number of entries of a table.
const INITIAL_ENTRIES: usize = 16;
/// Number of entries up to which a table grows to keep recently lost queries, and the time since
/// sending during which they count as recent, in nanoseconds.
const MAX_KEPT_ENTRIES: usize = 4096;
const KEEP_LOST_FOR: u64 = 10_000_000_000;
/// Number of message ids.
const IDS: usize = 1 << 16;

/// The result of matching an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The answer to a query that was first sent at this time, in nanoseconds of the run.
    Answers(u64),
    /// Its query was counted as lost before.
    Late,
    /// Its query was answered before.
    Duplicate,
    /// Its id is that of a waiting query, its question is not.
    Mismatch,
    /// No recent query had that id.
    Unexpected,
}

/// The fate of a query whose timeout has expired.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Expired {
    /// It was answered before.
    Answered,
    /// It must be sent again; its message.
    Retry(Box<[u8]>),
    /// It is lost.
    Lost,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Empty,
    Waiting,
    Answered,
    Lost,
}

#[derive(Debug, Default)]
struct Entry {
    first_sent: u64,
    /// Its position in the run and in the input.
    origin: Origin,
    question_key: QuestionKey,
    id: u16,
    state: State,
    /// Remaining number of retries.
    retries_left: u8,
    /// The message with its id, if it may be sent again.
    kept: Option<Box<[u8]>>,
}

/// A query that no longer waits for an answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct WithdrawnQuery {
    /// Time at which it was first sent.
    pub(crate) first_sent: u64,
    /// Its position in the run and in the input.
    pub(crate) origin: Origin,
    /// Its message and the remaining number of retries, if it may be sent again.
    pub(crate) retry: Option<(Box<[u8]>, u8)>,
}

impl Entry {
    fn withdraw(&mut self) -> WithdrawnQuery {
        self.state = State::Lost;
        let retries_left = self.retries_left;
        let retry = self.kept.take().filter(|_| retries_left > 0).map(|kept| (kept, retries_left));
        WithdrawnQuery { first_sent: self.first_sent, origin: self.origin, retry }
    }
}

/// The queries of one client, by the ids they were sent with.
///
/// An entry is at its id modulo the size of the table, a power of two that grows with the number of
/// pending queries. Entries remain after their answer until their slot is reused, so that late and
/// duplicate answers are recognised. The table also grows, within limits, before it would overwrite
/// a recently lost query.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    entries: Vec<Entry>,
    next: u16,
    waiting: usize,
}

impl Waiting {
    /// A table whose ids begin at `seed`.
    pub(crate) fn new(seed: u16) -> Self {
        Self { next: seed, ..Self::default() }
    }

    /// Number of waiting queries.
    pub(crate) fn len(&self) -> usize {
        self.waiting
    }

    /// Whether all ids are in use.
    pub(crate) fn is_full(&self) -> bool {
        self.waiting >= IDS - IDS / 4
    }

    /// An unused id for the next query, if there is one.
    pub(crate) fn take_id(&mut self, now: u64) -> Option<u16> {
        if self.is_full() {
            return None;
        }
        if self.waiting * 4 >= self.entries.len() * 3 {
            self.grow();
        }
        // At least a quarter of the table is free.
        loop {
            let id = self.next;
            let entry = &self.entries[self.index(id)];
            let is_young = now.saturating_sub(entry.first_sent) < KEEP_LOST_FOR;
            if entry.state == State::Lost && is_young && self.entries.len() < MAX_KEPT_ENTRIES {
                self.grow();
                continue;
            }
            let is_free = entry.state != State::Waiting;
            self.next = self.next.wrapping_add(1);
            if is_free {
                return Some(id);
            }
        }
    }

    /// Adds a query that is sent with an id from [`take_id`](Self::take_id).
    pub(crate) fn sent(&mut self, id: u16, now: u64, message: &[u8], retries: u8, origin: Origin) {
        let at = self.index(id);
        let kept = (retries > 0).then(|| message.into());
        let question_key = QuestionKey::of(message);
        self.entries[at] = Entry {
            first_sent: now,
            origin,
            question_key,
            id,
            state: State::Waiting,
            retries_left: retries,
            kept,
        };
        self.waiting += 1;
    }

    /// The origin of the query that was last sent with `id`.
    pub(crate) fn origin(&self, id: u16) -> Option<Origin> {
        self.entries.get(self.index(id)).filter(|e| e.id == id).map(|e| e.origin)
    }

    /// Removes a query that could not be sent.
    pub(crate) fn unsent(&mut self, id: u16) {
        let at = self.index(id);
        self.entries[at] = Entry::default();
        self.waiting -= 1;
    }

    /// Matches an answer with its query, which then no longer waits.
    pub(crate) fn answer(&mut self, id: u16, answer: &[u8]) -> Verdict {
        let at = self.index(id);
        let Some(entry) = self.entries.get_mut(at).filter(|e| e.id == id) else {
            return Verdict::Unexpected;
        };
        let fits = entry.question_key.is_answered_by(answer);
        match entry.state {
            State::Empty => Verdict::Unexpected,
            State::Waiting if !fits => Verdict::Mismatch,
            State::Waiting => {
                entry.state = State::Answered;
                entry.kept = None;
                self.waiting -= 1;
                Verdict::Answers(entry.first_sent)
            }
            _ if !fits => Verdict::Unexpected,
            State::Answered => Verdict::Duplicate,
            State::Lost => Verdict::Late,
        }
    }

    /// Expires the query that was first sent with `id` at `first_sent`.
    pub(crate) fn expire(&mut self, id: u16, first_sent: u64) -> Expired {
        let at = self.index(id);
        let same =
            |e: &&mut Entry| e.id == id && e.first_sent == first_sent && e.state == State::Waiting;
        let Some(entry) = self.entries.get_mut(at).filter(same) else { return Expired::Answered };
        if entry.retries_left > 0
            && let Some(kept) = &entry.kept
        {
            entry.retries_left -= 1;
            return Expired::Retry(kept.clone());
        }
        entry.state = State::Lost;
        entry.kept = None;
        self.waiting -= 1;
        Expired::Lost
    }

    /// Withdraws the query that was first sent with `id` at `first_sent`, if it still waits: later
    /// answers to it count as late.
    pub(crate) fn withdraw(&mut self, id: u16, first_sent: u64) -> Option<WithdrawnQuery> {
        let at = self.index(id);
        let same =
            |e: &&mut Entry| e.id == id && e.first_sent == first_sent && e.state == State::Waiting;
        let entry = self.entries.get_mut(at).filter(same)?;
        self.waiting -= 1;
        Some(entry.withdraw())
    }

    /// Withdraws all waiting queries.
    pub(crate) fn withdraw_all(&mut self) -> impl Iterator<Item = WithdrawnQuery> {
        self.waiting = 0;
        self.entries.iter_mut().filter(|e| e.state == State::Waiting).map(Entry::withdraw)
    }

    fn index(&self, id: u16) -> usize {
        usize::from(id) & self.entries.len().wrapping_sub(1)
    }

    /// Doubles the table: ids in different slots stay in different slots.
    fn grow(&mut self) {
        let size = (self.entries.len() * 2).clamp(INITIAL_ENTRIES, IDS);
        let old = std::mem::take(&mut self.entries);
        self.entries.resize_with(size, Entry::default);
        for entry in old.into_iter().filter(|e| e.state != State::Empty) {
            let at = self.index(entry.id);
            self.entries[at] = entry;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn message(id: u16, name: u8, response: bool) -> Vec<u8> {
        let [a, b] = id.to_be_bytes();
        vec![a, b, u8::from(response) << 7, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, name, 0, 0, 1, 0, 1]
    }

    #[test]
    fn answers_are_matched_by_id_and_question() {
        let mut w = Waiting::new(65_535);
        let id = w.take_id(0).unwrap();
        assert_eq!(id, 65_535);
        w.sent(id, 7, &message(id, b'a', false), 0, 3.into());
        assert_eq!(w.answer(3, &message(3, b'a', true)), Verdict::Unexpected);
        assert_eq!(w.answer(id, &message(id, b'b', true)), Verdict::Mismatch);
        assert_eq!(w.answer(id, &message(id, b'A', true)), Verdict::Answers(7));
        assert_eq!(w.answer(id, &message(id, b'a', true)), Verdict::Duplicate);
        assert_eq!(w.answer(id, &message(id, b'b', true)), Verdict::Unexpected);
        assert_eq!(w.expire(id, 7), Expired::Answered);
        assert_eq!(w.len(), 0);
    }

    #[test]
    fn answers_to_lost_queries_are_late() {
        let mut w = Waiting::new(0);
        let id = w.take_id(0).unwrap();
        let query = message(id, b'a', false);
        w.sent(id, 7, &query, 1, 3.into());
        assert_eq!(w.expire(id, 6), Expired::Answered, "of an older query with this id");
        assert_eq!(w.expire(id, 7), Expired::Retry(query.into()));
        assert_eq!(w.expire(id, 7), Expired::Lost);
        assert_eq!(w.answer(id, &message(id, b'a', true)), Verdict::Late);
    }

    #[test]
    fn lost_queries_are_kept_while_others_are_answered() {
        let mut w = Waiting::new(0);
        for n in 0..2000 {
            let id = w.take_id(n).unwrap();
            w.sent(id, n, &message(id, b'a', false), 0, n.into());
            assert_eq!(w.expire(id, n), Expired::Lost);
        }
        assert_eq!(w.answer(1, &message(1, b'a', true)), Verdict::Late);
        let size = w.entries.len();
        for n in 0..20_000 {
            let now = KEEP_LOST_FOR + 2000 + n;
            let id = w.take_id(now).unwrap();
            w.sent(id, now, &message(id, b'a', false), 0, n.into());
            assert_eq!(w.answer(id, &message(id, b'a', true)), Verdict::Answers(now));
        }
        assert_eq!(w.entries.len(), size, "and forgotten in time");
    }

    #[test]
    fn withdrawn_queries_have_their_remaining_retries() {
        let mut w = Waiting::new(5);
        let ids = [(); 3].map(|()| w.take_id(0).unwrap());
        for (id, retries) in ids.into_iter().zip([0, 2, 1]) {
            w.sent(id, 7, &message(id, b'a', false), retries, 3.into());
        }
        assert_eq!(w.withdraw(ids[1], 8), None, "another query with this id");
        let retry = Some((message(ids[1], b'a', false).into_boxed_slice(), 2));
        assert_eq!(
            w.withdraw(ids[1], 7),
            Some(WithdrawnQuery { first_sent: 7, origin: 3.into(), retry })
        );
        assert_eq!(w.withdraw(ids[1], 7), None);
        assert_eq!(w.answer(ids[1], &message(ids[1], b'a', true)), Verdict::Late);
        let rest: Vec<_> = w.withdraw_all().map(|w| w.retry.map(|a| a.1)).collect();
        assert_eq!((rest.len(), w.len()), (2, 0));
        assert!(rest.contains(&None) && rest.contains(&Some(1)));
    }

    #[test]
    fn ids_run_out_before_the_table_does() {
        let mut w = Waiting::new(9);
        let mut sent = 0;
        while let Some(id) = w.take_id(0) {
            w.sent(id, 0, &message(id, 1, false), 0, 3.into());
            sent += 1;
        }
        assert_eq!((sent, w.len()), (IDS - IDS / 4, IDS - IDS / 4));
        assert_eq!(w.answer(20, &message(20, 1, true)), Verdict::Answers(0));
        assert!(w.take_id(0).is_some());
    }

    proptest! {
        /// Each query is matched with its own answer in any order of answers.
        #[test]
        fn every_query_finds_its_answer(order in proptest::collection::vec(any::<bool>(), 1..400)) {
            let mut w = Waiting::new(65_500);
            let mut open = Vec::new();
            for (now, ask) in order.into_iter().enumerate() {
                if ask || open.is_empty() {
                    let id = w.take_id(0).unwrap();
                    prop_assert!(open.iter().all(|(other, _)| *other != id));
                    w.sent(id, now as u64, &message(id, now as u8, false), 0, 3.into());
                    open.push((id, now as u64));
                } else {
                    let (id, first) = open.swap_remove(now % open.len());
                    let answer = message(id, first as u8, true);
                    prop_assert_eq!(w.answer(id, &answer), Verdict::Answers(first));
                }
                prop_assert_eq!(w.len(), open.len());
            }
        }
    }
}
