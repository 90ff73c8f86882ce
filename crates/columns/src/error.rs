use std::io;

use arrow_schema::ArrowError;
use parquet::errors::ParquetError;

/// Errors of columnar files.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read or written.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Arrow reports an error, such as columns that do not match the schema.
    #[error(transparent)]
    Arrow(ArrowError),
    /// A file is not a Parquet file, or it is damaged.
    #[error(transparent)]
    Parquet(ParquetError),
    /// A column has another type than its metadata says.
    #[error("column '{0}' does not hold values of its type '{1}'")]
    Column(String, String),
}

/// An error of a file stays one, in its own words.
impl From<ParquetError> for Error {
    fn from(error: ParquetError) -> Self {
        match error {
            ParquetError::External(inner) => match inner.downcast() {
                Ok(error) => Self::Io(*error),
                Err(inner) => Self::Parquet(ParquetError::External(inner)),
            },
            other => Self::Parquet(other),
        }
    }
}

impl From<ArrowError> for Error {
    fn from(error: ArrowError) -> Self {
        match error {
            ArrowError::IoError(_, error) => Self::Io(error),
            other => Self::Arrow(other),
        }
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Io(error) => error,
            other => Self::other(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_files_keep_their_words() {
        let full = || io::Error::other("logs/conn.parquet: No space left on device");
        let errors =
            [Error::from(ParquetError::from(full())), Error::from(ArrowError::from(full()))];
        for error in errors {
            assert_eq!(error.to_string(), "logs/conn.parquet: No space left on device");
            assert!(matches!(error, Error::Io(_)), "{error:?}");
        }
    }
}
