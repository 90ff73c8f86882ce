//! The command `gannet zeek`: Zeek's options, search path and load order of files.

mod files;
mod help;
mod listing;
mod options;
pub(crate) mod signatures;
mod unsupported;

use std::cell::{Cell, RefCell};
use std::ffi::OsString;
use std::fs::File;
use std::io::Write as _;
use std::mem::ManuallyDrop;
use std::path::Path;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::{Duration, Instant};

pub use files::is_script;
pub use options::Options;

use crate::bridge::Source;
use crate::cache::Cache;
use crate::coverage::Coverage;
use crate::diagnostics::{Diagnostic, Diagnostics, Severity};
use crate::evaluate::Evaluate;
use crate::parse::{Input, ParseEnd, Parser};
use crate::program::Program;
use crate::source::{Sources, Span};
use crate::support::order::Seeds;
use crate::tools::render::RichRenderer;
use crate::value::Value;
use crate::vm::Machine;
use crate::vm::budget::resident;

/// Stack size in bytes of the thread that parses and runs scripts. Limits on nested constructs keep recursion within it.
const STACK_SIZE: usize = 1 << 30;

/// The name of [`BUILT_IN`] in messages.
pub(crate) const BUILT_IN_NAME: &str = "<built-in>";

/// Declarations for runs without Zeek's own scripts.
const BUILT_IN: &[u8] = include_bytes!("builtin.zeek");

/// Declarations of Zeek's ZeroMQ plugin, which only some builds of Zeek have.
const ZEROMQ: &[u8] = include_bytes!("zeromq.zeek");

/// Runs the command with the arguments after its name.
#[must_use]
pub fn main(args: Vec<OsString>) -> ExitCode {
    main_with(args, None)
}

/// Like [`main`]; `source` reads captures (`-r`) and interfaces (`-i`).
#[must_use]
pub fn main_with(args: Vec<OsString>, source: Option<Box<dyn Source>>) -> ExitCode {
    let thread = std::thread::Builder::new()
        .name("zeek".to_owned())
        .stack_size(STACK_SIZE)
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
    if options.help {
        return print(help::HELP);
    }
    if options.version {
        return print(concat!("gannet version ", env!("CARGO_PKG_VERSION"), "\n"));
    }
    if options.optimization_help {
        return print(&unsupported::optimization_help());
    }
    if options.debug_help {
        error_line("error: gannet has no debug streams (-B)");
        return 1;
    }
    if options.build_info {
        return print(&format!(
            "{{\"version\": {{\"number\": \"{}\", \"commit\": \"\"}}, \"build\": {{\"profile\": \"{}\"}}}}\n",
            env!("CARGO_PKG_VERSION"),
            if cfg!(debug_assertions) { "debug" } else { "release" },
        ));
    }
    if let Some(name) = missing_plugin(&options) {
        error_line(&format!(
            "fatal error: plugin {name} is not available: gannet loads no plugins"
        ));
        return 1;
    }
    if let Some(capture) = options.files.iter().find(|file| files::is_capture(Path::new(file))) {
        error_line(&format!("fatal error: {capture} is a capture: -r {capture} reads it"));
        return 1;
    }
    if let Some(file) = options.files.iter().find(|file| files::has_signatures(Path::new(file))) {
        error_line(&format!("fatal error: {file} has signatures: -s {file} loads them"));
        return 1;
    }
    if let Some(folder) = missing_generated_scripts(&search_path(&options)) {
        error_line(&format!(
            "fatal error: {folder}/base/bif is missing: Zeek's build makes it, and an installation of Zeek has it in \
             share/zeek; ZEEKPATH or --zeek-scripts DIR names that folder",
        ));
        return 1;
    }
    if !options.bare && !has_scripts(&search_path(&options)) {
        let is_missing = |file: &&String| file.ends_with(".zeek") && !Path::new(file).exists();
        error_line(&match options.files.iter().find(is_missing) {
            Some(file) => format!("fatal error: can't find {file}"),
            None => without_scripts(&options),
        });
        return 1;
    }
    let status = |state: &str, why: &str| write_status(options.status_file.as_deref(), state, why);
    status("INITIALIZING", "main");
    let exit = run_scripts(&options, source, &status);
    status("TERMINATED", "atexit");
    exit
}

