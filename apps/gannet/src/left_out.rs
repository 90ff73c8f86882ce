//! Commands and options that this build does not include: they report the cargo feature that they need.

#[cfg(not(all(feature = "lua", feature = "sql")))]
use std::ffi::OsString;
use std::fmt::Display;

use crate::outcome::Outcome;
use crate::terminal::Terminal;

/// The arguments of a command that this build does not include: any are accepted.
#[cfg(not(all(feature = "lua", feature = "sql")))]
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Args {
    #[arg(value_name = "ARG", trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _any: Vec<OsString>,
}

/// Reports that this build does not include `what`, and how to build gannet with it.
pub(crate) fn report(what: &dyn Display, feature: &str) -> Outcome {
    let terminal = Terminal::new(false);
    terminal.error(&format_args!("{what} is not in this build"));
    let full = if feature == "sql" { "" } else { " (or --features full, everything but SQL)" };
    terminal.hint(&format_args!(
        "add it with: cargo install --path apps/gannet --features {feature}{full}"
    ));
    Outcome::NoCapture
}
