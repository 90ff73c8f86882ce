//! All engines agree on every packet, for optimised programs and others.
//!
//! By default, forty random filters on packets generated for them. `GANNET_FILTERS` sets the
//! number, optionally preceded by a number to skip (`600+200`), and `GANNET_TRACES` the captures of
//! Ethernet frames to run them over, separated by colons:
//!
//! ```sh
//! GANNET_FILTERS=1000 GANNET_TRACES=rand.pcap:mix.pcap \
//!     cargo test --profile quick -p gannet-comparators --features jit,foreign --test engines -- --nocapture
//! ```
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use gannet_capture::Reader;
use gannet_comparators::Kind;
use gannet_filter::engine::{Engine, View, trace};
use gannet_filter::proof::{Expressions, Prober};
use gannet_filter::{NoNames, Options, Program, compile};

const ETHERNET: u16 = 1;

/// Number of packets of a trace that the kernel filters, for each filter: each takes a microsecond.
const KERNEL_PACKETS: usize = 4_000;

/// Packets that all engines filter before the next ones, so that their headers stay in the cache.
const CHUNK: usize = 4_096;

/// An engine with a program, and its results.
struct Lane {
    kind: Kind,
    optimized: bool,
    program: Program,
    engine: Box<dyn Engine>,
}

/// The number of filters to skip, and to use: `200`, `600+200`.
fn skip_and_count(text: &str) -> (usize, usize) {
    let (skip, count) = text.split_once('+').unwrap_or(("0", text));
    (skip.parse().unwrap_or(0), count.parse().unwrap_or(40))
}

/// The programs of a filter, as written and optimised.
fn programs(text: &str) -> Option<[Program; 2]> {
    let of = |optimize| {
        let options = Options { optimize, ..Options::default() };
        match compile(text, ETHERNET, &options, &NoNames) {
            Ok(compiled) => Some(compiled.program().clone()),
            // "Matches nothing" is a valid program; a constant division by zero is an error.
            Err(e) if optimize && e.message() == "expression rejects all packets" => {
                Some(Program::from_text("ret #0").unwrap())
            }
            Err(_) => None,
        }
    };
    Some([of(false)?, of(true)?])
}

fn lanes(programs: [Program; 2], skipped: &mut BTreeMap<String, usize>) -> Vec<Lane> {
    let mut lanes = Vec::new();
    for (program, optimized) in programs.into_iter().zip([false, true]) {
        for kind in Kind::ALL {
            match kind.build(&program) {
                Ok(engine) => {
                    let program = program.clone();
                    lanes.push(Lane { kind, optimized, program, engine });
                }
                Err(why) => *skipped.entry(format!("{}: {why}", kind.name())).or_default() += 1,
            }
        }
    }
    lanes
}

/// The packets of a capture, kept in memory for all filters.
struct LoadedCapture {
    bytes: Vec<u8>,
    /// End offset and wire length of each packet.
    ends: Vec<(usize, u32)>,
}

impl LoadedCapture {
    fn open(file: &str) -> Self {
        let mut held = Self { bytes: Vec::new(), ends: Vec::new() };
        let mut reader = Reader::open(file).unwrap();
        while let Some(batch) = reader.next_batch().unwrap() {
            for packet in &batch {
                held.bytes.extend_from_slice(packet.data);
                held.ends.push((held.bytes.len(), packet.wire_len));
            }
        }
        held
    }

    fn views(&self) -> Vec<View<'_>> {
        let mut start = 0;
        let view = |&(end, wire): &(usize, u32)| {
            let data = &self.bytes[start..end];
            start = end;
            View::new(data, wire)
        };
        self.ends.iter().map(view).collect()
    }
}

/// The runs of an engine, and their time.
#[derive(Default)]
struct Tally {
    verdicts: u64,
    time: BTreeMap<&'static str, (u64, Duration)>,
}

