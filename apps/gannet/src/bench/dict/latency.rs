//! How long single insertions take while a map grows.
//!
//! Only the work of the maps should count, not the kernel's, which allocates and clears memory two
//! megabytes at a time in 260 µs: the allocator keeps for a second what a map frees, and the next turn takes it again.

use std::hint::black_box;
use std::io::Write;
use std::time::Instant;

use super::maps::{Brown, Clustered};

/// Times each insertion is measured; the first ones also take memory from the system.
const TURNS: usize = 8;

/// Percents of insertions that take no longer.
const PERCENTS: [f64; 6] = [50.0, 90.0, 99.0, 99.9, 99.99, 99.999];

/// Prints the distribution.
pub(super) fn run(out: &mut impl Write, keys: &[u64]) -> std::io::Result<()> {
    writeln!(
        out,
        "\nns of one insertion while a map grows to {} entries, in memory that the process has",
        keys.len()
    )?;
    write!(out, "{:<10}", "map")?;
    PERCENTS.iter().try_for_each(|percent| write!(out, " {:>9}", format!("{percent}%")))?;
    writeln!(out, " {:>10}", "worst")?;
    let least = turns(keys);
    for (at, name) in ["clustered", "hashbrown"].into_iter().enumerate() {
        let mut nanos: Vec<u64> = least.iter().map(|least| least[at]).collect();
        nanos.sort_unstable();
        write!(out, "{name:<10}")?;
        for percent in PERCENTS {
            let at = (nanos.len() - 1) as f64 * percent / 100.0;
            write!(out, " {:>9}", nanos[at as usize])?;
        }
        writeln!(out, " {:>10}", nanos.last().unwrap_or(&0))?;
    }
    out.flush()
}

/// The least that each insertion took in any turn, into both maps.
fn turns(keys: &[u64]) -> Vec<[u64; 2]> {
    // An interruption hits an insertion now and then; it hits another one the next time.
    let mut least: Vec<[u64; 2]> = vec![[u64::MAX; 2]; keys.len()];
    for _ in 0..TURNS {
        let (mut dict, mut brown) = (Clustered::<u64>::default(), Brown::<u64>::default());
        for (key, least) in keys.iter().zip(&mut least) {
            let start = Instant::now();
            black_box(dict.insert(*key, 7));
            least[0] = least[0].min(start.elapsed().as_nanos() as u64);
            let start = Instant::now();
            black_box(brown.insert(*key, 7));
            least[1] = least[1].min(start.elapsed().as_nanos() as u64);
        }
    }
    least
}
