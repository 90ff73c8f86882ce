//! Threads that are pinned to processors of their own at the start.
//!
//! A scheduler starts and wakes a new thread on its creator's processor until it has measured the
//! load: for twenty milliseconds two threads may share a processor while another one is idle,
//! longer than the analysis of many captures. So each thread is pinned to a processor of its own
//! for a short time, and released afterwards.

use std::time::Duration;

#[cfg(target_os = "linux")]
use nix::sched::CpuSet;
#[cfg(target_os = "linux")]
use nix::sched::sched_getaffinity;
#[cfg(target_os = "linux")]
use nix::sched::sched_setaffinity;
#[cfg(target_os = "linux")]
use nix::unistd::Pid;

/// How long threads are pinned.
pub(crate) const HELD: Duration = Duration::from_millis(100);

/// The calling thread.
#[cfg(target_os = "linux")]
const CALLER: Pid = Pid::from_raw(0);

/// The processor of the thread that starts others.
#[derive(Clone, Copy)]
pub(crate) struct Origin(usize);

impl Origin {
    /// The processor of the caller.
    pub(crate) fn of_caller() -> Self {
        #[cfg(target_os = "linux")]
        return Self(nix::sched::sched_getcpu().unwrap_or(0));
        #[cfg(not(target_os = "linux"))]
        return Self(0);
    }

    /// Moves the calling thread to the `n`th processor after this one, among those it is allowed to
    /// use, and pins it there. On failure the thread stays where it is.
    #[cfg(target_os = "linux")]
    pub(crate) fn hold(self, n: usize) -> Held {
        let held = || {
            let allowed = sched_getaffinity(CALLER).ok()?;
            let mut one = CpuSet::new();
            one.set(self.nth(n, |cpu| allowed.is_set(cpu).unwrap_or(false))?).ok()?;
            sched_setaffinity(CALLER, &one).ok()?;
            Some(allowed)
        };
        Held(held())
    }

    /// Does nothing on other systems than Linux.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn hold(self, _: usize) -> Held {
        Held
    }

    /// The `n`th allowed processor after this one, wrapping around at the last.
    #[cfg(target_os = "linux")]
    fn nth(self, n: usize, is_allowed: impl Fn(usize) -> bool) -> Option<usize> {
        let all = CpuSet::count();
        let from_here = (0..all).map(|i| (self.0 + i) % all).filter(|cpu| is_allowed(*cpu));
        let count = from_here.clone().count();
        from_here.clone().nth(n.checked_rem(count)?)
    }
}

/// Releases a pinned thread when it is dropped in that thread.
#[cfg(target_os = "linux")]
pub(crate) struct Held(Option<CpuSet>);

/// A thread that is not pinned.
#[cfg(not(target_os = "linux"))]
pub(crate) struct Held;

#[cfg(target_os = "linux")]
impl Drop for Held {
    fn drop(&mut self) {
        if let Some(allowed) = &self.0 {
            // Restoring the former set fails only if it was changed meanwhile.
            let _ = sched_setaffinity(CALLER, allowed);
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn processors_are_taken_in_turn() {
        let places = |from, allowed: &[usize]| {
            [0, 1, 2, 3].map(|n| Origin(from).nth(n, |cpu| allowed.contains(&cpu)))
        };
        assert_eq!(places(0, &[0, 1]), [0, 1, 0, 1].map(Some));
        assert_eq!(places(1, &[0, 1]), [1, 0, 1, 0].map(Some));
        assert_eq!(places(5, &[2, 5, 7, 9]), [5, 7, 9, 2].map(Some));
        // The caller's own processor is not allowed any more.
        assert_eq!(places(6, &[2, 5, 7]), [7, 2, 5, 7].map(Some));
        assert_eq!(places(3, &[]), [None; 4]);
    }

    #[test]
    fn a_thread_is_held_and_may_go_anywhere_afterwards() {
        let allowed = || sched_getaffinity(CALLER).unwrap();
        let before = allowed();
        let origin = Origin::of_caller();
        let thread = std::thread::spawn(move || {
            let held = origin.hold(1);
            let during = allowed();
            drop(held);
            (during, allowed())
        });
        let (during, after) = thread.join().unwrap();
        let count = (0..CpuSet::count()).filter(|cpu| during.is_set(*cpu).unwrap()).count();
        assert!(count == 1 && after == before);
    }
}
