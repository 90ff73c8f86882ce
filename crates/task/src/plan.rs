//! Division of captures into tasks.

use std::fs;
use std::num::NonZero;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;
use std::thread;

use gannet_capture::Reader;
use gannet_log::Selection;
use serde_json::Value;
use serde_json::json;

use crate::Error;
use crate::Settings;
use crate::Task;
use crate::task::TaskFile;
use crate::task::divisible;

/// Default warm-up of a task, in seconds of packet time: twice as long as any connection may be idle.
pub const WARM_UP: u32 = 600;

/// Options of the division into tasks.
#[derive(Clone, Debug)]
pub struct PlanOptions {
    /// Maximum number of tasks; `None` makes a task for each file.
    pub tasks: Option<NonZero<u32>>,
    /// Warm-up before a task's own files, in seconds of packet time; `None` reads all earlier files.
    pub warm_up: Option<u32>,
    /// Number of threads that read packet headers.
    pub threads: usize,
}

impl Default for PlanOptions {
    fn default() -> Self {
        Self { tasks: None, warm_up: Some(WARM_UP), threads: 1 }
    }
}

/// Tasks that together return the rows of one analysis.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The tasks, in chronological order.
    pub tasks: Vec<Task>,
    /// Logs that an analysis would write but tasks cannot, each with the reason.
    pub left_out: Vec<(&'static str, &'static str)>,
}

impl Plan {
    /// Converts to JSON.
    pub fn to_json(&self) -> Value {
        let left_out = self.left_out.iter().map(|(log, why)| json!({"log": log, "why": why}));
        json!({
            "tasks": self.tasks.iter().map(Task::to_json).collect::<Vec<_>>(),
            "left_out": left_out.collect::<Vec<_>>(),
        })
    }
}

/// Summary of the packet headers of a capture.
#[derive(Clone, Debug)]
struct CaptureSummary {
    /// Index among the files of the plan.
    order: usize,
    path: PathBuf,
    bytes: u64,
    packets: u64,
    /// Time of the first packet, in nanoseconds like the other times.
    first: i64,
    earliest: i64,
    latest: i64,
}

/// Consecutive files that overlap in time, which are in the same task.
#[derive(Clone, Copy, Debug)]
struct Unit {
    /// Range of indices of the files.
    files: (usize, usize),
    /// Number of packets in earlier files.
    before: u64,
    packets: u64,
    bytes: u64,
    earliest: i64,
    /// Time of the latest packet in this unit and all earlier ones.
    latest: i64,
}

/// Divides captures into tasks.
///
/// A folder stands for all captures in it. The headers of all packets are read. Files that overlap in time are in the
/// same task.
///
/// # Errors
/// If a capture cannot be opened, a log cannot be divided, or the settings are not valid.
pub fn plan(paths: &[PathBuf], settings: &Settings, options: &PlanOptions) -> Result<Plan, Error> {
    let (settings, left_out) = divide_logs(settings)?;
    settings.options()?;
    let mut files = Vec::new();
    for path in paths {
        match path.is_dir() {
            true => list_files(path, &mut files)?,
            false => files.push((path.clone(), true)),
        }
    }
    let mut summaries = scan_all_headers(&files, options.threads)?;
    if summaries.is_empty() {
        let file = paths.first().cloned().unwrap_or_default();
        let found = "no packets";
        return Err(gannet_capture::Error::NotACapture { file, found }.into());
    }
    summaries.sort_by_key(|s| (s.first, s.order));
    let overlapping_units = overlapping_units(&summaries);
    let total: u64 = overlapping_units.iter().map(|u| u.bytes).sum();
    let max_tasks = options
        .tasks
        .map_or(overlapping_units.len(), |n| n.get() as usize)
        .min(overlapping_units.len());
    let mut tasks = Vec::new();
    let (mut from, mut done_bytes) = (0, 0_u128);
    for to in 1..=overlapping_units.len() {
        done_bytes += u128::from(overlapping_units[to - 1].bytes);
        let remaining_units = overlapping_units.len() - to;
        let remaining_tasks = max_tasks - tasks.len() - 1;
        // Tasks have about equal shares of bytes, and at least one unit each.
        let share = u128::from(total) * (tasks.len() as u128 + 1) / max_tasks as u128;
        let is_end = to == overlapping_units.len()
            || remaining_tasks > 0 && (done_bytes >= share || remaining_units <= remaining_tasks);
        if is_end {
            tasks.push(task(
                &summaries,
                &overlapping_units,
                (from, to),
                options.warm_up,
                &settings,
            ));
            from = to;
        }
    }
    let n = tasks.len();
    for (i, task) in tasks.iter_mut().enumerate() {
        (task.index, task.of) = (i, n);
    }
    Ok(Plan { tasks, left_out })
}

/// Settings with only the logs that tasks can write, and the logs that were left out with the reasons.
type DividedSettings = (Settings, Vec<(&'static str, &'static str)>);

fn divide_logs(settings: &Settings) -> Result<DividedSettings, Error> {
    for name in settings.logs.iter().flatten() {
        let is_group = Selection::GROUPS.iter().any(|(group, _)| group == name);
        if let (false, Err(why)) = (is_group, divisible(name)) {
            return Err(match gannet_engine::schemas().iter().any(|s| s.path == name) {
                true => Error::Indivisible { log: name.clone(), why },
                false => Error::NoLog(name.clone()),
            });
        }
    }
    let (mut logs, mut left_out) = (Vec::new(), Vec::new());
    for path in settings.paths() {
        match divisible(path) {
            Ok(()) => logs.push(path.to_owned()),
            Err(why) => left_out.push((path, why)),
        }
    }
    Ok((Settings { logs: Some(logs), ..settings.clone() }, left_out))
}

