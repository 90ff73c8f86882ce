use gannet_base::Dir;

use super::certificates;
use super::message;
use super::message::Message;
use super::message::ParsedFacts;
use super::raise;
use super::rows::Session;
use crate::Analyze;
use crate::Context;
use crate::Request;
use crate::Tag;
use crate::support::Frames;

/// Maximum length of a message over TCP, in bytes. (Tickets contain group memberships, and may have about 100 kB.)
const MAX_MESSAGE: usize = 10 << 20;

/// Parses a message and reports it to the row of its connection. Returns whether it is valid.
fn message(cx: &mut Context<'_>, session: &mut Session, tag: Tag, from: Dir, data: &[u8]) -> bool {
    let mut facts = ParsedFacts { collects: cx.env.logs.events.any(), ..ParsedFacts::default() };
    let parsed = message::parse(data, &mut facts);
    if let Some(n) = facts.long_number {
        cx.report_long_integer(n);
    }
    let is_logged = parsed.as_ref().is_ok_and(Message::is_logged);
    if is_logged {
        certificates::report(cx, session, facts.client_certificate, true);
        certificates::report(cx, session, facts.server_certificate, false);
    }
    if facts.ap_request.is_some() || parsed.is_ok() {
        cx.confirm(tag);
    }
    if is_logged {
        for _ in 0..facts.invalid_addresses {
            cx.weird("invalid_kerberos_addr_len", "", Some(tag.name()));
        }
    }
    for (ticket, options) in facts.ap_request.iter().chain(&facts.ap_requests) {
        raise::ap_request(cx, session, tag, (ticket, *options), true);
    }
    match &parsed {
        Ok(message) => raise::message(cx, session, (tag, from), message),
        Err(e) => cx.violation(tag, &e.to_string(), &[]),
    }
    parsed.is_ok()
}

/// Analyzes messages inside tokens of another protocol, whose connection has the row.
#[derive(Debug, Default)]
pub struct Inner {
    confirmed: bool,
}

impl Inner {
    /// Analyzes one message.
    pub fn deliver(&mut self, cx: &mut Context<'_>, session: &mut Session, from: Dir, data: &[u8]) {
        let before = cx.requests.len();
        message(cx, session, Tag::Krb, from, data);
        let confirms = |r: &Request| matches!(r, Request::Confirm(Tag::Krb));
        if let Some(at) = cx.requests[before..].iter().position(confirms) {
            if self.confirmed {
                // Only the first confirmation counts, so that later violations stay valid.
                cx.requests.remove(before + at);
            }
            self.confirmed = true;
        }
    }
}

/// The analyzer of a UDP connection.
pub struct Udp {
    inner: Inner,
    session: Session,
}

impl Udp {
    /// For a new connection.
    pub fn new(_cx: &mut Context<'_>) -> Self {
        Self { inner: Inner::default(), session: Session::default() }
    }
}

impl Analyze for Udp {
    fn datagram(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8], _len: u32) {
        self.inner.deliver(cx, &mut self.session, from, data);
    }

    fn suspend(&mut self, _cx: &mut Context<'_>) -> bool {
        self.inner = Inner::default();
        true
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        self.session.finish(cx);
    }
}

/// The analyzer of a TCP connection, on which each message has a length prefix of four bytes.
pub struct Tcp {
    session: Session,
    frames: [Frames; 2],
    /// A gap ended the analysis.
    gap: bool,
}

impl Tcp {
    /// For a new connection.
    pub fn new(_cx: &mut Context<'_>) -> Self {
        Self {
            session: Session::default(),
            frames: [Frames::new(MAX_MESSAGE), Frames::new(MAX_MESSAGE)],
            gap: false,
        }
    }
}

impl Analyze for Tcp {
    fn stream(&mut self, cx: &mut Context<'_>, from: Dir, mut data: &[u8]) {
        if self.gap || cx.conn.is_partial() {
            return;
        }
        let frames = &mut self.frames[from.index()];
        let need = |d: &[u8]| match d.first_chunk::<4>() {
            Some(n) => u32::from_be_bytes(*n) as usize + 4,
            None => 4,
        };
        while let Some(frame) = frames.next(&mut data, need) {
            if !message(cx, &mut self.session, Tag::KrbTcp, from, &frame[4..]) {
                frames.reset();
                return;
            }
        }
    }

    fn gap(&mut self, _cx: &mut Context<'_>, _from: Dir, _len: u64) {
        self.gap = true;
    }

