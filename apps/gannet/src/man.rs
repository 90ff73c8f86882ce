//! `gannet man`: man pages.

use std::fs;
use std::path::Path;
use std::path::PathBuf;

use anyhow::Context;

use crate::cli;
use crate::out;
use crate::outcome::Outcome;
use crate::terminal::Terminal;

/// Print a man page.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  gannet man analyze | man -l -\n  \
                        gannet man filter compile | man -l -\n  \
                        gannet man --out /usr/local/share/man/man1")]
pub(crate) struct Args {
    /// The command whose page is printed, such as `filter compile`; without one, the page of gannet itself
    #[arg(value_name = "COMMAND", conflicts_with = "out")]
    of: Vec<String>,
    /// Write the pages of gannet and all its commands to this folder
    #[arg(short, long, value_name = "DIR")]
    out: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let mut all = cli::declaration().disable_help_subcommand(true);
    all.build();
    if let Some(folder) = &args.out {
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        write_pages(all, folder)?;
        return Ok(Outcome::Done);
    }
    let mut page = all;
    for name in &args.of {
        let Some(found) = page.find_subcommand(name).cloned() else {
            let names = args.of.join(" ");
            Terminal::new(false).error(&format_args!("no command is named '{names}'"));
            return Ok(Outcome::NoCapture);
        };
        page = found;
    }
    out::write(&render(page)?)
}

fn render(command: clap::Command) -> anyhow::Result<Vec<u8>> {
    let mut text = Vec::new();
    clap_mangen::Man::new(command).render(&mut text)?;
    Ok(text)
}

/// Writes the page of a command and of all its subcommands, under the names by which other pages refer to them.
fn write_pages(command: clap::Command, folder: &Path) -> anyhow::Result<()> {
    for below in command.get_subcommands().filter(|c| !c.is_hide_set()) {
        write_pages(below.clone(), folder)?;
    }
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    let path = folder.join(format!("{name}.1"));
    fs::write(&path, render(command)?).with_context(|| path.display().to_string())
}
