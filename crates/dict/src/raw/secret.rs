//! The key of the default hash, drawn once per process.
//!
//! A search should not have to check whether the key was drawn. It was drawn when the table was
//! made: constructors of tables store the proof, [`Drawn`], a zero-sized type; with it the key is
//! read without a check.

use core::cell::UnsafeCell;
use core::hash::BuildHasher;
use std::hash::RandomState;
use std::sync::Once;

use foldhash::SharedSeed;

use super::pieces::Secret;

/// Proof that the key of [`KeyedHash`](crate::KeyedHash) has been drawn. Only this module can
/// create one.
#[derive(Clone, Copy, Debug)]
pub struct Drawn(());

/// The key: the seeds for numbers, and the words for byte strings.
pub(crate) struct Words {
    pub(crate) seed: u64,
    pub(crate) shared: SharedSeed,
    pub(crate) piece_secret: Secret,
}

struct Key(UnsafeCell<Words>);

// SAFETY: written once, within the one call that `DRAWN` makes; read only with a `Drawn`, which is
// created after that call. A `Drawn` received from another thread is synchronised by the channel
// through which it came.
unsafe impl Sync for Key {}

static KEY: Key = Key(UnsafeCell::new(Words {
    seed: 0,
    shared: SharedSeed::from_u64(0),
    piece_secret: Secret([[0; 4]; 4]),
}));

static DRAWN: Once = Once::new();

/// Draws the key, unless it has been.
#[inline]
pub(crate) fn draw() -> Drawn {
    DRAWN.call_once(|| {
        let random = RandomState::new();
        let number = |of: u64| random.hash_one(of);
        let of_piece = |at: u64| [0, 1, 2, 3].map(|word| number(2 + 4 * at + word) as u32);
        let key = Words {
            seed: number(0),
            shared: SharedSeed::from_u64(number(1)),
            piece_secret: Secret([0, 1, 2, 3].map(of_piece)),
        };
        // SAFETY: the only write, and there are no reads before this call ends.
        unsafe { *KEY.0.get() = key };
    });
    Drawn(())
}

/// The key.
#[inline(always)]
pub(crate) fn words(_: Drawn) -> &'static Words {
    // SAFETY: it was drawn, and is not written again.
    unsafe { &*KEY.0.get() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_threads_draw_the_same() {
        let drawn = || {
            let words = words(draw());
            (words.seed, words.piece_secret.0, core::ptr::from_ref(words).addr())
        };
        let threads: Vec<_> = (0..4).map(|_| std::thread::spawn(drawn)).collect();
        let all: Vec<_> = threads.into_iter().map(|t| t.join().expect("drawn")).collect();
        assert!(all.iter().all(|one| *one == drawn()) && drawn().0 != 0);
    }
}
