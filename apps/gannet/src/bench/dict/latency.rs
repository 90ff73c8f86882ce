//! The latency of single insertions while a map grows.
//!
//! Only the work of the maps should count, not that of the kernel, which allocates and clears memory two
//! megabytes at a time in 260 µs: the allocator keeps freed memory for a second, and the next round reuses it.

use std::hint::black_box;
use std::io::Write;
use std::time::Instant;

use super::maps::{Brown, Clustered};

/// Number of measurements of each insertion; the first ones also allocate memory from the system.
const ROUNDS: usize = 8;

/// Percentiles of the distribution.
const PERCENTILES: [f64; 6] = [50.0, 90.0, 99.0, 99.9, 99.99, 99.999];

/// Prints the distribution.
pub(super) fn run(out: &mut impl Write, keys: &[u64]) -> std::io::Result<()> {
    writeln!(
        out,
        "\nns of one insertion while a map grows to {} entries, in memory that the process has",
        keys.len()
    )?;
    write!(out, "{:<10}", "map")?;
    PERCENTILES.iter().try_for_each(|percent| write!(out, " {:>9}", format!("{percent}%")))?;
    writeln!(out, " {:>10}", "worst")?;
    let best = minimums(keys);
    for (at, name) in ["clustered", "hashbrown"].into_iter().enumerate() {
        let mut nanos: Vec<u64> = best.iter().map(|best| best[at]).collect();
        nanos.sort_unstable();
        write!(out, "{name:<10}")?;
        for percent in PERCENTILES {
            let at = (nanos.len() - 1) as f64 * percent / 100.0;
            write!(out, " {:>9}", nanos[at as usize])?;
        }
        writeln!(out, " {:>10}", nanos.last().unwrap_or(&0))?;
    }
    out.flush()
}

/// The minimum nanoseconds of each insertion over all rounds, for both maps.
fn minimums(keys: &[u64]) -> Vec<[u64; 2]> {
    // Interrupts hit another insertion in each round, so that the minimum excludes them.
    let mut best: Vec<[u64; 2]> = vec![[u64::MAX; 2]; keys.len()];
    for _ in 0..ROUNDS {
        let (mut dict, mut brown) = (Clustered::<u64>::default(), Brown::<u64>::default());
        for (key, best) in keys.iter().zip(&mut best) {
            let start = Instant::now();
            black_box(dict.insert(*key, 7));
            best[0] = best[0].min(start.elapsed().as_nanos() as u64);
            let start = Instant::now();
            black_box(brown.insert(*key, 7));
            best[1] = best[1].min(start.elapsed().as_nanos() as u64);
        }
    }
    best
}
