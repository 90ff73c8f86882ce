//! Work in several threads, with the results in order.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::mpsc;
use std::sync::mpsc::Receiver;
use std::sync::mpsc::Sender;
use std::thread;

/// Passes every item through three steps: `prepare` in the caller's thread, `work` in one of
/// several threads, and `conclude` in the caller's thread, in the order of the items. An item that
/// `prepare` refuses goes directly to `conclude`. An error of `conclude` ends everything.
///
/// At most as many prepared items as there are threads wait for a thread. Any number of results may wait for
/// earlier ones, so that one slow item blocks no thread.
pub(crate) fn run<T, P: Send, R: Send, N, E>(
    threads: usize,
    items: impl Iterator<Item = T>,
    mut prepare: impl FnMut(T) -> Result<P, N>,
    work: impl Fn(P) -> R + Sync,
    mut conclude: impl FnMut(Result<R, N>) -> Result<(), E>,
) -> Result<(), E> {
    thread::scope(|scope| {
        let (give, take) = mpsc::sync_channel::<(P, Sender<R>)>(threads);
        let take = Arc::new(Mutex::new(take));
        for _ in 0..threads {
            let (take, work) = (Arc::clone(&take), &work);
            scope.spawn(move || {
                while let Some((item, done)) = next(&take) {
                    // After an error the receiver is gone.
                    let _ = done.send(work(item));
                }
            });
        }
        drop(take);
        let mut waiting = VecDeque::new();
        for item in items {
            let result = prepare(item).map(|prepared| {
                let (done, result) = mpsc::channel();
                // The receiver has panicked, which the end of the scope propagates.
                let _ = give.send((prepared, done));
                result
            });
            waiting.push_back(result);
            while let Some(result) = ready(&mut waiting) {
                conclude(result)?;
            }
        }
        drop(give);
        for result in waiting {
            match result.map(|r| r.recv()) {
                Ok(Ok(done)) => conclude(Ok(done))?,
                Ok(Err(_)) => {}
                Err(refused) => conclude(Err(refused))?,
            }
        }
        Ok(())
    })
}

/// The first pending result, if it is ready.
fn ready<R, N>(waiting: &mut VecDeque<Result<Receiver<R>, N>>) -> Option<Result<R, N>> {
    if let Ok(first) = waiting.front()? {
        let done = first.try_recv().ok()?;
        waiting.pop_front();
        return Some(Ok(done));
    }
    let Err(refused) = waiting.pop_front()? else { return None };
    Some(Err(refused))
}

fn next<T>(from: &Mutex<Receiver<T>>) -> Option<T> {
    from.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_items() {
        for threads in [1, 2, 7] {
            let mut seen = Vec::new();
            let prepare = |n: u32| if n % 5 == 3 { Err(n) } else { Ok(n) };
            let work = |n: u32| {
                if n.is_multiple_of(4) {
                    thread::yield_now();
                }
                n * 10
            };
            let done = run(threads, 0..100, prepare, work, |result| {
                seen.push(result);
                Ok::<_, ()>(())
            });
            let expected = (0..100).map(|n| if n % 5 == 3 { Err(n) } else { Ok(n * 10) });
            assert!(done.is_ok() && seen.iter().copied().eq(expected), "{threads} threads");
        }
    }

    #[test]
    fn a_slow_item_blocks_no_thread() {
        let (go, wait) = mpsc::channel();
        let (wait, mut seen) = (Mutex::new(wait), 0);
        let work = |n: u32| match n {
            // The first item waits for the last one.
            0 => next(&wait).is_some(),
            99 => go.send(()).is_ok(),
            _ => true,
        };
        let done = run(2, 0..100, Ok::<_, ()>, work, |result| {
            seen += u32::from(result == Ok(true));
            Ok::<_, ()>(())
        });
        assert_eq!((done, seen), (Ok(()), 100));
    }

    #[test]
    fn an_error_of_conclude_ends_the_run() {
        let mut seen = 0;
        let done = run(
            3,
            0_u32..,
            Ok::<_, ()>,
            |n| n,
            |result| {
                seen += 1;
                if result == Ok(20) { Err("twenty") } else { Ok(()) }
            },
        );
        assert_eq!((done, seen), (Err("twenty"), 21));
    }
}
