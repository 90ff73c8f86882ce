//! The key of the default hash, drawn once a process.
//!
//! A search in a table should not have to ask whether the key was drawn: it was when the table was made, or it could hold
//! nothing. So whoever makes a table has it drawn and keeps the proof, [`Drawn`], which takes no room; with it the key is
//! read as any other memory.

use core::cell::UnsafeCell;
use core::hash::BuildHasher;
use std::hash::RandomState;
use std::sync::Once;

use foldhash::SharedSeed;

/// That the key of [`KeyedHash`](crate::KeyedHash) has been drawn. Dictionaries have it; nobody else can make one.
#[derive(Clone, Copy, Debug)]
pub struct Drawn(());

struct Key(UnsafeCell<(u64, SharedSeed)>);

// SAFETY: written once, within the one call that `DRAWN` makes; read only by who has a `Drawn`, which is made when that
// call is over. Whoever gets a `Drawn` of another thread is synchronised with it by the way it came.
unsafe impl Sync for Key {}

static KEY: Key = Key(UnsafeCell::new((0, SharedSeed::from_u64(0))));

static DRAWN: Once = Once::new();

/// Draws the key, unless it has been.
#[inline]
pub(crate) fn draw() -> Drawn {
    DRAWN.call_once(|| {
        let random = RandomState::new();
        let key = (random.hash_one(0_u64), SharedSeed::from_u64(random.hash_one(1_u64)));
        // SAFETY: the only write, and nobody reads before this call is over.
        unsafe { *KEY.0.get() = key };
    });
    Drawn(())
}

/// The key: a seed and the words that numbers are multiplied with.
#[inline(always)]
pub(crate) fn words(_: Drawn) -> (u64, &'static SharedSeed) {
    // SAFETY: it was drawn, and nobody writes again.
    let (seed, shared) = unsafe { &*KEY.0.get() };
    (*seed, shared)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_threads_draw_the_same() {
        let drawn = || {
            let (seed, shared) = words(draw());
            (seed, core::ptr::from_ref(shared).addr())
        };
        let threads: Vec<_> = (0..4).map(|_| std::thread::spawn(drawn)).collect();
        let all: Vec<_> = threads.into_iter().map(|t| t.join().expect("drawn")).collect();
        assert!(all.iter().all(|one| *one == drawn()) && drawn().0 != 0);
    }
}
