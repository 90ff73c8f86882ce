//! Parsing helpers that several protocols use: lines, messages and integers from streams, MIME
//! entities, words of a line, ASN.1, and the exchange before TLS.

pub mod ber;
mod bytes;
pub(crate) mod filetime;
mod frames;
mod lines;
pub mod mime;
mod prelude;
mod record;
pub mod text;
pub mod utf16;

pub use bytes::Bytes;
pub use frames::Frames;
pub use lines::Line;
pub use lines::Lines;
pub use prelude::ItemEffect;
pub use prelude::PreTls;
pub use prelude::PreTlsAnalyzer;
pub use record::BINPAC;
pub use record::OutOfBound;
pub use record::Record;
pub use record::RecordBounds;
pub use record::RecordFault;
#[cfg(test)]
pub(crate) use record::error_text;

use crate::Context;

/// Reports that a limit of an analyzer was reached: raises a weird and adds a letter to the
/// history.
pub fn limit_reached(
    cx: &mut Context<'_>,
    name: &'static str,
    addl: &str,
    source: Option<&'static str>,
) {
    cx.weird(name, addl, source);
    cx.conn.note_limit();
}
