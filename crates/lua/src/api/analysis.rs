//! The analysis of captures, whose log rows are events for scripts.
//!
//! An [`Engine`] runs in the script's thread, and a tap takes what it logs. Only logs that the script
//! asks for are made.
#![allow(unsafe_code)]

use std::ffi::c_char;
use std::ffi::c_int;
use std::fmt::Write;
use std::path::PathBuf;

use gannet_capture::Access;
use gannet_capture::Stream;
use gannet_engine::Engine;
use gannet_engine::Options;
use gannet_engine::Statistics;
use gannet_filter::Filter;
use gannet_log::Selection;
use gannet_log::Tap;
use gannet_log::Tapped;
use gannet_log::TappedRow;
use gannet_pipeline::crew::Progress;

use super::Position;
use super::fail;
use super::paths;
use super::text;
use super::told;

/// The same in C.
pub(crate) const DECLARATIONS: &str = "
typedef struct gannet_analysis gannet_analysis;
typedef struct {
    uint64_t start;
    uint32_t len, stream;
} gannet_row;
typedef struct {
    uint64_t packets, bytes, filtered, connections;
} gannet_statistics;
typedef struct {
    gannet_analysis *(*open)(const char *const *paths, int count);
    void (*free)(gannet_analysis *analysis);
    uint32_t (*logs)(gannet_analysis *analysis, const char **text);
    int (*filter)(gannet_analysis *analysis, const char *expression);
    void (*select)(gannet_analysis *analysis, const char *log);
    void (*ignore_checksums)(gannet_analysis *analysis);
    int (*next)(gannet_analysis *analysis);
    const gannet_row *(*rows)(gannet_analysis *analysis);
    const char *(*bytes)(gannet_analysis *analysis);
    uint32_t (*columns)(gannet_analysis *analysis, uint32_t stream, const char **text);
    void (*progress)(gannet_analysis *analysis, gannet_progress *out);
    void (*statistics)(gannet_analysis *analysis, gannet_statistics *out);
} gannet_analyses;
";

/// The functions, in the order of [`DECLARATIONS`].
#[repr(C)]
pub(crate) struct Analyses {
    open: unsafe extern "C" fn(*const *const c_char, c_int) -> *mut Analysis,
    free: unsafe extern "C" fn(*mut Analysis),
    logs: unsafe extern "C" fn(*mut Analysis, *mut *const u8) -> u32,
    filter: unsafe extern "C" fn(*mut Analysis, *const c_char) -> c_int,
    select: unsafe extern "C" fn(*mut Analysis, *const c_char),
    ignore_checksums: unsafe extern "C" fn(*mut Analysis),
    next: unsafe extern "C" fn(*mut Analysis) -> c_int,
    rows: unsafe extern "C" fn(*mut Analysis) -> *const TappedRow,
    bytes: unsafe extern "C" fn(*mut Analysis) -> *const u8,
    columns: unsafe extern "C" fn(*mut Analysis, u32, *mut *const u8) -> u32,
    progress: unsafe extern "C" fn(*mut Analysis, *mut Position),
    statistics: unsafe extern "C" fn(*mut Analysis, *mut Sums),
}

pub(crate) const TABLE: Analyses = Analyses {
    open,
    free,
    logs,
    filter,
    select,
    ignore_checksums,
    next,
    rows,
    bytes,
    columns,
    progress,
    statistics,
};

/// What was done.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Sums {
    packets: u64,
    bytes: u64,
    filtered: u64,
    connections: u64,
}

impl From<Statistics> for Sums {
    fn from(s: Statistics) -> Self {
        let Statistics { packets, bytes, filtered, connections, .. } = s;
        Self { packets, bytes, filtered, connections }
    }
}

/// An analysis.
pub(crate) struct Analysis {
    stream: Stream,
    options: Options,
    logs: Vec<String>,
    tap: Tap,
    work: Work,
    rows: Tapped,
    text: String,
    /// What was wrong with a capture; told at the end.
    damage: Option<String>,
}

enum Work {
    Waiting,
    Running(Box<Engine>),
    Ended(Sums),
}

impl Analysis {
    fn open(paths: &[PathBuf]) -> Result<Self, gannet_capture::Error> {
        let read = gannet_capture::Options { access: Access::Read, ..Default::default() };
        Ok(Self {
            stream: Stream::open(paths, read)?,
            options: Options::default(),
            logs: Vec::new(),
            tap: Tap::default(),
            work: Work::Waiting,
            rows: Tapped::default(),
            text: String::new(),
            damage: None,
        })
    }

    /// Goes on until there are rows; how many, 0 at the end. Damage is an error at the end.
    fn next(&mut self) -> Result<usize, String> {
        loop {
            match &mut self.work {
                Work::Waiting => {
                    let mut options = std::mem::take(&mut self.options);
                    options.logs.selection = Selection::of(self.logs.iter().map(String::as_str));
                    options.logs.tap = Some(self.tap.clone());
                    self.work = Work::Running(Box::new(Engine::new(options)));
                    continue;
                }
                Work::Running(engine) => match self.stream.next_batch() {
                    Ok(Some(batch)) => engine.batch(&batch).map_err(|e| e.to_string())?,
                    Ok(None) => {
                        let ended = Work::Ended(Sums::default());
                        if let Work::Running(engine) = std::mem::replace(&mut self.work, ended) {
                            let (sums, _) = engine.finish().map_err(|e| e.to_string())?;
                            self.work = Work::Ended(sums.into());
                        }
                    }
                    Err(error) => {
                        self.damage.get_or_insert_with(|| error.to_string());
                        continue;
                    }
                },
                Work::Ended(_) => {
                    self.rows = Tapped::default();
                    return self.damage.take().map_or(Ok(0), Err);
                }
            }
            self.tap.take(&mut self.rows);
            if !self.rows.rows.is_empty() {
                return Ok(self.rows.rows.len());
            }
        }
    }

