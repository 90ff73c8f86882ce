//! Dividing captures into tasks.

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

/// Seconds of packet time that a task reads before its own files: twice as long as any connection may be idle.
pub const WARM_UP: u32 = 600;

/// How captures are divided.
#[derive(Clone, Debug)]
pub struct PlanOptions {
    /// Tasks at the most; without a number one for each file.
    pub tasks: Option<NonZero<u32>>,
    /// Seconds of packet time that a task reads before its own files; `None` reads all of them, however long ago.
    pub warm_up: Option<u32>,
    /// Threads that read headers.
    pub threads: usize,
}

impl Default for PlanOptions {
    fn default() -> Self {
        Self { tasks: None, warm_up: Some(WARM_UP), threads: 1 }
    }
}

/// Tasks whose rows together are those of one analysis.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The tasks, in the order of time.
    pub tasks: Vec<Task>,
    /// Logs that one analysis would write, and tasks do not, with the reason.
    pub left_out: Vec<(&'static str, &'static str)>,
}

impl Plan {
    /// As JSON.
    pub fn to_json(&self) -> Value {
        let left_out = self.left_out.iter().map(|(log, why)| json!({"log": log, "why": why}));
        json!({
            "tasks": self.tasks.iter().map(Task::to_json).collect::<Vec<_>>(),
            "left_out": left_out.collect::<Vec<_>>(),
        })
    }
}

/// What the headers of a capture say.
#[derive(Clone, Debug)]
struct Survey {
    order: usize,
    path: PathBuf,
    bytes: u64,
    packets: u64,
    /// Time of the first packet.
    first: i64,
    earliest: i64,
    latest: i64,
}

/// Files that overlap in time, from the first to the last.
#[derive(Clone, Copy, Debug)]
struct Unit {
    files: (usize, usize),
    /// Packets before.
    before: u64,
    packets: u64,
    bytes: u64,
    earliest: i64,
    /// Time of the latest packet of this one and all before.
    latest: i64,
}

/// Divides captures into tasks.
///
/// Folders stand for the captures in them. The headers of all packets are read. Files that overlap in time are
/// never separated.
///
/// # Errors
/// When a capture cannot be opened, a log cannot be divided, or the settings are not valid.
pub fn plan(paths: &[PathBuf], settings: &Settings, options: &PlanOptions) -> Result<Plan, Error> {
    let (settings, left_out) = divided(settings)?;
    settings.options()?;
    let mut files = Vec::new();
    for path in paths {
        match path.is_dir() {
            true => list(path, &mut files)?,
            false => files.push((path.clone(), true)),
        }
    }
    let mut surveys = survey_all(&files, options.threads)?;
    if surveys.is_empty() {
        let file = paths.first().cloned().unwrap_or_default();
        let found = "no packets";
        return Err(gannet_capture::Error::NotACapture { file, found }.into());
    }
    surveys.sort_by_key(|s| (s.first, s.order));
    let units = units(&surveys);
    let total: u64 = units.iter().map(|u| u.bytes).sum();
    let most = options.tasks.map_or(units.len(), |n| n.get() as usize).min(units.len());
    let mut tasks = Vec::new();
    let (mut from, mut done) = (0, 0_u128);
    for to in 1..=units.len() {
        done += u128::from(units[to - 1].bytes);
        let left = units.len() - to;
        let missing = most - tasks.len() - 1;
        // In equal shares of bytes, and none without a file.
        let share = u128::from(total) * (tasks.len() as u128 + 1) / most as u128;
        let is_end = to == units.len() || missing > 0 && (done >= share || left <= missing);
        if is_end {
            tasks.push(task(&surveys, &units, (from, to), options.warm_up, &settings));
            from = to;
        }
    }
    let n = tasks.len();
    for (i, task) in tasks.iter_mut().enumerate() {
        (task.index, task.of) = (i, n);
    }
    Ok(Plan { tasks, left_out })
}

/// The settings with the logs that tasks can write, and those that are left out.
type Divided = (Settings, Vec<(&'static str, &'static str)>);

