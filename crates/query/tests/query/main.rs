//! Tests of queries. They are one binary, because linking DataFusion takes longer than running them.
// The lints allow unwrap and print in test functions only, not in their helpers.
#![cfg(feature = "datafusion")]
#![allow(clippy::print_stderr, clippy::unwrap_used)]

mod questions;
mod recipes;
mod sources;
mod support;
