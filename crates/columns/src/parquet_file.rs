//! Parquet files of logs.

use std::path::Path;
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::Int64Array;
use arrow_array::RecordBatch;
use arrow_schema::DataType;
use arrow_schema::Schema;
use gannet_log::Field;
use gannet_log::Kind;
use gannet_log::Type;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::basic::Encoding;
use parquet::basic::ZstdLevel;
use parquet::file::metadata::KeyValue;
use parquet::file::metadata::SortingColumn;
use parquet::file::properties::EnabledStatistics;
use parquet::file::properties::WriterProperties;
use parquet::file::properties::WriterPropertiesBuilder;
use parquet::schema::types::ColumnPath;

use crate::Error;
use crate::schema::ROW;
use crate::schema::TimeUnit;
use crate::schema::schema;
use crate::whole_file::WholeFile;

/// Rows of a row group at the most.
pub(crate) const ROWS: usize = 128 << 10;

/// Rows of a page at the most: few enough that its buffers stay in a near cache.
const PAGE_ROWS: usize = 4 << 10;

/// Keys of a file's metadata.
pub(crate) mod key {
    /// Name of the log.
    pub(crate) const PATH: &str = "zeek.path";
    /// Packet time at its first row, in nanoseconds.
    pub(crate) const OPENED: &str = "gannet.opened";
    /// Packet time at the end, in nanoseconds.
    pub(crate) const CLOSED: &str = "gannet.closed";
    /// Version that wrote it.
    pub(crate) const VERSION: &str = "gannet.version";
}

/// A Parquet file of a log.
pub(crate) struct ParquetFile {
    writer: ArrowWriter<WholeFile>,
    schema: Arc<Schema>,
}

/// What a file holds.
#[derive(Clone, Copy)]
pub(crate) struct About<'a> {
    /// Name of the log.
    pub(crate) name: &'a str,
    pub(crate) fields: &'a [Field],
    pub(crate) unit: TimeUnit,
    /// Packet time at which its first row was written.
    pub(crate) opened: i64,
}

impl ParquetFile {
    /// Makes a file whose row groups have up to `most` rows.
    pub(crate) fn create(path: &Path, about: About<'_>, most: usize) -> Result<Self, Error> {
        let About { name, fields, unit, opened } = about;
        let mut columns: Vec<_> = schema(fields, unit).fields().iter().cloned().collect();
        columns.push(Arc::new(arrow_schema::Field::new(ROW, DataType::Int64, false)));
        let schema = Arc::new(Schema::new(columns));
        let metadata = vec![
            KeyValue::new(key::PATH.to_owned(), name.to_owned()),
            KeyValue::new(key::VERSION.to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
            KeyValue::new(key::OPENED.to_owned(), opened.to_string()),
        ];
        let properties = properties(fields, most).set_key_value_metadata(Some(metadata)).build();
        let file = WholeFile::create(path)?;
        let writer = ArrowWriter::try_new(file, Arc::clone(&schema), Some(properties))?;
        Ok(Self { writer, schema })
    }

    /// Writes some rows of a row group, each with its number in the log. Those of a group are in the order of time.
    pub(crate) fn write(&mut self, batch: &RecordBatch, numbers: Vec<i64>) -> Result<(), Error> {
        let mut columns = batch.columns().to_vec();
        let numbers: ArrayRef = Arc::new(Int64Array::from(numbers));
        columns.push(numbers);
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns)?;
        Ok(self.writer.write(&batch)?)
    }

    /// Ends a row group.
    pub(crate) fn end_group(&mut self) -> Result<(), Error> {
        Ok(self.writer.flush()?)
    }

    /// Completes the file.
    pub(crate) fn finish(mut self, closed: i64) -> Result<(), Error> {
        let closed = closed.to_string();
        self.writer.append_key_value_metadata(KeyValue::new(key::CLOSED.to_owned(), closed));
        Ok(self.writer.into_inner()?.finish()?)
    }
}

