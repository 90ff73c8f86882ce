use gannet_base::Dir;

use super::events;
use super::events::RadiusAttribute;
use super::events::RadiusMessage;
use super::message::Message;
use super::message::attributes_of;
use super::rows::Rows;
use crate::Analyze;
use crate::Context;
use crate::Tag;

/// The analyzer of one connection.
pub struct Analyzer {
    rows: Rows,
}

impl Analyzer {
    /// Creates the analyzer of a new connection.
    pub fn new(_cx: &mut Context<'_>) -> Self {
        Self { rows: Rows::default() }
    }
}

impl Analyze for Analyzer {
    fn datagram(&mut self, cx: &mut Context<'_>, _from: Dir, data: &[u8], _len: u32) {
        if cx.wants::<RadiusAttribute>() {
            // Attributes before a malformed one are reported, too.
            for a in attributes_of(data) {
                let (attr_type, value) = (a.code.into(), a.value);
                cx.raise(|c| RadiusAttribute { c, attr_type, value });
            }
        }
        let message = match Message::parse(data) {
            Ok(m) => m,
            Err(e) => {
                cx.violation(Tag::Radius, &e.to_string(), &[]);
                return;
            }
        };
        cx.confirm(Tag::Radius);
        let attributes = message.attributes;
        cx.report(&mut self.rows, |c| RadiusMessage {
            c,
            result: events::Message {
                code: message.code.into(),
                trans_id: message.id.into(),
                authenticator: message.authenticator,
                attributes: (!attributes.is_empty()).then_some(attributes),
            },
        });
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        self.rows.finish(cx);
    }
}

#[cfg(test)]
mod tests {
    use super::super::message::tests::message;
    use super::*;
    use crate::testing::Harness;
    use gannet_base::Interval;
    use gannet_base::Proto;

    #[test]
    fn a_row_a_request() {
        let mut h = Harness::new(Proto::Udp, 1812);
        let mut a = Analyzer::new(&mut h.cx());
        a.datagram(&mut h.cx(), Dir::Orig, &message(1, b"\x01\x05bob"), 25);
        h.now += Interval::from_millis(250);
        a.datagram(&mut h.cx(), Dir::Resp, &message(11, b"\x12\x04hi\x08\x06\x0a\0\0\x09"), 30);
        a.datagram(&mut h.cx(), Dir::Resp, &message(2, b""), 20);
        a.datagram(&mut h.cx(), Dir::Orig, &message(1, b"\x01\x05eve"), 25);
        a.finish(&mut h.cx());
        assert!(h.confirmed(Tag::Radius));
        let rows = h.rows("radius");
        assert_eq!(rows.len(), 2);
        assert_eq!((&*rows[0]["username"], &*rows[0]["result"]), ("bob", "success"));
        assert_eq!((&*rows[0]["reply_msg"], &*rows[0]["framed_addr"]), ("hi", "10.0.0.9"));
        assert_eq!(rows[0]["ttl"], "0.250000");
        assert_eq!((&*rows[1]["username"], &*rows[1]["result"]), ("eve", "unknown"));
        assert_eq!(rows[1]["ttl"], "-");
    }

    #[test]
    fn attributes_before_a_fault_are_events() {
        let mut h = Harness::new(Proto::Udp, 1812);
        h.listen("radius_attribute");
        let mut a = Analyzer::new(&mut h.cx());
        a.datagram(&mut h.cx(), Dir::Orig, &message(1, b"\x01\x05bob\x04\x09x"), 28);
        assert_eq!(h.events(), [r#"radius_attribute "attr_type":1,"value":"bob""#]);
        assert!(h.violated(Tag::Radius));
        a.datagram(&mut h.cx(), Dir::Orig, &[1; 19], 19);
        assert!(h.events().is_empty());
    }

    #[test]
    fn an_answer_within_a_microsecond_took_no_time() {
        let mut h = Harness::new(Proto::Udp, 1812);
        let mut a = Analyzer::new(&mut h.cx());
        a.datagram(&mut h.cx(), Dir::Orig, &message(1, b"\x01\x05bob"), 25);
        h.now += Interval::from_nanos(999);
        a.datagram(&mut h.cx(), Dir::Resp, &message(2, b""), 20);
        assert_eq!(h.rows("radius")[0]["ttl"], "-");
    }
}