/// The message if Zeek's scripts are not found.
fn without_scripts(options: &Options) -> String {
    let filter = match options.files.iter().find(|file| !Path::new(file).exists()) {
        Some(word) => format!("; where '{word}' begins a capture filter, -f comes before it"),
        None => String::new(),
    };
    format!(
        "fatal error: can't find Zeek's scripts: ZEEKPATH or --zeek-scripts DIR names their folder, share/zeek of an \
         installation of Zeek; with -b, scripts that need only the language run without, and gannet analyze writes \
         Zeek's logs without{filter}"
    )
}

/// A plugin that the command line or `ZEEK_PLUGIN_ACTIVATE` requests and that is not built into Zeek.
fn missing_plugin(options: &Options) -> Option<String> {
    let variable = std::env::var("ZEEK_PLUGIN_ACTIVATE").unwrap_or_default();
    let names = options.activated.iter().map(String::as_str).chain(variable.split(','));
    let mut names = names.map(str::trim).filter(|name| !name.is_empty());
    names.find(|name| !name.starts_with("Zeek::")).map(str::to_owned)
}

/// The folder with Zeek's own scripts, if the scripts that Zeek's build generates are missing.
fn missing_generated_scripts(search_path: &[String]) -> Option<&String> {
    let has = |folder: &&String, name: &str| Path::new(folder).join(name).exists();
    let all = || search_path.iter();
    let sources = all().find(|folder| has(folder, "base/init-bare.zeek"))?;
    let loads = std::fs::read_to_string(Path::new(sources).join("base/init-bare.zeek")).ok()?;
    let is_unbuilt =
        loads.contains("@load base/bif/") && !all().any(|folder| has(&folder, "base/bif"));
    is_unbuilt.then_some(sources)
}

/// Writes the state of the process to the file of `-U`.
fn write_status(file: Option<&str>, state: &str, why: &str) {
    let Some(file) = file else { return };
    if let Err(error) = std::fs::write(file, format!("{state} [{why}]\n")) {
        let code = error.raw_os_error().unwrap_or(0);
        error_line(&format!("Failed to open process status file '{file}': {code} [{state}]"));
    }
}

/// Time and resident memory of a run (`-Q`), in Zeek's form.
struct Timing {
    start: Instant,
    ready: Option<(Duration, u64)>,
}

impl Timing {
    const MIB: u64 = 1 << 20;

    fn start() -> Self {
        Self { start: Instant::now(), ready: None }
    }

    /// Reports the initialization; the scripts begin to run.
    fn ready(&mut self) {
        let (time, memory) = (self.start.elapsed(), resident());
        error_line(&format!("# initialization {:.6}", time.as_secs_f64()));
        error_line(&format!("# initialization {}M/0M", memory / Self::MIB));
        self.ready = Some((time, memory));
    }

    /// Reports the whole run.
    fn end(&self) {
        let Some((ready, before)) = self.ready else { return };
        let (time, memory) = (self.start.elapsed(), resident());
        let (all, processing) = (time.as_secs_f64(), (time - ready).as_secs_f64());
        error_line(&format!("# total time {all:.6}, processing {processing:.6}"));
        let grown = memory.saturating_sub(before) / Self::MIB;
        error_line(&format!("# total mem {}M/0M, processing {grown}M/0M", memory / Self::MIB));
    }
}

