//! Reader of text in columns whose names are on a line that begins with `#fields`.

use std::fs::File;
use std::io::{BufRead, BufReader};

use super::{FileVersion, MessageSink, Mode, PeriodicAction, Read, Source, ValueFormat, prefixed};
use crate::support::field::{Column, Field, Kind, Protocol};

/// Options: the constants of the module `InputAscii`, which `$config` may change.
#[derive(Clone, Debug)]
pub struct AsciiOptions {
    /// Column separator; only its first byte counts.
    pub separator: Vec<u8>,
    /// Text format of values.
    pub values: ValueFormat,
    /// Whether an invalid line ends reading.
    pub fail_on_invalid_lines: bool,
    /// Whether an unreadable file is an error.
    pub fail_on_file_problem: bool,
    /// The folder of relative paths.
    pub path_prefix: String,
}

impl Default for AsciiOptions {
    fn default() -> Self {
        AsciiOptions {
            separator: b"\t".to_vec(),
            values: ValueFormat::default(),
            fail_on_invalid_lines: false,
            fail_on_file_problem: false,
            path_prefix: String::new(),
        }
    }
}

/// The position of a column of the stream in the file.
struct ColumnPosition {
    column: Column,
    index: Option<usize>,
    protocol_index: Option<usize>,
}

pub(super) struct Ascii {
    source: Source,
    columns: Vec<Column>,
    options: AsciiOptions,
    path: String,
    file: Option<BufReader<File>>,
    header: Vec<u8>,
    positions: Vec<ColumnPosition>,
    version: FileVersion,
    /// Number of lines read since the file was first opened.
    line: Option<u64>,
}

impl Ascii {
    pub(super) fn new(source: Source, columns: Vec<Column>, mut options: AsciiOptions) -> Self {
        for (name, value) in &source.config {
            match name.as_str() {
                "separator" => options.separator = value.clone().into(),
                "set_separator" => options.values.set_separator = value.clone().into(),
                "empty_field" => options.values.empty_field = value.clone().into(),
                "unset_field" => options.values.unset_field = value.clone().into(),
                "fail_on_invalid_lines" => options.fail_on_invalid_lines = value.starts_with('T'),
                "fail_on_file_problem" => options.fail_on_file_problem = value.starts_with('T'),
                _ => {}
            }
        }
        let path = prefixed(&source.source, &options.path_prefix);
        Ascii {
            source,
            columns,
            options,
            path,
            file: None,
            header: Vec::new(),
            positions: Vec::new(),
            version: FileVersion::default(),
            line: None,
        }
    }

    fn separator(&self) -> u8 {
        self.options.separator.first().copied().unwrap_or(b'\t')
    }

    fn open_file(&mut self, out: &mut MessageSink) -> bool {
        if self.file.is_some() {
            return true;
        }
        let fails = self.options.fail_on_file_problem;
        let opened = File::open(&self.path)
            .ok()
            .filter(|file| file.metadata().is_ok_and(|meta| !meta.is_dir()));
        let Some(file) = opened else {
            out.problem(fails, format!("Init: cannot open {}", self.path), true);
            return false;
        };
        self.file = Some(BufReader::new(file));
        if !self.read_header(false, out) {
            let message = format!("Init: cannot open {}; problem reading file header", self.path);
            out.problem(fails, message, true);
            self.file = None;
            return false;
        }
        let line = *self.line.get_or_insert(0);
        out.position = Some((self.path.clone(), line));
        out.end_quiet();
        true
    }

    fn read_header(&mut self, cached: bool, out: &mut MessageSink) -> bool {
        let fails = self.options.fail_on_file_problem;
        if !cached {
            let Some(line) = self.next_line(out) else {
                let path = &self.path;
                let message =
                    format!("Could not read input data file {path}; first line could not be read");
                out.problem(fails, message, true);
                return false;
            };
            self.header = line;
        }
        let names: Vec<&[u8]> = split(&self.header, self.separator());
        let find = |name: &str| names.iter().position(|known| *known == name.as_bytes());
        let mut positions = Vec::with_capacity(self.columns.len());
        for column in &self.columns {
            let index = find(&column.name);
            if index.is_none() && !column.optional {
                let message = format!(
                    "Did not find requested field {} in input data file {}.",
                    column.name, self.path
                );
                out.problem(fails, message, true);
                return false;
            }
            let secondary =
                column.secondary.as_deref().filter(|name| !name.is_empty() && index.is_some());
            let protocol_index = secondary.and_then(find);
            if let Some(secondary) = secondary
                && protocol_index.is_none()
            {
                let message = format!(
                    "Could not find requested port type field {secondary} in input data file {}.",
                    self.path
                );
                out.problem(fails, message, true);
                return false;
            }
            positions.push(ColumnPosition { column: column.clone(), index, protocol_index });
        }
        self.positions = positions;
        true
    }

