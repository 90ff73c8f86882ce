//! Makes traffic: deterministic captures for tests and benchmarks.
