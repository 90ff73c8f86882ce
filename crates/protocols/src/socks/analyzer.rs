use gannet_base::Dir;
use gannet_base::Proto;
use gannet_event::Port;

use super::events;
use super::events::SocksLoginUserpassReply;
use super::events::SocksLoginUserpassRequest;
use super::events::SocksReply;
use super::events::SocksRequest;
use super::message::Address;
use super::message::Message5;
use super::message::Reply4;
use super::message::Request4;
use super::message::login;
use super::message::methods;
use super::rows::Rows;
use crate::Analyze;
use crate::Context;
use crate::Nested;
use crate::ScriptRequest;
use crate::Tag;
use crate::violations::violation_counts;

/// Method code: user name and password.
const USER_PASSWORD: u8 = 2;
/// Code of the proxy's reply that no method is acceptable.
const NO_METHOD: u8 = 0xff;
const SOURCE: Option<&str> = Some("SOCKS");

/// State of a SOCKS 5 handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The client offers methods, and the proxy selects one.
    Methods,
    /// Messages of the selected method.
    Login(u8),
    /// Request and reply.
    Request,
}

/// The analyzer of one connection.
pub struct Analyzer {
    stage: Stage,
    /// Sides that sent their last handshake message, by [`Dir::index`].
    done: [bool; 2],
    /// The data is not SOCKS: parsing stopped.
    is_stopped: bool,
    /// Analyzers of the relayed stream.
    relayed: Option<Nested>,
    violated: bool,
    rows: Rows,
}

/// A message is truncated.
struct Short;

impl Analyzer {
    /// Creates the analyzer of a new connection.
    pub fn new(_cx: &mut Context<'_>) -> Self {
        Self {
            stage: Stage::Methods,
            done: [false; 2],
            is_stopped: false,
            relayed: None,
            violated: false,
            rows: Rows::default(),
        }
    }

    fn violation(&mut self, cx: &mut Context<'_>, reason: &str) {
        self.violated = true;
        cx.violation(Tag::Socks, reason, b"");
    }

    fn message(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) -> Result<(), Short> {
        if let Stage::Login(method) = self.stage {
            return self.login(cx, from, method, data);
        }
        let (version, data) = data.split_first().ok_or(Short)?;
        match (version, self.stage, from) {
            (4, _, Dir::Orig) => {
                let r = Request4::parse(data).ok_or(Short)?;
                self.request(cx, 4, r.command, r.to, r.port, r.user);
            }
            (4, _, Dir::Resp) => {
                // As in Zeek, only a reply that repeats the version before its first field is
                // parsed.
                let r = Reply4::parse(data.get(1..).ok_or(Short)?).ok_or(Short)?;
                self.reply(cx, 4, r.status, Address { host: Some(r.from), name: None }, r.port);
            }
            (5, Stage::Methods, Dir::Orig) => {
                methods(data).ok_or(Short)?;
            }
            (5, Stage::Methods, Dir::Resp) => {
                let method = *data.first().ok_or(Short)?;
                let needs_login = !matches!(method, 0 | NO_METHOD);
                self.stage = if needs_login { Stage::Login(method) } else { Stage::Request };
            }
            (5, _, Dir::Orig) => {
                let r = Message5::parse(data).ok_or(Short)?;
                let reason = if r.reserved != 0 {
                    format!("invalid value in reserved field: {}", r.reserved)
                } else if !(1..=3).contains(&r.code) {
                    format!("undefined value in command field: {}", r.code)
                } else {
                    self.request(cx, 5, r.code, r.address, r.port, b"");
                    return Ok(());
                };
                self.violation(cx, &reason);
                self.is_stopped = true;
            }
            (5, _, Dir::Resp) => {
                let r = Message5::parse(data).ok_or(Short)?;
                self.reply(cx, 5, r.code, r.address, r.port);
            }
            (other, ..) => {
                self.violation(cx, &format!("unsupported/unknown SOCKS version {other}"));
            }
        }
        Ok(())
    }

    fn login(
        &mut self,
        cx: &mut Context<'_>,
        from: Dir,
        method: u8,
        data: &[u8],
    ) -> Result<(), Short> {
        if method != USER_PASSWORD {
            let name = "socks5_unsupported_authentication_method";
            cx.weird(name, &method.to_string(), SOURCE);
        } else {
            let (version, data) = data.split_first().ok_or(Short)?;
            if *version != 1 {
                let addl = format!("method {method}, version {version}");
                cx.weird("socks5_unsupported_authentication", &addl, SOURCE);
            } else if from.is_orig() {
                let (user, password) = login(data).ok_or(Short)?;
                cx.report(&mut self.rows, |c| SocksLoginUserpassRequest { c, user, password });
            } else {
                let code = *data.first().ok_or(Short)?;
                let code = code.into();
                cx.report(&mut self.rows, |c| SocksLoginUserpassReply { c, code });
            }
        }
        if !from.is_orig() {
            self.stage = Stage::Request;
        }
        Ok(())
    }

