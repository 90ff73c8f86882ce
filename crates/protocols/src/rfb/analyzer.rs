use gannet_base::Dir;

use super::events::*;
use super::message;
use super::message::Due;
use super::rows::Rows;
use crate::Analyze;
use crate::Context;
use crate::Tag;
use crate::support::BINPAC;
use crate::support::Bytes;
use crate::support::Frames;

/// Longest message: a server's colours.
const MAX_MESSAGE: usize = 6 + 6 * 65_535;

/// The analyzer of one connection.
pub struct Analyzer {
    due: [Due; 2],
    /// The kind of the message that has begun: later messages do not change it.
    begun: [Due; 2],
    frames: [Frames; 2],
    /// The client's minor version.
    minor: u32,
    rows: Rows,
    /// The server sent its screen parameters: pixels follow.
    shown: bool,
    /// Bytes are missing, or nothing made sense.
    lost: bool,
}

/// Why a message cannot be read: in words.
enum Malformed {
    /// Nothing more is read.
    Stop(String),
    /// Parsing continues nevertheless.
    GoOn(String),
}

impl Analyzer {
    /// For a new connection.
    pub fn new(_cx: &mut Context<'_>) -> Self {
        Self {
            due: [Due::Version; 2],
            begun: [Due::Version; 2],
            frames: [Frames::new(MAX_MESSAGE), Frames::new(MAX_MESSAGE)],
            minor: 0,
            rows: Rows::default(),
            shown: false,
            lost: false,
        }
    }

    fn set(&mut self, client: Due, server: Due) {
        self.due = [client, server];
    }

    fn message(&mut self, cx: &mut Context<'_>, from: Dir, d: &[u8]) -> Result<(), Malformed> {
        let due = self.begun[from.index()];
        if let Some(text) = message::long_text(due, d) {
            return Err(Malformed::Stop(format!("&enforce violation : {text}")));
        }
        let code = || Bytes(d).u32().unwrap_or_default();
        let first = d.first().copied().unwrap_or_default();
        match due {
            Due::Version => self.version(cx, from, d)?,
            Due::SecurityType => {
                cx.report(&mut self.rows, |c| RfbAuthenticationType { c, authtype: code() });
                match code() {
                    0 => self.set(Due::ClientInit, Due::Failure),
                    1 => self.set(Due::ClientInit, Due::ServerInit),
                    2 => self.set(Due::Vnc, Due::Vnc),
                    n => return Err(Malformed::GoOn(format!("invalid RFB security type {n}"))),
                }
            }
            Due::SecurityTypes => {
                self.due[1] = if first == 0 { Due::Failure } else { Due::Wait };
            }
            Due::Selection => {
                let authtype = first.into();
                cx.report(&mut self.rows, |c| RfbAuthenticationType { c, authtype });
                match first {
                    1 if self.minor > 7 => self.set(Due::ClientInit, Due::Result),
                    1 => self.set(Due::ClientInit, Due::ServerInit),
                    2 => self.set(Due::Vnc, Due::Vnc),
                    30 => self.set(Due::Wait, Due::AppleChallenge),
                    n => return Err(Malformed::GoOn(format!("unknown RFB auth selection: {n}"))),
                }
            }
            Due::Failure => self.due[1] = Due::ServerInit,
            Due::Vnc if from.is_orig() => self.due[0] = Due::ClientInit,
            Due::Vnc => self.set(Due::Vnc, Due::Result),
            Due::AppleChallenge => {
                let n = Bytes(&d[2..]).u16().unwrap_or_default();
                self.set(Due::AppleResponse(n), Due::Result);
            }
            Due::AppleResponse(_) => self.due[0] = Due::ClientInit,
            Due::Result => {
                let result = code() == 0;
                cx.raise(|c| RfbAuthResult { c, result: !result });
                cx.report(&mut self.rows, |c| RfbAuthenticationResult { c, result });
                match code() {
                    0 => self.due[1] = Due::ServerInit,
                    1 => self.due[1] = Due::Failure,
                    n => return Err(Malformed::GoOn(format!("invalid RFB auth result: {n}"))),
                }
            }
            Due::ClientInit => {
                self.due[0] = Due::Message;
                cx.report(&mut self.rows, |c| RfbShareFlag { c, flag: first != 0 });
            }
            Due::ServerInit => {
                self.shown = true;
                self.due[1] = Due::Picture;
                if let Some((width, height, name)) = message::server_init(d) {
                    let rows = &mut self.rows;
                    cx.report(rows, |c| RfbServerParameters { c, name, width, height });
                }
            }
            Due::Message if matches!(first, 0 | 2..=6) => {}
            Due::Message => {
                let reason = format!("invalid index for case: ClientMessage: {first}");
                return Err(Malformed::Stop(reason));
            }
            Due::Picture => picture(first, d)?,
            Due::Wait => {
                let who = if from.is_orig() { "client" } else { "server" };
                return Err(Malformed::Stop(format!("invalid data from RFB {who}")));
            }
        }
        Ok(())
    }

