//! Pairing of queries and responses.

use std::collections::HashMap;
use std::collections::VecDeque;

use foldhash::fast::RandomState;
use gannet_pipeline::fingerprint::Fingerprint;

use super::pairing::Pairing;
use super::record::Record;
use super::record::Records;

/// Maximum number of pending queries; beyond it, the oldest is returned without a response.
const MAX_WAITING: usize = 1 << 20;

/// Pairs queries with responses.
pub(crate) struct Join {
    /// Maximum time between query and response, in nanoseconds.
    timeout: i64,
    pairing: Pairing,
    /// Numbers of the pending queries with a key, oldest first.
    waiting: HashMap<Fingerprint, VecDeque<u64>, RandomState>,
    /// Pending queries by number, beginning with number `first`; answered ones are `None`.
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

    /// Maximum time between query and response, in nanoseconds.
    pub(crate) fn timeout(&self) -> i64 {
        self.timeout
    }

    /// Adds messages; appends the completed pairs and the expired queries to `out`.
    pub(crate) fn add(&mut self, messages: &Records, out: &mut Records) {
        for record in &messages.list {
            self.expire(record.time, out);
            let (message, name) = (messages.message(record), messages.name(record));
            let key = self.pairing.for_record(record, message);
            if record.is_response() {
                self.answer(key, record, message, name, out);
                continue;
            }
            if self.count >= MAX_WAITING {
                self.expire_oldest(out);
            }
            let number = self.first + self.queries.len() as u64;
            let (message, name) = (message.into(), name.into());
            self.queries.push_back(Some(Query { record: *record, key, message, name }));
            self.waiting.entry(key).or_default().push_back(number);
            self.count += 1;
        }
    }

    /// Appends all pending queries to `out`.
    pub(crate) fn finish(&mut self, out: &mut Records) {
        while !self.queries.is_empty() {
            self.expire_oldest(out);
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
                Some(_) => self.expire_oldest(out),
                None => {
                    self.queries.pop_front();
                    self.first += 1;
                }
            }
        }
    }

    /// Appends the oldest query, without a response, to `out`.
    fn expire_oldest(&mut self, out: &mut Records) {
        while let Some(front) = self.queries.pop_front() {
            let number = self.first;
            self.first += 1;
            let Some(query) = front else { continue };
            if let Some(numbers) = self.waiting.get_mut(&query.key) {
                // The oldest query with a key is at the front.
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
