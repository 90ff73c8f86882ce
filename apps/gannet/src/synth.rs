//! `gannet synth`: captures made from nothing, for trying and testing.

use std::path::PathBuf;

use clap::Subcommand;
use gannet_capture::Precision;
use gannet_capture::WriteOptions;
use gannet_capture::Writer;

use crate::outcome::Outcome;

/// Make traffic: the same bytes on every machine.
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Some seconds of one host's life: DNS, HTTP, mail, NTP, a refused connection, a ping
    Sample {
        /// Where to write; the suffix tells the format (.pcap, .pcapng) and compression (.gz,
        /// .zst, .xz, .lz4); - is standard output
        #[arg(value_name = "OUT")]
        file: PathBuf,
    },
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let What::Sample { file } = &args.what;
    // Microseconds, so that every tool reads it.
    let options = WriteOptions { precision: Some(Precision::Micros), ..WriteOptions::default() };
    let mut writer = Writer::create(file, options)?;
    gannet_synth::sample().write(&mut writer)?;
    writer.finish()?;
    Ok(Outcome::Done)
}
