//! `gannet filter bench`: the cost of a filter in each engine.

use std::fmt::Write as _;
use std::hint::black_box;
use std::time::Duration;
use std::time::Instant;

use gannet_comparators::Kind;
use gannet_filter::Program;
use gannet_filter::engine::Engine;
use gannet_filter::engine::View;

use super::source::Input;
use super::source::Source;
use crate::out;
use crate::outcome::Outcome;
use crate::terminal::Terminal;

/// Measure a filter: compile time, size, and nanoseconds per packet in each engine.
#[derive(Debug, clap::Args)]
#[command(after_help = "Packets are taken from all over the captures and stay in the processor's \
                        cache; of all rounds the fastest counts, and the engines take turns.\n\n\
                        Examples:\n  gannet filter bench 'tcp port 80' trace.pcap\n  \
                        gannet filter bench --load program.bpf trace.pcap")]
pub(super) struct Args {
    #[command(flatten)]
    input: Input,
    /// Number of packets
    #[arg(long, value_name = "N", default_value_t = 4096, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    packets: u32,
    /// Number of runs of each engine
    #[arg(long, value_name = "N", default_value_t = 25, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rounds: u32,
}

/// Number of bytes stored of each packet: headers only, so that many packets fit into a cache.
const STORED_BYTES: usize = 128;

/// Number of packets in a batch.
const BATCH: usize = 1024;

/// Number of packets for the kernel's test run, each in a separate run.
#[cfg(all(feature = "foreign", target_os = "linux"))]
const KERNEL_PACKETS: usize = 64;

/// Number of runs of each packet in the kernel.
#[cfg(all(feature = "foreign", target_os = "linux"))]
const KERNEL_RUNS: u32 = 2_000;

pub(super) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let terminal = Terminal::new(false);
    let (source, mut stream) = match args.input.open(&terminal) {
        Ok(open) => open,
        Err(outcome) => return Ok(outcome),
    };
    let mut sample = Sample::new(args.packets as usize);
    let mut outcome = Outcome::Done;
    loop {
        match stream.next_batch() {
            Ok(Some(batch)) => {
                for packet in batch.iter() {
                    sample.offer(packet.link_type.0, packet.data, packet.wire_len);
                }
            }
            Ok(None) => break,
            Err(error) => {
                terminal.error(&error);
                outcome = outcome.max(Outcome::of(&error, true));
            }
        }
    }
    let Some(link_type) = sample.link_type else {
        terminal.error(&"the captures contain no packets");
        return Ok(Outcome::NoCapture);
    };
    if sample.others > 0 {
        let others = sample.others;
        terminal.note(&format_args!("{others} packets of other link types are ignored"));
    }
    match table(&source, link_type, &sample, args.rounds) {
        Ok(table) => Ok(outcome.max(out::write(table.as_bytes())?)),
        Err(error) => {
            terminal.error(&error);
            Ok(Outcome::NoCapture)
        }
    }
}

/// A sample over a whole stream of unknown length: every n-th packet, where n is doubled when the
/// sample is full.
struct Sample {
    packets: Vec<(Vec<u8>, u32)>,
    capacity: usize,
    stride: u64,
    seen: u64,
    link_type: Option<u16>,
    others: u64,
}

impl Sample {
    fn new(capacity: usize) -> Self {
        Self { packets: Vec::new(), capacity, stride: 1, seen: 0, link_type: None, others: 0 }
    }

    fn offer(&mut self, link_type: u16, data: &[u8], wire_len: u32) {
        if *self.link_type.get_or_insert(link_type) != link_type {
            self.others += 1;
            return;
        }
        if self.seen.is_multiple_of(self.stride) {
            if self.packets.len() >= 2 * self.capacity {
                let mut at = 0;
                self.packets.retain(|_| {
                    at += 1;
                    at % 2 == 1
                });
                self.stride *= 2;
            }
            if self.seen.is_multiple_of(self.stride) {
                let stored = data.get(..STORED_BYTES).unwrap_or(data);
                self.packets.push((stored.to_vec(), wire_len));
            }
        }
        self.seen += 1;
    }

