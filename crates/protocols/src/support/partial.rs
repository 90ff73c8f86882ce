//! Connections that were joined in their midst.

use gannet_base::Proto;
use gannet_flow::Conn;

/// Whether the beginning of a TCP connection is missing: a side's first packet was no SYN. Several
/// protocols cannot be read from their midst.
pub fn is_partial(conn: &Conn) -> bool {
    if conn.proto != Proto::Tcp {
        return false;
    }
    let history = conn.history.as_bytes();
    // A SYN-ACK whose SYN was missed turns the roles and counts as a beginning.
    if history.starts_with(b"^h") {
        return false;
    }
    let first = |upper: bool| {
        history.iter().find(|l| l.is_ascii_alphabetic() && l.is_ascii_uppercase() == upper)
    };
    first(true).is_some_and(|l| *l != b'S') || first(false).is_some_and(|l| !b"hs".contains(l))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Harness;

    #[test]
    fn by_history() {
        let partial = |letters: &[u8]| {
            let mut h = Harness::new(Proto::Tcp, 22);
            h.conn.history.replace(letters);
            is_partial(&h.conn)
        };
        for whole in [&b""[..], b"S", b"ShADad", b"^hADad", b"ShAdDa^"] {
            assert!(!partial(whole));
        }
        for late in [&b"Dd"[..], b"HA", b"^dA", b"SAd"] {
            assert!(partial(late));
        }
    }
}
