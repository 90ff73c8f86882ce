//! `gannet bench dict`: the clustered dictionary compared with other maps.
//!
//! The tables are those of the published comparison of Zeek's chained and clustered dictionaries: bytes per entry, and
//! nanoseconds to insert, find, miss and remove, by size, with 8-byte keys and with byte strings; and the same
//! with enough maps for every operation to miss the cache. In addition it measures what that comparison lacks: the slowest
//! insertions (`latency`), batched lookups that miss the cache (`batch`), and keys crafted to collide (`flood`).

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use gannet_dict::ByteKey;

mod batch;
mod chained;
mod flood;
mod latency;
mod maps;
mod measure;
mod plot;

use self::chained::Chained;
use self::maps::{Brown, Clustered, Index, Map, Std};
use self::measure::{Cost, Keys, Round};

/// Compare the clustered dictionary with hashbrown, indexmap, std's HashMap and a chained dictionary
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Also measure byte strings: the distinct lines of this file
    #[arg(long, value_name = "FILE")]
    keys: Option<PathBuf>,
    /// Also measure 1 to 100,000 maps at once, until operations miss the cache
    #[arg(long)]
    rounds: bool,
    /// Draw the tables by size into this file
    #[arg(long, value_name = "SVG")]
    plot: Option<PathBuf>,
    /// The largest size
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    largest: usize,
    /// Number of measurements of each figure; the minimum counts
    #[arg(long, value_name = "N", default_value_t = 4)]
    turns: usize,
}

/// The sizes of that comparison, and the small ones that most dictionaries have.
const SIZES: [usize; 10] = [1, 2, 5, 10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000];

/// The rows of a table: the size, then the cost of each map.
type Rows = Vec<(usize, Vec<(&'static str, Cost)>)>;

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    let count = args.largest.max(1);
    let numbers: Vec<u64> = (0..2 * count as u64).map(mix).collect();
    let (present, absent) = numbers.split_at(count);
    let numbers_of = |size: usize| keys_of(present, absent, size, |k| k);
    writeln!(out, "8-byte keys, 8-byte values")?;
    let rows = table(&mut out, args, count, numbers_of, number_maps)?;
    let mut tables = vec![("8-byte keys", rows)];
    let lines = args.keys.as_deref().map(read_keys).transpose()?;
    let others: Vec<Vec<u8>> = lines.iter().flatten().map(|k| [k, &b"\0"[..]].concat()).collect();
    let lines_of =
        |size: usize| keys_of(lines.as_deref().unwrap_or_default(), &others, size, Vec::as_slice);
    if !others.is_empty() {
        let longest = others.len().min(count);
        writeln!(out, "\nbyte strings (boxed but in the clustered dictionary), 8-byte values")?;
        tables.push(("byte strings", table(&mut out, args, longest, lines_of, bytes_maps)?));
    }
    if args.rounds {
        writeln!(
            out,
            "\nmaps of 10 8-byte keys side by side, each key in all maps before the next"
        )?;
        rounds(&mut out, args.turns, &numbers_of(10.min(count)))?;
    }
    out.flush()?;
    latency::run(&mut out, present)?;
    batch::run(&mut out, present, args.turns)?;
    flood::run(&mut out, count, args.turns)?;
    if let Some(path) = &args.plot {
        gannet_capture::NewFile::write(path, plot::draw(&tables).as_bytes())
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// Mixes a number: distinct results in random order.
fn mix(i: u64) -> u64 {
    i.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31).wrapping_mul(0xd6e8_feb8_6659_fd93)
}

/// The distinct non-empty lines of a file.
fn read_keys(path: &Path) -> anyhow::Result<Vec<Vec<u8>>> {
    let text = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut seen = std::collections::HashSet::new();
    let lines = text.split(|b| *b == b'\n').filter(|k| !k.is_empty());
    Ok(lines.filter(|k| seen.insert(*k)).map(<[u8]>::to_vec).collect())
}

fn keys_of<'k, K, Q: ?Sized>(
    present: &'k [K],
    absent: &'k [K],
    size: usize,
    view: impl Fn(&'k K) -> &'k Q,
) -> Keys<'k, Q> {
    let present: Vec<&Q> = present.iter().take(size).map(&view).collect();
    let mut order: Vec<usize> = (0..present.len()).collect();
    order.sort_by_key(|i| mix(*i as u64));
    Keys {
        shuffled: order.into_iter().map(|i| present[i]).collect(),
        absent: absent.iter().take(present.len()).map(view).collect(),
        present,
    }
}

fn round<'f, Q: ?Sized, M: Map<Q>>(
    name: &'static str,
    keys: &'f Keys<'f, Q>,
    copies: usize,
) -> Round<'f> {
    (name, Box::new(move || measure::round::<Q, M>(keys, copies)))
}

fn number_maps<'f>(keys: &'f Keys<'f, u64>, copies: usize) -> Vec<Round<'f>> {
    vec![
        round::<u64, Clustered<u64>>("clustered", keys, copies),
        round::<u64, Brown<u64>>("hashbrown", keys, copies),
        round::<u64, Index<u64>>("indexmap", keys, copies),
        round::<u64, Std<u64>>("std", keys, copies),
        round::<u64, Chained>("chained", keys, copies),
    ]
}

