//! The cost of each stage of the analysis of a packet, and of all stages together.
//!
//! [`traffic`] generates captures in a temporary folder, [`stages`] lists the stages measured on them, [`measure`] runs
//! a stage (once to warm up, while its allocations are counted, then several times), and [`report`] and [`plot`]
//! show the [`Figures`]. [`against`] runs other programs over the same traces.
//!
//! Short runs are repeated until they are long enough to be measured. Time is CPU time of all threads of the process.
//! Packets are those that a stage reads, whatever it does with them.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Context;
use gannet_capture::NewFile;

mod against;
mod allocations;
mod json;
mod measure;
mod plot;
mod report;
mod stages;
mod traffic;

pub(super) use self::allocations::allocations;
use self::measure::Figures;
use crate::outcome::Outcome;
use crate::terminal::Terminal;

/// What to measure.
#[derive(Debug, clap::Args)]
#[group(id = "speed")]
pub(crate) struct Args {
    /// Captures to measure besides generated traffic
    #[arg(value_name = "TRACE")]
    traces: Vec<PathBuf>,
    /// Only stages whose name contains this, like reading or protocol/dns; may be given several times
    #[arg(long, value_name = "TEXT")]
    only: Vec<String>,
    /// Number of measurements of each stage; the median counts
    #[arg(long, value_name = "N", default_value_t = 7)]
    runs: usize,
    /// Thousands of conversations of generated traffic
    #[arg(long, value_name = "N", default_value_t = 4)]
    size: usize,
    /// Also run dnsjit, tcpdump and tshark over the same traces, where they are installed
    #[arg(long)]
    against: bool,
    /// Write all figures into this file as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Draw them into this file as SVG
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let wrong = |text: String| {
        Terminal::new(false).error(&text);
        Ok(Outcome::NoCapture)
    };
    if let Some(trace) = args.traces.iter().find(|trace| !trace.is_file()) {
        return wrong(format!("{}: no such trace", trace.display()));
    }
    let traffic = traffic::Traffic::make(args.size.max(1) * 1000)?;
    let is_selected =
        |name: &str| args.only.is_empty() || args.only.iter().any(|o| name.contains(o.as_str()));
    let mut stages = stages::all(&traffic, &args.traces);
    stages.retain(|stage| is_selected(&stage.name()));
    if stages.is_empty() {
        let names = args.only.join("' or '");
        return wrong(format!("--only: no stage has '{names}' in its name"));
    }
    let mut out = std::io::stdout().lock();
    let mut all = Vec::new();
    report::head(&mut out)?;
    for mut stage in stages {
        let figures = measure::measure(&mut stage, args.runs)?;
        report::line(&mut out, &figures, all.last())?;
        all.push(figures);
    }
    let mut others = Vec::new();
    if args.against {
        let own = [traffic.mixed.clone(), traffic.dns.clone()];
        let traces = if args.traces.is_empty() { &own[..] } else { &args.traces };
        others = against::run(&mut out, traces, traffic.folder(), args.runs)?;
    }
    out.flush()?;
    let write = |path: &Option<PathBuf>, text: String| match path {
        Some(path) => NewFile::write(path, text.as_bytes())
            .with_context(|| format!("cannot write {}", path.display())),
        None => Ok(()),
    };
    write(&args.json, json::render(&all, &others))?;
    write(&args.plot, plot::draw(&all))?;
    Ok(Outcome::Done)
}
