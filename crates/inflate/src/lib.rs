//! Decoders of gzip and zstd for captures: [`gzip::Gunzip`] decompresses into the buffer that
//! records are read from, [`zstd::Unzstd`] decodes blocks in several threads, and both collect
//! [`RestartPoints`], from which a file can be read without the data before them.

pub mod gzip;
mod restart;
pub mod zstd;

pub use restart::{MAX_RESTART_BYTES, RestartPoint, RestartPoints};
