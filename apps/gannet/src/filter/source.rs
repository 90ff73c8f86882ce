//! The filter of a command: an expression, or a BPF program from a file.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::OnceLock;

use anyhow::Context as _;
use gannet_capture::Stream;
use gannet_filter::Dialect;
use gannet_filter::Filter;
use gannet_filter::Options;
use gannet_filter::Program;
use gannet_filter::compile;
use gannet_filter::dlt;
use gannet_filter::engine;
use gannet_filter::engine::Engine;
use gannet_filter::engine::View;

use super::compile::DialectName;
use crate::names::System;
use crate::outcome::Outcome;
use crate::terminal::Terminal;

/// Maximum size in bytes of the text of a program.
const MAX_TEXT: u64 = 16 << 20;

/// An expression or a program.
#[derive(Clone, Debug)]
pub(super) enum Source {
    Expression(String, Dialect),
    /// A program for packets of any link type.
    Program(Program),
}

/// An expression or a program, and the captures that it runs over.
#[derive(Debug, clap::Args)]
pub(super) struct Input {
    /// The expression
    #[arg(value_name = "FILTER", required_unless_present = "load")]
    filter: Option<OsString>,
    /// Captures and folders of captures, as one stream; - is standard input
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// A program of classic BPF instead, as tcpdump -d, -dd or -ddd prints it
    #[arg(long, value_name = "FILE")]
    load: Option<PathBuf>,
    /// Scope of vlan, mpls and other encapsulating headers in the expression
    #[arg(long, value_enum, default_value_t)]
    dialect: DialectName,
}

/// The error where no file is named; the first argument may be the file, in the place of the filter.
pub(super) fn no_capture(first: Option<&Path>) -> String {
    match first.filter(|first| first.is_file()) {
        Some(file) => {
            let file = file.display();
            format!(
                "{file} is where the filter is expected; the filter is the first argument ('' selects all packets)"
            )
        }
        None => "no capture is given; give a file, or - for standard input".to_owned(),
    }
}

impl Input {
    /// Opens the filter and the captures. Errors are reported, and their outcome is returned.
    pub(super) fn open(&self, terminal: &Terminal) -> Result<(Source, Stream), Outcome> {
        let (first, load) = (self.filter.as_deref().map(Path::new), self.load.as_deref());
        let (source, files) = match Source::of(first, &self.files, load, self.dialect.into()) {
            Ok((_, files)) if files.is_empty() => {
                terminal.error(&no_capture(first));
                return Err(Outcome::NoCapture);
            }
            Ok(found) => found,
            Err(error) => {
                terminal.error(&format_args!("{error:#}"));
                return Err(Outcome::NoCapture);
            }
        };
        match Stream::open(&files, gannet_capture::Options::default()) {
            Ok(stream) => Ok((source, stream)),
            Err(error) => {
                terminal.error(&error);
                Err(Outcome::of(&error, false))
            }
        }
    }
}

/// Names that this machine resolves, each once.
pub(super) fn names() -> Arc<System> {
    static NAMES: OnceLock<Arc<System>> = OnceLock::new();
    Arc::clone(NAMES.get_or_init(|| Arc::new(System::new())))
}

impl Source {
    /// Separates the arguments of a command: with a loaded program there is no expression, and the
    /// first argument is a file.
    pub(super) fn of(
        first: Option<&Path>,
        files: &[PathBuf],
        load: Option<&Path>,
        dialect: Dialect,
    ) -> anyhow::Result<(Self, Vec<PathBuf>)> {
        let Some(program) = load else {
            let text = first.unwrap_or(Path::new("")).to_str();
            let text = text.context("the filter is not valid UTF-8")?;
            return Ok((Self::Expression(text.to_owned(), dialect), files.to_vec()));
        };
        let first = first.map(Path::to_owned);
        let files = first.into_iter().chain(files.iter().cloned()).collect();
        Ok((Self::Program(load_program(program)?), files))
    }

    /// The unoptimised program for a link type, numbered as in capture files: the reference for all
    /// engines.
    pub(super) fn plain(&self, link_type: u16) -> Result<Program, String> {
        self.compiled(link_type, false)
    }

    /// The optimised program. If the optimiser finds that nothing can match, it rejects all packets.
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

/// Reads a program and checks it with the kernel's rules.
fn load_program(path: &Path) -> anyhow::Result<Program> {
    let name = || path.display().to_string();
    let size = fs::metadata(path).with_context(name)?.len();
    anyhow::ensure!(size <= MAX_TEXT, "{}: too large for a program", name());
    let text = fs::read_to_string(path).with_context(name)?;
    let program = Program::from_text(&text).with_context(name)?;
    engine::foreign::check(&program).with_context(name)?;
    Ok(program)
}

/// Selects packets of any link type.
pub(super) enum PacketPicker {
    Filter(Filter),
    Program(Box<dyn Engine>),
}

impl PacketPicker {
    pub(super) fn new(source: &Source) -> Result<Self, gannet_filter::Error> {
        Ok(match source {
            Source::Expression(text, dialect) => {
                let options = Options { dialect: *dialect, ..Options::default() };
                Self::Filter(Filter::with(text, options, names())?)
            }
            Source::Program(program) => Self::Program(engine::best(program)),
        })
    }

    /// Replaces `hits` by the indices of matching packets, which all have one link type.
    pub(super) fn select(&self, link_type: u16, packets: &[View<'_>], hits: &mut Vec<u32>) {
        match self {
            Self::Filter(filter) => filter.select(link_type, packets, hits),
            Self::Program(engine) => engine.select(packets, hits),
        }
    }

    /// The filter, if there is one and it is not empty.
    pub(super) fn filter(&self) -> Option<&Filter> {
        match self {
            Self::Filter(filter) if !filter.is_empty() => Some(filter),
            _ => None,
        }
    }
}
