//! Joins queries and replies to exchanges, each of which becomes one row.
//!
//! On one connection a reply belongs to the oldest query with its transaction ID. An unpaired message
//! waits until the connection ends and is then logged in a row of its own. If too many messages wait, those of one ID,
//! or all, are logged earlier. Messages to multicast addresses are never
//! joined: their replies use other connections.

use std::collections::VecDeque;

use gannet_base::Interval;
use gannet_base::Time;

use super::answers::Answers;
use super::framing::Framing;
use super::message::Header;
use super::name::Name;

/// Default maximum number of IDs with unpaired messages of one kind (queries or replies) on one connection; beyond it, all
/// are logged.
pub const MAX_PENDING_IDS: usize = 50;

/// Maximum number of unpaired messages of one kind and ID on one connection; beyond it, they are logged.
pub const MAX_PENDING_MESSAGES: usize = 50;

/// Maximum memory use of unpaired messages of one kind on one connection, in bytes; beyond it, they are logged. Zeek has
/// no such limit; only zone transfers come near it.
pub const MAX_PENDING_BYTES: usize = 1 << 20;

/// A query, its reply, or both: the data of a row.
#[derive(Clone, Debug)]
pub(super) struct Exchange {
    /// Time of the first message.
    pub(super) ts: Time,
    /// Time from the first message to the first answer; zero if unknown.
    pub(super) rtt: Interval,
    /// Name in the question.
    pub(super) query: Name,
    /// Answers of a reply that waits for its query.
    pub(super) answers: Option<Box<Answers>>,
    pub(super) trans_id: u16,
    pub(super) qtype: u16,
    pub(super) qclass: u16,
    /// Bit set of [`flag`]s.
    pub(super) flags: u16,
    pub(super) opcode: u8,
    pub(super) rcode: u8,
    pub(super) z: u8,
}

/// Bits of [`Exchange::flags`].
pub(super) mod flag {
    /// `query` holds a name.
    pub(in super::super) const NAME: u16 = 1;
    /// `qtype` and `qclass` are set.
    pub(in super::super) const QUESTION: u16 = 1 << 1;
    /// `rcode` is set.
    pub(in super::super) const RCODE: u16 = 1 << 2;
    /// The server rejected the query.
    pub(in super::super) const REJECTED: u16 = 1 << 3;
    /// The operation is one of the NetBIOS name service.
    pub(in super::super) const NETBIOS: u16 = 1 << 4;
    /// The query type is one of the NetBIOS name service.
    pub(in super::super) const NETBIOS_TYPE: u16 = 1 << 5;
    /// The server offers recursion. This bit and the next three are at the same position in the header.
    pub(in super::super) const RA: u16 = 1 << 7;
    /// The query requested recursion.
    pub(in super::super) const RD: u16 = 1 << 8;
    /// The query was truncated.
    pub(in super::super) const TC: u16 = 1 << 9;
    /// The reply is authoritative.
    pub(in super::super) const AA: u16 = 1 << 10;
    /// A query was completely parsed.
    pub(in super::super) const SAW_QUERY: u16 = 1 << 11;
    /// A reply was completely parsed.
    pub(in super::super) const SAW_REPLY: u16 = 1 << 12;
    /// Both a query and a reply were completely parsed.
    pub(in super::super) const SAW_BOTH: u16 = SAW_QUERY | SAW_REPLY;
}

impl Exchange {
    /// An exchange of a first message.
    pub(super) fn new(ts: Time, trans_id: u16) -> Self {
        Self {
            ts,
            rtt: Interval::ZERO,
            query: Name::new(b""),
            answers: None,
            trans_id,
            qtype: 0,
            qclass: 0,
            flags: 0,
            opcode: 0,
            rcode: 0,
            z: 0,
        }
    }

