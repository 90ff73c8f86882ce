use gannet_base::Dir;

use super::ber;
use super::ber::Malformed;
use super::events::Operation;
use super::events::OperationSeen;
use super::events::ProtocolOpcode;
use super::events::Starttls;
use super::message;
use super::message::Auth;
use super::message::Body;
use super::message::Message;
use super::message::operation;
use super::raise;
use super::rows::Rows;
use super::sasl;
use super::sasl::Mode;
use crate::Analyze;
use crate::Context;
use crate::Tag;
use crate::gssapi;
use crate::ntlm;
use crate::support::Frames;

/// Maximum number of stored bytes of a message; the rest of a longer message is skipped, and its first bytes are
/// parsed.
const MAX_MESSAGE: usize = 1 << 20;

/// Result code of a successful operation.
const SUCCESS: u8 = 0;

/// State of one connection, for both transports.
struct Core {
    tag: Tag,
    rows: Rows,
    mode: Mode,
    /// The mechanism of the last SASL bind.
    mechanism: Vec<u8>,
    tls_requested: bool,
    confirmed: bool,
    /// Analyzers of authentication tokens, if inner protocols are analyzed.
    logins: Option<Box<Logins>>,
    /// An authentication token was seen, whose row is written at the end of the connection.
    has_login: bool,
}

/// Analyzers of authentication tokens, and their rows.
#[derive(Default)]
struct Logins {
    rows: gssapi::Logins,
    gssapi: gssapi::Inner,
    ntlm: ntlm::Inner,
}

impl Core {
    fn new(cx: &Context<'_>, tag: Tag) -> Self {
        Self {
            tag,
            rows: Rows::default(),
            mode: Mode::Clear,
            mechanism: Vec::new(),
            tls_requested: false,
            confirmed: false,
            logins: cx.env.inner_protocols.then(Box::default),
            has_login: false,
        }
    }

    /// Analyzes a message; the end of a `truncated` one is missing.
    fn message(
        &mut self,
        cx: &mut Context<'_>,
        data: &[u8],
        truncated: bool,
    ) -> Result<(), Malformed> {
        let m = message::parse(data, truncated)?;
        if cx.env.logs.events.any() {
            raise::message(cx, data, &m);
        }
        match &m.body {
            Body::Bind { auth, .. } => self.login(cx, auth)?,
            Body::BindResponse(outcome, credentials) => {
                let success = outcome.code == SUCCESS;
                self.login_response(cx, success, credentials)?;
            }
            Body::Extended(name) if **name == *message::START_TLS => self.tls_requested = true,
            _ => {}
        }
        let (message_id, opcode) = (m.id, ProtocolOpcode(Some(m.code)));
        let message = Operation(&m);
        cx.report(&mut self.rows, |c| OperationSeen { c, message_id, opcode, message });
        if !std::mem::replace(&mut self.confirmed, true) {
            cx.confirm(self.tag);
        }
        if self.tls_requested && is_success(&m) {
            self.mode = Mode::Tls;
            cx.raise(|c| Starttls { c });
        }
        Ok(())
    }

    fn login(&mut self, cx: &mut Context<'_>, auth: &Auth<'_>) -> Result<(), Malformed> {
        match auth {
            Auth::Sasl { mechanism, credentials } => {
                self.mechanism = mechanism.to_vec();
                if let Some(credentials) = credentials {
                    self.token(cx, credentials, true)?;
                }
            }
            Auth::SicilyNegotiate(token) | Auth::SicilyResponse(token) => {
                self.has_login = true;
                if let Some(logins) = &mut self.logins {
                    logins.ntlm.deliver(cx, &mut logins.rows.ntlm, token);
                }
            }
            Auth::Simple(_) | Auth::Other(_) => {}
        }
        Ok(())
    }

    fn login_response(
        &mut self,
        cx: &mut Context<'_>,
        success: bool,
        credentials: &[&[u8]],
    ) -> Result<(), Malformed> {
        if success && !self.mechanism.is_empty() {
            self.mode = Mode::Undecided;
        }
        for (i, token) in credentials.iter().enumerate() {
            if i == 0 && self.mechanism == b"GSS-SPNEGO" && sasl::accepts_kerberos(token)? {
                self.mode = Mode::Kerberos;
            }
            self.token(cx, token, false)?;
        }
        Ok(())
    }

