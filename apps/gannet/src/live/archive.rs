//! Processes rotated files: moves and compresses them, runs a program for each, and removes old ones.
//!
//! This runs in a thread of its own, so that a slow disk or program does not delay the capture.

use std::fs;
use std::fs::File;
use std::io;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::mpsc::Receiver;
use std::thread;
use std::time::Duration;
use std::time::Instant;
use std::time::SystemTime;

use gannet_log::CompletedFile;

use super::args::Args;
use super::args::Compress;
use super::times;
use super::times::Keep;

/// The processing of rotated files.
pub(crate) struct Archive {
    folder: PathBuf,
    to: Option<String>,
    postprocessor: Option<PathBuf>,
    rules: Rules,
    logs: Vec<&'static str>,
}

/// Rules that may change while the sensor runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules(Arc<Mutex<(Option<Compress>, Vec<Keep>)>>);

impl Rules {
    /// Sets the rules from the options.
    pub(crate) fn set(&self, args: &Args) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) =
            (args.rotate_compress, args.keep.clone());
    }

    fn compress(&self) -> Option<Compress> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0
    }

    fn keep(&self) -> Vec<Keep> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1.clone()
    }
}

/// Checks that a postprocessor can be executed.
///
/// # Errors
/// The reason why it cannot.
pub(crate) fn check_program(program: &Path) -> Result<(), String> {
    let is_executable =
        |path: &Path| path.metadata().map(|m| m.is_file() && m.permissions().mode() & 0o111 != 0);
    let why = if program.as_os_str().as_encoded_bytes().contains(&b'/') {
        match is_executable(program) {
            Ok(true) => return Ok(()),
            Ok(false) => "not an executable file".to_owned(),
            Err(error) => error.to_string(),
        }
    } else {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let found = |folder: PathBuf| is_executable(&folder.join(program)).unwrap_or(false);
        if std::env::split_paths(&path).any(found) {
            return Ok(());
        }
        "no such program in PATH".to_owned()
    };
    Err(format!("--postprocessor {}: {why}", program.display()))
}

/// Maximum run time of a program.
const TIMEOUT: Duration = Duration::from_secs(600);
/// Maximum number of runs of a program that fails.
const MAX_TRIES: u32 = 3;
/// Extension of incomplete files.
const INCOMPLETE: &str = "tmp";

impl Archive {
    pub(crate) fn new(args: &Args, rules: Rules, folder: &Path, logs: Vec<&'static str>) -> Self {
        Self {
            folder: folder.to_owned(),
            to: args.rotate_to.clone(),
            postprocessor: args.postprocessor.clone(),
            rules,
            logs,
        }
    }

    /// Processes files until the senders are dropped.
    pub(crate) fn work(&self, files: &Receiver<CompletedFile>) {
        self.remove_old();
        while let Ok(file) = files.recv() {
            if let Err(error) = self.process(&file) {
                let path = file.file.display();
                tracing::error!(file = %path, %error, "{path}: {error}");
            }
            self.remove_old();
        }
    }

    fn process(&self, file: &CompletedFile) -> io::Result<()> {
        let mut path = file.file.clone();
        if let Some(template) = &self.to {
            let folder = PathBuf::from(times::expand(template, file.opened));
            fs::create_dir_all(&folder)?;
            let to = unused_path(&folder.join(path.file_name().unwrap_or_default()));
            move_file(&path, &to)?;
            path = to;
        }
        // Parquet files are compressed already.
        let is_text = path.extension().is_some_and(|e| e == "log" || e == "json");
        if let Some(compression) = self.rules.compress().filter(|_| is_text) {
            path = compress(&path, compression)?;
        }
        if let Some(program) = &self.postprocessor {
            self.run(program, &path, file);
        }
        Ok(())
    }

    /// Runs the program with Zeek's arguments. The file stays, even if the program fails.
    fn run(&self, program: &Path, path: &Path, file: &CompletedFile) {
        for attempt in 1..=MAX_TRIES {
            let mut command = Command::new(program);
            command.arg(path).arg(&file.log);
            command.args([times::for_programs(file.opened), times::for_programs(file.closed)]);
            command.args([if file.terminating { "1" } else { "0" }, "ascii"]);
            command.stdin(Stdio::null()).stdout(Stdio::null());
            let failed = match command.spawn() {
                Ok(mut child) => wait_for(&mut child),
                Err(error) => Some(error.to_string()),
            };
            let Some(failed) = failed else { return };
            let (program, path) = (program.display(), path.display());
            tracing::error!(%program, file = %path, attempt, "{program} {path}: {failed} (attempt {attempt})");
        }
    }

