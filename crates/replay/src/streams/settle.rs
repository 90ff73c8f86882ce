//! How connections end, and what becomes of the queries that they had.

use std::cmp::Reverse;
use std::io;
use std::sync::atomic::Ordering;

use crate::block::Origin;
use crate::connection::Connection;
use crate::connection::Ticket;
use crate::paced_queue::nanoseconds;

use super::CloseReason;
use super::Deadline;
use super::Worker;

/// Nanoseconds after which a connection with pending queries is looked at again, where it may not be idle at all.
const LOOK: u64 = 1_000_000;

impl Worker<'_> {
    /// Closes a connection, and resolves its pending queries.
    pub(super) fn close(&mut self, place: usize, reason: CloseReason, now: u64) {
        let Some(mut c) = self.connections.get_mut(place).and_then(Option::take) else { return };
        self.free.push(place);
        if let Some(current) = self.clients.get_mut(c.client).filter(|p| **p == Some(place)) {
            *current = None;
        }
        match reason {
            CloseReason::Broken => {
                self.stats.at(now).counts.connections_broken += u64::from(c.open);
            }
            CloseReason::Enough => {
                c.way.end();
            }
        }
        let mut again = Vec::new();
        for (queued, message) in c.take_queue() {
            self.pending -= 1;
            if self.options.answers {
                c.waiting.unsent(queued.id);
            }
            let ticket = queued.ticket;
            if c.open && !ticket.moved {
                again.push((message, Ticket { moved: true, ..ticket }));
            } else if ticket.again {
                self.lose(ticket.first_sent, now);
            } else {
                self.stats.at(now).counts.unsent += 1;
            }
        }
        let left: Vec<_> = c.waiting.withdraw_all().collect();
        self.pending -= left.len();
        for query in left {
            match query.again {
                Some((message, tries)) => {
                    again.push((message, retry(query.first_sent, query.origin, tries)));
                }
                None => self.lose(query.first_sent, now),
            }
        }
        let client = c.client;
        drop(c);
        for (message, ticket) in again {
            self.resend(client, &message, ticket, now);
        }
    }

    fn resend(&mut self, client: usize, message: &[u8], ticket: Ticket, now: u64) {
        if self.queue(client, message, ticket, now).is_ok() {
            return;
        }
        if ticket.again {
            self.lose(ticket.first_sent, now);
        } else {
            self.stats.at(now).counts.unsent += 1;
        }
    }

    fn lose(&mut self, first_sent: u64, now: u64) {
        self.stats.settle(now, first_sent, |i| i.counts.lost += 1);
        self.live.lost.fetch_add(1, Ordering::Relaxed);
    }

    /// Expires old queries, or sends them again.
    pub(super) fn expire(&mut self) {
        let now = self.due.now();
        let timeout = nanoseconds(self.options.timeout);
        while let Some(deadline) = self.deadlines.pop_front_if(|d| d.at <= now) {
            let Deadline { place, serial, id, first_sent, .. } = deadline;
            let c = self.connections.get_mut(place).and_then(Option::as_mut);
            // A connection that ended settled its queries.
            let Some(c) = c.filter(|c| c.serial == serial) else { continue };
            let stuck = |c: &Connection| {
                let front = c.queue.front().map(|q| q.queued_at.saturating_add(timeout));
                front.is_some_and(|at| at <= now)
            };
            if stuck(c) {
                if !c.open {
                    self.failed(&io::ErrorKind::TimedOut.into(), now);
                }
                self.close(place, CloseReason::Broken, now);
                continue;
            }
            if !self.options.answers {
                continue;
            }
            // Half a message for so long: nothing right will follow it.
            let broken = c.is_amid() && c.used.saturating_add(timeout) <= now;
            let client = c.client;
            let Some(query) = c.waiting.withdraw(id, first_sent) else { continue };
            if c.cancel(id) {
                self.touched.push(place);
            }
            let quiet = c.closing && c.is_quiet();
            self.pending -= 1;
            if broken {
                self.close(place, CloseReason::Broken, now);
            } else if quiet {
                self.close(place, CloseReason::Enough, now);
            }
            match query.again {
                Some((message, tries)) => {
                    self.resend(
                        client,
                        &message,
                        retry(query.first_sent, query.origin, tries),
                        now,
                    );
                }
                None => self.lose(query.first_sent, now),
            }
        }
        self.write_touched(now);
    }

    /// Closes idle connections.
    pub(super) fn close_idle(&mut self) {
        let now = self.due.now();
        while let Some(Reverse((at, place, serial))) = self.looks.peek().copied() {
            if at > now {
                break;
            }
            self.looks.pop();
            let c = self.connections.get(place).and_then(Option::as_ref);
            let Some(c) = c.filter(|c| c.serial == serial) else { continue };
            let is_quiet = c.is_quiet();
            let next = self.idle_after(if is_quiet { c.used } else { now });
            if is_quiet && next <= now {
                self.close(place, CloseReason::Enough, now);
            } else {
                self.looks.push(Reverse((next.max(now + LOOK), place, serial)));
            }
        }
    }
}

/// How a query goes out once more.
fn retry(first_sent: u64, origin: Origin, tries: u8) -> Ticket {
    let tries = tries.saturating_sub(1);
    Ticket { origin, due: None, first_sent, again: true, tries, moved: false }
}
