//! `gannet completions`: completion scripts for shells.

use clap_complete::Shell;

use crate::cli;
use crate::out;
use crate::outcome::Outcome;

/// Print shell completions.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
                        gannet completions bash > /etc/bash_completion.d/gannet\n  \
                        gannet completions fish > ~/.config/fish/completions/gannet.fish")]
pub(crate) struct Args {
    /// The shell to print them for
    shell: Shell,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut cli::declaration(), "gannet", &mut text);
    out::write(&text)
}
