//! The cache of parsed scripts: the program and the values of globals after Zeek's own scripts and before the
//! user's first script.
//!
//! Parsing Zeek's scripts takes most of the start-up time, and its result depends on few inputs. It is stored
//! in a file that the next start loads. A run with the cache has the same results as one without:
//!
//! - **Key**: version and identity of the program, search path, and the options that affect these scripts. It determines the file name.
//! - **Answers**: a file is valid only while everything that the parser queried has the same answer: contents of scripts, paths
//!   that were searched, environment variables that scripts read.
//! - **Calls**: scripts may have called only functions whose result depends only on their arguments ([`PURE`]). Nothing is stored
//!   if scripts called another function, if anything was reported or printed, or if seeds are set. Conditions of `@if` that
//!   depend on the command-line arguments are evaluated again.
//! - **Integrity**: a file is written under a temporary name and renamed. It begins with a digest of the rest. A file with a wrong
//!   digest, of another user, or writable by others is not read. The reader checks all lengths.
//!
//! | module | purpose |
//! |---|---|
//! | `conditions` | conditions that depend on the command-line arguments |
//! | `codec` | encoding of numbers, lists and variants |
//! | `program` | encoding of programs |
//! | `heap` | encoding of the values of globals |
//! | `stored` | items of arenas that are decoded on demand |
//! | `probe` | the parser's queries of the file system |

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

pub(crate) use codec::{Codec, Damaged, DecodeResult, Reader, Writer, fields};
pub(crate) use stored::Stored;

use crate::command::Options;
use crate::evaluate::{Constant, Evaluate as _};
use crate::ids::ExprId;
use crate::literal::Literal;
use crate::parse::Position;
use crate::program::Program;
use crate::vm::Machine;
use probe::{FileIdentity, Kind};

/// First bytes of a file; changed whenever the format changes.
const MAGIC: &[u8; 16] = b"gannet scripts 2";

/// Maximum number of files in the folder; the oldest ones are removed.
const MAX_FILES: usize = 16;

/// Maximum size of a file, in bytes.
const MAX_FILE_SIZE: u64 = 1 << 28;

/// Functions that scripts may call while they are parsed: the result depends only on arguments, program and
/// options in the key.
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

/// The function that returns the command-line arguments.
const ARGUMENTS: &str = "zeek_args";

/// Whether the result of a function depends only on its arguments.
fn is_repeatable(name: &str) -> bool {
    PURE.binary_search(&name).is_ok()
}

/// A digest of 32 bytes, by HighwayHash.
type Digest = [u8; 32];

/// Records what scripts do while they are parsed.
#[derive(Default)]
pub struct Recorder {
    /// Whether scripts did something that may have another result at the next start.
    pub(crate) uncacheable: bool,
    environment: BTreeMap<String, Option<Vec<u8>>>,
    /// Whether a condition is being evaluated.
    in_condition: bool,
    /// Whether the condition read the command-line arguments.
    read_arguments: bool,
    /// Conditions that read the command-line arguments, with their results.
    conditions: Vec<(ExprId, Literal)>,
}

/// Environment variables that scripts read, with their values.
type Environment = Vec<(Box<str>, Option<Rc<[u8]>>)>;

impl Recorder {
    /// Records a call of a built-in function; `first` is its first argument.
    pub(crate) fn call(&mut self, name: &str, first: &[u8]) {
        if name == "getenv" {
            let variable = String::from_utf8_lossy(first).into_owned();
            let value = environment_variable(&variable);
            self.environment.insert(variable, value);
        } else if name == ARGUMENTS && self.in_condition {
            self.read_arguments = true;
        } else if !is_repeatable(name) {
            self.uncacheable = true;
        }
    }

    /// Records that the evaluation of a condition begins.
    pub(crate) fn condition_begins(&mut self) {
        (self.in_condition, self.read_arguments) = (true, false);
    }

    /// Records the result of the condition.
    pub(crate) fn condition_ends(
        &mut self,
        program: &Program,
        expr: ExprId,
        result: Option<&Constant>,
    ) {
        self.in_condition = false;
        if !std::mem::take(&mut self.read_arguments) {
            return;
        }
        match result {
            Some(Constant::Literal(literal)) if conditions::changes_nothing(program, expr) => {
                self.conditions.push((expr, literal.clone()));
            }
            _ => self.uncacheable = true,
        }
    }
}

