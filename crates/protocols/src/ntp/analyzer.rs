use gannet_base::Dir;

use super::message;
use super::message::Body;
use super::message::Message;
use super::message::mode;
use super::raise;
use super::rows::Control;
use super::rows::Ntp;
use super::rows::Private;
use super::rows::Reference;
use super::rows::Span;
use super::rows::Stamp;
use crate::Analyze;
use crate::Context;
use crate::Tag;

/// The analyzer of one connection.
#[derive(Default)]
pub struct Analyzer {
    /// Whether messages of this side have exchanged the roles already, by [`Dir::index`].
    flipped: [bool; 2],
    confirmed: bool,
    /// The latest row of each kind.
    last: Option<Box<Last>>,
}

#[derive(Default)]
struct Last {
    standard: Option<Ntp>,
    control: Option<Control>,
    private: Option<Private>,
}

impl Analyzer {
    /// For a new connection.
    pub fn new(_cx: &mut Context<'_>) -> Self {
        Self::default()
    }
}

impl Analyze for Analyzer {
    fn finish(&mut self, cx: &mut Context<'_>) {
        cx.raise_session_done();
    }

    fn datagram(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8], _len: u32) {
        let message = match Message::parse(data) {
            Ok(message) => message,
            Err(e) => {
                cx.violation(Tag::Ntp, &e.to_string(), b"");
                return;
            }
        };
        if !self.confirmed {
            self.confirmed = true;
            cx.confirm(Tag::Ntp);
        }
        // A server is the responder, a client the originator, whichever sent first.
        let reversed = match message.mode {
            mode::SERVER => from.is_orig(),
            mode::CLIENT => !from.is_orig(),
            _ => false,
        };
        let mut id = cx.conn.id;
        if reversed && !std::mem::replace(&mut self.flipped[from.index()], true) {
            cx.flip();
            id = id.flipped();
        }
        raise::message(cx, from, &message, data);
        let (ts, uid) = (cx.now, cx.conn.uid);
        let Message { version, mode, body } = message;
        let last = self.last.get_or_insert_default();
        match body {
            Body::Standard(m) => {
                last.standard = Some(Ntp {
                    ts,
                    uid,
                    id,
                    version,
                    mode,
                    stratum: m.stratum,
                    poll: Span(2f64.powi(i32::from(m.poll))),
                    precision: Span(2f64.powi(i32::from(m.precision))),
                    root_delay: Span(m.root_delay),
                    root_disp: Span(m.root_dispersion),
                    ref_id: reference(&m),
                    ref_time: Stamp(m.reference),
                    org_time: Stamp(m.origin),
                    rec_time: Stamp(m.receive),
                    xmt_time: Stamp(m.transmit),
                    num_exts: m.extensions,
                });
            }
            Body::Control(m) => {
                last.control = Some(Control {
                    ts,
                    uid,
                    id,
                    version,
                    mode,
                    op_code: m.operation(),
                    sequence: m.sequence,
                    status: m.status,
                    association_id: m.association_id,
                    resp_bit: m.response(),
                    err_bit: m.error(),
                    more_bit: m.more(),
                    data: some(m.data),
                    key_id: m.mac.map(|(key, _)| key),
                    crypto_checksum: m.mac.map(|(_, sum)| sum.to_vec()),
                });
            }
            Body::Private(m) => {
                last.private = Some(Private {
                    ts,
                    uid,
                    id,
                    version,
                    mode,
                    req_code: m.request,
                    sequence: m.sequence,
                    implementation: m.implementation,
                    auth_bit: m.authenticated,
                    err: m.error,
                    data: some(m.data),
                });
            }
            Body::Reserved => {}
        }
        // Those of before share the roles of today.
        if let Some(row) = &mut last.standard {
            row.id = id;
            cx.log(row);
        }
        if let Some(row) = &mut last.control {
            row.id = id;
            cx.log(row);
        }
        if let Some(row) = &mut last.private {
            row.id = id;
            cx.log(row);
        }
    }
}

fn some(data: &[u8]) -> Option<Vec<u8>> {
    (!data.is_empty()).then(|| data.to_vec())
}

fn reference(m: &message::Standard) -> Reference {
    m.reference_addr().map_or(Reference::Name(m.reference_id), Reference::Server)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Harness;
    use gannet_base::Proto;

    #[test]
    fn a_reply_first_exchanges_the_roles() {
        let mut h = Harness::new(Proto::Udp, 123);
        let mut a = Analyzer::new(&mut h.cx());
        a.datagram(&mut h.cx(), Dir::Orig, &message::tests::reply(), 48);
        assert!(h.confirmed(Tag::Ntp));
        assert!(h.requests.iter().any(|r| matches!(r, crate::Request::Flip)));
        let rows = h.rows("ntp");
        assert_eq!(rows.len(), 1);
        assert_eq!((rows[0]["id.orig_p"].as_str(), rows[0]["mode"].as_str()), ("123", "4"));
        assert_eq!(rows[0]["precision"], "0.000001");
        assert_eq!(rows[0]["root_disp"], "-0.035995");
        assert_eq!(rows[0]["ref_id"], "17.253.26.125");
        assert_eq!(rows[0]["org_time"], "0.000000");
    }

    #[test]
    fn other_kinds_are_repeated() {
        let mut h = Harness::new(Proto::Udp, 123);
        let mut a = Analyzer::new(&mut h.cx());
        a.datagram(&mut h.cx(), Dir::Resp, &message::tests::reply(), 48);
        a.datagram(&mut h.cx(), Dir::Orig, &[0x16, 2, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0], 12);
        a.datagram(&mut h.cx(), Dir::Orig, &[0x17, 0, 3, 42, 0, 0], 6);
        assert_eq!(h.rows("ntp").len(), 3);
        assert_eq!(h.rows("ntp_control").len(), 2);
        let private = h.rows("ntp_private");
        assert_eq!((private.len(), private[0]["req_code"].as_str()), (1, "42"));
        assert_eq!(private[0]["data"], "-");
    }

    #[test]
    fn rows_that_are_repeated_have_the_roles_of_today() {
        let mut h = Harness::new(Proto::Udp, 123);
        let mut a = Analyzer::new(&mut h.cx());
        a.datagram(&mut h.cx(), Dir::Orig, &[0x16, 2, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0], 12);
        a.datagram(&mut h.cx(), Dir::Orig, &message::tests::reply(), 48);
        let rows = h.rows("ntp_control");
        let ports: Vec<_> = rows.iter().map(|r| &*r["id.orig_p"]).collect();
        assert_eq!(ports, ["1024", "123"]);
    }

    #[test]
    fn short_datagrams_are_no_ntp() {
        let mut h = Harness::new(Proto::Udp, 123);
        let mut a = Analyzer::new(&mut h.cx());
        a.datagram(&mut h.cx(), Dir::Orig, &[0x1b; 47], 47);
        assert!(h.violated(Tag::Ntp) && !h.confirmed(Tag::Ntp));
        assert!(h.rows("ntp").is_empty());
    }
}
