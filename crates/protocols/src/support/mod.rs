//! What several protocols need: lines, messages and numbers out of streams, MIME entities, words
//! of a line, ASN.1.

pub mod ber;
mod bytes;
mod frames;
mod lines;
pub mod mime;
pub mod text;

pub use bytes::Bytes;
pub use frames::Frames;
pub use lines::Line;
pub use lines::Lines;

use crate::Context;

/// Notes that a limit of an analyzer was reached: an oddity, and once a connection the letter `X`
/// in its history.
pub fn limit_reached(
    cx: &mut Context<'_>,
    name: &'static str,
    addl: &str,
    source: Option<&'static str>,
) {
    cx.weird(name, addl, source);
    if !cx.conn.history.as_bytes().contains(&b'X') {
        cx.conn.history.push(b'X');
    }
}

/// Whether the beginning of a TCP connection was not seen: the first packet of a side that spoke
/// was not the one that opens it.
pub fn is_partial(cx: &Context<'_>) -> bool {
    let letters = cx.conn.history.as_bytes().iter().filter(|l| l.is_ascii_alphabetic());
    let (mut orig, mut resp) = (None, None);
    for &l in letters {
        if l.is_ascii_uppercase() {
            orig.get_or_insert(l);
        } else {
            resp.get_or_insert(l);
        }
    }
    orig.is_some_and(|l| l != b'S') || resp.is_some_and(|l| l != b'h' && l != b's')
}
