//! Conversion of packed rows to Arrow arrays.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::BooleanArray;
use arrow_array::Float64Array;
use arrow_array::Int64Array;
use arrow_array::ListArray;
use arrow_array::NullArray;
use arrow_array::RecordBatch;
use arrow_array::RecordBatchOptions;
use arrow_array::StringArray;
use arrow_array::TimestampMicrosecondArray;
use arrow_array::TimestampNanosecondArray;
use arrow_array::UInt16Array;
use arrow_buffer::BooleanBufferBuilder;
use arrow_buffer::Buffer;
use arrow_buffer::NullBuffer;
use arrow_buffer::NullBufferBuilder;
use arrow_buffer::OffsetBuffer;
use arrow_buffer::ScalarBuffer;
use arrow_schema::Schema;
use gannet_base::Interval;
use gannet_base::Time;
use gannet_log::Cell;
use gannet_log::Cells;
use gannet_log::Field;
use gannet_log::Kind;
use gannet_log::Type;

use crate::Error;
use crate::schema::TimeUnit;
use crate::schema::element;
use crate::schema::schema;

/// Builder of a record batch from packed rows.
pub struct Batch {
    schema: Arc<Schema>,
    columns: Vec<Column>,
    rows: usize,
}

impl Batch {
    /// An empty batch for a log with these columns, with capacity for `rows` rows.
    pub fn new(fields: &[Field], unit: TimeUnit, rows: usize) -> Self {
        Self::with_columns(fields, unit, rows, |_| true)
    }

    /// Like [`Batch::new`], but the batch has only the `selected` columns. Appended rows have all columns of the log.
    pub fn with_columns(
        fields: &[Field],
        unit: TimeUnit,
        rows: usize,
        selected: impl Fn(&Field) -> bool,
    ) -> Self {
        let column = |f: &Field| match selected(f) {
            true => Column::new(f.ty, unit, rows),
            false => Column { values: Values::Skipped, ..Column::new(f.ty, unit, 0) },
        };
        let kept: Vec<_> = fields.iter().filter(|f| selected(f)).copied().collect();
        let columns = fields.iter().map(column).collect();
        Self { schema: Arc::new(schema(&kept, unit)), columns, rows: 0 }
    }

    /// Appends a packed row, without its length prefix.
    #[inline]
    pub fn push(&mut self, row: &[u8]) {
        let mut cells = Cells::new(row);
        for column in &mut self.columns {
            column.push(&mut cells);
        }
        self.rows += 1;
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the record batch.
    pub fn finish(self) -> Result<RecordBatch, Error> {
        let Self { schema, columns, rows } = self;
        let kept = columns.into_iter().filter(|c| !matches!(c.values, Values::Skipped));
        let arrays = kept.map(Column::finish).collect::<Result<_, _>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(schema, arrays, &options)?)
    }
}

struct Column {
    kind: Kind,
    values: Values,
    /// Offsets of a list column: 0, then the end of each row's elements.
    ends: Option<Vec<i32>>,
    nulls: NullBufferBuilder,
    /// Nulls among the elements of a list column.
    element_nulls: NullBufferBuilder,
    /// Number of elements in a list column.
    elements: usize,
}

enum Values {
    Bool(BooleanBufferBuilder),
    Int(Vec<i64>),
    Port(Vec<u16>),
    Double(Vec<f64>),
    Time(Vec<i64>, TimeUnit),
    Text {
        bytes: Vec<u8>,
        ends: Vec<i32>,
    },
    /// Values of a column that is not selected.
    Skipped,
}

impl Column {
    fn new(ty: Type, unit: TimeUnit, rows: usize) -> Self {
        let kind = Kind::of(ty);
        let ends = || {
            let mut ends = Vec::with_capacity(rows + 1);
            ends.push(0);
            ends
        };
        let values = match kind {
            Kind::Bool => Values::Bool(BooleanBufferBuilder::new(rows)),
            Kind::Count | Kind::Int => Values::Int(Vec::with_capacity(rows)),
            Kind::Port => Values::Port(Vec::with_capacity(rows)),
            Kind::Double | Kind::Interval => Values::Double(Vec::with_capacity(rows)),
            Kind::Time => Values::Time(Vec::with_capacity(rows), unit),
            Kind::Addr | Kind::Text => Values::Text { bytes: Vec::new(), ends: ends() },
        };
        Self {
            kind,
            values,
            ends: matches!(ty, Type::Set(_) | Type::Vector(_)).then(ends),
            nulls: NullBufferBuilder::new(rows),
            element_nulls: NullBufferBuilder::new(0),
            elements: 0,
        }
    }

    #[inline(always)]
    fn push(&mut self, cells: &mut Cells<'_>) {
        if self.ends.is_some() {
            return self.push_list(cells);
        }
        let cell = cells.scalar(self.kind);
        self.nulls.append(cell != Cell::Unset);
        self.values.push(cell);
    }

    fn push_list(&mut self, cells: &mut Cells<'_>) {
        let list = cells.list(self.kind);
        self.nulls.append(list.is_some());
        for cell in list.into_iter().flatten() {
            self.element_nulls.append(cell != Cell::Unset);
            self.values.push(cell);
            self.elements += 1;
        }
        if let Some(ends) = &mut self.ends {
            ends.push(self.elements as i32);
        }
    }

    fn finish(self) -> Result<ArrayRef, Error> {
        let Self { values, ends, nulls, element_nulls, .. } = self;
        let Some(ends) = ends else { return values.finish(nulls.build()) };
        let values = values.finish(element_nulls.build())?;
        let field = Arc::new(element(values.data_type().clone()));
        let offsets = OffsetBuffer::new(ScalarBuffer::from(ends));
        Ok(Arc::new(ListArray::try_new(field, offsets, values, nulls.build())?))
    }
}

