//! The benchmark filters on captures: nanoseconds per packet of each engine, in one run.
//!
//! ```sh
//! cargo run --profile quick -p gannet-comparators --features jit,foreign --example suite -- rand.pcap mix.pcap
//! ```
//!
//! `ROUNDS` is the number of runs of each engine, `PACKETS` the number of packets, `ONLY` selects
//! filters, as `P5,H3`.
#![allow(clippy::print_stdout, clippy::print_stderr, clippy::unwrap_used, missing_docs)]

#[path = "suite/filters.rs"]
mod filters;
#[path = "suite/hand.rs"]
mod hand;

use std::hint::black_box;
use std::ops::Range;
use std::time::Instant;

use gannet_capture::Reader;
use gannet_comparators::libpcap::{self, Libpcap};
use gannet_comparators::linux::Timed;
use gannet_filter::engine::jit::{Batch, Jit};
use gannet_filter::engine::{Engine, View};
use gannet_filter::{NoNames, Options, Program, compile};

/// Default number of packets of a capture, which are filtered repeatedly: about as many as the
/// branch predictor remembers. Its collisions depend on code addresses and change the time of a
/// branchy filter by up to a third.
const PACKETS: usize = 4096;

/// Consecutive passes of an engine over all packets: in the first pass the branch predictor is
/// trained by the previous engine.
const PASSES: usize = 4;

/// Captured bytes of a packet: few enough that all packets stay in the L2 cache.
const KEPT: usize = 128;

/// Number of packets of a batch.
const BATCH: usize = 1024;

