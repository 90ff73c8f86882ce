use gannet_base::Dir;
use gannet_base::Time;
use gannet_log::Port;

use super::message;
use super::message::Malformed;
use super::message::Target;
use super::rows::SocksRow;
use super::rows::Status;
use crate::Analyze;
use crate::Context;
use crate::Nested;
use crate::Tag;
use crate::support::Bytes;

/// Method: user and password.
const PASSWORD: u8 = 2;

/// The analyzer of one connection.
pub struct Analyzer {
    /// The server chose a method, and which.
    method: Option<u8>,
    logging_in: bool,
    /// Client and server have said what they have to.
    said: [bool; 2],
    session: Option<Session>,
    done: bool,
    /// It was no SOCKS after all: nothing is logged.
    failed: bool,
    /// Who analyses what the proxy carries.
    carried: Option<Box<Nested>>,
}

struct Session {
    ts: Time,
    version: u8,
    user: Option<Vec<u8>>,
    status: Option<Status>,
    request: Option<Target>,
    bound: Option<Target>,
}

impl Analyzer {
    /// For a new connection.
    pub fn new(_cx: &mut Context<'_>) -> Self {
        Self {
            method: None,
            logging_in: false,
            said: [false; 2],
            session: None,
            done: false,
            failed: false,
            carried: None,
        }
    }

    fn session(&mut self, cx: &Context<'_>, version: u8) -> &mut Session {
        self.session.get_or_insert_with(|| Session {
            ts: cx.now,
            version,
            user: None,
            status: None,
            request: None,
            bound: None,
        })
    }

    fn message(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) -> Result<(), Malformed> {
        let mut b = Bytes(data);
        if self.logging_in {
            return self.login(cx, from, &mut b);
        }
        match (b.u8().ok_or(Malformed::Short)?, from) {
            (4, Dir::Orig) => {
                let target = message::request4(&mut b)?;
                self.request(cx, 4, target);
            }
            (4, Dir::Resp) => {
                let (code, target) = message::reply4(&mut b)?;
                self.reply(cx, 4, code, target);
            }
            (5, Dir::Orig) if self.method.is_none() => message::methods5(&mut b)?,
            (5, Dir::Resp) if self.method.is_none() => {
                let method = b.u8().ok_or(Malformed::Short)?;
                self.logging_in = method != 0 && method != 0xff;
                self.method = Some(method);
            }
            (5, Dir::Orig) => {
                let target = message::request5(&mut b)?;
                self.request(cx, 5, target);
            }
            (5, Dir::Resp) => {
                let (code, target) = message::reply5(&mut b)?;
                self.reply(cx, 5, code, target);
            }
            (n, _) => {
                self.failed = true;
                let reason = format!("unsupported/unknown SOCKS version {n}");
                cx.violation(Tag::Socks, &reason, data);
            }
        }
        Ok(())
    }

    fn login(
        &mut self,
        cx: &mut Context<'_>,
        from: Dir,
        b: &mut Bytes<'_>,
    ) -> Result<(), Malformed> {
        let method = self.method.unwrap_or(0xff);
        if method != PASSWORD {
            let addl = method.to_string();
            cx.weird("socks5_unsupported_authentication_method", &addl, Some("SOCKS"));
        } else {
            let version = b.u8().ok_or(Malformed::Short)?;
            if version != 1 {
                let addl = format!("method {method}, version {version}");
                cx.weird("socks5_unsupported_authentication", &addl, Some("SOCKS"));
            } else if from.is_orig() {
                let user = message::login(b)?.to_vec();
                self.session(cx, 5).user = Some(user);
            } else {
                let code = b.u8().ok_or(Malformed::Short)?;
                self.session(cx, 5).status = Some(Status { version: 5, code });
            }
        }
        self.logging_in &= from.is_orig();
        Ok(())
    }

    fn request(&mut self, cx: &mut Context<'_>, version: u8, target: Target) {
        self.said[0] = true;
        self.session(cx, version).request = Some(target);
        let env = &mut *cx.env;
        env.socks.register(&mut env.logs, cx.now, cx.conn.id, "Tunnel::SOCKS");
    }

    fn reply(&mut self, cx: &mut Context<'_>, version: u8, code: u8, target: Target) {
        self.said[1] = true;
        let session = self.session(cx, version);
        session.bound = Some(target);
        session.status = Some(Status { version, code });
        cx.confirm(Tag::Socks);
    }
}

