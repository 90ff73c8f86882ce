//! The functions that Lua modules call through the FFI.
//!
//! [`table()`] is a struct of C function pointers, declared to Lua by [`DECLARATIONS`]. The two
//! lists must agree; a test of sizes and every test that runs a script check this.
//!
//! Contract of all functions: pointers come from this crate's own Lua modules, which pass results
//! of earlier calls that are not freed (the garbage collector frees them), or buffers that live for
//! the duration of the call. A null pointer is refused. No function unwinds or raises an error.
#![allow(unsafe_code)]

mod analysis;
mod change;
mod client;
mod dns;
mod found;
mod gather;
mod group;
mod join;
mod latency;
mod pairing;
mod record;
mod respdiff;
mod stage;
mod stream;
mod thread;

use std::cell::Cell;
use std::cell::RefCell;
use std::ffi::CStr;
use std::ffi::CString;
use std::ffi::c_char;
use std::ffi::c_int;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Instant;

use gannet_base::Addr;
use gannet_pipeline::split::ByClient;
use gannet_pipeline::split::Split;
use gannet_pipeline::worker_pool::Progress;

use crate::script::Report;

use analysis::Analyses;
use change::ChangeRequest;
use client::Clients;
use dns::Edns;
use latency::Summary;
use record::Record;
use respdiff::Respdiffs;
use stage::Stages;
use stream::Flow;
use thread::Threads;

/// The C declarations of [`Api`] for LuaJIT's FFI; those of the tables that it points to come
/// first.
pub(crate) fn declarations() -> String {
    [
        thread::DECLARATIONS,
        client::DECLARATIONS,
        stage::DECLARATIONS,
        respdiff::DECLARATIONS,
        PROGRESS,
        analysis::DECLARATIONS,
        change::DECLARATIONS,
        DECLARATIONS,
    ]
    .concat()
}

const PROGRESS: &str = "
typedef struct {
    uint64_t packets, bytes, total;
    int has_total;
} gannet_progress;
";

const DECLARATIONS: &str = "
typedef struct {
    int64_t time;
    uint64_t number;
    const uint8_t *bytes;
    uint8_t src[16];
    uint8_t dst[16];
    uint32_t at;
    uint32_t len;
    uint32_t wire_len;
    uint32_t payload_at;
    uint32_t payload_len;
    uint32_t name_at;
    uint16_t name_len;
    uint16_t link_type;
    uint16_t sport;
    uint16_t dport;
    uint16_t id;
    uint16_t flags;
    uint16_t qtype;
    uint16_t qclass;
    uint16_t counts[4];
    uint8_t proto;
    uint8_t has_ip;
    uint8_t has_ports;
    uint8_t has_question;
    uint8_t has_pair;
    uint8_t is_second;
} gannet_record;

typedef struct gannet_flow gannet_flow;

typedef struct {
    uint16_t size, flags, rcode;
    uint8_t version;
    uint32_t options_at, options_len;
} gannet_edns;

typedef struct {
    uint64_t queries, answered;
    double mean, min, p50, p90, p99, max;
} gannet_latencies;

