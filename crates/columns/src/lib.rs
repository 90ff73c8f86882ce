//! Logs as columns: Arrow batches, Parquet and Arrow files, and a reader of these files.
//!
//! [`Columns`] is an [`Output`](gannet_log::Output) of the logs. It collects the packed rows of each
//! stream and writes them as row groups of a Parquet file, each sorted by time, or as [`Batch`]es of
//! an Arrow file, in the order of the log. The schema is derived from the declaration of a log
//! ([`schema()`]), also for streams that are declared at run time. Files get their final names when
//! they are complete ([`WholeFile`]). A file depends only on the rows: neither on the number of
//! threads nor on the clock.
//!
//! | Zeek | Arrow |
//! |---|---|
//! | `time` | timestamp in microseconds, UTC (or nanoseconds, [`TimeUnit`]) |
//! | `interval` | double, in seconds |
//! | `count`, `int` | int64; a count above 2⁶³ - 1 is written as 2⁶³ - 1 |
//! | `port` | uint16 |
//! | `addr`, `enum`, `string` | utf8; bytes that are not valid UTF-8 as `\xNN`, as in JSON logs |
//! | `bool`, `double` | boolean, double |
//! | `set`, `vector` | list |
//!
//! An unset column is null, an empty set is an empty list. The field metadata `zeek.type` holds Zeek's type.
//! [`ParquetRows`] uses it to restore the packed rows, which the log writers encode to the same text.
//! Columns whose names begin with an underscore are gannet's own: `_row` is the number of a row in its log.

mod batch;
mod error;
mod group;
mod output;
mod parquet_file;
mod partition;
mod read;
mod row_buffer;
mod schema;
mod whole_file;

pub use batch::Batch;
pub use error::Error;
pub use output::ColumnFormat;
pub use output::Columns;
pub use partition::Partition;
pub use read::ParquetRows;
pub use read::pack_rows;
pub use schema::ROW;
pub use schema::TYPE;
pub use schema::TimeUnit;
pub use schema::field;
pub use schema::fields_of;
pub use schema::schema;
pub use whole_file::WholeFile;
