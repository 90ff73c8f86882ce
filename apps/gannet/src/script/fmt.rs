//! `gannet script fmt`: formats scripts in the style of Zeek's own scripts.

use std::fs;
use std::io::Read as _;
use std::path::Path;

use anyhow::Context as _;
use gannet_capture::NewFile;
use gannet_script::tools::format;

use crate::out;
use crate::outcome::Outcome;
use crate::terminal::Terminal;

/// Format scripts
///
/// Sets indentation, blanks, and the lines of braces and statements in the style of Zeek's own
/// scripts. Comments, line breaks within statements and aligned columns stay; tokens never change.
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit codes:\n  0  done; with --check: all files are formatted\n  \
                        1  with --check: a file is not formatted or not a script")]
pub(crate) struct Args {
    /// Scripts; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,
    /// Only name the files that are not formatted
    #[arg(short, long)]
    check: bool,
    /// Change the files instead of writing to standard output
    #[arg(short, long, conflicts_with = "check")]
    write: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let mut outcome = Outcome::Done;
    for file in &args.files {
        let source = read(file)?;
        let text = match format::format(&source) {
            Ok(text) => text,
            Err(wrong) => {
                let line = wrong.line;
                Terminal::new(false).error(&format_args!("{file}, line {line}: {}", wrong.message));
                outcome = Outcome::Code(1);
                continue;
            }
        };
        if args.check {
            if text != source {
                out::write(format!("{file}\n").as_bytes())?;
                outcome = Outcome::Code(1);
            }
        } else if args.write && file != "-" {
            if text != source {
                // The file is replaced once the new one is complete, so that a full disk loses nothing.
                NewFile::write(Path::new(file), &text).with_context(|| file.to_owned())?;
            }
        } else {
            out::write(&text)?;
        }
    }
    Ok(outcome)
}

fn read(file: &str) -> anyhow::Result<Vec<u8>> {
    let mut text = Vec::new();
    if file == "-" {
        std::io::stdin().lock().read_to_end(&mut text).context("standard input")?;
    } else {
        text = fs::read(file).with_context(|| file.to_owned())?;
    }
    Ok(text)
}