    fn views(&self) -> Vec<View<'_>> {
        self.packets.iter().take(self.capacity).map(|(d, w)| View::new(d, *w)).collect()
    }
}

/// The measurement of an engine.
struct Measurement {
    kind: Kind,
    what: &'static str,
    compiled: Duration,
    insns: usize,
    bytes: Option<usize>,
    engine: Box<dyn Engine>,
    /// Nanoseconds per packet of each round.
    times: Vec<f64>,
    matches: usize,
}

fn table(source: &Source, link_type: u16, sample: &Sample, rounds: u32) -> Result<String, String> {
    let views = sample.views();
    let started = Instant::now();
    let program = source.optimized(link_type)?;
    let front = started.elapsed();
    let mut measurements = Vec::new();
    let mut missing = Vec::new();
    for kind in Kind::ALL.into_iter().filter(|k| *k != Kind::Linux) {
        prepare(kind, "", &program, &mut measurements, &mut missing);
    }
    let mut theirs = None;
    if let Source::Expression(text, _) = source {
        let started = Instant::now();
        if let Some(program) = libpcap(text, link_type) {
            theirs = Some((started.elapsed(), program.insns().len()));
            prepare(Kind::Libpcap, "its own program", &program, &mut measurements, &mut missing);
        }
    }
    let mut hits = Vec::new();
    for _ in 0..rounds {
        for measurement in &mut measurements {
            let started = Instant::now();
            let mut matches = 0;
            if measurement.kind == Kind::Batch {
                for part in views.chunks(BATCH) {
                    measurement.engine.select(black_box(part), &mut hits);
                    matches += black_box(&hits).len();
                }
            } else {
                for view in &views {
                    matches += usize::from(measurement.engine.run(black_box(*view)) != 0);
                }
            }
            measurement.times.push(started.elapsed().as_secs_f64() * 1e9 / views.len() as f64);
            measurement.matches = matches;
        }
    }
    let mut out = format!(
        "{} packets of link type {link_type}, {rounds} rounds; compiling to {} instructions: {}\n",
        views.len(),
        program.insns().len(),
        micros(front)
    );
    if let Some((time, insns)) = theirs {
        let _ = writeln!(out, "libpcap's own compiler, to {insns} instructions: {}", micros(time));
    }
    let _ = writeln!(
        out,
        "\n{:<8} {:<16} {:>12} {:>6} {:>6} {:>10} {:>10} {:>10} {:>9}",
        "engine", "", "made in", "insns", "bytes", "ns/packet", "median", "matches", "libpcap:"
    );
    let min = |l: &Measurement| l.times.iter().copied().fold(f64::MAX, f64::min);
    let reference = measurements.iter().filter(|l| l.kind == Kind::Libpcap).map(min);
    let reference = reference.fold(f64::MAX, f64::min);
    for measurement in &mut measurements {
        let best = min(measurement);
        measurement.times.sort_unstable_by(f64::total_cmp);
        let median = measurement.times.get(measurement.times.len() / 2).copied().unwrap_or(best);
        let bytes = measurement.bytes.map_or(String::new(), |b| b.to_string());
        let ratio =
            if reference < f64::MAX { format!("{:.2}", reference / best) } else { String::new() };
        let _ = writeln!(
            out,
            "{:<8} {:<16} {:>12} {:>6} {bytes:>6} {best:>10.2} {median:>10.2} {:>10} {ratio:>9}",
            measurement.kind.name(),
            measurement.what,
            micros(measurement.compiled),
            measurement.insns,
            measurement.matches
        );
    }
    match kernel(&program, &views) {
        Ok((time, compiled)) => {
            let ratio = if reference < f64::MAX {
                format!("{:.2}", reference / time)
            } else {
                String::new()
            };
            let _ = writeln!(
                out,
                "{:<8} {:<16} {:>12} {:>6} {:>6} {time:>10.2} {:>10} {:>10} {ratio:>9}",
                "linux",
                "test run, net",
                micros(compiled),
                program.insns().len(),
                "",
                "",
                ""
            );
        }
        Err(error) => missing.push((Kind::Linux, error)),
    }
    for (kind, why) in missing {
        let _ = writeln!(out, "{:<8} skipped: {why}", kind.name());
    }
    Ok(out)
}

