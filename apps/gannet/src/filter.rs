//! `gannet filter`: writes matching packets to another capture. Its subcommands show the compiled
//! filter, compare all engines, and measure them.

mod bench;
mod compile;
mod protocol;
mod sink;
mod source;
mod verify;
mod write;

pub(crate) use sink::like;

use crate::outcome::Outcome;

/// Write or count the packets that match a filter.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = "Examples:\n  gannet filter 'tcp port 80' trace.pcap -w web.pcap\n  \
                        gannet filter 'udp' day/ -w dns.pcapng.zst\n  \
                        gannet filter -c -v 'ip6' trace.pcap\n  \
                        gannet filter -e 'port 53' -w dns.pcap -e 'port 80' -w web.pcap trace.pcap\n  \
                        gannet filter --split 1 h '' trace.pcap -w hour.pcap.gz")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    write: write::Args,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Compile(compile::Args),
    Verify(verify::Args),
    Bench(bench::Args),
    TestProtocol(protocol::Args),
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    match &args.command {
        Some(Command::Compile(args)) => compile::run(args),
        Some(Command::Verify(args)) => verify::run(args),
        Some(Command::Bench(args)) => bench::run(args),
        Some(Command::TestProtocol(args)) => protocol::run(args),
        None => write::run(&args.write),
    }
}
