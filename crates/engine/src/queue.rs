//! A bounded queue between two threads.

use std::collections::VecDeque;
use std::sync::Condvar;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;

/// First in, first out, up to a stated length.
///
/// Who finds it full goes on only when it is half empty: two threads that wait for each other at
/// every item would do little else.
pub(crate) struct Queue<T> {
    capacity: usize,
    state: Mutex<State<T>>,
    /// It is half empty, or closed.
    space: Condvar,
    /// There is an item, or there will be none.
    items: Condvar,
}

struct State<T> {
    items: VecDeque<T>,
    closed: bool,
    /// Somebody waits for space.
    full: bool,
    /// Somebody waits for an item.
    idle: bool,
}

impl<T> Queue<T> {
    pub(crate) fn new(capacity: usize) -> Self {
        let items = VecDeque::with_capacity(capacity);
        let state = State { items, closed: false, full: false, idle: false };
        let state = Mutex::new(state);
        Self { capacity, state, space: Condvar::new(), items: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an item, waiting for space if need be. An item for a closed queue is dropped.
    pub(crate) fn push(&self, item: T) {
        drop(self.with_space());
        self.push_at_once(item);
    }

    /// Adds an item without waiting, whatever there is: for somebody who [waits](Self::wait_for_space)
    /// when he may.
    pub(crate) fn push_at_once(&self, item: T) {
        let mut state = self.lock();
        if state.closed {
            return;
        }
        state.items.push_back(item);
        if std::mem::take(&mut state.idle) {
            drop(state);
            self.items.notify_one();
        }
    }

    /// Waits until there is space for an item, or none will be taken any more.
    pub(crate) fn wait_for_space(&self) {
        drop(self.with_space());
    }

    fn with_space(&self) -> MutexGuard<'_, State<T>> {
        let mut state = self.lock();
        if state.items.len() >= self.capacity {
            state.full = true;
            while state.full && !state.closed {
                state = self.space.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
        state
    }

    /// The next item if there is one at once.
    pub(crate) fn try_pop(&self) -> Option<T> {
        if self.lock().items.is_empty() { None } else { self.pop() }
    }

    /// The next item, waiting for it if need be; `None` once the queue is closed and empty.
    pub(crate) fn pop(&self) -> Option<T> {
        let mut state = self.lock();
        while state.items.is_empty() && !state.closed {
            state.idle = true;
            state = self.items.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let item = state.items.pop_front();
        if state.full && state.items.len() <= self.capacity / 2 {
            state.full = false;
            drop(state);
            self.space.notify_one();
        }
        item
    }

    /// Nothing more is added, or nothing more is taken.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.space.notify_one();
        self.items.notify_one();
    }
}

/// Closes a queue when its owner's work ends, in whatever way.
pub(crate) struct Closing<'a, T>(pub(crate) &'a Queue<T>);

impl<T> Drop for Closing<'_, T> {
    fn drop(&mut self) {
        self.0.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn everything_arrives_in_order() {
        let queue = Queue::new(3);
        thread::scope(|s| {
            s.spawn(|| {
                let _closing = Closing(&queue);
                (0..10_000).for_each(|n| queue.push(n));
            });
            assert!(std::iter::from_fn(|| queue.pop()).eq(0..10_000));
        });
    }

    #[test]
    fn closing_frees_who_waits() {
        let queue = Queue::new(1);
        thread::scope(|s| {
            let giver = s.spawn(|| (0..3).for_each(|n| queue.push(n)));
            queue.close();
            giver.join().unwrap();
        });
        while queue.pop().is_some() {}
        queue.push(7);
        assert_eq!(queue.pop(), None);
    }
}
