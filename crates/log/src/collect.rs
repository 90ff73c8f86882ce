//! Rows that are collected in memory with their places, for somebody else to put in order.

use gannet_base::Time;

use crate::row::Field;
use crate::row::Row;

/// A row's place among the rows of all parts of an analysis.
///
/// Parts that work at the same time write their rows in the order of their keys, and what one
/// part would have written alone is the order of all keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Number of the packet that was at hand.
    pub packet: u64,
    /// When what made it was due: [`Time::MAX`] for the packet itself, which comes after
    /// everything that was due before it.
    pub due: Time,
    /// Order of what was due at the same time.
    pub tie: u64,
}

impl Key {
    /// No row has an earlier one.
    pub const EARLIEST: Self = Self { packet: 0, due: Time::from_nanos(i64::MIN), tie: 0 };
}

/// What is to be known of a stream to write its lines.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Its name.
    pub path: &'static str,
    /// Whether it is written only where it is asked for.
    pub opt_in: bool,
    /// Its columns.
    pub fields: fn() -> Vec<Field>,
}

impl Shape {
    /// The shape of a row type's stream.
    pub const fn of<R: Row>() -> Self {
        Self { path: R::PATH, opt_in: R::OPT_IN, fields: R::fields }
    }
}

/// Rows of one stream, formatted, with the place of each.
#[derive(Debug)]
pub struct Rows {
    /// The stream.
    pub shape: Shape,
    /// Packet time at the first of these rows.
    pub opened: Time,
    /// All lines; what follows the last one is of no meaning.
    pub bytes: Vec<u8>,
    /// The key of each row, and where its line ends.
    pub marks: Vec<(Key, u32)>,
}
