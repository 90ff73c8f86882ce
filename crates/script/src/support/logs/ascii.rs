//! The writer of text and JSON (`Log::WRITER_ASCII`).

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use flate2::Compression;
use flate2::write::GzEncoder;

use super::{JsonFormat, LogFile, StringPolicy, TextFormat, TimeFormat, reason};
use crate::support::field::{Column, Field};
use crate::support::format::{escape, time};

const SHADOW_PREFIX: &str = ".shadow.";

/// Options of the writer: the constants of the module `LogAscii`, which the `$config` of a filter may change.
#[derive(Clone, Debug)]
pub struct AsciiConfig {
    /// Separators and texts of empty and unset values.
    pub text: TextFormat,
    /// The JSON format; `None` for text.
    pub json: Option<JsonFormat>,
    /// Whether to write to standard output.
    pub to_stdout: bool,
    /// Whether header lines and a closing line are written.
    pub include_meta: bool,
    /// Prefix of header lines.
    pub meta_prefix: Vec<u8>,
    /// Whether the header is only a line of column names.
    pub tsv: bool,
    /// Compression level; 0 for none.
    pub gzip_level: u32,
    /// The extension of compressed files.
    pub gzip_extension: String,
    /// Whether a marker file next to the log records that it is not rotated.
    pub leftover_rotation: bool,
    /// `Log::default_logdir`.
    pub log_dir: String,
    /// The extension of logs: `ZEEK_LOG_SUFFIX`.
    pub extension: String,
    /// The JSON format to use if JSON is enabled.
    pub json_format: JsonFormat,
}

impl Default for AsciiConfig {
    fn default() -> Self {
        AsciiConfig {
            text: TextFormat::default(),
            json: None,
            to_stdout: false,
            include_meta: true,
            meta_prefix: b"#".to_vec(),
            tsv: false,
            gzip_level: 0,
            gzip_extension: "gz".to_owned(),
            leftover_rotation: false,
            log_dir: String::new(),
            extension: "log".to_owned(),
            json_format: JsonFormat::default(),
        }
    }
}

impl AsciiConfig {
    /// Applies the `$config` of a filter; unknown options are ignored.
    ///
    /// # Errors
    ///
    /// Zeek's message for an invalid value; the writer is then not opened.
    pub fn apply<'c>(
        &mut self,
        options: impl IntoIterator<Item = (&'c str, &'c str)>,
    ) -> Result<(), String> {
        let switch = |name: &str, value: &str| match value {
            "T" => Ok(true),
            "F" => Ok(false),
            _ => Err(format!(
                "invalid value for '{name}', must be a string and either \"T\" or \"F\""
            )),
        };
        let mut use_json = self.json.is_some();
        for (name, value) in options {
            match name {
                "tsv" => self.tsv = switch(name, value)?,
                "gzip_level" => self.gzip_level = gzip_level(value)?,
                "use_json" => use_json = switch(name, value)?,
                "enable_utf_8" => self.text.utf8 = switch(name, value)?,
                "output_to_stdout" => self.to_stdout = switch(name, value)?,
                "separator" => self.text.separator = value.into(),
                "set_separator" => self.text.set_separator = value.into(),
                "empty_field" => self.text.empty_field = value.into(),
                "unset_field" => self.text.unset_field = value.into(),
                "meta_prefix" => self.meta_prefix = value.into(),
                "json_timestamps" => self.json_format.times = times(value)?,
                "json_include_unset_fields" => {
                    self.json_format.include_unset = switch(name, value)?;
                }
                "json_string_escape_policy" => self.json_format.strings = policy(value)?,
                "gzip_file_extension" => self.gzip_extension = value.to_owned(),
                _ => {}
            }
        }
        self.json = use_json.then_some(self.json_format);
        // JSON objects contain the column names.
        self.include_meta &= !use_json;
        Ok(())
    }

    fn suffix(&self) -> String {
        let mut suffix = format!(".{}", self.extension);
        if self.gzip_level > 0 {
            suffix.push('.');
            suffix.push_str(if self.gzip_extension.is_empty() {
                "gz"
            } else {
                &self.gzip_extension
            });
        }
        suffix
    }
}

fn gzip_level(value: &str) -> Result<u32, String> {
    // As in C, text after the number is ignored.
    let digits = value.trim_start();
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    match digits[..end].parse() {
        Err(_) if end == 0 && !digits.starts_with('-') => Ok(0),
        Ok(level @ 0..=9) => Ok(level),
        _ => Err("invalid value for 'gzip_level', must be a number between 0 and 9.".to_owned()),
    }
}

