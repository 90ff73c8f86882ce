use gannet_base::Dir;

use super::events::XmppStarttls;
use super::tags::tags;
use crate::Context;
use crate::Tag;
use crate::support::ItemEffect;
use crate::support::PreTls;
use crate::support::PreTlsAnalyzer;

/// The analyzer of one connection.
pub type Analyzer = PreTlsAnalyzer<Session>;

/// State of the session.
#[derive(Debug, Default)]
pub struct Session {
    /// Whether the client requested TLS.
    starttls: bool,
}

impl PreTls for Session {
    const TAG: Tag = Tag::Xmpp;

    type Item<'a> = &'a [u8];

    fn items(_from: Dir, chunk: &[u8]) -> impl Iterator<Item = Result<&[u8], ()>> {
        tags(chunk)
    }

    fn item(&mut self, cx: &mut Context<'_>, from: Dir, name: &[u8]) -> ItemEffect {
        if from.is_orig() && name == b"stream:stream" {
            cx.confirm(Tag::Xmpp);
        }
        // The name without its namespace prefix.
        let local = match memchr::memchr(b':', name) {
            Some(n) if n + 1 < name.len() => &name[n + 1..],
            _ => name,
        };
        if from.is_orig() && local == b"starttls" {
            self.starttls = true;
        }
        if !from.is_orig() && local == b"proceed" && self.starttls {
            cx.raise(|c| XmppStarttls { c });
            return ItemEffect::Tls;
        }
        if !from.is_orig() && name == b"proceed" {
            cx.weird("XMPP: proceed without starttls", "", Some("XMPP"));
        }
        // After these tags, TLS can no longer begin.
        match name {
            b"success" | b"message" | b"db:result" | b"db:verify" | b"presence" => {
                ItemEffect::TooLate
            }
            _ => ItemEffect::More,
        }
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
        let mut h = Harness::new(Proto::Tcp, 5222);
        let mut a = Analyzer::new(&mut h.cx());
        a.stream(&mut h.cx(), Dir::Orig, b"<?xml version='1.0'?><stream:stream to='x'>");
        assert!(h.confirmed(Tag::Xmpp));
        a.stream(&mut h.cx(), Dir::Resp, b"<proceed/>");
        assert_eq!(h.rows("weird").len(), 1);
        a.stream(&mut h.cx(), Dir::Orig, b"<x:starttls/>");
        a.stream(&mut h.cx(), Dir::Resp, b"<proceed xmlns='urn:x'/>");
        assert_eq!(h.starts[0].0, Tag::Ssl);
        a.stream(&mut h.cx(), Dir::Orig, b"\x16\x03\x01");
        assert!(!h.violated(Tag::Xmpp));
    }
}
