//! Parquet files of logs.

use std::path::Path;
use std::sync::Arc;

use arrow_schema::DataType;
use arrow_schema::Schema;
use gannet_log::Field;
use gannet_log::Type;
use parquet::arrow::ARROW_SCHEMA_META_KEY;
use parquet::arrow::ArrowSchemaConverter;
use parquet::arrow::encode_arrow_schema;
use parquet::file::metadata::KeyValue;
use parquet::file::metadata::SortingColumn;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;

use crate::Error;
use crate::group::CompressionChoice;
use crate::group::Group;
use crate::group::GroupContext;
use crate::group::GroupOptions;
use crate::schema::ROW;
use crate::schema::TimeUnit;
use crate::schema::schema;
use crate::whole_file::WholeFile;

/// Maximum number of rows in a row group.
pub(crate) const MAX_GROUP_ROWS: usize = 128 << 10;

/// Keys of a file's metadata.
pub(crate) mod key {
    /// Name of the log.
    pub(crate) const PATH: &str = "zeek.path";
    /// Packet time at its first row, in nanoseconds.
    pub(crate) const OPENED: &str = "gannet.opened";
    /// Packet time at the end, in nanoseconds.
    pub(crate) const CLOSED: &str = "gannet.closed";
    /// Version of gannet that wrote the file.
    pub(crate) const VERSION: &str = "gannet.version";
}

/// A Parquet file of a log.
pub(crate) struct ParquetFile {
    writer: SerializedFileWriter<WholeFile>,
    /// Compression of each column.
    choices: Vec<CompressionChoice>,
}

/// Description of a file's log.
#[derive(Clone, Copy)]
pub(crate) struct FileDescription<'a> {
    /// Name of the log.
    pub(crate) name: &'a str,
    pub(crate) fields: &'a [Field],
    pub(crate) unit: TimeUnit,
    /// Packet time at which its first row was written.
    pub(crate) opened: i64,
}

impl ParquetFile {
    /// Creates the file and writes its header.
    pub(crate) fn create(path: &Path, description: FileDescription<'_>) -> Result<Self, Error> {
        let FileDescription { name, fields, unit, opened } = description;
        let mut columns: Vec<_> = schema(fields, unit).fields().iter().cloned().collect();
        columns.push(Arc::new(arrow_schema::Field::new(ROW, DataType::Int64, false)));
        let schema = Schema::new(columns);
        let metadata = vec![
            KeyValue::new(key::PATH.to_owned(), name.to_owned()),
            KeyValue::new(key::VERSION.to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
            KeyValue::new(key::OPENED.to_owned(), opened.to_string()),
            KeyValue::new(ARROW_SCHEMA_META_KEY.to_owned(), encode_arrow_schema(&schema)),
        ];
        let mut properties = WriterProperties::builder()
            .set_created_by(concat!("gannet ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_key_value_metadata(Some(metadata));
        if fields.first().is_some_and(is_time) {
            let by_time = SortingColumn { column_idx: 0, descending: false, nulls_first: true };
            properties = properties.set_sorting_columns(Some(vec![by_time]));
        }
        let parquet = ArrowSchemaConverter::new().convert(&schema)?;
        let file = WholeFile::create(path)?;
        let properties = Arc::new(properties.build());
        let writer = SerializedFileWriter::new(file, parquet.root_schema_ptr(), properties)?;
        Ok(Self { writer, choices: Vec::new() })
    }

    /// Writes a row group.
    pub(crate) fn write(
        &mut self,
        group: Group,
        options: GroupOptions,
        context: &mut GroupContext,
    ) -> Result<(), Error> {
        group.write(&mut self.writer, options, &mut self.choices, context)
    }

    /// Completes the file.
    pub(crate) fn finish(mut self, closed: i64) -> Result<(), Error> {
        let closed = closed.to_string();
        self.writer.append_key_value_metadata(KeyValue::new(key::CLOSED.to_owned(), closed));
        Ok(self.writer.into_inner()?.finish()?)
    }
}

/// Whether a column gets a Bloom filter: queries look up ids and addresses.
pub(crate) fn has_bloom(field: &Field) -> bool {
    field.ty == Type::Scalar("addr") || matches!(field.ty, Type::Scalar(_)) && is_id(field.name)
}

/// Whether nearly every row has a different value in a column.
pub(crate) fn is_id(name: &str) -> bool {
    matches!(name, "uid" | "fuid" | "community_id") || name.ends_with("_fuid")
}

/// Whether rows are sorted by this column, the first one.
pub(crate) fn is_time(field: &Field) -> bool {
    field.ty == Type::Scalar("time")
}
