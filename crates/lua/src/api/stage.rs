//! Pipeline stages that dnsjit scripts use separately: splitting by client, and timing.
#![allow(unsafe_code)]

use std::ffi::c_int;

use gannet_pipeline::pace::Pace;
use gannet_pipeline::pace::Schedule;
use gannet_pipeline::split::ByClient;
use gannet_pipeline::split::Order;

use super::fail;

/// The C declarations of [`Stages`].
pub(crate) const DECLARATIONS: &str = "
typedef struct gannet_split gannet_split;
typedef struct gannet_schedule gannet_schedule;
typedef struct {
    gannet_split *(*split)(const uint32_t *weights, int count, int64_t seed);
    void (*split_free)(gannet_split *split);
    int (*split_output)(gannet_split *split, const uint8_t *client, uint32_t len, uint32_t *number);
    gannet_schedule *(*schedule)(int kind, double value);
    void (*schedule_free)(gannet_schedule *schedule);
    double (*schedule_wait)(gannet_schedule *schedule, int64_t time);
} gannet_stages;
";

/// The functions, in the order of [`DECLARATIONS`].
#[repr(C)]
pub(crate) struct Stages {
    split: unsafe extern "C" fn(*const u32, c_int, i64) -> *mut ByClient,
    split_free: unsafe extern "C" fn(*mut ByClient),
    split_output: unsafe extern "C" fn(*mut ByClient, *const u8, u32, *mut u32) -> c_int,
    schedule: extern "C" fn(c_int, f64) -> *mut Schedule,
    schedule_free: unsafe extern "C" fn(*mut Schedule),
    schedule_wait: unsafe extern "C" fn(*mut Schedule, i64) -> f64,
}

pub(crate) const TABLE: Stages =
    Stages { split, split_free, split_output, schedule, schedule_free, schedule_wait };

/// The pace with this number, as in `stream_pace`.
pub(super) fn pace(kind: c_int, value: f64) -> Pace {
    match kind {
        0 => Pace::Speed(value),
        1 => Pace::Gap(value),
        _ => Pace::Shift(value),
    }
}

/// The distribution of clients: random with this seed, or in turn if it is negative.
pub(super) fn order(seed: i64) -> Order {
    u32::try_from(seed).map_or(Order::Sequential, Order::Random)
}

/// # Safety
/// `weights` points to `count` numbers.
unsafe extern "C" fn split(weights: *const u32, count: c_int, seed: i64) -> *mut ByClient {
    // SAFETY: by this function's contract.
    let weights = unsafe { std::slice::from_raw_parts(weights, count.max(0) as usize) };
    match ByClient::new(weights, order(seed)) {
        Some(split) => Box::into_raw(Box::new(split)),
        None => {
            fail(&"weights must be greater than 0");
            std::ptr::null_mut()
        }
    }
}

/// # Safety
/// `it` came from `split`, and this is its last use.
unsafe extern "C" fn split_free(it: *mut ByClient) {
    if !it.is_null() {
        // SAFETY: by this function's contract; `split` made it by `Box::into_raw`.
        drop(unsafe { Box::from_raw(it) });
    }
}

/// # Safety
/// `it` came from `split`, was not freed, and no other call uses it meanwhile; `client` points to `len`
/// bytes, `number` is valid for a write.
unsafe extern "C" fn split_output(
    it: *mut ByClient,
    client: *const u8,
    len: u32,
    number: *mut u32,
) -> c_int {
    assert!(!it.is_null(), "a split's handle is not null");
    // SAFETY: by this function's contract.
    let (it, client) = unsafe { (&mut *it, std::slice::from_raw_parts(client, len as usize)) };
    let (output, own) = it.output(client);
    // SAFETY: by this function's contract.
    unsafe { number.write(own) };
    output as c_int
}

extern "C" fn schedule(kind: c_int, value: f64) -> *mut Schedule {
    Box::into_raw(Box::new(Schedule::new(pace(kind, value))))
}

/// # Safety
/// `it` came from `schedule`, and this is its last use.
unsafe extern "C" fn schedule_free(it: *mut Schedule) {
    if !it.is_null() {
        // SAFETY: by this function's contract; `schedule` made it by `Box::into_raw`.
        drop(unsafe { Box::from_raw(it) });
    }
}

/// Waits until the item with this time is due; returns its lateness in nanoseconds.
///
/// # Safety
/// `it` came from `schedule`, was not freed, and no other call uses it meanwhile.
unsafe extern "C" fn schedule_wait(it: *mut Schedule, time: i64) -> f64 {
    assert!(!it.is_null(), "a schedule's handle is not null");
    // SAFETY: by this function's contract.
    unsafe { &mut *it }.wait(time).as_secs_f64() * 1e9
}
