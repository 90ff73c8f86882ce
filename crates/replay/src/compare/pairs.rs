//! Matching of the queries and answers of a capture.

use std::collections::HashMap;
use std::collections::VecDeque;

use foldhash::fast::RandomState;

use crate::block::Origin;
use crate::message;
use crate::message::QuestionKey;
use crate::source::Exchange;

use super::Observer;

/// Maximum number of queries whose answers are searched for in the capture; beyond it, the oldest
/// are forgotten.
const MAX_OPEN: usize = 1 << 18;

type Key = (Exchange, u16);

/// Finds the captured answers to the queries that are sent.
pub(crate) struct Pairs<'a> {
    observer: &'a Observer,
    /// Origins of the queries without an answer: a query that was captured twice has two.
    open: HashMap<Key, Vec<(Origin, QuestionKey)>, RandomState>,
    /// The latest queries, including those that were answered.
    order: VecDeque<(Key, u64)>,
    /// Maximum length of `order`.
    max_queries: usize,
    /// Number of queries that were forgotten without an answer.
    forgotten: u64,
}

impl<'a> Pairs<'a> {
    pub(crate) fn new(observer: &'a Observer) -> Self {
        Self {
            observer,
            open: HashMap::default(),
            order: VecDeque::new(),
            max_queries: MAX_OPEN,
            forgotten: 0,
        }
    }

    /// Adds a query that is sent.
    pub(crate) fn query_sent(&mut self, exchange: Exchange, message: &[u8], origin: Origin) {
        let key = (exchange, message::id(message));
        self.open.entry(key).or_default().push((origin, QuestionKey::of(message)));
        self.order.push_back((key, origin.number));
        if self.order.len() > self.max_queries
            && let Some((oldest, number)) = self.order.pop_front()
            && let Some(asked) = self.open.get_mut(&oldest)
        {
            let before = asked.len();
            // A later query may have the same ports and id.
            asked.retain(|(origin, _)| origin.number != number);
            self.forgotten += (before - asked.len()) as u64;
            if asked.is_empty() {
                self.open.remove(&oldest);
            }
        }
    }

    /// Matches a captured answer with all earlier queries that have the same question.
    pub(crate) fn answered(&mut self, exchange: Exchange, message: &[u8]) {
        let key = (exchange, message::id(message));
        let Some(asked) = self.open.get_mut(&key) else { return };
        asked.retain(|(origin, asked)| {
            let fits = asked.is_answered_by(message);
            if fits {
                self.observer.answered(*origin, message);
            }
            !fits
        });
        if asked.is_empty() {
            self.open.remove(&key);
        }
    }

    /// Number of queries that were forgotten before their answer was found.
    pub(crate) fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Whether all queries were answered or forgotten.
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Observer;
    use super::super::Side;
    use super::*;
    use gannet_base::Addr;
    use std::sync::mpsc;

    #[test]
    fn queries_beyond_the_limit_are_counted_and_later_ones_stay() {
        let (to, answers) = mpsc::sync_channel(8);
        let observer = Observer { side: Side::Other, to };
        let mut pairs = Pairs::new(&observer);
        pairs.max_queries = 2;
        let host = Addr::v4([10, 0, 0, 1]);
        let exchange = Exchange { client: (host, 4000), server: (host, 53) };
        let message = |id: u8, flags: u8| {
            let mut m = b"\0\0\0\0\0\x01\0\0\0\0\0\0\x01a\0\0\x01\0\x01".to_vec();
            (m[1], m[2]) = (id, flags);
            m
        };
        // The first two have the same id; the second one stays when the first is forgotten.
        for (number, id) in [1, 1, 2].into_iter().enumerate() {
            pairs.query_sent(exchange, &message(id, 0), (number as u64).into());
        }
        assert_eq!(pairs.forgotten(), 1);
        pairs.answered(exchange, &message(1, 0x80));
        pairs.answered(exchange, &message(2, 0x80));
        assert!(pairs.is_empty());
        // Answered queries do not count as forgotten.
        pairs.query_sent(exchange, &message(3, 0), 3.into());
        assert_eq!(pairs.forgotten(), 1);
        drop(pairs);
        drop(observer);
        let numbers: Vec<_> = answers.iter().map(|answer| answer.origin.number).collect();
        assert_eq!(numbers, [1, 2]);
    }
}