fn times(value: &str) -> Result<TimeFormat, String> {
    Ok(match value {
        "JSON::TS_EPOCH" => TimeFormat::Epoch,
        "JSON::TS_MILLIS" => TimeFormat::Millis,
        "JSON::TS_MILLIS_UNSIGNED" => TimeFormat::MillisUnsigned,
        "JSON::TS_ISO8601" => TimeFormat::Iso8601,
        _ => return Err(format!("Invalid JSON timestamp format: {value}")),
    })
}

fn policy(value: &str) -> Result<StringPolicy, String> {
    Ok(match value {
        "JSON::STRING_ESCAPE_POLICY_HEX" => StringPolicy::Hex,
        "JSON::STRING_ESCAPE_POLICY_PUA" => StringPolicy::Pua,
        "JSON::STRING_ESCAPE_POLICY_TSV" => StringPolicy::Tsv,
        _ => return Err(format!("Invalid JSON string escape policy: {value}")),
    })
}

/// A log that was rotated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rotated {
    /// Its new name.
    pub new_name: String,
    /// The name that it had.
    pub old_name: String,
}

enum Sink {
    Plain(BufWriter<File>),
    Gzip(Box<GzEncoder<BufWriter<File>>>),
}

impl Sink {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Sink::Plain(file) => file.write_all(bytes),
            Sink::Gzip(file) => file.write_all(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Sink::Plain(file) => file.flush(),
            // Flushing compressed data costs space; all data is complete once the file is closed.
            Sink::Gzip(_) => Ok(()),
        }
    }

    fn close(self) -> io::Result<()> {
        match self {
            Sink::Plain(mut file) => file.flush(),
            Sink::Gzip(file) => file.finish()?.flush(),
        }
    }
}

/// Writes one log. The file is opened immediately, and after a rotation with the next row.
pub struct AsciiWriter {
    file: LogFile,
    config: AsciiConfig,
    columns: Vec<Column>,
    sink: Option<Sink>,
    name: PathBuf,
    /// Whether the file was closed without its closing line: the next row is appended.
    is_parked: bool,
    /// Whether each row is written to the file immediately.
    unbuffered: bool,
    row: Vec<u8>,
    scratch: Vec<u8>,
    /// Whether the format is that of Zeek's logs by default.
    is_default_format: bool,
}

/// A row of text under construction.
pub struct TextRow {
    text: Vec<u8>,
    scratch: Vec<u8>,
    begins: bool,
    is_default_format: bool,
}

impl TextRow {
    /// Whether the format is that of Zeek's logs by default.
    pub fn is_default_format(&self) -> bool {
        self.is_default_format
    }

    /// Appends a field to a row in [the default format](Self::is_default_format): `write` appends text that
    /// needs no escaping.
    #[inline]
    pub fn add_unescaped(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        if !std::mem::replace(&mut self.begins, false) {
            self.text.push(b'\t');
        }
        write(&mut self.text);
    }
}

impl AsciiWriter {
    /// Opens the file of a log and writes its header.
    ///
    /// # Errors
    ///
    /// Zeek's message.
    pub fn open(file: LogFile, config: AsciiConfig, columns: Vec<Column>) -> Result<Self, String> {
        let is_default_format = config.text == TextFormat::default();
        let mut writer = AsciiWriter {
            file,
            config,
            columns,
            sink: None,
            name: PathBuf::new(),
            is_parked: false,
            unbuffered: false,
            row: Vec::new(),
            scratch: Vec::new(),
            is_default_format,
        };
        writer.reopen()?;
        Ok(writer)
    }

    /// The name of the file.
    #[must_use]
    pub fn file_name(&self) -> &Path {
        &self.name
    }

    fn is_special(path: &str) -> bool {
        path.starts_with("/dev/")
    }

    fn uses_shadow(&self) -> bool {
        self.config.leftover_rotation && self.file.rotation_interval > 0.0
    }

