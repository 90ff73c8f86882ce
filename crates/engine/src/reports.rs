//! What a part tells the merge, and the memory that comes back.

use std::sync::Mutex;
use std::sync::PoisonError;

use gannet_log::Key;
use gannet_log::Rows;
use gannet_protocols::later::Deferred;

use crate::queue::Queue;

/// Chunks of rows whose memory waits to be used again, at the most.
const SPARE: usize = 16;

/// No row of a packet has this key or a later one: those are of what is open in the end.
pub(crate) const CLOSING: Key = Key { packet: u64::MAX - 1, ..Key::EARLIEST };

/// What a part has made so far.
pub(crate) struct Report {
    /// All rows to come have this key or a later one; `None` when none will come.
    pub(crate) until: Option<Key>,
    pub(crate) rows: Vec<Rows>,
    pub(crate) deferred: Deferred,
}

/// A part's way to the merge.
pub(crate) struct Reports {
    pub(crate) queue: Queue<Report>,
    /// All rows to come have this key or a later one, unless they are in the queue by the time when
    /// other parts can have rows that come after them.
    pub(crate) from: Key,
    /// Rows that were written. New memory for each report would cost more than what is in it.
    spare: Mutex<Vec<Rows>>,
}

impl Reports {
    /// So many reports may wait.
    pub(crate) fn new(capacity: usize) -> Self {
        Self { queue: Queue::new(capacity), from: Key::EARLIEST, spare: Mutex::default() }
    }

    /// Those of the hub: nobody needs to wait for them before the end.
    pub(crate) fn of_hub(capacity: usize) -> Self {
        Self { from: CLOSING, ..Self::new(capacity) }
    }

    /// Rows that were written, for their memory.
    pub(crate) fn spare(&self) -> Vec<Rows> {
        std::mem::take(&mut self.spare.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Rows were written.
    pub(crate) fn give_back(&self, rows: Rows) {
        if rows.is_chunk() {
            let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
            if spare.len() < SPARE {
                spare.push(rows);
            }
        }
    }
}
