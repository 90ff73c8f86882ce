//! The fuzz targets process arbitrary bytes without a panic: every run of the tests tries some
//! inputs for each. `cargo xtask fuzz` searches for more.

// In a fuzzing build, libFuzzer provides the `main` of a target.
#![allow(unused_attributes)]

/// Targets call libFuzzer's macro, which this crate replaces by one that defines a function.
extern crate gannet_fuzz_support as libfuzzer_sys;

mod list;

/// Calls a target with bytes of several lengths: zeros, ones, in order, and at random.
fn run(target: fn(&[u8])) {
    let mut state = 1_u64;
    let mut random = || {
        // SplitMix64: the same bytes in each run.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed >> 56) as u8
    };
    for len in [0, 1, 2, 3, 7, 16, 64, 250] {
        target(&vec![0; len]);
        target(&vec![0xff; len]);
        target(&(0..=255).cycle().take(len).collect::<Vec<_>>());
        for _ in 0..8 {
            target(&(0..len).map(|_| random()).collect::<Vec<_>>());
        }
    }
}
