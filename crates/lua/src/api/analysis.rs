//! The analysis of captures, whose events and log rows are passed to scripts.
//!
//! An [`Engine`] runs in the script's thread, and a [`Collector`] receives its results. Only events
//! and logs that the script requests are generated.
#![allow(unsafe_code)]

use std::ffi::c_char;
use std::ffi::c_int;
use std::path::PathBuf;
use std::sync::Arc;

use gannet_capture::Access;
use gannet_capture::Stream;
use gannet_engine::Engine;
use gannet_engine::Options;
use gannet_engine::Statistics;
use gannet_event::Interest;
use gannet_filter::Filter;
use gannet_log::Format;
use gannet_log::Selection;
use gannet_pipeline::worker_pool::Progress;

use crate::stop::ReadingPipe;

use super::Position;
use super::fail;
use super::found::Collector;
use super::found::Item;
use super::found::NewResults;
use super::found::Span;
use super::found::describe_params;
use super::paths;
use super::status;
use super::text;

/// The C declarations of [`Analyses`].
pub(crate) const DECLARATIONS: &str = "
typedef struct gannet_analysis gannet_analysis;
typedef struct {
    uint64_t start, len;
} gannet_span;
typedef struct {
    int64_t time;
    uint64_t packet;
    gannet_span values;
    uint32_t kind, conns, conn_count, file_count;
} gannet_found;
typedef struct {
    uint64_t packets, bytes, filtered, connections;
} gannet_statistics;
typedef struct {
    gannet_analysis *(*open)(const char *const *paths, int count);
    void (*free)(gannet_analysis *analysis);
    uint32_t (*logs)(gannet_analysis *analysis, const char **text);
    uint32_t (*events)(gannet_analysis *analysis, const char **text);
    int (*filter)(gannet_analysis *analysis, const char *expression);
    void (*select)(gannet_analysis *analysis, const char *name, int is_event);
    void (*ignore_checksums)(gannet_analysis *analysis);
    void (*parallel)(gannet_analysis *analysis, int threads);
    int (*next)(gannet_analysis *analysis);
    const gannet_found *(*items)(gannet_analysis *analysis);
    const gannet_span *(*mentioned)(gannet_analysis *analysis);
    const char *(*bytes)(gannet_analysis *analysis);
    uint32_t (*describe)(gannet_analysis *analysis, uint32_t kind, const char **text);
    uint32_t (*line)(gannet_analysis *analysis, uint32_t kind, const char *row, uint32_t len,
        const char **text);
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
    events: unsafe extern "C" fn(*mut Analysis, *mut *const u8) -> u32,
    filter: unsafe extern "C" fn(*mut Analysis, *const c_char) -> c_int,
    select: unsafe extern "C" fn(*mut Analysis, *const c_char, c_int),
    ignore_checksums: unsafe extern "C" fn(*mut Analysis),
    parallel: unsafe extern "C" fn(*mut Analysis, c_int),
    next: unsafe extern "C" fn(*mut Analysis) -> c_int,
    items: unsafe extern "C" fn(*mut Analysis) -> *const Item,
    mentioned: unsafe extern "C" fn(*mut Analysis) -> *const Span,
    bytes: unsafe extern "C" fn(*mut Analysis) -> *const u8,
    describe: unsafe extern "C" fn(*mut Analysis, u32, *mut *const u8) -> u32,
    line: unsafe extern "C" fn(*mut Analysis, u32, *const u8, u32, *mut *const u8) -> u32,
    progress: unsafe extern "C" fn(*mut Analysis, *mut Position),
    statistics: unsafe extern "C" fn(*mut Analysis, *mut Sums),
}

pub(crate) const TABLE: Analyses = Analyses {
    open,
    free,
    logs,
    events,
    filter,
    select,
    ignore_checksums,
    parallel,
    next,
    items,
    mentioned,
    bytes,
    describe,
    line,
    progress,
    statistics,
};

