//! `gannet script`: tools for authors of Zeek scripts.

mod check;
mod fmt;
mod ir;
mod lsp;

use std::path::Path;

use gannet_script::tools::session::Settings;
use gannet_script::tools::warn;

use crate::outcome::Outcome;

/// Check, format and inspect Zeek scripts
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  gannet script check my.zeek\n  \
                        gannet script check --diagnostics rich --warnings all my.zeek\n  \
                        gannet script fmt --write my.zeek")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Check(check::Args),
    Fmt(fmt::Args),
    Ir(ir::Args),
    Lsp(lsp::Args),
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    match &args.command {
        Command::Check(args) => check::run(args),
        Command::Fmt(args) => fmt::run(args),
        Command::Ir(args) => ir::run(args),
        Command::Lsp(args) => lsp::run(args),
    }
}

/// The locations of scripts and of the files that they load.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Load {
    /// Do not load Zeek's default scripts, as -b of zeek
    #[arg(short, long)]
    bare: bool,
    /// The folder of Zeek's scripts; without it ZEEKPATH is searched
    #[arg(long, value_name = "DIR")]
    zeek_scripts: Option<String>,
}

impl Load {
    /// Settings to read `files` with. Existing files are not searched for in ZEEKPATH.
    fn settings(&self, files: &[String]) -> Settings {
        let files = files.iter().map(|file| without_search(file)).collect();
        Settings {
            files,
            bare: self.bare,
            scripts: self.zeek_scripts.clone(),
            warnings: warn::Level::None,
            ..Settings::default()
        }
    }
}

/// The path of a script, with `./` before an existing file of this folder: such a path is not searched for in ZEEKPATH.
fn without_search(file: &str) -> String {
    let relative = !Path::new(file).is_absolute() && !file.starts_with('.') && file != "-";
    if relative && Path::new(file).exists() { format!("./{file}") } else { file.to_owned() }
}
