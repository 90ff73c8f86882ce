//! The functions that Lua modules call through the FFI.
//!
//! [`table()`] is a struct of C function pointers, declared to Lua by [`DECLARATIONS`]: one list,
//! written twice, and held together by a test of sizes and by every test that runs a script.
//!
//! What holds for all of them: pointers come from this crate's own Lua modules, which pass what an
//! earlier call returned and have not freed (they let the garbage collector free it), or buffers
//! that live for the call. A null pointer is refused. Nothing unwinds out of them, nothing raises.
#![allow(unsafe_code)]

mod client;
mod dns;
mod group;
mod join;
mod latency;
mod stream;
mod thread;

use std::cell::RefCell;
use std::ffi::CStr;
use std::ffi::CString;
use std::ffi::c_char;
use std::ffi::c_int;
use std::path::PathBuf;

use gannet_base::Addr;

use client::Clients;
use latency::Summary;
use stream::Flow;
use stream::Record;
use thread::Threads;

/// The same in C, for LuaJIT's FFI; those of the parts that it has by pointer come first.
pub(crate) fn declarations() -> String {
    [thread::DECLARATIONS, client::DECLARATIONS, DECLARATIONS].concat()
}

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
    uint64_t queries, answered;
    double mean, min, p50, p90, p99, max;
} gannet_latencies;

typedef struct {
    const char *(*version)(void);
    const char *(*last_error)(void);
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
    int64_t (*stream_count_by)(gannet_flow *flow, const uint8_t *fields, int count, int64_t limit);
    uint64_t (*stream_count_total)(gannet_flow *flow, int64_t first);
    uint64_t (*stream_count_row)(gannet_flow *flow, int64_t row, const char **key, uint32_t *len);
    int (*stream_latencies)(gannet_flow *flow, int64_t limit, gannet_latencies *out);
    int64_t (*stream_write)(gannet_flow *flow, const char *path, int64_t limit);
    uint32_t (*dns_answers)(const uint8_t *bytes, uint32_t len, const char **text);
    const gannet_threads *threads;
    const gannet_clients *clients;
} gannet_api;
";

/// The functions, in the order of [`DECLARATIONS`].
#[repr(C)]
pub(crate) struct Api {
    version: extern "C" fn() -> *const c_char,
    last_error: extern "C" fn() -> *const c_char,
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
    stream_count_by: unsafe extern "C" fn(*mut Flow, *const u8, c_int, i64) -> i64,
    stream_count_total: unsafe extern "C" fn(*mut Flow, i64) -> u64,
    stream_count_row: unsafe extern "C" fn(*mut Flow, i64, *mut *const u8, *mut u32) -> u64,
    stream_latencies: unsafe extern "C" fn(*mut Flow, i64, *mut Summary) -> c_int,
    stream_write: unsafe extern "C" fn(*mut Flow, *const c_char, i64) -> i64,
    dns_answers: unsafe extern "C" fn(*const u8, u32, *mut *const u8) -> u32,
    threads: &'static Threads,
    clients: &'static Clients,
}

static TABLE: Api = Api {
    version,
    last_error,
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
    stream_count_by,
    stream_count_total,
    stream_count_row,
    stream_latencies,
    stream_write,
    dns_answers,
    threads: &thread::TABLE,
    clients: &client::TABLE,
};

/// The functions; they live as long as the program.
pub(crate) fn table() -> *const Api {
    &raw const TABLE
}

thread_local! {
    static LAST_ERROR: RefCell<CString> = RefCell::default();
    static ANSWERS: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Keeps what went wrong for `last_error`.
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

/// Text of a C string that Lua passes.
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

/// # Safety
/// `paths` points to `count` C strings.
unsafe extern "C" fn stream_open(paths: *const *const c_char, count: c_int) -> *mut Flow {
    // SAFETY: by this function's contract.
    let paths = unsafe { std::slice::from_raw_parts(paths, count.max(0) as usize) };
    let named: Option<Vec<PathBuf>> = paths
        .iter()
        // SAFETY: by this function's contract.
        .map(|p| unsafe { text(*p) }.map(PathBuf::from))
        .collect();
    let Some(named) = named else {
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

/// The flow behind a pointer, for one call.
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
/// As for [`flow`]; `fields` points to `count` bytes.
unsafe extern "C" fn stream_count_by(
    it: *mut Flow,
    fields: *const u8,
    count: c_int,
    limit: i64,
) -> i64 {
    // SAFETY: by this function's contract.
    let (it, fields) =
        unsafe { (flow(it), std::slice::from_raw_parts(fields, count.max(0) as usize)) };
    match it.count_by(fields, u64::try_from(limit).ok()) {
        Ok(rows) => rows as i64,
        Err(error) => {
            fail(&error);
            -1
        }
    }
}

/// Puts the rows that were counted most in front; how many were counted in all.
///
/// # Safety
/// As for [`flow`].
unsafe extern "C" fn stream_count_total(it: *mut Flow, first: i64) -> u64 {
    // SAFETY: by this function's contract.
    let groups = unsafe { flow(it) }.groups();
    groups.sort(usize::try_from(first).unwrap_or(usize::MAX));
    groups.total()
}

/// # Safety
/// As for [`flow`]; `out` points to one place.
unsafe extern "C" fn stream_latencies(it: *mut Flow, limit: i64, out: *mut Summary) -> c_int {
    // SAFETY: by this function's contract.
    match unsafe { flow(it) }.latencies(u64::try_from(limit).ok()) {
        Ok(summary) => {
            // SAFETY: by this function's contract.
            unsafe { out.write(summary) };
            0
        }
        Err(error) => {
            fail(&error);
            -1
        }
    }
}

/// # Safety
/// As for [`flow`]; `key` and `len` point to one place each. The key is valid as long as the flow.
unsafe extern "C" fn stream_count_row(
    it: *mut Flow,
    row: i64,
    key: *mut *const u8,
    len: *mut u32,
) -> u64 {
    // SAFETY: by this function's contract.
    let it = unsafe { flow(it) };
    let (text, count) = it.row(row as usize);
    // SAFETY: by this function's contract.
    unsafe {
        key.write(text.as_ptr());
        len.write(text.len() as u32);
    }
    count
}

/// # Safety
/// As for [`flow`]; `path` is a C string.
unsafe extern "C" fn stream_write(it: *mut Flow, path: *const c_char, limit: i64) -> i64 {
    // SAFETY: by this function's contract.
    let (it, path) = unsafe { (flow(it), text(path)) };
    let Some(path) = path else {
        fail(&"the path is not UTF-8");
        return -1;
    };
    match it.write(path.as_ref(), u64::try_from(limit).ok()) {
        Ok(count) => count as i64,
        Err(error) => {
            fail(&error);
            -1
        }
    }
}

/// # Safety
/// `bytes` points to `len` bytes, `out` to one place. The text is valid until the next call in the
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