fn divided(settings: &Settings) -> Result<Divided, Error> {
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

/// The files of a folder and of those in it, in the order of their names.
fn list(folder: &Path, files: &mut Vec<(PathBuf, bool)>) -> Result<(), Error> {
    let io = |source| gannet_capture::Error::Io { file: folder.to_owned(), source };
    let entries = fs::read_dir(folder).and_then(|entries| entries.collect::<Result<Vec<_>, _>>());
    let mut entries = entries.map_err(io)?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        // Links to folders are not followed: they may lead in a circle.
        match entry.file_type().map_err(io)?.is_dir() {
            true => list(&path, files)?,
            false if path.is_file() => files.push((path, false)),
            false => {}
        }
    }
    Ok(())
}

/// The headers of all files; what is no capture is skipped where it was found in a folder.
fn survey_all(files: &[(PathBuf, bool)], threads: usize) -> Result<Vec<Survey>, Error> {
    let next = AtomicUsize::new(0);
    let found = Mutex::new((Vec::new(), None::<(usize, Error)>));
    thread::scope(|scope| {
        for _ in 0..threads.clamp(1, files.len().max(1)) {
            scope.spawn(|| {
                loop {
                    let order = next.fetch_add(1, Ordering::Relaxed);
                    let Some((path, is_named)) = files.get(order) else { return };
                    let survey = survey(order, path);
                    let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                    match survey {
                        Ok(survey) => found.0.extend(survey),
                        Err(_) if !is_named => {}
                        Err(error) if found.1.as_ref().is_none_or(|(n, _)| order < *n) => {
                            found.1 = Some((order, error));
                        }
                        Err(_) => {}
                    }
                }
            });
        }
    });
    let (surveys, error) = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    error.map_or(Ok(surveys), |(_, error)| Err(error))
}

/// What the headers of a file say, up to any damage; `None` without packets.
fn survey(order: usize, path: &Path) -> Result<Option<Survey>, Error> {
    let mut reader = Reader::open(path)?;
    let bytes = reader.bytes_total().ok_or_else(|| Error::Invalid {
        what: "capture for tasks",
        why: format!("{} can be read only once", path.display()),
    })?;
    let mut survey: Option<Survey> = None;
    // Damage is reported by the task that reads the file.
    while let Ok(Some(batch)) = reader.next_batch() {
        for at in 0..batch.len() {
            let time = batch.time(at).unwrap_or_default().as_nanos();
            let survey = survey.get_or_insert_with(|| Survey {
                order,
                path: path.to_owned(),
                bytes,
                packets: 0,
                first: time,
                earliest: time,
                latest: time,
            });
            survey.packets += 1;
            survey.earliest = survey.earliest.min(time);
            survey.latest = survey.latest.max(time);
        }
    }
    Ok(survey)
}

fn units(surveys: &[Survey]) -> Vec<Unit> {
    let mut units: Vec<Unit> = Vec::new();
    let mut before = 0;
    for (i, survey) in surveys.iter().enumerate() {
        match units.last_mut() {
            Some(unit) if survey.earliest <= unit.latest => {
                unit.files.1 = i + 1;
                unit.packets += survey.packets;
                unit.bytes += survey.bytes;
                unit.latest = unit.latest.max(survey.latest);
            }
            _ => units.push(Unit {
                files: (i, i + 1),
                before,
                packets: survey.packets,
                bytes: survey.bytes,
                earliest: survey.earliest,
                latest: survey.latest,
            }),
        }
        before += survey.packets;
    }
    units
}

fn task(
    surveys: &[Survey],
    units: &[Unit],
    (from, to): (usize, usize),
    warm_up: Option<u32>,
    settings: &Settings,
) -> Task {
    let (first, last) = (units[from], units[to - 1]);
    let warm = warm_up.map_or(i64::MIN, |seconds| {
        first.earliest.saturating_sub(i64::from(seconds) * 1_000_000_000)
    });
    let start = units[units.partition_point(|u| u.latest < warm).min(from)];
    let files = surveys[start.files.0..].iter().enumerate().map(|(i, survey)| TaskFile {
        path: survey.path.clone(),
        bytes: survey.bytes,
        is_own: (first.files.0..last.files.1).contains(&(start.files.0 + i)),
    });
    Task {
        index: 0,
        of: 0,
        files: files.collect(),
        before: start.before,
        // Packets count from 1.
        packets: (first.before + 1, last.before + last.packets + 1),
        span: (
            if from == 0 { i64::MIN } else { first.earliest },
            units.get(to).map_or(i64::MAX, |next| next.earliest),
        ),
        settings: settings.clone(),
    }
}