impl Values {
    #[inline(always)]
    fn push(&mut self, cell: Cell<'_>) {
        match self {
            Self::Bool(values) => values.append(cell == Cell::Bool(true)),
            Self::Int(values) => values.push(match cell {
                Cell::Count(v) => i64::try_from(v).unwrap_or(i64::MAX),
                Cell::Int(v) => v,
                _ => 0,
            }),
            Self::Port(values) => values.push(match cell {
                Cell::Count(v) => v as u16,
                _ => 0,
            }),
            Self::Double(values) => values.push(match cell {
                Cell::Double(v) => v,
                Cell::Interval(v) => v.as_secs_f64(),
                Cell::Seconds(v) => v,
                _ => 0.0,
            }),
            Self::Time(values, unit) => values.push(time(cell, *unit)),
            Self::Text { bytes, ends } => {
                match cell {
                    Cell::String(v) => gannet_log::column_text(v, bytes),
                    Cell::Plain(v) => plain(v, bytes),
                    Cell::Addr(v) => gannet_log::write_addr(bytes, v),
                    _ => {}
                }
                ends.push(bytes.len() as i32);
            }
            Self::Skipped => {}
        }
    }

    fn finish(self, nulls: Option<NullBuffer>) -> Result<ArrayRef, Error> {
        Ok(match self {
            Self::Bool(mut values) => Arc::new(BooleanArray::new(values.finish(), nulls)),
            Self::Int(values) => Arc::new(Int64Array::try_new(values.into(), nulls)?),
            Self::Port(values) => Arc::new(UInt16Array::try_new(values.into(), nulls)?),
            Self::Double(values) => Arc::new(Float64Array::try_new(values.into(), nulls)?),
            Self::Time(values, TimeUnit::Microseconds) => Arc::new(
                TimestampMicrosecondArray::try_new(values.into(), nulls)?.with_timezone("UTC"),
            ),
            Self::Time(values, TimeUnit::Nanoseconds) => Arc::new(
                TimestampNanosecondArray::try_new(values.into(), nulls)?.with_timezone("UTC"),
            ),
            Self::Text { bytes, ends } => {
                let offsets = OffsetBuffer::new(ScalarBuffer::from(ends));
                Arc::new(StringArray::try_new(offsets, Buffer::from_vec(bytes), nulls)?)
            }
            Self::Skipped => Arc::new(NullArray::new(0)),
        })
    }
}

/// Appends text that needs no escaping, which is nearly always ASCII.
#[inline(always)]
pub(crate) fn plain(v: &[u8], out: &mut Vec<u8>) {
    if v.is_ascii() {
        gannet_log::append(out, v);
    } else {
        gannet_log::column_text(v, out);
    }
}

/// Converts a time to a timestamp; one out of range becomes the first or last timestamp.
#[inline]
pub(crate) fn time(cell: Cell<'_>, unit: TimeUnit) -> i64 {
    match (cell, unit) {
        (Cell::Time(t), TimeUnit::Nanoseconds) => t.as_nanos(),
        // Rounds towards zero, as text logs do.
        (Cell::Time(t), TimeUnit::Microseconds) => t.as_nanos() / 1_000,
        (Cell::FarTime(s) | Cell::Seconds(s), TimeUnit::Microseconds) => (s * 1e6).round() as i64,
        (Cell::FarTime(s) | Cell::Seconds(s), TimeUnit::Nanoseconds) => (s * 1e9) as i64,
        _ => 0,
    }
}

/// Converts a timestamp to a time.
pub(crate) fn time_cell(v: i64, unit: TimeUnit) -> Cell<'static> {
    match unit {
        TimeUnit::Nanoseconds => Cell::Time(Time::from_nanos(v)),
        TimeUnit::Microseconds => match v.checked_mul(1_000) {
            Some(ns) => Cell::Time(Time::from_nanos(ns)),
            None => Cell::FarTime(v as f64 / 1e6),
        },
    }
}

/// Converts seconds to an interval, or keeps the seconds if they exceed its range.
pub(crate) fn interval_cell(v: f64) -> Cell<'static> {
    /// A little less than the range of 64-bit nanoseconds, in seconds.
    const FAR: f64 = 9e9;
    if v.abs() < FAR { Cell::Interval(interval(v)) } else { Cell::Seconds(v) }
}

/// Converts seconds to an interval. If several numbers of nanoseconds round to the same double, returns a whole number
/// of microseconds among them.
fn interval(v: f64) -> Interval {
    let whole = v.trunc();
    let with_nanos = |nanos: i64| {
        Interval::from_nanos((whole as i64).saturating_mul(1_000_000_000).saturating_add(nanos))
    };
    let part = v - whole;
    let micros = with_nanos((part * 1e6).round() as i64 * 1_000);
    let nanos = (part * 1e9).round() as i64;
    let near = [0, 1, -1, 2, -2].map(|by| with_nanos(nanos + by));
    let found = [micros].into_iter().chain(near).find(|span| span.as_secs_f64() == v);
    found.unwrap_or(with_nanos(nanos))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Intervals round-trip to the nanosecond, those of more than 48 days to the microsecond.
        #[test]
        fn intervals_round_trip(ns in -4_194_304_000_000_000_i64..4_194_304_000_000_000, shift in 0..50) {
            for ns in [ns >> shift, ns * 100 / 1_000 * 1_000] {
                let span = Interval::from_nanos(ns);
                prop_assert_eq!(interval(span.as_secs_f64()), span);
            }
            // Any other interval still converts to the same double.
            let long = Interval::from_nanos(ns * 1_000 + 807).as_secs_f64();
            prop_assert_eq!(interval(long).as_secs_f64(), long);
        }
    }
}
