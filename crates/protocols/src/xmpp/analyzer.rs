use gannet_base::Dir;

use super::tags::tags;
use crate::Analyze;
use crate::Context;
use crate::Replay;
use crate::Tag;

/// The analyzer of one connection.
pub struct Analyzer {
    starttls: bool,
    /// Nothing more is to be learned.
    done: bool,
}

impl Analyzer {
    /// For a new connection.
    pub fn new(_cx: &mut Context<'_>) -> Self {
        Self { starttls: false, done: false }
    }

    fn tag(&mut self, cx: &mut Context<'_>, from: Dir, name: &[u8]) {
        if from.is_orig() && name == b"stream:stream" {
            cx.confirm(Tag::Xmpp);
        }
        if matches!(name, b"success" | b"message" | b"db:result" | b"db:verify" | b"presence") {
            // The handshake is past the point where TLS could begin.
            self.done = true;
        }
        // The name without its namespace.
        let local = match memchr::memchr(b':', name) {
            Some(n) if n + 1 < name.len() => &name[n + 1..],
            _ => name,
        };
        if from.is_orig() && local == b"starttls" {
            self.starttls = true;
        }
        if !from.is_orig() && local == b"proceed" && self.starttls {
            self.done = true;
            cx.start(Tag::Ssl, Replay::default());
        } else if !from.is_orig() && name == b"proceed" {
            cx.weird("XMPP: proceed without starttls", "", Some("XMPP"));
        }
    }
}

impl Analyze for Analyzer {
    fn stream(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) {
        if self.done || cx.conn.partial {
            return;
        }
        for name in tags(data) {
            match name {
                Ok(name) => self.tag(cx, from, name),
                Err(()) => {
                    let reason = "Binpac exception: binpac exception: string mismatch at -";
                    cx.violation(Tag::Xmpp, reason, &[]);
                }
            }
        }
    }

    fn gap(&mut self, _cx: &mut Context<'_>, _from: Dir, _len: u64) {
        self.done = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
