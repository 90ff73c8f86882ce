//! Queries and answers of a capture, brought together.

use std::collections::HashMap;
use std::collections::VecDeque;

use foldhash::fast::RandomState;

use crate::block::Origin;
use crate::message;
use crate::message::Asked;
use crate::source::Exchange;

use super::Observer;

/// Queries that wait for their answer in the capture; more, and the oldest are forgotten.
const MAX_OPEN: usize = 1 << 18;

type Key = (Exchange, u16);

/// Finds the answers to the queries that are sent.
pub(crate) struct Pairs<'a> {
    observer: &'a Observer,
    /// Origins of the queries that wait: one that was captured twice has two.
    open: HashMap<Key, Vec<(Origin, Asked)>, RandomState>,
    order: VecDeque<Key>,
}

impl<'a> Pairs<'a> {
    pub(crate) fn new(observer: &'a Observer) -> Self {
        Self { observer, open: HashMap::default(), order: VecDeque::new() }
    }

    /// A query of that origin is sent.
    pub(crate) fn asked(&mut self, exchange: Exchange, message: &[u8], origin: Origin) {
        let key = (exchange, message::id(message));
        let asked = self.open.entry(key).or_default();
        asked.push((origin, Asked::of(message)));
        if asked.len() == 1 {
            self.order.push_back(key);
        }
        if self.order.len() > MAX_OPEN
            && let Some(oldest) = self.order.pop_front()
        {
            self.open.remove(&oldest);
        }
    }

    /// An answer was captured: it is that of all queries before that asked the same.
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

    /// Whether no query waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }
}
