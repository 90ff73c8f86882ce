//! SQL over captures and logs.
//!
//! A `Session` has captures, logs and folders of both, and answers queries about them. Each log is a table: `conn`,
//! `dns` and so on. Its rows come from all files that have that log: Parquet files, Zeek's TSV and JSON logs, and
//! captures, which are analysed while the query runs. Of a capture only the log and the columns that the query names
//! are made, and the analysis stops as soon as the query needs no more rows. A table may also be named by its file:
//! `'trace.pcap'` is its conn, `'trace.pcap'.dns` another log, `'dns.parquet'` the log in it.
//!
//! Zeek's names stand as they are: `id.orig_h` needs no quotes (`names`). The `functions` of the network field join
//! those of DataFusion, which plans and runs the queries. Memory is bounded: sorts, groups and joins beyond the limit
//! go to temporary files. A query only reads; statements that write or define anything are refused.
//!
//! Without the feature `datafusion` the crate is empty.

#![cfg(feature = "datafusion")]

mod answer;
mod arithmetic;
mod capture;
mod clauses;
mod compare;
mod convert;
mod error;
mod functions;
mod hints;
mod listing;
mod names;
mod other_engines;
mod output;
mod rewrite;
mod session;
mod show;
mod sum;
mod table;
mod text;

pub use answer::Answer;
pub use error::Error;
pub use error::ErrorKind;
pub use functions::FUNCTIONS;
pub use output::Csv;
pub use output::Json;
pub use output::Pretty;
pub use output::Writer;
pub use output::parquet;
pub use session::Options;
pub use session::Session;
