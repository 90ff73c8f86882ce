//! `gannet run`: packet processing in Lua.

use std::ffi::OsString;
use std::path::PathBuf;

use gannet_lua::Error;
use gannet_lua::Options;

use crate::out;
use crate::outcome::Outcome;
use crate::terminal::Terminal;

/// Run a Lua script over captures.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  gannet run top-names.lua day.pcap\n  \
                        gannet run --sandbox script-of-somebody.lua day.pcap")]
pub(crate) struct Args {
    /// Without io, os, ffi and debug: for scripts that are not trusted
    #[arg(long)]
    sandbox: bool,
    /// Print the reference of the gannet module, as Markdown
    #[arg(long)]
    manual: bool,
    /// The script; - is standard input
    #[arg(value_name = "SCRIPT", required_unless_present = "manual")]
    script: Option<PathBuf>,
    /// For the script: `arg[2]` and on
    #[arg(value_name = "ARG", trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let Some(script) = args.script.as_ref().filter(|_| !args.manual) else {
        return out::write(gannet_lua::manual().as_bytes());
    };
    let options = Options { sandbox: args.sandbox, ..Options::default() };
    match gannet_lua::run(script, &args.arguments, options) {
        Ok(()) => Ok(Outcome::Done),
        Err(error) => {
            Terminal::new(false).error(&error);
            Ok(match error {
                Error::Run(_) => Outcome::Failed,
                _ => Outcome::NoCapture,
            })
        }
    }
}