/// Lists the files of a folder recursively, in the order of their names.
fn list_files(folder: &Path, files: &mut Vec<(PathBuf, bool)>) -> Result<(), Error> {
    let io = |source| gannet_capture::Error::Io { file: folder.to_owned(), source };
    let entries = fs::read_dir(folder).and_then(|entries| entries.collect::<Result<Vec<_>, _>>());
    let mut entries = entries.map_err(io)?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        // Symbolic links to folders are not followed, because they may form a cycle.
        match entry.file_type().map_err(io)?.is_dir() {
            true => list_files(&path, files)?,
            false if path.is_file() => files.push((path, false)),
            false => {}
        }
    }
    Ok(())
}

/// Reads the headers of all files. Files found in folders are skipped if they are not captures.
fn scan_all_headers(
    files: &[(PathBuf, bool)],
    threads: usize,
) -> Result<Vec<CaptureSummary>, Error> {
    let next = AtomicUsize::new(0);
    let found = Mutex::new((Vec::new(), None::<(usize, Error)>));
    thread::scope(|scope| {
        for _ in 0..threads.clamp(1, files.len().max(1)) {
            scope.spawn(|| {
                loop {
                    let order = next.fetch_add(1, Ordering::Relaxed);
                    let Some((path, is_explicit)) = files.get(order) else { return };
                    let scan_headers = scan_headers(order, path);
                    let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                    match scan_headers {
                        Ok(scan_headers) => found.0.extend(scan_headers),
                        Err(_) if !is_explicit => {}
                        Err(error) if found.1.as_ref().is_none_or(|(n, _)| order < *n) => {
                            found.1 = Some((order, error));
                        }
                        Err(_) => {}
                    }
                }
            });
        }
    });
    let (summaries, error) = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    error.map_or(Ok(summaries), |(_, error)| Err(error))
}

/// Reads the headers of a file up to any damage; returns `None` if it has no packets.
fn scan_headers(order: usize, path: &Path) -> Result<Option<CaptureSummary>, Error> {
    let mut reader = Reader::open(path)?;
    let bytes = reader.bytes_total().ok_or_else(|| Error::Invalid {
        what: "capture for tasks",
        why: format!("{} can be read only once", path.display()),
    })?;
    let mut scan_headers: Option<CaptureSummary> = None;
    // Damage is reported by the task that reads the file.
    while let Ok(Some(batch)) = reader.next_batch() {
        for at in 0..batch.len() {
            let time = batch.time(at).unwrap_or_default().as_nanos();
            let scan_headers = scan_headers.get_or_insert_with(|| CaptureSummary {
                order,
                path: path.to_owned(),
                bytes,
                packets: 0,
                first: time,
                earliest: time,
                latest: time,
            });
            scan_headers.packets += 1;
            scan_headers.earliest = scan_headers.earliest.min(time);
            scan_headers.latest = scan_headers.latest.max(time);
        }
    }
    Ok(scan_headers)
}

fn overlapping_units(summaries: &[CaptureSummary]) -> Vec<Unit> {
    let mut overlapping_units: Vec<Unit> = Vec::new();
    let mut before = 0;
    for (i, scan_headers) in summaries.iter().enumerate() {
        match overlapping_units.last_mut() {
            Some(unit) if scan_headers.earliest <= unit.latest => {
                unit.files.1 = i + 1;
                unit.packets += scan_headers.packets;
                unit.bytes += scan_headers.bytes;
                unit.latest = unit.latest.max(scan_headers.latest);
            }
            _ => overlapping_units.push(Unit {
                files: (i, i + 1),
                before,
                packets: scan_headers.packets,
                bytes: scan_headers.bytes,
                earliest: scan_headers.earliest,
                latest: scan_headers.latest,
            }),
        }
        before += scan_headers.packets;
    }
    overlapping_units
}

fn task(
    summaries: &[CaptureSummary],
    overlapping_units: &[Unit],
    (from, to): (usize, usize),
    warm_up: Option<u32>,
    settings: &Settings,
) -> Task {
    let (first, last) = (overlapping_units[from], overlapping_units[to - 1]);
    let warm_up_start = warm_up.map_or(i64::MIN, |seconds| {
        first.earliest.saturating_sub(i64::from(seconds) * 1_000_000_000)
    });
    let start = overlapping_units
        [overlapping_units.partition_point(|u| u.latest < warm_up_start).min(from)];
    let files = summaries[start.files.0..].iter().enumerate().map(|(i, scan_headers)| TaskFile {
        path: scan_headers.path.clone(),
        bytes: scan_headers.bytes,
        is_own: (first.files.0..last.files.1).contains(&(start.files.0 + i)),
    });
    Task {
        index: 0,
        of: 0,
        files: files.collect(),
        before: start.before,
        // Packet numbers begin at 1.
        packets: (first.before + 1, last.before + last.packets + 1),
        span: (
            if from == 0 { i64::MIN } else { first.earliest },
            overlapping_units.get(to).map_or(i64::MAX, |next| next.earliest),
        ),
        settings: settings.clone(),
    }
}
