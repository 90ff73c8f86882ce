//! From paths to captures and logs.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::io::BufRead;
use std::io::BufReader;
use std::io::Read;
use std::path::Path;
use std::path::PathBuf;

use arrow_schema::Schema;
use gannet_columns::ROW;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::Error;
use crate::text;

/// A file that queries read.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) path: PathBuf,
    pub(crate) content: Content,
}

/// What is in a file.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    /// Packets: every log can be made of them.
    Capture,
    /// Rows of one log.
    Log {
        /// Its name.
        log: String,
        /// Its columns.
        schema: Schema,
        format: Format,
    },
}

/// How rows are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Parquet,
    Tsv,
    Json,
    /// Rows of several logs, which they name as `_path`.
    MixedJson,
}

/// The path that stands for a capture on standard input.
pub(crate) const STDIN: &str = "-";

/// All captures and logs of these paths: files, folders with all that is below them, and patterns. What a folder has
/// in addition to captures and logs is skipped, and named in `skipped`.
pub(crate) fn list(paths: &[PathBuf], skipped: &mut Vec<String>) -> Result<Vec<Source>, Error> {
    let mut sources = Vec::new();
    let named = |paths: &[PathBuf], path: &Path| paths.iter().any(|named| named == path);
    for path in paths {
        if path == Path::new(STDIN) {
            sources.push(Source { path: path.clone(), content: Content::Capture });
        } else if path.is_dir() {
            let before = sources.len();
            folder(path, &mut sources, skipped)?;
            if sources.len() == before {
                let path = path.display();
                return Err(Error::input(format!("{path}: a folder without captures and logs")));
            }
        } else if path.exists() {
            sources.extend(file(path)?);
        } else {
            pattern(path, &mut sources, skipped)?;
        }
    }
    let mut seen = BTreeSet::new();
    sources.retain(|source: &Source| {
        // The rows of a file that is given several times count once.
        let path = source.path.canonicalize();
        let log = match &source.content {
            Content::Capture => None,
            Content::Log { log, .. } => Some(log.clone()),
        };
        seen.insert((path.unwrap_or_else(|_| source.path.clone()), log))
    });
    let copies = copies(&sources);
    let is_copy = copies.iter().zip(&sources).map(|(copy, source)| {
        // A file that is named itself is meant.
        let copy = copy.as_ref().filter(|_| !named(paths, &source.path))?;
        skipped.push(format!(
            "{}: {} has the same log in another format",
            source.path.display(),
            copy.display()
        ));
        Some(())
    });
    let is_copy: Vec<bool> = is_copy.map(|copy| copy.is_some()).collect();
    let mut at = is_copy.into_iter();
    sources.retain(|_| !at.next().unwrap_or_default());
    Ok(sources)
}

/// Of each source, the file of its folder that has the same log in a better format: one whose name is the same up to what
/// names the format.
fn copies(sources: &[Source]) -> Vec<Option<PathBuf>> {
    const FORMATS: [Format; 4] = [Format::Parquet, Format::Tsv, Format::Json, Format::MixedJson];
    let rank = |format: Format| FORMATS.iter().position(|known| *known == format);
    let key = |source: &Source| {
        let Content::Log { log, .. } = &source.content else { return None };
        let name = source.path.file_name()?.to_string_lossy();
        let mut name = &*name;
        for ending in [".gz", ".zst", ".log", ".json", ".jsonl", ".ndjson", ".tsv", ".parquet"] {
            name = name.strip_suffix(ending).unwrap_or(name);
        }
        Some((log.clone(), source.path.parent()?.to_owned(), name.to_owned()))
    };
    let mut best = BTreeMap::new();
    for source in sources {
        let Content::Log { format, .. } = &source.content else { continue };
        let Some(key) = key(source) else { continue };
        let entry = best.entry(key).or_insert((rank(*format), *format, source.path.clone()));
        if rank(*format) < entry.0 {
            *entry = (rank(*format), *format, source.path.clone());
        }
    }
    let copy = |source: &Source| {
        let Content::Log { format, .. } = &source.content else { return None };
        let (_, better, path) = best.get(&key(source)?)?;
        (better != format).then(|| path.clone())
    };
    sources.iter().map(copy).collect()
}

fn pattern(path: &Path, to: &mut Vec<Source>, skipped: &mut Vec<String>) -> Result<(), Error> {
    let text = path.to_string_lossy();
    if !text.contains(['*', '?', '[']) {
        return Err(Error::input(format!("{text}: no such file or folder")));
    }
    let found = glob::glob(&text).map_err(|e| Error::input(format!("{text}: {e}")))?;
    let mut any = false;
    for path in found {
        let path = path.map_err(|e| Error::input(e.to_string()))?;
        any = true;
        if path.is_dir() {
            folder(&path, to, skipped)?;
        } else {
            found_file(&path, to, skipped);
        }
    }
    if any { Ok(()) } else { Err(Error::input(format!("{text}: no file matches this pattern"))) }
}

