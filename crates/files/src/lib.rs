//! File analysis: type sniffing, hashes, X.509, OCSP, PE.

mod manager;

pub use manager::FileId;
pub use manager::FileStart;
pub use manager::Files;
