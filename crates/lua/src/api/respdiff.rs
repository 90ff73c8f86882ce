//! Writing of queries and answers for respdiff.
#![allow(unsafe_code)]

use std::ffi::c_char;
use std::ffi::c_int;
use std::path::Path;
use std::time::Duration;

use gannet_pipeline::respdiff::Writer;

use super::fail;
use super::text;

/// The C declarations of [`Respdiffs`].
pub(crate) const DECLARATIONS: &str = "
typedef struct gannet_respdiff gannet_respdiff;
typedef struct { const uint8_t *bytes; uint32_t len; double seconds; } gannet_answer;
typedef struct {
    gannet_respdiff *(*create)(const char *path, const char *const *servers, int count);
    void (*free)(gannet_respdiff *out);
    int (*put)(gannet_respdiff *out, const uint8_t *query, uint32_t len,
        const gannet_answer *answers, int count);
    int64_t (*finish)(gannet_respdiff *out, uint32_t began, uint32_t ended);
} gannet_respdiffs;
";

/// The functions, in the order of [`DECLARATIONS`].
#[repr(C)]
pub(crate) struct Respdiffs {
    create: unsafe extern "C" fn(*const c_char, *const *const c_char, c_int) -> *mut Respdiff,
    free: unsafe extern "C" fn(*mut Respdiff),
    put: unsafe extern "C" fn(*mut Respdiff, *const u8, u32, *const Answer, c_int) -> c_int,
    finish: unsafe extern "C" fn(*mut Respdiff, u32, u32) -> i64,
}

pub(crate) const TABLE: Respdiffs = Respdiffs { create, free, put, finish };

/// An LMDB environment being written; `None` once it is finished.
pub(crate) struct Respdiff(Option<Writer>);

/// An answer; a negative time means no answer.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Answer {
    bytes: *const u8,
    len: u32,
    seconds: f64,
}

/// # Safety
/// `path` is a C string, and `servers` points to `count` of them.
unsafe extern "C" fn create(
    path: *const c_char,
    servers: *const *const c_char,
    count: c_int,
) -> *mut Respdiff {
    // SAFETY: by this function's contract.
    let servers = unsafe { std::slice::from_raw_parts(servers, count.max(0) as usize) };
    // SAFETY: by this function's contract.
    let servers: Option<Vec<_>> = servers.iter().map(|name| unsafe { text(*name) }).collect();
    // SAFETY: by this function's contract.
    let Some((path, servers)) = unsafe { text(path) }.zip(servers) else {
        fail(&"a path or a name is not UTF-8");
        return std::ptr::null_mut();
    };
    match Writer::create(Path::new(path), &servers) {
        Ok(writer) => Box::into_raw(Box::new(Respdiff(Some(writer)))),
        Err(error) => {
            fail(&error);
            std::ptr::null_mut()
        }
    }
}

/// # Safety
/// `it` came from `create`, and this is its last use.
unsafe extern "C" fn free(it: *mut Respdiff) {
    if !it.is_null() {
        // SAFETY: by this function's contract; `create` made it by `Box::into_raw`.
        drop(unsafe { Box::from_raw(it) });
    }
}

/// # Safety
/// `it` came from `create`, was not freed, and no other call uses it meanwhile; `query` points to
/// `len` bytes, `answers` to `count` answers, each of which points to `len` bytes.
unsafe extern "C" fn put(
    it: *mut Respdiff,
    query: *const u8,
    len: u32,
    answers: *const Answer,
    count: c_int,
) -> c_int {
    assert!(!it.is_null(), "a handle is not null");
    // SAFETY: by this function's contract.
    let (it, query) = unsafe { (&mut *it, std::slice::from_raw_parts(query, len as usize)) };
    // SAFETY: by this function's contract.
    let answers = unsafe { std::slice::from_raw_parts(answers, count.max(0) as usize) };
    let answer = |answer: &Answer| {
        let time = Duration::try_from_secs_f64(answer.seconds).ok()?;
        // SAFETY: by this function's contract.
        Some((unsafe { std::slice::from_raw_parts(answer.bytes, answer.len as usize) }, time))
    };
    let answers: Vec<_> = answers.iter().map(answer).collect();
    let Some(writer) = &mut it.0 else {
        fail(&"finish was already called");
        return -1;
    };
    match writer.put(query, &answers) {
        Ok(()) => 0,
        Err(error) => {
            fail(&error);
            -1
        }
    }
}

/// Returns the number of queries written.
///
/// # Safety
/// `it` came from `create`, was not freed, and no other call uses it meanwhile.
unsafe extern "C" fn finish(it: *mut Respdiff, began: u32, ended: u32) -> i64 {
    assert!(!it.is_null(), "a handle is not null");
    // SAFETY: by this function's contract.
    let Some(writer) = unsafe { &mut *it }.0.take() else {
        fail(&"finish was already called");
        return -1;
    };
    match writer.finish(began, ended) {
        Ok(count) => i64::from(count),
        Err(error) => {
            fail(&error);
            -1
        }
    }
}
