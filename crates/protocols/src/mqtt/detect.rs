//! Detection of MQTT at the start of streams.

use crate::detect::TcpRule;

pub(super) const TCP: &[TcpRule] = &[TcpRule::any(|s| connect(s.orig) || connect(s.resp))];

/// Whether a packet has a fixed header of two to five bytes, a length, and a protocol name that
/// begins with `MQ`.
fn connect(d: &[u8]) -> bool {
    // Quick check: nearly all other streams have no such letter there.
    let may = |d: &[u8; 4]| d.contains(&b'M');
    d.get(4..).and_then(<[u8]>::first_chunk).is_none_or(may)
        && (4..=7).any(|n| d.get(n..n + 2) == Some(b"MQ"))
}