    /// Reinitializes an exchange in place, like [`new`](Self::new).
    #[inline]
    fn reset(&mut self, ts: Time, trans_id: u16) {
        (self.ts, self.rtt, self.trans_id) = (ts, Interval::ZERO, trans_id);
        self.query.clear();
        self.answers = None;
        (self.qtype, self.qclass, self.flags) = (0, 0, 0);
        (self.opcode, self.rcode, self.z) = (0, 0, 0);
    }

    /// Approximate memory use, in bytes.
    fn weight(&self) -> usize {
        size_of::<Self>() + self.answers.as_ref().map_or(0, |a| a.weight())
    }

    /// Whether all bits of `mask` are set.
    pub(super) fn has(&self, mask: u16) -> bool {
        self.flags & mask == mask
    }

    /// Copies the bits of a mask from the flags of a header.
    pub(super) fn copy_flags(&mut self, mask: u16, header: &Header) {
        self.flags = self.flags & !mask | header.flags & mask;
    }

    /// Sets or clears bits.
    pub(super) fn set(&mut self, mask: u16, on: bool) {
        self.flags = if on { self.flags | mask } else { self.flags & !mask };
    }
}

/// A pool of boxed exchanges, which saves an allocation for each query.
#[derive(Debug, Default)]
#[allow(clippy::vec_box)]
pub(super) struct ExchangePool(Vec<Box<Exchange>>);

/// Maximum number of exchanges in the pool.
const MAX_POOLED: usize = 64;

impl ExchangePool {
    /// Returns a new exchange, from the pool if possible.
    #[inline]
    pub(super) fn get(&mut self, ts: Time, trans_id: u16) -> Box<Exchange> {
        match self.0.pop() {
            Some(mut exchange) => {
                exchange.reset(ts, trans_id);
                exchange
            }
            None => Box::new(Exchange::new(ts, trans_id)),
        }
    }

    /// Returns an exchange to the pool.
    #[inline]
    pub(super) fn recycle(&mut self, exchange: Box<Exchange>) {
        if self.0.len() < MAX_POOLED {
            self.0.push(exchange);
        }
    }
}

/// The queue in which an incomplete exchange waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ExchangePosition {
    /// None: the exchange is complete, or a message to a multicast address.
    #[default]
    None,
    /// The slot for the oldest query.
    Slot,
    /// The queries of its ID.
    Queries,
    /// The replies of its ID.
    Replies,
}

/// Position of the exchange of the latest message.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LastMessage {
    pub(super) position: ExchangePosition,
    pub(super) id: u16,
}

/// Unpaired messages, except for the oldest query.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    pub(super) queries: Pending,
    pub(super) replies: Pending,
}

/// State that most connections do not need.
#[derive(Default)]
pub(super) struct RareState {
    /// Unpaired messages, except for the oldest query.
    pub(super) waiting: Waiting,
    pub(super) framing: [Framing; 2],
}

/// Unpaired messages of one kind, by ID, oldest first.
#[derive(Debug, Default)]
pub(super) struct Pending {
    queues: Vec<(u16, VecDeque<Box<Exchange>>)>,
    /// Memory use of all messages, in bytes.
    bytes: usize,
}

impl Pending {
    fn position(&self, id: u16) -> Option<usize> {
        self.queues.iter().position(|(other, _)| *other == id)
    }

    /// Removes the oldest message of an ID.
    pub(super) fn pop(&mut self, id: u16) -> Option<Box<Exchange>> {
        let at = self.position(id)?;
        self.pop_at(at)
    }

    /// Removes the oldest message of the ID that has waited longest.
    pub(super) fn pop_any(&mut self) -> Option<Box<Exchange>> {
        self.pop_at(0)
    }

    fn pop_at(&mut self, at: usize) -> Option<Box<Exchange>> {
        let (_, queue) = self.queues.get_mut(at)?;
        let exchange = queue.pop_front()?;
        self.bytes -= exchange.weight();
        if queue.is_empty() {
            self.queues.remove(at);
        }
        Some(exchange)
    }

