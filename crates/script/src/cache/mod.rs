//! The cache of parsed scripts: the program and the values of globals after Zeek's own scripts, as they are before the first script of the user.
//!
//! Reading Zeek's scripts takes most of the time of a start. What comes out depends on few things, so it is stored once in a file, and the next
//! start reads that. A run with the cache has the same results as one without:
//!
//! - **Key**: version and identity of the program, search path, and the options that matter to these scripts. It names the file.
//! - **Answers**: a file counts only while everything that the parser asked for has the same answer: contents of scripts, paths that were
//!   searched, environment variables that scripts read.
//! - **Calls**: only functions whose result follows from their arguments ([`PURE`]) may have been called. Where scripts called another one, or where
//!   anything was reported or printed, nothing is stored. Neither is it under seeds. The arguments of the command may decide conditions of `@if`, which are
//!   evaluated again.
//! - **Integrity**: a file is written under a temporary name and renamed. It begins with a digest of the rest; one that does not fit, that
//!   belongs to another user or that others can write is not read. A reader checks all lengths.
//!
//! | module | duty |
//! |---|---|
//! | `conditions` | conditions that depend on the arguments of the command |
//! | `codec` | numbers, lists and variants as bytes |
//! | `program` | programs as bytes |
//! | `heap` | values of globals as bytes |
//! | `stored` | items of arenas that stay bytes until they are needed |
//! | `probe` | what the parser asks the file system |

mod codec;
mod conditions;
mod heap;
pub(crate) mod probe;
mod program;
mod stored;

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::SystemTime;

use gannet_base::NewFile;
use highway::{HighwayHash as _, HighwayHasher, Key};

pub(crate) use codec::{Codec, Damaged, Read, Reader, Writer, fields};
pub(crate) use stored::Stored;

use crate::command::Options;
use crate::evaluate::{Constant, Evaluate as _};
use crate::ids::ExprId;
use crate::literal::Literal;
use crate::parse::Position;
use crate::program::Program;
use crate::vm::Machine;
use probe::{FileIdentity, Kind};

/// What files begin with; it changes with their form.
const MAGIC: &[u8; 16] = b"gannet scripts 2";

/// Most files in the folder; the oldest ones are removed.
const MOST_FILES: usize = 16;

/// Largest file that is read.
const LARGEST: u64 = 1 << 28;

/// Functions that scripts may call while they are read: their results follow from their arguments, the program and the options in the key.
const PURE: &[&str] = &[
    "Supervisor::__is_supervised",
    "Telemetry::__counter_family",
    "Telemetry::__counter_metric_get_or_add",
    "Telemetry::__gauge_family",
    "Telemetry::__gauge_metric_get_or_add",
    "Telemetry::__histogram_family",
    "Telemetry::__histogram_metric_get_or_add",
    "__init_primary_bifs",
    "__init_secondary_bifs",
    "cat",
    "count_to_port",
    "double_to_time",
    "ends_with",
    "find_first",
    "find_last",
    "fmt",
    "gsub",
    "have_spicy",
    "have_spicy_analyzers",
    "join_string_vec",
    "lstrip",
    "rstrip",
    "split_string",
    "split_string1",
    "split_string_all",
    "split_string_n",
    "starts_with",
    "string_cat",
    "string_to_pattern",
    "strip",
    "strstr",
    "sub",
    "sub_bytes",
    "subnet_width",
    "to_addr",
    "to_count",
    "to_double",
    "to_int",
    "to_lower",
    "to_port",
    "to_subnet",
    "to_upper",
    "zeek_version",
];

/// The function that returns the arguments of the command.
const ARGUMENTS: &str = "zeek_args";

/// Whether the result of a function follows from its arguments.
fn is_repeatable(name: &str) -> bool {
    PURE.binary_search(&name).is_ok()
}

/// A digest of 32 bytes.
type Digest = [u8; 32];