fn run_scripts(
    options: &Options,
    source: Option<Box<dyn Source>>,
    status: &dyn Fn(&str, &str),
) -> u8 {
    let mut timing = options.timing.then(Timing::start);
    let rich = options.rich.then(RichRenderer::default);
    let diagnostics = rich.as_ref().map_or_else(standard_error, RichRenderer::diagnostics);
    // The process ends with the program, so its 100,000 items need not be freed one by one.
    let mut program = ManuallyDrop::new(Program { diagnostics, ..Program::default() });
    let mut engine = Machine::new();
    engine.set_bare(options.bare);
    engine.set_sandbox(options.sandbox);
    engine.set_budget(options.budget);
    if let Some(bytes) = options.max_string {
        engine.set_max_string(bytes);
    }
    if let Some(files) = options.max_open_logs {
        engine.set_max_open_logs(files);
    }
    let mut profile_failed = Rc::default();
    if let Some(file) = &options.profile {
        // A run whose profile cannot be written does not begin.
        if !file.is_empty()
            && let Err(error) = File::create(file)
        {
            let reason = crate::support::logs::reason(&error);
            error_line(&format!("error: cannot write the profile: {file}: {reason}"));
            return 1;
        }
        profile_failed = engine.start_profile(
            Some(file.clone()).filter(|file| !file.is_empty()),
            options.profile_stacks,
        );
    }
    if let Some(file) = &options.event_trace
        && let Err(error) = engine.trace_events(file)
    {
        let reason = crate::support::logs::reason(&error);
        fatal(&mut program, &format!("can't open event trace file {file}: {reason}"));
        return 1;
    }
    engine.coverage = Coverage::from_environment(&mut |line| {
        let line = String::from_utf8_lossy(line);
        error_line(&format!("invalid ZEEK_PROFILER_FILE line: {line}"));
    });
    program.conditionals = engine.coverage.is_some().then(Vec::new);
    // The cache is for programs without Spicy's enums and without the conditions that coverage records.
    let mut cache = Cache::new(options, &search_path(options))
        .filter(|_| !options.spicy && engine.coverage.is_none());
    match seeds(&mut program, options) {
        Ok(Some(seeds)) => {
            engine.seed(&seeds);
            // The order of tables depends on the seeds.
            cache = None;
        }
        Ok(None) => {}
        Err(text) => {
            fatal(&mut program, &text);
            if let Some(rich) = &rich {
                rich.parsed(&program);
            }
            return 1;
        }
    }
    let parsed = parse_with(&mut program, &mut engine, options, cache);
    if let Some(rich) = &rich {
        rich.parsed(&program);
    }
    let parsed = parsed.and_then(|()| {
        let mut vm = engine.with(&mut program);
        if options.ignore_checksums
            && let Some(global) = vm.find_global("ignore_checksums")
        {
            vm.set_global(global, Value::Bool(true));
        }
        if options.lists() {
            return Ok(());
        }
        signatures::load(&mut vm, &search_path(options), options.signature_level()).map_err(|()| 1)
    });
    match parsed {
        Ok(()) if options.lists() => list(&mut program, &mut engine, options),
        Ok(()) if options.parse_only => 0,
        Ok(()) => {
            // Machine code does not check budgets.
            let interpreted = crate::jit::Engine::Interp;
            let kind = if options.budget.is_some() { interpreted } else { options.engine };
            if let Err(text) = engine.set_engine(kind) {
                fatal(&mut program, text);
                return 1;
            }
            if let Some(path) = &options.write
                && let Err(error) = File::create(path)
            {
                let reason = crate::support::logs::reason(&error);
                let text = format!("problem opening dump file {path} ({path}: {reason})");
                fatal(&mut program, &text);
                return 1;
            }
            engine.with(&mut program).set_script_args(&options.script_args);
            status("RUNNING", "main");
            if let Some(timing) = &mut timing {
                timing.ready();
            }
            let packets = match (&options.capture, &options.interface) {
                (Some(capture), _) => Some(format!("trace file {capture}")),
                (None, Some(interface)) => Some(format!("interface {interface}")),
                (None, None) => None,
            };
            let is_analyzed =
                packets.is_some() || crate::bridge::reads_files(&engine.with(&mut program));
            let code = match source.filter(|_| is_analyzed) {
                Some(mut source) => match source.open(options) {
                    Ok(()) => {
                        let program = ManuallyDrop::into_inner(program);
                        crate::bridge::run(program, engine, options, &mut *source)
                    }
                    Err(message) => {
                        let packets = packets.unwrap_or_else(|| "signals".to_owned());
                        fatal(&mut program, &format!("problem with {packets} ({message})"));
                        return 1;
                    }
                },
                None => {
                    let code = engine.with(&mut program).run();
                    drop(engine);
                    code
                }
            };
            if let Some(rich) = &rich {
                rich.ended();
            }
            status("TERMINATING", "main");
            if let Some(timing) = &timing {
                timing.end();
            }
            let mut code = code;
            if let Some(path) = &options.write
                && let Err(error) = crate::bridge::end_capture(path)
            {
                error_line(&format!("error: {path}: {}", crate::support::logs::reason(&error)));
                code = code.max(1);
            }
            let code = u8::try_from(code & 0xff).unwrap_or(1);
            if profile_failed.get() { code.max(1) } else { code }
        }
        Err(code) => code,
    }
}

