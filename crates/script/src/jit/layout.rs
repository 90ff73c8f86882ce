//! Memory layout for machine code: tags and offsets of cells and of the context, addresses of functions.

use super::flow::Kind;
use crate::code::Op;
use crate::value::Value;

/// Size of a cell, in bytes.
pub(super) const CELL_SIZE: usize = 16;
/// Offset of a number in its cell; a `bool` is at offset 1.
pub(super) const NUMBER: i32 = 8;
/// Tag of an unset cell.
pub(super) const UNSET: u8 = 0;
/// Tag of a `bool`.
pub(super) const BOOL: u8 = 1;
/// Largest tag of cells that own no memory.
pub(super) const LAST_PLAIN: u8 = 12;

/// Offsets in the context.
pub(super) mod context {
    /// Address of the stack.
    pub(crate) const STACK: i32 = 0;
    /// Address of the globals.
    pub(crate) const GLOBALS: i32 = 8;
    /// The instruction that the interpreter continues at.
    pub(crate) const PC: i32 = 16;
    /// The result of the ended frame.
    pub(crate) const RESULT: i32 = 24;
    /// Address after the last light frame.
    pub(crate) const LIGHT: i32 = 40;
    /// Address after the last light frame that has a frame of the interpreter.
    pub(crate) const REAL: i32 = 48;
    /// Number of further calls that may be nested.
    pub(crate) const CALLS_LEFT: i32 = 56;
    /// Capacity of the stack, in cells.
    pub(crate) const CAPACITY: i32 = 64;
}

/// Offsets in a light frame.
pub(super) mod light {
    /// The code.
    pub(crate) const CODE: i32 = 0;
    /// Index of its first cell in the stack.
    pub(crate) const BASE: i32 = 8;
    /// The instruction after the call, in the caller.
    pub(crate) const CALLER: i32 = 16;
    /// The function.
    pub(crate) const FUNC: i32 = 24;
    /// Size of a light frame, in bytes.
    pub(crate) const SIZE: i64 = 32;
}

/// The tag of cells that contain numbers of a kind.
pub(super) fn tag_of(kind: Kind) -> u8 {
    match kind {
        Kind::Cell => UNSET,
        Kind::Bool => BOOL,
        Kind::Int => 2,
        Kind::Count => 3,
        Kind::Double => 4,
        Kind::Time => 5,
        Kind::Interval => 6,
    }
}

/// The bits of a number.
pub(super) fn bits_of(value: &Value) -> Option<u64> {
    Some(match value {
        Value::Bool(value) => u64::from(*value),
        Value::Int(value) => value.cast_unsigned(),
        Value::Count(value) => *value,
        Value::Double(value) | Value::Time(value) | Value::Interval(value) => value.to_bits(),
        _ => return None,
    })
}

/// The number with this tag and these bits.
pub(super) fn number(tag: u64, bits: u64) -> Value {
    match tag {
        1 => Value::Bool(bits != 0),
        2 => Value::Int(bits.cast_signed()),
        3 => Value::Count(bits),
        4 => Value::Double(f64::from_bits(bits)),
        5 => Value::Time(f64::from_bits(bits)),
        6 => Value::Interval(f64::from_bits(bits)),
        _ => Value::Unset,
    }
}

/// Addresses of the functions that machine code calls.
#[derive(Clone, Copy)]
pub(super) struct Addresses {
    pub copy: usize,
    pub put_number: usize,
    /// Unsets cells: address of the first, and count.
    pub clear: usize,
    /// Moves the result of a call to a cell: context, cell.
    pub take_result: usize,
    /// Pops the frame of the interpreter that was made for a light frame.
    pub pop: usize,
    /// Makes the interpreter continue a frame that machine code exited.
    pub resume: usize,
    /// Returns the function that runs an instruction.
    pub step: fn(&Op) -> usize,
}

impl Addresses {
    pub(super) fn get(&self, op: &Op) -> usize {
        (self.step)(op)
    }
}