/// Notes what scripts do while they are read.
#[derive(Default)]
pub struct Recorder {
    /// Whether they did something that may have another result at the next start.
    pub(crate) refused: bool,
    environment: BTreeMap<String, Option<Vec<u8>>>,
    /// Whether a condition is being evaluated.
    in_condition: bool,
    /// Whether it asked for the arguments of the command.
    asked: bool,
    /// Conditions that did, with their results.
    conditions: Vec<(ExprId, Literal)>,
}

/// Variables that the parser asked for, with their values.
type Environment = Vec<(Box<str>, Option<Rc<[u8]>>)>;

impl Recorder {
    /// A built-in function is called; `first` is its first argument.
    pub(crate) fn call(&mut self, name: &str, first: &[u8]) {
        if name == "getenv" {
            let variable = String::from_utf8_lossy(first).into_owned();
            let value = variable_now(&variable);
            self.environment.insert(variable, value);
        } else if name == ARGUMENTS && self.in_condition {
            self.asked = true;
        } else if !is_repeatable(name) {
            self.refused = true;
        }
    }

    /// A condition is evaluated.
    pub(crate) fn condition_begins(&mut self) {
        (self.in_condition, self.asked) = (true, false);
    }

    /// It has this result.
    pub(crate) fn condition_ends(
        &mut self,
        program: &Program,
        expr: ExprId,
        result: Option<&Constant>,
    ) {
        self.in_condition = false;
        if !std::mem::take(&mut self.asked) {
            return;
        }
        match result {
            Some(Constant::Literal(literal)) if conditions::changes_nothing(program, expr) => {
                self.conditions.push((expr, literal.clone()));
            }
            _ => self.refused = true,
        }
    }
}

fn variable_now(name: &str) -> Option<Vec<u8>> {
    // No variable has such a name; asking for it would panic.
    if name.is_empty() || name.contains(['=', '\0']) {
        return None;
    }
    std::env::var_os(name).map(|value| value.into_encoded_bytes())
}

/// The file that a start would use.
#[derive(Debug)]
pub struct Cache {
    file: PathBuf,
    key: Digest,
    /// Whether relative paths are part of the key, with the folder that they are relative to.
    is_anchored: bool,
}

impl Cache {
    /// The cache for these options; `None` where a start must not use any.
    #[must_use]
    pub fn new(options: &Options, search_path: &[String]) -> Option<Self> {
        let folder = match std::env::var_os("XDG_CACHE_HOME").filter(|path| !path.is_empty()) {
            Some(path) => PathBuf::from(path),
            None => {
                Path::new(&std::env::var_os("HOME").filter(|home| !home.is_empty())?).join(".cache")
            }
        };
        if folder.is_absolute() { Self::below(&folder, options, search_path) } else { None }
    }

    /// The same in a folder of its own below this one.
    #[must_use]
    pub fn below(folder: &Path, options: &Options, search_path: &[String]) -> Option<Self> {
        if options.no_script_cache || options.rich || options.profile.is_some() {
            return None;
        }
        let mut key = Writer::default();
        key.bytes.extend_from_slice(MAGIC);
        key.block(env!("CARGO_PKG_VERSION").as_bytes());
        // Builds of one version differ: the file of the program is part of the key.
        FileIdentity::of(&std::env::current_exe().and_then(std::fs::metadata).ok()?).put(&mut key);
        for folder in search_path {
            key.block(folder.as_bytes());
        }
        let is_relative = |folder: &String| folder != "." && !Path::new(folder).is_absolute();
        let is_anchored = search_path.iter().any(is_relative);
        if is_anchored {
            key.block(std::env::current_dir().ok()?.as_os_str().as_encoded_bytes());
        }
        let prefixes = std::env::var_os("ZEEK_PREFIXES").unwrap_or_default();
        key.block(prefixes.as_encoded_bytes());
        for prefix in &options.prefixes {
            key.block(prefix.as_bytes());
        }
        // Zeek's scripts declare some things for captures only.
        let has_capture = options.capture.is_some();
        for flag in [options.bare, options.sandbox, !options.redefs.is_empty(), has_capture] {
            flag.put(&mut key);
        }
        let key = digest(&key.bytes);
        let name: String = key.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        Some(Self { file: folder.join("gannet").join(format!("scripts-{name}")), key, is_anchored })
    }