fn prepare(
    kind: Kind,
    what: &'static str,
    program: &Program,
    measurements: &mut Vec<Measurement>,
    missing: &mut Vec<(Kind, String)>,
) {
    let started = Instant::now();
    match kind.build(program) {
        Ok(engine) => measurements.push(Measurement {
            kind,
            what,
            compiled: started.elapsed(),
            insns: program.insns().len(),
            bytes: engine.code_bytes(),
            engine,
            times: Vec::new(),
            matches: 0,
        }),
        Err(error) => missing.push((kind, error.to_string())),
    }
}

fn micros(time: Duration) -> String {
    format!("{:.1} µs", time.as_secs_f64() * 1e6)
}

/// The program of libpcap's compiler. Long lists, for which it takes minutes, are left out.
#[cfg(all(feature = "foreign", unix))]
fn libpcap(text: &str, link_type: u16) -> Option<Program> {
    const MAX_TEXT: usize = 4_000;
    let link = gannet_filter::dlt::of_file(link_type);
    let made = || gannet_comparators::libpcap::compile(text, link, 262_144, true).ok();
    (text.len() <= MAX_TEXT).then(made).flatten()
}

#[cfg(not(all(feature = "foreign", unix)))]
fn libpcap(_: &str, _: u16) -> Option<Program> {
    None
}

/// Nanoseconds of a run in the kernel beyond those of a program that only returns, and how long
/// loading took.
#[cfg(all(feature = "foreign", target_os = "linux"))]
fn kernel(program: &Program, views: &[View<'_>]) -> Result<(f64, Duration), String> {
    use gannet_comparators::linux::Timed;
    let started = Instant::now();
    let timed = Timed::new(program).map_err(|e| e.to_string())?;
    let compiled = started.elapsed();
    let empty = Program::from_text("ret #0").map_err(|e| e.to_string())?;
    let empty = Timed::new(&empty).map_err(|e| e.to_string())?;
    let step = (views.len() / KERNEL_PACKETS).max(1);
    let (mut sum, mut count) = (0.0, 0);
    // The kernel takes no frames without a whole Ethernet header.
    for view in views.iter().step_by(step).filter(|v| v.data().len() > 14) {
        let time = |timed: &Timed| -> Result<f64, String> {
            let mut min = u32::MAX;
            for _ in 0..3 {
                min = min.min(timed.run(view.data(), KERNEL_RUNS).map_err(|e| e.to_string())?.1);
            }
            Ok(f64::from(min))
        };
        sum += time(&timed)? - time(&empty)?;
        count += 1;
    }
    if count == 0 {
        return Err("no packets that the kernel would take".to_owned());
    }
    Ok((sum / f64::from(count), compiled))
}

#[cfg(not(all(feature = "foreign", target_os = "linux")))]
fn kernel(_: &Program, _: &[View<'_>]) -> Result<(f64, Duration), String> {
    Err("it is not in this build".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_cover_the_whole_stream() {
        let mut sample = Sample::new(10);
        for n in 0..1000_u32 {
            sample.offer(1, &n.to_be_bytes(), n);
        }
        sample.offer(2, &[], 0);
        let wires: Vec<u32> = sample.views().iter().map(|v| v.wire_len()).collect();
        assert_eq!(wires.len(), 10);
        assert!(wires.windows(2).all(|w| w[1] - w[0] == wires[1]), "{wires:?}");
        assert!(wires[9] > 400, "{wires:?}");
        assert_eq!(sample.others, 1);
    }
}
