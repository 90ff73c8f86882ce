//! All engines, optimised and not, say the same of every packet.
//!
//! Without more, forty random filters on packets made for them. `GANNET_FILTERS` says how many, and
//! `GANNET_TRACES` which captures of Ethernet frames to run them over, with a colon between two:
//!
//! ```sh
//! GANNET_FILTERS=1000 GANNET_TRACES=rand.pcap:mix.pcap \
//!     cargo test --profile quick -p gannet-filter --features jit,foreign --test engines -- --nocapture
//! ```
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use std::collections::BTreeMap;
use std::path::Path;

use gannet_capture::Reader;
use gannet_filter::engine::{Engine, Kind, View, trace};
use gannet_filter::proof::{Expressions, Prober};
use gannet_filter::{NoNames, Options, Program, compile};

const ETHERNET: u16 = 1;

/// Packets that the kernel is asked about, for each filter: it needs a microsecond for each.
const ASKED: usize = 4_000;

/// An engine with a program, and what is told of it.
struct Lane {
    kind: Kind,
    optimized: bool,
    program: Program,
    engine: Box<dyn Engine>,
}

fn lanes(text: &str, skipped: &mut BTreeMap<String, usize>) -> Option<Vec<Lane>> {
    let mut lanes = Vec::new();
    for optimized in [false, true] {
        let options = Options { optimize: optimized, ..Options::default() };
        let program = match compile(text, ETHERNET, &options, &NoNames) {
            Ok(compiled) => compiled.program().clone(),
            // That nothing matches is a program, too; that a constant divides by zero is a mistake.
            Err(e) if optimized && e.message() == "expression rejects all packets" => {
                Program::from_text("ret #0").unwrap()
            }
            Err(_) => return None,
        };
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
    Some(lanes)
}

/// Runs all engines over packets; how many verdicts were compared.
fn compare(text: &str, lanes: &[Lane], views: &[View<'_>], asked: usize) -> u64 {
    let (mut expected, mut hits) = (Vec::new(), Vec::new());
    let mut verdicts = 0;
    for (at, lane) in lanes.iter().enumerate() {
        let mut differs = None;
        if lane.kind == Kind::Linux {
            for (place, view) in views.iter().enumerate().take(asked) {
                if lane.engine.covers(*view) {
                    verdicts += 1;
                    let matches = expected.binary_search(&(place as u32)).is_ok();
                    if (lane.engine.run(*view) != 0) != matches {
                        differs = Some(place);
                        break;
                    }
                }
            }
        } else {
            lane.engine.select(views, &mut hits);
            verdicts += views.len() as u64;
            if at == 0 {
                expected.clone_from(&hits);
            }
            if hits != expected {
                let has = |hits: &[u32], n: usize| hits.binary_search(&(n as u32)).is_ok();
                differs = (0..views.len()).find(|n| has(&hits, *n) != has(&expected, *n));
            }
        }
        if let Some(place) = differs {
            let (first, view) = (&lanes[0].program, views[place]);
            panic!(
                "{} (optimised: {}) says the opposite of {text:?}, wire length {}, packet \
                 {:02x?}\n{}\n\n{}",
                lane.kind.name(),
                lane.optimized,
                view.wire_len(),
                view.data(),
                trace(first, view),
                trace(&lane.program, view)
            );
        }
    }
    verdicts
}

#[test]
fn engines_agree() {
    let count: usize =
        std::env::var("GANNET_FILTERS").ok().and_then(|n| n.parse().ok()).unwrap_or(40);
    let traces = std::env::var("GANNET_TRACES").unwrap_or_default();
    let traces: Vec<&str> = traces.split(':').filter(|t| !t.is_empty()).collect();
    let mut expressions = Expressions::new(2026);
    let mut skipped = BTreeMap::new();
    let (mut filters, mut verdicts, mut kernel, mut tries) = (0, 0, 0, 0_u64);
    while filters < count {
        tries += 1;
        assert!(tries < 1000 + 100 * count as u64, "hardly any random filter compiles");
        let (link, text) = expressions.filter();
        if link != ETHERNET {
            continue;
        }
        let Some(lanes) = lanes(&text, &mut skipped) else { continue };
        filters += 1;
        kernel += usize::from(lanes.iter().any(|l| l.kind == Kind::Linux));
        // Packets that lead into its depths, cut anywhere.
        let mut prober = Prober::new(tries);
        let packets: Vec<_> = (0..30).map(|_| prober.packet(&lanes[0].program, None)).collect();
        let mut views = Vec::new();
        for (packet, wire, _) in &packets {
            views.push(View::new(packet, *wire));
            views.extend((0..packet.len()).step_by(5).map(|n| View::new(&packet[..n], *wire)));
        }
        verdicts += compare(&text, &lanes, &views, 0);
        for file in &traces {
            verdicts += over(&text, &lanes, file.as_ref());
        }
        if filters % 50 == 0 {
            eprintln!("{filters} filters, {verdicts} verdicts");
        }
    }
    eprintln!("{filters} filters, {kernel} of them in the kernel, too: {verdicts} verdicts agree");
    for (why, times) in skipped {
        eprintln!("skipped {times} times: {why}");
    }
}

fn over(text: &str, lanes: &[Lane], file: &Path) -> u64 {
    let mut verdicts = 0;
    let mut asked = ASKED;
    let mut reader = Reader::open(file).unwrap();
    while let Some(batch) = reader.next_batch().unwrap() {
        let views: Vec<View<'_>> = batch.iter().map(|p| View::new(p.data, p.wire_len)).collect();
        verdicts += compare(text, lanes, &views, asked);
        asked = asked.saturating_sub(views.len());
    }
    verdicts
}