/// Prints the lists that `-N` and `-I` request. Returns the exit status.
fn list(program: &mut Program, engine: &mut Machine, options: &Options) -> u8 {
    if options.plugins > 0 {
        listing::print(listing::components(program, options.plugins > 1).as_bytes());
    }
    for name in &options.print_ids {
        match listing::identifier(&mut engine.with(program), name) {
            Some(text) => listing::print(&text),
            None => {
                fatal(program, &format!("No such ID: {name}"));
                return 1;
            }
        }
    }
    0
}

/// The seeds from the options, `ZEEK_SEED_FILE` or `ZEEK_SEED_VALUES`. Saves them if `-H` is given.
///
/// # Errors
/// Returns a message if the seeds cannot be read or written.
fn seeds(program: &mut Program, options: &Options) -> Result<Option<Seeds>, String> {
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let file = options.load_seeds.clone().or_else(|| variable("ZEEK_SEED_FILE"));
    let values = variable("ZEEK_SEED_VALUES");
    let seeds = match (file, values) {
        (Some(_), Some(_)) => {
            let text = "can't use ZEEK_SEED_VALUES together with ZEEK_SEED_FILE or -G";
            return Err(text.to_owned());
        }
        (Some(path), None) => {
            let text = std::fs::read(&path).map_err(|error| {
                let reason = crate::support::logs::reason(&error);
                let text = format!("Could not open seed file '{path}': {reason}");
                program.report(Severity::Warning, Span::NOWHERE, text);
            });
            let seeds = text.ok().and_then(|text| Seeds::parse(&text));
            Some(seeds.ok_or_else(|| format!("Could not load seeds from file '{path}'."))?)
        }
        (None, Some(values)) => {
            let seeds = Seeds::parse(values.as_bytes());
            Some(seeds.ok_or_else(|| "Could not load seeds from string".to_owned())?)
        }
        // A run has fixed seeds only on request. `-H` alone saves, and uses, seeds of zero.
        (None, None) => {
            (options.deterministic || options.save_seeds.is_some()).then(Seeds::default)
        }
    };
    if let (Some(path), Some(seeds)) = (&options.save_seeds, &seeds) {
        std::fs::write(path, seeds.to_text()).map_err(|error| {
            let reason = crate::support::logs::reason(&error);
            format!("Could not create seed file '{path}': {reason}")
        })?;
    }
    Ok(seeds)
}

/// Diagnostics that are written to standard error, a line each, in Zeek's form.
#[must_use]
pub fn standard_error() -> Diagnostics {
    let now = Rc::new(Cell::new(0.0));
    let clock = Rc::clone(&now);
    let sink = move |diagnostic: &Diagnostic, _: &Sources| {
        let mut line = Vec::new();
        if clock.get() > 0.0 {
            line.extend_from_slice(format!("{:.6} ", clock.get()).as_bytes());
        }
        line.append(&mut diagnostic.line());
        line.push(b'\n');
        let _ = std::io::stderr().write_all(&line);
    };
    Diagnostics::timed(Box::new(sink), now)
}

