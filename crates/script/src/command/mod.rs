//! The command `zeek`: Zeek's options, search path and order of files.

mod options;

use std::cell::RefCell;
use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;
use std::rc::Rc;

pub use options::Options;

use crate::bridge::Source;
use crate::diagnostics::{Diagnostic, Diagnostics, Severity};
use crate::evaluate::Evaluate;
use crate::parse::{Halt, Input, Parser};
use crate::program::Program;
use crate::source::{Sources, Span};
use crate::support::order::Seeds;
use crate::vm::Machine;

/// Stack of the thread that parses and runs scripts: nested constructs are bounded by it and by limits of their own.
const STACK: usize = 1 << 30;

/// Runs the command with the arguments behind its name.
#[must_use]
pub fn main(args: Vec<OsString>) -> ExitCode {
    main_with(args, None)
}

/// The same; captures (`-r`) are read by `source`.
#[must_use]
pub fn main_with(args: Vec<OsString>, source: Option<Box<dyn Source>>) -> ExitCode {
    let thread = std::thread::Builder::new()
        .name("zeek".to_owned())
        .stack_size(STACK)
        .spawn(move || run(args, source));
    match thread.map(std::thread::JoinHandle::join) {
        Ok(Ok(status)) => ExitCode::from(status),
        _ => ExitCode::FAILURE,
    }
}

fn run(args: Vec<OsString>, source: Option<Box<dyn Source>>) -> u8 {
    let options = match Options::parse(args) {
        Ok(options) => options,
        Err(message) => {
            error_line(&format!("error: {message}"));
            return 1;
        }
    };
    if options.version {
        error_line(concat!("gannet version ", env!("CARGO_PKG_VERSION")));
        return 0;
    }
    let mut program = Program { diagnostics: standard_error(), ..Program::default() };
    let mut engine = Machine::new();
    engine.set_bare(options.bare);
    if let Some(seeds) = seeds() {
        engine.seed(&seeds);
    }
    match parse(&mut program, &mut engine, &options) {
        Ok(()) if options.parse_only => 0,
        Ok(()) => {
            let status = match (source, &options.capture) {
                (Some(mut source), Some(capture)) => match source.open(&options) {
                    Ok(()) => crate::bridge::run(program, engine, &mut *source),
                    Err(message) => {
                        let text = format!("problem with trace file {capture} ({message})");
                        fatal(&mut program, &text);
                        return 1;
                    }
                },
                _ => engine.with(&mut program).run(),
            };
            u8::try_from(status & 0xff).unwrap_or(1)
        }
        Err(status) => status,
    }
}

/// The seeds that `ZEEK_SEED_FILE` or `ZEEK_SEED_VALUES` names.
fn seeds() -> Option<Seeds> {
    if let Some(path) = std::env::var_os("ZEEK_SEED_FILE").filter(|path| !path.is_empty()) {
        return Seeds::parse(&std::fs::read(path).ok()?);
    }
    Seeds::parse(std::env::var("ZEEK_SEED_VALUES").ok()?.as_bytes())
}

/// Diagnostics that go to standard error, line by line, in Zeek's form.
#[must_use]
pub fn standard_error() -> Diagnostics {
    Diagnostics::new(Box::new(|diagnostic: &Diagnostic, _: &Sources| {
        let mut line = diagnostic.line();
        line.push(b'\n');
        let _ = std::io::stderr().write_all(&line);
    }))
}

/// Parses the inputs of the options into `program`.
///
/// # Errors
/// The exit status where it must not be run.
pub fn parse(
    program: &mut Program,
    engine: &mut dyn Evaluate,
    options: &Options,
) -> Result<(), u8> {
    let search_path = search_path(options);
    crate::components::declare(program);
    for prefix in std::env::var("ZEEK_PREFIXES")
        .unwrap_or_default()
        .split(':')
        .filter(|prefix| !prefix.is_empty())
    {
        program.prefixes.push(prefix.into());
    }
    program.prefixes.extend(options.prefixes.iter().map(|prefix| prefix.as_str().into()));
    let inputs = inputs(options, &search_path);
    let mut parser = Parser::new(program, engine, search_path);
    parser.warn_unused = !options.parse_only && !options.no_unused_warnings;
    let result = parser.run(inputs);
    match result {
        Ok(()) if program.diagnostics.errors == 0 => Ok(()),
        Ok(()) | Err(Halt::Syntax | Halt::Fatal) => Err(1),
        Err(Halt::Exit(status)) => Err(u8::try_from(status & 0xff).unwrap_or(1)),
    }
}

