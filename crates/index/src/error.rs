use std::io;
use std::path::PathBuf;

use crate::analysis::Analysis;

/// Errors of an index.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The index does not exist.
    #[error("{0} has no index; create it with: gannet index {0}")]
    Missing(PathBuf),
    /// A file cannot be read or written.
    #[error("{0}: {1}")]
    Io(PathBuf, io::Error),
    /// The file is not an index, or it is truncated or damaged.
    #[error("{0} is damaged: {1}; run gannet index again")]
    Damaged(PathBuf, &'static str),
    /// Another version wrote it.
    #[error("{0} has version {1}, but this gannet reads version {2}; run gannet index again")]
    Version(PathBuf, u32, u32),
    /// The capture differs from the one that was indexed.
    #[error("{0} does not fit its capture: {1}; run gannet index again")]
    Unfit(PathBuf, &'static str),
    /// An analysis with other options made it.
    #[error(
        "{index} was made with {made}, and this analysis uses {requested}: use the options of the index, or make it \
         again with the others"
    )]
    Analysis {
        /// The index.
        index: PathBuf,
        /// The options that it was made with.
        made: Analysis,
        /// The options of the analysis that uses it.
        requested: Analysis,
    },
    /// The capture cannot be read.
    #[error(transparent)]
    Capture(#[from] gannet_capture::Error),
    /// The lists of an index would exceed the memory limit.
    #[error("the index would take more than {0} bytes of memory")]
    TooLarge(usize),
    /// Shards have not reported the end of the analysis.
    #[error("the analysis has not finished: {0} parts of the index are missing")]
    Unfinished(usize),
}
