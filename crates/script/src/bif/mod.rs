//! Built-in functions, one file for each kind.
//!
//! A built-in function gets its arguments as values and returns one. Scripts declare it; the declaration has the types. Errors that end nothing
//! are reported with [`Vm::builtin_error`], those that end the calling body with [`Vm::builtin_exception`].

pub mod log;

use std::collections::HashMap;
use std::rc::Rc;

use crate::evaluate::Stop;
use crate::ids::TypeId;
use crate::value::{OpaqueValue, Value};
use crate::vm::Vm;

/// A built-in function.
pub type Native = fn(&mut Vm<'_>, &[Value]) -> Result<Value, Stop>;

/// Names with their functions.
pub type Table = &'static [(&'static str, Native)];

/// All built-in functions by name.
pub struct Natives(HashMap<&'static str, Native>);

impl Default for Natives {
    fn default() -> Self {
        let mut all = HashMap::new();
        for table in TABLES {
            all.extend(table.iter().copied());
        }
        Self(all)
    }
}

impl Natives {
    /// The function of a full name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<Native> {
        self.0.get(name).copied()
    }
}

const TABLES: &[Table] = &[log::TABLE];

/// State of built-in functions.
#[derive(Default)]
pub struct State {
    /// When tables are looked at next for entries that expire.
    pub next_sweep: f64,
    /// Log streams.
    pub log: log::Logs,
}

/// An argument; unset where it was not given.
#[must_use]
pub fn arg(args: &[Value], index: usize) -> &Value {
    args.get(index).unwrap_or(&Value::Unset)
}

/// Prepares what needs the whole program, before `zeek_init`.
///
/// # Errors
/// [`Stop`] where the program stops.
pub fn prepare(vm: &mut Vm<'_>) -> Result<(), Stop> {
    let _ = vm;
    Ok(())
}

/// Ends what goes on: logs are closed.
///
/// # Errors
/// [`Stop`] where the program stops.
pub fn finish(vm: &mut Vm<'_>) -> Result<(), Stop> {
    log::close_all(vm)
}

/// Whether something goes on that keeps the process alive.
#[must_use]
pub fn has_work(_: &Vm<'_>) -> bool {
    false
}

/// Looks at what goes on beside scripts; returns whether there was anything.
///
/// # Errors
/// [`Stop`] where the program stops.
pub fn poll(vm: &mut Vm<'_>) -> Result<bool, Stop> {
    let _ = vm;
    Ok(false)
}

/// What `as` makes of an opaque value.
pub fn cast_opaque(vm: &mut Vm<'_>, opaque: &Rc<OpaqueValue>, ty: TypeId) -> Option<Value> {
    let _ = (vm, opaque, ty);
    None
}