    /// The newest message of an ID.
    pub(super) fn last_mut(&mut self, id: u16) -> Option<&mut Exchange> {
        let at = self.position(id)?;
        self.queues[at].1.back_mut().map(|e| &mut **e)
    }

    /// Number of IDs with waiting messages.
    pub(super) fn ids(&self) -> usize {
        self.queues.len()
    }

    /// Adds a message. `limit` applies to the number of IDs, and to the number of messages of one ID. Messages that are
    /// evicted are passed to `out`.
    pub(super) fn push(
        &mut self,
        exchange: Box<Exchange>,
        limit: usize,
        mut out: impl FnMut(Box<Exchange>),
    ) {
        let weight = exchange.weight();
        if self.bytes + weight > MAX_PENDING_BYTES {
            self.drain(&mut out);
        }
        match self.position(exchange.trans_id) {
            Some(at) => {
                let queue = &mut self.queues[at].1;
                if queue.len() > limit {
                    self.bytes -= queue.iter().map(|e| e.weight()).sum::<usize>();
                    queue.drain(..).for_each(out);
                }
                queue.push_back(exchange);
            }
            None => {
                if self.queues.len() > limit {
                    self.drain(out);
                }
                self.queues.push((exchange.trans_id, VecDeque::from([exchange])));
            }
        }
        self.bytes += weight;
    }

    /// Removes all messages and passes them to `out`.
    pub(super) fn drain(&mut self, out: impl FnMut(Box<Exchange>)) {
        self.bytes = 0;
        self.queues.drain(..).flat_map(|(_, queue)| queue).for_each(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange(id: u16, second: i64) -> Box<Exchange> {
        Box::new(Exchange::new(Time::from_secs(second), id))
    }

    #[test]
    fn oldest_first_by_id() {
        let mut p = Pending::default();
        for (id, s) in [(7, 1), (8, 2), (7, 3)] {
            p.push(exchange(id, s), 50, |_| panic!("no limit reached"));
        }
        assert_eq!(p.pop(7).map(|e| e.ts), Some(Time::from_secs(1)));
        assert_eq!(p.last_mut(8).map(|e| e.ts), Some(Time::from_secs(2)));
        assert_eq!(p.pop(7).map(|e| e.ts), Some(Time::from_secs(3)));
        assert!(p.pop(7).is_none());
        assert_eq!(p.pop_any().map(|e| e.trans_id), Some(8));
        assert!(p.pop_any().is_none());
    }

    #[test]
    fn too_many_are_evicted() {
        let (mut p, mut out) = (Pending::default(), 0);
        for i in 0..=MAX_PENDING_MESSAGES {
            p.push(exchange(1, i as i64), 50, |_| out += 1);
        }
        assert_eq!(out, 0);
        p.push(exchange(1, 99), 50, |_| out += 1);
        assert_eq!(out, MAX_PENDING_MESSAGES + 1);
        for id in 0..=MAX_PENDING_IDS {
            p.push(exchange(100 + id as u16, 0), 50, |_| out += 1);
        }
        // The messages of fifty IDs and of the one beyond the limit.
        assert_eq!(out, MAX_PENDING_MESSAGES + 1 + MAX_PENDING_IDS + 1);
    }

    #[test]
    fn bytes_are_counted() {
        let (mut p, mut out) = (Pending::default(), 0);
        for id in 0..40 {
            let mut e = exchange(id, 0);
            let mut answers = Answers::default();
            answers.push(Interval::ZERO, |text| text.resize(60_000, b'x'));
            e.answers = Some(Box::new(answers));
            p.push(e, 50, |_| out += 1);
        }
        assert_eq!(out, 34);
        assert!(p.bytes < MAX_PENDING_BYTES);
        while p.pop_any().is_some() {}
        assert_eq!(p.bytes, 0);
    }

    #[test]
    fn an_exchange_is_small() {
        assert!(size_of::<Exchange>() <= 88, "{}", size_of::<Exchange>());
    }
}
