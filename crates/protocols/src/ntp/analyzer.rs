use gannet_base::Dir;

use super::message::Message;
use super::message::mode;
use super::raise;
use super::rows::Rows;
use crate::Analyze;
use crate::Context;
use crate::Tag;

/// The analyzer of one connection.
#[derive(Default)]
pub struct Analyzer {
    /// Whether a message of this side has already exchanged the roles, by [`Dir::index`].
    flipped: [bool; 2],
    confirmed: bool,
    rows: Rows,
}

impl Analyzer {
    /// Creates the analyzer of a new connection.
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
        // A server is the responder and a client the originator, regardless of which sent first.
        let reversed = match message.mode {
            mode::SERVER => from.is_orig(),
            mode::CLIENT => !from.is_orig(),
            _ => false,
        };
        if reversed && !std::mem::replace(&mut self.flipped[from.index()], true) {
            cx.flip();
        }
        raise::message(cx, &mut self.rows, from, &message, data);
    }
}

#[cfg(test)]
mod tests {
    use super::super::message;
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
