//! `gannet zeek`: Zeek scripts with Zeek's own command line. A link named `zeek` to the command is the same.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

/// Run Zeek scripts, with the options of the command zeek
///
/// Takes what zeek takes (-h lists it). Zeek's own scripts are found through ZEEKPATH or
/// --zeek-scripts; without them -b runs scripts that need only the language. A link named zeek to
/// this command is the same.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true, disable_version_flag = true)]
pub(crate) struct Args {
    /// Options and files of the command zeek
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    arguments: Vec<OsString>,
}

/// The arguments of the command zeek, where the process was started as `gannet zeek …` or as `zeek …`.
pub(crate) fn arguments(args: &[OsString]) -> Option<Vec<OsString>> {
    let program = args.first().and_then(|path| Path::new(path).file_name());
    if program.is_some_and(|name| name == "zeek") {
        return Some(args[1..].to_vec());
    }
    args.get(1).filter(|command| *command == "zeek").map(|_| args[2..].to_vec())
}

/// Runs the command.
pub(crate) fn run(arguments: Vec<OsString>) -> ExitCode {
    gannet_script::command::main(arguments)
}

impl Args {
    /// The arguments as they were given.
    pub(crate) fn into_arguments(self) -> Vec<OsString> {
        self.arguments
    }
}
