//! What machine code knows of memory: tags and offsets of cells and of the context, addresses of functions.

use super::flow::Kind;
use crate::code::Op;
use crate::value::Value;

/// Bytes of a cell.
pub(super) const SIZE: usize = 16;
/// The offset of a number in its cell; a `bool` is at 1.
pub(super) const NUMBER: i32 = 8;
/// The tag of a cell without a value.
pub(super) const UNSET: u8 = 0;
/// The tag of a `bool`.
pub(super) const BOOL: u8 = 1;
/// Cells with a greater tag own memory.
pub(super) const LAST_PLAIN: u8 = 12;

/// Offsets in the context.
pub(super) mod context {
    /// Where the stack is.
    pub(crate) const STACK: i32 = 0;
    /// Where the globals are.
    pub(crate) const GLOBALS: i32 = 8;
    /// The instruction that the interpreter continues at.
    pub(crate) const PC: i32 = 16;
    /// The result of the frame that has ended.
    pub(crate) const RESULT: i32 = 24;
    /// Behind the last light frame.
    pub(crate) const LIGHT: i32 = 40;
    /// Behind the last light frame that has a frame of the interpreter.
    pub(crate) const REAL: i32 = 48;
    /// How many more calls may be nested.
    pub(crate) const LEFT: i32 = 56;
    /// Cells that the stack has room for.
    pub(crate) const ROOM: i32 = 64;
}

/// Offsets in a light frame.
pub(super) mod light {
    /// The code.
    pub(crate) const CODE: i32 = 0;
    /// The place of its first cell.
    pub(crate) const BASE: i32 = 8;
    /// The instruction behind the call, in the caller.
    pub(crate) const CALLER: i32 = 16;
    /// The function.
    pub(crate) const FUNC: i32 = 24;
    /// Bytes of a light frame.
    pub(crate) const SIZE: i64 = 32;
}

/// The tag of cells with numbers of a kind.
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

/// A number's bits.
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
    pub put: usize,
    /// Unsets cells: the address of the first, and how many.
    pub clear: usize,
    /// Moves the result of a call to a cell: context, cell.
    pub take: usize,
    /// Ends the frame of the interpreter that a light frame got.
    pub pop: usize,
    /// Lets the interpreter continue a frame that machine code left.
    pub resume: usize,
    /// The function that runs an instruction.
    pub step: fn(&Op) -> usize,
}

impl Addresses {
    pub(super) fn of(&self, op: &Op) -> usize {
        (self.step)(op)
    }
}
