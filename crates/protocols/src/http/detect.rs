//! Detection rules of HTTP.

use crate::detect::Class;
use crate::detect::TcpRule;
use crate::detect::text::after;
use crate::detect::text::has_word;
use crate::detect::text::is_space;

pub(super) const TCP: &[TcpRule] = &[
    TcpRule::orig(Class::SPACE.or(Class::UPPER), |s| client(s.orig)),
    TcpRule::resp(Class::of(b"Hh"), |s| server(s.resp)),
];

fn client(d: &[u8]) -> bool {
    let d = after(d, is_space);
    let Some(first) = d.first() else { return false };
    let words: &[&[u8]] = match first {
        b'A' => &[b"ACL"],
        b'B' => &[
            b"BASELINE-CONTROL",
            b"BIND",
            b"BCOPY",
            b"BDELETE",
            b"BMOVE",
            b"BPROPFIND",
            b"BPROPPATCH",
        ],
        b'C' => &[b"CHECKIN", b"CHECKOUT", b"CONNECT", b"COPY"],
        b'D' => &[b"DELETE"],
        b'G' => &[b"GET"],
        b'H' => &[b"HEAD"],
        b'L' => &[b"LABEL", b"LINK", b"LOCK"],
        b'M' => &[
            b"MERGE",
            b"MKACTIVITY",
            b"MKCALENDAR",
            b"MKCOL",
            b"MKREDIRECTREF",
            b"MKWORKSPACE",
            b"MOVE",
        ],
        b'N' => &[b"NOTIFY"],
        b'O' => &[b"OPTIONS", b"ORDERPATCH"],
        b'P' => &[b"POST", b"PUT", b"PATCH", b"PROPFIND", b"PROPPATCH", b"POLL"],
        b'Q' => &[b"QUERY"],
        b'R' => &[b"REBIND", b"REPORT", b"RPC_IN_DATA", b"RPC_OUT_DATA"],
        b'S' => &[b"SEARCH", b"SUBSCRIBE"],
        b'T' => &[b"TRACE"],
        b'U' => &[b"UNBIND", b"UNCHECKOUT", b"UNLINK", b"UNLOCK", b"UPDATE", b"UNSUBSCRIBE"],
        b'V' => &[b"VERSION-CONTROL"],
        b'X' => &[b"X-MS-ENUMATTS"],
        _ => &[],
    };
    words.iter().any(|w| d.starts_with(w))
}

fn server(d: &[u8]) -> bool {
    has_word(d, b"HTTP/") && d.get(5).is_some_and(u8::is_ascii_digit)
}
