//! The queue of a sink, in memory.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::Condvar;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::time::Instant;

/// A row as a JSON line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// The log that it belongs to.
    pub(crate) log: Arc<str>,
    /// The uid of its connection, where the sink uses it and the log has one.
    pub(crate) key: Option<Box<[u8]>>,
    /// The line, with its end.
    pub(crate) line: Box<[u8]>,
}

impl Row {
    pub(crate) fn len(&self) -> usize {
        self.line.len() + self.key.as_ref().map_or(0, |key| key.len())
    }
}

/// A queue with a limit in bytes.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    change: Condvar,
    limit: usize,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) rows: VecDeque<Row>,
    pub(crate) bytes: usize,
    pub(crate) dropped: u64,
    pub(crate) sent: u64,
    pub(crate) spooled: u64,
    /// The time of the request to end; no rows are added after it.
    pub(crate) ending: Option<Instant>,
    /// Whether the sending thread has ended.
    pub(crate) ended: bool,
}

impl State {
    /// Removes and returns the oldest rows, about `bytes` of them.
    pub(crate) fn take(&mut self, bytes: usize) -> Vec<Row> {
        let mut rows = Vec::new();
        let mut sum = 0;
        while sum < bytes
            && let Some(row) = self.rows.pop_front()
        {
            sum += row.len();
            rows.push(row);
        }
        self.bytes -= sum;
        rows
    }

    /// Returns rows of [`take`](Self::take) to the front of the queue.
    pub(crate) fn put_back(&mut self, rows: Vec<Row>) {
        for row in rows.into_iter().rev() {
            self.bytes += row.len();
            self.rows.push_front(row);
        }
    }
}

impl Queue {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, ..Self::default() }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a row; drops and counts it if the queue is full.
    pub(crate) fn push(&self, row: Row) {
        let mut state = self.lock();
        if state.bytes + row.len() > self.limit {
            state.dropped += 1;
            return;
        }
        state.bytes += row.len();
        state.rows.push_back(row);
        drop(state);
        self.change.notify_all();
    }

    /// Whether the queue is half full: beyond that, rows move to the spool, if there is one.
    pub(crate) fn is_high(&self, state: &State) -> bool {
        state.bytes > self.limit / 2
    }

    /// Waits until `is_due` holds.
    pub(crate) fn wait(&self, is_due: impl Fn(&State) -> bool) -> MutexGuard<'_, State> {
        let state = self.lock();
        self.change
            .wait_while(state, |state| !is_due(state))
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn notify(&self) {
        self.change.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(line: &[u8]) -> Row {
        Row { log: "conn".into(), key: None, line: line.into() }
    }

    #[test]
    fn a_full_queue_drops_the_newest_rows() {
        let queue = Queue::new(10);
        (0..4).for_each(|n| queue.push(row(&[n; 4])));
        let rows = queue.lock().take(100);
        assert_eq!(rows.iter().map(|row| row.line[0]).collect::<Vec<_>>(), [0, 1]);
        let counts = |state: &State| (state.rows.len(), state.bytes, state.dropped);
        assert_eq!(counts(&queue.lock()), (0, 0, 2));
        queue.lock().put_back(rows);
        assert_eq!(counts(&queue.lock()), (2, 8, 2));
    }
}
