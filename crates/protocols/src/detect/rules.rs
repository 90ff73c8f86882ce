//! The rules for TCP, and which of them the first bytes leave.
//!
//! The first byte, or the byte behind a length of four, excludes most rules. A table gives the
//! rules that remain, and only these are checked.

use std::sync::LazyLock;

use super::tcp;
use super::tcp::Sides;
use super::text::is_space;
use crate::Tag;

/// One way in which a connection may begin.
pub(super) struct Rule {
    /// The protocol that it means.
    pub(super) tag: Tag,
    lead: Lead,
    /// Whether the data so far matches.
    pub(super) test: fn(Sides<'_>) -> bool,
}

type Class = fn(u8) -> bool;

/// A precondition of a rule.
#[derive(Clone, Copy)]
enum Lead {
    /// It is worth trying always.
    Any,
    /// A user's and a nick's name.
    LogIn,
    /// A server's name.
    Server,
    /// The first byte of the originator, and that of the responder.
    Sides(Class, Class),
    /// The first byte of the originator.
    Orig(Class),
    /// The first byte of the responder.
    Resp(Class),
    /// The first byte of one side or the other.
    Either(Class),
    /// The fifth byte of one side or the other.
    EitherFifth(Class),
}

use Lead::Any;
use Lead::Either;
use Lead::EitherFifth;
use Lead::LogIn;
use Lead::Orig;
use Lead::Resp;

/// The beginnings in the order in which they are tried, with the protocol each one means.
/// Beginnings of one protocol count once each.
pub(super) const RULES: &[Rule] = &[
    rule(Tag::DceRpc, Either(|b| b == 5), |s| tcp::dce_rpc(s.orig) || tcp::dce_rpc(s.resp)),
    rule(Tag::Dnp3Tcp, Resp(|b| b == 5), |s| s.resp.starts_with(b"\x05\x64")),
    rule(Tag::Ftp, Resp(|b| is_space(b) || matches!(b, b'1' | b'2')), tcp::ftp),
    rule(Tag::Http, Orig(|b| is_space(b) || b.is_ascii_uppercase()), |s| tcp::http_client(s.orig)),
    rule(Tag::Http, Resp(|b| b.eq_ignore_ascii_case(&b'H')), |s| tcp::http_server(s.resp)),
    rule(Tag::Irc, LogIn, |s| tcp::irc_login(s, b"USER", b"NICK")),
    rule(Tag::Irc, LogIn, |s| tcp::irc_login(s, b"NICK", b"USER")),
    rule(Tag::Irc, Lead::Server, tcp::irc_servers),
    rule(Tag::KrbTcp, EitherFifth(|b| matches!(b, 0x6a | 0x6c)), |s| {
        tcp::krb_request(skip4(s.orig)) || tcp::krb_request(skip4(s.resp))
    }),
    rule(Tag::KrbTcp, EitherFifth(|b| matches!(b, 0x6b | 0x6d | 0x7e)), |s| {
        tcp::krb_reply(skip4(s.orig)) || tcp::krb_reply(skip4(s.resp))
    }),
    rule(Tag::LdapTcp, Lead::Sides(is_sequence, is_sequence), |s| {
        tcp::ldap_client(s.orig) && tcp::ldap(s.resp)
    }),
    rule(Tag::LdapTcp, Lead::Sides(is_sequence, is_sequence), |s| {
        tcp::ldap_client(s.resp) && tcp::ldap(s.orig)
    }),
    rule(Tag::Mqtt, Any, |s| tcp::mqtt(s.orig) || tcp::mqtt(s.resp)),
    rule(Tag::Pop3, Resp(|b| b == b'+'), |s| {
        s.resp.starts_with(b"+OK") && tcp::pop3_client(s.orig)
    }),
    rule(Tag::Postgresql, Lead::Sides(some, |b| b.is_ascii_alphanumeric()), |s| {
        tcp::postgresql_tls(s) || tcp::postgresql(s)
    }),
    rule(Tag::Rdp, Lead::Sides(some, some), |s| s.seen.rdp(s.resp, 1) && tcp::rdp_client(s.orig)),
    rule(Tag::Rdp, Lead::Sides(some, some), |s| s.seen.rdp(s.orig, 0) && tcp::rdp_client(s.resp)),
    rule(Tag::Redis, Lead::Sides(some, |b| b.is_ascii_punctuation()), |s| {
        tcp::redis_server(s.resp) && tcp::has_crlf(s.orig)
    }),
    rule(Tag::Rfb, Lead::Sides(|b| b == b'R', |b| b == b'R'), |s| {
        s.orig.starts_with(b"RFB") && s.resp.starts_with(b"RFB")
    }),
    rule(Tag::Smb, EitherFifth(|b| matches!(b, 0xfe | 0xff)), |s| {
        tcp::smb(s.orig) || tcp::smb(s.resp)
    }),
    rule(Tag::Smtp, Lead::Sides(some, |b| is_space(b) || b == b'2'), |s| {
        tcp::smtp_server(s.resp) && tcp::smtp_client(s.orig)
    }),
    rule(Tag::Socks, Lead::Sides(|b| b == 4, |b| b == 0), |s| {
        tcp::socks4_client(s.orig) && tcp::socks4_server(s.resp)
    }),
    rule(Tag::Socks, Lead::Sides(|b| b == 0, |b| b == 4), |s| {
        tcp::socks4_client(s.resp) && tcp::socks4_server(s.orig)
    }),
    rule(Tag::Socks, Lead::Sides(|b| b == 5, |b| b == 5), |s| {
        tcp::socks5_client(s.orig) && tcp::socks5_server(s.resp)
    }),
    rule(Tag::Ssh, Lead::Sides(is_s, is_s), |s| tcp::ssh(s.orig) && tcp::ssh(s.resp)),
    rule(Tag::Ssl, Orig(|b| b == 0x16), |s| tcp::tls_client(s.orig)),
    rule(Tag::Ssl, Resp(|b| matches!(b, 0x15 | 0x16)), |s| tcp::tls_server(s.resp)),
    rule(Tag::Xmpp, Either(|b| b == b'<' || is_space(b)), |s| {
        tcp::xmpp(s.orig) || tcp::xmpp(s.resp)
    }),
];

const fn rule(tag: Tag, lead: Lead, test: fn(Sides<'_>) -> bool) -> Rule {
    Rule { tag, lead, test }
}

fn some(_: u8) -> bool {
    true
}

fn is_sequence(b: u8) -> bool {
    b == 0x30
}

fn is_s(b: u8) -> bool {
    b.eq_ignore_ascii_case(&b'S')
}

fn skip4(d: &[u8]) -> &[u8] {
    d.get(4..).unwrap_or_default()
}

/// In place of a byte that is not there.
const NONE: usize = 256;

/// Rules, a bit each, by a byte.
type ByByte = [u32; NONE + 1];

/// What bytes leave.
struct Leads {
    /// Rules that remain by the first byte of the originator, and of the responder.
    sides: [ByByte; 2],
    /// Rules that need names, of clients that log in or of a server.
    wants_log_in: u32,
    wants_server: u32,
    /// Rules that want something of one side or the other.
    wants_first: u32,
    first: ByByte,
    wants_fifth: u32,
    fifth: ByByte,
}

static LEADS: LazyLock<Leads> = LazyLock::new(|| {
    let mut leads = Leads {
        sides: [[0; NONE + 1]; 2],
        wants_log_in: 0,
        wants_server: 0,
        wants_first: 0,
        first: [0; NONE + 1],
        wants_fifth: 0,
        fifth: [0; NONE + 1],
    };
    for (i, rule) in RULES.iter().enumerate() {
        let bit = 1 << i;
        let put = |table: &mut ByByte, class: Class| {
            for (byte, rules) in (0..=u8::MAX).zip(table.iter_mut()) {
                *rules |= if class(byte) { bit } else { 0 };
            }
        };
        let whatever = |side: &mut ByByte| side.iter_mut().for_each(|rules| *rules |= bit);
        match rule.lead {
            Any => leads.sides.iter_mut().for_each(whatever),
            LogIn => {
                leads.sides.iter_mut().for_each(whatever);
                leads.wants_log_in |= bit;
            }
            Lead::Server => {
                leads.sides.iter_mut().for_each(whatever);
                leads.wants_server |= bit;
            }
            Lead::Sides(orig, resp) => {
                put(&mut leads.sides[0], orig);
                put(&mut leads.sides[1], resp);
            }
            Orig(class) => {
                put(&mut leads.sides[0], class);
                whatever(&mut leads.sides[1]);
            }
            Resp(class) => {
                whatever(&mut leads.sides[0]);
                put(&mut leads.sides[1], class);
            }
            Either(class) => {
                leads.sides.iter_mut().for_each(whatever);
                leads.wants_first |= bit;
                put(&mut leads.first, class);
            }
            EitherFifth(class) => {
                leads.sides.iter_mut().for_each(whatever);
                leads.wants_fifth |= bit;
                put(&mut leads.fifth, class);
            }
        }
    }
    leads
});

/// The rules, a bit each by their place in [`RULES`], that may be met; the others are not.
#[inline]
pub(super) fn left(sides: Sides<'_>) -> u32 {
    let leads = &*LEADS;
    let byte = |d: &[u8], at| d.get(at).map_or(NONE, |b| usize::from(*b));
    let (orig, resp) = (byte(sides.orig, 0), byte(sides.resp, 0));
    let (orig5, resp5) = (byte(sides.orig, 4), byte(sides.resp, 4));
    leads.sides[0][orig]
        & leads.sides[1][resp]
        & !(if sides.seen.log_in() { 0 } else { leads.wants_log_in })
        & !(if sides.seen.server() { 0 } else { leads.wants_server })
        & (!leads.wants_first | leads.first[orig] | leads.first[resp])
        & (!leads.wants_fifth | leads.fifth[orig5] | leads.fifth[resp5])
}

#[cfg(test)]
mod tests {
    use super::*;
    use gannet_base::Dir;
    use proptest::prelude::*;

    /// What protocols begin with, or nearly.
    const PIECES: &[&[u8]] = &[
        b"",
        b" ",
        b"\r\n",
        b"GET / HTTP/1.1\r\n",
        b"http/1.1 200",
        b"220 x\r\n",
        b"331 x\r\n",
        b"USER x\r\n",
        b"NICK x\r\n",
        b"001 x\r\n",
        b"SERVER a 1 :x\r\n",
        b"+OK\r\n",
        b"CAPA\r\n",
        b"EHLO x\r\n",
        b"SSH-2.0",
        b"ssh-1.9",
        b"RFB",
        b"\x05\x64",
        b"\x05\0\x0b",
        b"\x05\x01\0",
        b"\x04\x01\0\x50\x01\x02\x03\x04\0",
        b"\0\x5a",
        b"\x30\x0c\x02\x01\x01\x60\x07",
        b"\x30\x0c",
        b"\x10\x0e\0\x04MQTT",
        b"\0\0\0\x08\x04\xd2\x16\x2f",
        b"S",
        b"\0\0\0\x12\0\x03\0\0user\0bob\0\0",
        b"R\0\0\0\x08",
        b"\0\0\0\x40\xffSMB",
        b"\0\0\0\x40\xfeSMB",
        b"\0\0\0\x40\x6a\x3e\x30\x3c\xa1\x03\x02\x01\x05\xa2\x03\x02\x01",
        b"*1\r\n",
        b"$-1\r\n",
        b"PING\r\n",
        b"\0\0\0\x40\x6b\x3e\x30\x3c\xa0\x03\x02\x01\x05\xa1\x03\x02\x01",
        b"Cookie: mstshash=",
        b"McDn",
        b"\x03\0\0\x0b\x06\xd0",
        b"Duca rdpsnd",
        b"\x16\x03\x01\0\xff\x01\0\0\xfb\x03\x03",
        b"<stream:stream xmlns='jabber:",
        b"\x15\x03\x01\0\x02\x02\x28\x16\x03\x01\0\xff\x02\0\0\xfb\x03\x03",
        b"<?xml?>",
        b"\x05\x02\x09",
    ];

    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            8 => prop::sample::select(PIECES).prop_map(<[u8]>::to_vec),
            1 => prop::collection::vec(any::<u8>(), 0..6),
        ];
        prop::collection::vec(piece, 0..4).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        #[test]
        fn no_rule_is_met_that_is_not_left(orig in bytes(), resp in bytes()) {
            let mut seen = tcp::Seen::default();
            seen.look(Dir::Orig, &orig, 0);
            seen.look(Dir::Resp, &resp, 0);
            let sides = Sides { orig: &orig, resp: &resp, seen };
            let left = left(sides);
            for (i, rule) in RULES.iter().enumerate() {
                prop_assert!(left >> i & 1 != 0 || !(rule.test)(sides), "{}, {}", i, rule.tag.name());
            }
        }
    }
}
