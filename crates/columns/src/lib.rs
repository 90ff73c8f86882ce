//! Logs as columns: Arrow batches, Parquet and Arrow files, and rows out of them.
//!
//! [`Columns`] is an [`Output`](gannet_log::Output) of the logs. It takes packed rows, collects
//! those of each stream and writes them as [`Batch`]es: as row groups of a Parquet file, each
//! sorted by time, or as batches of an Arrow file, in the order of the log. Types come from the
//! declaration of a log ([`schema()`]); a stream that is declared at run time is written in the
//! same way. Files get their final names when they are complete ([`WholeFile`]). A file depends
//! only on the rows: neither on the number of threads nor on the clock.
//!
//! | Zeek | Arrow |
//! |---|---|
//! | `time` | timestamp in microseconds, UTC (or nanoseconds, [`TimeUnit`]) |
//! | `interval` | double, in seconds |
//! | `count`, `int` | int64; a count beyond 2⁶³ - 1 becomes that |
//! | `port` | uint16 |
//! | `addr`, `enum`, `string` | utf8; bytes that are not clean UTF-8 as `\xNN`, as in JSON logs |
//! | `bool`, `double` | boolean, double |
//! | `set`, `vector` | list |
//!
//! An unset column is null, an empty set is an empty list. The field metadata `zeek.type` holds Zeek's type, from
//! which [`ParquetRows`] makes the rows again: through the encoders of the logs they become the same text.
//! Columns whose names begin with an underscore are gannet's own: `_row` is the number of a row in its log.

mod batch;
mod error;
mod group;
mod output;
mod parquet_file;
mod partition;
mod read;
mod schema;
mod waiting;
mod whole_file;

pub use batch::Batch;
pub use error::Error;
pub use output::ColumnFormat;
pub use output::Columns;
pub use partition::Partition;
pub use read::ParquetRows;
pub use read::rows_of;
pub use schema::ROW;
pub use schema::TYPE;
pub use schema::TimeUnit;
pub use schema::field;
pub use schema::fields_of;
pub use schema::schema;
pub use whole_file::WholeFile;
