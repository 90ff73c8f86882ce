//! A consumer that observes the state of both sides before each report.
//!
//! Event listeners need states and sizes at each report; an analysis without listeners must not pay
//! for a test in each step. So each segment is tested once, and segments with a listener use
//! separately compiled code.

use gannet_base::Dir;
use gannet_wire as wire;

use super::Consumer;
use super::State;
use super::Step;
use super::View;
use crate::Conn;

/// Passes reports on, and requests a [`View`] before each of them.
///
/// `FIRST`: no view was reported before the segment.
pub(super) struct Observed<'c, C, const FIRST: bool>(pub(super) &'c mut C);

impl<C: Consumer, const FIRST: bool> Consumer for Observed<'_, C, FIRST> {
    const OBSERVES: bool = true;
    const OBSERVES_FIRST: bool = FIRST;

    fn data(&mut self, conn: &mut Conn, from: Dir, data: &[u8]) {
        self.0.data(conn, from, data);
    }

    fn gap(&mut self, conn: &mut Conn, from: Dir, at: u64, len: u64) {
        self.0.gap(conn, from, at, len);
    }

    fn content_gap(&mut self, conn: &mut Conn, from: Dir, at: u64, len: u64) {
        self.0.content_gap(conn, from, at, len);
    }

    fn end(&mut self, conn: &mut Conn, from: Dir) {
        self.0.end(conn, from);
    }

    fn closed(&mut self, conn: &mut Conn) {
        self.0.closed(conn);
    }

    fn reset(&mut self, conn: &mut Conn) {
        self.0.reset(conn);
    }

    fn flipped(&mut self, conn: &mut Conn) {
        self.0.flipped(conn);
    }

    fn weird(&mut self, conn: &mut Conn, name: &'static str, addl: &str, source: &'static str) {
        self.0.weird(conn, name, addl, source);
    }

    fn established(&mut self, conn: &mut Conn, states: [State; 2]) {
        self.0.established(conn, states);
    }

    fn acked(&mut self, bytes: u64, missing: u64) {
        self.0.acked_observed(bytes, missing);
        self.0.acked(bytes, missing);
    }

    fn observe(&mut self, view: &View) {
        self.0.observe(view);
    }

    fn step(&mut self, conn: &mut Conn, step: &Step<'_>) {
        self.0.step(conn, step);
    }

    #[inline]
    fn wants_segment(&self, segment: &wire::Tcp<'_>) -> bool {
        self.0.wants_segment(segment)
    }

    fn compares(&self) -> bool {
        self.0.compares()
    }

    fn differ(&mut self, conn: &mut Conn, first: &[u8], again: &[u8], flags: u8) {
        self.0.differ(conn, first, again, flags);
    }

    fn wants_data(&self) -> bool {
        self.0.wants_data()
    }
}