    /// Analyzes a token of the current mechanism.
    fn token(
        &mut self,
        cx: &mut Context<'_>,
        token: &[u8],
        from_client: bool,
    ) -> Result<(), Malformed> {
        let bare_ntlm = match &self.mechanism[..] {
            b"GSS-SPNEGO" if from_client => sasl::is_bare_ntlm(token)?,
            b"GSS-SPNEGO" => token.starts_with(b"NTLMSSP"),
            mechanism => mechanism == b"NTLM",
        };
        self.has_login = true;
        let Some(logins) = &mut self.logins else { return Ok(()) };
        if bare_ntlm {
            logins.ntlm.deliver(cx, &mut logins.rows.ntlm, token);
        } else if matches!(&self.mechanism[..], b"GSS-SPNEGO" | b"GSSAPI") {
            let from = if from_client { Dir::Orig } else { Dir::Resp };
            logins.gssapi.deliver(cx, &mut logins.rows, from, token);
        }
        Ok(())
    }

    /// Analyzes consecutive messages.
    fn messages(&mut self, cx: &mut Context<'_>, mut data: &[u8]) -> Result<(), Malformed> {
        while !data.is_empty() && self.mode != Mode::Tls {
            let len = ber::length(data).min(data.len());
            let (one, rest) = data.split_at(len);
            self.message(cx, one, false)?;
            data = rest;
        }
        Ok(())
    }

    /// Analyzes a SASL buffer.
    fn buffer(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &[u8],
        truncated: bool,
    ) -> Result<(), Malformed> {
        if self.mode == Mode::Undecided {
            // Only GSSAPI mechanisms wrap the content of buffers in tokens.
            let gssapi = self.mechanism.is_empty() || self.mechanism.starts_with(b"GSS");
            self.mode =
                if gssapi && sasl::is_wrap_token(buffer) { Mode::Kerberos } else { Mode::Sealed };
        }
        if self.mode == Mode::Kerberos && !truncated {
            let messages = sasl::unwrap(buffer)?;
            self.messages(cx, messages)?;
        }
        Ok(())
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        self.rows.finish(cx);
        if let Some(logins) = &mut self.logins {
            logins.rows.finish(cx);
        }
    }
}

fn is_success(m: &Message<'_>) -> bool {
    m.code == operation::EXTENDED_RESPONSE
        && matches!(&m.body, Body::Outcome(outcome) if outcome.code == SUCCESS)
}

/// The analyzer of one TCP connection.
pub struct Tcp {
    core: Core,
    frames: [Frames; 2],
    /// For each side, whether the current frame is a SASL buffer instead of a message.
    in_sasl_buffer: [bool; 2],
    /// The rest of the stream cannot be parsed.
    gave_up: bool,
}

impl Tcp {
    /// For a new connection.
    pub fn new(cx: &mut Context<'_>) -> Self {
        Self {
            core: Core::new(cx, Tag::LdapTcp),
            frames: [Frames::new(MAX_MESSAGE), Frames::new(MAX_MESSAGE)],
            in_sasl_buffer: [false; 2],
            gave_up: false,
        }
    }

    /// Analyzes a chunk. Returns the bytes after the message that switched to TLS, if any.
    fn chunk<'d>(
        &mut self,
        cx: &mut Context<'_>,
        from: Dir,
        mut data: &'d [u8],
    ) -> Result<Option<&'d [u8]>, Malformed> {
        let (frames, in_sasl_buffer) =
            (&mut self.frames[from.index()], &mut self.in_sasl_buffer[from.index()]);
        while !data.is_empty() && self.core.mode != Mode::Tls {
            if !frames.has_partial() {
                *in_sasl_buffer = match self.core.mode {
                    Mode::Clear | Mode::Tls => false,
                    Mode::Kerberos | Mode::Sealed => true,
                    Mode::Undecided if data[0] == 0x30 => {
                        self.core.mode = Mode::Clear;
                        false
                    }
                    Mode::Undecided => true,
                };
            }
            if *in_sasl_buffer {
                let Some(buffer) = frames.next(&mut data, sasl::buffer_length) else { break };
                let truncated = buffer.len() < sasl::buffer_length(buffer);
                self.core.buffer(cx, buffer, truncated)?;
            } else {
                let Some(message) = frames.next(&mut data, ber::length) else { break };
                let truncated = message.len() < ber::length(message);
                self.core.message(cx, message, truncated)?;
            }
        }
        Ok((self.core.mode == Mode::Tls).then_some(data))
    }

    fn give_up(&mut self) {
        self.gave_up = true;
        self.frames = [Frames::new(MAX_MESSAGE), Frames::new(MAX_MESSAGE)];
    }
}

