//! File analysis: type sniffing, hashes, X.509, OCSP, PE.

pub mod der;
pub mod hash;
pub mod oid;
pub mod sniff;
pub mod x509;
