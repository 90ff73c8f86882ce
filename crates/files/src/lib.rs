//! File analysis: type sniffing, hashes, X.509, OCSP, PE.