    fn version(&mut self, cx: &mut Context<'_>, from: Dir, d: &[u8]) -> Result<(), Malformed> {
        let (major, minor) = message::version(d)
            .ok_or_else(|| Malformed::Stop("string mismatch at -".to_owned()))?;
        let (major_version, minor_version, rows) = (major, minor, &mut self.rows);
        match from {
            Dir::Orig => cx.report(rows, |c| RfbClientVersion { c, major_version, minor_version }),
            Dir::Resp => cx.report(rows, |c| RfbServerVersion { c, major_version, minor_version }),
        }
        if from.is_orig() {
            self.minor = message::number(minor);
            if self.minor >= 7 {
                self.set(Due::Selection, Due::SecurityTypes);
            } else {
                self.set(Due::Wait, Due::SecurityType);
            }
            cx.confirm(Tag::Rfb);
        } else {
            self.due[1] = Due::Wait;
        }
        Ok(())
    }
}

/// A server's message behind its screen. Zeek's analyzer reads none that has pixels.
fn picture(kind: u8, d: &[u8]) -> Result<(), Malformed> {
    match kind {
        0 if d[2..] != [0, 0] => {
            let count = Bytes(&d[2..]).u16().unwrap_or_default();
            let reason = format!("out_of_bound: ServerFramebufferUpdate:rects: {count} > 0");
            Err(Malformed::Stop(reason))
        }
        0..=3 => Ok(()),
        _ => Err(Malformed::Stop(format!("invalid index for case: ServerMessage: {kind}"))),
    }
}

impl Analyze for Analyzer {
    fn stream(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) {
        // Of later data only the chunk with the screen parameters is parsed.
        if self.shown && !from.is_orig() {
            return;
        }
        let mut rest = data;
        let mut frames =
            std::mem::replace(&mut self.frames[from.index()], Frames::new(MAX_MESSAGE));
        loop {
            if self.lost || cx.conn.is_partial() {
                break;
            }
            if !frames.has_partial() {
                self.begun[from.index()] = self.due[from.index()];
            }
            let due = self.begun[from.index()];
            let Some(d) = frames.next(&mut rest, |d| message::length(due, d)) else { break };
            match self.message(cx, from, d) {
                Ok(()) => {}
                Err(Malformed::GoOn(reason)) => cx.violation(Tag::Rfb, &reason, &[]),
                Err(Malformed::Stop(why)) => {
                    cx.violation(Tag::Rfb, &format!("{BINPAC}{why}"), &[]);
                    self.lost = true;
                }
            }
        }
        self.frames[from.index()] = frames;
    }

