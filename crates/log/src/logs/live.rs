//! Log files of a live analysis: rows are written promptly, files are rotated, and a file that cannot be written does
//! not end the analysis.

use std::collections::BTreeMap;
use std::fs;
use std::fs::File;
use std::fs::OpenOptions;
use std::io;
use std::io::BufRead as _;
use std::io::Write as _;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::sync::mpsc::Sender;
use std::time::Duration;
use std::time::Instant;
use std::time::SystemTime;
use std::time::UNIX_EPOCH;

use gannet_base::Time;

use super::Format;
use super::Logs;
use super::Options;
use super::stream::Stream;
use super::stream::header;
use super::stream::stamp;
use crate::json::days_from_civil;

/// Options of log files in a live analysis.
#[derive(Clone, Debug)]
pub struct LiveFiles {
    /// Names of files.
    pub names: Names,
    /// Whether files are rotated; if so, closing the logs rotates the last ones, too.
    pub rotates: bool,
    /// Returns the offset of local time from UTC in seconds, at a time in seconds since 1970.
    pub offset: fn(i64) -> i64,
    /// Receives each completed file.
    pub completed: Sender<CompletedFile>,
    /// Rows that could not be written.
    pub losses: LogLosses,
}

/// Names of files before they are rotated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Names {
    /// `conn.log`, renamed to `conn.2026-11-23-17-00-00.log` when it is rotated.
    #[default]
    Renamed,
    /// `conn.2026-11-23-17-00-00.log` from the start: a file is never renamed.
    Opened,
}

/// A completed file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompletedFile {
    /// Name of its log.
    pub log: String,
    /// Path of the file.
    pub file: PathBuf,
    /// Wall-clock time at which it was opened.
    pub opened: Time,
    /// Wall-clock time at which it was completed.
    pub closed: Time,
    /// Whether it was completed because the logs were closed.
    pub terminating: bool,
    /// Whether an earlier process left it behind.
    pub recovered: bool,
}

/// Counts of rows that could not be written, and messages about them. Clones share the counts.
#[derive(Clone, Debug, Default)]
pub struct LogLosses(Arc<Mutex<Losses>>);

#[derive(Debug, Default)]
struct Losses {
    rows: BTreeMap<&'static str, u64>,
    /// Messages that were not returned by [`LogLosses::take_messages`] yet.
    messages: Vec<String>,
}

impl LogLosses {
    fn lock(&self) -> MutexGuard<'_, Losses> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts discarded rows of a log.
    pub fn discard(&self, log: &'static str, rows: u64) {
        *self.lock().rows.entry(log).or_default() += rows;
    }

    /// Adds a message for the user.
    pub fn report(&self, message: String) {
        self.lock().messages.push(message);
    }

    /// Number of rows discarded so far, by log.
    pub fn rows(&self) -> Vec<(&'static str, u64)> {
        self.lock().rows.iter().map(|(log, rows)| (*log, *rows)).collect()
    }

    /// Returns the messages [reported](Self::report) since the last call.
    pub fn take_messages(&self) -> Vec<String> {
        std::mem::take(&mut self.lock().messages)
    }
}

/// State of the file of a stream in a live analysis.
#[derive(Debug, Default)]
pub(super) struct LiveState {
    path: PathBuf,
    opened: Time,
    /// Length of the file in bytes, up to the last complete row.
    file_len: u64,
    /// Number of rows that were written or discarded.
    handled_rows: u64,
    pub(super) discarded: u64,
    /// Time of the next attempt to write after a failure.
    retry: Option<Instant>,
    /// Whether the next file is opened by [`Logs::reopen`] and keeps its opening time.
    reopens: bool,
}

/// Time after a failure in which a log is not written.
const RETRY: Duration = Duration::from_secs(1);

impl LiveFiles {
    /// Wall-clock time, which is used in the names of files.
    pub fn clock() -> Time {
        wall_clock()
    }

    /// The name of a file that was opened at `opened`, in local time.
    pub fn stamped(&self, file: &Path, opened: Time) -> PathBuf {
        let seconds = opened.as_nanos().div_euclid(1_000_000_000);
        let local = Time::from_secs(seconds + (self.offset)(seconds));
        let extension = file.extension().unwrap_or_default().to_string_lossy();
        let stem = file.file_stem().unwrap_or_default().to_string_lossy();
        let stem = format!("{stem}.{}", stamp(local));
        let named = |n: u32| match n {
            0 => file.with_file_name(format!("{stem}.{extension}")),
            n => file.with_file_name(format!("{stem}-{n}.{extension}")),
        };
        // The second file of the same second gets a number.
        (0..).map(named).find(|path| !path.exists()).unwrap_or_else(|| named(0))
    }