fn main() {
    let only = std::env::var("ONLY").unwrap_or_default();
    let rounds: usize = std::env::var("ROUNDS").ok().and_then(|r| r.parse().ok()).unwrap_or(15);
    let count =
        std::env::var("PACKETS").ok().and_then(|p| p.parse().ok()).unwrap_or(PACKETS).max(1);
    println!(
        "{}; {count} packets of each capture, least of {rounds} rounds, ns a packet\n",
        libpcap::version().unwrap_or_else(|e| e.to_string())
    );
    let hands = hand::Library::new();
    if let Err(error) = &hands {
        eprintln!("without filters by hand: {error}");
    }
    for file in std::env::args().skip(1) {
        let (bytes, packets) = sample(&file, count);
        let view = |(place, wire): &(Range<usize>, u32)| View::new(&bytes[place.clone()], *wire);
        let views: Vec<View<'_>> = packets.iter().map(view).collect();
        println!("### {file}\n");
        println!(
            "| filter | insns | matches | libpcap | its program | linux | jit | batch | llvm | by hand | jit : libpcap | batch : jit |"
        );
        println!("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
        let (mut logs, mut batch_logs, mut slower, mut many) = (0.0, 0.0, 0, 0);
        for (name, expression) in filters::all() {
            if !only.is_empty() && !only.split(',').any(|o| o == name) {
                continue;
            }
            let options = Options::default();
            let program = match compile(&expression, 1, &options, &NoNames) {
                Ok(compiled) => compiled.program().clone(),
                Err(error) => {
                    println!("| {name} | {} |", error.message());
                    continue;
                }
            };
            let hand = hands.as_ref().ok().and_then(|h| h.of(&name));
            let row = measure(&name, &expression, &program, &views, rounds, hand);
            let Some(row) = row else { continue };
            let ratio = row.libpcap.min(row.libpcap_program.unwrap_or(f64::MAX)) / row.jit;
            logs += ratio.ln();
            batch_logs += (row.jit / row.batch).ln();
            slower += usize::from(ratio < 1.0);
            many += 1;
            let optional = |v: Option<f64>| v.map_or(String::new(), |v| format!("{v:.2}"));
            println!(
                "| {name} | {} | {} | {:.2} | {} | {} | {:.2} | {:.2} | {} | {} | {ratio:.2} | {:.2} |",
                program.insns().len(),
                row.matches,
                row.libpcap,
                optional(row.libpcap_program),
                optional(row.linux),
                row.jit,
                row.batch,
                optional(row.llvm),
                optional(row.hand),
                row.jit / row.batch,
            );
        }
        let mean = |logs: f64| (logs / f64::from(many)).exp();
        println!(
            "\ngeometric means: jit {:.2} x libpcap, batch {:.2} x jit; slower than libpcap: {slower}\n",
            mean(logs),
            mean(batch_logs)
        );
    }
}

/// Evenly distributed packets of a capture in one buffer, as a reader returns them: the bytes of
/// all, and the range and wire length of each packet.
fn sample(file: &str, count: usize) -> (Vec<u8>, Vec<(Range<usize>, u32)>) {
    let (mut bytes, mut all) = (Vec::new(), Vec::new());
    let mut reader = Reader::open(file).unwrap();
    let total = {
        let mut counting = Reader::open(file).unwrap();
        while let Some(_batch) = counting.next_batch().unwrap() {}
        counting.packets() as usize
    };
    let step = (total / count).max(1);
    let mut number = 0;
    while let Some(batch) = reader.next_batch().unwrap() {
        for packet in batch.iter() {
            if number % step == 0 && all.len() < count {
                let kept = packet.data.get(..KEPT).unwrap_or(packet.data);
                all.push((bytes.len()..bytes.len() + kept.len(), packet.wire_len));
                bytes.extend_from_slice(kept);
            }
            number += 1;
        }
    }
    (bytes, all)
}

/// Nanoseconds per packet.
#[derive(Default)]
struct Row {
    matches: usize,
    libpcap: f64,
    /// Time of libpcap's interpreter with libpcap's program.
    libpcap_program: Option<f64>,
    jit: f64,
    batch: f64,
    llvm: Option<f64>,
    hand: Option<f64>,
    /// The kernel's machine code, minus the time of a program that only returns.
    linux: Option<f64>,
}

/// The engine's name, and a run over all packets that returns the time and the number of matches.
type Lane<'a> = (&'static str, Box<dyn FnMut() -> (f64, usize) + 'a>);

fn measure(
    name: &str,
    expression: &str,
    program: &Program,
    views: &[View<'_>],
    rounds: usize,
    hand: Option<hand::Hand>,
) -> Option<Row> {
    let libpcap = Libpcap::new(program).unwrap();
    // libpcap's compiler needs minutes for long lists.
    let short = expression.len() < 4_000;
    let libpcap_program = short
        .then(|| libpcap::compile(expression, 1, 262_144, true).ok())
        .flatten()
        .and_then(|p| Libpcap::new(&p).ok());
    let (jit, batch) = match (Jit::new(program), Batch::new(program)) {
        (Ok(jit), Ok(batch)) => (jit, batch),
        (Err(error), _) | (_, Err(error)) => {
            eprintln!("{name}: {error}");
            return None;
        }
    };
    #[cfg(feature = "llvm")]
    let llvm = gannet_comparators::llvm::Llvm::new(program).ok();
    let mut hits = Vec::new();
    let mut lanes: Vec<Lane<'_>> = vec![
        ("libpcap", Box::new(|| each(views, |v| libpcap.run(v) != 0))),
        ("jit", Box::new(|| each(views, |v| jit.run(v) != 0))),
        (
            "batch",
            Box::new(|| {
                let begun = Instant::now();
                let mut found = 0;
                for part in views.chunks(BATCH) {
                    batch.select(black_box(part), &mut hits);
                    found += black_box(&hits).len();
                }
                (begun.elapsed().as_secs_f64() * 1e9 / views.len() as f64, found)
            }),
        ),
    ];
    if let Some(libpcap_program) = &libpcap_program {
        lanes.push(("its program", Box::new(|| each(views, |v| libpcap_program.run(v) != 0))));
    }
    if let Some(hand) = hand {
        lanes.push(("by hand", Box::new(move || each(views, |v| hand.matches(v.data())))));
    }
    #[cfg(feature = "llvm")]
    if let Some(llvm) = &llvm {
        lanes.push(("llvm", Box::new(|| each(views, |v| llvm.run(v) != 0))));
    }
    let mut least = vec![f64::MAX; lanes.len()];
    let expected = lanes[0].1().1;
    for _ in 0..rounds {
        for (lane, least) in lanes.iter_mut().zip(&mut least) {
            for _ in 0..PASSES {
                let (time, found) = lane.1();
                *least = least.min(time);
                assert_eq!(found, expected, "{name}: {}", lane.0);
            }
        }
    }
    let of = |who: &str| lanes.iter().position(|l| l.0 == who).map(|at| least[at]);
    Some(Row {
        matches: expected,
        libpcap: of("libpcap")?,
        libpcap_program: of("its program"),
        jit: of("jit")?,
        batch: of("batch")?,
        llvm: of("llvm"),
        hand: of("by hand"),
        linux: kernel(program, views),
    })
}

/// Nanoseconds per packet in the kernel, minus those of a program that only returns.
fn kernel(program: &Program, views: &[View<'_>]) -> Option<f64> {
    const REPEAT: u32 = 1_000;
    let empty = Timed::new(&Program::from_text("ret #0").ok()?).ok()?;
    let timed = Timed::new(program).ok()?;
    let (mut sum, mut count) = (0.0, 0);
    for view in views.iter().step_by(views.len().div_ceil(48)).filter(|v| v.data().len() > 14) {
        let time =
            |t: &Timed| (0..3).filter_map(|_| t.run(view.data(), REPEAT).ok()).map(|r| r.1).min();
        sum += f64::from(time(&timed)?) - f64::from(time(&empty)?);
        count += 1;
    }
    (count > 0).then(|| sum / f64::from(count))
}

/// Nanoseconds per packet, and the number of matches.
fn each(views: &[View<'_>], mut matches: impl FnMut(View<'_>) -> bool) -> (f64, usize) {
    let begun = Instant::now();
    let mut found = 0;
    for view in views {
        found += usize::from(matches(*view));
    }
    (begun.elapsed().as_secs_f64() * 1e9 / views.len() as f64, black_box(found))
}