    fn suspend(&mut self, _cx: &mut Context<'_>) -> bool {
        self.frames.iter_mut().for_each(Frames::reset);
        true
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        self.session.finish(cx);
    }
}

#[cfg(test)]
mod tests {
    use super::super::message::tests::as_rep;
    use super::super::message::tests::as_rep_with;
    use super::super::message::tests::as_req;
    use super::super::message::tests::as_req_from;
    use super::super::message::tests::as_req_with;
    use super::super::message::tests::krb_error;
    use super::super::message::tests::pkinit_data;
    use super::*;
    use crate::testing::Harness;
    use gannet_base::Proto;

    #[test]
    fn a_ticket_is_granted() {
        let mut h = Harness::new(Proto::Udp, 88);
        let mut a = Udp::new(&mut h.cx());
        a.datagram(&mut h.cx(), Dir::Orig, &as_req(), 0);
        a.datagram(&mut h.cx(), Dir::Resp, &krb_error(25, b"NEEDED_PREAUTH"), 0);
        a.datagram(&mut h.cx(), Dir::Orig, &as_req(), 0);
        a.datagram(&mut h.cx(), Dir::Resp, &as_rep(), 0);
        a.finish(&mut h.cx());
        assert!(h.confirmed(Tag::Krb) && !h.violated(Tag::Krb));
        let rows = h.rows("kerberos");
        assert_eq!(rows.len(), 1);
        let r = &rows[0];
        assert_eq!((&*r["request_type"], &*r["client"], &*r["service"]), ("AS", "des/X", "cifs/h"));
        assert_eq!((&*r["success"], &*r["cipher"]), ("T", "aes256-cts-hmac-sha1-96"));
        assert_eq!((&*r["till"], &*r["forwardable"]), ("2136422885.000000", "T"));
    }

    #[test]
    fn tickets_for_ever() {
        let mut request = as_req();
        let till = request.windows(15).position(|w| w == b"20370913024805Z").unwrap();
        request[till..][..15].copy_from_slice(b"99991231235959Z");
        let mut h = Harness::new(Proto::Udp, 88);
        let mut a = Udp::new(&mut h.cx());
        a.datagram(&mut h.cx(), Dir::Orig, &request, 0);
        a.finish(&mut h.cx());
        assert_eq!(h.rows("kerberos")[0]["till"], "253402300799.000000");
    }

    #[test]
    fn lengths_have_few_bytes() {
        let mut h = Harness::new(Proto::Udp, 88);
        let mut a = Udp::new(&mut h.cx());
        a.datagram(&mut h.cx(), Dir::Orig, b"\x6a\x8a\0\0\0\0\0\0\0\0\0\0", 12);
        let r = &h.rows("weird")[0];
        assert_eq!((&*r["name"], &*r["addl"]), ("asn_binary_to_int64_shift_too_large", "10"));
        assert!(h.violated(Tag::Krb));
        // In any position, also for numbers; the first one is reported.
        let inner = b"\x7e\x30\x30\x89\0\0\0\0\0\0\0\0\0\xa6\x0d\x02\x0b01234567890";
        let mut h = Harness::new(Proto::Udp, 88);
        Udp::new(&mut h.cx()).datagram(&mut h.cx(), Dir::Resp, inner, 0);
        assert_eq!(h.rows("weird")[0]["addl"], "9");
        let code = b"\x7e\x11\x30\x0f\xa6\x0d\x02\x0b01234567890";
        let mut h = Harness::new(Proto::Udp, 88);
        Udp::new(&mut h.cx()).datagram(&mut h.cx(), Dir::Resp, code, 0);
        assert_eq!(h.rows("weird")[0]["addl"], "11");
        assert!(!h.violated(Tag::Krb));
    }

