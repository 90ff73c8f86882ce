//! Resolves the paths on the command line to files and folders.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::Component;
use std::path::Path;
use std::path::PathBuf;

use anyhow::Context as _;
use gannet_capture::FileId;

use crate::terminal::Terminal;

/// Suffixes of captures and of compression, which folders of logs are named without.
const SUFFIXES: [&str; 10] =
    [".pcap", ".pcapng", ".cap", ".ntar", ".dmp", ".trace", ".gz", ".zst", ".xz", ".lz4"];

/// A file, and whether it was named or found in a folder.
pub(crate) struct FoundFile {
    pub(crate) path: PathBuf,
    pub(crate) named: bool,
    /// Its path below the folder on the command line, or the path itself.
    pub(crate) below: PathBuf,
}

/// All files of the given paths. The files of a folder are sorted by name.
pub(crate) fn files(paths: &[PathBuf]) -> io::Result<Vec<FoundFile>> {
    let mut found = Vec::new();
    for path in paths {
        if path.is_dir() {
            list(path, path, &mut found)?;
        } else {
            let below = below(path);
            found.push(FoundFile { path: path.clone(), named: true, below });
        }
    }
    Ok(found)
}

/// Warnings about the captures of a stream, before it is read.
pub(crate) fn warnings(stream: &gannet_capture::Stream) -> impl Iterator<Item = String> {
    let skipped = stream.skipped().iter().map(|error| format!("skipped {error}"));
    let repeated = stream.repeated().iter().map(|path| {
        format!("{} is given more than once; its packets are read each time", path.display())
    });
    skipped.chain(repeated)
}

/// An error for each given folder without captures, of which nothing was read.
pub(crate) fn without_captures<'p>(
    paths: &'p [PathBuf],
    captures: &'p [PathBuf],
) -> impl Iterator<Item = gannet_capture::Error> + 'p {
    let is_empty = |path: &&PathBuf| {
        path.is_dir() && captures.iter().all(|capture| !capture.starts_with(path))
    };
    let found = "a directory without captures";
    let error =
        move |path: &PathBuf| gannet_capture::Error::NotACapture { file: path.clone(), found };
    paths.iter().filter(is_empty).map(error)
}

/// A relative path itself; the file name of a path that is absolute or leads out of the current folder.
fn below(path: &Path) -> PathBuf {
    let plain = |part: &Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    if path.components().all(|part| plain(&part)) {
        return path.components().filter(|part| *part != Component::CurDir).collect();
    }
    path.file_name().map(PathBuf::from).unwrap_or_default()
}

/// Lists the files of a folder and its subfolders. Errors name the folder that cannot be read.
fn list(top: &Path, folder: &Path, found: &mut Vec<FoundFile>) -> io::Result<()> {
    let entries = fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let mut entries = entries
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", folder.display())))?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        // Links to folders are not followed: they may form a cycle.
        if entry.file_type()?.is_dir() && gannet_capture::is_index(&path) {
            continue;
        }
        if entry.file_type()?.is_dir() {
            list(top, &path, found)?;
        } else if path.is_file() {
            let below = path.strip_prefix(top).unwrap_or(&path).to_owned();
            found.push(FoundFile { path, named: false, below });
        }
    }
    Ok(())
}

/// An input file, which output must not overwrite.
pub(crate) struct InputFile {
    path: PathBuf,
    id: FileId,
}

impl InputFile {
    /// The regular files of the given paths, including the one at standard input for `-`.
    pub(crate) fn all(paths: &[PathBuf]) -> Vec<Self> {
        // What cannot be listed is reported when it is opened.
        let mut found = files(paths).unwrap_or_default();
        for file in &mut found {
            if file.path == Path::new("-") {
                file.path = "/dev/stdin".into();
            }
        }
        let input = |file: FoundFile| FileId::of(&file.path).map(|id| Self { path: file.path, id });
        found.into_iter().filter_map(input).collect()
    }

    /// Refuses an output that is the same file as one of the inputs, under any name.
    pub(crate) fn refuse(inputs: &[Self], output: &Path) -> anyhow::Result<()> {
        let Some(id) = FileId::of(output) else { return Ok(()) };
        let Some(input) = inputs.iter().find(|input| input.id == id) else { return Ok(()) };
        let (output, input) = (output.display(), input.path.display());
        anyhow::bail!("{output} is the same file as the input {input}: write to another file")
    }
}

/// Refuses a suffix of a compression that gannet does not write.
pub(crate) fn refuse_suffix(output: &Path) -> anyhow::Result<()> {
    const UNKNOWN: [&str; 10] =
        [".bz2", ".bz", ".lzma", ".lzo", ".lz", ".Z", ".br", ".sz", ".zip", ".7z"];
    let name = output.file_name().unwrap_or_default().to_string_lossy();
    let Some(suffix) = UNKNOWN.iter().find(|suffix| name.ends_with(**suffix)) else {
        return Ok(());
    };
    let output = output.display();
    anyhow::bail!(
        "{output}: {suffix} cannot be written; use .gz, .zst, .xz, .lz4 or no compression"
    )
}

