//! Answers of the echo server.

use std::ops::Range;

use crate::message;

use super::Served;
use super::ServerBehaviour;
use super::Shared;

/// Decides the answer to a query, and counts it.
pub(super) struct Answerer<'a> {
    shared: &'a Shared<'a>,
    behaviour: ServerBehaviour,
    pub(super) served: Served,
    random: u64,
}

impl<'a> Answerer<'a> {
    pub(super) fn new(shared: &'a Shared<'a>) -> Self {
        let behaviour = shared.behaviour;
        Self { shared, behaviour, served: Served::default(), random: 0x853c_49e6_748f_ea9b }
    }

    /// Processes a message and appends the response to `out`: no, one or several answers; adds the
    /// range of each to `pieces`.
    pub(super) fn take(&mut self, query: &[u8], out: &mut Vec<u8>, pieces: &mut Vec<Range<usize>>) {
        self.served.bytes += query.len() as u64;
        if !message::is_query(query) {
            self.served.other += 1;
            return;
        }
        if !self.shared.takes_query() {
            return;
        }
        self.served.queries += 1;
        if self.behaviour.sink {
            self.served.dropped += 1;
        } else if self.behaviour.is_plain() {
            self.echo(query, out, pieces);
        } else {
            self.impair(query, out, pieces);
        }
    }

    /// The answer to `query`.
    fn echo(&mut self, query: &[u8], out: &mut Vec<u8>, pieces: &mut Vec<Range<usize>>) {
        let start = out.len();
        out.extend_from_slice(query);
        if let Some([_, _, flags, code, ..]) = out.get_mut(start..) {
            *flags |= 0x80;
            *code = *code & 0xf0 | self.behaviour.rcode & 15;
        }
        pieces.push(start..out.len());
        self.served.answers += 1;
    }

    /// Drops, corrupts or duplicates the answer, at random.
    fn impair(&mut self, query: &[u8], out: &mut Vec<u8>, pieces: &mut Vec<Range<usize>>) {
        let ServerBehaviour { drop, garbage, mismatch, double, .. } = self.behaviour;
        let chance = self.chance();
        if chance < drop {
            self.served.dropped += 1;
            return;
        }
        let piece = pieces.len();
        self.echo(query, out, pieces);
        let range = pieces[piece].clone();
        if chance < drop + garbage {
            self.served.answers -= 1;
            self.served.spoiled += 1;
            // Too short for a header, so never a valid answer by accident.
            out.truncate(range.start + 7);
            pieces[piece] = range.start..out.len();
        } else if chance < drop + garbage + mismatch {
            self.served.answers -= 1;
            self.served.spoiled += 1;
            // Offset of the low byte of the question's class.
            let last = message::HEADER.max(range.len() / 2).min(range.len() - 1);
            out[range.start + last] ^= 1;
            out[range.start + 2] ^= 0x40;
        } else if chance < drop + garbage + mismatch + double {
            self.echo(query, out, pieces);
        }
    }

    /// A pseudorandom number from 0 to 1 (multiplier and output function of PCG).
    fn chance(&mut self) -> f64 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let mixed = (self.random >> 33) ^ (self.random >> 51);
        (mixed & 0xffff_ffff) as f64 / 2_147_483_648.0 % 1.0
    }
}