typedef struct {
    const char *(*version)(void);
    const char *(*last_error)(void);
    double (*clock)(void);
    int (*processors)(void);
    void (*report)(const gannet_progress *at, double seconds, int done);
    int (*address_text)(const uint8_t *bytes, char *buffer);
    gannet_flow *(*stream_open)(const char *const *paths, int count);
    void (*stream_free)(gannet_flow *flow);
    int (*stream_filter)(gannet_flow *flow, const char *expression);
    void (*stream_dns)(gannet_flow *flow, const uint16_t *ports, int count);
    void (*stream_only)(gannet_flow *flow, int which);
    void (*stream_join)(gannet_flow *flow, double timeout);
    int (*stream_next)(gannet_flow *flow);
    const gannet_record *(*stream_records)(gannet_flow *flow);
    const char *(*stream_names)(gannet_flow *flow);
    void (*stream_parallel)(gannet_flow *flow, int threads);
    void (*stream_progress)(gannet_flow *flow, gannet_progress *out);
    void (*stream_sum)(gannet_flow *flow, int value, const uint8_t *fields, int count, int64_t limit);
    int (*stream_latencies)(gannet_flow *flow, int64_t limit);
    int (*stream_write)(gannet_flow *flow, const char *const *paths, int count, int how,
        const uint32_t *weights, int64_t seed, int64_t limit);
    void (*stream_pace)(gannet_flow *flow, int kind, double value);
    void (*stream_wait)(gannet_flow *flow, int64_t time);
    int (*stream_step)(gannet_flow *flow);
    int64_t (*stream_rows)(gannet_flow *flow);
    uint64_t (*stream_total)(gannet_flow *flow, int64_t first);
    uint64_t (*stream_row)(gannet_flow *flow, int64_t row, const char **key, uint32_t *len);
    void (*stream_measured)(gannet_flow *flow, gannet_latencies *out);
    uint32_t (*dns_answers)(const uint8_t *bytes, uint32_t len, const char **text);
    int (*dns_edns)(const uint8_t *bytes, uint32_t len, gannet_edns *out);
    int64_t (*packet_with)(const gannet_record *record, const gannet_change *change, const char **bytes,
        uint32_t *wire_len);
    int (*stream_put)(gannet_flow *flow, int64_t time, int link_type, const void *bytes, uint32_t len,
        uint32_t wire_len);
    int (*stream_end)(gannet_flow *flow);
    const gannet_threads *threads;
    const gannet_clients *clients;
    const gannet_analyses *analyses;
    const gannet_stages *stages;
    const gannet_respdiffs *respdiffs;
} gannet_api;
";

/// The functions, in the order of [`DECLARATIONS`].
#[repr(C)]
pub(crate) struct Api {
    version: extern "C" fn() -> *const c_char,
    last_error: extern "C" fn() -> *const c_char,
    clock: extern "C" fn() -> f64,
    processors: extern "C" fn() -> c_int,
    report: unsafe extern "C" fn(*const Position, f64, c_int),
    address_text: unsafe extern "C" fn(*const u8, *mut c_char) -> c_int,
    stream_open: unsafe extern "C" fn(*const *const c_char, c_int) -> *mut Flow,
    stream_free: unsafe extern "C" fn(*mut Flow),
    stream_filter: unsafe extern "C" fn(*mut Flow, *const c_char) -> c_int,
    stream_dns: unsafe extern "C" fn(*mut Flow, *const u16, c_int),
    stream_only: unsafe extern "C" fn(*mut Flow, c_int),
    stream_join: unsafe extern "C" fn(*mut Flow, f64),
    stream_next: unsafe extern "C" fn(*mut Flow) -> c_int,
    stream_records: unsafe extern "C" fn(*mut Flow) -> *const Record,
    stream_names: unsafe extern "C" fn(*mut Flow) -> *const u8,
    stream_parallel: unsafe extern "C" fn(*mut Flow, c_int),
    stream_progress: unsafe extern "C" fn(*mut Flow, *mut Position),
    stream_sum: unsafe extern "C" fn(*mut Flow, c_int, *const u8, c_int, i64),
    stream_latencies: unsafe extern "C" fn(*mut Flow, i64) -> c_int,
    stream_write: unsafe extern "C" fn(
        *mut Flow,
        *const *const c_char,
        c_int,
        c_int,
        *const u32,
        i64,
        i64,
    ) -> c_int,
    stream_pace: unsafe extern "C" fn(*mut Flow, c_int, f64),
    stream_wait: unsafe extern "C" fn(*mut Flow, i64),
    stream_step: unsafe extern "C" fn(*mut Flow) -> c_int,
    stream_rows: unsafe extern "C" fn(*mut Flow) -> i64,
    stream_total: unsafe extern "C" fn(*mut Flow, i64) -> u64,
    stream_row: unsafe extern "C" fn(*mut Flow, i64, *mut *const u8, *mut u32) -> u64,
    stream_measured: unsafe extern "C" fn(*mut Flow, *mut Summary),
    dns_answers: unsafe extern "C" fn(*const u8, u32, *mut *const u8) -> u32,
    dns_edns: unsafe extern "C" fn(*const u8, u32, *mut Edns) -> c_int,
    packet_with:
        unsafe extern "C" fn(*const Record, *const ChangeRequest, *mut *const u8, *mut u32) -> i64,
    stream_put: unsafe extern "C" fn(*mut Flow, i64, c_int, *const u8, u32, u32) -> c_int,
    stream_end: unsafe extern "C" fn(*mut Flow) -> c_int,
    threads: &'static Threads,
    clients: &'static Clients,
    analyses: &'static Analyses,
    stages: &'static Stages,
    respdiffs: &'static Respdiffs,
}