    fn reopen(&mut self) -> Result<(), String> {
        let path =
            if self.config.to_stdout { "/dev/stdout".to_owned() } else { self.file.path.clone() };
        self.name = PathBuf::from(&path);
        let special = Self::is_special(&path);
        if !special {
            let suffix = self.config.suffix();
            let joined = if path.starts_with('/') || self.config.log_dir.is_empty() {
                path.clone()
            } else {
                Path::new(&self.config.log_dir).join(&path).display().to_string()
            };
            self.name = PathBuf::from(joined + &suffix);
            if self.uses_shadow() {
                self.write_shadow(&suffix)?;
            }
        }
        let shown = self.name.display().to_string();
        let opened = OpenOptions::new().write(true).create(true).truncate(true).open(&self.name);
        let opened = opened.map_err(|error| format!("cannot open {shown}: {}", reason(&error)))?;
        // Output to a terminal or a pipe must be visible immediately.
        self.unbuffered |= special;
        self.sink = Some(self.sink_of(opened));
        let header = self.header(&path);
        self.write_bytes(&header)
    }

    /// Whether the file can be closed and reopened; false for devices.
    #[must_use]
    pub fn can_park(&self) -> bool {
        !Self::is_special(&self.name.display().to_string())
    }

    /// Closes the file without its closing line, until the next row.
    ///
    /// # Errors
    ///
    /// Zeek's message.
    pub fn park(&mut self) -> Result<(), String> {
        let Some(sink) = self.sink.take() else { return Ok(()) };
        self.is_parked = true;
        (self.row, self.scratch) = (Vec::new(), Vec::new());
        sink.close().map_err(|error| {
            format!("error writing to {}: {}", self.name.display(), reason(&error))
        })
    }

    /// Reopens the file. If it was removed meanwhile, a new one begins with a header.
    fn unpark(&mut self) -> Result<(), String> {
        self.is_parked = false;
        let cannot =
            |error: io::Error| format!("cannot open {}: {}", self.name.display(), reason(&error));
        let file = OpenOptions::new().append(true).create(true).open(&self.name);
        let file = file.map_err(cannot)?;
        let is_new = file.metadata().map_err(cannot)?.len() == 0;
        self.sink = Some(self.sink_of(file));
        if !is_new {
            return Ok(());
        }
        let header = self.header(&self.file.path);
        self.write_bytes(&header)
    }

    fn sink_of(&self, file: File) -> Sink {
        let buffered = BufWriter::with_capacity(64 << 10, file);
        match self.config.gzip_level {
            0 => Sink::Plain(buffered),
            level => Sink::Gzip(Box::new(GzEncoder::new(buffered, Compression::new(level.min(9))))),
        }
    }

    /// Writes the marker file of a log that is not rotated: its extension and the postprocessor.
    fn write_shadow(&self, suffix: &str) -> Result<(), String> {
        let shadow = prefixed(&self.name, SHADOW_PREFIX);
        let temporary = prefixed(&shadow, ".tmp");
        let text = format!("{suffix}\n{}\n", self.file.postprocessor);
        fs::write(&temporary, text)
            .map_err(|error| format!("cannot open {}: {}", temporary.display(), reason(&error)))?;
        fs::rename(&temporary, &shadow).map_err(|error| {
            let _ = fs::remove_file(&temporary);
            format!(
                "Unable to rename {} to {}: {}",
                temporary.display(),
                shadow.display(),
                reason(&error)
            )
        })
    }

    fn header(&self, path: &str) -> Vec<u8> {
        if !self.config.include_meta {
            return Vec::new();
        }
        let separator = &self.config.text.separator;
        let names: Vec<&[u8]> = self.columns.iter().map(|column| column.name.as_bytes()).collect();
        let names = names.join(separator.as_slice());
        if self.config.tsv {
            return [names.as_slice(), b"\n"].concat();
        }
        let types: Vec<Vec<u8>> =
            self.columns.iter().map(|column| column.kind.to_string().into_bytes()).collect();
        let mut header = self.config.meta_prefix.clone();
        header.extend_from_slice(b"separator ");
        blanks_escaped(&mut header, separator);
        header.push(b'\n');
        let escaped = |text: &[u8]| {
            let mut escaped = Vec::new();
            blanks_escaped(&mut escaped, text);
            escaped
        };
        for (name, value) in [
            ("set_separator", escaped(&self.config.text.set_separator)),
            ("empty_field", escaped(&self.config.text.empty_field)),
            ("unset_field", escaped(&self.config.text.unset_field)),
            ("path", escaped(path.as_bytes())),
            ("open", now()),
            ("fields", names),
            ("types", types.join(separator.as_slice())),
        ] {
            self.header_line(&mut header, name, &value);
        }
        header
    }

