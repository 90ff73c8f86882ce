//! Prints the summary of captures, as a table or with `--json`: `info [--json] FILE..`.
#![allow(clippy::print_stdout)]

use gannet_capture::Error;
use gannet_capture::Info;

fn main() -> Result<(), Error> {
    let (flags, files): (Vec<_>, Vec<_>) =
        std::env::args().skip(1).partition(|a| a.starts_with("--"));
    for file in files {
        let info = Info::open(&file)?;
        if flags.is_empty() { println!("{info}") } else { println!("{}", info.json()) }
    }
    Ok(())
}