    /// Removes the oldest rotated files beyond the limits.
    fn remove_old(&self) {
        let limits = self.rules.keep();
        if limits.is_empty() {
            return;
        }
        let root = match &self.to {
            Some(template) => root(template),
            None => self.folder.clone(),
        };
        let mut files = Vec::new();
        self.rotated(&root, 0, &mut files);
        files.sort();
        let mut bytes: u64 = files.iter().map(|(_, _, len)| len).sum();
        for (modified, path, len) in files {
            let age = SystemTime::now().duration_since(modified).unwrap_or_default();
            let is_too_much = limits.iter().any(|keep| match keep {
                Keep::Age(max) => age > *max,
                Keep::Size(max) => bytes > *max,
            });
            if !is_too_much {
                break;
            }
            match fs::remove_file(&path) {
                Ok(()) => {
                    bytes -= len;
                    tracing::info!(file = %path.display(), "{}: removed as --keep asks", path.display());
                }
                Err(error) => {
                    tracing::error!(file = %path.display(), %error, "{}: {error}", path.display());
                }
            }
        }
    }

    /// Collects the rotated files below a folder. Files with other names are left alone.
    fn rotated(&self, folder: &Path, depth: u32, files: &mut Vec<(SystemTime, PathBuf, u64)>) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(about) = entry.metadata() else { continue };
            let name = entry.file_name();
            if about.is_dir() && self.to.is_some() && depth < 6 {
                self.rotated(&entry.path(), depth + 1, files);
            } else if about.is_file() && self.is_rotated(&name.to_string_lossy()) {
                files.push((
                    about.modified().unwrap_or(SystemTime::UNIX_EPOCH),
                    entry.path(),
                    about.len(),
                ));
            }
        }
    }

    /// Whether this is the name of a rotated file, like `conn.2026-11-23-17-00-00.log.gz`.
    fn is_rotated(&self, name: &str) -> bool {
        let Some((log, rest)) = name.split_once('.') else { return false };
        let Some((stamp, _)) = rest.split_once('.') else { return false };
        let shape = |(at, b): (usize, &u8)| match at {
            4 | 7 | 10 | 13 | 16 | 19 => *b == b'-',
            _ => b.is_ascii_digit(),
        };
        self.logs.contains(&log)
            && stamp.len() >= 19
            && stamp.as_bytes().iter().enumerate().all(shape)
    }
}

/// The part of a template before its first placeholder: the folder that contains all of its folders.
pub(crate) fn root(template: &str) -> PathBuf {
    let fixed = template.split('%').next().unwrap_or_default();
    let root = match fixed.rsplit_once('/') {
        _ if fixed.len() == template.len() => fixed,
        Some(("", _)) => "/",
        Some((root, _)) => root,
        None => ".",
    };
    PathBuf::from(if root.is_empty() { "." } else { root })
}

/// Waits for a program and returns the reason of a failure.
fn wait_for(child: &mut std::process::Child) -> Option<String> {
    let started = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return None,
            Ok(Some(status)) => return Some(status.to_string()),
            Ok(None) if started.elapsed() < TIMEOUT => thread::sleep(Duration::from_millis(20)),
            Ok(None) => {
                let _ = child.kill();
                let _ = child.wait();
                return Some("took too long and was killed".into());
            }
            Err(error) => return Some(error.to_string()),
        }
    }
}

/// The path itself, or one with a number if the path exists.
fn unused_path(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let named = |n: u32| match n {
        0 => path.to_owned(),
        n => path.with_file_name(match name.rsplit_once('.') {
            Some((stem, extension)) => format!("{stem}-{n}.{extension}"),
            None => format!("{name}-{n}"),
        }),
    };
    (0..).map(named).find(|path| !path.exists()).unwrap_or_else(|| path.to_owned())
}

/// Renames a file, or copies it to another file system.
fn move_file(from: &Path, to: &Path) -> io::Result<()> {
    match fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
            let incomplete = incomplete(to);
            fs::copy(from, &incomplete)?;
            File::open(&incomplete)?.sync_all()?;
            fs::rename(&incomplete, to)?;
            fs::remove_file(from)
        }
        renamed => renamed,
    }
}

fn incomplete(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(INCOMPLETE);
    name.into()
}

/// Compresses a file, and removes it when the compressed file is complete.
fn compress(path: &Path, how: Compress) -> io::Result<PathBuf> {
    let mut name = path.as_os_str().to_owned();
    name.push(match how {
        Compress::Gzip => ".gz",
        Compress::Zstd => ".zst",
    });
    let to = PathBuf::from(name);
    let mut from = File::open(path)?;
    let modified = from.metadata()?.modified()?;
    let incomplete = incomplete(&to);
    let output = File::create(&incomplete)?;
    let output = match how {
        Compress::Gzip => {
            let mut encoder = flate2::write::GzEncoder::new(output, flate2::Compression::default());
            io::copy(&mut from, &mut encoder)?;
            encoder.finish()?
        }
        Compress::Zstd => {
            let mut encoder = zstd::Encoder::new(output, 0)?;
            io::copy(&mut from, &mut encoder)?;
            encoder.finish()?
        }
    };
    let mut output = output;
    output.flush()?;
    // `--keep` computes the age from this time.
    let _ = output.set_modified(modified);
    output.sync_all()?;
    fs::rename(&incomplete, &to)?;
    fs::remove_file(path)?;
    Ok(to)
}

