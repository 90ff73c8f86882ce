//! File analysis: type sniffing, hashes, X.509, OCSP, PE.

pub mod der;
pub mod hash;
mod manager;
pub mod oid;
pub mod sniff;
pub mod x509;

pub use manager::FileId;
pub use manager::FileStart;
pub use manager::Files;
