//! Support for the language: self-contained algorithms over bytes and numbers, independent of
//! programs and values.

pub mod field;
pub mod format;
pub mod input;
pub mod logs;
pub mod mmdb;
pub mod net;
pub mod opaque;
pub mod order;
pub mod pattern;
pub(crate) mod resolver;
pub mod text;
pub mod x509;