fn properties(fields: &[Field], most: usize) -> WriterPropertiesBuilder {
    let level = ZstdLevel::try_new(1).unwrap_or_default();
    let mut all = WriterProperties::builder()
        .set_created_by(concat!("gannet ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::ZSTD(level))
        .set_max_row_group_row_count(Some(ROWS))
        .set_data_page_row_count_limit(PAGE_ROWS)
        .set_statistics_enabled(EnabledStatistics::Chunk);
    if fields.first().is_some_and(is_time) {
        let by_time = SortingColumn { column_idx: 0, descending: false, nulls_first: true };
        all = all.set_sorting_columns(Some(vec![by_time]));
    }
    let row = path(ROW);
    all = all
        .set_column_dictionary_enabled(row.clone(), false)
        .set_column_encoding(row, Encoding::DELTA_BINARY_PACKED);
    for field in fields {
        all = column(all, field, most);
    }
    all
}

fn column(all: WriterPropertiesBuilder, field: &Field, most: usize) -> WriterPropertiesBuilder {
    // Lists have other paths, and the defaults are good for them.
    let (Type::Scalar(_), path) = (field.ty, path(field.name)) else { return all };
    let packed = |all: WriterPropertiesBuilder| {
        all.set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path.clone(), Encoding::DELTA_BINARY_PACKED)
    };
    // Comparing every text costs more than the row groups that it would skip.
    let plain = |all: WriterPropertiesBuilder| {
        all.set_column_statistics_enabled(path.clone(), EnabledStatistics::None)
    };
    let bloom = |all: WriterPropertiesBuilder| {
        plain(all)
            .set_column_bloom_filter_enabled(path.clone(), true)
            .set_column_bloom_filter_fpp(path.clone(), 0.01)
            .set_column_bloom_filter_max_ndv(path.clone(), most as u64)
    };
    match Kind::of(field.ty) {
        Kind::Time => {
            packed(all).set_column_statistics_enabled(path.clone(), EnabledStatistics::Page)
        }
        Kind::Count | Kind::Int | Kind::Port => packed(all),
        Kind::Double | Kind::Interval => all.set_column_dictionary_enabled(path.clone(), false),
        Kind::Addr => bloom(all),
        Kind::Text if is_id(field.name) => {
            bloom(all).set_column_dictionary_enabled(path.clone(), false)
        }
        Kind::Text => plain(all),
        Kind::Bool => all,
    }
}

/// Whether nearly every row has a different value.
fn is_id(name: &str) -> bool {
    matches!(name, "uid" | "fuid" | "community_id") || name.ends_with("_fuid")
}

/// Whether rows are sorted by this column, the first one.
pub(crate) fn is_time(field: &Field) -> bool {
    field.ty == Type::Scalar("time")
}

/// Names have dots in them, and a column of that name is one column.
fn path(name: &str) -> ColumnPath {
    ColumnPath::new(vec![name.to_owned()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ids_and_addresses_have_bloom_filters() {
        let field = |name, ty| Field { name, ty, doc: "", optional: false };
        let fields = [
            field("ts", Type::Scalar("time")),
            field("uid", Type::Scalar("string")),
            field("id.orig_h", Type::Scalar("addr")),
            field("id.orig_p", Type::Scalar("port")),
            field("service", Type::Scalar("string")),
            field("duration", Type::Scalar("interval")),
            field("local_orig", Type::Scalar("bool")),
            field("tunnel_parents", Type::Set("string")),
        ];
        let properties = properties(&fields, 100).build();
        let has = |name: &str| properties.bloom_filter_properties(&path(name)).is_some();
        let having: Vec<_> = fields.iter().map(|f| f.name).filter(|name| has(name)).collect();
        assert_eq!(having, ["uid", "id.orig_h"]);
        let elements =
            ColumnPath::new(["tunnel_parents", "list", "element"].map(str::to_owned).to_vec());
        assert!(properties.bloom_filter_properties(&elements).is_none() && !has(ROW));
    }
}
