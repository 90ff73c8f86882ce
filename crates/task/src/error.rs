//! Errors of an analysis or a task.

use std::io;
use std::path::PathBuf;

/// Why captures cannot be analysed or divided.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A capture cannot be read, or not to its end.
    #[error(transparent)]
    Capture(#[from] gannet_capture::Error),
    /// A filter that is not valid.
    #[error("filter: {0}")]
    Filter(#[from] gannet_filter::Error),
    /// A filter that has no answer for the link type of any packet.
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
    /// A log that tasks cannot write.
    #[error("{log}.log cannot be divided among tasks: {why}")]
    Indivisible {
        /// Its name.
        log: String,
        /// The reason.
        why: &'static str,
    },
    /// Text that is no task, plan or settings.
    #[error("not a valid {what}: {why}")]
    Invalid {
        /// The expected form.
        what: &'static str,
        /// The fault.
        why: String,
    },
    /// A capture is not what it was when the tasks were planned.
    #[error("{}: {now} bytes, and {planned} when the tasks were planned: plan again", file.display())]
    Changed {
        /// The capture.
        file: PathBuf,
        /// Bytes then.
        planned: u64,
        /// Bytes now.
        now: u64,
    },
    /// The analysis failed.
    #[error("analysis: {0}")]
    Analysis(#[from] io::Error),
    /// Rows that make no batch.
    #[error(transparent)]
    Columns(#[from] gannet_columns::Error),
}