/// Runs all engines over packets, the kernel's over every `nth`. With libpcap's interpreter, the
/// optimised program runs over all packets, and the unoptimised one, which equals that of the
/// reference interpreter, over one chunk in eight.
fn compare(text: &str, lanes: &[Lane], views: &[View<'_>], nth: usize, tally: &mut Tally) {
    let (mut expected, mut hits) = (Vec::new(), Vec::new());
    for (number, views) in views.chunks(CHUNK).enumerate() {
        for (at, lane) in lanes.iter().enumerate() {
            if lane.kind == Kind::Libpcap && !lane.optimized && number % 8 > 0 {
                continue;
            }
            let start = Instant::now();
            let asked = if lane.kind == Kind::Linux {
                run_lane(lane, views, nth, &expected, &mut hits)
            } else {
                lane.engine.select(views, &mut hits);
                views.len() as u64
            };
            let spent = tally.time.entry(lane.kind.name()).or_default();
            spent.0 += asked;
            spent.1 += start.elapsed();
            tally.verdicts += asked;
            if at == 0 {
                expected.clone_from(&hits);
            }
            if hits != expected {
                let has = |hits: &[u32], n: usize| hits.binary_search(&(n as u32)).is_ok();
                let place = (0..views.len()).find(|n| has(&hits, *n) != has(&expected, *n));
                disagreement(text, [&lanes[0], lane], views[place.unwrap_or_default()]);
            }
        }
    }
}

/// Runs an engine on every `nth` packet: counts runs and reports verdicts that differ from the
/// expected ones.
fn run_lane(
    lane: &Lane,
    views: &[View<'_>],
    nth: usize,
    expected: &[u32],
    hits: &mut Vec<u32>,
) -> u64 {
    hits.clear();
    hits.extend_from_slice(expected);
    let mut asked = 0;
    for (place, view) in (0..).zip(views).step_by(nth).filter(|(_, v)| lane.engine.covers(**v)) {
        asked += 1;
        match (lane.engine.run(*view) != 0, hits.binary_search(&place)) {
            (true, Err(at)) => hits.insert(at, place),
            (false, Ok(at)) => drop(hits.remove(at)),
            _ => (),
        }
    }
    asked
}

fn disagreement(text: &str, [first, lane]: [&Lane; 2], view: View<'_>) -> ! {
    panic!(
        "{} (optimised: {}) says the opposite of {text:?}, wire length {}, packet {:02x?}\n{}\n\n{}",
        lane.kind.name(),
        lane.optimized,
        view.wire_len(),
        view.data(),
        trace(&first.program, view),
        trace(&lane.program, view)
    );
}

#[test]
fn engines_agree() {
    let (skip, count) = skip_and_count(&std::env::var("GANNET_FILTERS").unwrap_or_default());
    let traces = std::env::var("GANNET_TRACES").unwrap_or_default();
    let traces: Vec<LoadedCapture> =
        traces.split(':').filter(|t| !t.is_empty()).map(LoadedCapture::open).collect();
    let traces: Vec<Vec<View<'_>>> = traces.iter().map(LoadedCapture::views).collect();
    let mut expressions = Expressions::new(2026);
    let mut skipped = BTreeMap::new();
    let mut tally = Tally::default();
    let (mut filters, mut kernel, mut tries) = (0, 0, 0_u64);
    while filters < skip + count {
        tries += 1;
        assert!(tries < 1000 + 100 * (skip + count) as u64, "hardly any random filter compiles");
        let (link, text) = expressions.filter();
        if link != ETHERNET {
            continue;
        }
        let Some(programs) = programs(&text) else { continue };
        filters += 1;
        if filters <= skip {
            continue;
        }
        let lanes = lanes(programs, &mut skipped);
        kernel += usize::from(lanes.iter().any(|l| l.kind == Kind::Linux));
        // Packets that satisfy many of its tests, truncated at any length.
        let mut prober = Prober::new(tries);
        let packets: Vec<_> = (0..30).map(|_| prober.packet(&lanes[0].program, None)).collect();
        let mut views = Vec::new();
        for (packet, wire, _) in &packets {
            views.push(View::new(packet, *wire));
            views.extend((0..packet.len()).step_by(5).map(|n| View::new(&packet[..n], *wire)));
        }
        compare(&text, &lanes, &views, 1, &mut tally);
        for views in &traces {
            compare(&text, &lanes, views, views.len().div_ceil(KERNEL_PACKETS).max(1), &mut tally);
        }
        if filters % 20 == 0 {
            eprintln!("{filters} filters, {} verdicts", tally.verdicts);
        }
    }
    let Tally { verdicts, time } = tally;
    let filters = filters - skip;
    eprintln!("{filters} filters, {kernel} of them in the kernel, too: {verdicts} verdicts agree");
    for (name, (asked, spent)) in time {
        let each = spent.as_nanos() as f64 / asked.max(1) as f64;
        eprintln!("{name}: {asked} verdicts, {each:.1} ns each");
    }
    for (why, times) in skipped {
        eprintln!("skipped {times} times: {why}");
    }
}
