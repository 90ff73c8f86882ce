//! Closing of connections, and the resolution of their queries.

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

/// Interval in nanoseconds at which a connection with pending queries is checked if it must be
/// closed as soon as it is idle.
const BUSY_CHECK_INTERVAL: u64 = 1_000_000;

impl Worker<'_> {
    /// Closes a connection, and resolves its pending queries.
    pub(super) fn close(&mut self, slot: usize, reason: CloseReason, now: u64) {
        let Some(mut c) = self.connections.get_mut(slot).and_then(Option::take) else { return };
        self.free.push(slot);
        if let Some(current) = self.clients.get_mut(c.client).filter(|p| **p == Some(slot)) {
            *current = None;
        }
        match reason {
            CloseReason::Broken => {
                self.stats.at(now).counts.connections_broken += u64::from(c.open);
            }
            CloseReason::Enough => {
                c.link.end();
            }
        }
        let mut to_resend = Vec::new();
        for (queued, message) in c.take_queue() {
            self.pending -= 1;
            if self.options.answers {
                c.waiting.unsent(queued.id);
            }
            let ticket = queued.ticket;
            if c.open && !ticket.moved {
                to_resend.push((message, Ticket { moved: true, ..ticket }));
            } else if ticket.is_retry {
                self.lose(ticket.first_sent, now);
            } else {
                self.stats.at(now).counts.unsent += 1;
            }
        }
        let left: Vec<_> = c.waiting.withdraw_all().collect();
        self.pending -= left.len();
        for query in left {
            match query.retry {
                Some((message, retries_left)) => {
                    to_resend.push((message, retry(query.first_sent, query.origin, retries_left)));
                }
                None => self.lose(query.first_sent, now),
            }
        }
        let client = c.client;
        drop(c);
        for (message, ticket) in to_resend {
            self.resend(client, &message, ticket, now);
        }
    }

    fn resend(&mut self, client: usize, message: &[u8], ticket: Ticket, now: u64) {
        if self.queue(client, message, ticket, now).is_ok() {
            return;
        }
        if ticket.is_retry {
            self.lose(ticket.first_sent, now);
        } else {
            self.stats.at(now).counts.unsent += 1;
        }
    }

    fn lose(&mut self, first_sent: u64, now: u64) {
        self.stats.record_result(now, first_sent, |i| i.counts.lost += 1);
        self.live.lost.fetch_add(1, Ordering::Relaxed);
    }

    /// Expires queries whose timeout has passed: they are sent again or lost.
    pub(super) fn expire(&mut self) {
        let now = self.due.now();
        let timeout = nanoseconds(self.options.timeout);
        while let Some(deadline) = self.deadlines.pop_front_if(|d| d.at <= now) {
            let Deadline { slot, serial, id, first_sent, .. } = deadline;
            let c = self.connections.get_mut(slot).and_then(Option::as_mut);
            // The queries of a closed connection are resolved already.
            let Some(c) = c.filter(|c| c.serial == serial) else { continue };
            let stuck = |c: &Connection| {
                let front = c.queue.front().map(|q| q.queued_at.saturating_add(timeout));
                front.is_some_and(|at| at <= now)
            };
            if stuck(c) {
                if !c.open {
                    self.failed(&io::ErrorKind::TimedOut.into(), now);
                }
                self.close(slot, CloseReason::Broken, now);
                continue;
            }
            if !self.options.answers {
                continue;
            }
            // A message that stays incomplete for so long will not be completed.
            let broken = c.has_partial_input() && c.used.saturating_add(timeout) <= now;
            let client = c.client;
            let Some(query) = c.waiting.withdraw(id, first_sent) else { continue };
            if c.cancel(id) {
                self.touched.push(slot);
            }
            let quiet = c.closing && c.is_quiet();
            self.pending -= 1;
            if broken {
                self.close(slot, CloseReason::Broken, now);
            } else if quiet {
                self.close(slot, CloseReason::Enough, now);
            }
            match query.retry {
                Some((message, retries_left)) => {
                    self.resend(
                        client,
                        &message,
                        retry(query.first_sent, query.origin, retries_left),
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
        while let Some(Reverse((at, slot, serial))) = self.idle_checks.peek().copied() {
            if at > now {
                break;
            }
            self.idle_checks.pop();
            let c = self.connections.get(slot).and_then(Option::as_ref);
            let Some(c) = c.filter(|c| c.serial == serial) else { continue };
            let is_quiet = c.is_quiet();
            let next = self.idle_after(if is_quiet { c.used } else { now });
            if is_quiet && next <= now {
                self.close(slot, CloseReason::Enough, now);
            } else {
                self.idle_checks.push(Reverse((next.max(now + BUSY_CHECK_INTERVAL), slot, serial)));
            }
        }
    }
}

/// The ticket of a query that is sent again.
fn retry(first_sent: u64, origin: Origin, retries_left: u8) -> Ticket {
    let retries_left = retries_left.saturating_sub(1);
    Ticket { origin, due: None, first_sent, is_retry: true, retries_left, moved: false }
}