fn bytes_maps<'f>(keys: &'f Keys<'f, [u8]>, copies: usize) -> Vec<Round<'f>> {
    vec![
        round::<[u8], Clustered<ByteKey>>("clustered", keys, copies),
        round::<[u8], Brown<Box<[u8]>>>("hashbrown", keys, copies),
        round::<[u8], Index<Box<[u8]>>>("indexmap", keys, copies),
        round::<[u8], Std<Box<[u8]>>>("std", keys, copies),
        round::<[u8], Chained>("chained", keys, copies),
    ]
}

/// Measures all sizes and prints them.
fn table<'k, Q: ?Sized + 'k>(
    out: &mut impl Write,
    args: &Args,
    largest: usize,
    keys_of: impl Fn(usize) -> Keys<'k, Q>,
    maps: impl for<'f> Fn(&'f Keys<'f, Q>, usize) -> Vec<Round<'f>>,
) -> anyhow::Result<Rows> {
    writeln!(
        out,
        "{:>9} {:<10} {:>9} {:>8} {:>8} {:>8} {:>8}   relative to hashbrown",
        "entries", "map", "bytes/en", "insert", "found", "absent", "remove"
    )?;
    let mut rows = Vec::new();
    let mut sizes: Vec<usize> = SIZES.iter().map(|size| (*size).min(largest)).collect();
    sizes.dedup();
    for size in sizes {
        let keys = keys_of(size);
        let copies = (4096 / size).clamp(1, 256);
        // The smallest sizes take microseconds: they have many rounds, so that not all of them fall
        // into a moment when the processor is slow. So do sizes in the shared cache. Sizes in
        // between have fewer, since branch predictors learn lookups of a few thousand keys.
        let turns = match size {
            ..=10 => 100,
            11..=10_000 => 20,
            _ => (1_600_000 / size).clamp(1, 20),
        };
        let turns = args.turns * turns;
        let costs = measure::best_of(maps(&keys, copies), turns);
        print(out, size, &costs)?;
        rows.push((size, costs));
    }
    Ok(rows)
}

fn print(out: &mut impl Write, size: usize, costs: &[(&'static str, Cost)]) -> std::io::Result<()> {
    let base = costs.iter().find(|(name, _)| *name == "hashbrown").map(|(_, cost)| *cost);
    for (name, cost) in costs {
        let [insert, found, absent, remove] = cost.nanos;
        write!(out, "{size:>9} {name:<10} {:>9.1} ", cost.bytes)?;
        write!(out, "{insert:>8.1} {found:>8.1} {absent:>8.1} {remove:>8.1}  ")?;
        if let Some(base) = base {
            write!(out, " {:>5.2}", cost.bytes / base.bytes)?;
            for (nanos, base) in cost.nanos.iter().zip(base.nanos) {
                write!(out, " {:>5.2}", nanos / base)?;
            }
        }
        writeln!(out)?;
    }
    out.flush()
}

fn rounds(out: &mut impl Write, turns: usize, keys: &Keys<'_, u64>) -> anyhow::Result<()> {
    for copies in [1, 10, 100, 1000, 10_000, 100_000] {
        let turns = turns * (10_000 / copies).clamp(1, 20);
        let maps: Vec<Round<'_>> = vec![
            (
                "clustered",
                Box::new(|| measure::interleaved_round::<_, Clustered<u64>>(keys, copies)),
            ),
            ("hashbrown", Box::new(|| measure::interleaved_round::<_, Brown<u64>>(keys, copies))),
            ("indexmap", Box::new(|| measure::interleaved_round::<_, Index<u64>>(keys, copies))),
            ("std", Box::new(|| measure::interleaved_round::<_, Std<u64>>(keys, copies))),
            ("chained", Box::new(|| measure::interleaved_round::<_, Chained>(keys, copies))),
        ];
        print(out, copies, &measure::best_of(maps, turns))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_map_is_measured_at_every_size() {
        let numbers: Vec<u64> = (0..40).map(mix).collect();
        let args = Args { keys: None, rounds: false, plot: None, largest: 20, turns: 1 };
        let mut out = Vec::new();
        let of = |size| keys_of(&numbers[..20], &numbers[20..], size, |k| k);
        let rows = table(&mut out, &args, 20, of, number_maps).expect("memory takes it");
        assert_eq!(rows.iter().map(|(size, _)| *size).collect::<Vec<_>>(), [1, 2, 5, 10, 20]);
        assert!(rows.iter().all(|(_, costs)| costs.len() == 5));
        assert!(rows.iter().flat_map(|(_, c)| c).all(|(_, c)| c.bytes > 8.0));
        assert_eq!(out.iter().filter(|b| **b == b'\n').count(), 26);
        let svg = plot::draw(&[("8-byte keys", rows)]);
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
        assert_eq!(svg.matches("<polyline").count(), 25);
    }
}