/// Starts the thread that processes files. It ends when all senders of files are dropped; wait for it with
/// [`join`](thread::JoinHandle::join).
pub(crate) fn start(
    archive: Archive,
    files: Receiver<CompletedFile>,
) -> io::Result<thread::JoinHandle<()>> {
    thread::Builder::new().name("archive".into()).spawn(move || archive.work(&files))
}

/// A completed file, for tests of other modules.
#[cfg(test)]
pub(crate) fn completed(log: &str, file: &Path) -> CompletedFile {
    CompletedFile {
        log: log.to_owned(),
        file: file.to_owned(),
        opened: gannet_base::Time::from_secs(1_800_000_000),
        closed: gannet_base::Time::from_secs(1_800_003_600),
        terminating: false,
        recovered: false,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let name = format!("gannet-archive-{}-{name}", std::process::id());
            let folder = std::env::temp_dir().join(name);
            let _ = fs::remove_dir_all(&folder);
            fs::create_dir_all(&folder).unwrap();
            Self(folder)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn rules(keep: Keep) -> Rules {
        Rules(Arc::new(Mutex::new((None, vec![keep]))))
    }

    fn archive(folder: &Path) -> Archive {
        Archive {
            folder: folder.to_owned(),
            to: None,
            postprocessor: None,
            rules: Rules::default(),
            logs: vec!["conn", "dns"],
        }
    }

    #[test]
    fn files_are_moved_compressed_and_given_to_a_program() {
        let folder = Folder::new("taken");
        let program = folder.0.join("program.sh");
        let noted = folder.0.join("noted");
        fs::write(&program, format!("#!/bin/sh\necho \"$@\" > {}\n", noted.display())).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let file = folder.0.join("conn.2027-01-15-08-00-00.log");
        fs::write(&file, "rows\n").unwrap();
        let archive = Archive {
            to: Some(format!("{}/%Y/%m", folder.0.display())),
            rules: Rules(Arc::new(Mutex::new((Some(Compress::Gzip), Vec::new())))),
            postprocessor: Some(program),
            ..archive(&folder.0)
        };
        archive.process(&completed("conn", &file)).unwrap();
        let to = folder.0.join("2027/01/conn.2027-01-15-08-00-00.log.gz");
        let mut text = String::new();
        let mut decoder = flate2::read::GzDecoder::new(File::open(&to).unwrap());
        io::Read::read_to_string(&mut decoder, &mut text).unwrap();
        assert_eq!(text, "rows\n");
        assert!(!file.exists());
        let noted = fs::read_to_string(noted).unwrap();
        let words: Vec<_> = noted.split_whitespace().collect();
        assert_eq!((words[0], words[1]), (to.to_str().unwrap(), "conn"));
        assert_eq!((words[4], words[5]), ("0", "ascii"));
        assert!(words[2].len() == 17 && words[2].contains('_'));
    }

    #[test]
    fn a_program_is_an_executable_file_by_its_path_or_in_path() {
        let folder = Folder::new("program");
        let [program, text] = ["program.sh", "text"].map(|name| folder.0.join(name));
        for (file, mode) in [(&program, 0o755), (&text, 0o644)] {
            fs::write(file, "#!/bin/sh\n").unwrap();
            fs::set_permissions(file, fs::Permissions::from_mode(mode)).unwrap();
        }
        let check = |program: &Path| check_program(program).err().unwrap_or_default();
        assert_eq!((check(&program), check(Path::new("sh"))), (String::new(), String::new()));
        assert!(check(&text).ends_with("/text: not an executable file"), "{}", check(&text));
        assert!(check(&folder.0.join("")).ends_with(": not an executable file"));
        assert!(
            check(&folder.0.join("none"))
                .ends_with("/none: No such file or directory (os error 2)")
        );
        let missing = "--postprocessor no-such-program: no such program in PATH";
        assert_eq!(check(Path::new("no-such-program")), missing);
    }

    #[test]
    fn folders_of_a_template_have_a_root() {
        let of = |template| root(template).display().to_string();
        assert_eq!(of("logs"), "logs");
        assert_eq!(of("logs/%Y-%m-%d"), "logs");
        assert_eq!(of("/var/log/x%Y"), "/var/log");
        assert_eq!((of("%Y"), of("/%Y"), of("")), (".".into(), "/".into(), ".".into()));
    }

    #[test]
    fn only_rotated_files_are_removed_the_oldest_first() {
        let folder = Folder::new("kept");
        let names = [
            "conn.2027-01-15-08-00-00.log",
            "conn.2027-01-15-09-00-00.log.gz",
            "conn.log",
            "notes.2027-01-15-08-00-00.log",
        ];
        for (n, name) in (0_u64..).zip(names) {
            let file = File::create(folder.0.join(name)).unwrap();
            (&file).write_all(&[b'x'; 100]).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_000 + n)).unwrap();
        }
        let left = || names.map(|name| folder.0.join(name).exists());
        Archive { rules: rules(Keep::Size(150)), ..archive(&folder.0) }.remove_old();
        assert_eq!(left(), [false, true, true, true]);
        Archive { rules: rules(Keep::Age(Duration::from_secs(60))), ..archive(&folder.0) }
            .remove_old();
        assert_eq!(left(), [false, false, true, true]);
    }
}
