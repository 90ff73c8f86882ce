//! Reads packed rows from Parquet files and record batches.

use std::fs::File;
use std::path::Path;

use arrow_array::Array;
use arrow_array::ArrayRef;
use arrow_array::BooleanArray;
use arrow_array::Float64Array;
use arrow_array::Int64Array;
use arrow_array::ListArray;
use arrow_array::RecordBatch;
use arrow_array::StringArray;
use arrow_array::TimestampMicrosecondArray;
use arrow_array::TimestampNanosecondArray;
use arrow_array::UInt16Array;
use gannet_base::Addr;
use gannet_base::Time;
use gannet_log::Cell;
use gannet_log::Field;
use gannet_log::Kind;
use gannet_log::RowPacker;
use gannet_log::Type;
use parquet::arrow::arrow_reader::ArrowReaderMetadata;
use parquet::arrow::arrow_reader::ArrowReaderOptions;
use parquet::arrow::arrow_reader::ParquetRecordBatchReader;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::Error;
use crate::batch::interval_cell;
use crate::batch::time_cell;
use crate::parquet_file::MAX_GROUP_ROWS;
use crate::parquet_file::key;
use crate::schema::ROW;
use crate::schema::TYPE;
use crate::schema::TimeUnit;
use crate::schema::fields_of;
use crate::schema::intern;

/// The rows of a Parquet file that gannet wrote, in the order of the log.
pub struct ParquetRows {
    /// Name of the log from the metadata, or the file's name without extension.
    pub path: &'static str,
    /// Columns of the log.
    pub fields: Vec<Field>,
    /// Packet time at the first row, from the metadata; 0 if it is missing.
    pub opened: Time,
    /// Packet time at the end, from the metadata; 0 if it is missing.
    pub closed: Time,
    file: File,
    metadata: ArrowReaderMetadata,
    /// Index of the next row group.
    group: usize,
    /// Reader of the current row group.
    batches: Option<ParquetRecordBatchReader>,
}

impl ParquetRows {
    /// Opens a file.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let file = File::open(path)?;
        let metadata = ArrowReaderMetadata::load(&file, ArrowReaderOptions::default())?;
        let pairs = metadata.metadata().file_metadata().key_value_metadata();
        let value = |key: &str| {
            let found = pairs?.iter().find(|pair| pair.key == key)?;
            found.value.as_deref()
        };
        let time = |key| {
            let number = value(key).and_then(|v| v.parse().ok());
            Time::from_nanos(number.unwrap_or_default())
        };
        let stem = path.file_stem().map(|stem| stem.to_string_lossy());
        let name = value(key::PATH).map(intern);
        Ok(Self {
            path: name.unwrap_or_else(|| intern(&stem.unwrap_or_default())),
            fields: fields_of(metadata.schema()),
            opened: time(key::OPENED),
            closed: time(key::CLOSED),
            group: 0,
            batches: None,
            file,
            metadata,
        })
    }

    /// Appends the next rows to `rows`; returns `false` at the end of the file.
    pub fn next(&mut self, rows: &mut RowPacker) -> Result<bool, Error> {
        let Some(batch) = self.next_batch()? else { return Ok(false) };
        let numbers = batch.column_by_name(ROW).and_then(as_array::<Int64Array>);
        let mut order: Vec<usize> = (0..batch.num_rows()).collect();
        if let Some(numbers) = numbers {
            order.sort_by_key(|row| numbers.value(*row));
        }
        pack_rows(&batch, &order, rows)?;
        Ok(true)
    }
}

impl ParquetRows {
    /// Returns the next batch: a whole row group of gannet's files, because only all of its rows restore the log's
    /// order.
    fn next_batch(&mut self) -> Result<Option<RecordBatch>, Error> {
        loop {
            if let Some(batch) = self.batches.as_mut().and_then(Iterator::next) {
                return Ok(Some(batch?));
            }
            if self.group == self.metadata.metadata().num_row_groups() {
                return Ok(None);
            }
            let (file, metadata) = (self.file.try_clone()?, self.metadata.clone());
            let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata);
            let reader = reader.with_row_groups(vec![self.group]).with_batch_size(MAX_GROUP_ROWS);
            self.batches = Some(reader.build()?);
            self.group += 1;
        }
    }
}

