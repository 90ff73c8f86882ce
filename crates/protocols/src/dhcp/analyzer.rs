use gannet_base::Dir;
use gannet_event::Id4;

use super::events::AggregateMsgs;
use super::events::DhcpMessage;
use super::message::COOKIE;
use super::message::Message;
use super::rows::Rows;
use crate::Analyze;
use crate::Context;
use crate::Tag;

/// The analyzer of one connection.
#[derive(Default)]
pub struct Analyzer {
    /// Sum of the sizes of all relay options so far, by [`Dir::index`]; see [`Message::parse`].
    relay_bytes: [u8; 2],
    confirmed: bool,
}

impl Analyzer {
    /// For a new connection.
    pub fn new(_cx: &mut Context<'_>) -> Self {
        Self::default()
    }
}

impl Analyze for Analyzer {
    fn datagram(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8], _len: u32) {
        let message = match Message::parse(data, &mut self.relay_bytes[from.index()]) {
            Ok(message) => message,
            Err(e) => {
                cx.violation(Tag::Dhcp, &e.to_string(), b"");
                return;
            }
        };
        if message.msg.m_type == 0 {
            cx.violation(Tag::Dhcp, "no DHCP message type option", b"");
        }
        if message.cookie != COOKIE {
            let reason = format!("bad cookie ({})", message.cookie as i32);
            cx.violation(Tag::Dhcp, &reason, b"");
            return;
        }
        let (Message { msg, options, .. }, is_orig) = (message, from.is_orig());
        cx.report(&mut Rows, |c| DhcpMessage { c, is_orig, msg, options });
        if cx.wants::<AggregateMsgs<'_>>() {
            let (ts, uid) = (cx.now, cx.conn.uid);
            let id = Id4(cx.conn.id, cx.conn.proto, cx.conn.ip_proto);
            cx.raise(|_| AggregateMsgs { ts, id, uid, is_orig, msg, options });
        }
        if !self.confirmed {
            self.confirmed = true;
            cx.confirm(Tag::Dhcp);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::message::tests::message;
    use super::*;
    use crate::testing::Harness;
    use gannet_base::Proto;

    #[test]
    fn malformed_messages_are_violations() {
        let mut h = Harness::new(Proto::Udp, 67);
        let mut a = Analyzer::new(&mut h.cx());
        a.datagram(&mut h.cx(), Dir::Orig, &[1; 100], 100);
        assert!(h.violated(Tag::Dhcp));
        h.requests.clear();
        let mut bootp = message(7, [0; 4], b"\x35\x01\x01");
        bootp[239] = 0;
        a.datagram(&mut h.cx(), Dir::Orig, &bootp, 300);
        assert!(h.violated(Tag::Dhcp) && !h.confirmed(Tag::Dhcp));
        // A message without a type is reported and accepted.
        a.datagram(&mut h.cx(), Dir::Orig, &message(7, [0; 4], b"\x0c\x01x"), 300);
        assert!(h.confirmed(Tag::Dhcp));
        let crate::Env { dhcp, logs, .. } = &mut h.env;
        dhcp.finish(logs);
        let rows = h.rows("dhcp");
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0]["msg_types"], "unknown-message-type-0");
    }
}