fn environment_variable(name: &str) -> Option<Vec<u8>> {
    // A variable cannot have such a name, and looking it up would panic.
    if name.is_empty() || name.contains(['=', '\0']) {
        return None;
    }
    std::env::var_os(name).map(|value| value.into_encoded_bytes())
}

/// The cache file for a set of options.
#[derive(Debug)]
pub struct Cache {
    file: PathBuf,
    key: Digest,
    /// Whether relative paths are part of the key, together with the working directory.
    is_anchored: bool,
}

impl Cache {
    /// The cache for these options; `None` if the cache must not be used.
    #[must_use]
    pub fn new(options: &Options, search_path: &[String]) -> Option<Self> {
        let folder = match std::env::var_os("XDG_CACHE_HOME").filter(|path| !path.is_empty()) {
            Some(path) => PathBuf::from(path),
            None => {
                Path::new(&std::env::var_os("HOME").filter(|home| !home.is_empty())?).join(".cache")
            }
        };
        if folder.is_absolute() { Self::in_subfolder(&folder, options, search_path) } else { None }
    }

    /// Like [`Cache::new`], in a subfolder of `folder`.
    #[must_use]
    pub fn in_subfolder(folder: &Path, options: &Options, search_path: &[String]) -> Option<Self> {
        if options.no_script_cache || options.rich || options.profile.is_some() {
            return None;
        }
        let mut key = Writer::default();
        key.bytes.extend_from_slice(MAGIC);
        key.block(env!("CARGO_PKG_VERSION").as_bytes());
        // Builds of one version differ, so the executable is part of the key.
        FileIdentity::from_metadata(&std::env::current_exe().and_then(std::fs::metadata).ok()?)
            .encode(&mut key);
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
            flag.encode(&mut key);
        }
        let key = digest(&key.bytes);
        let name: String = key.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        Some(Self { file: folder.join("gannet").join(format!("scripts-{name}")), key, is_anchored })
    }

    /// Loads the file into a new program and a new machine. `None` if no valid file exists; both are then
    /// unchanged.
    pub(crate) fn load(&self, program: &mut Program, machine: &mut Machine) -> Option<Position> {
        let bytes = Rc::new(self.read()?);
        let body = self.verified_body(&bytes)?;
        let mut from = Reader::of_file(&bytes, bytes.len() - body.len());
        if !self.is_valid(&mut from).unwrap_or(false) {
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
                machine.discard_state();
                None
            }
        }
    }

    fn read(&self) -> Option<Vec<u8>> {
        let mut file = File::open(&self.file).ok()?;
        let data = file.metadata().ok()?;
        let is_own = data.uid() == rustix::process::geteuid().as_raw() && data.mode() & 0o022 == 0;
        if !data.is_file() || !is_own || data.len() > MAX_FILE_SIZE {
            return None;
        }
        let mut bytes = Vec::with_capacity(usize::try_from(data.len()).ok()? + 1);
        file.read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    /// The bytes after the digest, if the file has this key and a valid digest.
    fn verified_body<'b>(&self, bytes: &'b [u8]) -> Option<&'b [u8]> {
        let (magic, rest) = bytes.split_first_chunk::<16>()?;
        let (key, rest) = rest.split_first_chunk::<32>()?;
        let (expected, body) = rest.split_first_chunk::<32>()?;
        (magic == MAGIC && *key == self.key && *expected == digest(body)).then_some(body)
    }

    /// Whether everything that the parser queried has the same answer.
    fn is_valid(&self, from: &mut Reader<'_>) -> DecodeResult<bool> {
        let written = i64::decode(from)?;
        let environment: Environment = Codec::decode(from)?;
        let paths: Vec<(Box<str>, Kind)> = Codec::decode(from)?;
        let files: Vec<(Box<str>, (FileIdentity, Digest))> = Codec::decode(from)?;
        let same = environment
            .iter()
            .all(|(name, value)| environment_variable(name).as_deref() == value.as_deref());
        Ok(same
            && files
                .iter()
                .all(|(path, (identity, digest))| is_unchanged(path, identity, digest, written))
            && paths.iter().all(|(path, kind)| probe::is_unchanged(path, *kind)))
    }

    /// Stores the parsed program. A failure only costs the next start its cache.
    pub(crate) fn store(
        &self,
        program: &Program,
        position: &Position,
        state: &[u8],
        recorder: &Recorder,
    ) {
        // A failure is ignored: scripts run without a cache.
        let _ = self.try_store(program, position, state, recorder);
    }

    fn try_store(
        &self,
        program: &Program,
        position: &Position,
        state: &[u8],
        recorder: &Recorder,
    ) -> Option<()> {
        let answers = probe::end()?;
        let mut to = Writer::default();
        seconds_now()?.encode(&mut to);
        let environment: Environment = recorder
            .environment
            .iter()
            .map(|(name, value)| (name.as_str().into(), value.as_deref().map(Rc::from)))
            .collect();
        environment.encode(&mut to);
        let mut digests = BTreeMap::new();
        for (_, file) in program.sources.files.iter() {
            if !self.is_anchored && !Path::new(&*file.path).is_absolute() {
                return None;
            }
            digests.insert(&*file.path, digest(&file.text));
        }
        let mut files: Vec<(Box<str>, (FileIdentity, Digest))> =
            Vec::with_capacity(answers.files.len());
        for (path, identity) in &answers.files {
            let path = path.to_str()?;
            files.push((path.into(), (*identity, *digests.get(path)?)));
        }
        // Text from other sources has no file to compare with.
        if files.len() != digests.len() {
            return None;
        }
        let mut paths = answers.paths;
        // Existence is implied by the comparison of contents.
        paths.retain(|path, _| !answers.files.contains_key(path));
        probe::minimal_answers(&paths)?.encode(&mut to);
        files.encode(&mut to);
        recorder.conditions.encode(&mut to);
        position.encode(&mut to);
        program::encode(program, &mut to);
        to.bytes.extend_from_slice(state);

        let folder = self.file.parent()?;
        DirBuilder::new().recursive(true).mode(0o700).create(folder).ok()?;
        let mut file = NewFile::create_private(&self.file).ok()?;
        let head = [MAGIC.as_slice(), &self.key, &digest(&to.bytes)].concat();
        file.write_all(&head).and_then(|()| file.write_all(&to.bytes)).ok()?;
        // The digest detects a file that a power failure left incomplete.
        file.rename().ok()?;
        remove_oldest(folder);
        Some(())
    }
}