    /// Reads the file into a program and a machine that are new. `None` where there is none that counts; both are as before then.
    pub(crate) fn load(&self, program: &mut Program, machine: &mut Machine) -> Option<Position> {
        let bytes = Rc::new(self.read()?);
        let body = self.checked(&bytes)?;
        let mut from = Reader::of_file(&bytes, bytes.len() - body.len());
        if !self.counts(&mut from).unwrap_or(false) {
            return None;
        }
        let mut read = Program::default();
        match restore(&mut read, machine, &mut from) {
            Ok((position, conditions)) if still_hold(&mut read, machine, &conditions) => {
                read.diagnostics = std::mem::take(&mut program.diagnostics);
                read.has_parameters = program.has_parameters;
                *program = read;
                Some(position)
            }
            _ => {
                machine.forget_state();
                None
            }
        }
    }

    fn read(&self) -> Option<Vec<u8>> {
        let mut file = File::open(&self.file).ok()?;
        let data = file.metadata().ok()?;
        let is_own = data.uid() == rustix::process::geteuid().as_raw() && data.mode() & 0o022 == 0;
        if !data.is_file() || !is_own || data.len() > LARGEST {
            return None;
        }
        let mut bytes = Vec::with_capacity(usize::try_from(data.len()).ok()? + 1);
        file.read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    /// What follows the digest, if the file is of this key and whole.
    fn checked<'b>(&self, bytes: &'b [u8]) -> Option<&'b [u8]> {
        let (magic, rest) = bytes.split_first_chunk::<16>()?;
        let (key, rest) = rest.split_first_chunk::<32>()?;
        let (wanted, body) = rest.split_first_chunk::<32>()?;
        (magic == MAGIC && *key == self.key && *wanted == digest(body)).then_some(body)
    }

    /// Whether everything that the parser asked for has the same answer.
    fn counts(&self, from: &mut Reader<'_>) -> Read<bool> {
        let written = i64::take(from)?;
        let environment: Environment = Codec::take(from)?;
        let paths: Vec<(Box<str>, Kind)> = Codec::take(from)?;
        let files: Vec<(Box<str>, (FileIdentity, Digest))> = Codec::take(from)?;
        let same = environment
            .iter()
            .all(|(name, value)| variable_now(name).as_deref() == value.as_deref());
        Ok(same
            && files.iter().all(|(path, (stamp, digest))| is_same(path, stamp, digest, written))
            && paths.iter().all(|(path, kind)| probe::is_still(path, *kind)))
    }

    /// Stores what was parsed. Where that fails the next start is as slow as this one.
    pub(crate) fn store(
        &self,
        program: &Program,
        position: &Position,
        state: &[u8],
        recorder: &Recorder,
    ) {
        // Whatever is wrong with the folder: scripts run without a cache.
        let _ = self.try_store(program, position, state, recorder);
    }

    fn try_store(
        &self,
        program: &Program,
        position: &Position,
        state: &[u8],
        recorder: &Recorder,
    ) -> Option<()> {
        let noted = probe::end()?;
        let mut to = Writer::default();
        seconds_now()?.put(&mut to);
        let environment: Environment = recorder
            .environment
            .iter()
            .map(|(name, value)| (name.as_str().into(), value.as_deref().map(Rc::from)))
            .collect();
        environment.put(&mut to);
        let mut digests = BTreeMap::new();
        for (_, file) in program.sources.files.iter() {
            if !self.is_anchored && !Path::new(&*file.path).is_absolute() {
                return None;
            }
            digests.insert(&*file.path, digest(&file.text));
        }
        let mut files: Vec<(Box<str>, (FileIdentity, Digest))> =
            Vec::with_capacity(noted.files.len());
        for (path, stamp) in &noted.files {
            let path = path.to_str()?;
            files.push((path.into(), (*stamp, *digests.get(path)?)));
        }
        // Text that came from elsewhere has no file to compare with.
        if files.len() != digests.len() {
            return None;
        }
        let mut paths = noted.paths;
        // Whether these exist is known from their contents.
        paths.retain(|path, _| !noted.files.contains_key(path));
        probe::essential(&paths)?.put(&mut to);
        files.put(&mut to);
        recorder.conditions.put(&mut to);
        position.put(&mut to);
        program::put(program, &mut to);
        to.bytes.extend_from_slice(state);

        let folder = self.file.parent()?;
        DirBuilder::new().recursive(true).mode(0o700).create(folder).ok()?;
        let mut file = NewFile::create_private(&self.file).ok()?;
        let head = [MAGIC.as_slice(), &self.key, &digest(&to.bytes)].concat();
        file.write_all(&head).and_then(|()| file.write_all(&to.bytes)).ok()?;
        // A digest is among its bytes: what a power failure leaves is read as nothing.
        file.rename().ok()?;
        remove_oldest(folder);
        Some(())
    }
}

