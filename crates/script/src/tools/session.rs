//! Sessions: scripts are parsed into a program. Only initializers and conditions of `@if` are evaluated, in the
//! sandbox.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::command::{self, Options};
use crate::diagnostics::Diagnostic;
use crate::ids::FileId;
use crate::parse::{Input, ParseEnd, Parser};
use crate::program::Program;
use crate::tools::finding::{self, Finding};
use crate::tools::warn;
use crate::vm::Machine;

/// Stack size of the parser thread, in bytes; pages are allocated on use.
const STACK_SIZE: usize = 1 << 30;

/// Input and options of a session.
#[derive(Clone, Default, Debug)]
pub struct Settings {
    /// Scripts, as `@load` names them.
    pub files: Vec<String>,
    /// Code to parse instead of the files.
    pub text: Option<Vec<u8>>,
    /// Omits Zeek's default scripts.
    pub bare: bool,
    /// The folder of Zeek's scripts; `None` to use `ZEEKPATH`.
    pub scripts: Option<String>,
    /// Contents that replace files, by canonical path.
    pub overlay: HashMap<PathBuf, Vec<u8>>,
    /// The warnings to emit.
    pub warnings: warn::Level,
    /// Also warns about Zeek's own scripts and about files that the named ones load.
    pub warn_loaded: bool,
    /// Whether names are recorded in [`Program::uses`].
    pub index: bool,
}

/// The result of parsing.
pub struct Session {
    /// The program, incomplete if parsing ended early.
    pub program: Program,
    /// The interpreter that evaluated initializers.
    pub machine: Machine,
    /// Errors and warnings, in order of detection.
    pub findings: Vec<Finding>,
    /// Like `findings`, including follow-up errors: one finding per line of Zeek.
    pub lines: Vec<Finding>,
    /// Resolved paths of the named files.
    pub named: Vec<String>,
    /// How parsing ended.
    pub end: Result<(), ParseEnd>,
    /// Number of named files that were not parsed.
    pub unread: usize,
    /// Whether Zeek's own scripts were found.
    pub has_scripts: bool,
    /// Folders of Zeek's own scripts and of the declarations that Zeek's build generates.
    zeek_folders: Vec<PathBuf>,
}

impl Session {
    /// Whether a file, by its resolved path, belongs to Zeek. Scripts in `site` belong to the user.
    #[must_use]
    pub fn is_of_zeek(&self, path: &str) -> bool {
        let is_own = |folder: &PathBuf| {
            let rest = Path::new(path).strip_prefix(folder);
            rest.is_ok_and(|rest| {
                ["base", "policy", "builtin-plugins"].iter().any(|part| rest.starts_with(part))
            })
        };
        path == command::BUILT_IN_NAME || self.zeek_folders.iter().any(is_own)
    }
}

/// Runs `work` on a thread with a stack that suffices for every script; `None` if the thread could not be
/// started or panicked.
pub fn on_large_stack<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let thread = std::thread::Builder::new().name("scripts".to_owned()).stack_size(STACK_SIZE);
    thread.spawn(work).ok()?.join().ok()
}

/// Parses scripts as one program. If a syntax error ends parsing, the remaining files are parsed as another
/// program, so that each is checked. Must run on a thread of [`on_large_stack`].
#[must_use]
pub fn read_all(settings: &Settings) -> Vec<Session> {
    let mut sessions = Vec::new();
    let mut settings = settings.clone();
    loop {
        let session = read(&settings);
        let from = settings.files.len() - session.unread.min(settings.files.len());
        let again = session.end.is_err() && from > 0 && from < settings.files.len();
        sessions.push(session);
        if !again {
            return sessions;
        }
        settings.files.drain(..from);
    }
}

