//! Beginnings of protocols over TCP.

use std::sync::LazyLock;

use gannet_base::Dir;
use memchr::memmem;

use super::text::after;
use super::text::after_word;
use super::text::ends_line;
use super::text::has_line_end;
use super::text::has_word;
use super::text::is_space;
use super::text::later_lines;
use super::text::line_starts;

/// Everything that the sides sent so far.
#[derive(Clone, Copy)]
pub(super) struct Sides<'a> {
    pub(super) orig: &'a [u8],
    pub(super) resp: &'a [u8],
    /// The facts found in it.
    pub(super) seen: Seen,
}

/// What rules would else look for again in all that a side sent, chunk by chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// Start of the originator's last line, as two bytes, so that the field needs no alignment.
    line: [u8; 2],
    /// [`USER`] and so on, a bit each.
    what: u8,
}

/// Commands of IRC at the beginning of the originator's lines.
const USER: u8 = 1;
const NICK: u8 = 2;
const SERVER: u8 = 4;
/// By side: the first bytes of an RDP server's settings.
const SETTINGS: [u8; 2] = [8, 16];

impl Seen {
    /// Examines the data of a side, of which the first `before` bytes were examined before.
    #[inline]
    pub(super) fn look(&mut self, from: Dir, side: &[u8], before: usize) {
        let settings = SETTINGS[from.index()];
        if !self.has(settings) {
            let new = before.saturating_sub(MC_DN.len() - 1);
            let found = MC_DN_FINDER.find(side.get(new..).unwrap_or_default());
            self.what |= if found.is_some() { settings } else { 0 };
        }
        if from.is_orig() {
            self.commands(side);
        }
    }

    /// Commands in the originator's lines from the one on that was the last one before.
    fn commands(&mut self, d: &[u8]) {
        let from = usize::from(u16::from_ne_bytes(self.line));
        for line in line_starts(d.get(from..).unwrap_or_default()) {
            // Beyond the stored data there is no next time.
            let at = u16::try_from(d.len() - line.len()).unwrap_or_default();
            self.line = at.to_ne_bytes();
            let line = after(line, |b| b == b' ');
            let (word, what): (&[u8], _) = match line.first().map(u8::to_ascii_uppercase) {
                Some(b'U') => (b"USER", USER),
                Some(b'N') => (b"NICK", NICK),
                Some(b'S') => (b"SERVER", SERVER),
                _ => continue,
            };
            self.what |= if after_word(line, word).is_some() { what } else { 0 };
        }
    }

    /// Whether a side, the first or the second, may be an RDP server.
    pub(super) fn rdp(self, side: &[u8], which: usize) -> bool {
        side.get(5) == Some(&0xd0) || self.has(SETTINGS[which])
    }

    fn has(self, what: u8) -> bool {
        self.what & what == what
    }

    pub(super) fn log_in(self) -> bool {
        self.has(USER | NICK)
    }

    pub(super) fn server(self) -> bool {
        self.has(SERVER)
    }
}

/// Version 5.0 or 5.1 and a packet type.
pub(super) fn dce_rpc(d: &[u8]) -> bool {
    matches!(d, [5, 0 | 1, 0..=0x13, ..])
}

