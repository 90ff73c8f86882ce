//! The coverage file: parsing and writing.

use std::fs::File;
use std::hash::{BuildHasher as _, RandomState};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use super::Counts;

/// Suffix of a file name that is replaced by a unique one in each run.
const UNIQUE_SUFFIX: &str = "XXXXXX";

/// Maximum number of names to try.
const MAX_TRIES: u32 = 1_000;

/// Parses a line into its count, location and text.
pub(super) fn parse(line: &[u8]) -> Option<(u64, &[u8], &[u8])> {
    let mut parts = line.split(|byte| *byte == b'\t').filter(|part| !part.is_empty());
    let (count, place, text) = (parts.next()?, parts.next()?, parts.next()?);
    let count = std::str::from_utf8(count).ok()?.parse().ok()?;
    parts.next().is_none().then_some((count, place, text))
}

/// Writes the file and creates missing folders.
///
/// # Errors
/// A one-line error message.
pub(super) fn write(path: &Path, counts: &Counts) -> Result<(), String> {
    let failed = |error: std::io::Error| {
        let reason = crate::support::logs::reason(&error);
        let path = path.display();
        format!("Failed to open ZEEK_PROFILER_FILE destination '{path}' for writing: {reason}")
    };
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    let mut text = Vec::new();
    for ((place, what), count) in counts {
        let parts = [count.to_string().as_bytes(), place, what].join(&b'\t');
        text.extend_from_slice(&parts);
        text.push(b'\n');
    }
    let name = path.to_str().and_then(|name| name.strip_suffix(UNIQUE_SUFFIX));
    let mut file = match name.filter(|name| !name.contains(UNIQUE_SUFFIX)) {
        Some(begin) => unique(begin).ok_or_else(|| {
            let path = path.display();
            format!("Failed to generate unique file name from ZEEK_PROFILER_FILE: {path}")
        })?,
        None => File::create(path).map_err(failed)?,
    };
    file.write_all(&text).map_err(|error| format!("ZEEK_PROFILER_FILE {}: {error}", path.display()))
}

/// Creates a new file whose name begins with `begin`.
fn unique(begin: &str) -> Option<File> {
    const LETTERS: &[u8; 62] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    let random = RandomState::new();
    (0..MAX_TRIES).find_map(|attempt| {
        let mut number = random.hash_one(attempt);
        let mut name = begin.to_owned();
        for _ in UNIQUE_SUFFIX.chars() {
            let letter = usize::try_from(number % 62).unwrap_or_default();
            name.push(char::from(LETTERS[letter]));
            number /= 62;
        }
        File::create_new(PathBuf::from(name)).ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_three_parts() {
        assert_eq!(parse(b"12\ta, line 3\tx = 1;"), Some((12, &b"a, line 3"[..], &b"x = 1;"[..])));
        for line in [&b"12"[..], b"12\ta", b"x\ta\tb", b"1\ta\tb\tc", b"-1\ta\tb"] {
            assert_eq!(parse(line), None, "{line:?}");
        }
    }

    #[test]
    fn a_pattern_gets_a_new_name_each_time() {
        let folder = std::env::temp_dir().join(format!("gannet-coverage-{}", std::process::id()));
        let key = (b"a, line 1".to_vec(), b"x;".to_vec());
        let counts = Counts::from([(key, 7)]);
        for _ in 0..2 {
            write(&folder.join("deep/c.XXXXXX"), &counts).unwrap();
        }
        write(&folder.join("deep/XXXXXX.c"), &counts).unwrap();
        let mut names: Vec<_> = std::fs::read_dir(folder.join("deep")).unwrap().collect();
        assert_eq!(names.len(), 3);
        for entry in names.drain(..) {
            let path = entry.unwrap().path();
            assert!(!path.ends_with("c.XXXXXX"));
            assert_eq!(std::fs::read_to_string(path).unwrap(), "7\ta, line 1\tx;\n");
        }
        std::fs::remove_dir_all(&folder).unwrap();
        let error = write(Path::new("/dev/null/x"), &counts).unwrap_err();
        assert!(error.starts_with("Failed to open ZEEK_PROFILER_FILE destination '/dev/null/x'"));
    }
}
