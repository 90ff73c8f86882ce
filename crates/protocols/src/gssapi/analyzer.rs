use gannet_base::Dir;

use super::events::GssapiNegResult;
use super::message;
use super::message::Part;
use crate::Context;
use crate::Request;
use crate::Tag;
use crate::krb;
use crate::nested::Instance;
use crate::ntlm;

/// The rows of all logins on one connection, shared by all protocols that carry tokens on it.
#[derive(Debug, Default)]
pub struct Logins {
    /// The row of kerberos.log.
    pub krb: krb::Session,
    /// The row of ntlm.log.
    pub ntlm: ntlm::Session,
}

impl Logins {
    /// Writes the pending rows.
    pub fn finish(&mut self, cx: &mut Context<'_>) {
        self.krb.finish(cx);
        self.ntlm.finish(cx);
    }
}

/// Analyzes the tokens of one exchange inside another protocol.
#[derive(Debug, Default)]
pub struct Inner {
    instance: Instance,
    krb: krb::Inner,
    ntlm: ntlm::Inner,
}

impl Inner {
    /// Starts the analyzer, before its first token: it receives its analyzer ID.
    pub fn start(&mut self, cx: &mut Context<'_>) {
        self.instance.start(cx, Tag::Gssapi);
    }

    /// Analyzes one token.
    pub fn deliver(&mut self, cx: &mut Context<'_>, logins: &mut Logins, from: Dir, data: &[u8]) {
        // This analyzer receives its ID before the inner analyzers.
        self.start(cx);
        let result = message::parse(data, |part| match part {
            Part::State(state) => {
                cx.report(&mut logins.ntlm, |c| GssapiNegResult { c, state });
            }
            Part::Ntlm(message) => self.ntlm.deliver(cx, &mut logins.ntlm, message),
            Part::Kerberos(message) => self.krb.deliver(cx, &mut logins.krb, from, message),
            Part::LongNumber(len) => cx.report_long_integer(len),
        });
        if let Err(e) = result {
            let reason = e.to_string();
            if self.instance.report_violation(cx, Tag::Gssapi, &reason) {
                let (tag, reason) = (Tag::Gssapi, reason.into());
                cx.requests.push(Request::Violation { tag, reason, data: Vec::new() });
            }
        } else {
            self.instance.confirm(cx, Tag::Gssapi);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::message::tests::initial;
    use super::super::message::tests::response;
    use super::*;
    use crate::ntlm::message::tests::challenge;
    use crate::ntlm::message::tests::negotiate;
    use crate::testing::Harness;
    use gannet_base::Proto;

    #[test]
    fn the_inner_protocol_is_confirmed_first() {
        let mut h = Harness::new(Proto::Tcp, 445);
        let (mut a, mut logins) = (Inner::default(), Logins::default());
        a.deliver(&mut h.cx(), &mut logins, Dir::Orig, &initial(&negotiate()));
        a.deliver(&mut h.cx(), &mut logins, Dir::Orig, &response(1, &challenge()));
        a.deliver(&mut h.cx(), &mut logins, Dir::Orig, &response(0, b""));
        assert!(matches!(
            h.requests[..],
            [Request::Confirm(Tag::Ntlm), Request::Confirm(Tag::Gssapi)]
        ));
        assert_eq!(h.rows("ntlm")[0]["success"], "T");
        a.deliver(&mut h.cx(), &mut logins, Dir::Orig, b"\x60\x01");
        assert!(h.violated(Tag::Gssapi) && h.confirmed(Tag::Gssapi));
    }

    #[test]
    fn overlong_lengths_in_signatures_are_weird() {
        let mut h = Harness::new(Proto::Tcp, 135);
        let (mut a, mut logins) = (Inner::default(), Logins::default());
        // An NTLM signature whose bytes parse as a length of ten bytes.
        a.deliver(&mut h.cx(), &mut logins, Dir::Orig, b"\x01\0\0\0\xa1\x8a0123456789");
        let reported = |h: &Harness| {
            let rows = h.rows("weird");
            rows.iter().map(|r| format!("{} {}", r["name"], r["addl"])).collect::<Vec<_>>()
        };
        assert_eq!(reported(&h), ["asn_binary_to_int64_shift_too_large 10"]);
        for _ in 0..1_001 {
            a.deliver(&mut h.cx(), &mut logins, Dir::Orig, b"\x01\0\0\0\xa1\xff");
        }
        assert_eq!(reported(&h)[1..], ["too_many_analyzer_violations -"]);
        assert_eq!(h.violations().len(), 1_000);
    }
}
