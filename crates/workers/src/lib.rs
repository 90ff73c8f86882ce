//! Threads with an owner: start, propagation of panics to the owner, and end.
//!
//! * [`Workers`] are threads that share state with their owner: the shards of an analysis, the threads of a pipeline,
//!   the decoders of zstd blocks, the readahead of a mapped file. They do not receive messages.
//! * A [`Partner`] is a thread that exchanges messages with its owner: the decoder of gzip, the encoder of a capture.
//! * [`OnPanic`] wakes threads that would wait for a thread that has panicked.
//!
//! An owner that is dropped waits for its threads. It must make them end first: with a flag that they test, or, for a
//! [`Partner`], by closing the channels, which happens on drop.
//!
//! ```
//! use std::sync::Arc;
//! use std::sync::atomic::{AtomicUsize, Ordering};
//!
//! let next = Arc::new(AtomicUsize::new(0));
//! let mut workers = gannet_workers::Workers::default();
//! for _ in 0..3 {
//!     let next = Arc::clone(&next);
//!     workers.start("squares", move || {
//!         let numbers = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
//!         numbers.take_while(|n| *n < 100).map(|n| n * n).sum::<usize>()
//!     })?;
//! }
//! assert_eq!(workers.join().iter().sum::<usize>(), 328_350);
//! # Ok::<_, std::io::Error>(())
//! ```

mod partner;

use std::io;
use std::panic::resume_unwind;
use std::thread::Builder;
use std::thread::JoinHandle;

pub use crate::partner::Partner;

/// Threads of an owner, each of which returns a result.
#[derive(Debug)]
pub struct Workers<T = ()> {
    threads: Vec<JoinHandle<T>>,
}

impl<T> Default for Workers<T> {
    fn default() -> Self {
        Self { threads: Vec::new() }
    }
}

impl<T: Send + 'static> Workers<T> {
    /// Starts a thread. Debuggers and `top -H` show the first 15 bytes of its name.
    ///
    /// # Errors
    /// If the system cannot start a further thread.
    pub fn start(
        &mut self,
        name: impl Into<String>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<()> {
        self.threads.push(Builder::new().name(name.into()).spawn(work)?);
        Ok(())
    }
}

impl<T> Workers<T> {
    /// Number of threads that were started and not joined yet.
    pub fn count(&self) -> usize {
        self.threads.len()
    }

    /// Unparks all threads.
    pub fn unpark(&self) {
        self.threads.iter().for_each(|thread| thread.thread().unpark());
    }

    /// Waits for the end of all threads; returns their results in the order in which they started.
    ///
    /// # Panics
    /// If a thread has panicked, with the same payload.
    pub fn join(&mut self) -> Vec<T> {
        let joined = self.threads.drain(..).map(JoinHandle::join);
        joined.map(|result| result.unwrap_or_else(|panic| resume_unwind(panic))).collect()
    }

    /// Detaches the threads: nothing waits for their end.
    pub fn detach(&mut self) {
        self.threads.clear();
    }
}

impl<T> Drop for Workers<T> {
    fn drop(&mut self) {
        for thread in self.threads.drain(..) {
            // The panic hook has reported a panic already.
            let _ = thread.join();
        }
    }
}

/// Calls a function if it is dropped by a panic, so that other threads do not wait for this one.
#[derive(Debug)]
pub struct OnPanic<F: Fn()>(pub F);

impl<F: Fn()> Drop for OnPanic<F> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            (self.0)();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::AssertUnwindSafe;
    use std::panic::catch_unwind;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;
    use std::sync::atomic::Ordering;

    use super::*;

    #[test]
    fn results_are_in_the_order_of_starts() {
        let mut workers = Workers::default();
        for n in 0..10 {
            workers.start("number", move || n).unwrap();
        }
        assert_eq!(workers.count(), 10);
        assert_eq!(workers.join(), (0..10).collect::<Vec<_>>());
        assert_eq!((workers.count(), workers.join()), (0, Vec::new()));
    }

    #[test]
    fn a_panic_reaches_the_owner_and_waiting_threads() {
        let seen = Arc::new(AtomicBool::new(false));
        let mut workers = Workers::<()>::default();
        let flag = Arc::clone(&seen);
        workers
            .start("panics", move || {
                let _woken = OnPanic(|| flag.store(true, Ordering::SeqCst));
                resume_unwind(Box::new("lost"));
            })
            .unwrap();
        let panic = catch_unwind(AssertUnwindSafe(|| workers.join())).unwrap_err();
        assert_eq!(panic.downcast_ref(), Some(&"lost"));
        assert!(seen.load(Ordering::SeqCst));
    }

    #[test]
    fn nothing_is_called_without_a_panic() {
        let seen = AtomicBool::new(false);
        drop(OnPanic(|| seen.store(true, Ordering::SeqCst)));
        assert!(!seen.load(Ordering::SeqCst));
    }

    #[test]
    fn parked_threads_are_woken_and_awaited() {
        let (stop, ended) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let mut workers = Workers::default();
        let (seen, end) = (Arc::clone(&stop), Arc::clone(&ended));
        workers
            .start("parked", move || {
                while !seen.load(Ordering::SeqCst) {
                    std::thread::park();
                }
                end.store(true, Ordering::SeqCst);
            })
            .unwrap();
        stop.store(true, Ordering::SeqCst);
        workers.unpark();
        drop(workers);
        assert!(ended.load(Ordering::SeqCst));
    }
}