/// Packs the rows of a batch at the indices in `order`. Columns without Zeek's type in their metadata are skipped.
pub fn pack_rows(batch: &RecordBatch, order: &[usize], rows: &mut RowPacker) -> Result<(), Error> {
    let schema = batch.schema();
    let mut columns = Vec::new();
    for (field, array) in schema.fields().iter().zip(batch.columns()) {
        let Some(ty) = field.metadata().get(TYPE) else { continue };
        let read = fields_of(&arrow_schema::Schema::new(vec![field.clone()]));
        let column = read.first().and_then(|read| Column::of(read.ty, array));
        let wrong = || Error::Column(field.name().clone(), ty.clone());
        columns.push(column.ok_or_else(wrong)?);
    }
    for row in order {
        rows.begin();
        columns.iter().for_each(|column| column.push(*row, rows));
        rows.end();
    }
    Ok(())
}

enum Column<'a> {
    Bool(&'a BooleanArray),
    Count(&'a Int64Array),
    Int(&'a Int64Array),
    Port(&'a UInt16Array),
    Double(&'a Float64Array),
    Interval(&'a Float64Array),
    Micros(&'a TimestampMicrosecondArray),
    Nanos(&'a TimestampNanosecondArray),
    Addr(&'a StringArray),
    Text(&'a StringArray),
    List(&'a ListArray, Box<Column<'a>>),
}

fn as_array<T: 'static>(array: &ArrayRef) -> Option<&T> {
    array.as_any().downcast_ref()
}

impl<'a> Column<'a> {
    fn of(ty: Type, array: &'a ArrayRef) -> Option<Self> {
        if let Type::Set(element) | Type::Vector(element) = ty {
            let list: &ListArray = as_array(array)?;
            let elements = Self::of(Type::Scalar(element), list.values())?;
            return Some(Self::List(list, Box::new(elements)));
        }
        let micros = || as_array(array).map(Self::Micros);
        match Kind::of(ty) {
            Kind::Bool => as_array(array).map(Self::Bool),
            Kind::Count => as_array(array).map(Self::Count),
            Kind::Int => as_array(array).map(Self::Int),
            Kind::Port => as_array(array).map(Self::Port),
            Kind::Double => as_array(array).map(Self::Double),
            Kind::Interval => as_array(array).map(Self::Interval),
            Kind::Time => as_array(array).map(Self::Nanos).or_else(micros),
            Kind::Addr => as_array(array).map(Self::Addr),
            Kind::Text => as_array(array).map(Self::Text),
        }
    }

    fn is_null(&self, row: usize) -> bool {
        match self {
            Self::Bool(a) => a.is_null(row),
            Self::Count(a) | Self::Int(a) => a.is_null(row),
            Self::Port(a) => a.is_null(row),
            Self::Double(a) | Self::Interval(a) => a.is_null(row),
            Self::Micros(a) => a.is_null(row),
            Self::Nanos(a) => a.is_null(row),
            Self::Addr(a) | Self::Text(a) => a.is_null(row),
            Self::List(a, _) => a.is_null(row),
        }
    }

    fn push(&self, row: usize, rows: &mut RowPacker) {
        if self.is_null(row) {
            return rows.push(&Cell::Unset);
        }
        let cell = match self {
            Self::Bool(a) => Cell::Bool(a.value(row)),
            Self::Count(a) => Cell::Count(a.value(row).max(0) as u64),
            Self::Int(a) => Cell::Int(a.value(row)),
            Self::Port(a) => Cell::Count(a.value(row).into()),
            Self::Double(a) => Cell::Double(a.value(row)),
            Self::Interval(a) => interval_cell(a.value(row)),
            Self::Micros(a) => time_cell(a.value(row), TimeUnit::Microseconds),
            Self::Nanos(a) => time_cell(a.value(row), TimeUnit::Nanoseconds),
            Self::Addr(a) => address(a.value(row)),
            Self::Text(a) => {
                return rows
                    .push(&Cell::String(&gannet_log::column_bytes(a.value(row).as_bytes())));
            }
            Self::List(a, elements) => {
                let offsets = a.value_offsets();
                let ends = [row, row + 1].map(|at| offsets.get(at).copied().unwrap_or_default());
                let range = ends[0] as usize..ends[1] as usize;
                rows.push_list(range.len());
                range.for_each(|at| elements.push(at, rows));
                return;
            }
        };
        rows.push(&cell);
    }
}

/// IPv4-mapped addresses of IPv6 are written like IPv4 ones.
fn address(text: &str) -> Cell<'_> {
    match text.parse::<std::net::IpAddr>() {
        Ok(std::net::IpAddr::V4(v4)) => Cell::Addr(Addr::v4(v4.octets())),
        Ok(std::net::IpAddr::V6(v6)) => Cell::Addr(Addr::v6(v6.octets())),
        Err(_) => Cell::Unset,
    }
}
