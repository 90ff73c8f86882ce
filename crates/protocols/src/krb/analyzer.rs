use gannet_base::Dir;

use super::message::Message;
use super::rows::Session;
use crate::Analyze;
use crate::Context;
use crate::Tag;
use crate::support::Bytes;
use crate::support::Frames;

/// Bytes of a message over TCP that are looked at.
const MAX_MESSAGE: usize = 256 << 10;

/// The analyzer of one UDP connection, and of tokens that other protocols carry.
pub struct Udp {
    session: Session,
}

/// The analyzer of one TCP connection.
pub struct Tcp {
    session: Session,
    frames: [Frames; 2],
    gap: bool,
}

impl Udp {
    /// For a new connection.
    pub fn new(_cx: &mut Context<'_>) -> Self {
        Self { session: Session::default() }
    }
}

impl Tcp {
    /// For a new connection.
    pub fn new(_cx: &mut Context<'_>) -> Self {
        let frames = [Frames::new(MAX_MESSAGE), Frames::new(MAX_MESSAGE)];
        Self { session: Session::default(), frames, gap: false }
    }
}

/// A message; whether it could be read.
fn message(cx: &mut Context<'_>, session: &mut Session, tag: Tag, data: &[u8]) -> bool {
    match Message::parse(data) {
        Some(message) => {
            cx.confirm(tag);
            session.message(cx, &message);
            true
        }
        None => {
            cx.violation(tag, "Binpac exception: binpac exception: out_of_bound", data);
            false
        }
    }
}

impl Analyze for Udp {
    fn datagram(&mut self, cx: &mut Context<'_>, _from: Dir, data: &[u8], _len: u32) {
        message(cx, &mut self.session, Tag::Krb, data);
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        self.session.write(cx);
    }
}

impl Analyze for Tcp {
    fn stream(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) {
        if self.gap || cx.conn.partial {
            return;
        }
        let frames = &mut self.frames[from.index()];
        let mut rest = data;
        let need = |d: &[u8]| Bytes(d).u32().map_or(4, |n| (n as usize).saturating_add(4));
        while let Some(frame) = frames.next(&mut rest, need) {
            let body = frame.get(4..).unwrap_or_default();
            if !message(cx, &mut self.session, Tag::KrbTcp, body) {
                frames.reset();
                return;
            }
        }
    }

    fn gap(&mut self, _cx: &mut Context<'_>, _from: Dir, _len: u64) {
        self.gap = true;
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        self.session.write(cx);
    }
}

#[cfg(test)]
mod tests {
    use super::super::message::tests::as_reply;
    use super::super::message::tests::as_request;
    use super::super::message::tests::error_message;
    use super::*;
    use crate::testing::Harness;
    use gannet_base::Proto;

    #[test]
    fn errors_that_ask_for_more_do_not_count() {
        let mut h = Harness::new(Proto::Udp, 88);
        let mut a = Udp::new(&mut h.cx());
        for m in [
            as_request(),
            error_message(25, Some(b"NEEDED_PREAUTH")),
            as_request(),
            as_reply(),
            error_message(6, None),
        ] {
            a.datagram(&mut h.cx(), Dir::Orig, &m, m.len() as u32);
        }
        a.finish(&mut h.cx());
        assert!(h.confirmed(Tag::Krb));
        let rows = h.rows("kerberos");
        assert_eq!(rows.len(), 1);
        let r = &rows[0];
        assert_eq!((&*r["request_type"], &*r["client"]), ("AS", "me/REALM"));
        assert_eq!((&*r["success"], &*r["cipher"]), ("T", "aes256-cts-hmac-sha1-96"));
        assert_eq!((&*r["till"], &*r["renewable"]), ("2136422885.000000", "T"));
    }

    #[test]
    fn lengths_over_tcp() {
        let mut h = Harness::new(Proto::Tcp, 88);
        let mut a = Tcp::new(&mut h.cx());
        let m = error_message(60, None);
        let mut framed = (m.len() as u32).to_be_bytes().to_vec();
        framed.extend_from_slice(&m);
        a.stream(&mut h.cx(), Dir::Resp, &framed[..9]);
        assert!(h.requests.is_empty());
        a.stream(&mut h.cx(), Dir::Resp, &framed[9..]);
        assert!(h.confirmed(Tag::KrbTcp));
        assert_eq!(h.rows("kerberos")[0]["error_msg"], "KRB_ERR_GENERIC");
        a.stream(&mut h.cx(), Dir::Resp, b"\0\0\0\x02\0\0");
        assert!(h.violated(Tag::KrbTcp));
    }
}