    /// The log that a stream is, and a line for each of its columns: name and type, a tab between.
    fn columns(&mut self, stream: u32) -> &str {
        self.text.clear();
        self.text.push_str(self.rows.path(stream).unwrap_or_default());
        for field in self.rows.fields(stream).iter().filter(|f| !f.optional) {
            // Writing to a string cannot fail.
            write!(self.text, "\n{}\t{}", field.name, field.ty).unwrap_or_default();
        }
        &self.text
    }

    /// Names of all logs, a line each.
    fn log_names(&mut self) -> &str {
        let schemas = gannet_engine::schemas();
        self.text = schemas.iter().map(|s| s.path).collect::<Vec<_>>().join("\n");
        &self.text
    }
}

/// # Safety
/// As for [`paths`].
unsafe extern "C" fn open(list: *const *const c_char, count: c_int) -> *mut Analysis {
    // SAFETY: by this function's contract.
    let opened = unsafe { paths(list, count) }
        .ok_or_else(|| "a path is not UTF-8".to_owned())
        .and_then(|paths| Analysis::open(&paths).map_err(|e| e.to_string()));
    match opened {
        Ok(analysis) => Box::into_raw(Box::new(analysis)),
        Err(error) => {
            fail(&error);
            std::ptr::null_mut()
        }
    }
}

/// # Safety
/// `it` came from `open`, and this is its last use.
unsafe extern "C" fn free(it: *mut Analysis) {
    if !it.is_null() {
        // SAFETY: by this function's contract; `open` made it by `Box::into_raw`.
        drop(unsafe { Box::from_raw(it) });
    }
}

/// # Safety
/// `it` came from `open`, was not freed, and no other call uses it meanwhile.
unsafe fn analysis<'a>(it: *mut Analysis) -> &'a mut Analysis {
    assert!(!it.is_null(), "an analysis' handle is not null");
    // SAFETY: by this function's contract.
    unsafe { &mut *it }
}

/// # Safety
/// As for [`analysis`]; `out` points to one place. The text is valid until the next call.
unsafe extern "C" fn logs(it: *mut Analysis, out: *mut *const u8) -> u32 {
    // SAFETY: by this function's contract.
    let text = unsafe { analysis(it) }.log_names();
    // SAFETY: by this function's contract.
    unsafe { out.write(text.as_ptr()) };
    text.len() as u32
}

/// # Safety
/// As for [`analysis`]; `expression` is a C string.
unsafe extern "C" fn filter(it: *mut Analysis, expression: *const c_char) -> c_int {
    // SAFETY: by this function's contract.
    let (it, expression) = unsafe { (analysis(it), text(expression)) };
    let parsed = Filter::parse(expression.unwrap_or("\0")).map_err(|e| e.to_string());
    told(parsed.map(|filter| {
        it.options.filter = Some(filter);
        0
    }))
}

/// # Safety
/// As for [`analysis`]; `log` is a C string.
unsafe extern "C" fn select(it: *mut Analysis, log: *const c_char) {
    // SAFETY: by this function's contract.
    let (it, log) = unsafe { (analysis(it), text(log)) };
    it.logs.extend(log.map(str::to_owned));
}

/// # Safety
/// As for [`analysis`].
unsafe extern "C" fn ignore_checksums(it: *mut Analysis) {
    // SAFETY: by this function's contract.
    unsafe { analysis(it) }.options.ignore_checksums = true;
}

/// # Safety
/// As for [`analysis`].
unsafe extern "C" fn next(it: *mut Analysis) -> c_int {
    // SAFETY: by this function's contract.
    told(unsafe { analysis(it) }.next().map(|n| c_int::try_from(n).unwrap_or(c_int::MAX)))
}

/// # Safety
/// As for [`analysis`]. The rows are valid until the next call of `next`.
unsafe extern "C" fn rows(it: *mut Analysis) -> *const TappedRow {
    // SAFETY: by this function's contract.
    unsafe { analysis(it) }.rows.rows.as_ptr()
}

/// # Safety
/// As for [`analysis`]. The bytes are valid until the next call of `next`.
unsafe extern "C" fn bytes(it: *mut Analysis) -> *const u8 {
    // SAFETY: by this function's contract.
    unsafe { analysis(it) }.rows.bytes.as_ptr()
}

/// # Safety
/// As for [`analysis`]; `out` points to one place. The text is valid until the next call.
unsafe extern "C" fn columns(it: *mut Analysis, stream: u32, out: *mut *const u8) -> u32 {
    // SAFETY: by this function's contract.
    let text = unsafe { analysis(it) }.columns(stream);
    // SAFETY: by this function's contract.
    unsafe { out.write(text.as_ptr()) };
    text.len() as u32
}

/// # Safety
/// As for [`analysis`]; `out` points to one place.
unsafe extern "C" fn progress(it: *mut Analysis, out: *mut Position) {
    // SAFETY: by this function's contract.
    unsafe { out.write(Progress::of(&analysis(it).stream).into()) };
}

/// # Safety
/// As for [`analysis`]; `out` points to one place.
unsafe extern "C" fn statistics(it: *mut Analysis, out: *mut Sums) {
    // SAFETY: by this function's contract.
    let sums = match unsafe { analysis(it) }.work {
        Work::Ended(sums) => sums,
        _ => Sums::default(),
    };
    // SAFETY: by this function's contract.
    unsafe { out.write(sums) };
}