/// The format that is written for a name without the suffix of a capture; `None` for a name with one.
pub(crate) fn unknown_format(output: &Path) -> Option<&'static str> {
    let is_known = |path: &Path| {
        let suffix = path.extension().unwrap_or_default().to_string_lossy();
        // Rotated captures are named trace.pcap1 and so on.
        let plain = suffix.to_ascii_lowercase();
        let plain = plain.trim_end_matches(|c: char| c.is_ascii_digit());
        ["pcapng", "ntar"].contains(&&*suffix) || ["pcap", "cap", "dmp"].contains(&plain)
    };
    let is_packed = gannet_capture::Compression::from_suffix(output).is_some();
    let inner = output.file_stem().map(Path::new).filter(|_| is_packed).unwrap_or(output);
    let is_device = fs::metadata(output).is_ok_and(|of| !of.is_file());
    if output == Path::new("-") || is_device || is_known(inner) {
        return None;
    }
    Some(match gannet_capture::Format::of_name(output) {
        gannet_capture::Format::PcapNg => "pcapng",
        _ => "pcap",
    })
}

/// Gives each file an output folder of its own, named after it.
pub(crate) struct Folders {
    parent: PathBuf,
    taken: HashSet<PathBuf>,
    /// Files whose folders have a number: file, folder, and the name that was taken.
    numbered: Vec<[PathBuf; 3]>,
}

impl Folders {
    pub(crate) fn new(parent: &Path) -> Self {
        Self { parent: parent.to_owned(), taken: HashSet::new(), numbered: Vec::new() }
    }

    /// `PARENT/a/day1` for `a/day1.pcap.gz`, and `PARENT/a/day1-2` for the next one of that name.
    pub(crate) fn of(&mut self, file: &FoundFile) -> PathBuf {
        let name = match file.below.file_name() {
            Some(name) if name != "-" => stem(&name.to_string_lossy()).to_owned(),
            _ => "stdin".to_owned(),
        };
        let parent = self.parent.join(file.below.parent().unwrap_or(Path::new("")));
        let mut folder = parent.join(&name);
        let mut number = 2_u64;
        // A file of that name may be the capture itself.
        while self.taken.contains(&folder) || folder.is_file() {
            folder = parent.join(format!("{name}-{number}"));
            number += 1;
        }
        if number > 2 {
            self.numbered.push([file.path.clone(), folder.clone(), parent.join(&name)]);
        }
        self.taken.insert(folder.clone());
        folder
    }

    /// Reports the file of each folder that has a number.
    pub(crate) fn report(&self, terminal: &Terminal) {
        for paths in &self.numbered {
            let [file, folder, taken] = paths.each_ref().map(|path| path.display());
            terminal.note(&format_args!(
                "{file}: its logs are in {folder}, because {taken} is already used"
            ));
        }
    }
}

fn stem(name: &str) -> &str {
    let mut stem = name;
    while let Some(shorter) = SUFFIXES.iter().find_map(|s| stem.strip_suffix(s))
        && !shorter.is_empty()
    {
        stem = shorter;
    }
    stem
}

/// Makes the folder that an option names, where it is missing.
pub(crate) fn make_folder(folder: &Path, option: &str) -> anyhow::Result<()> {
    let is_file = folder.exists() && !folder.is_dir();
    anyhow::ensure!(!is_file, "{}: is a file, but {option} expects a folder", folder.display());
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_named_after_files_and_unique() {
        let mut folders = Folders::new(Path::new("/nonexistent"));
        let mut of = |file: &str| {
            let found = files(&[PathBuf::from(file)]).unwrap().remove(0);
            folders.of(&found).to_string_lossy().into_owned()
        };
        assert_eq!(of("a/day1.pcap.gz"), "/nonexistent/a/day1");
        assert_eq!(of("./a/day1.pcapng"), "/nonexistent/a/day1-2");
        assert_eq!(of("day1"), "/nonexistent/day1");
        assert_eq!(of("/somewhere/day1.pcap"), "/nonexistent/day1-2");
        assert_eq!(of("../elsewhere/day1.pcap"), "/nonexistent/day1-3");
        assert_eq!(of("v1.2.trace"), "/nonexistent/v1.2");
        assert_eq!(of(".pcap"), "/nonexistent/.pcap");
        assert_eq!(of("-"), "/nonexistent/stdin");
    }

    #[test]
    fn names_that_choose_no_format_are_known() {
        for known in ["a.pcap", "a.pcapng.zst", "a.cap", "a.PCAP.gz", "a.pcap3", "-", "/dev/null"] {
            assert_eq!(unknown_format(Path::new(known)), None, "{known}");
        }
        for unknown in ["a.txt", "a", "a.gz", "a.PCAPNG", "a.pcapng2", "a.pcap.old"] {
            assert_eq!(unknown_format(Path::new(unknown)), Some("pcap"), "{unknown}");
        }
    }

    #[test]
    fn a_folder_of_logs_is_not_named_like_a_capture() {
        let folder = std::env::temp_dir().join(format!("gannet-paths-{}", std::process::id()));
        fs::create_dir_all(folder.join("b")).unwrap();
        fs::write(folder.join("day"), "").unwrap();
        fs::write(folder.join("b/x"), "").unwrap();
        // An index is not a capture.
        fs::create_dir_all(folder.join("day.gannet")).unwrap();
        fs::write(folder.join("day.gannet/packets"), "").unwrap();
        let day = FoundFile { path: "day".into(), named: true, below: "day".into() };
        assert_eq!(Folders::new(&folder).of(&day), folder.join("day-2"));
        let found = files(&[folder.clone(), "given".into()]).unwrap();
        let seen: Vec<_> = found.iter().map(|f| (f.path.clone(), f.named)).collect();
        assert_eq!(found[0].below, Path::new("b/x"));
        let expected = [
            (folder.join("b/x"), false),
            (folder.join("day"), false),
            (PathBuf::from("given"), true),
        ];
        assert_eq!(seen, expected);
        fs::remove_dir_all(folder).unwrap();
    }
}