    fn header_line(&self, out: &mut Vec<u8>, name: &str, value: &[u8]) {
        out.extend_from_slice(&self.config.meta_prefix);
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(&self.config.text.separator);
        out.extend_from_slice(value);
        out.push(b'\n');
    }

    fn write_bytes(&mut self, bytes: &[u8]) -> Result<(), String> {
        let Some(sink) = &mut self.sink else { return Ok(()) };
        let written = sink
            .write_all(bytes)
            .and_then(|()| if self.unbuffered { sink.flush() } else { Ok(()) });
        written.map_err(|error| {
            format!("error writing to {}: {}", self.name.display(), reason(&error))
        })
    }

    /// Writes a row.
    ///
    /// # Errors
    ///
    /// Zeek's message; the log is then abandoned.
    pub fn write(&mut self, fields: &[Field<'_>]) -> Result<(), String> {
        let mut row = std::mem::take(&mut self.row);
        row.clear();
        match &self.config.json {
            Some(json) => drop(json.row(&mut row, &self.columns, fields)),
            None => self.config.text.row(&mut row, fields),
        }
        self.finish_row(row)
    }

    /// Begins a row of text to [add](Self::add) fields to; `None` if rows are JSON.
    pub fn begin_row(&mut self) -> Option<TextRow> {
        if self.config.json.is_some() {
            return None;
        }
        let mut text = std::mem::take(&mut self.row);
        text.clear();
        let scratch = std::mem::take(&mut self.scratch);
        Some(TextRow { text, scratch, begins: true, is_default_format: self.is_default_format })
    }

    /// Adds the next field of a row.
    pub fn add(&self, row: &mut TextRow, field: &Field<'_>) {
        let begins = std::mem::replace(&mut row.begins, false);
        self.config.text.add(&mut row.text, &mut row.scratch, field, begins);
    }

    /// Writes a row that was [begun](Self::begin_row).
    ///
    /// # Errors
    ///
    /// Zeek's message; the log is then abandoned.
    pub fn end_row(&mut self, row: TextRow) -> Result<(), String> {
        self.scratch = row.scratch;
        self.finish_row(row.text)
    }

    fn finish_row(&mut self, mut row: Vec<u8>) -> Result<(), String> {
        if self.is_parked {
            self.unpark()?;
        } else if self.sink.is_none() {
            self.reopen()?;
        }
        row.push(b'\n');
        // A row must not begin like a header line.
        if row.starts_with(&self.config.meta_prefix) {
            let first = format!("\\x{:02x}", row[0]);
            row.splice(..1, first.into_bytes());
        }
        let written = self.write_bytes(&row);
        self.row = row;
        written
    }

    /// Whether rows are buffered (`Log::set_buf`).
    pub fn set_buffered(&mut self, buffered: bool) {
        self.unbuffered = !buffered || Self::is_special(&self.name.display().to_string());
    }

    /// Writes all buffered rows to the file.
    ///
    /// # Errors
    ///
    /// Zeek's message.
    pub fn flush(&mut self) -> Result<(), String> {
        let Some(sink) = &mut self.sink else { return Ok(()) };
        sink.flush().map_err(|error| {
            format!("error writing to {}: {}", self.name.display(), reason(&error))
        })
    }

    fn close(&mut self) -> Result<(), String> {
        if self.is_parked {
            self.unpark()?;
        }
        if self.sink.is_some() && self.config.include_meta && !self.config.tsv {
            let mut line = Vec::new();
            self.header_line(&mut line, "close", &now());
            self.write_bytes(&line)?;
        }
        match self.sink.take() {
            None => Ok(()),
            Some(sink) => sink.close().map_err(|error| {
                format!("error writing to {}: {}", self.name.display(), reason(&error))
            }),
        }
    }

    /// Closes the file and renames it to `path` plus the extension of logs. Returns `None` if there is no file
    /// to rotate.
    ///
    /// # Errors
    ///
    /// Zeek's message.
    pub fn rotate(&mut self, path: &str) -> Result<Option<Rotated>, String> {
        if self.sink.is_none() && !self.is_parked || Self::is_special(&self.file.path) {
            return Ok(None);
        }
        self.close()?;
        let new_name = format!("{path}{}", self.config.suffix());
        let old_name = self.name.display().to_string();
        fs::rename(&self.name, &new_name).map_err(|error| {
            format!("failed to rename {old_name} to {new_name}: {}", reason(&error))
        })?;
        if self.uses_shadow() {
            let shadow = prefixed(&self.name, SHADOW_PREFIX);
            fs::remove_file(&shadow).map_err(|error| {
                format!("cannot unlink {}: {}", shadow.display(), reason(&error))
            })?;
        }
        Ok(Some(Rotated { new_name, old_name }))
    }

    /// Writes the closing line and closes the file.
    ///
    /// # Errors
    ///
    /// Zeek's message.
    pub fn finish(mut self) -> Result<(), String> {
        self.close()
    }
}

impl Drop for AsciiWriter {
    fn drop(&mut self) {
        let _ = self.close();
    }
}

/// A log that an earlier run did not rotate.
#[derive(Clone, Debug, PartialEq)]
pub struct UnrotatedLog {
    /// The log.
    pub file: PathBuf,
    /// The name without folder and extension.
    pub path: String,
    /// Its extension, including the dot.
    pub extension: String,
    /// The name of the postprocessor function; empty for the default one.
    pub postprocessor: String,
    /// When it was opened, in seconds since 1970.
    pub opened: f64,
    /// When it was last written to.
    pub closed: f64,
    /// The marker file, to be removed after rotation.
    pub shadow: PathBuf,
}

/// The unrotated logs in a folder. Marker files of missing logs are removed.
///
/// # Errors
///
/// Zeek's message if the folder cannot be read.
pub fn leftover_logs(
    folder: &Path,
    config: &AsciiConfig,
) -> Result<(Vec<UnrotatedLog>, Vec<String>), String> {
    let entries = fs::read_dir(folder).map_err(|error| {
        format!(
            "failed to open directory '{}' in search of leftover logs: {}",
            folder.display(),
            reason(&error)
        )
    })?;
    let (mut found, mut problems) = (Vec::new(), Vec::new());
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(log) = name.strip_prefix(SHADOW_PREFIX) else { continue };
        let (shadow, file) = (entry.path(), folder.join(log));
        if !file.is_file() {
            if let Err(error) = fs::remove_file(&shadow) {
                problems.push(format!(
                    "cannot unlink stale {}: {}",
                    shadow.display(),
                    reason(&error)
                ));
            }
            continue;
        }
        match leftover(&file, shadow, config) {
            Ok(leftover) => found.push(leftover),
            Err(error) => {
                problems
                    .push(format!("failed to process leftover log '{}': {error}", file.display()));
            }
        }
    }
    found.sort_by(|a, b| a.file.cmp(&b.file));
    Ok((found, problems))
}

