//! Finger (RFC 1288).
//!
//! Nothing is logged of it and nothing recognises it: what remains is what Zeek finds odd about
//! connections to the port. Lines are short; and of every connection whose originator closed its
//! side it says that the request is incomplete.

use gannet_base::Dir;

use crate::Analyze;
use crate::Context;
use crate::support::Lines;

/// Longest line.
const MAX_LINE: usize = 1000;

/// The analyzer of one connection.
pub struct Analyzer {
    lines: [Lines; 2],
    lone_cr_told: bool,
}

impl Analyzer {
    /// For a new connection.
    pub fn new(_cx: &mut Context<'_>) -> Self {
        Self { lines: [Lines::new(MAX_LINE), Lines::new(MAX_LINE)], lone_cr_told: false }
    }
}

impl Analyze for Analyzer {
    fn stream(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) {
        let lines = &mut self.lines[from.index()];
        let mut data = data;
        while let Some(line) = lines.next(&mut data) {
            if line.cut {
                cx.weird("contentline_size_exceeded", "", Some("CONTENTLINE"));
            }
        }
        if lines.lone_cr() && !std::mem::replace(&mut self.lone_cr_told, true) {
            cx.weird("line_terminated_with_single_CR", "", Some("CONTENTLINE"));
        }
    }

    fn gap(&mut self, _cx: &mut Context<'_>, from: Dir, _len: u64) {
        self.lines[from.index()].reset();
    }

    fn flip(&mut self, _cx: &mut Context<'_>) {
        self.lines.swap(0, 1);
    }

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

    #[test]
    fn lines_are_short() {
        let mut h = Harness::new(Proto::Tcp, 79);
        let mut a = Analyzer::new(&mut h.cx());
        a.stream(&mut h.cx(), Dir::Orig, &[b'a'; MAX_LINE]);
        a.stream(&mut h.cx(), Dir::Resp, &[b'b'; MAX_LINE]);
        assert!(h.rows("weird").is_empty());
        a.stream(&mut h.cx(), Dir::Orig, b"a\r\nx\ry");
        let names: Vec<_> = h.rows("weird").iter().map(|r| r["name"].clone()).collect();
        assert_eq!(names, ["contentline_size_exceeded", "line_terminated_with_single_CR"]);
    }
}
