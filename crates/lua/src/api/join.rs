//! Queries and their responses, paired natively.

use std::collections::HashMap;
use std::collections::VecDeque;

use foldhash::fast::RandomState;
use gannet_pipeline::fingerprint::Fingerprint;

use super::pairing::Pairing;
use super::record::Record;
use super::record::Records;

/// Most pending queries; beyond, the oldest gets no response.
const MAX_WAITING: usize = 1 << 20;

/// Pairs queries with responses.
pub(crate) struct Join {
    /// Nanoseconds that a response may take.
    timeout: i64,
    pairing: Pairing,
    /// Numbers of the queries that wait with a key, oldest first.
    waiting: HashMap<Fingerprint, VecDeque<u64>, RandomState>,
    /// The pending queries by number, from `first` on; answered ones are `None`.
    queries: VecDeque<Option<Query>>,
    first: u64,
    count: usize,
}

struct Query {
    record: Record,
    key: Fingerprint,
    message: Box<[u8]>,
    name: Box<[u8]>,
}

impl Join {
    pub(crate) fn new(timeout: i64) -> Self {
        Self {
            timeout,
            pairing: Pairing::default(),
            waiting: HashMap::default(),
            queries: VecDeque::new(),
            first: 0,
            count: 0,
        }
    }

    /// Nanoseconds that a response may take.
    pub(crate) fn timeout(&self) -> i64 {
        self.timeout
    }

    /// Takes messages, and hands out the pairs that they complete and the queries that are too old.
    pub(crate) fn add(&mut self, messages: &Records, out: &mut Records) {
        for record in &messages.list {
            self.expire(record.time, out);
            let (message, name) = (messages.message(record), messages.name(record));
            let key = self.pairing.of_record(record, message);
            if record.is_response() {
                self.answer(key, record, message, name, out);
                continue;
            }
            if self.count >= MAX_WAITING {
                self.give_up_oldest(out);
            }
            let number = self.first + self.queries.len() as u64;
            let (message, name) = (message.into(), name.into());
            self.queries.push_back(Some(Query { record: *record, key, message, name }));
            self.waiting.entry(key).or_default().push_back(number);
            self.count += 1;
        }
    }

    /// Hands out all that still waits.
    pub(crate) fn finish(&mut self, out: &mut Records) {
        while !self.queries.is_empty() {
            self.give_up_oldest(out);
        }
    }

    fn answer(
        &mut self,
        key: Fingerprint,
        record: &Record,
        message: &[u8],
        name: &[u8],
        out: &mut Records,
    ) {
        let Some(numbers) = self.waiting.get_mut(&key) else { return };
        let number = numbers.pop_front();
        if numbers.is_empty() {
            self.waiting.remove(&key);
        }
        let query = number
            .and_then(|n| self.queries.get_mut((n - self.first) as usize))
            .and_then(Option::take);
        let Some(query) = query else { return };
        self.count -= 1;
        let first = Record { has_pair: 1, ..query.record };
        out.push(first, &query.message, &query.name);
        out.push(Record { is_second: 1, ..*record }, message, name);
    }

    fn expire(&mut self, now: i64, out: &mut Records) {
        while let Some(front) = self.queries.front() {
            match front {
                Some(query) if query.record.time.saturating_add(self.timeout) >= now => break,
                Some(_) => self.give_up_oldest(out),
                None => {
                    self.queries.pop_front();
                    self.first += 1;
                }
            }
        }
    }

    /// The oldest query gets no response.
    fn give_up_oldest(&mut self, out: &mut Records) {
        while let Some(front) = self.queries.pop_front() {
            let number = self.first;
            self.first += 1;
            let Some(query) = front else { continue };
            if let Some(numbers) = self.waiting.get_mut(&query.key) {
                // Of those with one key the oldest is in front.
                if numbers.front() == Some(&number) {
                    numbers.pop_front();
                }
                if numbers.is_empty() {
                    self.waiting.remove(&query.key);
                }
            }
            self.count -= 1;
            out.push(query.record, &query.message, &query.name);
            return;
        }
    }
}