impl Analyze for Tcp {
    fn stream(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) {
        if self.gave_up {
            return;
        }
        match self.chunk(cx, from, data) {
            Ok(None) => {}
            Ok(Some(rest)) => {
                self.give_up();
                if cx.env.inner_protocols {
                    cx.start_inner(Tag::Ssl, from, rest);
                }
            }
            Err(reason) => {
                self.give_up();
                cx.violation(self.core.tag, reason, data);
            }
        }
    }

    fn end(&mut self, cx: &mut Context<'_>, from: Dir) {
        let frames = &mut self.frames[from.index()];
        if frames.has_partial() {
            frames.reset();
            cx.violation(self.core.tag, "stream ends within a message", &[]);
        }
    }

    fn gap(&mut self, _cx: &mut Context<'_>, _from: Dir, _len: u64) {
        // A gap is not a violation.
        self.give_up();
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        self.core.finish(cx);
    }
}

/// The analyzer of one UDP connection.
pub struct Udp {
    core: Core,
    gave_up: bool,
}

impl Udp {
    /// For a new connection.
    pub fn new(cx: &mut Context<'_>) -> Self {
        Self { core: Core::new(cx, Tag::LdapUdp), gave_up: false }
    }
}

impl Analyze for Udp {
    fn datagram(&mut self, cx: &mut Context<'_>, _from: Dir, data: &[u8], _len: u32) {
        if !self.gave_up
            && let Err(reason) = self.core.messages(cx, data)
        {
            self.gave_up = true;
            cx.violation(self.core.tag, reason, data);
        }
    }

    fn is_idle(&self) -> bool {
        !self.gave_up
            && self.core.rows.is_empty()
            && self.core.mode == Mode::Clear
            && self.core.mechanism.is_empty()
            && !self.core.has_login
            && !self.core.tls_requested
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        self.core.finish(cx);
    }
}

#[cfg(test)]
mod tests {
    use gannet_base::Proto;
    use proptest::prelude::*;

    use super::super::message::tests::message;
    use super::super::message::tests::result;
    use super::super::message::tests::search_for;
    use super::super::message::tests::tlv;
    use super::*;
    use crate::ntlm::message::tests::challenge;
    use crate::ntlm::message::tests::negotiate;
    use crate::testing::Harness;

    const O: Dir = Dir::Orig;
    const R: Dir = Dir::Resp;

    fn bind(id: u8, auth: &[u8]) -> Vec<u8> {
        message(id, 0, &[&[2, 1, 3], &tlv(4, b"cn=me")[..], auth].concat())
    }

    fn sasl_bind(mechanism: &[u8], token: &[u8]) -> Vec<u8> {
        bind(1, &tlv(0xa3, &[tlv(4, mechanism), tlv(4, token)].concat()))
    }

    fn run_with(h: &mut Harness, chunks: &[(Dir, Vec<u8>)], cut: usize) {
        let mut a = Tcp::new(&mut h.cx());
        for (dir, data) in chunks {
            for part in data.chunks(cut) {
                a.stream(&mut h.cx(), *dir, part);
            }
        }
        a.finish(&mut h.cx());
    }

    fn run(chunks: &[(Dir, Vec<u8>)]) -> Harness {
        let mut h = Harness::new(Proto::Tcp, 389);
        run_with(&mut h, chunks, usize::MAX);
        h
    }

    /// ID, opcode, result, object and argument of all rows.
    fn operations(h: &Harness) -> Vec<String> {
        let columns = ["message_id", "opcode", "result", "object", "argument"];
        h.rows("ldap").iter().map(|r| columns.map(|c| r[c].clone()).join(" ")).collect()
    }

    fn session() -> Vec<(Dir, Vec<u8>)> {
        let entry = |n| message(n, 4, &[tlv(4, b"cn=found"), tlv(0x30, b"")].concat());
        vec![
            (O, bind(1, &tlv(0x80, b"secret"))),
            (R, message(1, 1, &result(0, b""))),
            (O, message(2, 3, &search_for(b"dc=x", 2, &tlv(0x87, b"cn")))),
            (R, [entry(2), entry(2), message(2, 5, &result(0, b""))].concat()),
            (O, message(3, 10, b"cn=gone")),
            (R, message(3, 11, &result(32, b"no such"))),
            (O, message(4, 2, b"")),
        ]
    }

