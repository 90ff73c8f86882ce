//! Errors of an analysis or a task.

use std::io;
use std::path::PathBuf;

/// Errors of an analysis, or of its division into tasks.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A capture cannot be read, or only in part.
    #[error(transparent)]
    Capture(#[from] gannet_capture::Error),
    /// A filter is not valid.
    #[error("filter: {0}")]
    Filter(#[from] gannet_filter::Error),
    /// A filter does not apply to the link type of any packet.
    #[error("filter: {link_type}: {why}")]
    NoAnswer {
        /// The link type.
        link_type: gannet_capture::LinkType,
        /// The reason.
        why: String,
    },
    /// No log has this name.
    #[error("no log is named '{0}'")]
    NoLog(String),
    /// No optional column has this name.
    #[error("no optional column is named '{0}'")]
    NoColumn(String),
    /// Tasks cannot write this log.
    #[error("{log}.log cannot be divided among tasks: {why}")]
    Indivisible {
        /// Name of the log.
        log: String,
        /// The reason.
        why: &'static str,
    },
    /// A value is not a valid task, plan or set of settings.
    #[error("not a valid {what}: {why}")]
    Invalid {
        /// What was expected.
        what: &'static str,
        /// What is wrong.
        why: String,
    },
    /// A capture has changed since the tasks were planned.
    #[error("{}: the file has {now} bytes, but had {planned} when the tasks were planned; plan again", file.display())]
    Changed {
        /// The capture.
        file: PathBuf,
        /// Its size when the tasks were planned, in bytes.
        planned: u64,
        /// Its size now, in bytes.
        now: u64,
    },
    /// The analysis failed.
    #[error("analysis: {0}")]
    Analysis(#[from] io::Error),
    /// Rows cannot be converted to a batch.
    #[error(transparent)]
    Columns(#[from] gannet_columns::Error),
}
