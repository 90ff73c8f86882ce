//! Detection rules for SMTP.

use crate::detect::Class;
use crate::detect::TcpRule;
use crate::detect::text::after;
use crate::detect::text::has_word;
use crate::detect::text::is_space;
use crate::detect::text::line_starts;

pub(super) const TCP: &[TcpRule] =
    &[TcpRule::sides(Class::ANY, Class::SPACE.or(Class::of(b"2")), |s| {
        server(s.resp) && client(s.orig)
    })];

fn server(d: &[u8]) -> bool {
    let d = after(d, is_space);
    d.starts_with(b"220") && d.get(3).is_some_and(|&b| is_space(b) || b == b'-')
}

fn client(d: &[u8]) -> bool {
    line_starts(d).any(|l| {
        let l = after(l, is_space);
        has_word(l, b"HELO") || has_word(l, b"EHLO")
    })
}
