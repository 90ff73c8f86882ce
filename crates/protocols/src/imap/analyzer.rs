use gannet_base::Dir;

use super::events::ImapCapabilities;
use super::events::ImapStarttls;
use super::lines::Line;
use super::lines::lines;
use crate::Context;
use crate::Tag;
use crate::support::ItemEffect;
use crate::support::PreTls;
use crate::support::PreTlsAnalyzer;

/// The analyzer of one connection.
pub type Analyzer = PreTlsAnalyzer<Session>;

/// State of the session before TLS or login.
#[derive(Debug, Default)]
pub struct Session {
    /// Tag of the client's STARTTLS command; empty before it.
    starttls: Vec<u8>,
}

impl PreTls for Session {
    const TAG: Tag = Tag::Imap;

    type Item<'a> = Line<'a>;

    fn items(from: Dir, chunk: &[u8]) -> impl Iterator<Item = Result<Line<'_>, ()>> {
        lines(chunk, from.is_orig())
    }

    fn item(&mut self, cx: &mut Context<'_>, from: Dir, line: Line<'_>) -> ItemEffect {
        let ok = line.command.eq_ignore_ascii_case(b"ok");
        let starttls = line.command.eq_ignore_ascii_case(b"starttls");
        let is_imap = match from {
            Dir::Resp => line.tag == b"*" && ok,
            // As in Zeek, in lower case only.
            Dir::Orig => starttls || line.command == b"capability",
        };
        if is_imap {
            cx.confirm(Tag::Imap);
        }
        if matches!(
            line.command,
            b"authenticate" | b"login" | b"examine" | b"create" | b"list" | b"fetch"
        ) {
            cx.confirm(Tag::Imap);
            return ItemEffect::TooLate;
        }
        if let Some(list) = line.capabilities {
            let words = list.split(|b| !b.is_ascii_graphic()).filter(|word| !word.is_empty());
            cx.raise(|c| ImapCapabilities { c, capabilities: words.collect() });
        }
        match from {
            Dir::Orig if starttls => {
                if !self.starttls.is_empty() {
                    cx.weird("IMAP: client sent duplicate StartTLS", "", Some("IMAP"));
                }
                self.starttls = line.tag.to_vec();
            }
            Dir::Resp if !self.starttls.is_empty() && line.tag == self.starttls => {
                if ok {
                    cx.raise(|c| ImapStarttls { c });
                    return ItemEffect::Tls;
                }
                cx.weird("IMAP: server refused StartTLS", "", Some("IMAP"));
            }
            _ => {}
        }
        ItemEffect::More
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Analyze;
    use crate::testing::Harness;
    use gannet_base::Proto;

    #[test]
    fn until_tls() {
        let mut h = Harness::new(Proto::Tcp, 143);
        let mut a = Analyzer::new(&mut h.cx());
        a.stream(&mut h.cx(), Dir::Resp, b"* OK ready\r\n");
        assert!(h.confirmed(Tag::Imap));
        a.stream(&mut h.cx(), Dir::Orig, b"a1 STARTTLS\r\n");
        a.stream(&mut h.cx(), Dir::Resp, b"a1 OK begin\r\n");
        assert_eq!(h.starts[0].0, Tag::Ssl);
        a.stream(&mut h.cx(), Dir::Orig, b"\x16\x03\x01");
        assert!(!h.violated(Tag::Imap));
    }

    #[test]
    fn refusals_and_nonsense() {
        let mut h = Harness::new(Proto::Tcp, 143);
        let mut a = Analyzer::new(&mut h.cx());
        a.stream(&mut h.cx(), Dir::Orig, b"a1 STARTTLS\r\na2 StartTLS\r\n");
        a.stream(&mut h.cx(), Dir::Resp, b"a2 NO\r\n");
        assert_eq!(h.rows("weird").len(), 2);
        a.stream(&mut h.cx(), Dir::Resp, b"\x00\x01");
        assert!(h.violated(Tag::Imap));
    }
}