    #[test]
    fn operations_and_searches_in_any_chunks() {
        for cut in [1, 3, 1000] {
            let mut h = Harness::new(Proto::Tcp, 389);
            run_with(&mut h, &session(), cut);
            assert!(h.confirmed(Tag::LdapTcp) && !h.violated(Tag::LdapTcp));
            assert_eq!(
                operations(&h),
                [
                    "1 bind simple success cn=me REDACTED",
                    "3 delete no such object cn=gone -",
                    "4 unbind - - -",
                ]
            );
            assert_eq!(h.rows("ldap")[0]["version"], "3");
            assert_eq!(h.rows("ldap")[1]["diagnostic_message"], "no such");
            let search = &h.rows("ldap_search")[0];
            let reported = ["scope", "deref_aliases", "base_object", "result_count", "filter"];
            assert_eq!(reported.map(|c| &*search[c]), ["tree", "never", "dc=x", "2", "(cn=*)"]);
            assert_eq!((&*search["result"], &*search["attributes"]), ("success", "-"));
        }
    }

    #[test]
    fn operations_without_a_response_are_written_at_the_end() {
        let h = run(&[
            (O, message(2, 3, &search_for(b"", 0, &tlv(0x87, b"cn")))),
            (O, message(3, 8, b"anything")),
        ]);
        assert_eq!(operations(&h), ["3 add - - -"]);
        assert_eq!(h.rows("ldap_search")[0]["result"], "-");
    }

    #[test]
    fn logins_without_a_name_of_their_own() {
        let h = run(&[
            (O, bind(1, &tlv(0x89, b""))),
            (O, bind(2, &tlv(0x85, b"x"))),
            (O, bind(3, &tlv(0xa3, b""))),
        ]);
        let packages = "LDAP::BindAuthType_SICILY_PACKAGE_DISCOVERY";
        assert_eq!(
            operations(&h),
            [
                &*format!("1 {packages} - cn=me -"),
                "2 <undefined> - cn=me -",
                "3 bind SASL - cn=me -",
            ]
        );
        // Reported once a connection.
        assert_eq!(h.rows("weird")[0]["addl"], packages);
    }

    #[test]
    fn pending_operations_have_a_limit() {
        let adds: Vec<_> = (1..=12).map(|i| (O, message(i, 8, b""))).collect();
        let h = run(&adds);
        assert_eq!(h.rows("ldap").len(), 12);
        let weird = &h.rows("weird")[0];
        assert_eq!(
            (&*weird["name"], &*weird["addl"], &*weird["source"]),
            ("LDAP_max_pending_messages_exceeded", "10", "LDAP")
        );
    }

    #[test]
    fn contradictory_messages_are_weird() {
        let h = run(&[
            (R, message(1, 1, &result(0, b""))),
            (O, message(2, 8, b"")),
            (O, message(2, 10, b"cn=x")),
        ]);
        let reported: Vec<_> =
            h.rows("weird").iter().map(|r| format!("{} {}", r["name"], r["addl"])).collect();
        assert_eq!(
            reported,
            ["LDAP_bind_without_opcode 1: bind", "LDAP_message_opcode_change 2: add -> delete"]
        );
    }