/// Parses the inputs of the options into `program`.
///
/// # Errors
/// Returns the exit status if the program must not run.
pub fn parse(
    program: &mut Program,
    engine: &mut dyn Evaluate,
    options: &Options,
) -> Result<(), u8> {
    declare(program, options);
    let search_path = search_path(options);
    let inputs = inputs(options, &search_path);
    let parser = Parser::new(program, engine, search_path);
    run_parser(parser, inputs, options)
}

/// Like [`parse`]; Zeek's own scripts come from the cache if they were parsed before.
///
/// # Errors
/// Returns the exit status if the program must not run.
pub fn parse_with(
    program: &mut Program,
    machine: &mut Machine,
    options: &Options,
    cache: Option<Cache>,
) -> Result<(), u8> {
    parse_in(program, machine, options, search_path(options), cache)
}

pub(crate) fn parse_in(
    program: &mut Program,
    machine: &mut Machine,
    options: &Options,
    search_path: Vec<String>,
    cache: Option<Cache>,
) -> Result<(), u8> {
    program.has_parameters = !options.redefs.is_empty();
    let mut inputs = inputs(options, &search_path);
    let checkpoint = inputs.iter().position(|input| matches!(input, Input::Checkpoint));
    let (Some(cache), Some(checkpoint)) = (cache, checkpoint) else {
        declare(program, options);
        let parser = Parser::new(program, machine, search_path);
        return run_parser(parser, inputs, options);
    };
    if let Some(position) = cache.load(program, machine) {
        let rest = inputs.split_off(checkpoint + 1);
        let parser = Parser::resume(program, machine, search_path, position);
        return run_parser(parser, rest, options);
    }
    declare(program, options);
    machine.record();
    let mut parser = Parser::new(program, machine, search_path);
    parser.cache = Some(cache);
    run_parser(parser, inputs, options)
}

/// Declares the components, prefixes and flags that exist before the first script.
fn declare(program: &mut Program, options: &Options) {
    program.has_spicy = options.spicy;
    crate::components::declare(program);
    for prefix in std::env::var("ZEEK_PREFIXES")
        .unwrap_or_default()
        .split(':')
        .filter(|prefix| !prefix.is_empty())
    {
        program.prefixes.push(prefix.into());
    }
    program.has_parameters = !options.redefs.is_empty();
    program.prefixes.extend(options.prefixes.iter().map(|prefix| prefix.as_str().into()));
}

fn run_parser(mut parser: Parser<'_>, inputs: Vec<Input>, options: &Options) -> Result<(), u8> {
    parser.warn_unused = !options.parse_only && !options.no_unused_warnings;
    let is_requested = std::env::var("ZEEK_USAGE_ISSUES").is_ok_and(|value| value.parse() != Ok(0));
    parser.warn_usage = options.usage > 0 || is_requested;
    // With `-a`, `-u` must be given twice for these warnings.
    parser.warn_unread = options.usage > u32::from(options.parse_only) || is_requested;
    parser.stops_at_errors = true;
    let result = parser.run(inputs);
    let program = parser.program;
    match result {
        Ok(()) if program.diagnostics.errors == 0 => Ok(()),
        Ok(()) | Err(ParseEnd::Syntax | ParseEnd::Fatal) => Err(1),
        Err(ParseEnd::Exit(status)) => Err(u8::try_from(status & 0xff).unwrap_or(1)),
    }
}

