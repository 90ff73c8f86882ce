use gannet_base::Dir;

use super::message;
use super::message::Part;
use super::message::TPKT_LENGTH;
use super::rows::Session;
use crate::Analyze;
use crate::Context;
use crate::Replay;
use crate::Tag;
use crate::support::Frames;

/// Longest message: its length has 16 bits.
const MAX_MESSAGE: usize = 1 << 16;

/// Who encrypts what comes after the settings.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Encryption {
    None,
    /// The protocol itself: nothing can be read.
    Own,
    /// TLS, not begun yet.
    Tls,
    /// TLS, at work.
    Started,
}

/// The analyzer of a connection.
pub struct Analyzer {
    session: Session,
    frames: [Frames; 2],
    encryption: Encryption,
    gap: bool,
}

impl Analyzer {
    /// For a new connection.
    pub fn new(_cx: &mut Context<'_>) -> Self {
        Self {
            session: Session::default(),
            frames: [Frames::new(MAX_MESSAGE), Frames::new(MAX_MESSAGE)],
            encryption: Encryption::None,
            gap: false,
        }
    }

    fn parts(&mut self, cx: &mut Context<'_>, from: Dir, mut data: &[u8]) -> Option<()> {
        while let Some(frame) = self.frames[from.index()].next(&mut data, need) {
            let (session, encryption) = (&mut self.session, &mut self.encryption);
            message::parse(frame, |part| {
                match part {
                    Part::ClientCore(_) | Part::Created(_) | Part::Security(..) => {
                        cx.confirm(Tag::Rdp);
                    }
                    Part::Encrypted(0) => *encryption = Encryption::Own,
                    Part::Encrypted(_) => *encryption = Encryption::Tls,
                    Part::X509(der) => {
                        crate::ssl::certificate_seen(cx, der, true, false);
                    }
                    _ => {}
                }
                session.part(cx, part);
            })?;
        }
        Some(())
    }
}

/// Bytes of the message that begins so.
fn need(data: &[u8]) -> usize {
    match *data {
        [_, _, a, b, ..] => usize::from(u16::from_be_bytes([a, b])).max(TPKT_LENGTH),
        _ => TPKT_LENGTH,
    }
}

impl Analyze for Analyzer {
    fn stream(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) {
        if cx.conn.partial || self.gap {
            return;
        }
        self.session.look(cx);
        match self.encryption {
            Encryption::Own | Encryption::Started => {}
            Encryption::Tls => {
                self.encryption = Encryption::Started;
                cx.start(Tag::Ssl, Replay { chunks: vec![(from, data.to_vec())] });
            }
            Encryption::None => {
                if self.parts(cx, from, data).is_none() {
                    cx.violation(Tag::Rdp, "Binpac exception: binpac exception", &[]);
                    self.frames.iter_mut().for_each(Frames::reset);
                    self.session.finish(cx);
                }
            }
        }
    }

    fn gap(&mut self, _cx: &mut Context<'_>, _from: Dir, _len: u64) {
        self.gap = true;
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        self.session.finish(cx);
    }
}

#[cfg(test)]
mod tests {
    use super::super::message::tests::client_settings;
    use super::super::message::tests::connect_confirm;
    use super::super::message::tests::connect_request;
    use super::super::message::tests::server_settings;
    use super::*;
    use crate::testing::Harness;
    use gannet_base::Interval;
    use gannet_base::Proto;

    #[test]
    fn encrypted_by_itself() {
        let mut h = Harness::new(Proto::Tcp, 3389);
        let mut a = Analyzer::new(&mut h.cx());
        a.stream(&mut h.cx(), Dir::Orig, &connect_request());
        a.stream(&mut h.cx(), Dir::Resp, &connect_confirm(0));
        for b in client_settings() {
            a.stream(&mut h.cx(), Dir::Orig, &[b]);
        }
        assert!(h.confirmed(Tag::Rdp));
        a.stream(&mut h.cx(), Dir::Resp, &server_settings());
        a.stream(&mut h.cx(), Dir::Resp, b"anything");
        assert!(h.rows("rdp").is_empty());
        h.now += Interval::from_secs(11);
        a.stream(&mut h.cx(), Dir::Resp, b"anything");
        a.finish(&mut h.cx());
        assert!(!h.violated(Tag::Rdp));
        let rows = h.rows("rdp");
        assert_eq!(rows.len(), 1);
        let r = &rows[0];
        assert_eq!((&*r["cookie"], &*r["result"]), ("user", "Success"));
        assert_eq!((&*r["client_name"], &*r["client_channels"]), ("me", "rdpdr"));
        assert_eq!((&*r["client_build"], &*r["desktop_width"]), ("RDP 5.1", "1024"));
        assert_eq!((&*r["cert_type"], &*r["cert_count"]), ("RSA", "1"));
        assert_eq!(r["security_protocol"], "RDP");
    }

    #[test]
    fn encrypted_by_tls() {
        let mut h = Harness::new(Proto::Tcp, 3389);
        let mut a = Analyzer::new(&mut h.cx());
        a.stream(&mut h.cx(), Dir::Orig, &connect_request());
        a.stream(&mut h.cx(), Dir::Resp, &connect_confirm(2));
        assert!(h.starts.is_empty());
        a.stream(&mut h.cx(), Dir::Orig, b"\x16\x03\x01");
        a.stream(&mut h.cx(), Dir::Orig, b"\0\x05");
        assert_eq!(h.starts.len(), 1);
        assert_eq!(h.starts[0].0, Tag::Ssl);
        a.finish(&mut h.cx());
        let rows = h.rows("rdp");
        assert_eq!((&*rows[0]["result"], &*rows[0]["security_protocol"]), ("encrypted", "HYBRID"));
    }

    #[test]
    fn other_bytes_are_a_violation() {
        let mut h = Harness::new(Proto::Tcp, 3389);
        let mut a = Analyzer::new(&mut h.cx());
        a.stream(&mut h.cx(), Dir::Orig, b"\x03\x00\x00\x05\x00");
        assert!(h.violated(Tag::Rdp));
        a.finish(&mut h.cx());
        assert!(h.rows("rdp").is_empty());
    }
}