    fn request(
        &mut self,
        cx: &mut Context<'_>,
        version: u8,
        command: u8,
        to: Address<'_>,
        port: u16,
        user: &[u8],
    ) {
        cx.report(&mut self.rows, |c| SocksRequest {
            c,
            version: version.into(),
            request_type: command.into(),
            sa: address(to),
            p: Port(port, Proto::Tcp),
            user,
        });
        cx.register_tunnel("Tunnel::SOCKS");
        self.done[0] = true;
    }

    fn reply(&mut self, cx: &mut Context<'_>, version: u8, code: u8, from: Address<'_>, port: u16) {
        cx.report(&mut self.rows, |c| SocksReply {
            c,
            version: version.into(),
            reply: code.into(),
            sa: address(from),
            p: Port(port, Proto::Tcp),
        });
        cx.confirm(Tag::Socks);
        self.done[1] = true;
    }
}

fn address(a: Address<'_>) -> events::Address<'_> {
    events::Address { host: a.host, name: a.name }
}

impl Analyze for Analyzer {
    fn stream(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) {
        if self.is_stopped || cx.conn.is_partial() {
            return;
        }
        if self.done == [true; 2] {
            let relayed = self.relayed.get_or_insert_with(|| {
                let mut nested = Nested::new(Tag::Socks);
                nested.start(cx, Tag::Detector);
                nested
            });
            relayed.stream(cx, from, data);
        } else if self.message(cx, from, data).is_err() {
            self.violation(cx, "Binpac exception: binpac exception: out_of_bound: SOCKS_Message");
        }
    }

    fn handle_request(&mut self, cx: &mut Context<'_>, request: ScriptRequest<'_>) -> bool {
        self.relayed.as_mut().is_some_and(|relayed| relayed.handle_request(cx, request))
    }

    fn flip(&mut self, _cx: &mut Context<'_>) {
        self.done.swap(0, 1);
    }

    fn suspend(&mut self, cx: &mut Context<'_>) -> bool {
        if let Some(mut relayed) = self.relayed.take() {
            relayed.finish(cx);
        }
        let rows = std::mem::take(&mut self.rows);
        *self = Self { rows, ..Self::new(cx) };
        true
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        if let Some(mut relayed) = self.relayed.take() {
            relayed.finish(cx);
        }
        // A session that was removed because of a violation is not logged.
        let failed = self.violated && violation_counts(cx.conn);
        if cx.conn.services.contains(Tag::Socks as u8) && !failed {
            self.rows.finish(cx);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Harness;
    use gannet_base::Dir::Orig;
    use gannet_base::Dir::Resp;
    use proptest::prelude::*;

    fn run(chunks: &[(Dir, &[u8])]) -> Harness {
        let mut h = Harness::new(Proto::Tcp, 1080);
        let mut a = Analyzer::new(&mut h.cx());
        for (from, data) in chunks {
            a.stream(&mut h.cx(), *from, data);
        }
        if h.confirmed(Tag::Socks) {
            h.conn.services.insert(Tag::Socks as u8);
        }
        a.finish(&mut h.cx());
        h
    }

    const LOGIN: [(Dir, &[u8]); 7] = [
        (Orig, b"\x05\x02\x00\x02"),
        (Resp, b"\x05\x02"),
        (Orig, b"\x01\x03bob\x02pw"),
        (Resp, b"\x01\x00"),
        (Orig, b"\x05\x01\x00\x01\xc0\x00\x02\x07\x00\x16"),
        (Resp, b"\x05\x00\x00\x03\x04here\x10\x00"),
        (Orig, b"GET /within HTTP/1.1\r\nHost: a\r\n\r\n"),
    ];

    #[test]
    fn what_is_relayed_goes_on_over_gaps() {
        let mut h = Harness::new(Proto::Tcp, 1080);
        let mut a = Analyzer::new(&mut h.cx());
        for (from, data) in LOGIN.split_last().unwrap().1 {
            a.stream(&mut h.cx(), *from, data);
        }
        a.stream(&mut h.cx(), Orig, b"GET /within HTTP/1.1\r\nHo");
        a.gap(&mut h.cx(), Orig, 100);
        a.stream(&mut h.cx(), Orig, b"st: a\r\n\r\n");
        a.finish(&mut h.cx());
        let r = &h.rows("http")[0];
        assert_eq!((&*r["uri"], &*r["host"]), ("/within", "a"));
    }

    #[test]
    fn version_5_with_a_login() {
        let h = run(&LOGIN);
        assert!(h.confirmed(Tag::Socks) && !h.violated(Tag::Socks));
        let rows = h.rows("socks");
        assert_eq!(rows.len(), 1);
        let get = |k: &str| rows[0][k].as_str();
        assert_eq!((get("version"), get("user"), get("password")), ("5", "bob", "-"));
        assert_eq!((get("request.host"), get("request.name")), ("192.0.2.7", "-"));
        assert_eq!((get("bound.host"), get("bound.name")), ("-", "here"));
        assert_eq!((get("request_p"), get("bound_p"), get("status")), ("22", "4096", "succeeded"));
        assert_eq!(h.rows("tunnel")[0]["tunnel_type"], "Tunnel::SOCKS");
        // The rest is analyzed by the nested analyzers.
        assert!(h.confirmed(Tag::Http) && h.starts.is_empty());
        assert_eq!(h.rows("http")[0]["uri"], "/within");
    }

    #[test]
    fn version_4a() {
        let h = run(&[
            (Orig, b"\x04\x01\x00\x50\x00\x00\x00\x01\0a.example\0"),
            (Resp, b"\x04\x00\x5b\x00\x50\x00\x00\x00\x00"),
        ]);
        let rows = h.rows("socks");
        assert_eq!(rows[0]["version"], "4");
        assert_eq!(rows[0]["request.name"], "a.example");
        assert_eq!(rows[0]["request.host"], "0.0.0.1");
        assert_eq!(rows[0]["status"], "general SOCKS server failure");
    }

    #[test]
    fn what_is_not_confirmed_or_fails_is_not_logged() {
        assert!(run(&LOGIN[..5]).rows("socks").is_empty());
        let mut bad = LOGIN.to_vec();
        bad[6] = (Orig, b"x");
        bad.insert(5, (Orig, b"\x06"));
        let h = run(&bad);
        assert!(h.violated(Tag::Socks) && h.confirmed(Tag::Socks));
        assert!(h.rows("socks").is_empty());
        let h = run(&[
            (Orig, b"\x05\x01\x00"),
            (Resp, b"\x05\x00"),
            (Orig, b"\x05\x09\x00\x01\x01\x01\x01\x01\x00\x01"),
        ]);
        assert!(h.violated(Tag::Socks));
        assert_eq!(status_of(b"\x05\x63"), "unknown-99");
    }

    #[test]
    fn what_returns_after_a_violation_knows_the_request() {
        let mut h = Harness::new(Proto::Tcp, 1080);
        let mut a = Analyzer::new(&mut h.cx());
        a.stream(&mut h.cx(), Orig, b"\x04\x01\x00\x50\xc0\x00\x02\x07\0");
        a.stream(&mut h.cx(), Resp, b"\x06");
        assert!(h.violated(Tag::Socks) && a.suspend(&mut h.cx()));
        a.stream(&mut h.cx(), Resp, b"\x04\x00\x5a\x00\x50\x00\x00\x00\x00");
        h.conn.services.insert(Tag::Socks as u8);
        a.finish(&mut h.cx());
        let rows = h.rows("socks");
        assert_eq!(rows.len(), 1);
        assert_eq!((&*rows[0]["request.host"], &*rows[0]["status"]), ("192.0.2.7", "succeeded"));
    }

    fn status_of(reply: &[u8]) -> String {
        let reply = [reply, b"\x00\x01\x01\x01\x01\x01\x00\x01"].concat();
        let h = run(&[(Orig, b"\x05\x01\x00"), (Resp, b"\x05\x00"), (Resp, &reply)]);
        h.rows("socks")[0]["status"].clone()
    }

    #[test]
    fn unknown_logins_are_odd() {
        let h = run(&[(Orig, b"\x05\x01\x01"), (Resp, b"\x05\x01"), (Orig, b"\x01")]);
        let rows = h.rows("weird");
        assert_eq!(rows[0]["name"], "socks5_unsupported_authentication_method");
        assert_eq!((&*rows[0]["addl"], &*rows[0]["source"]), ("1", "SOCKS"));
    }

    proptest! {
        #[test]
        fn any_bytes_do(chunks in prop::collection::vec(
            (any::<bool>(), prop::collection::vec(prop_oneof![0u8..6, any::<u8>()], 1..24)), 0..8))
        {
            let chunks: Vec<_> =
                chunks.iter().map(|(o, d)| (if *o { Orig } else { Resp }, &d[..])).collect();
            let h = run(&chunks);
            prop_assert!(h.rows("socks").len() <= usize::from(h.confirmed(Tag::Socks)));
        }
    }
}
