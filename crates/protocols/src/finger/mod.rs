//! Finger (RFC 1288).
//!
//! Nothing is logged of it and nothing recognises it: what remains is the oddity that Zeek tells
//! of every connection to the port whose originator closed its side.

use crate::Analyze;
use crate::Context;

/// The analyzer of one connection.
pub struct Analyzer;

impl Analyzer {
    /// For a new connection.
    pub fn new(_cx: &mut Context<'_>) -> Self {
        Self
    }
}

impl Analyze for Analyzer {
    fn finish(&mut self, cx: &mut Context<'_>) {
        if cx.conn.history.as_bytes().contains(&b'F') {
            cx.weird("partial_finger_request", "", Some("FINGER"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Harness;
    use gannet_base::Dir;
    use gannet_base::Proto;

    #[test]
    fn told_when_the_originator_closed() {
        let mut h = Harness::new(Proto::Tcp, 79);
        h.conn.note(Dir::Resp, b'F');
        Analyzer::new(&mut h.cx()).finish(&mut h.cx());
        assert!(h.rows("weird").is_empty());
        h.conn.note(Dir::Orig, b'F');
        Analyzer::new(&mut h.cx()).finish(&mut h.cx());
        assert_eq!(h.rows("weird")[0]["source"], "FINGER");
    }
}