    fn gap(&mut self, _cx: &mut Context<'_>, _from: Dir, _len: u64) {
        self.lost = true;
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        self.rows.write(cx);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Harness;
    use gannet_base::Proto;

    fn run(chunks: &[(Dir, &[u8])]) -> Harness {
        let mut h = Harness::new(Proto::Tcp, 5900);
        let mut a = Analyzer::new(&mut h.cx());
        for (dir, data) in chunks {
            a.stream(&mut h.cx(), *dir, data);
        }
        a.finish(&mut h.cx());
        h
    }

    #[test]
    fn a_desktop() {
        let (o, r) = (Dir::Orig, Dir::Resp);
        let mut screen = b"\x04\x00\x03\x00".to_vec();
        screen.extend_from_slice(&[32; 16]);
        screen.extend_from_slice(b"\0\0\0\x04desk\0\0\0\0");
        let h = run(&[
            (r, b"RFB 003.008\n"),
            (o, b"RFB 003.008\n"),
            (r, b"\x01\x02"),
            (o, b"\x02"),
            (r, &[7; 16]),
            (o, &[8; 16]),
            (r, b"\0\0\0\0"),
            (o, b"\x01"),
            (r, &screen),
            (r, b"pixels"),
            (o, b"\x03\0\0\0\0\0\0\0\0\0\x05\0\0\0\0\0"),
        ]);
        assert!(h.confirmed(Tag::Rfb));
        assert!(!h.violated(Tag::Rfb));
        let rows = h.rows("rfb");
        assert_eq!(rows.len(), 1);
        let r = &rows[0];
        assert_eq!((&*r["authentication_method"], &*r["auth"]), ("VNC", "T"));
        assert_eq!((&*r["desktop_name"], &*r["width"], &*r["height"]), ("desk", "1024", "768"));
        assert_eq!((&*r["client_minor_version"], &*r["share_flag"]), ("008", "T"));
    }

    #[test]
    fn what_comes_along_with_the_screen() {
        let told = |more: &[u8]| {
            let mut h = Harness::new(Proto::Tcp, 5900);
            let mut a = Analyzer::new(&mut h.cx());
            a.due[1] = Due::ServerInit;
            let mut screen = [0; 28].to_vec();
            screen[23] = 4;
            screen.extend_from_slice(more);
            a.stream(&mut h.cx(), Dir::Resp, &screen);
            a.stream(&mut h.cx(), Dir::Resp, b"pixels");
            a.finish(&mut h.cx());
            assert_eq!(h.rows("rfb")[0]["desktop_name"], r"\x00\x00\x00\x00");
            h.violated(Tag::Rfb)
        };
        assert!(!told(b"") && !told(b"p") && !told(b"\x02\x02\x03\0\0\0\0\0\0\x01a\x02"));
        assert!(!told(b"\0\0\0\0") && !told(b"\x01\0\0\0\0\x01rrggbb"));
        assert!(told(b"pixels") && told(b"\0\0\0\x01"));
    }

    #[test]
    fn a_message_that_has_begun_stays_what_it_is() {
        let (o, r) = (Dir::Orig, Dir::Resp);
        // The server refuses, and goes on to its screen; then the client chooses a way.
        let mut h = run(&[
            (r, b"RFB 003.008\n"),
            (o, b"RFB 003.008\n"),
            (r, b"\0\0\0\0\x04fail"),
            (r, b"\0\0\0\x02"),
            (o, b"\x01"),
            (r, &[0xff; 20]),
        ]);
        let long = format!("{BINPAC}&enforce violation : RFBServerInit:len");
        assert_eq!(h.violations(), [(Tag::Rfb, long)]);
        h.listen("rfb_auth");
        let mut a = Analyzer::new(&mut h.cx());
        a.due[1] = Due::Result;
        a.stream(&mut h.cx(), r, b"\0\0\0\x01");
        let events = h.events();
        assert!(events[0].starts_with("rfb_auth_result"), "{events:?}");
        assert_eq!(events.len(), 2);
        // A reason that is too long ends the analysis before it has arrived.
        a.stream(&mut h.cx(), r, b"\xff\0\0\0");
        assert!(a.lost);
    }

    #[test]
    fn turns_are_kept() {
        let h = run(&[(Dir::Resp, b"RFB 003.008\nand more")]);
        let reason = format!("{BINPAC}invalid data from RFB server");
        assert_eq!(h.violations(), [(Tag::Rfb, reason)]);
        assert_eq!(h.rows("rfb")[0]["server_major_version"], "003");
    }

    #[test]
    fn messages_that_are_not_known() {
        let mut h = Harness::new(Proto::Tcp, 5900);
        let mut a = Analyzer::new(&mut h.cx());
        a.due = [Due::Message, Due::Failure];
        a.stream(&mut h.cx(), Dir::Orig, b"\x96\0");
        a.lost = false;
        a.stream(&mut h.cx(), Dir::Orig, b"\x06\0\0\0\0\x01\0\0");
        a.stream(&mut h.cx(), Dir::Orig, &[0; 65_536]);
        let told: Vec<_> = h.violations().into_iter().map(|(_, r)| r.replace(BINPAC, "")).collect();
        let long = "&enforce violation : ClientCutText:len";
        assert_eq!(told, ["invalid index for case: ClientMessage: 150", long]);
    }
}