/// The inputs to parse, in order.
#[must_use]
pub fn inputs(options: &Options, search_path: &[String]) -> Vec<Input> {
    let mut inputs = Vec::new();
    let file = |name: &str| Input::File(name.to_owned());
    let has_scripts = search_path
        .iter()
        .any(|folder| std::path::Path::new(folder).join("base/init-bare.zeek").is_file());
    if has_scripts {
        inputs.push(file("base/init-bare.zeek"));
        inputs.push(Input::OptionalFile("builtin-plugins/__preload__.zeek".to_owned()));
        inputs.push(file("base/init-frameworks-and-bifs.zeek"));
        if !options.bare {
            inputs.push(file("base/init-default.zeek"));
        }
        inputs.push(Input::OptionalFile("builtin-plugins/__load__.zeek".to_owned()));
        inputs.push(Input::OptionalFile("builtin-plugins/__preload__.zeek".to_owned()));
    }
    inputs.extend(options.files.iter().map(|name| file(name)));
    let nothing = options.files.is_empty()
        && options.exec.is_empty()
        && options.redefs.is_empty()
        && options.capture.is_none()
        && options.interface.is_none()
        && options.print_ids.is_empty()
        && options.signatures.is_empty()
        && options.activated.is_empty();
    if nothing {
        inputs.push(file("-"));
    }
    inputs.extend(options.signatures.iter().map(|name| Input::Signatures(name.clone())));
    inputs.push(Input::Prefixes);
    inputs.extend(
        options
            .redefs
            .iter()
            .map(|(name, value)| Input::Redef { name: name.clone(), value: value.clone() }),
    );
    if !options.exec.is_empty() {
        let code = options.exec.join("\n").into_bytes();
        inputs.push(Input::Text { name: "<command line>".to_owned(), code });
    }
    inputs
}

/// Where scripts are searched: `ZEEKPATH`, or the folder of `--zeek-scripts`.
#[must_use]
pub fn search_path(options: &Options) -> Vec<String> {
    if let Some(folder) = &options.scripts {
        let inner = [
            "scripts",
            "scripts/policy",
            "scripts/site",
            "build/scripts",
            "build/scripts/builtin-plugins",
        ];
        let merged = ["", "policy", "site", "builtin-plugins"];
        let source_tree = std::path::Path::new(folder).join("scripts/base").is_dir();
        let parts: &[&str] = if source_tree { &inner } else { &merged };
        let mut path = vec![".".to_owned()];
        path.extend(
            parts.iter().map(|part| format!("{folder}/{part}").trim_end_matches('/').to_owned()),
        );
        return path;
    }
    match std::env::var("ZEEKPATH") {
        Ok(path) if !path.is_empty() => path
            .split(':')
            .map(|folder| if folder.is_empty() { "." } else { folder }.to_owned())
            .collect(),
        _ => vec![".".to_owned()],
    }
}

/// Collects diagnostics instead of printing them.
#[must_use]
pub fn collected() -> (Diagnostics, Rc<RefCell<Vec<Diagnostic>>>) {
    let all = Rc::new(RefCell::new(Vec::new()));
    let sink = all.clone();
    (
        Diagnostics::new(Box::new(move |diagnostic, _| sink.borrow_mut().push(diagnostic.clone()))),
        all,
    )
}

fn error_line(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Reports that reading ended for good.
pub fn fatal(program: &mut Program, text: &str) {
    program.report(Severity::Fatal, Span::NOWHERE, text);
}