impl Analyze for Analyzer {
    fn stream(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) {
        if self.done || cx.conn.partial {
            return;
        }
        if self.said == [true; 2] {
            // What the proxy carries is found by its content from here on.
            let nested = self.carried.get_or_insert_with(|| {
                let mut nested = Box::new(Nested::new(Tag::Socks));
                nested.start(cx, Tag::Detector);
                nested
            });
            nested.stream(cx, from, data);
            return;
        }
        let Err(why) = self.message(cx, from, data) else { return };
        let reason = match why {
            Malformed::Short => "Binpac exception: binpac exception: out_of_bound".to_owned(),
            Malformed::Reserved(n) => format!("invalid value in reserved field: {n}"),
            Malformed::Command(n) => format!("undefined value in command field: {n}"),
        };
        self.done = why != Malformed::Short;
        self.failed = true;
        cx.violation(Tag::Socks, &reason, data);
    }

    fn gap(&mut self, cx: &mut Context<'_>, from: Dir, len: u64) {
        if let Some(nested) = &mut self.carried {
            nested.gap(cx, from, len);
        }
    }

    fn end(&mut self, cx: &mut Context<'_>, from: Dir) {
        if let Some(nested) = &mut self.carried {
            nested.end(cx, from);
        }
    }

    fn reset(&mut self, cx: &mut Context<'_>) {
        if let Some(nested) = &mut self.carried {
            nested.reset(cx);
        }
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        if let Some(nested) = &mut self.carried {
            nested.finish(cx);
        }
        let Some(s) = self.session.take().filter(|_| !self.failed) else { return };
        if !cx.conn.services.contains(Tag::Socks as u8) {
            return;
        }
        cx.log(&SocksRow {
            ts: s.ts,
            uid: cx.conn.uid,
            id: cx.conn.id,
            version: s.version,
            user: s.user.as_deref(),
            password: None,
            status: s.status,
            request_host: s.request.as_ref().and_then(|t| t.host),
            request_name: s.request.as_ref().and_then(|t| t.name.as_deref()),
            request_p: s.request.as_ref().map(|t| Port(t.port)),
            bound_host: s.bound.as_ref().and_then(|t| t.host),
            bound_name: s.bound.as_ref().and_then(|t| t.name.as_deref()),
            bound_p: s.bound.as_ref().map(|t| Port(t.port)),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Harness;
    use gannet_base::Proto;

    #[test]
    fn a_login_and_a_request() {
        let mut h = Harness::new(Proto::Tcp, 1080);
        let mut a = Analyzer::new(&mut h.cx());
        for (dir, data) in [
            (Dir::Orig, &b"\x05\x01\x02"[..]),
            (Dir::Resp, b"\x05\x02"),
            (Dir::Orig, b"\x01\x03bob\x02pw"),
            (Dir::Resp, b"\x01\x00"),
            (Dir::Orig, b"\x05\x01\x00\x01\xc0\x00\x02\x07\x00\x16"),
            (Dir::Resp, b"\x05\x00\x00\x01\x0a\x00\x00\x01\x10\x00"),
            (Dir::Orig, b"GET / HTTP/1.1\r\n\r\n"),
        ] {
            a.stream(&mut h.cx(), dir, data);
        }
        assert!(h.confirmed(Tag::Socks));
        assert!(h.confirmed(Tag::Http));
        assert_eq!(h.rows("tunnel")[0]["id.orig_p"], "0");
        h.conn.services.insert(Tag::Socks as u8);
        a.finish(&mut h.cx());
        let r = &h.rows("socks")[0];
        assert_eq!((&*r["user"], &*r["status"]), ("bob", "succeeded"));
        assert_eq!((&*r["request.host"], &*r["request_p"]), ("192.0.2.7", "22"));
        assert_eq!((&*r["bound.host"], &*r["bound_p"]), ("10.0.0.1", "4096"));
    }

    #[test]
    fn nothing_is_logged_without_an_answer() {
        let mut h = Harness::new(Proto::Tcp, 1080);
        let mut a = Analyzer::new(&mut h.cx());
        a.stream(&mut h.cx(), Dir::Orig, b"\x04\x01\x00\x50\x01\x02\x03\x04me\0");
        a.stream(&mut h.cx(), Dir::Resp, b"HTTP/1.0 400");
        a.finish(&mut h.cx());
        assert!(h.violated(Tag::Socks));
        assert!(h.rows("socks").is_empty());
    }
}
