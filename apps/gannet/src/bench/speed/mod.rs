//! The cost of each stage of a packet, and of all of them together.
//!
//! [`traffic`] makes captures in a folder of its own, [`stages`] lists what is measured on them, [`measure`] runs
//! a stage (once to warm up, while its allocations are counted, then several times), and [`report`] and [`plot`]
//! show the [`Figures`]. [`against`] has others read the same traces.
//!
//! A run takes as long as it must to be measured well: short ones are repeated. Time is CPU time of the process
//! over all its threads; with a packet is meant one that the stage reads, whatever it does with it.

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
    /// Only stages whose name has this in it, like reading or protocol/dns; may be given again
    #[arg(long, value_name = "TEXT")]
    only: Vec<String>,
    /// Times each stage is measured; the median counts
    #[arg(long, value_name = "N", default_value_t = 7)]
    runs: usize,
    /// Thousands of conversations of generated traffic
    #[arg(long, value_name = "N", default_value_t = 4)]
    size: usize,
    /// Have dnsjit, tcpdump and tshark read the same traces, where they are installed
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
    let wanted =
        |name: &str| args.only.is_empty() || args.only.iter().any(|o| name.contains(o.as_str()));
    let mut stages = stages::all(&traffic, &args.traces);
    stages.retain(|stage| wanted(&stage.name()));
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