/// The progress of reading, in C layout.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Position {
    packets: u64,
    bytes: u64,
    total: u64,
    has_total: c_int,
}

impl From<Progress> for Position {
    fn from(p: Progress) -> Self {
        Self {
            packets: p.packets,
            bytes: p.bytes,
            total: p.total.unwrap_or(0),
            has_total: c_int::from(p.total.is_some()),
        }
    }
}

static TABLE: Api = Api {
    version,
    last_error,
    clock,
    processors,
    report,
    address_text,
    stream_open,
    stream_free,
    stream_filter,
    stream_dns,
    stream_only,
    stream_join,
    stream_next,
    stream_records,
    stream_names,
    stream_parallel,
    stream_progress,
    stream_sum,
    stream_latencies,
    stream_write,
    stream_pace,
    stream_wait,
    stream_step,
    stream_rows,
    stream_total,
    stream_row,
    stream_measured,
    dns_answers,
    dns_edns,
    packet_with: change::packet_with,
    stream_put,
    stream_end,
    threads: &thread::TABLE,
    clients: &client::TABLE,
    analyses: &analysis::TABLE,
    stages: &stage::TABLE,
    respdiffs: &respdiff::TABLE,
};

/// The functions; they live as long as the program.
pub(crate) fn table() -> *const Api {
    &raw const TABLE
}

