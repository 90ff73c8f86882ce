//! What a part tells the merge, and the memory that comes back.

use std::sync::Mutex;
use std::sync::PoisonError;

use gannet_log::Key;
use gannet_log::Rows;
use gannet_protocols::later::Deferred;

use crate::queue::Queue;

/// Rows whose memory waits to be used again, at the most: a few of each log that has many.
const SPARE: usize = 32;

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
    /// Rows that were written. New memory for each report would cost more than what is in it.
    spare: Mutex<Vec<Rows>>,
}

impl Reports {
    /// So many reports may wait.
    pub(crate) fn new(capacity: usize) -> Self {
        Self { queue: Queue::new(capacity), spare: Mutex::default() }
    }

    /// Rows of a log that were written, for their memory.
    pub(crate) fn spare(&self, path: &'static str) -> Option<Rows> {
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        let at = spare.iter().position(|r| r.shape.path == path)?;
        Some(spare.swap_remove(at))
    }

    /// Rows were written.
    pub(crate) fn give_back(&self, rows: Rows) {
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        if spare.len() < SPARE {
            spare.push(rows);
        }
    }
}
