//! Detection rules for POP3.

use crate::detect::Class;
use crate::detect::TcpRule;
use crate::detect::text::after;
use crate::detect::text::has_word;
use crate::detect::text::is_space;
use crate::detect::text::line_starts;

pub(super) const TCP: &[TcpRule] =
    &[TcpRule::resp(Class::of(b"+"), |s| s.resp.starts_with(b"+OK") && client(s.orig))];

fn client(d: &[u8]) -> bool {
    line_starts(d).any(|l| {
        let l = after(l, is_space);
        [b"CAPA", b"AUTH", b"STLS"].iter().any(|w| has_word(l, &w[..]))
            || ((has_word(l, b"USER") || has_word(l, b"APOP"))
                && l.get(4).is_some_and(|&b| is_space(b)))
    })
}