/// Parses scripts. Must run on a thread of [`on_large_stack`].
#[must_use]
pub fn read(settings: &Settings) -> Session {
    let options = Options {
        files: settings.files.clone(),
        bare: settings.bare,
        scripts: settings.scripts.clone(),
        ..Options::default()
    };
    let all: Rc<RefCell<Vec<Diagnostic>>> = Rc::default();
    let sink = Rc::clone(&all);
    let diagnostics = crate::diagnostics::Diagnostics::new(Box::new(move |diagnostic, _| {
        sink.borrow_mut().push(diagnostic.clone());
    }));
    let mut program = Program { diagnostics, ..Program::default() };
    if settings.index {
        program.uses = Some(Vec::new());
    }
    let mut machine = Machine::new();
    machine.set_bare(settings.bare);
    machine.set_sandbox(true);
    machine.set_output(Box::new(std::io::sink()));
    let path = command::search_path(&options);
    let trees = script_trees(&path);
    let is_own = |folder: &&String| Path::new(folder).join("base/bif").is_dir();
    let zeek_folders =
        path.iter().filter(is_own).map(PathBuf::from).chain(trees.iter().cloned()).collect();
    let has_scripts = !trees.is_empty();
    crate::components::declare(&mut program);
    let inputs = command::inputs(&options, &path);
    // Without file names `-` would be standard input, but the tools parse only named files.
    let inputs = inputs.into_iter().filter(|input| !matches!(input, Input::File(name) if name == "-" && !settings.files.contains(name)));
    let inputs = inputs.map(|input| match (&settings.text, &input) {
        (Some(code), Input::File(name)) if settings.files.contains(name) => {
            Input::Text { name: name.clone(), code: code.clone() }
        }
        _ => input,
    });
    let mut parser = Parser::new(&mut program, &mut machine, path);
    // Without Zeek's scripts, the events that Zeek raises have no declaration.
    parser.warn_unused = has_scripts && settings.warnings != warn::Level::None;
    parser.overlay = settings
        .overlay
        .iter()
        .map(|(path, text)| (path.clone(), Rc::from(text.as_slice())))
        .collect();
    let end = parser.run(inputs);
    let unread = parser.unread_files();
    let mut raw = all.take();
    // Without Zeek's scripts, the events that Zeek raises have no declaration.
    let has_scripts = !trees.is_empty();
    raw.retain(|raw| has_scripts || !raw.text.starts_with(b"handler for non-existing event"));
    // Refused by the sandbox: a limit of the check, not an error of the script.
    raw.retain(|raw| memchr::memmem::find(&raw.text, b"not allowed in a sandbox").is_none());
    let errors = raw.iter().any(|raw| raw.severity.is_error());
    let mut findings = finding::findings(&program, &raw);
    let mut lines: Vec<Finding> = raw.iter().map(|raw| finding::finding(&program, raw)).collect();
    if !errors && settings.warnings != warn::Level::None {
        let wanted =
            |file: FileId| settings.warn_loaded || is_named(&program, file, settings, &trees);
        let warnings = warn::warnings(&program, settings.warnings, &wanted);
        lines.extend(warnings.iter().cloned());
        findings.extend(warnings);
    }
    let shown = |finding: &Finding| {
        finding.severity.is_error()
            || settings.warn_loaded
            || finding.file().is_none_or(|file| is_named(&program, file, settings, &trees))
    };
    findings.retain(shown);
    lines.retain(shown);
    let named = program
        .sources
        .files
        .iter()
        .filter(|(id, _)| is_named(&program, *id, settings, &trees))
        .map(|(_, file)| file.path.to_string())
        .collect();
    Session { program, machine, findings, lines, named, end, unread, has_scripts, zeek_folders }
}

/// The folders of Zeek's own scripts in the search path.
fn script_trees(path: &[String]) -> Vec<PathBuf> {
    path.iter()
        .filter(|folder| Path::new(folder).join("base/init-bare.zeek").is_file())
        .map(PathBuf::from)
        .collect()
}

/// Whether a file was named, or loaded by a named file, and is not one of Zeek's own.
fn is_named(program: &Program, file: FileId, settings: &Settings, trees: &[PathBuf]) -> bool {
    let Some(source) = program.sources.files.find(file) else { return false };
    let path = Path::new(&*source.path);
    if &*source.path == command::BUILT_IN_NAME || trees.iter().any(|tree| path.starts_with(tree)) {
        return false;
    }
    source.depth == 0
        || settings.files.iter().any(|name| Path::new(name) == path)
        || settings.overlay.keys().any(|known| known == path)
}