/// Conditions with their results.
type Conditions = Vec<(ExprId, Literal)>;

/// Reads a program and a state into new ones.
fn restore(
    program: &mut Program,
    machine: &mut Machine,
    from: &mut Reader<'_>,
) -> Read<(Position, Conditions)> {
    let conditions: Conditions = Codec::take(from)?;
    let position = Position::take(from)?;
    program::take(program, from)?;
    position.check(program)?;
    heap::take(machine, program, from)?;
    let known = conditions.iter().all(|(expr, _)| program.exprs.find(*expr).is_some());
    if known && from.left.is_empty() { Ok((position, conditions)) } else { Err(Damaged) }
}

/// Whether conditions have the same results with the arguments of this run.
fn still_hold(program: &mut Program, machine: &mut Machine, conditions: &Conditions) -> bool {
    let holds = conditions.iter().all(|(expr, literal)| {
        let result = machine.evaluate(program, *expr);
        matches!(result, Ok(Constant::Literal(found)) if found == *literal)
    });
    // Code that this compiled is forgotten again.
    machine.forget_code();
    holds
}

/// The state of a machine as bytes, where it has a form.
pub(crate) fn state(machine: &Machine) -> Option<Vec<u8>> {
    let mut to = Writer::default();
    heap::put(machine, &mut to)?;
    Some(to.bytes)
}

/// Reads what a fuzzer makes up: the part of a file behind its digest.
#[doc(hidden)]
pub fn read_anything(bytes: &[u8]) {
    let (mut program, mut machine) = (Program::default(), Machine::new());
    let _ = restore(&mut program, &mut machine, &mut Reader::new(bytes));
}

fn digest(bytes: &[u8]) -> Digest {
    let words = HighwayHasher::new(Key([0x6761_6e6e, 0x6574, 1, 2])).hash256(bytes);
    let mut digest = [0; 32];
    for (slot, word) in digest.as_chunks_mut::<8>().0.iter_mut().zip(words) {
        *slot = word.to_le_bytes();
    }
    digest
}

fn seconds_now() -> Option<i64> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok()?;
    i64::try_from(now.as_secs()).ok()
}

/// Whether a script has the same contents. Its metadata say so unless it changed shortly before the cache was written: then it is read.
fn is_same(path: &str, stamp: &FileIdentity, wanted: &Digest, written: i64) -> bool {
    let Ok(data) = std::fs::metadata(path) else { return false };
    if FileIdentity::of(&data) == *stamp && !stamp.is_younger_than(written - 2) {
        return data.is_file();
    }
    std::fs::read(path).is_ok_and(|text| digest(&text) == *wanted)
}

/// Removes what is too much in the folder, the oldest files first.
fn remove_oldest(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let mut files: Vec<(SystemTime, PathBuf)> = entries
        .filter_map(Result::ok)
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("scripts-"))
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    files.sort();
    let extra = files.len().saturating_sub(MOST_FILES);
    for (_, path) in files.into_iter().take(extra) {
        let _ = std::fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests;
