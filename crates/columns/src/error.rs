use std::io;

/// Errors of columnar files.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read or written.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Arrow reports an error, such as columns that do not match the schema.
    #[error(transparent)]
    Arrow(#[from] arrow_schema::ArrowError),
    /// A file is not a Parquet file, or it is damaged.
    #[error(transparent)]
    Parquet(#[from] parquet::errors::ParquetError),
    /// A column has another type than its metadata says.
    #[error("column '{0}' does not hold values of its type '{1}'")]
    Column(String, String),
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Io(error) => error,
            other => Self::other(other),
        }
    }
}