pub(super) fn http_client(d: &[u8]) -> bool {
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

pub(super) fn http_server(d: &[u8]) -> bool {
    has_word(d, b"HTTP/") && d.get(5).is_some_and(u8::is_ascii_digit)
}

/// A greeting with 220 or 120 and, on a later line, 230 or 331.
fn ftp_server(d: &[u8]) -> bool {
    let d = after(d, |b| matches!(b, b'\n' | b'\r' | b' '));
    code(d, &[b"120", b"220"])
        && later_lines(&d[4..]).any(|l| code(after(l, |b| b == b' '), &[b"230", b"331"]))
}

/// A user's name, and a server that asks for it.
pub(super) fn ftp(s: Sides<'_>) -> bool {
    s.seen.has(USER) && ftp_server(s.resp)
}

/// One of the numbers and no further digit.
fn code(d: &[u8], numbers: &[&[u8; 3]]) -> bool {
    d.len() > 3 && !d[3].is_ascii_digit() && numbers.iter().any(|n| d[..3] == n[..])
}

/// A numeric reply at the start of a line, perhaps behind the server's name.
fn irc_server(d: &[u8]) -> bool {
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

/// A client's commands in this order, and a server's reply.
pub(super) fn irc_login(s: Sides<'_>, first: &[u8], second: &[u8]) -> bool {
    irc_client(s.orig, first, second) && irc_server(s.resp)
}

/// A line with one command, and a later one with the other; the latter is complete.
fn irc_client(d: &[u8], first: &[u8], second: &[u8]) -> bool {
    let command = |l| after_word(after(l, |b| b == b' '), first);
    let Some(rest) = line_starts(d).find_map(command).and_then(|r| r.get(1..)) else {
        return false;
    };
    later_lines(rest).any(|l| {
        after_word(after(l, |b| b == b' '), second)
            .is_some_and(|arg| if second == b"USER" { ends_line(arg) } else { has_line_end(arg) })
    })
}

/// Two servers of IRC.
pub(super) fn irc_servers(s: Sides<'_>) -> bool {
    irc_peer(s.resp) && irc_peer(s.orig)
}

/// `SERVER name hops :description`, complete.
fn irc_peer(d: &[u8]) -> bool {
    line_starts(d).any(|l| irc_peer_line(l) == Some(true))
}

fn irc_peer_line(l: &[u8]) -> Option<bool> {
    let blanks = |d| after(d, |b| b == b' ');
    let name = blanks(after_word(blanks(l), b"SERVER")?);
    let rest = after(name, |b| b != b' ');
    let hops = blanks(rest);
    let tail = after(hops, |b| b.is_ascii_digit());
    let text = blanks(tail);
    let whole = rest.len() < name.len() && tail.len() < hops.len() && text.len() < tail.len();
    let text = text.strip_prefix(b":").filter(|_| whole)?;
    Some(ends_line(text))
}

/// AS-REQ or TGS-REQ: application tag, sequence, `pvno` 5, `msg-type`.
pub(super) fn krb_request(d: &[u8]) -> bool {
    matches!(d.first(), Some(0x6a | 0x6c)) && krb_fields(d, b"\xa1\x03\x02\x01\x05\xa2\x03\x02\x01")
}

/// AS-REP, TGS-REP or KRB-ERROR.
pub(super) fn krb_reply(d: &[u8]) -> bool {
    matches!(d.first(), Some(0x6b | 0x6d | 0x7e))
        && krb_fields(d, b"\xa0\x03\x02\x01\x05\xa1\x03\x02\x01")
}

/// The sequence tag and then the fields, each after a length of one to four bytes.
fn krb_fields(d: &[u8], fields: &[u8]) -> bool {
    (2..=5).any(|n| {
        d.get(n) == Some(&0x30)
            && (n + 2..=n + 5).any(|m| d.get(m..).is_some_and(|r| r.starts_with(fields)))
    })
}

/// A login.
pub(super) fn ldap_client(d: &[u8]) -> bool {
    matches!(d, [0x30, _, 2, 1, _, 0x60, ..])
}

/// The beginning of any message.
pub(super) fn ldap(d: &[u8]) -> bool {
    d.first() == Some(&0x30)
}

/// A name that begins with `MQ`, behind a fixed header of two to five bytes and a length.
pub(super) fn mqtt(d: &[u8]) -> bool {
    // Nearly always there is no such letter.
    let may = |d: &[u8; 4]| d.contains(&b'M');
    d.get(4..).and_then(<[u8]>::first_chunk).is_none_or(may)
        && (4..=7).any(|n| d.get(n..n + 2) == Some(b"MQ"))
}

pub(super) fn pop3_client(d: &[u8]) -> bool {
    line_starts(d).any(|l| {
        let l = after(l, is_space);
        [b"CAPA", b"AUTH", b"STLS"].iter().any(|w| has_word(l, &w[..]))
            || ((has_word(l, b"USER") || has_word(l, b"APOP"))
                && l.get(4).is_some_and(|&b| is_space(b)))
    })
}

/// A wish for TLS, and an answer to it.
pub(super) fn postgresql_tls(s: Sides<'_>) -> bool {
    matches!(s.resp, [b'S' | b'N', ..]) && s.orig.starts_with(b"\0\0\0\x08\x04\xd2\x16\x2f")
}

/// A startup message that names a user soon, and a message shorter than 64 KB.
pub(super) fn postgresql(s: Sides<'_>) -> bool {
    let (Some([0, 3, 0]), [ty, 0, 0, _, _, ..]) = (s.orig.get(4..7), s.resp) else { return false };
    let names = &s.orig[7..s.orig.len().min(7 + 256 + 5)];
    ty.is_ascii_alphanumeric() && memmem::find(names, b"user\0").is_some()
}

/// The first bytes of a server's settings.
const MC_DN: &[u8] = b"McDn";
static MC_DN_FINDER: LazyLock<memmem::Finder<'static>> =
    LazyLock::new(|| memmem::Finder::new(MC_DN));

/// A cookie, or a client's settings and a channel.
pub(super) fn rdp_client(d: &[u8]) -> bool {
    memmem::find(d, b"Cookie: mstshash=").is_some()
        || memmem::find(d, b"Duca").is_some_and(|n| {
            let channels: [&[u8]; 4] = [b"rdpdr", b"rdpsnd", b"drdynvc", b"cliprdr"];
            channels.iter().any(|c| memmem::find(&d[n + 4..], c).is_some())
        })
}

/// A value on a line, or the length of one that has it.
pub(super) fn redis_server(d: &[u8]) -> bool {
    match d {
        [b'-' | b'+' | b'_' | b',', rest @ ..] => has_crlf(rest),
        [b':' | b'$' | b'*' | b'#' | b'(' | b'!' | b'=' | b'%' | b'`' | b'~' | b'>', rest @ ..] => {
            let digits = rest.strip_prefix(b"-").or(rest.strip_prefix(b"+")).unwrap_or(rest);
            let tail = after(digits, |b| b.is_ascii_digit());
            let end = tail.strip_prefix(b".").map_or(tail, |t| after(t, |b| b.is_ascii_digit()));
            tail.len() < digits.len() && end.starts_with(b"\r\n")
        }
        _ => false,
    }
}

/// Whether a line ends as lines do, be it the first or not.
pub(super) fn has_crlf(d: &[u8]) -> bool {
    memmem::find(d, b"\r\n").is_some()
}

pub(super) fn smb(d: &[u8]) -> bool {
    matches!(d, [_, _, _, _, 0xfe | 0xff, b'S', b'M', b'B', ..])
}

pub(super) fn smtp_server(d: &[u8]) -> bool {
    let d = after(d, is_space);
    d.starts_with(b"220") && d.get(3).is_some_and(|&b| is_space(b) || b == b'-')
}

pub(super) fn smtp_client(d: &[u8]) -> bool {
    line_starts(d).any(|l| {
        let l = after(l, is_space);
        has_word(l, b"HELO") || has_word(l, b"EHLO")
    })
}

/// Version 4, CONNECT or BIND, and a zero within 32 bytes.
pub(super) fn socks4_client(d: &[u8]) -> bool {
    matches!(d, [4, 1 | 2, rest @ ..] if rest[..rest.len().min(33)].contains(&0))
}

pub(super) fn socks4_server(d: &[u8]) -> bool {
    matches!(d, [0, 0x5a..=0x5d, ..])
}

/// Version 5 and a first method that is assigned.
pub(super) fn socks5_client(d: &[u8]) -> bool {
    matches!(d, [5, _, 0..=3 | 5..=9, ..])
}

pub(super) fn socks5_server(d: &[u8]) -> bool {
    matches!(d, [5, 0..=3 | 5..=9 | 0xff, ..])
}

pub(super) fn ssh(d: &[u8]) -> bool {
    has_word(d, b"SSH-") && matches!(d.get(4..6), Some(b"1." | b"2."))
}

/// A handshake record with a ClientHello of SSL 3 to TLS 1.2.
pub(super) fn tls_client(d: &[u8]) -> bool {
    matches!(d, [0x16, 3, 0..=3, _, _, 1, _, _, _, 3, 0..=3, ..])
}

/// A handshake record with a ServerHello, perhaps behind an alert; TLS 1.3's drafts included.
pub(super) fn tls_server(d: &[u8]) -> bool {
    let d = match d {
        [0x15, 3, 0..=3, _, _, _, _, rest @ ..] => rest,
        _ => d,
    };
    matches!(
        d,
        [0x16, 3, 0..=3, _, _, 2, _, _, _, 3, 0..=4, ..]
            | [0x16, 3, 0..=3, _, _, 2, _, _, _, 0x7f, 0..=0x50, ..]
    )
}

/// A stream element in a `jabber:` namespace, perhaps behind an XML declaration.
pub(super) fn xmpp(d: &[u8]) -> bool {
    if d.first().is_none_or(|b| !matches!(b, b'<' | b'\n' | b'\r' | b' ')) {
        return false;
    }
    let d = match d.strip_prefix(b"<?xml") {
        Some(rest) => match after(rest, |b| !matches!(b, b'?' | b'>')).strip_prefix(b"?>") {
            Some(rest) => rest,
            None => return false,
        },
        None => d,
    };
    let d = after(d, |b| matches!(b, b'\n' | b'\r' | b' '));
    let Some(attributes) = d.strip_prefix(b"<stream:stream ") else { return false };
    let end = memchr::memchr(b'>', attributes).unwrap_or(attributes.len());
    // The namespace itself holds no '>'.
    memmem::find(&attributes[..end], b"xmlns='jabber:").is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tag;
    use crate::detect::rules::RULES;
    use proptest::prelude::*;

    fn found(orig: &[u8], resp: &[u8]) -> Vec<Tag> {
        let mut seen = Seen::default();
        seen.look(Dir::Orig, orig, 0);
        seen.look(Dir::Resp, resp, 0);
        let s = Sides { orig, resp, seen };
        let mut tags: Vec<_> = RULES.iter().filter(|r| (r.test)(s)).map(|r| r.tag).collect();
        tags.dedup();
        tags
    }

    #[test]
    fn one_side_is_enough() {
        assert_eq!(found(b"GET / HTTP/1.1\r\n", b""), [Tag::Http]);
        assert_eq!(found(b"\r\n RPC_IN_DATA", b""), [Tag::Http]);
        assert_eq!(found(b"get / HTTP/1.1\r\n", b""), []);
        assert_eq!(found(b"", b"http/1.0 200"), [Tag::Http]);
        assert_eq!(found(b"HTTP/1.0 200", b"GET /"), [], "sides matter");
        assert_eq!(found(b"\x16\x03\x01\x00\x40\x01\x00\x00\x3c\x03\x03", b""), [Tag::Ssl]);
        assert_eq!(
            found(b"", b"\x15\x03\x01\x00\x02\x01\x70\x16\x03\x01\x00\x40\x02\x00\x00\x3c\x03\x01"),
            [Tag::Ssl]
        );
        assert_eq!(found(b"", b"\x16\x03\x01\x00\x40\x02\x00\x00\x3c\x7f\x12"), [Tag::Ssl]);
        assert_eq!(found(b"\x00\x00\x00\x54\xffSMBr", b""), [Tag::Smb]);
        assert_eq!(found(b"\x05\x00\x0b\x03", b""), [Tag::DceRpc]);
        assert_eq!(found(b"\x05\x64", b""), []);
        assert_eq!(found(b"", b"\x05\x64\x0a"), [Tag::Dnp3Tcp]);
        assert_eq!(found(b"\x10\x20\x00\x04MQTT", b""), [Tag::Mqtt]);
        assert_eq!(
            found(b"<?xml version='1.0'?>\n<stream:stream to='x' xmlns='jabber:client'", b""),
            [Tag::Xmpp]
        );
        assert_eq!(found(b"<stream:stream to='x'> xmlns='jabber:client'", b""), []);
        let krb = b"\0\0\0\x90\x6a\x81\x8d\x30\x81\x8a\xa1\x03\x02\x01\x05\xa2\x03\x02\x01\x0a";
        assert_eq!(found(krb, b""), [Tag::KrbTcp]);
        let krb = b"\0\0\0\x90\x7e\x5a\x30\x58\xa0\x03\x02\x01\x05\xa1\x03\x02\x01\x1e";
        assert_eq!(found(b"", krb), [Tag::KrbTcp]);
    }

    #[test]
    fn both_sides_are_needed() {
        assert_eq!(found(b"SSH-2.0-a", b""), []);
        assert_eq!(found(b"SSH-2.0-a", b"ssh-1.99-b"), [Tag::Ssh]);
        assert_eq!(found(b"RFB 003.008\n", b"RFB 003.008\n"), [Tag::Rfb]);
        assert_eq!(found(b"EHLO me\r\n", b"220 mail ESMTP\r\n"), [Tag::Smtp]);
        assert_eq!(found(b"x\r\n\t helo me\r\n", b" \r\n220-mail\r\n"), [Tag::Smtp]);
        assert_eq!(found(b"EHLO me\r\n", b"220"), []);
        // A POP3 greeting looks like a Redis reply; Redis's analyzer rejects it because there was
        // no command.
        assert_eq!(found(b"CAPA\r\n", b"+OK ready\r\n"), [Tag::Pop3, Tag::Redis]);
        assert_eq!(found(b"USER\r\n", b"+OK ready\r\n"), [Tag::Pop3, Tag::Redis]);
        assert_eq!(found(b"USERS", b"+OK ready\r\n"), []);
        assert_eq!(found(b"USER a\r\n", b"220 ftp\r\n331 password\r\n"), [Tag::Ftp]);
        assert_eq!(found(b"USER a\r\n", b"220 ftp\r\n3310 password\r\n"), []);
        assert_eq!(found(b"\x05\x01\x00", b"\x05\xff"), [Tag::DceRpc, Tag::Socks]);
        assert_eq!(found(b"\x04\x01\x00\x50\x01\x02\x03\x04\x00", b"\x00\x5a"), [Tag::Socks]);
        assert_eq!(found(b"\x00\x5a", b"\x04\x01\x00\x50\x01\x02\x03\x04\x00"), [Tag::Socks]);
        let login = b"\x30\x0c\x02\x01\x01\x60\x07";
        assert_eq!(found(login, b"\x30\x0c"), [Tag::LdapTcp]);
        assert_eq!(found(b"\x30\x0c", login), [Tag::LdapTcp]);
        let tenth = b"\x30\x0a\x02\x01\x0a\x60\x05";
        assert_eq!(found(tenth, b"\x30\x0c"), [Tag::LdapTcp]);
        assert_eq!(found(login, b""), []);
        assert_eq!(found(b"PING\r\n", b"+PONG\r\n"), [Tag::Redis]);
        assert_eq!(found(b"*1\r\n", b"$-1\r\n"), [Tag::Redis]);
        assert_eq!(found(b"*1\n\r\n", b"+a\nb\r\n"), [Tag::Redis]);
        assert_eq!(found(b"*1\r\n", b"%1\n"), []);
        assert_eq!(found(b"", b"+PONG\r\n"), []);
        let startup = b"\0\0\0\x12\0\x03\0\0user\0bob\0\0";
        assert_eq!(found(startup, b"R\0\0\0\x08"), [Tag::Postgresql]);
        assert_eq!(found(startup, b"R\0\0\0"), []);
        assert_eq!(found(b"\0\0\0\x08\x04\xd2\x16\x2f", b"S"), [Tag::Postgresql]);
        assert_eq!(found(b"\0\0\0\x08\x04\xd2\x16\x2f", b"E"), []);
        let connect = b"\x03\x00\x00\x2b\x26\xe0\x00\x00\x00\x00\x00Cookie: mstshash=u\r\n";
        assert_eq!(found(connect, b"\x03\x00\x00\x0b\x06\xd0"), [Tag::Rdp]);
        assert_eq!(found(b"Duca rdpsnd", b"xMcDn"), [Tag::Rdp]);
    }

    #[test]
    fn irc_by_commands_and_replies() {
        let server = b":irc.example 001 me :Welcome\r\n";
        assert_eq!(found(b"NICK me\r\nUSER me 0 * :Me\r\n", server), [Tag::Irc]);
        assert_eq!(found(b"USER me 0 * :Me\r\nnick me\r\n", b"001 me"), [Tag::Irc]);
        assert_eq!(found(b"NICK me\r\nUSER me 0 * :Me", server), [], "line is not complete");
        assert_eq!(found(b"NICK me\r\nUSER me 0 * :Me\r\n", b":irc.example NOTICE"), []);
        let peer = b"PASS x\r\nSERVER irc.example 1 :text\r\n";
        assert_eq!(found(peer, peer), [Tag::Irc]);
        assert_eq!(found(peer, b"SERVER irc.example one :text\r\n"), []);
    }

    proptest! {
        /// Data in pieces gives the same result.
        #[test]
        fn pieces_are_as_their_whole(
            text in "( |NICK |USER |SERVER |McDn|M|c|Dn|x|\r|\n){0,12}",
            cuts in prop::collection::vec(0_usize..40, 0..4),
        ) {
            let (mut whole, mut pieces, mut before) = <(Seen, Seen, usize)>::default();
            whole.look(Dir::Orig, text.as_bytes(), 0);
            let mut ends: Vec<_> = cuts.iter().map(|n| *n.min(&text.len())).collect();
            ends.extend([0, text.len()]);
            ends.sort_unstable();
            for end in ends {
                pieces.look(Dir::Orig, &text.as_bytes()[..end], before);
                before = end;
            }
            prop_assert_eq!(pieces, whole);
        }
    }
}