/// The kind number of connections for [`Analysis::describe`].
const CONNECTION: u32 = u32::MAX;
/// The kind number of files for [`Analysis::describe`].
const FILE: u32 = u32::MAX - 1;

/// Totals of the analysis.
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
    /// Exists until the end of the input, if that is a pipe.
    pipe: Option<ReadingPipe>,
    options: Options,
    logs: Vec<String>,
    interest: Interest,
    collector: Collector,
    work: Work,
    found: NewResults,
    text: String,
    /// The damage of a capture; reported at the end.
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
        // Before waiting for the first bytes.
        let pipe = ReadingPipe::begin(paths);
        Ok(Self {
            stream: Stream::open(paths, read)?,
            pipe,
            options: Options::default(),
            logs: Vec::new(),
            interest: Interest::default(),
            collector: Collector::default(),
            work: Work::Waiting,
            found: NewResults::default(),
            text: String::new(),
            damage: None,
        })
    }

    /// Continues until there are results. Returns the number of items, 0 at the end. Damage is an
    /// error at the end.
    fn next(&mut self) -> Result<usize, String> {
        loop {
            match &mut self.work {
                Work::Waiting => {
                    let mut options = std::mem::take(&mut self.options);
                    options.logs.selection = Selection::of(self.logs.iter().map(String::as_str));
                    options.logs.format = Format::Packed;
                    options.logs.at_once = true;
                    options.logs.outputs = vec![Arc::new(self.collector.clone())];
                    let engine = match self.interest.any() {
                        true => {
                            // Rows and events together are in the order of packets in one thread.
                            let listener = match self.logs.is_empty() {
                                true => self.collector.for_events(),
                                false => self.collector.clone(),
                            };
                            let (interest, listener) = (self.interest.clone(), Box::new(listener));
                            if options.threads > 1 {
                                self.stream.set_batch_packets(gannet_capture::BATCH_PACKETS);
                            }
                            Engine::with_listener(options, interest, listener)
                        }
                        false => Engine::new(Options { threads: 1, ..options }),
                    };
                    self.work = Work::Running(Box::new(engine));
                    continue;
                }
                Work::Running(engine) => match self.stream.next_batch() {
                    Ok(Some(batch)) => engine.batch(&batch).map_err(|e| e.to_string())?,
                    Ok(None) => {
                        self.pipe = None;
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
                    self.found = NewResults::default();
                    return self.damage.take().map_or(Ok(0), Err);
                }
            }
            self.found.clear();
            self.collector.found().swap(&mut self.found);
            if !self.found.items.is_empty() {
                return Ok(self.found.items.len());
            }
        }
    }

    /// Describes a kind of items; the last two numbers are those of connections and files.
    fn describe(&mut self, kind: u32) -> &str {
        self.text.clear();
        match kind {
            CONNECTION => describe_params(gannet_event::CONNECTION.fields, &mut self.text),
            FILE => describe_params(gannet_event::FILE.fields, &mut self.text),
            _ => self.collector.found().describe(kind, &mut self.text),
        }
        &self.text
    }

    /// A row as a line of its log.
    fn line(&mut self, kind: u32, row: &[u8]) -> &str {
        self.text = self.collector.found().line(kind, row).unwrap_or_default();
        &self.text
    }

    /// Names of all events, one per line.
    fn event_names(&mut self) -> &str {
        self.text = gannet_engine::events().map(|decl| decl.name).collect::<Vec<_>>().join("\n");
        &self.text
    }

    /// Names of all logs, one per line.
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
/// As for [`analysis`]; `out` is valid for a write. The text is valid until the next call.
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
    status(parsed.map(|filter| {
        it.options.filter = Some(filter);
        0
    }))
}

/// # Safety
/// As for [`analysis`]; `out` is valid for a write. The text is valid until the next call.
unsafe extern "C" fn events(it: *mut Analysis, out: *mut *const u8) -> u32 {
    // SAFETY: by this function's contract.
    let text = unsafe { analysis(it) }.event_names();
    // SAFETY: by this function's contract.
    unsafe { out.write(text.as_ptr()) };
    text.len() as u32
}

