//! The logging framework.

use super::Table;
use crate::evaluate::Stop;
use crate::value::Value;
use crate::vm::Vm;

/// The functions of this file.
pub const TABLE: Table = &[];

/// Log streams.
#[derive(Default)]
pub struct Logs {}

/// Writes what `print` prints to a log; returns whether it did.
///
/// # Errors
/// [`Stop`] where the program stops.
pub fn write_print(vm: &mut Vm<'_>, texts: Vec<Value>) -> Result<bool, Stop> {
    let _ = (vm, texts);
    Ok(false)
}

/// Delayed writes are due.
///
/// # Errors
/// [`Stop`] where the program stops.
pub fn delay_due(_: &mut Vm<'_>) -> Result<(), Stop> {
    Ok(())
}

/// A rotation is due.
///
/// # Errors
/// [`Stop`] where the program stops.
pub fn rotate_due(_: &mut Vm<'_>, _: u64) -> Result<(), Stop> {
    Ok(())
}

/// Closes all logs.
///
/// # Errors
/// [`Stop`] where the program stops.
pub fn close_all(_: &mut Vm<'_>) -> Result<(), Stop> {
    Ok(())
}

/// Seconds until a log is rotated next: at multiples of the interval since the base time of the day.
#[must_use]
pub fn until_rotation(now: f64, interval: f64, base: f64) -> f64 {
    if interval <= 0.0 {
        return 0.0;
    }
    let day = now - now.rem_euclid(86_400.0) + base;
    let passed = (now - day).rem_euclid(interval);
    interval - passed
}