    /// The next line that is neither empty nor a comment; of the header line, the text after `#fields`.
    fn next_line(&mut self, out: &mut MessageSink) -> Option<Vec<u8>> {
        let separator = self.separator();
        let file = self.file.as_mut()?;
        loop {
            let mut line = Vec::new();
            if file.read_until(b'\n', &mut line).ok()? == 0 {
                return None;
            }
            if let Some(count) = &mut self.line {
                *count += 1;
                out.position = Some((self.path.clone(), *count));
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
            if let Some([first, names @ ..]) = line.strip_prefix(b"#fields")
                && *first == separator
                && !names.is_empty()
            {
                return Some(names.to_vec());
            }
        }
    }

    /// The values of a line; `Err` if reading ends, `Ok(None)` if the line is skipped.
    fn fields(
        &self,
        line: &[u8],
        out: &mut MessageSink,
    ) -> Result<Option<Vec<Field<'static>>>, ()> {
        let parts = split(line, self.separator());
        let mut fields = Vec::with_capacity(self.positions.len());
        for position in &self.positions {
            let Some(index) = position.index else {
                fields.push(Field::Unset);
                continue;
            };
            let last = parts.len() as i64 - 1;
            let secondary = position.protocol_index.map_or(-1, |index| index as i64);
            if index as i64 > last || secondary > last {
                let fails = self.options.fail_on_invalid_lines;
                let message = format!(
                    "Not enough fields in line '{}' of {}. Found {last} fields, want positions {index} and {secondary}",
                    String::from_utf8_lossy(line),
                    self.path
                );
                out.problem(fails, message, !fails);
                return if fails { Err(()) } else { Ok(None) };
            }
            let column = &position.column;
            let Some(mut value) =
                self.options.values.parse(parts[index], &column.name, &column.kind, out)
            else {
                let line = String::from_utf8_lossy(line);
                out.warning(format!(
                    "Could not convert line '{line}' of {} to Val. Ignoring line.",
                    self.path
                ));
                return Ok(None);
            };
            if let (Some(index), Field::Port(_, protocol), Kind::Port) =
                (position.protocol_index, &mut value, &column.kind)
            {
                *protocol = parse_protocol(parts[index], out);
            }
            fields.push(value);
        }
        Ok(Some(fields))
    }
}

/// The protocol with this name; [`Protocol::Unknown`] with a warning if the name is invalid.
pub(super) fn parse_protocol(name: &[u8], out: &mut MessageSink) -> Protocol {
    Protocol::parse(name).unwrap_or_else(|| {
        let name = String::from_utf8_lossy(name);
        out.warning(format!("Tried to parse invalid/unknown protocol: {name}"));
        Protocol::Unknown
    })
}

fn split(line: &[u8], separator: u8) -> Vec<&[u8]> {
    line.split(|byte| *byte == separator).collect()
}

impl Read for Ascii {
    fn open(&mut self, out: &mut MessageSink) -> bool {
        if self.options.separator.len() != 1 {
            out.error("separator length has to be 1. Separator will be truncated.");
        }
        if self.options.values.set_separator.len() != 1 {
            out.error("set_separator length has to be 1. Separator will be truncated.");
        }
        self.update(out)
    }

    fn update(&mut self, out: &mut MessageSink) -> bool {
        let goes_on = !self.options.fail_on_file_problem;
        if !self.open_file(out) {
            return goes_on;
        }
        self.line = Some(0);
        out.position = Some((self.path.clone(), 0));
        if self.source.mode == Mode::Reread {
            let Some(version) = FileVersion::from_path(&self.path) else {
                out.problem(!goes_on, format!("Could not get stat for {}", self.path), true);
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
        if self.source.mode == Mode::Stream {
            if !self.read_header(true, out) {
                return goes_on;
            }
        } else {
            self.file = None;
            self.open_file(out);
        }
        while let Some(line) = self.next_line(out) {
            match self.fields(&line, out) {
                Err(()) => return false,
                Ok(None) => {}
                Ok(Some(fields)) => {
                    out.end_quiet();
                    out.row(self.source.mode, fields, self.line);
                }
            }
        }
        if self.source.mode != Mode::Stream {
            out.end_of_send();
        }
        out.end_quiet();
        true
    }

    fn heartbeat(&mut self, out: &mut MessageSink) -> PeriodicAction {
        if !self.open_file(out) || self.source.mode == Mode::Manual {
            return PeriodicAction::Nothing;
        }
        PeriodicAction::Update
    }
}
