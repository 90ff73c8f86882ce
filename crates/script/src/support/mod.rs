//! What the language needs beside itself: self-contained algorithms over bytes and numbers that know nothing of
//! programs and values.

pub mod field;
pub mod format;
pub mod input;
pub mod logs;
pub mod net;
pub mod opaque;
pub mod order;
pub mod pattern;
pub mod text;
