//! Row groups of Parquet files, encoded from packed rows.
//!
//! The rows of a group are read in blocks of a few hundred, column by column, so that a block and the dictionary of one
//! column stay in the CPU cache. Each [`Column`] collects its values, as dictionary indices where values repeat. Then
//! [`PageEncoder`] encodes the columns into pages, one column after the other. The `parquet` crate writes page headers,
//! row groups, Bloom filters and metadata.

mod base62;
mod bloom;
mod buffer_pool;
mod column;
mod compress;
mod dictionary;
mod encode;
mod order;
mod pages;
mod series;
#[cfg(test)]
mod tests;

use std::io;
use std::io::Write;
use std::iter;

use gannet_log::Field;
use gannet_log::PackedRows;
use gannet_log::RowBlock;
use parquet::file::writer::SerializedFileWriter;

use self::buffer_pool::BufferPool;
use self::column::Column;
pub(crate) use self::compress::CompressionChoice;
use self::pages::ColumnOptions;
use self::pages::PageEncoder;
use crate::Error;
use crate::parquet_file::has_bloom;
use crate::parquet_file::is_id;
use crate::schema::TimeUnit;

/// Number of rows that are read column by column.
const BLOCK_ROWS: usize = 512;

/// The columns of a row group.
pub(crate) struct Group {
    columns: Vec<GroupColumn>,
    /// Numbers of the rows in the log.
    numbers: Vec<i64>,
}

struct GroupColumn {
    column: Column,
    /// Whether it gets a Bloom filter.
    bloom: bool,
}

/// Options of a row group.
#[derive(Clone, Copy)]
pub(crate) struct GroupOptions {
    /// Whether its rows are sorted by the first column.
    pub(crate) by_time: bool,
    /// Whether it is the last one of its file.
    pub(crate) is_last: bool,
}

/// Encoder and reusable buffers, shared by all row groups.
pub(crate) struct GroupContext {
    pages: PageEncoder,
    pool: BufferPool,
    row_offsets: Vec<u32>,
}

impl GroupContext {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            pages: PageEncoder::new()?,
            pool: BufferPool::default(),
            row_offsets: Vec::new(),
        })
    }
}

impl Group {
    /// An empty row group with capacity for `rows` rows.
    pub(crate) fn new(
        fields: &[Field],
        unit: TimeUnit,
        rows: usize,
        context: &mut GroupContext,
    ) -> Self {
        let pool = &mut context.pool;
        let column = |f: &Field| GroupColumn {
            column: Column::new(f.ty, unit, rows, is_id(f.name), pool),
            bloom: has_bloom(f),
        };
        Self { columns: fields.iter().map(column).collect(), numbers: pool.i64s(rows) }
    }

    /// Appends packed rows, in the order of the log, with their numbers.
    pub(crate) fn append(
        &mut self,
        bytes: &[u8],
        mut numbers: impl Iterator<Item = i64>,
        context: &mut GroupContext,
    ) {
        let GroupContext { row_offsets, pool, .. } = context;
        row_offsets.clear();
        let mut rows = PackedRows::new(bytes);
        row_offsets.extend(iter::from_fn(|| {
            let row = rows.next()?;
            Some((bytes.len() - rows.bytes().len() - row.len()) as u32)
        }));
        let mut block = RowBlock::new(bytes, self.columns.len());
        let mut rest = row_offsets.as_slice();
        while !rest.is_empty() {
            // Blocks end at the same rows for any split of the rows over calls: dictionaries are checked there.
            let len = (BLOCK_ROWS - self.numbers.len() % BLOCK_ROWS).min(rest.len());
            let (block_offsets, after) = rest.split_at(len);
            rest = after;
            block.begin(block_offsets.iter().copied());
            self.numbers.extend(numbers.by_ref().take(len));
            let is_block_complete = self.numbers.len().is_multiple_of(BLOCK_ROWS);
            for GroupColumn { column, .. } in &mut self.columns {
                column.append(block.next_column());
                if is_block_complete {
                    column.drop_poor_dictionary(pool);
                }
            }
        }
    }

    /// Writes the columns, followed by one with the numbers of the rows.
    pub(crate) fn write<W: Write + Send>(
        mut self,
        file: &mut SerializedFileWriter<W>,
        GroupOptions { by_time, is_last }: GroupOptions,
        choices: &mut Vec<CompressionChoice>,
        context: &mut GroupContext,
    ) -> Result<(), Error> {
        if by_time {
            self.sort(&mut context.pool);
        }
        let Self { columns, numbers } = self;
        let GroupContext { pages, pool, .. } = context;
        let rows = numbers.len();
        let numbers = GroupColumn { column: Column::from_row_numbers(numbers), bloom: false };
        let schema = file.schema_descr();
        let descrs: Vec<_> = (0..schema.num_columns()).map(|at| schema.column(at)).collect();
        choices.resize_with(descrs.len(), CompressionChoice::default);
        let mut group = file.next_row_group()?;
        let columns = columns.into_iter().chain([numbers]).zip(descrs).zip(choices);
        for (at, ((collected, descr), choice)) in columns.enumerate() {
            let GroupColumn { mut column, bloom } = collected;
            column.finish(pool);
            let is_sorted = at == 0 && by_time;
            let options = ColumnOptions { descr, rows, is_sorted, bloom, is_last };
            pages.write(&column, &options, choice, &mut group)?;
            column.recycle(pool);
        }
        group.close()?;
        Ok(())
    }

    /// Returns the buffers to the pool.
    pub(crate) fn recycle(self, context: &mut GroupContext) {
        self.columns
            .into_iter()
            .for_each(|group_column| group_column.column.recycle(&mut context.pool));
        context.pool.put_i64s(self.numbers);
    }

    /// Sorts the rows by the first column; those with the same time, or without one, stay in the order of the log.
    fn sort(&mut self, pool: &mut BufferPool) {
        let Some(order) = self.columns.first().and_then(|first| first.column.order()) else {
            return;
        };
        for GroupColumn { column, .. } in &mut self.columns {
            column.reorder(&order, pool);
        }
        self.numbers = order.iter().map(|at| self.numbers[*at as usize]).collect();
    }
}