    /// Renames a complete file to its final name and sends it to `completed`.
    ///
    /// # Errors
    /// When it cannot be renamed.
    pub fn complete(
        &self,
        log: &str,
        file: &Path,
        opened: Time,
        terminating: bool,
    ) -> io::Result<()> {
        let mut path = file.to_owned();
        if self.names == Names::Renamed {
            path = self.stamped(file, opened);
            fs::rename(file, &path)?;
        }
        let (log, closed) = (log.to_owned(), wall_clock());
        let file = CompletedFile { log, file: path, opened, closed, terminating, recovered: false };
        // Sending fails if the receiver is dropped; the file is complete anyway.
        let _ = self.completed.send(file);
        Ok(())
    }

    /// Completes files that an earlier process left behind: renames them to their final names, so that they are not
    /// overwritten. Returns their number.
    ///
    /// # Errors
    /// When a file cannot be renamed.
    pub fn recover(&self, folder: &Path, logs: &[&'static str]) -> io::Result<usize> {
        let mut found = 0;
        for log in logs {
            for extension in ["log", "json", "parquet", "arrow"] {
                let file = folder.join(format!("{log}.{extension}"));
                let Ok(metadata) = fs::symlink_metadata(&file) else { continue };
                if !metadata.is_file() {
                    continue;
                }
                if metadata.len() == 0 {
                    fs::remove_file(&file)?;
                    continue;
                }
                let created = metadata.created().or_else(|_| metadata.modified());
                let opened = opened_by_header(&file).or_else(|| created.ok().map(from_system_time));
                let opened = opened.unwrap_or_else(wall_clock);
                let closed = metadata.modified().map_or(opened, from_system_time);
                let path = self.stamped(&file, opened);
                fs::rename(&file, &path)?;
                found += 1;
                let _ = self.completed.send(CompletedFile {
                    log: (*log).to_owned(),
                    file: path,
                    opened,
                    closed,
                    terminating: true,
                    recovered: true,
                });
            }
        }
        Ok(found)
    }
}

/// The opening time from the header of a log: `#open 2026-11-21-08-47-00`, UTC.
fn opened_by_header(file: &Path) -> Option<Time> {
    let lines = io::BufReader::new(File::open(file).ok()?).lines();
    let lines = lines.take(10).map_while(Result::ok);
    let line = lines.filter_map(|l| l.strip_prefix("#open\t").map(str::to_owned)).next()?;
    let parts: Vec<i64> = line.split('-').map_while(|part| part.parse().ok()).collect();
    let &[year, month, day, hour, minute, second] = &parts[..] else { return None };
    let days = days_from_civil(year, u32::try_from(month).ok()?, u32::try_from(day).ok()?);
    Some(Time::from_secs(days * 86_400 + hour * 3600 + minute * 60 + second))
}

fn from_system_time(time: SystemTime) -> Time {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    Time::from_nanos(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
}

fn wall_clock() -> Time {
    from_system_time(SystemTime::now())
}

impl Stream {
    /// Writes the buffer, which holds complete rows; discards it if writing fails.
    pub(super) fn flush_live(&mut self, options: &Options, live: &LiveFiles) {
        let len = self.buffer.len() as u64;
        if len == 0 {
            return;
        }
        let rows = self.rows - self.live.handled_rows;
        self.live.handled_rows = self.rows;
        let is_paused = self.live.retry.is_some_and(|at| Instant::now() < at);
        let written = if is_paused { None } else { Some(self.append(options, live)) };
        match written {
            Some(Ok(())) => {
                self.bytes += len;
                if self.live.retry.take().is_some() {
                    let file = self.live.path.display();
                    live.losses.report(format!("{file}: writing resumed"));
                }
            }
            failed => {
                self.live.discarded += rows;
                live.losses.discard(self.path, rows);
                if let Some(Err(error)) = failed {
                    if self.live.retry.is_none() {
                        let file = self.live.path.display();
                        live.losses
                            .report(format!("{file}: {error}; rows are discarded and counted"));
                    }
                    self.live.retry = Some(Instant::now() + RETRY);
                }
            }
        }
        self.buffer.clear();
    }

    fn append(&mut self, options: &Options, live: &LiveFiles) -> io::Result<()> {
        if self.file.is_none() {
            self.open_live(options, live)?;
        }
        let Some(file) = &mut self.file else { return Ok(()) };
        if let Err(error) = file.write_all(self.buffer.bytes()) {
            // Remove the part of a row that was written.
            file.set_len(self.live.file_len)?;
            return Err(error);
        }
        self.live.file_len += self.buffer.len() as u64;
        Ok(())
    }

    fn open_live(&mut self, options: &Options, live: &LiveFiles) -> io::Result<()> {
        if !std::mem::take(&mut self.live.reopens) {
            self.live.opened = wall_clock();
        }
        let Some(dir) = &options.dir else { return Ok(()) };
        let extension = options.extension.unwrap_or("log");
        let plain = dir.join(format!("{}.{extension}", self.path));
        self.live.path = match live.names {
            Names::Renamed => plain,
            Names::Opened => live.stamped(&plain, self.live.opened),
        };
        let mut file = OpenOptions::new().append(true).create(true).open(&self.live.path)?;
        self.live.file_len = file.metadata()?.len();
        if options.format == Format::Tsv && self.live.file_len == 0 {
            let lines = header(self.path, &self.fields, self.live.opened);
            if let Err(error) = file.write_all(&lines) {
                file.set_len(0)?;
                return Err(error);
            }
            self.live.file_len = lines.len() as u64;
            self.bytes += self.live.file_len;
        }
        self.file = Some(file);
        Ok(())
    }

    /// Completes the file of the stream; later rows go to a new one.
    pub(super) fn complete(&mut self, options: &Options, live: &LiveFiles, terminating: bool) {
        self.flush_live(options, live);
        if self.file.is_none() {
            return;
        }
        if options.format == Format::Tsv {
            self.buffer.extend(format!("#close\t{}\n", stamp(wall_clock())).as_bytes());
            self.flush_live(options, live);
        }
        let Some(file) = self.file.take() else { return };
        let mut result = file.sync_all();
        drop(file);
        if live.rotates {
            result = result.and(live.complete(
                self.path,
                &self.live.path,
                self.live.opened,
                terminating,
            ));
            if let Some(folder) = &options.dir {
                result = result.and(File::open(folder).and_then(|folder| folder.sync_all()));
            }
        }
        if let Err(error) = result {
            live.losses.report(format!("{}: {error}", self.live.path.display()));
        }
        self.live.file_len = 0;
    }
}

impl Logs {
    /// Completes all files; later rows go to new ones. Does nothing unless [live](Options::live).
    pub fn rotate(&mut self) {
        self.complete_all(false);
    }

    pub(crate) fn complete_all(&mut self, terminating: bool) {
        let Some(live) = self.options.live.clone() else { return };
        if self.options.format == Format::Packed {
            self.write_out();
            for writer in &mut self.writers {
                if let Err(error) = writer.rotate(terminating) {
                    live.losses.report(format!("rotation: {error}"));
                }
            }
            return;
        }
        for stream in self.streams.iter_mut().filter(|s| s.enabled) {
            stream.complete(&self.options, &live, terminating);
        }
    }

    /// Closes all files and opens them by their names at the next row, for another program that has renamed them. Does
    /// nothing unless [live](Options::live).
    pub fn reopen(&mut self) {
        let Some(live) = self.options.live.clone() else { return };
        self.write_out();
        for writer in &mut self.writers {
            writer.reopen();
        }
        for stream in &mut self.streams {
            if live.names == Names::Renamed && stream.file.take().is_some() {
                stream.live.reopens = true;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::Receiver;
    use std::sync::mpsc::channel;

    use super::*;

    crate::row! {
        /// For the tests.
        struct Sample = "sample" {
            /// When.
            ts: Time = "ts",
            /// How many.
            n: u64 = "n",
        }
    }

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let name = format!("gannet-live-log-{}-{name}", std::process::id());
            let folder = std::env::temp_dir().join(name);
            let _ = fs::remove_dir_all(&folder);
            fs::create_dir_all(&folder).unwrap();
            Self(folder)
        }

        fn names(&self) -> Vec<String> {
            let all = fs::read_dir(&self.0).unwrap().map(|e| e.unwrap().file_name());
            let mut all: Vec<_> = all.map(|n| n.into_string().unwrap()).collect();
            all.sort();
            all
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn live(rotates: bool, names: Names) -> (LiveFiles, Receiver<CompletedFile>) {
        let (completed, result) = channel();
        let losses = LogLosses::default();
        (LiveFiles { names, rotates, offset: |_| 3600, completed, losses }, result)
    }

    fn logs(folder: &Folder, live: &LiveFiles, format: Format) -> Logs {
        let (dir, live) = (Some(folder.0.clone()), Some(live.clone()));
        Logs::new(Options { dir, format, live, ..Options::default() })
    }

    fn write(logs: &mut Logs, n: u64) {
        logs.write(&Sample { ts: Time::from_secs(5), n });
    }

    #[test]
    fn rotated_files_are_complete_and_named_by_their_opening_time() {
        let folder = Folder::new("rotated");
        let (live, result) = live(true, Names::Renamed);
        let mut logs = logs(&folder, &live, Format::Tsv);
        write(&mut logs, 1);
        logs.write_out();
        assert_eq!(folder.names(), ["sample.log"]);
        logs.rotate();
        logs.rotate();
        write(&mut logs, 2);
        logs.close().unwrap();
        let files: Vec<CompletedFile> = result.try_iter().collect();
        assert_eq!(files.len(), 2, "a period without rows has no file");
        assert!(!files[0].terminating && files[1].terminating);
        for (n, file) in (1..).zip(&files) {
            let text = fs::read_to_string(&file.file).unwrap();
            let rows: Vec<_> = text.lines().filter(|l| !l.starts_with('#')).collect();
            assert_eq!(rows, [format!("5.000000\t{n}")]);
            assert!(
                text.starts_with("#separator")
                    && text.lines().last().unwrap().starts_with("#close")
            );
            let seconds = file.opened.as_nanos() / 1_000_000_000;
            let name = file.file.file_name().unwrap().to_str().unwrap();
            let local = stamp(Time::from_secs(seconds + 3600));
            assert!(name.starts_with(&format!("sample.{local}")), "{name}");
        }
        assert_eq!(folder.names().len(), 2);
    }

    #[test]
    fn files_named_from_the_start_are_never_renamed() {
        let folder = Folder::new("opened");
        let (live, result) = live(true, Names::Opened);
        let mut logs = logs(&folder, &live, Format::Json(crate::JsonTimes::Epoch));
        write(&mut logs, 1);
        logs.write_out();
        let before = folder.names();
        logs.rotate();
        assert_eq!(folder.names(), before);
        assert_eq!(
            result.try_iter().map(|f| f.file).collect::<Vec<_>>(),
            [folder.0.join(&before[0])]
        );
    }

    #[test]
    fn a_renamed_file_is_opened_again_under_its_name() {
        let folder = Folder::new("reopened");
        let (live, _done) = live(false, Names::Renamed);
        let mut logs = logs(&folder, &live, Format::Tsv);
        write(&mut logs, 1);
        logs.write_out();
        fs::rename(folder.0.join("sample.log"), folder.0.join("sample.log.1")).unwrap();
        write(&mut logs, 2);
        logs.reopen();
        write(&mut logs, 3);
        logs.close().unwrap();
        let rows = |name: &str| {
            let text = fs::read_to_string(folder.0.join(name)).unwrap();
            text.lines().filter(|l| !l.starts_with('#')).count()
        };
        assert_eq!((rows("sample.log.1"), rows("sample.log")), (2, 1));
    }

    #[test]
    fn files_left_behind_are_completed() {
        let folder = Folder::new("left");
        let (live, result) = live(false, Names::Renamed);
        let text = "#separator \\x09\n#open\t2026-11-23-17-00-00\n#fields\tn\nx\n";
        fs::write(folder.0.join("conn.log"), text).unwrap();
        fs::write(folder.0.join("dns.log"), "{\"ts\":1}\n").unwrap();
        fs::write(folder.0.join("ssl.log"), "").unwrap();
        fs::write(folder.0.join("other.log"), "x").unwrap();
        assert_eq!(live.recover(&folder.0, &["conn", "dns", "ssl"]).unwrap(), 2);
        let names = folder.names();
        assert_eq!(names.len(), 3, "{names:?}");
        assert_eq!(names[0], "conn.2026-11-23-18-00-00.log");
        assert!(names[1].starts_with("dns.2") && names[2] == "other.log");
        assert!(result.try_iter().all(|file| file.recovered));
        assert_eq!(live.recover(&folder.0, &["conn", "dns", "ssl"]).unwrap(), 0);
    }

    #[test]
    fn rows_that_cannot_be_written_are_counted_and_those_after_them_are_written() {
        let folder = Folder::new("failing");
        let (live, _done) = live(false, Names::Renamed);
        let mut logs = logs(&folder, &live, Format::Tsv);
        // Opening fails because a folder has the name of the file.
        fs::create_dir(folder.0.join("sample.log")).unwrap();
        write(&mut logs, 1);
        write(&mut logs, 2);
        logs.write_out();
        write(&mut logs, 3);
        logs.write_out();
        assert_eq!(live.losses.rows(), [("sample", 3)]);
        assert_eq!(live.losses.take_messages().len(), 1);
        fs::remove_dir(folder.0.join("sample.log")).unwrap();
        std::thread::sleep(RETRY);
        write(&mut logs, 4);
        logs.write_out();
        assert_eq!(logs.counts()[0].rows, 1);
        logs.close().unwrap();
        let text = fs::read_to_string(folder.0.join("sample.log")).unwrap();
        assert_eq!(
            text.lines().filter(|l| !l.starts_with('#')).collect::<Vec<_>>(),
            ["5.000000\t4"]
        );
        assert_eq!(live.losses.take_messages().len(), 1, "written again");
    }
}