thread_local! {
    static LAST_ERROR: RefCell<CString> = RefCell::default();
    static REPORT: Cell<Option<Report>> = const { Cell::new(None) };
    static ANSWERS: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Sets the function that shows the progress of this thread's pipelines.
pub(crate) fn set_report(report: Option<Report>) {
    REPORT.with(|r| r.set(report));
}

/// Stores an error for `last_error`.
pub(crate) fn fail(error: &dyn ToString) {
    let text = error.to_string().replace('\0', "");
    LAST_ERROR.with(|e| *e.borrow_mut() = CString::new(text).unwrap_or_default());
}

extern "C" fn version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

extern "C" fn last_error() -> *const c_char {
    LAST_ERROR.with(|e| e.borrow().as_ptr())
}

/// Seconds since the first call, by a monotonic clock.
extern "C" fn clock() -> f64 {
    static FIRST: OnceLock<Instant> = OnceLock::new();
    FIRST.get_or_init(Instant::now).elapsed().as_secs_f64()
}

/// Number of threads that can run in parallel.
extern "C" fn processors() -> c_int {
    std::thread::available_parallelism().map_or(1, |n| n.get().min(stream::MAX_THREADS) as c_int)
}

/// # Safety
/// `at` points to a position.
unsafe extern "C" fn report(at: *const Position, seconds: f64, done: c_int) {
    if let Some(report) = REPORT.with(Cell::get) {
        // SAFETY: by this function's contract.
        let at = unsafe { at.read() };
        let total = (at.has_total != 0).then_some(at.total);
        report(&Progress { packets: at.packets, bytes: at.bytes, total }, seconds, done != 0);
    }
}

/// The text of a C string passed by Lua; `None` if it is null or not UTF-8.
///
/// # Safety
/// `text` is null or points to bytes that end with a zero and live for the call.
unsafe fn text<'a>(text: *const c_char) -> Option<&'a str> {
    if text.is_null() {
        return None;
    }
    // SAFETY: by this function's contract.
    unsafe { CStr::from_ptr(text) }.to_str().ok()
}

/// # Safety
/// `bytes` points to 16 bytes, `buffer` to 64.
unsafe extern "C" fn address_text(bytes: *const u8, buffer: *mut c_char) -> c_int {
    // SAFETY: by this function's contract.
    let bytes = unsafe { bytes.cast::<[u8; 16]>().read() };
    let text = Addr::v6(bytes).to_string();
    let len = text.len().min(63);
    // SAFETY: the buffer has 64 bytes, and `len` is less.
    unsafe { buffer.cast::<u8>().copy_from_nonoverlapping(text.as_ptr(), len) };
    len as c_int
}

/// The paths passed by Lua; `None` if one is not UTF-8.
///
/// # Safety
/// `list` points to `count` C strings.
unsafe fn paths(list: *const *const c_char, count: c_int) -> Option<Vec<PathBuf>> {
    // SAFETY: by this function's contract.
    let list = unsafe { std::slice::from_raw_parts(list, count.max(0) as usize) };
    // SAFETY: by this function's contract.
    list.iter().map(|p| unsafe { text(*p) }.map(PathBuf::from)).collect()
}

/// # Safety
/// As for [`paths`].
unsafe extern "C" fn stream_open(list: *const *const c_char, count: c_int) -> *mut Flow {
    // SAFETY: by this function's contract.
    let Some(named) = (unsafe { paths(list, count) }) else {
        fail(&"a path is not UTF-8");
        return std::ptr::null_mut();
    };
    match Flow::open(&named) {
        Ok(flow) => Box::into_raw(Box::new(flow)),
        Err(error) => {
            fail(&error);
            std::ptr::null_mut()
        }
    }
}

/// # Safety
/// `flow` came from `stream_open`, and this is its last use.
unsafe extern "C" fn stream_free(flow: *mut Flow) {
    if !flow.is_null() {
        // SAFETY: by this function's contract; `stream_open` made it by `Box::into_raw`.
        drop(unsafe { Box::from_raw(flow) });
    }
}

/// Dereferences a flow for one call.
///
/// # Safety
/// `flow` came from `stream_open`, was not freed, and no other call uses it meanwhile (Lua states
/// are used by one thread).
unsafe fn flow<'a>(flow: *mut Flow) -> &'a mut Flow {
    assert!(!flow.is_null(), "a pipeline's handle is not null");
    // SAFETY: by this function's contract.
    unsafe { &mut *flow }
}

/// # Safety
/// As for [`flow`]; `expression` is a C string.
unsafe extern "C" fn stream_filter(it: *mut Flow, expression: *const c_char) -> c_int {
    // SAFETY: by this function's contract.
    let (it, expression) = unsafe { (flow(it), text(expression)) };
    let Some(expression) = expression else {
        fail(&"the filter is not UTF-8");
        return -1;
    };
    match it.filter(expression) {
        Ok(()) => 0,
        Err(error) => {
            fail(&error);
            -1
        }
    }
}

/// # Safety
/// As for [`flow`]; `ports` points to `count` numbers.
unsafe extern "C" fn stream_dns(it: *mut Flow, ports: *const u16, count: c_int) {
    // SAFETY: by this function's contract.
    unsafe { flow(it).dns(std::slice::from_raw_parts(ports, count.max(0) as usize)) };
}

/// # Safety
/// As for [`flow`].
unsafe extern "C" fn stream_only(it: *mut Flow, which: c_int) {
    // SAFETY: by this function's contract.
    unsafe { flow(it) }.only(which == 1);
}

/// # Safety
/// As for [`flow`].
unsafe extern "C" fn stream_join(it: *mut Flow, timeout: f64) {
    // SAFETY: by this function's contract.
    unsafe { flow(it) }.join(timeout as i64);
}

/// # Safety
/// As for [`flow`].
unsafe extern "C" fn stream_next(it: *mut Flow) -> c_int {
    // SAFETY: by this function's contract.
    match unsafe { flow(it) }.next() {
        Ok(count) => count as c_int,
        Err(error) => {
            fail(&error);
            -1
        }
    }
}

/// # Safety
/// As for [`flow`]. The records are valid until the next call with the same flow.
unsafe extern "C" fn stream_records(it: *mut Flow) -> *const Record {
    // SAFETY: by this function's contract.
    unsafe { flow(it) }.records().as_ptr()
}

/// # Safety
/// As for [`flow`]. The bytes are valid until the next call with the same flow.
unsafe extern "C" fn stream_names(it: *mut Flow) -> *const u8 {
    // SAFETY: by this function's contract.
    unsafe { flow(it) }.names().as_ptr()
}

/// # Safety
/// As for [`flow`].
unsafe extern "C" fn stream_parallel(it: *mut Flow, threads: c_int) {
    // SAFETY: by this function's contract.
    unsafe { flow(it) }.parallel(usize::try_from(threads).unwrap_or(1));
}

/// # Safety
/// As for [`flow`]; `out` is valid for a write.
unsafe extern "C" fn stream_progress(it: *mut Flow, out: *mut Position) {
    // SAFETY: by this function's contract.
    unsafe { out.write(flow(it).progress().into()) };
}

/// # Safety
/// As for [`flow`]; `fields` points to `count` bytes.
unsafe extern "C" fn stream_sum(
    it: *mut Flow,
    value: c_int,
    fields: *const u8,
    count: c_int,
    limit: i64,
) {
    // SAFETY: by this function's contract.
    let (it, fields) =
        unsafe { (flow(it), std::slice::from_raw_parts(fields, count.max(0) as usize)) };
    it.begin_sum(value as u8, fields, u64::try_from(limit).ok());
}

/// # Safety
/// As for [`flow`].
unsafe extern "C" fn stream_latencies(it: *mut Flow, limit: i64) -> c_int {
    // SAFETY: by this function's contract.
    status(unsafe { flow(it) }.begin_latencies(u64::try_from(limit).ok()).map(|()| 0))
}

/// # Safety
/// As for [`flow`] and [`paths`]; `weights` points to `count` numbers.
unsafe extern "C" fn stream_write(
    it: *mut Flow,
    list: *const *const c_char,
    count: c_int,
    how: c_int,
    weights: *const u32,
    seed: i64,
    limit: i64,
) -> c_int {
    // SAFETY: by this function's contract.
    let (it, named) = unsafe { (flow(it), paths(list, count)) };
    // SAFETY: by this function's contract.
    let weights = unsafe { std::slice::from_raw_parts(weights, count.max(0) as usize) };
    let Some(named) = named else {
        fail(&"a path is not UTF-8");
        return -1;
    };
    let split = match how {
        0 => Some(Split::All(named.len())),
        1 => Some(Split::RoundRobin(named.len(), 0)),
        _ => ByClient::new(weights, stage::order(seed))
            .map(|clients| Split::Clients(Box::new(clients))),
    };
    let Some(split) = split else {
        fail(&"weights must be greater than 0");
        return -1;
    };
    status(it.begin_write(&named, split, u64::try_from(limit).ok()).map(|()| 0))
}

/// # Safety
/// As for [`flow`].
unsafe extern "C" fn stream_pace(it: *mut Flow, kind: c_int, value: f64) {
    // SAFETY: by this function's contract.
    unsafe { flow(it) }.pace(stage::pace(kind, value));
}

/// # Safety
/// As for [`flow`].
unsafe extern "C" fn stream_wait(it: *mut Flow, time: i64) {
    // SAFETY: by this function's contract.
    unsafe { flow(it) }.wait(time);
}

/// # Safety
/// As for [`flow`].
unsafe extern "C" fn stream_step(it: *mut Flow) -> c_int {
    // SAFETY: by this function's contract.
    status(unsafe { flow(it) }.step().map(c_int::from))
}

/// Converts a result to C: -1 for an error, which is stored for `last_error`.
fn status(result: Result<c_int, String>) -> c_int {
    result.unwrap_or_else(|error| {
        fail(&error);
        -1
    })
}

/// # Safety
/// As for [`flow`].
unsafe extern "C" fn stream_rows(it: *mut Flow) -> i64 {
    // SAFETY: by this function's contract.
    unsafe { flow(it) }.counts().len() as i64
}

/// Sorts the `first` rows with the highest counts to the front; returns the sum of all rows.
///
/// # Safety
/// As for [`flow`].
unsafe extern "C" fn stream_total(it: *mut Flow, first: i64) -> u64 {
    // SAFETY: by this function's contract.
    let counts = unsafe { flow(it) }.counts();
    counts.sort(usize::try_from(first).unwrap_or(usize::MAX));
    counts.total()
}

/// # Safety
/// As for [`flow`]; `key` and `len` are valid for writes. The key is valid as long as the flow.
unsafe extern "C" fn stream_row(
    it: *mut Flow,
    row: i64,
    key: *mut *const u8,
    len: *mut u32,
) -> u64 {
    // SAFETY: by this function's contract.
    let (text, count) = unsafe { flow(it) }.counts().row(row as usize);
    // SAFETY: by this function's contract.
    unsafe {
        key.write(text.as_ptr());
        len.write(text.len() as u32);
    }
    count
}

/// # Safety
/// As for [`flow`]; `out` is valid for a write.
unsafe extern "C" fn stream_measured(it: *mut Flow, out: *mut Summary) {
    // SAFETY: by this function's contract.
    unsafe { out.write(flow(it).latencies()) };
}

/// Writes the packet that a script's function returned.
///
/// # Safety
/// As for [`flow`]; `bytes` points to `len` bytes.
unsafe extern "C" fn stream_put(
    it: *mut Flow,
    time: i64,
    link_type: c_int,
    bytes: *const u8,
    len: u32,
    wire_len: u32,
) -> c_int {
    // SAFETY: by this function's contract.
    let (it, data) = unsafe { (flow(it), std::slice::from_raw_parts(bytes, len as usize)) };
    status(it.put(time, link_type as u16, data, wire_len).map(|()| 0))
}

/// Completes the written captures.
///
/// # Safety
/// As for [`flow`].
unsafe extern "C" fn stream_end(it: *mut Flow) -> c_int {
    // SAFETY: by this function's contract.
    status(unsafe { flow(it) }.complete().map(|()| 0))
}

/// # Safety
/// `bytes` points to `len` bytes, `out` is valid for a write.
unsafe extern "C" fn dns_edns(bytes: *const u8, len: u32, out: *mut Edns) -> c_int {
    // SAFETY: by this function's contract.
    let message = unsafe { std::slice::from_raw_parts(bytes, len as usize) };
    match dns::edns(message) {
        Some(edns) => {
            // SAFETY: by this function's contract.
            unsafe { out.write(edns) };
            1
        }
        None => 0,
    }
}

/// # Safety
/// `bytes` points to `len` bytes, `out` is valid for a write. The text is valid until the next call in the
/// same thread.
unsafe extern "C" fn dns_answers(bytes: *const u8, len: u32, out: *mut *const u8) -> u32 {
    // SAFETY: by this function's contract.
    let message = unsafe { std::slice::from_raw_parts(bytes, len as usize) };
    ANSWERS.with(|text| {
        let mut text = text.borrow_mut();
        text.clear();
        dns::write_records(message, &mut text);
        // SAFETY: by this function's contract.
        unsafe { out.write(text.as_ptr()) };
        text.len() as u32
    })
}
