//! Which queries of one client wait for answers: a table by message id.

use crate::block::Origin;
use crate::message::Asked;

/// Entries a table begins with.
const START: usize = 16;
/// Entries up to which a table grows so as not to forget a query that was lost, and how long ago it
/// was sent for that, in nanoseconds.
const MEMORY: usize = 4096;
const REMEMBER: u64 = 10_000_000_000;
/// Ids there are.
const IDS: usize = 1 << 16;

/// The result of matching an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It answers a query that was first sent at this time, in nanoseconds of the run.
    Answers(u64),
    /// Its query was given up before.
    Late,
    /// Its query was answered before.
    Duplicate,
    /// Its id is that of a waiting query, its question is not.
    Mismatch,
    /// Nothing with that id was asked lately.
    Unexpected,
}

/// What becomes of a query whose time is over.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Expired {
    /// It was answered meanwhile.
    Settled,
    /// It is to be sent again: these bytes.
    Again(Box<[u8]>),
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
    /// Where it comes from.
    origin: Origin,
    asked: Asked,
    id: u16,
    state: State,
    /// Times it may be sent again.
    tries: u8,
    /// The message with its id, where it may be.
    kept: Option<Box<[u8]>>,
}

/// A query that was given up.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct WithdrawnQuery {
    /// When it was first sent.
    pub(crate) first_sent: u64,
    /// Where it comes from.
    pub(crate) origin: Origin,
    /// Its message and how often it may be sent again, where it may.
    pub(crate) again: Option<(Box<[u8]>, u8)>,
}

