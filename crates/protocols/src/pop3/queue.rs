//! Commands that wait for their replies.

use std::collections::VecDeque;

/// Commands that wait at the same time.
pub const MAX_PENDING: usize = 10;

/// Commands in order; the first is the one whose reply is due.
#[derive(Debug, Default)]
pub struct Queue(VecDeque<Vec<u8>>);

impl Queue {
    /// Adds a command; drops the oldest if there are too many. Returns whether one was
    /// dropped.
    pub fn push(&mut self, line: &[u8]) -> bool {
        self.0.push_back(line.to_vec());
        let over = self.0.len() > MAX_PENDING;
        if over {
            self.0.pop_front();
        }
        over
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The one whose reply is due.
    pub fn first(&self) -> Option<&[u8]> {
        self.0.front().map(|l| &l[..])
    }

    /// Takes off the one whose reply has come.
    pub fn pop(&mut self) {
        self.0.pop_front();
    }
}