/// The inputs to parse, in order.
#[must_use]
pub fn inputs(options: &Options, search_path: &[String]) -> Vec<Input> {
    let mut inputs = Vec::new();
    let file = |name: &str| Input::File(name.to_owned());
    let has_scripts = has_scripts(search_path);
    if has_scripts {
        inputs.push(file("base/init-bare.zeek"));
        inputs.push(Input::OptionalFile("builtin-plugins/__preload__.zeek".to_owned()));
        inputs.push(file("base/init-frameworks-and-bifs.zeek"));
        if !options.bare {
            inputs.push(file("base/init-default.zeek"));
        }
        inputs.push(Input::OptionalFile("builtin-plugins/__load__.zeek".to_owned()));
        inputs.push(Input::OptionalFile("builtin-plugins/__preload__.zeek".to_owned()));
        inputs.push(Input::Checkpoint);
        inputs.push(Input::Text { name: BUILT_IN_NAME.to_owned(), code: ZEROMQ.to_vec() });
    } else {
        inputs.push(Input::Text { name: BUILT_IN_NAME.to_owned(), code: BUILT_IN.to_vec() });
    }
    if has_scripts && options.filter.is_some() {
        inputs.push(file("base/frameworks/packet-filter"));
    }
    inputs.extend(options.files.iter().map(|name| file(name)));
    let has_no_input = options.files.is_empty()
        && options.exec.is_none()
        && options.redefs.is_empty()
        && options.capture.is_none()
        && options.interface.is_none()
        && !options.lists()
        && options.signatures.is_empty()
        && options.activated.is_empty();
    if has_no_input {
        inputs.push(file("-"));
    }
    inputs.extend(options.signatures.iter().map(|name| Input::Signatures(name.clone())));
    inputs.push(Input::Prefixes);
    if let Some(filter) = options.filter.as_ref().filter(|_| has_scripts) {
        let name = "cmd_line_bpf_filter".to_owned();
        inputs.push(Input::Redef { name, value: filter.clone() });
    }
    inputs.extend(
        options
            .redefs
            .iter()
            .map(|(name, value)| Input::Redef { name: name.clone(), value: value.clone() }),
    );
    if let Some(code) = &options.exec {
        let code = [code.as_bytes(), b";\n"].concat();
        inputs.push(Input::Text { name: "<command line>".to_owned(), code });
    }
    inputs
}

/// Whether Zeek's own scripts are in one of the folders.
pub fn has_scripts(search_path: &[String]) -> bool {
    let holds = |folder: &String| Path::new(folder).join("base/init-bare.zeek").is_file();
    search_path.iter().any(holds)
}

/// The search path of scripts: the folder of `--zeek-scripts`, else `ZEEKPATH`.
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
        let source_tree = Path::new(folder).join("scripts/base").is_dir();
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

/// Diagnostics that are collected instead of printed.
#[must_use]
pub fn collected() -> (Diagnostics, Rc<RefCell<Vec<Diagnostic>>>) {
    let all = Rc::new(RefCell::new(Vec::new()));
    let sink = all.clone();
    (
        Diagnostics::new(Box::new(move |diagnostic, _| sink.borrow_mut().push(diagnostic.clone()))),
        all,
    )
}

/// Prints to standard output; a closed pipe is no error. Returns the exit status.
fn print(text: &str) -> u8 {
    let mut out = std::io::stdout();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            error_line(&format!("error: standard output: {error}"));
            1
        }
        _ => 0,
    }
}

fn error_line(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Reports a fatal error.
pub fn fatal(program: &mut Program, text: &str) {
    program.report(Severity::Fatal, Span::NOWHERE, text);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bif::Natives;

    #[test]
    fn every_built_in_declaration_has_a_native_function() {
        let mut program = Program::default();
        let mut machine = Machine::new();
        let input = Input::Text { name: "<built-in>".to_owned(), code: BUILT_IN.to_vec() };
        assert!(Parser::new(&mut program, &mut machine, Vec::new()).run([input]).is_ok());
        assert_eq!(program.diagnostics.errors, 0);
        let natives = Natives::default();
        let text = String::from_utf8_lossy(BUILT_IN);
        let functions = text.lines().filter(|line| line.starts_with("global "));
        let functions =
            functions.filter_map(|line| line["global ".len()..].split_once(": function"));
        let missing: Vec<_> =
            functions.map(|(name, _)| name).filter(|&name| natives.find(name).is_none()).collect();
        assert_eq!(missing, Vec::<&str>::new());
    }
}