/// # Safety
/// As for [`analysis`]; `name` is a C string.
unsafe extern "C" fn select(it: *mut Analysis, name: *const c_char, is_event: c_int) {
    // SAFETY: by this function's contract.
    let (it, name) = unsafe { (analysis(it), text(name)) };
    let Some(name) = name else { return };
    if is_event == 0 {
        it.logs.push(name.to_owned());
    } else if let Some(decl) = gannet_engine::events().find(|decl| decl.name == name) {
        it.interest.add(decl.id);
    }
}

/// # Safety
/// As for [`analysis`].
unsafe extern "C" fn ignore_checksums(it: *mut Analysis) {
    // SAFETY: by this function's contract.
    unsafe { analysis(it) }.options.ignore_checksums = true;
}

/// # Safety
/// As for [`analysis`].
unsafe extern "C" fn parallel(it: *mut Analysis, threads: c_int) {
    // SAFETY: by this function's contract.
    unsafe { analysis(it) }.options.threads = usize::try_from(threads).unwrap_or(1);
}

/// # Safety
/// As for [`analysis`].
unsafe extern "C" fn next(it: *mut Analysis) -> c_int {
    // SAFETY: by this function's contract.
    status(unsafe { analysis(it) }.next().map(|n| c_int::try_from(n).unwrap_or(c_int::MAX)))
}

/// # Safety
/// As for [`analysis`]. The items are valid until the next call of `next`.
unsafe extern "C" fn items(it: *mut Analysis) -> *const Item {
    // SAFETY: by this function's contract.
    unsafe { analysis(it) }.found.items.as_ptr()
}

/// # Safety
/// As for [`analysis`]. The spans are valid until the next call of `next`.
unsafe extern "C" fn mentioned(it: *mut Analysis) -> *const Span {
    // SAFETY: by this function's contract.
    unsafe { analysis(it) }.found.mentioned.as_ptr()
}

/// # Safety
/// As for [`analysis`]. The bytes are valid until the next call of `next`.
unsafe extern "C" fn bytes(it: *mut Analysis) -> *const u8 {
    // SAFETY: by this function's contract.
    unsafe { analysis(it) }.found.bytes.as_ptr()
}

/// # Safety
/// As for [`analysis`]; `out` is valid for a write. The text is valid until the next call.
unsafe extern "C" fn describe(it: *mut Analysis, kind: u32, out: *mut *const u8) -> u32 {
    // SAFETY: by this function's contract.
    let text = unsafe { analysis(it) }.describe(kind);
    // SAFETY: by this function's contract.
    unsafe { out.write(text.as_ptr()) };
    text.len() as u32
}

/// # Safety
/// As for [`analysis`]; `row` points to `len` bytes, `out` is valid for a write. The text is valid until the next call.
unsafe extern "C" fn line(
    it: *mut Analysis,
    kind: u32,
    row: *const u8,
    len: u32,
    out: *mut *const u8,
) -> u32 {
    // SAFETY: by this function's contract.
    let (it, row) = unsafe { (analysis(it), std::slice::from_raw_parts(row, len as usize)) };
    let text = it.line(kind, row);
    // SAFETY: by this function's contract.
    unsafe { out.write(text.as_ptr()) };
    text.len() as u32
}

/// # Safety
/// As for [`analysis`]; `out` is valid for a write.
unsafe extern "C" fn progress(it: *mut Analysis, out: *mut Position) {
    // SAFETY: by this function's contract.
    unsafe { out.write(Progress::of(&analysis(it).stream).into()) };
}

/// # Safety
/// As for [`analysis`]; `out` is valid for a write.
unsafe extern "C" fn statistics(it: *mut Analysis, out: *mut Sums) {
    // SAFETY: by this function's contract.
    let sums = match unsafe { analysis(it) }.work {
        Work::Ended(sums) => sums,
        _ => Sums::default(),
    };
    // SAFETY: by this function's contract.
    unsafe { out.write(sums) };
}
