//! The data of both sides of a TCP connection, as rules examine it.

use std::sync::LazyLock;

use gannet_base::Dir;
use memchr::memmem;

use super::text::after;
use super::text::after_word;
use super::text::line_starts;

/// The data that both sides have sent so far.
#[derive(Clone, Copy)]
pub(crate) struct Sides<'a> {
    pub(crate) orig: &'a [u8],
    pub(crate) resp: &'a [u8],
    /// Results of searches in the data.
    pub(crate) seen: Seen,
}

/// Cached results of searches, which rules would otherwise repeat over all data of a side for each chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Offset of the originator's last line, as two bytes so that the field needs no alignment.
    last_line: [u8; 2],
    /// Bit set of [`USER`], [`NICK`], [`SERVER`] and [`SETTINGS`].
    found: u8,
}

/// Commands of IRC at the beginning of the originator's lines.
const USER: u8 = 1;
const NICK: u8 = 2;
const SERVER: u8 = 4;
/// For each side: it has sent [`MC_DN`].
const SETTINGS: [u8; 2] = [8, 16];

impl Seen {
    /// Searches the data of a side, of which the first `before` bytes were searched before.
    #[inline]
    pub(super) fn update(&mut self, from: Dir, side: &[u8], before: usize) {
        let settings = SETTINGS[from.index()];
        if !self.has(settings) {
            let new = before.saturating_sub(MC_DN.len() - 1);
            let found = MC_DN_FINDER.find(side.get(new..).unwrap_or_default());
            self.found |= if found.is_some() { settings } else { 0 };
        }
        if from.is_orig() {
            self.find_commands(side);
        }
    }

    /// Searches the originator's lines for commands, starting with the last line of the previous call.
    fn find_commands(&mut self, d: &[u8]) {
        let from = usize::from(u16::from_ne_bytes(self.last_line));
        for line in line_starts(d.get(from..).unwrap_or_default()) {
            // An offset that does not fit in 16 bits is beyond the stored data, after which no call follows.
            let at = u16::try_from(d.len() - line.len()).unwrap_or_default();
            self.last_line = at.to_ne_bytes();
            let line = after(line, |b| b == b' ');
            let (word, command): (&[u8], _) = match line.first().map(u8::to_ascii_uppercase) {
                Some(b'U') => (b"USER", USER),
                Some(b'N') => (b"NICK", NICK),
                Some(b'S') => (b"SERVER", SERVER),
                _ => continue,
            };
            self.found |= if after_word(line, word).is_some() { command } else { 0 };
        }
    }

    /// Whether a side may be an RDP server; `index` is that of its direction.
    pub(crate) fn rdp(self, side: &[u8], index: usize) -> bool {
        side.get(5) == Some(&0xd0) || self.has(SETTINGS[index])
    }

    fn has(self, bits: u8) -> bool {
        self.found & bits == bits
    }

    pub(crate) fn user(self) -> bool {
        self.has(USER)
    }

    pub(super) fn log_in(self) -> bool {
        self.has(USER | NICK)
    }

    pub(super) fn server(self) -> bool {
        self.has(SERVER)
    }
}

/// The key `McDn` (server to client) of the GCC conference data, before the settings of an RDP server.
const MC_DN: &[u8] = b"McDn";
static MC_DN_FINDER: LazyLock<memmem::Finder<'static>> =
    LazyLock::new(|| memmem::Finder::new(MC_DN));

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tag;
    use crate::detect::rules::TCP;
    use proptest::prelude::*;

    fn found(orig: &[u8], resp: &[u8]) -> Vec<Tag> {
        let mut seen = Seen::default();
        seen.update(Dir::Orig, orig, 0);
        seen.update(Dir::Resp, resp, 0);
        let s = Sides { orig, resp, seen };
        let mut tags: Vec<_> =
            TCP.iter().filter(|(_, r)| (r.test)(s)).map(|(tag, _)| *tag).collect();
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
        /// The result does not depend on how the data is split into chunks.
        #[test]
        fn the_result_does_not_depend_on_chunks(
            text in "( |NICK |USER |SERVER |McDn|M|c|Dn|x|\r|\n){0,12}",
            cuts in prop::collection::vec(0_usize..40, 0..4),
        ) {
            let (mut whole, mut pieces, mut before) = <(Seen, Seen, usize)>::default();
            whole.update(Dir::Orig, text.as_bytes(), 0);
            let mut ends: Vec<_> = cuts.iter().map(|n| *n.min(&text.len())).collect();
            ends.extend([0, text.len()]);
            ends.sort_unstable();
            for end in ends {
                pieces.update(Dir::Orig, &text.as_bytes()[..end], before);
                before = end;
            }
            prop_assert_eq!(pieces, whole);
        }
    }
}
