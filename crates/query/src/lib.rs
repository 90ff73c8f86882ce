//! SQL over captures and logs.
//!
//! A `Session` runs queries over captures, logs, and folders of both. Each log is a table: `conn`, `dns` and so on. Its
//! rows come from all files that have that log: Parquet files, Zeek's TSV and JSON logs, and captures, which are
//! analysed while the query runs. The analysis of a capture creates only the log and the columns that the query uses,
//! and stops as soon as the query needs no more rows. A table may also be named by its file: `'trace.pcap'` is its conn
//! log, `'trace.pcap'.dns` another log, `'dns.parquet'` the log in it.
//!
//! Zeek's column names such as `id.orig_h` need no quotes (`names`). DataFusion plans and executes the queries;
//! `functions` adds functions for network data. Memory is bounded: sorts, groups and joins beyond the limit spill to
//! temporary files. Queries are read-only: DDL and DML statements are rejected.
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
