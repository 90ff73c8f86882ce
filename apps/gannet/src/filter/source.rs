//! The filter of a command: an expression, or a BPF program from a file.

use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::OnceLock;

use anyhow::Context as _;
use gannet_filter::Dialect;
use gannet_filter::Filter;
use gannet_filter::Options;
use gannet_filter::Program;
use gannet_filter::compile;
use gannet_filter::dlt;
use gannet_filter::engine;
use gannet_filter::engine::Engine;
use gannet_filter::engine::View;

use crate::names::System;

/// Longer programs are no text of a program.
const MAX_TEXT: u64 = 16 << 20;

/// An expression or a program.
#[derive(Clone, Debug)]
pub(super) enum Source {
    Expression(String, Dialect),
    /// For whatever packets there are.
    Program(Program),
}

/// Names as this machine knows them, each looked up once.
pub(super) fn names() -> Arc<System> {
    static NAMES: OnceLock<Arc<System>> = OnceLock::new();
    Arc::clone(NAMES.get_or_init(|| Arc::new(System::new())))
}

impl Source {
    /// Of the arguments of a command: where a program is loaded there is no expression, and what
    /// is in its place is the first file.
    pub(super) fn of(
        first: Option<&Path>,
        files: &[PathBuf],
        load: Option<&Path>,
        dialect: Dialect,
    ) -> anyhow::Result<(Self, Vec<PathBuf>)> {
        let Some(program) = load else {
            let text = first.unwrap_or(Path::new("")).to_str();
            let text = text.context("the filter is no valid UTF-8")?;
            return Ok((Self::Expression(text.to_owned(), dialect), files.to_vec()));
        };
        let first = first.map(Path::to_owned);
        let files = first.into_iter().chain(files.iter().cloned()).collect();
        Ok((Self::Program(load_program(program)?), files))
    }

    /// The program for a link type numbered as in capture files, with what the interpreter, which
    /// is the measure of all, takes: every test as it was written.
    pub(super) fn plain(&self, link_type: u16) -> Result<Program, String> {
        self.compiled(link_type, false)
    }

    /// The program that engines would run. Where the optimizer finds that nothing can match, one
    /// that says so.
    pub(super) fn optimized(&self, link_type: u16) -> Result<Program, String> {
        match self.compiled(link_type, true) {
            Err(_) if self.compiled(link_type, false).is_ok() => {
                Program::from_text("ret #0").map_err(|e| e.to_string())
            }
            result => result,
        }
    }

    fn compiled(&self, link_type: u16, optimize: bool) -> Result<Program, String> {
        match self {
            Self::Program(program) => Ok(program.clone()),
            Self::Expression(text, dialect) => {
                let dialect = *dialect;
                let options = Options { optimize, dialect, ..Options::default() };
                compile(text, dlt::of_file(link_type), &options, &*names())
                    .map(|c| c.program().clone())
                    .map_err(|e| e.to_string())
            }
        }
    }
}

/// Reads a program and holds it to the kernel's rules.
fn load_program(path: &Path) -> anyhow::Result<Program> {
    let name = || path.display().to_string();
    let size = fs::metadata(path).with_context(name)?.len();
    anyhow::ensure!(size <= MAX_TEXT, "{}: too large for a program", name());
    let text = fs::read_to_string(path).with_context(name)?;
    let program = Program::from_text(&text).with_context(name)?;
    engine::foreign::check(&program).with_context(name)?;
    Ok(program)
}

/// What picks packets, for any link type.
pub(super) enum Picker {
    Filter(Filter),
    Program(Box<dyn Engine>),
}

impl Picker {
    pub(super) fn new(source: &Source) -> Result<Self, gannet_filter::Error> {
        Ok(match source {
            Source::Expression(text, dialect) => {
                let options = Options { dialect: *dialect, ..Options::default() };
                Self::Filter(Filter::with(text, options, names())?)
            }
            Source::Program(program) => Self::Program(engine::best(program)),
        })
    }

    /// Replaces `hits` by the places of what matches among packets of one link type.
    pub(super) fn select(&self, link_type: u16, packets: &[View<'_>], hits: &mut Vec<u32>) {
        match self {
            Self::Filter(filter) => filter.select(link_type, packets, hits),
            Self::Program(engine) => engine.select(packets, hits),
        }
    }

    /// The filter, where there is one and it asks for something.
    pub(super) fn filter(&self) -> Option<&Filter> {
        match self {
            Self::Filter(filter) if !filter.is_empty() => Some(filter),
            _ => None,
        }
    }
}
