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

/// The rows of all logins on one connection, whatever protocol carries them.
#[derive(Debug, Default)]
pub struct Logins {
    /// The row of kerberos.log.
    pub krb: krb::Session,
    /// The row of ntlm.log.
    pub ntlm: ntlm::Session,
}

impl Logins {
    /// Writes the rows that are open.
    pub fn finish(&mut self, cx: &mut Context<'_>) {
        self.krb.finish(cx);
        self.ntlm.finish(cx);
    }
}

/// The tokens of one exchange inside another protocol, whose connection has the rows.
#[derive(Debug, Default)]
pub struct Inner {
    instance: Instance,
    krb: krb::Inner,
    ntlm: ntlm::Inner,
}

impl Inner {
    /// The analyzer starts, before its first token.
    pub fn start(&mut self, cx: &mut Context<'_>) {
        self.instance.start(cx, Tag::Gssapi);
    }

    /// One token.
    pub fn deliver(&mut self, cx: &mut Context<'_>, logins: &mut Logins, from: Dir, data: &[u8]) {
        // It has its number before those inside.
        self.start(cx);
        let whole = message::parse(data, |part| match part {
            Part::State(state) => {
                cx.report(&mut logins.ntlm, |c| GssapiNegResult { c, state });
            }
            Part::Ntlm(message) => self.ntlm.deliver(cx, &mut logins.ntlm, message),
            Part::Kerberos(message) => self.krb.deliver(cx, &mut logins.krb, from, message),
            Part::Long(bytes) => cx.report_long_integer(bytes),
        });
        if let Err(e) = whole {
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
    fn what_is_weird_about_signatures() {
        let mut h = Harness::new(Proto::Tcp, 135);
        let (mut a, mut logins) = (Inner::default(), Logins::default());
        // A length of ten bytes where a signature of NTLM has something else.
        a.deliver(&mut h.cx(), &mut logins, Dir::Orig, b"\x01\0\0\0\xa1\x8a0123456789");
        let told = |h: &Harness| {
            let rows = h.rows("weird");
            rows.iter().map(|r| format!("{} {}", r["name"], r["addl"])).collect::<Vec<_>>()
        };
        assert_eq!(told(&h), ["asn_binary_to_int64_shift_too_large 10"]);
        for _ in 0..1_001 {
            a.deliver(&mut h.cx(), &mut logins, Dir::Orig, b"\x01\0\0\0\xa1\xff");
        }
        assert_eq!(told(&h)[1..], ["too_many_analyzer_violations -"]);
        assert_eq!(h.violations().len(), 1_000);
    }
}