fn leftover(file: &Path, shadow: PathBuf, config: &AsciiConfig) -> Result<UnrotatedLog, String> {
    let text = fs::read_to_string(&shadow)
        .map_err(|error| format!("Failed to open {}: {}", shadow.display(), reason(&error)))?;
    let mut lines = text.split('\n');
    let (extension, postprocessor) = match (lines.next(), lines.next()) {
        (Some(extension), Some(postprocessor)) => (extension.to_owned(), postprocessor.to_owned()),
        _ => (config.suffix(), String::new()),
    };
    let time = |path: &Path| {
        let modified = fs::metadata(path).and_then(|meta| meta.modified());
        let modified = modified
            .map_err(|error| format!("Failed to stat {}: {}", path.display(), reason(&error)))?;
        Ok::<f64, String>(
            modified.duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs() as f64),
        )
    };
    let (opened, closed) = (time(&shadow)?, time(file)?);
    let path = file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    Ok(UnrotatedLog {
        file: file.to_owned(),
        path,
        extension,
        postprocessor,
        opened,
        closed,
        shadow,
    })
}

/// The path with `prefix` prepended to the file name.
fn prefixed(path: &Path, prefix: &str) -> PathBuf {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    path.with_file_name(format!("{prefix}{name}"))
}

/// The wall-clock time in the format of header lines.
fn now() -> Vec<u8> {
    let seconds =
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64);
    let mut text = Vec::new();
    time::civil_format(&mut text, b"%Y-%m-%d-%H-%M-%S", seconds);
    text
}

/// A separator or path in a header line: blanks and unprintable characters are escaped.
fn blanks_escaped(out: &mut Vec<u8>, text: &[u8]) {
    for byte in text {
        if *byte == b' ' { out.extend_from_slice(b"\\x20") } else { escape::printed(out, &[*byte]) }
    }
}
