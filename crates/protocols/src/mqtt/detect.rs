//! Beginnings of connections that speak MQTT.

use crate::detect::TcpRule;

pub(super) const TCP: &[TcpRule] = &[TcpRule::any(|s| connect(s.orig) || connect(s.resp))];

/// A name that begins with `MQ`, behind a fixed header of two to five bytes and a length.
fn connect(d: &[u8]) -> bool {
    // Nearly always there is no such letter.
    let may = |d: &[u8; 4]| d.contains(&b'M');
    d.get(4..).and_then(<[u8]>::first_chunk).is_none_or(may)
        && (4..=7).any(|n| d.get(n..n + 2) == Some(b"MQ"))
}