/// Conditions with their results.
type Conditions = Vec<(ExprId, Literal)>;

/// Decodes a program and a state into new ones.
fn restore(
    program: &mut Program,
    machine: &mut Machine,
    from: &mut Reader<'_>,
) -> DecodeResult<(Position, Conditions)> {
    let conditions: Conditions = Codec::decode(from)?;
    let position = Position::decode(from)?;
    program::decode(program, from)?;
    position.check(program)?;
    heap::decode(machine, program, from)?;
    let known = conditions.iter().all(|(expr, _)| program.exprs.find(*expr).is_some());
    if known && from.left.is_empty() { Ok((position, conditions)) } else { Err(Damaged) }
}

/// Whether conditions have the same results with the arguments of this run.
fn still_hold(program: &mut Program, machine: &mut Machine, conditions: &Conditions) -> bool {
    let holds = conditions.iter().all(|(expr, literal)| {
        let result = machine.evaluate(program, *expr);
        matches!(result, Ok(Constant::Literal(found)) if found == *literal)
    });
    // Discard the code that the evaluation compiled.
    machine.discard_code();
    holds
}

/// The encoded state of a machine; `None` if a value has no encoding.
pub(crate) fn state(machine: &Machine) -> Option<Vec<u8>> {
    let mut to = Writer::default();
    heap::encode(machine, &mut to)?;
    Some(to.bytes)
}

/// Fuzzing entry: decodes the part of a file after its digest.
#[doc(hidden)]
pub fn decode_untrusted(bytes: &[u8]) {
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

/// Whether a script has the same contents. Its metadata decide, unless it changed shortly before the cache was
/// written: then the contents are compared.
fn is_unchanged(path: &str, identity: &FileIdentity, expected: &Digest, written: i64) -> bool {
    let Ok(data) = std::fs::metadata(path) else { return false };
    if FileIdentity::from_metadata(&data) == *identity && !identity.is_younger_than(written - 2) {
        return data.is_file();
    }
    std::fs::read(path).is_ok_and(|text| digest(&text) == *expected)
}

/// Removes the oldest files beyond [`MAX_FILES`].
fn remove_oldest(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let mut files: Vec<(SystemTime, PathBuf)> = entries
        .filter_map(Result::ok)
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("scripts-"))
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    files.sort();
    let extra = files.len().saturating_sub(MAX_FILES);
    for (_, path) in files.into_iter().take(extra) {
        let _ = std::fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests;
