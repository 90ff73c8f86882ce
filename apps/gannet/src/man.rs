//! `gannet man`: the manual's pages.

use anyhow::Context;

use crate::cli;
use crate::out;
use crate::outcome::Outcome;

/// Print a man page.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  gannet man > gannet.1\n  gannet man analyze | man -l -")]
pub(crate) struct Args {
    /// The command to print it of; the page of gannet itself without
    #[arg(value_name = "COMMAND")]
    of: Option<String>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let mut all = cli::declaration();
    all.build();
    let page = match &args.of {
        None => all,
        Some(name) => all
            .find_subcommand(name)
            .cloned()
            .with_context(|| format!("there is no command '{name}'"))?,
    };
    let mut text = Vec::new();
    clap_mangen::Man::new(page).render(&mut text)?;
    out::write(&text)
}
