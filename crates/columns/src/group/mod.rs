//! Row groups of Parquet files, straight from packed rows.
//!
//! The rows of a group are read a few hundred at a time, and of these one column after the other: rows and the
//! column's dictionary stay in a near cache. Each column collects its values ([`Column`]): repeated ones as numbers
//! of a dictionary, the others in full. Then the columns become pages, one after the other ([`Pages`]). The library
//! writes what is around them: headers, row groups, bloom filters, metadata.

mod column;
mod dictionary;
mod encode;
mod pages;
mod spare;
#[cfg(test)]
mod tests;

use std::io;
use std::io::Write;

use gannet_log::Field;
use gannet_log::RowBlock;
use parquet::file::writer::SerializedFileWriter;

use self::column::Column;
use self::pages::Pages;
use self::pages::Wanted;
use self::spare::Spare;
use crate::Error;
use crate::parquet_file::has_bloom;
use crate::parquet_file::is_id;
use crate::parquet_file::is_time;
use crate::schema::TimeUnit;

/// Rows whose columns are read one after the other.
const BLOCK: usize = 512;

/// The columns of a row group.
pub(crate) struct Group<'f> {
    fields: &'f [Field],
    columns: Vec<Column>,
    numbers: Vec<i64>,
    pages: &'f mut Pages,
    spare: &'f mut Spare,
}

/// What all row groups are made with, one after the other.
pub(crate) struct Maker {
    pages: Pages,
    spare: Spare,
}

impl Maker {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { pages: Pages::new()?, spare: Spare::default() })
    }
}

impl<'f> Group<'f> {
    /// For about this many rows of a log.
    pub(crate) fn new(
        fields: &'f [Field],
        unit: TimeUnit,
        rows: usize,
        maker: &'f mut Maker,
    ) -> Self {
        let Maker { pages, spare } = maker;
        let column = |f: &Field| Column::new(f.ty, unit, rows, is_id(f.name), spare);
        let columns = fields.iter().map(column).collect();
        Self { fields, columns, numbers: spare.longs(rows), pages, spare }
    }

    /// Takes rows of a buffer, each given as where it begins, behind its length, and its number in the log.
    pub(crate) fn take(&mut self, bytes: &[u8], rows: impl Iterator<Item = (u32, i64)>) {
        let mut rows = rows.peekable();
        let mut block = RowBlock::new(bytes);
        while rows.peek().is_some() {
            let places = rows.by_ref().take(BLOCK);
            block.begin(places.inspect(|(_, number)| self.numbers.push(*number)).map(|(at, _)| at));
            for column in &mut self.columns {
                column.take(&mut block, self.spare);
            }
        }
    }

    /// Writes the columns, and as the last one the rows' numbers.
    pub(crate) fn write<W: Write + Send>(
        self,
        file: &mut SerializedFileWriter<W>,
    ) -> Result<(), Error> {
        let Self { columns, fields, numbers, pages, spare } = self;
        let rows = numbers.len();
        let numbers = Column::of_numbers(numbers);
        let schema = file.schema_descr();
        let descrs: Vec<_> = (0..schema.num_columns()).map(|at| schema.column(at)).collect();
        let mut group = file.next_row_group()?;
        for (at, (mut column, descr)) in
            columns.into_iter().chain([numbers]).zip(descrs).enumerate()
        {
            column.finish(spare);
            let field = fields.get(at);
            let is_sorted = at == 0 && field.is_some_and(is_time);
            let bloom = field.is_some_and(has_bloom);
            pages.write(&column, &Wanted { descr, rows, is_sorted, bloom }, &mut group)?;
            column.keep(spare);
        }
        group.close()?;
        Ok(())
    }
}