fn folder(
    folder_path: &Path,
    to: &mut Vec<Source>,
    skipped: &mut Vec<String>,
) -> Result<(), Error> {
    let failed = |e: io::Error| Error::input(format!("{}: {e}", folder_path.display()));
    let entries = std::fs::read_dir(folder_path).map_err(failed)?;
    let mut entries = entries.collect::<io::Result<Vec<_>>>().map_err(failed)?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        // Indexes of captures, files that are being written, hidden files.
        if name.starts_with('.') || name.ends_with(".gannet") || name.ends_with(".tmp") {
            continue;
        }
        // Links to folders are not followed: they may lead in a circle.
        if entry.file_type().map_err(failed)?.is_dir() {
            folder(&path, to, skipped)?;
        } else if path.is_file() {
            found_file(&path, to, skipped);
        }
    }
    Ok(())
}

fn found_file(path: &Path, to: &mut Vec<Source>, skipped: &mut Vec<String>) {
    match file(path) {
        Ok(sources) => to.extend(sources),
        Err(error) => skipped.push(error.to_string()),
    }
}

/// What a file is, by its first bytes: one source, or one for each log whose rows it has.
pub(crate) fn file(path: &Path) -> Result<Vec<Source>, Error> {
    let failed = |e: &dyn std::fmt::Display| Error::input(format!("{}: {e}", path.display()));
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(4).read_to_end(&mut head));
    read.map_err(|e| failed(&e))?;
    let content = if head == b"PAR1" {
        let file = File::open(path).map_err(|e| failed(&e))?;
        let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|e| failed(&e))?;
        let metadata = builder.metadata().file_metadata().key_value_metadata();
        let named = metadata.and_then(|all| all.iter().find(|pair| pair.key == "zeek.path"));
        let log = named.and_then(|pair| pair.value.clone()).unwrap_or_else(|| stem(path));
        let fields = builder.schema().fields().iter().filter(|field| field.name() != ROW);
        let schema = Schema::new(fields.cloned().collect::<Vec<_>>());
        Content::Log { log, schema, format: Format::Parquet }
    } else {
        let mut input = open(path).map_err(|e| failed(&e))?;
        // Packed data that is cut has an error here; a capture reader reports it better.
        let first = input.fill_buf().unwrap_or_default();
        if first.starts_with(b"#separator") || first.starts_with(b"#fields") {
            let (log, schema) = text::tsv_schema(input).map_err(|e| failed(&e))?;
            Content::Log { log: log.unwrap_or_else(|| stem(path)), schema, format: Format::Tsv }
        } else if first.trim_ascii_start().starts_with(b"{") {
            if text::names_logs(&mut input) {
                let input = open(path).map_err(|e| failed(&e))?;
                let logs = text::mixed_schemas(input).map_err(|e| failed(&e))?.into_iter();
                let format = Format::MixedJson;
                let content = logs.map(|(log, schema)| Content::Log { log, schema, format });
                let source = |content| Source { path: path.to_owned(), content };
                return Ok(content.map(source).collect());
            }
            let input = open(path).map_err(|e| failed(&e))?;
            let log = stem(path);
            let schema = text::json_schema(input, &log).map_err(|e| failed(&e))?;
            Content::Log { log, schema, format: Format::Json }
        } else {
            gannet_capture::Reader::open(path).map_err(|error| match error {
                gannet_capture::Error::NotACapture { found: "text", .. } => failed(
                    &"text that is no log: logs are TSV with Zeek's header, JSON lines or Parquet",
                ),
                other => Error::input(other.to_string()),
            })?;
            Content::Capture
        }
    };
    Ok(vec![Source { path: path.to_owned(), content }])
}

/// The name of a log by that of its file: `conn` of `conn.log`, `conn.00:00:00-01:00:00.log.gz` and `conn.parquet`.
fn stem(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.split('.').next().unwrap_or_default().to_owned()
}

/// Whether a file is packed with gzip or zstd.
pub(crate) fn is_packed(path: &Path) -> bool {
    let mut head = [0; 4];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut head));
    read.is_ok() && (head.starts_with(&GZIP) || head == ZSTD)
}

const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The text of a file, which may be packed with gzip or zstd.
pub(crate) fn open(path: &Path) -> io::Result<Box<dyn BufRead + Send>> {
    let mut file = BufReader::with_capacity(1 << 16, File::open(path)?);
    let head = file.fill_buf()?;
    Ok(if head.starts_with(&GZIP) {
        Box::new(BufReader::with_capacity(1 << 16, flate2::bufread::MultiGzDecoder::new(file)))
    } else if head.starts_with(&ZSTD) {
        Box::new(BufReader::with_capacity(1 << 16, zstd::Decoder::with_buffer(file)?))
    } else {
        Box::new(file)
    })
}
