//! `gannet script ir`: the output of each stage of the compiler for a script.

use std::fs;

use anyhow::Context as _;
use anyhow::anyhow;
use gannet_script::tools::session;
use gannet_script::tools::stages;

use super::Load;
use crate::out;
use crate::outcome::Outcome;
use crate::terminal::Terminal;

/// Print the output of a stage of the compiler for a script
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The script
    #[arg(value_name = "FILE")]
    file: String,
    #[command(flatten)]
    load: Load,
    /// The stage
    #[arg(short, long, value_name = "STAGE", default_value = "code")]
    stage: Stage,
}

/// A stage of the compiler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Stage {
    /// Tokens, comments and directives
    Tokens,
    /// Statements and expressions, names resolved
    Ast,
    /// Names, and each expression with its type
    Types,
    /// The interpreter's instructions
    Code,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    if args.stage == Stage::Tokens {
        let source = fs::read(&args.file).with_context(|| args.file.clone())?;
        return out::write(stages::tokens(&source).as_bytes());
    }
    let settings = args.load.settings(std::slice::from_ref(&args.file));
    let stage = args.stage;
    let work = move || {
        let mut session = session::read(&settings);
        let text = match stage {
            Stage::Ast => stages::ast(&session),
            Stage::Types => stages::types(&session),
            Stage::Tokens | Stage::Code => stages::code(&mut session),
        };
        let lines: Vec<String> =
            session.lines.iter().filter_map(|finding| finding.zeek.clone()).collect();
        (text, lines, session.end.is_err())
    };
    let (text, lines, failed) =
        session::on_large_stack(work).ok_or_else(|| anyhow!("the script could not be read"))?;
    for line in lines {
        Terminal::new(false).print_lines(&line);
    }
    out::write(text.as_bytes())?;
    Ok(if failed { Outcome::Code(1) } else { Outcome::Done })
}
