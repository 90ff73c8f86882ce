//! Finds the captures and logs at paths.

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

/// Content of a file.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    /// Packets, from which every log can be created.
    Capture,
    /// Rows of a log.
    Log {
        /// Name of the log.
        log: String,
        /// Columns of the log.
        schema: Schema,
        format: Format,
    },
}

/// Format of a log file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Parquet,
    Tsv,
    Json,
    /// Rows of several logs, each with the member `_path`.
    MixedJson,
}

/// The path of a capture on standard input.
pub(crate) const STDIN: &str = "-";

/// Lists all captures and logs at these paths: files, folders (recursively), and glob patterns. Other files in folders
/// are added to `skipped`.
pub(crate) fn list(paths: &[PathBuf], skipped: &mut Vec<String>) -> Result<Vec<Source>, Error> {
    let mut sources = Vec::new();
    let named = |paths: &[PathBuf], path: &Path| paths.iter().any(|named| named == path);
    for path in paths {
        if path == Path::new(STDIN) {
            sources.push(Source { path: path.clone(), content: Content::Capture });
        } else if path.is_dir() {
            let before = sources.len();
            list_folder(path, &mut sources, skipped)?;
            if sources.len() == before {
                let path = path.display();
                return Err(Error::input(format!(
                    "{path}: the folder contains no captures or logs"
                )));
            }
        } else if path.exists() {
            sources.extend(detect(path)?);
        } else {
            expand_pattern(path, &mut sources, skipped)?;
        }
    }
    let mut seen = BTreeSet::new();
    sources.retain(|source: &Source| {
        // A file that is given several times is read once.
        let path = source.path.canonicalize();
        let log = match &source.content {
            Content::Capture => None,
            Content::Log { log, .. } => Some(log.clone()),
        };
        seen.insert((path.unwrap_or_else(|_| source.path.clone()), log))
    });
    let copies = copies(&sources);
    let is_copy = copies.iter().zip(&sources).map(|(copy, source)| {
        // A file that is given by its own path is kept.
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

/// Returns for each source the file in its folder that has the same log in a preferred format: files whose names differ
/// only in their extensions.
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

fn expand_pattern(
    path: &Path,
    sources: &mut Vec<Source>,
    skipped: &mut Vec<String>,
) -> Result<(), Error> {
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
            list_folder(&path, sources, skipped)?;
        } else {
            detect_or_skip(&path, sources, skipped);
        }
    }
    if any { Ok(()) } else { Err(Error::input(format!("{text}: no file matches this pattern"))) }
}

fn list_folder(
    folder_path: &Path,
    sources: &mut Vec<Source>,
    skipped: &mut Vec<String>,
) -> Result<(), Error> {
    let failed = |e: io::Error| Error::input(format!("{}: {e}", folder_path.display()));
    let entries = std::fs::read_dir(folder_path).map_err(failed)?;
    let mut entries = entries.collect::<io::Result<Vec<_>>>().map_err(failed)?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        // Skips capture indexes, files being written, and hidden files.
        if name.starts_with('.') || name.ends_with(".gannet") || name.ends_with(".tmp") {
            continue;
        }
        // Links to folders are not followed, because they may form a cycle.
        if entry.file_type().map_err(failed)?.is_dir() {
            list_folder(&path, sources, skipped)?;
        } else if path.is_file() {
            detect_or_skip(&path, sources, skipped);
        }
    }
    Ok(())
}

fn detect_or_skip(path: &Path, sources: &mut Vec<Source>, skipped: &mut Vec<String>) {
    match detect(path) {
        Ok(found) => sources.extend(found),
        Err(error) => skipped.push(error.to_string()),
    }
}

/// Detects the format of a file by its first bytes. Returns one source, or one for each log in the file.
pub(crate) fn detect(path: &Path) -> Result<Vec<Source>, Error> {
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
        // Ignores an error of truncated compressed data, because the capture reader reports it better.
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
                gannet_capture::Error::NotACapture { found: "text", .. } => {
                    failed(&"not a log; logs are TSV with Zeek's header, JSON lines or Parquet")
                }
                other => Error::input(other.to_string()),
            })?;
            Content::Capture
        }
    };
    Ok(vec![Source { path: path.to_owned(), content }])
}

/// Returns the log name from a file name: `conn` of `conn.log`, `conn.00:00:00-01:00:00.log.gz` and `conn.parquet`.
fn stem(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.split('.').next().unwrap_or_default().to_owned()
}

/// Whether a file is compressed with gzip or zstd.
pub(crate) fn is_compressed(path: &Path) -> bool {
    let mut head = [0; 4];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut head));
    read.is_ok() && (head.starts_with(&GZIP_MAGIC) || head == ZSTD_MAGIC)
}

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Opens a text file, which may be compressed with gzip or zstd.
pub(crate) fn open(path: &Path) -> io::Result<Box<dyn BufRead + Send>> {
    let mut file = BufReader::with_capacity(1 << 16, File::open(path)?);
    let head = file.fill_buf()?;
    Ok(if head.starts_with(&GZIP_MAGIC) {
        Box::new(BufReader::with_capacity(1 << 16, flate2::bufread::MultiGzDecoder::new(file)))
    } else if head.starts_with(&ZSTD_MAGIC) {
        Box::new(BufReader::with_capacity(1 << 16, zstd::Decoder::with_buffer(file)?))
    } else {
        Box::new(file)
    })
}