    #[test]
    fn addresses_of_the_wrong_length() {
        let framed = |m: &[u8]| [&(m.len() as u32).to_be_bytes()[..], m].concat();
        let request = as_req_from(&[10, 0, 0]);
        let mut h = Harness::new(Proto::Tcp, 88);
        let mut a = Tcp::new(&mut h.cx());
        // A message with a later error is not reported.
        let mut broken = request.clone();
        broken.extend_from_slice(b"\xa4\x05");
        a.stream(&mut h.cx(), Dir::Orig, &framed(&broken));
        assert!(h.violated(Tag::KrbTcp) && h.rows("weird").is_empty());
        a.stream(&mut h.cx(), Dir::Orig, &framed(&request));
        let r = &h.rows("weird")[0];
        assert_eq!((&*r["name"], &*r["source"]), ("invalid_kerberos_addr_len", "KRB_TCP"));
        let mut h = Harness::new(Proto::Udp, 88);
        Udp::new(&mut h.cx()).datagram(&mut h.cx(), Dir::Orig, &request, 0);
        assert_eq!(h.rows("weird")[0]["source"], "KRB");
        let mut h = Harness::new(Proto::Udp, 88);
        Udp::new(&mut h.cx()).datagram(&mut h.cx(), Dir::Orig, &as_req_from(&[10, 0, 0, 1]), 0);
        assert!(h.rows("weird").is_empty() && h.confirmed(Tag::Krb));
    }

    #[test]
    fn certificates_of_both_sides() {
        use crate::ssl::samples::CERTIFICATE;
        let mut h = Harness::new(Proto::Udp, 88);
        let mut a = Udp::new(&mut h.cx());
        let request = as_req_with(&pkinit_data(false, &CERTIFICATE));
        a.datagram(&mut h.cx(), Dir::Orig, &request, 0);
        a.datagram(&mut h.cx(), Dir::Resp, &as_rep_with(&pkinit_data(true, &CERTIFICATE)), 0);
        a.finish(&mut h.cx());
        assert!(!h.violated(Tag::Krb));
        let r = &h.rows("kerberos")[0];
        let subject = &h.rows("x509")[0]["certificate.subject"];
        assert_eq!((&r["client_cert_subject"], &r["server_cert_subject"]), (subject, subject));
        assert!(r["client_cert_fuid"].starts_with('F') && r["server_cert_fuid"].starts_with('F'));
        assert_ne!(r["client_cert_fuid"], r["server_cert_fuid"]);
        assert_eq!((&*r["success"], &*r["service"]), ("T", "cifs/h"));
    }

    #[test]
    fn anonymous_clients_have_an_empty_certificate() {
        let mut h = Harness::new(Proto::Udp, 88);
        let mut a = Udp::new(&mut h.cx());
        a.datagram(&mut h.cx(), Dir::Orig, &as_req_with(&pkinit_data(false, b"")), 0);
        a.finish(&mut h.cx());
        assert!(h.rows("x509").is_empty());
        let r = &h.rows("kerberos")[0];
        assert_eq!(r["client_cert_subject"], "-");
        assert!(r["client_cert_fuid"].starts_with('F'));
    }

    #[test]
    fn a_request_is_logged_after_a_violation() {
        let mut h = Harness::new(Proto::Tcp, 88);
        let mut a = Tcp::new(&mut h.cx());
        let framed = |m: Vec<u8>| [&(m.len() as u32).to_be_bytes()[..], &m].concat();
        a.stream(&mut h.cx(), Dir::Orig, &framed(as_req()));
        a.stream(&mut h.cx(), Dir::Orig, &framed(b"what".to_vec()));
        assert!(h.violated(Tag::KrbTcp) && a.suspend(&mut h.cx()));
        a.stream(&mut h.cx(), Dir::Resp, &framed(krb_error(6, b"")));
        let rows = h.rows("kerberos");
        assert_eq!((rows.len(), &*rows[0]["request_type"]), (1, "AS"));
    }

    #[test]
    fn streams_in_any_chunks_and_errors() {
        let mut h = Harness::new(Proto::Tcp, 88);
        let mut a = Tcp::new(&mut h.cx());
        let framed = |m: Vec<u8>| [&(m.len() as u32).to_be_bytes()[..], &m].concat();
        for b in framed(as_req()) {
            a.stream(&mut h.cx(), Dir::Orig, &[b]);
        }
        a.stream(&mut h.cx(), Dir::Resp, &framed(krb_error(6, b"")));
        a.finish(&mut h.cx());
        assert!(h.confirmed(Tag::KrbTcp) && !h.violated(Tag::KrbTcp));
        let rows = h.rows("kerberos");
        assert_eq!(
            (&*rows[0]["success"], &*rows[0]["error_msg"]),
            ("F", "KDC_ERR_C_PRINCIPAL_UNKNOWN")
        );
        a.stream(&mut h.cx(), Dir::Resp, &framed(b"what".to_vec()));
        assert!(h.violated(Tag::KrbTcp));
    }
}
