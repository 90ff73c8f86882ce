use gannet_base::Dir;

use super::events::SyslogMessage;
use super::message::Message;
use super::message::NONE;
use super::message::Priority;
use super::rows::Rows;
use crate::Analyze;
use crate::Context;
use crate::Tag;

/// The analyzer of one connection. It has no state, since messages are independent.
pub struct Analyzer {}

impl Analyzer {
    /// Creates the analyzer of a new connection.
    pub fn new(_cx: &mut Context<'_>) -> Self {
        Self {}
    }
}

impl Analyze for Analyzer {
    fn finish(&mut self, cx: &mut Context<'_>) {
        cx.raise_session_done();
    }

    fn datagram(&mut self, cx: &mut Context<'_>, _from: Dir, data: &[u8], _len: u32) {
        let message = match Message::parse(data) {
            Ok(message) => message,
            Err(e) => return cx.violation(Tag::Syslog, &e.to_string(), &[]),
        };
        let number = |pick: fn(Priority) -> u8| message.priority.map_or(NONE, |p| pick(p).into());
        cx.report(&mut Rows, |c| SyslogMessage {
            c,
            facility: number(|p| p.facility),
            severity: number(|p| p.severity),
            msg: message.text,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Harness;
    use gannet_base::Proto;

    #[test]
    fn a_row_a_datagram() {
        let mut h = Harness::new(Proto::Udp, 514);
        let mut a = Analyzer::new(&mut h.cx());
        for d in [&b"<134>hello\0"[..], b"<999>b", b"c", b"<bad"] {
            a.datagram(&mut h.cx(), Dir::Orig, d, d.len() as u32);
        }
        let rows = h.rows("syslog");
        assert_eq!(rows.len(), 3);
        assert_eq!(rows[0]["facility"], "LOCAL0");
        assert_eq!(rows[0]["severity"], "INFO");
        assert_eq!(rows[0]["message"], "hello\\x00");
        assert_eq!(rows[0]["proto"], "udp");
        assert_eq!((&*rows[1]["facility"], &*rows[1]["severity"]), ("?-124", "DEBUG"));
        assert_eq!(rows[2]["facility"], "UNSPECIFIED");
        assert!(h.violated(Tag::Syslog));
    }
}
