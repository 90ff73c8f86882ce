//! Extracted files, written to a folder.

use std::collections::HashMap;
use std::fs;
use std::fs::OpenOptions;
use std::io;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;

use gannet_engine::Contents;
use gannet_engine::Extract;
use gannet_engine::Extractable;
use gannet_engine::Extracted;

/// Buffer of each file, in bytes. Files are opened only to append a full buffer, since any number may be in transit.
const BUFFER: usize = 64 << 10;

/// Selects the files to extract, and writes them to a folder.
#[derive(Debug)]
pub(crate) struct ToFolder {
    folder: PathBuf,
    /// Patterns of MIME types, like `image/*`; an empty list selects all files.
    types: Vec<String>,
    /// Maximum number of bytes written per file.
    max_size: u64,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Number of files with each name: a file that continues after a timeout is another one.
    names: Mutex<HashMap<String, u64>>,
    /// The first error.
    error: Mutex<Option<io::Error>>,
}

/// Parses a pattern of MIME types. A pattern without a slash or a star matches no type and is refused.
pub(crate) fn pattern(text: &str) -> Result<String, String> {
    match text.contains(['/', '*']) {
        true => Ok(text.to_owned()),
        false => Err(format!("'{text}' is not a MIME type, like image/png or image/*")),
    }
}

impl ToFolder {
    pub(crate) fn new(folder: &Path, types: &[String], max_size: u64) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let types = types.iter().map(|t| t.to_ascii_lowercase()).collect();
        Ok(Self { folder: folder.to_owned(), types, max_size, shared: Arc::default() })
    }

    /// The error of the first file that could not be written, if any.
    pub(crate) fn error(&self) -> Option<io::Error> {
        lock(&self.shared.error).take()
    }

    fn wants(&self, mime_type: Option<&str>) -> bool {
        let mime_type = mime_type.unwrap_or("");
        self.types.is_empty() || self.types.iter().any(|glob| matches(glob, mime_type))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Extract for ToFolder {
    fn open(&self, file: &Extractable) -> Option<Box<dyn Contents>> {
        if !self.wants(file.mime_type) {
            return None;
        }
        let stem = format!("{}-{}", file.source, file.fuid);
        let count = {
            let mut names = lock(&self.shared.names);
            let count = names.entry(stem.clone()).or_default();
            *count += 1;
            *count
        };
        let again = if count > 1 { format!("-{count}") } else { String::new() };
        let name = format!("{stem}{again}.{}", suffix(file.mime_type));
        Some(Box::new(OneFile {
            path: self.folder.join(&name),
            name,
            remaining: self.max_size,
            size: 0,
            cutoff: false,
            is_created: false,
            buffer: Vec::new(),
            shared: Arc::clone(&self.shared),
        }))
    }
}

/// A file that is being written.
#[derive(Debug)]
struct OneFile {
    path: PathBuf,
    name: String,
    /// Number of bytes that the limit still allows.
    remaining: u64,
    size: u64,
    cutoff: bool,
    /// Whether a part of it is written to the disk.
    is_created: bool,
    buffer: Vec<u8>,
    shared: Arc<Shared>,
}

impl OneFile {
    /// Takes up to `len` bytes from the limit and returns how many it allows.
    fn fit(&mut self, len: u64) -> u64 {
        let fit = len.min(self.remaining);
        self.cutoff |= fit < len;
        self.remaining -= fit;
        self.size += fit;
        fit
    }

    fn write_out(&mut self) {
        let mut options = OpenOptions::new();
        options.create(true).write(true).append(self.is_created).truncate(!self.is_created);
        let written = options.open(&self.path).and_then(|mut file| file.write_all(&self.buffer));
        if let Err(error) = written {
            let named = io::Error::new(error.kind(), format!("{}: {error}", self.path.display()));
            lock(&self.shared.error).get_or_insert(named);
        }
        self.is_created = true;
        self.buffer.clear();
    }
}

impl Contents for OneFile {
    fn data(&mut self, data: &[u8]) {
        let fit = self.fit(data.len() as u64) as usize;
        for piece in data.get(..fit).unwrap_or_default().chunks(BUFFER) {
            self.buffer.extend_from_slice(piece);
            if self.buffer.len() >= BUFFER {
                self.write_out();
            }
        }
    }

    /// Missing bytes become zeros, so that the following bytes keep their offsets.
    fn gap(&mut self, len: u64) {
        let mut remaining = self.fit(len);
        while remaining > 0 {
            let piece = remaining.min(BUFFER as u64);
            self.buffer.resize(self.buffer.len() + piece as usize, 0);
            remaining -= piece;
            if self.buffer.len() >= BUFFER {
                self.write_out();
            }
        }
    }

    fn finish(&mut self) -> Extracted {
        if !self.is_created || !self.buffer.is_empty() {
            self.write_out();
        }
        Extracted { name: std::mem::take(&mut self.name), size: self.size, cutoff: self.cutoff }
    }
}

/// The usual file name suffix of a MIME type.
fn suffix(mime_type: Option<&str>) -> &'static str {
    match mime_type.unwrap_or_default() {
        "text/plain" => "txt",
        "text/html" => "html",
        "text/json" | "application/json" => "json",
        "text/xml" | "application/xml" => "xml",
        "application/javascript" | "text/javascript" => "js",
        "application/pdf" => "pdf",
        "application/zip" => "zip",
        "application/gzip" | "application/x-gzip" => "gz",
        "application/x-dosexec" => "exe",
        "application/x-executable" => "elf",
        "application/x-shockwave-flash" => "swf",
        "application/msword" => "doc",
        "image/gif" => "gif",
        "image/jpeg" => "jpg",
        "image/png" => "png",
        "image/svg+xml" => "svg",
        "audio/mpeg" => "mp3",
        "video/mp4" => "mp4",
        "application/x-x509-user-cert"
        | "application/x-x509-ca-cert"
        | "application/x-x509-cert" => "der",
        _ => "bin",
    }
}

/// Whether a type matches a pattern, in which `*` stands for any characters.
fn matches(glob: &str, text: &str) -> bool {
    let mut parts = glob.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else {
        return false;
    };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = rest.get(at + part.len()..).unwrap_or_default(),
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_of_types() {
        let yes =
            [("image/*", "image/png"), ("*", ""), ("text/html", "text/html"), ("*/*n", "a/gn")];
        let no =
            [("image/*", "text/image/"), ("text/html", "text/htm"), ("a*b*a", "ab"), ("", "x")];
        assert!(yes.iter().all(|(glob, text)| matches(glob, text)));
        assert!(no.iter().all(|(glob, text)| !matches(glob, text)));
    }
}
