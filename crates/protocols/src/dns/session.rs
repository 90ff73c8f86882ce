//! Joins replies to queries, which become one row.
//!
//! On one connection a reply belongs to the oldest query with its transaction id. A message without
//! a partner waits until the connection ends and then gets a row of its own; so do the waiting
//! messages of an id, or all of them, if too many wait. Messages to multicast addresses are never
//! joined: their replies use other connections.

use std::collections::VecDeque;

use gannet_base::Interval;
use gannet_base::Time;

use super::answers::Answers;
use super::framing::Framing;
use super::message::Header;
use super::name::Name;

/// Most ids with unpaired messages of one kind on one connection; beyond, all are logged.
pub const MAX_PENDING_IDS: usize = 50;

/// Most unpaired messages of one kind and id on one connection; beyond, they are logged.
pub const MAX_PENDING_MESSAGES: usize = 50;

/// Most bytes of unpaired messages of one kind on one connection; beyond, they are logged. Zeek has
/// no such limit; only zone transfers come near it.
pub const MAX_PENDING_BYTES: usize = 1 << 20;

/// A query, its reply, or both: a row in the making.
#[derive(Clone, Debug)]
pub(super) struct Exchange {
    /// Time of the first message.
    pub(super) ts: Time,
    /// From the first message to the first answer; zero counts as unknown.
    pub(super) rtt: Interval,
    /// The question's name.
    pub(super) query: Name,
    /// Answers, where they must be kept until the partner comes.
    pub(super) answers: Option<Box<Answers>>,
    pub(super) trans_id: u16,
    pub(super) qtype: u16,
    pub(super) qclass: u16,
    /// Flags of known facts; see [`flag`].
    pub(super) flags: u16,
    pub(super) opcode: u8,
    pub(super) rcode: u8,
    pub(super) z: u8,
}

/// Bits of [`Exchange::flags`].
pub(super) mod flag {
    /// `query` holds a name.
    pub(in super::super) const NAME: u16 = 1;
    /// `qtype` and `qclass` hold something.
    pub(in super::super) const QUESTION: u16 = 1 << 1;
    /// `rcode` holds something.
    pub(in super::super) const RCODE: u16 = 1 << 2;
    /// The server rejected the query.
    pub(in super::super) const REJECTED: u16 = 1 << 3;
    /// The operation's name is the NetBIOS name service's.
    pub(in super::super) const NETBIOS: u16 = 1 << 4;
    /// The query type's name is the NetBIOS name service's.
    pub(in super::super) const NETBIOS_TYPE: u16 = 1 << 5;
    /// The server offers recursion. This bit and the next three are those of the header.
    pub(in super::super) const RA: u16 = 1 << 7;
    /// The query asked for recursion.
    pub(in super::super) const RD: u16 = 1 << 8;
    /// The query was truncated.
    pub(in super::super) const TC: u16 = 1 << 9;
    /// The reply is authoritative.
    pub(in super::super) const AA: u16 = 1 << 10;
    /// A query was read to its end.
    pub(in super::super) const SAW_QUERY: u16 = 1 << 11;
    /// A reply was read to its end.
    pub(in super::super) const SAW_REPLY: u16 = 1 << 12;
    /// Both.
    pub(in super::super) const SAW_BOTH: u16 = SAW_QUERY | SAW_REPLY;
}

impl Exchange {
    /// For the first message.
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

    /// Initializes it in place like [`new`](Self::new).
    #[inline]
    fn begin(&mut self, ts: Time, trans_id: u16) {
        (self.ts, self.rtt, self.trans_id) = (ts, Interval::ZERO, trans_id);
        self.query.clear();
        self.answers = None;
        (self.qtype, self.qclass, self.flags) = (0, 0, 0);
        (self.opcode, self.rcode, self.z) = (0, 0, 0);
    }

    /// Bytes it occupies, about.
    fn weight(&self) -> usize {
        size_of::<Self>() + self.answers.as_ref().map_or(0, |a| a.weight())
    }

    /// Whether all bits of `mask` are set.
    pub(super) fn has(&self, mask: u16) -> bool {
        self.flags & mask == mask
    }

    /// Takes the bits of a mask over from a header's.
    pub(super) fn take_over(&mut self, mask: u16, header: &Header) {
        self.flags = self.flags & !mask | header.flags & mask;
    }

    /// Sets or clears bits.
    pub(super) fn set(&mut self, mask: u16, on: bool) {
        self.flags = if on { self.flags | mask } else { self.flags & !mask };
    }
}

/// Exchanges kept for their memory: one comes with every message and goes with the next.
///
/// It is their boxes that are kept.
#[derive(Debug, Default)]
#[allow(clippy::vec_box)]
pub(super) struct Spare(Vec<Box<Exchange>>);

/// Exchanges kept at the most.
const MAX_SPARE: usize = 64;

impl Spare {
    /// A fresh exchange.
    #[inline]
    pub(super) fn take(&mut self, ts: Time, trans_id: u16) -> Box<Exchange> {
        match self.0.pop() {
            Some(mut exchange) => {
                exchange.begin(ts, trans_id);
                exchange
            }
            None => Box::new(Exchange::new(ts, trans_id)),
        }
    }

    /// One that is done with.
    #[inline]
    pub(super) fn give(&mut self, exchange: Box<Exchange>) {
        if self.0.len() < MAX_SPARE {
            self.0.push(exchange);
        }
    }
}

/// Where an exchange goes when its message has been read, unless it is complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ExchangePosition {
    /// Nowhere: it was joined, or is to a multicast address.
    #[default]
    None,
    /// The one query that is kept inline.
    Slot,
    /// The queries of its id.
    Queries,
    /// The replies of its id.
    Replies,
}

/// Where the exchange of the latest message waits.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Last {
    pub(super) place: ExchangePosition,
    pub(super) id: u16,
}

/// Messages without their partners, but for the oldest query.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    pub(super) queries: Pending,
    pub(super) replies: Pending,
}

/// What most connections do without.
#[derive(Default)]
pub(super) struct RareState {
    /// Further messages that wait for their partners, for the rows.
    pub(super) waiting: Waiting,
    pub(super) framing: [Framing; 2],
}

/// Unpaired messages of one kind, by id, oldest first.
#[derive(Debug, Default)]
pub(super) struct Pending {
    queues: Vec<(u16, VecDeque<Box<Exchange>>)>,
    bytes: usize,
}

impl Pending {
    fn position(&self, id: u16) -> Option<usize> {
        self.queues.iter().position(|(other, _)| *other == id)
    }

    /// Takes the oldest of an id.
    pub(super) fn pop(&mut self, id: u16) -> Option<Box<Exchange>> {
        let at = self.position(id)?;
        self.pop_at(at)
    }

    /// Takes the oldest of the id that has waited longest.
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

    /// The youngest of an id.
    pub(super) fn last_mut(&mut self, id: u16) -> Option<&mut Exchange> {
        let at = self.position(id)?;
        self.queues[at].1.back_mut().map(|e| &mut **e)
    }

    /// Ids that wait.
    pub(super) fn ids(&self) -> usize {
        self.queues.len()
    }

    /// Adds one; `limit` is for ids, and for messages of one. Messages removed to make room go to
    /// `out`.
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

    /// Takes all.
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
    fn too_many_are_given_up() {
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
        // Of fifty ids and the one above.
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
