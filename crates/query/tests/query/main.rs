//! Queries of all kinds. One program: linking DataFusion takes longer than its tests.
// Tests may unwrap and print; the lints know that only of functions that are tests themselves.
#![cfg(feature = "datafusion")]
#![allow(clippy::print_stderr, clippy::unwrap_used)]

mod questions;
mod recipes;
mod sources;
mod support;
