//! `gannet bench ring`: the throughput of a ring between two threads.

use std::time::Instant;

use anyhow::ensure;
use gannet_pipeline::ring::Ring;

use crate::out;

/// Capacity of the ring in words: the default of dnsjit's channels.
const CAPACITY: usize = 2048;

/// Measure a ring between two threads
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Number of words in a run
    #[arg(long, default_value_t = 20_000_000)]
    words: u64,
    /// Number of runs; the best counts
    #[arg(long, default_value_t = 5)]
    runs: usize,
}

pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    let mut best = 0.0_f64;
    for _ in 0..args.runs.max(1) {
        best = best.max(once(args.words)?);
    }
    let words = args.words;
    out::write(format!("{best:.0} words/s, {words} of {words} arrived in order\n").as_bytes())?;
    Ok(())
}

/// Words per second of one run.
///
/// # Errors
/// Where a word is missing or out of order.
fn once(words: u64) -> anyhow::Result<f64> {
    let ring = Ring::new(CAPACITY);
    let (received, in_order, seconds) = std::thread::scope(|scope| {
        let started = Instant::now();
        let reader = scope.spawn(|| {
            let (mut received, mut in_order) = (0, true);
            while let Some(word) = ring.take() {
                in_order &= word == received;
                received += 1;
            }
            (received, in_order)
        });
        for word in 0..words {
            if ring.put(word).is_err() {
                break;
            }
        }
        ring.close();
        let (received, in_order) = reader.join().unwrap_or_default();
        (received, in_order, started.elapsed().as_secs_f64())
    });
    ensure!(received == words && in_order, "{received} of {words} words arrived");
    Ok(words as f64 / seconds)
}
