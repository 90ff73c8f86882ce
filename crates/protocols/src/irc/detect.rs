//! Detection rules of IRC.

use crate::detect::Sides;
use crate::detect::TcpRule;
use crate::detect::text::after;
use crate::detect::text::after_word;
use crate::detect::text::ends_line;
use crate::detect::text::has_line_end;
use crate::detect::text::later_lines;
use crate::detect::text::line_starts;

pub(super) const TCP: &[TcpRule] = &[
    TcpRule::log_in(|s| login(s, b"USER", b"NICK")),
    TcpRule::log_in(|s| login(s, b"NICK", b"USER")),
    TcpRule::server(servers),
];

/// Whether a client sends both commands in this order, and a server replies.
fn login(s: Sides<'_>, first: &[u8], second: &[u8]) -> bool {
    client(s.orig, first, second) && server(s.resp)
}

/// Whether a line has the first command, and a later, complete line the second.
fn client(d: &[u8], first: &[u8], second: &[u8]) -> bool {
    let command = |l| after_word(after(l, |b| b == b' '), first);
    let Some(rest) = line_starts(d).find_map(command).and_then(|r| r.get(1..)) else {
        return false;
    };
    later_lines(rest).any(|l| {
        after_word(after(l, |b| b == b' '), second)
            .is_some_and(|arg| if second == b"USER" { ends_line(arg) } else { has_line_end(arg) })
    })
}

/// Whether a line begins with a numeric reply, with or without the server's name as a prefix.
fn server(d: &[u8]) -> bool {
    line_starts(d).any(|l| {
        let l = if l.first() == Some(&b':') {
            let name = after(&l[1..], |b| !matches!(b, b' ' | b'\n' | b'\r'));
            if name.len() + 1 == l.len() || name.first() != Some(&b' ') {
                return false;
            }
            &name[1..]
        } else {
            l
        };
        l.len() > 3 && l[..3].iter().all(u8::is_ascii_digit) && l[3] == b' '
    })
}

/// Whether both sides register as servers.
fn servers(s: Sides<'_>) -> bool {
    peer(s.resp) && peer(s.orig)
}

/// Whether the data has a complete line `SERVER name hops :description`.
fn peer(d: &[u8]) -> bool {
    line_starts(d).any(|l| peer_line(l) == Some(true))
}

fn peer_line(l: &[u8]) -> Option<bool> {
    let blanks = |d| after(d, |b| b == b' ');
    let name = blanks(after_word(blanks(l), b"SERVER")?);
    let rest = after(name, |b| b != b' ');
    let hops = blanks(rest);
    let tail = after(hops, |b| b.is_ascii_digit());
    let text = blanks(tail);
    let is_complete = rest.len() < name.len() && tail.len() < hops.len() && text.len() < tail.len();
    let text = text.strip_prefix(b":").filter(|_| is_complete)?;
    Some(ends_line(text))
}
