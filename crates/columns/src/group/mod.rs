//! Row groups of Parquet files, straight from packed rows.
//!
//! The rows of a group are read a few hundred at a time, and of these one column after the other: rows and the
//! column's dictionary stay in a near cache. Each column collects its values ([`Column`]): repeated ones as numbers
//! of a dictionary, the others in full. Then the columns become pages, one after the other ([`Pages`]). The library
//! writes what is around them: headers, row groups, bloom filters, metadata.

mod base62;
mod bloom;
mod column;
mod compress;
mod dictionary;
mod encode;
mod order;
mod pages;
mod series;
mod spare;
#[cfg(test)]
mod tests;

use std::io;
use std::io::Write;
use std::iter;

use gannet_log::Field;
use gannet_log::PackedRows;
use gannet_log::RowBlock;
use parquet::file::writer::SerializedFileWriter;

use self::column::Column;
pub(crate) use self::compress::Choice;
use self::pages::ColumnPlan;
use self::pages::Pages;
use self::spare::Spare;
use crate::Error;
use crate::parquet_file::has_bloom;
use crate::parquet_file::is_id;
use crate::schema::TimeUnit;

/// Rows whose columns are read one after the other.
const BLOCK: usize = 512;

/// The columns of a row group.
pub(crate) struct Group {
    columns: Vec<Collected>,
    /// Numbers of the rows in the log.
    numbers: Vec<i64>,
}

/// A column, and what else there is of it.
struct Collected {
    column: Column,
    bloom: bool,
}

/// What a row group is in its file.
#[derive(Clone, Copy)]
pub(crate) struct GroupOptions {
    /// Whether it is to be sorted by the first column.
    pub(crate) by_time: bool,
    /// Whether none follows.
    pub(crate) is_last: bool,
}

/// What all row groups are made with, one after the other.
pub(crate) struct GroupMaker {
    pages: Pages,
    spare: Spare,
    places: Vec<u32>,
}

impl GroupMaker {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { pages: Pages::new()?, spare: Spare::default(), places: Vec::new() })
    }
}

impl Group {
    /// For about this many rows of a log.
    pub(crate) fn new(
        fields: &[Field],
        unit: TimeUnit,
        rows: usize,
        maker: &mut GroupMaker,
    ) -> Self {
        let spare = &mut maker.spare;
        let column = |f: &Field| Collected {
            column: Column::new(f.ty, unit, rows, is_id(f.name), spare),
            bloom: has_bloom(f),
        };
        Self { columns: fields.iter().map(column).collect(), numbers: spare.longs(rows) }
    }

    /// Takes rows, in the order of the log, with their numbers.
    pub(crate) fn take(
        &mut self,
        bytes: &[u8],
        mut numbers: impl Iterator<Item = i64>,
        maker: &mut GroupMaker,
    ) {
        let GroupMaker { places, spare, .. } = maker;
        places.clear();
        let mut rows = PackedRows::new(bytes);
        places.extend(iter::from_fn(|| {
            let row = rows.next()?;
            Some((bytes.len() - rows.bytes().len() - row.len()) as u32)
        }));
        let mut block = RowBlock::new(bytes, self.columns.len());
        let mut rest = places.as_slice();
        while !rest.is_empty() {
            // How rows are cut into pieces means nothing, so blocks end where they do without pieces: dictionaries are
            // reviewed there.
            let len = (BLOCK - self.numbers.len() % BLOCK).min(rest.len());
            let (some, others) = rest.split_at(len);
            rest = others;
            block.begin(some.iter().copied());
            self.numbers.extend(numbers.by_ref().take(len));
            let is_whole = self.numbers.len().is_multiple_of(BLOCK);
            for Collected { column, .. } in &mut self.columns {
                column.take(block.next_column());
                if is_whole {
                    column.review(spare);
                }
            }
        }
    }

    /// Writes the columns, and as the last one the rows' numbers.
    pub(crate) fn write<W: Write + Send>(
        mut self,
        file: &mut SerializedFileWriter<W>,
        GroupOptions { by_time, is_last }: GroupOptions,
        choices: &mut Vec<Choice>,
        maker: &mut GroupMaker,
    ) -> Result<(), Error> {
        if by_time {
            self.sort(&mut maker.spare);
        }
        let Self { columns, numbers } = self;
        let GroupMaker { pages, spare, .. } = maker;
        let rows = numbers.len();
        let numbers = Collected { column: Column::of_numbers(numbers), bloom: false };
        let schema = file.schema_descr();
        let descrs: Vec<_> = (0..schema.num_columns()).map(|at| schema.column(at)).collect();
        choices.resize_with(descrs.len(), Choice::default);
        let mut group = file.next_row_group()?;
        let columns = columns.into_iter().chain([numbers]).zip(descrs).zip(choices);
        for (at, ((collected, descr), choice)) in columns.enumerate() {
            let Collected { mut column, bloom } = collected;
            column.finish(spare);
            let is_sorted = at == 0 && by_time;
            let wanted = ColumnPlan { descr, rows, is_sorted, bloom, is_last };
            pages.write(&column, &wanted, choice, &mut group)?;
            column.keep(spare);
        }
        group.close()?;
        Ok(())
    }

    /// Gives the memory back.
    pub(crate) fn keep(self, maker: &mut GroupMaker) {
        self.columns.into_iter().for_each(|of| of.column.keep(&mut maker.spare));
        maker.spare.keep_longs(self.numbers);
    }

    /// Sorts the rows by the first column; those with the same time, or without one, stay in the order of the log.
    fn sort(&mut self, spare: &mut Spare) {
        let Some(order) = self.columns.first().and_then(|first| first.column.order()) else {
            return;
        };
        for Collected { column, .. } in &mut self.columns {
            column.reorder(&order, spare);
        }
        self.numbers = order.iter().map(|at| self.numbers[*at as usize]).collect();
    }
}
