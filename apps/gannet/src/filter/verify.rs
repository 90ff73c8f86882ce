//! `gannet filter verify`: runs every engine on every packet and reports disagreements.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;

use anyhow::Context as _;
use gannet_capture::Packet;
use gannet_comparators::Kind;
use gannet_filter::Program;
use gannet_filter::engine::Engine;
use gannet_filter::engine::View;
use gannet_filter::engine::trace;

use super::source::Input;
use super::source::Source;
use super::write::runs;
use crate::out;
use crate::outcome::Outcome;
use crate::stop::Stop;
use crate::terminal::Terminal;

/// Run every engine on every packet, optimised and not, and report where they disagree.
#[derive(Debug, clap::Args)]
#[command(after_help = "The reference is the interpreter with the unoptimised program. Where an \
                        engine comes to another verdict, the packet's number and what both \
                        programs did are printed, and the exit code is 1.\n\n\
                        Examples:\n  gannet filter verify 'tcp port 80' trace.pcap\n  \
                        gannet filter verify --libpcap_programs '1/2=1/3&&1>4/5&&1>6/7' trace.pcap\n  \
                        gannet filter verify --load program.bpf trace.pcap")]
pub(super) struct Args {
    #[command(flatten)]
    input: Input,
    /// Also compare with the programs of libpcap's compiler
    #[arg(long, conflicts_with = "load")]
    libpcap_programs: bool,
    /// Stop after this many packets
    #[arg(long, value_name = "N")]
    packets: Option<u64>,
}

/// A program in an engine.
struct Runner {
    kind: Kind,
    what: &'static str,
    program: Arc<Program>,
    engine: Box<dyn Engine>,
    packets: u64,
    matches: u64,
}

/// All engines for packets of a link type; the first is the reference.
struct Suite {
    runners: Vec<Runner>,
    /// Missing engines, with the reason.
    missing: Vec<(Kind, &'static str, String)>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let terminal = Terminal::new(false);
    let stop = Stop::on_signals().context("signals")?;
    let (source, mut stream) = match args.input.open(&terminal) {
        Ok(open) => open,
        Err(outcome) => return Ok(outcome),
    };
    let mut suites: HashMap<u16, Result<Suite, String>> = HashMap::new();
    let mut outcome = Outcome::Done;
    let limit = args.packets.unwrap_or(u64::MAX - 1);
    while stop.requested().is_none() {
        match stream.next_batch() {
            Ok(Some(batch)) => {
                for (link_type, from, mut views) in runs(&batch) {
                    let first = batch.get(from).map_or(0, |p| p.number);
                    views.truncate(usize::try_from((limit + 1).saturating_sub(first)).unwrap_or(0));
                    let suite = suites
                        .entry(link_type)
                        .or_insert_with(|| Suite::new(&source, link_type, args.libpcap_programs));
                    if let Ok(suite) = suite
                        && let Some((position, runner)) = suite.packets(&views)
                        && let Some(packet) = batch.get(from + position)
                    {
                        out::write(suite.disagreement(runner, &packet).as_bytes())?;
                        let number = packet.number;
                        terminal.error(&format_args!("engines disagree on packet {number}"));
                        return Ok(Outcome::Failed);
                    }
                }
                if stream.packets() >= limit {
                    break;
                }
            }
            Ok(None) => break,
            Err(error) => {
                terminal.error(&error);
                outcome = outcome.max(Outcome::of(&error, true));
            }
        }
    }
    let mut types: Vec<_> = suites.into_iter().collect();
    types.sort_unstable_by_key(|(link_type, _)| *link_type);
    let mut report = String::new();
    for (link_type, suite) in &types {
        match suite {
            Ok(suite) => suite.write_summary(*link_type, &mut report),
            Err(error) => {
                terminal.warning(&format_args!("packets of link type {link_type}: {error}"));
            }
        }
    }
    let all_refused = types.iter().all(|(_, suite)| suite.is_err());
    if all_refused && !types.is_empty() {
        outcome = outcome.max(Outcome::NoCapture);
    }
    Ok(stop.requested().unwrap_or(outcome.max(out::write(report.as_bytes())?)))
}

impl Suite {
    fn new(source: &Source, link_type: u16, libpcap_programs: bool) -> Result<Self, String> {
        let plain = Arc::new(source.plain(link_type)?);
        let mut programs = vec![("as written", plain)];
        if let Source::Expression(text, _) = source {
            programs.push(("optimised", Arc::new(source.optimized(link_type)?)));
            if libpcap_programs {
                for (what, optimize) in [("libpcap's", false), ("libpcap's, optimised", true)] {
                    let program = libpcap(text, link_type, optimize)?;
                    programs.push((what, Arc::new(program)));
                }
            }
        }
        let mut suite = Self { runners: Vec::new(), missing: Vec::new() };
        for (what, program) in programs {
            for kind in Kind::ALL {
                match kind.build(&program) {
                    Ok(engine) => suite.runners.push(Runner {
                        kind,
                        what,
                        program: Arc::clone(&program),
                        engine,
                        packets: 0,
                        matches: 0,
                    }),
                    Err(error) => suite.missing.push((kind, what, error.to_string())),
                }
            }
        }
        Ok(suite)
    }