    #[test]
    fn signed_messages_are_parsed_and_sealed_ones_are_not() {
        let inner = message(7, 3, &search_for(b"dc=x", 0, &tlv(0x87, b"cn")));
        let wrap = |flags: u8| {
            let mut t = ((16 + inner.len()) as u32).to_be_bytes().to_vec();
            t.extend([5, 4, flags, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
            t.extend(&inner);
            t
        };
        for (flags, rows) in [(0, 1), (2, 0)] {
            let h = run(&[
                (O, sasl_bind(b"GSSAPI", b"token")),
                (R, message(1, 1, &result(0, b""))),
                (O, wrap(flags)),
                (O, wrap(flags)),
            ]);
            assert_eq!(h.rows("ldap_search").len(), rows);
            assert!(!h.violated(Tag::LdapTcp));
        }
        let login = [(O, sasl_bind(b"SCRAM", b"x")), (R, message(1, 1, &result(0, b"")))];
        let clear = run(&[&login[..], &[(O, inner.clone())]].concat());
        assert_eq!(clear.rows("ldap_search").len(), 1);
        let sealed = run(&[&login[..], &[(O, b"\0\0\0\x03abc".to_vec())]].concat());
        assert!(!sealed.violated(Tag::LdapTcp));
    }

    #[test]
    fn inner_tls_is_analysed_on_request() {
        let start = [
            (O, message(1, 23, &tlv(0x80, message::START_TLS))),
            (R, message(1, 24, &result(0, b""))),
            (O, b"\x16\x03\x01".to_vec()),
        ];
        let h = run(&start);
        assert_eq!(operations(&h), ["1 extended success 1.3.6.1.4.1.1466.20037 (StartTLS) -"]);
        assert!(h.starts.is_empty() && !h.violated(Tag::LdapTcp));
        let mut h = Harness::new(Proto::Tcp, 389);
        h.env.inner_protocols = true;
        run_with(&mut h, &start, usize::MAX);
        assert_eq!(h.starts[0].0, Tag::Ssl);
    }

    #[test]
    fn inner_logins_are_analysed_on_request() {
        let answer = [result(14, b""), tlv(0x87, &challenge())].concat();
        let login = [(O, sasl_bind(b"GSS-SPNEGO", &negotiate())), (R, message(1, 1, &answer))];
        let mut h = Harness::new(Proto::Tcp, 389);
        run_with(&mut h, &login, usize::MAX);
        assert!(h.rows("ntlm").is_empty() && !h.confirmed(Tag::Ntlm));
        let mut h = Harness::new(Proto::Tcp, 389);
        h.env.inner_protocols = true;
        run_with(&mut h, &login, usize::MAX);
        assert_eq!(h.rows("ntlm").len(), 1);
        assert!(h.confirmed(Tag::Ntlm) && h.confirmed(Tag::LdapTcp));
    }

    #[test]
    fn other_bytes_and_gaps_end_it() {
        let h = run(&[(O, b"GET / HTTP/1.1\r\n".to_vec()), (O, message(4, 2, b""))]);
        assert!(h.violated(Tag::LdapTcp) && !h.confirmed(Tag::LdapTcp));
        assert!(h.rows("ldap").is_empty());
        let mut h = Harness::new(Proto::Tcp, 389);
        let mut a = Tcp::new(&mut h.cx());
        a.gap(&mut h.cx(), R, 10);
        a.stream(&mut h.cx(), O, &message(4, 2, b""));
        a.finish(&mut h.cx());
        assert!(h.rows("ldap").is_empty() && !h.violated(Tag::LdapTcp));
    }

    #[test]
    fn streams_end_between_messages() {
        let unbind = message(4, 2, b"");
        for (data, odd) in [(&unbind[..], false), (&unbind[..5], true)] {
            let mut h = Harness::new(Proto::Tcp, 389);
            let mut a = Tcp::new(&mut h.cx());
            a.stream(&mut h.cx(), O, data);
            a.end(&mut h.cx(), R);
            a.end(&mut h.cx(), O);
            assert_eq!(h.violated(Tag::LdapTcp), odd);
        }
    }

    #[test]
    fn long_messages_are_parsed_in_part() {
        let mut entry = message(2, 4, &tlv(4, b"cn=found"));
        // A length of 2 MiB for message and operation.
        entry.splice(1..4, [0x84, 0, 0x20, 0, 0]);
        let at = entry.len() - 16 + 1;
        entry.splice(at..at + 3, [0x84, 0, 0x1f, 0xff, 0xf0]);
        entry.resize((2 << 20) + 6, 0x30);
        let h = run(&[(R, entry), (R, message(2, 5, &result(0, b"")))]);
        assert!(!h.violated(Tag::LdapTcp));
        assert_eq!(h.rows("ldap_search")[0]["result_count"], "1");
    }

    #[test]
    fn datagrams_are_parsed_one_by_one() {
        let mut h = Harness::new(Proto::Udp, 389);
        let mut a = Udp::new(&mut h.cx());
        let search = message(2, 3, &search_for(b"", 0, &tlv(0x87, b"cn")));
        a.datagram(&mut h.cx(), O, &search, 0);
        assert!(!a.is_idle());
        a.datagram(&mut h.cx(), R, &message(2, 5, &result(0, b"")), 0);
        assert!(a.is_idle() && h.confirmed(Tag::LdapUdp));
        assert_eq!(h.rows("ldap_search").len(), 1);
        a.datagram(&mut h.cx(), R, &search[..20], 0);
        assert!(h.violated(Tag::LdapUdp));
    }

    proptest! {
        #[test]
        fn any_bytes_are_analyzed(
            whole in 0usize..8,
            data in prop::collection::vec(any::<u8>(), 0..200),
            code in 0u8..32,
            cut in 1usize..64,
        ) {
            let mut chunks: Vec<_> = session().into_iter().take(whole).collect();
            chunks.push((O, message(9, code, &data)));
            chunks.push((O, sasl_bind(b"GSS-SPNEGO", &data)));
            chunks.push((R, data));
            let mut h = Harness::new(Proto::Tcp, 389);
            h.env.inner_protocols = true;
            run_with(&mut h, &chunks, cut);
        }
    }
}
