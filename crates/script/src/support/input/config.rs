//! Reader of configuration files: option values, one per line.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{BufRead, BufReader};

use super::{FileVersion, Message, MessageSink, Mode, PeriodicAction, Read, Source, ValueFormat};
use crate::support::field::{Field, Kind};

/// The type of a script option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OptionType {
    /// A type that can be read.
    Known(Kind),
    /// An unsupported type: its description.
    Unsupported(String),
}

/// Options: the constants of the module `InputConfig`, and the variables to set.
#[derive(Clone, Debug)]
pub struct ConfigOptions {
    /// The format of values. Unset values do not exist.
    pub values: ValueFormat,
    /// Whether an unreadable file is an error.
    pub fail_on_file_problem: bool,
    /// All options of the scripts by full name.
    pub options: HashMap<String, OptionType>,
}

impl Default for ConfigOptions {
    fn default() -> Self {
        let values = ValueFormat {
            empty_field: Vec::new(),
            unset_field: Vec::new(),
            ..ValueFormat::default()
        };
        ConfigOptions { values, fail_on_file_problem: false, options: HashMap::new() }
    }
}

pub(super) struct Config {
    source: Source,
    options: ConfigOptions,
    file: Option<BufReader<File>>,
    version: FileVersion,
    /// The last values read, by option.
    values: HashMap<String, Vec<u8>>,
}

impl Config {
    pub(super) fn new(source: Source, options: ConfigOptions) -> Self {
        Config {
            source,
            options,
            file: None,
            version: FileVersion::default(),
            values: HashMap::new(),
        }
    }

    /// Opens the file; returns whether reading may continue, possibly without a file.
    fn open_file(&mut self, out: &mut MessageSink) -> bool {
        if self.file.is_none() {
            let Ok(file) = File::open(&self.source.source) else {
                let fails = self.options.fail_on_file_problem;
                out.problem(fails, format!("Init: cannot open {}", self.source.source), true);
                return !fails;
            };
            self.file = Some(BufReader::new(file));
            out.end_quiet();
        }
        true
    }

    fn next_line(&mut self) -> Option<Vec<u8>> {
        let file = self.file.as_mut()?;
        loop {
            let mut line = Vec::new();
            if file.read_until(b'\n', &mut line).ok()? == 0 {
                return None;
            }
            if line.last() == Some(&b'\n') {
                line.pop();
            }
            if line.is_empty() {
                continue;
            }
            if line.last() == Some(&b'\r') {
                line.pop();
            }
            if line.first() != Some(&b'#') {
                return Some(line);
            }
        }
    }

    /// The name and the value of a line, without trailing separators and blanks.
    fn parts<'l>(&self, line: &'l [u8]) -> Option<(&'l [u8], &'l [u8])> {
        let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
        let separator = self.options.values.set_separator.first().copied();
        let end = line.iter().position(blank).filter(|end| *end > 0)?;
        let (name, rest) = line.split_at(end);
        let begin = rest.iter().position(|byte| !blank(byte)).unwrap_or(rest.len());
        let rest = &rest[begin..];
        let dropped = |byte: &u8| blank(byte) || Some(*byte) == separator;
        let len = rest
            .iter()
            .rposition(|byte| !dropped(byte))
            .map_or(usize::from(!rest.is_empty()), |at| at + 1);
        Some((name, &rest[..len]))
    }

    fn line(&mut self, line: &[u8], unseen: &mut HashSet<String>, out: &mut MessageSink) {
        let shown = String::from_utf8_lossy(line);
        let Some((name, value)) = self.parts(line) else {
            return out.warning(format!(
                "Could not parse '{shown}'; line has invalid format. Ignoring line."
            ));
        };
        let name = String::from_utf8_lossy(name).into_owned();
        let kind = match self.options.options.get(&name) {
            None => return out.warning(format!("Option '{name}' does not exist. Ignoring line.")),
            Some(OptionType::Unsupported(described)) => {
                return out.warning(format!(
                    "Option '{name}' has type '{described}', which is not supported for file input. Ignoring line."
                ));
            }
            Some(OptionType::Known(kind)) => kind.clone(),
        };
        let parsed = match self.options.values.parse(value, &name, &kind, out) {
            None => {
                return out
                    .warning(format!("Could not convert line '{shown}' to value. Ignoring line."));
            }
            Some(Field::Unset) => {
                return out.warning(format!("Line '{shown}' has no value. Ignoring line."));
            }
            Some(parsed) => parsed,
        };
        unseen.remove(&name);
        if self.values.get(&name).is_some_and(|known| known == value) {
            return;
        }
        self.values.insert(name.clone(), value.to_vec());
        let string = |text: &str| Field::String(text.to_owned().into_bytes().into());
        out.row(self.source.mode, vec![string(&name), Field::String(value.to_vec().into())], None);
        let arguments =
            vec![string(&self.source.name), string(&self.source.source), string(&name), parsed];
        out.messages.push(Message::Event("InputConfig::new_value", arguments));
    }
}

impl Read for Config {
    fn open(&mut self, out: &mut MessageSink) -> bool {
        self.update(out)
    }

    fn update(&mut self, out: &mut MessageSink) -> bool {
        let goes_on = !self.options.fail_on_file_problem;
        if !self.open_file(out) {
            return goes_on;
        }
        if self.source.mode == Mode::Reread {
            let Some(version) = FileVersion::from_path(&self.source.source) else {
                out.problem(
                    !goes_on,
                    format!("Could not get stat for {}", self.source.source),
                    true,
                );
                self.file = None;
                return goes_on;
            };
            if version == self.version {
                return true;
            }
            if self.version.inode != 0 {
                out.end_quiet();
            }
            self.version = version;
        }
        if self.source.mode != Mode::Stream || self.file.is_none() {
            self.file = None;
            self.open_file(out);
        }
        let mut unseen: HashSet<String> = self.values.keys().cloned().collect();
        while let Some(line) = self.next_line() {
            self.line(&line, &mut unseen, out);
        }
        if self.source.mode != Mode::Stream {
            out.end_of_send();
        }
        for name in unseen {
            self.values.remove(&name);
        }
        true
    }

    fn heartbeat(&mut self, _: &mut MessageSink) -> PeriodicAction {
        if self.source.mode == Mode::Manual {
            PeriodicAction::Nothing
        } else {
            PeriodicAction::Update
        }
    }
}