    /// Runs all engines; returns the index of the first packet on which one disagrees, and the index of that engine.
    fn packets(&mut self, views: &[View<'_>]) -> Option<(usize, usize)> {
        let mut first: Option<(usize, usize)> = None;
        let mut expected = Vec::new();
        let mut hits = Vec::new();
        for (at, runner) in self.runners.iter_mut().enumerate() {
            let covered = |v: &View<'_>| runner.engine.covers(*v);
            let all = runner.kind != Kind::Linux;
            runner.engine.select(views, &mut hits);
            if at == 0 {
                expected.clone_from(&hits);
            }
            runner.packets +=
                if all { views.len() } else { views.iter().filter(|v| covered(v)).count() } as u64;
            runner.matches += hits.len() as u64;
            let differ = |(position, view): (usize, &View<'_>)| {
                let matches = |hits: &[u32]| hits.binary_search(&(position as u32)).is_ok();
                let same = matches(&hits) == matches(&expected);
                (!same && (all || covered(view))).then_some((position, at))
            };
            if hits != expected {
                let here = views.iter().enumerate().find_map(differ);
                first = [first, here].into_iter().flatten().min();
            }
        }
        first
    }

    /// The report of a packet on which an engine disagrees with the others.
    fn disagreement(&self, at: usize, packet: &Packet<'_>) -> String {
        let view = View::new(packet.data, packet.wire_len);
        let (measure, other) = (&self.runners[0], &self.runners[at]);
        let right = measure.engine.run(view);
        let verdict = u32::from(right == 0);
        let says = |v: u32| if v == 0 { "rejects" } else { "accepts" };
        let mut report = format!(
            "packet {}, link type {}, {} bytes of {}:\n",
            packet.number,
            packet.link_type.0,
            packet.data.len(),
            packet.wire_len
        );
        for (line, bytes) in packet.data.chunks(16).enumerate().take(64) {
            let hex: Vec<String> = bytes.iter().map(|b| format!("{b:02x}")).collect();
            let _ = writeln!(report, "  {:04x}  {}", 16 * line, hex.join(" "));
        }
        for (runner, verdict) in [(measure, right), (other, verdict)] {
            let (kind, what) = (runner.kind.name(), runner.what);
            let _ = writeln!(report, "\n{kind} {} it, with the program {what}:", says(verdict));
            for line in trace(&runner.program, view).to_string().lines() {
                let _ = writeln!(report, "  {line}");
            }
        }
        if (trace(&other.program, view).verdict != 0) != (verdict != 0) {
            let _ = writeln!(
                report,
                "\nThe last are the steps of the interpreter with that program: {} itself does \
                 not tell its steps.",
                other.kind.name()
            );
        }
        report
    }

    fn write_summary(&self, link_type: u16, report: &mut String) {
        let _ = writeln!(report, "link type {link_type}:");
        let _ = writeln!(
            report,
            "  {:<8} {:<20} {:>12} {:>12}",
            "engine", "program", "packets", "match"
        );
        for r in &self.runners {
            let (kind, what) = (r.kind.name(), r.what);
            let _ = writeln!(report, "  {kind:<8} {what:<20} {:>12} {:>12}", r.packets, r.matches);
        }
        for (kind, what, why) in &self.missing {
            let _ = writeln!(report, "  {:<8} {what:<20} skipped: {why}", kind.name());
        }
    }
}

/// The program of libpcap's compiler for an expression.
#[cfg(all(feature = "foreign", unix))]
fn libpcap(text: &str, link_type: u16, optimize: bool) -> Result<Program, String> {
    let link = gannet_filter::dlt::of_file(link_type);
    match gannet_comparators::libpcap::compile(text, link, 262_144, optimize) {
        Ok(program) => Ok(program),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(not(all(feature = "foreign", unix)))]
fn libpcap(_: &str, _: u16, _: bool) -> Result<Program, String> {
    Err("this build lacks libpcap".to_owned())
}