impl Entry {
    fn withdraw(&mut self) -> WithdrawnQuery {
        self.state = State::Lost;
        let tries = self.tries;
        let again = self.kept.take().filter(|_| tries > 0).map(|kept| (kept, tries));
        WithdrawnQuery { first_sent: self.first_sent, origin: self.origin, again }
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

    /// Queries that wait.
    pub(crate) fn len(&self) -> usize {
        self.waiting
    }

    /// Whether there is no id left.
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
        // A quarter of the table at least is free.
        loop {
            let id = self.next;
            let entry = &self.entries[self.place(id)];
            let is_young = now.saturating_sub(entry.first_sent) < REMEMBER;
            if entry.state == State::Lost && is_young && self.entries.len() < MEMORY {
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

    /// Notes a query that goes out with an id that [`take_id`](Self::take_id) gave.
    pub(crate) fn sent(&mut self, id: u16, now: u64, message: &[u8], retries: u8, origin: Origin) {
        let at = self.place(id);
        let kept = (retries > 0).then(|| message.into());
        let asked = Asked::of(message);
        self.entries[at] = Entry {
            first_sent: now,
            origin,
            asked,
            id,
            state: State::Waiting,
            tries: retries,
            kept,
        };
        self.waiting += 1;
    }

    /// Where the query comes from that was last sent with `id`.
    pub(crate) fn origin(&self, id: u16) -> Option<Origin> {
        self.entries.get(self.place(id)).filter(|e| e.id == id).map(|e| e.origin)
    }

    /// Takes a query back that did not go out.
    pub(crate) fn unsent(&mut self, id: u16) {
        let at = self.place(id);
        self.entries[at] = Entry::default();
        self.waiting -= 1;
    }

    /// Judges an answer, and settles its query.
    pub(crate) fn answer(&mut self, id: u16, answer: &[u8]) -> Verdict {
        let at = self.place(id);
        let Some(entry) = self.entries.get_mut(at).filter(|e| e.id == id) else {
            return Verdict::Unexpected;
        };
        let fits = entry.asked.is_answered_by(answer);
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

    /// The time of the query that was first sent with `id` at `first_sent` is over for this try.
    pub(crate) fn expire(&mut self, id: u16, first_sent: u64) -> Expired {
        let at = self.place(id);
        let same =
            |e: &&mut Entry| e.id == id && e.first_sent == first_sent && e.state == State::Waiting;
        let Some(entry) = self.entries.get_mut(at).filter(same) else { return Expired::Settled };
        if entry.tries > 0
            && let Some(kept) = &entry.kept
        {
            entry.tries -= 1;
            return Expired::Again(kept.clone());
        }
        entry.state = State::Lost;
        entry.kept = None;
        self.waiting -= 1;
        Expired::Lost
    }

    /// Gives the query that was first sent with `id` at `first_sent` up, if it still waits: another
    /// answer to it is late.
    pub(crate) fn withdraw(&mut self, id: u16, first_sent: u64) -> Option<WithdrawnQuery> {
        let at = self.place(id);
        let same =
            |e: &&mut Entry| e.id == id && e.first_sent == first_sent && e.state == State::Waiting;
        let entry = self.entries.get_mut(at).filter(same)?;
        self.waiting -= 1;
        Some(entry.withdraw())
    }

    /// Gives up all queries that wait.
    pub(crate) fn withdraw_all(&mut self) -> impl Iterator<Item = WithdrawnQuery> {
        self.waiting = 0;
        self.entries.iter_mut().filter(|e| e.state == State::Waiting).map(Entry::withdraw)
    }

    fn place(&self, id: u16) -> usize {
        usize::from(id) & self.entries.len().wrapping_sub(1)
    }

    /// Doubles the table: ids that were apart stay apart.
    fn grow(&mut self) {
        let size = (self.entries.len() * 2).clamp(START, IDS);
        let old = std::mem::take(&mut self.entries);
        self.entries.resize_with(size, Entry::default);
        for entry in old.into_iter().filter(|e| e.state != State::Empty) {
            let at = self.place(entry.id);
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
    fn answers_are_judged_by_id_and_question() {
        let mut w = Waiting::new(65_535);
        let id = w.take_id(0).unwrap();
        assert_eq!(id, 65_535);
        w.sent(id, 7, &message(id, b'a', false), 0, 3.into());
        assert_eq!(w.answer(3, &message(3, b'a', true)), Verdict::Unexpected);
        assert_eq!(w.answer(id, &message(id, b'b', true)), Verdict::Mismatch);
        assert_eq!(w.answer(id, &message(id, b'A', true)), Verdict::Answers(7));
        assert_eq!(w.answer(id, &message(id, b'a', true)), Verdict::Duplicate);
        assert_eq!(w.answer(id, &message(id, b'b', true)), Verdict::Unexpected);
        assert_eq!(w.expire(id, 7), Expired::Settled);
        assert_eq!(w.len(), 0);
    }

    #[test]
    fn lost_queries_know_their_late_answers() {
        let mut w = Waiting::new(0);
        let id = w.take_id(0).unwrap();
        let query = message(id, b'a', false);
        w.sent(id, 7, &query, 1, 3.into());
        assert_eq!(w.expire(id, 6), Expired::Settled, "of an older query with this id");
        assert_eq!(w.expire(id, 7), Expired::Again(query.into()));
        assert_eq!(w.expire(id, 7), Expired::Lost);
        assert_eq!(w.answer(id, &message(id, b'a', true)), Verdict::Late);
    }

    #[test]
    fn lost_queries_are_remembered_while_others_come_and_go() {
        let mut w = Waiting::new(0);
        for n in 0..2000 {
            let id = w.take_id(n).unwrap();
            w.sent(id, n, &message(id, b'a', false), 0, n.into());
            assert_eq!(w.expire(id, n), Expired::Lost);
        }
        assert_eq!(w.answer(1, &message(1, b'a', true)), Verdict::Late);
        let size = w.entries.len();
        for n in 0..20_000 {
            let now = REMEMBER + 2000 + n;
            let id = w.take_id(now).unwrap();
            w.sent(id, now, &message(id, b'a', false), 0, n.into());
            assert_eq!(w.answer(id, &message(id, b'a', true)), Verdict::Answers(now));
        }
        assert_eq!(w.entries.len(), size, "and forgotten in time");
    }

    #[test]
    fn what_is_withdrawn_tells_how_often_it_may_go_again() {
        let mut w = Waiting::new(5);
        let ids = [(); 3].map(|()| w.take_id(0).unwrap());
        for (id, retries) in ids.into_iter().zip([0, 2, 1]) {
            w.sent(id, 7, &message(id, b'a', false), retries, 3.into());
        }
        assert_eq!(w.withdraw(ids[1], 8), None, "another query with this id");
        let again = Some((message(ids[1], b'a', false).into_boxed_slice(), 2));
        assert_eq!(
            w.withdraw(ids[1], 7),
            Some(WithdrawnQuery { first_sent: 7, origin: 3.into(), again })
        );
        assert_eq!(w.withdraw(ids[1], 7), None);
        assert_eq!(w.answer(ids[1], &message(ids[1], b'a', true)), Verdict::Late);
        let rest: Vec<_> = w.withdraw_all().map(|w| w.again.map(|a| a.1)).collect();
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
        /// Whatever the order of answers, each query is settled by its own one.
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
