use super::message;
use super::message::Message;
use super::raise;
use super::rows::Session;
use crate::Context;
use crate::Tag;
use crate::nested::Instance;

/// Analyzer of the tokens of one exchange that another protocol carries; the row is that of its
/// connection.
///
/// Bytes that are not an NTLM message are skipped; they are not a violation of the carrying
/// protocol.
#[derive(Debug, Default)]
pub struct Inner {
    instance: Instance,
}

impl Inner {
    /// Starts the analyzer, before its first message.
    pub fn start(&mut self, cx: &mut Context<'_>) {
        self.instance.start(cx, Tag::Ntlm);
    }

    /// Parses one message.
    pub fn deliver(&mut self, cx: &mut Context<'_>, session: &mut Session, data: &[u8]) {
        self.start(cx);
        if data.is_empty() {
            return;
        }
        let message = match message::parse(data) {
            Ok(message) => message,
            Err(wrong) => {
                self.instance.report_violation(cx, Tag::Ntlm, &wrong.to_string());
                return;
            }
        };
        if matches!(message, Message::Challenge(challenge) if challenge.is_unterminated) {
            let reason = "NTLM AV Pair loop underflow";
            self.instance.report_violation(cx, Tag::Ntlm, reason);
        }
        raise::message(cx, session, &message);
        self.instance.confirm(cx, Tag::Ntlm);
    }
}

#[cfg(test)]
mod tests {
    use super::super::message::tests::authenticate;
    use super::super::message::tests::challenge;
    use super::super::message::tests::negotiate;
    use super::*;
    use crate::OnEvent;
    use crate::gssapi::events::GssapiNegResult;
    use crate::testing::Harness;
    use gannet_base::Proto;
    use gannet_event::Connection;

    fn login(h: &mut Harness) -> Session {
        let (mut a, mut s) = (Inner::default(), Session::default());
        for m in [negotiate(), challenge(), authenticate()] {
            a.deliver(&mut h.cx(), &mut s, &m);
        }
        s
    }

    #[test]
    fn the_outcome_makes_the_row() {
        let mut h = Harness::new(Proto::Tcp, 445);
        let mut s = login(&mut h);
        s.on_event(&mut h.cx(), &GssapiNegResult { c: Connection::CURRENT, state: 1 });
        assert!(h.rows("ntlm").is_empty());
        s.on_event(&mut h.cx(), &GssapiNegResult { c: Connection::CURRENT, state: 2 });
        s.finish(&mut h.cx());
        assert!(h.confirmed(Tag::Ntlm));
        let rows = h.rows("ntlm");
        assert_eq!(rows.len(), 1);
        let r = &rows[0];
        assert_eq!((&*r["username"], &*r["hostname"], &*r["domainname"]), ("u", "-", "D"));
        assert_eq!((&*r["server_nb_computer_name"], &*r["success"]), ("SRV", "F"));
    }

    #[test]
    fn attributes_without_an_end_are_a_violation() {
        let seen = |length| {
            let mut message = challenge();
            // The list is empty and lacks its end mark.
            message.truncate(48);
            message[20..24].copy_from_slice(&0x0080_0000_u32.to_le_bytes());
            message[40..42].copy_from_slice(&[length, 0]);
            message[44..48].copy_from_slice(&48_u32.to_le_bytes());
            let mut h = Harness::new(Proto::Tcp, 445);
            h.listen("analyzer_violation");
            Inner::default().deliver(&mut h.cx(), &mut Session::default(), &message);
            h.events().len()
        };
        assert_eq!([seen(4), seen(0)], [1, 0]);
    }

    #[test]
    fn the_end_makes_it_too() {
        let mut h = Harness::new(Proto::Tcp, 445);
        let mut s = login(&mut h);
        Inner::default().deliver(&mut h.cx(), &mut s, b"what");
        s.finish(&mut h.cx());
        assert_eq!(h.rows("ntlm")[0]["success"], "-");
        assert!(!h.violated(Tag::Ntlm));
    }
}
