//! File analysis: type sniffing, hashes, X.509, OCSP, PE.

mod analyzers;
pub mod der;
mod files_log;
pub mod hash;
mod manager;
pub mod ocsp;
pub mod oid;
pub mod pe;
pub mod sniff;
pub mod x509;

pub use manager::FileId;
pub use manager::FileOptions;
pub use manager::FileStart;
pub use manager::Files;
