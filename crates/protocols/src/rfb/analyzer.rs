use gannet_base::Dir;

use super::events::*;
use super::message;
use super::message::Expected;
use super::rows::Rows;
use crate::Analyze;
use crate::Context;
use crate::Tag;
use crate::support::BINPAC;
use crate::support::Bytes;
use crate::support::Frames;

/// Maximum length of a message, in bytes: a colour map of a server.
const MAX_MESSAGE: usize = 6 + 6 * 65_535;

/// The analyzer of one connection.
pub struct Analyzer {
    due: [Expected; 2],
    /// The kind of each side's incomplete message: later messages of the other side do not change
    /// it.
    incomplete: [Expected; 2],
    frames: [Frames; 2],
    /// The client's minor version.
    minor: u32,
    rows: Rows,
    /// The server sent its screen parameters: pixels follow, which are not parsed.
    has_screen: bool,
    /// Bytes are missing, or the data was invalid: nothing more is parsed.
    is_opaque: bool,
}

/// Reason why a message is malformed.
enum Malformed {
    /// Parsing stops.
    Stop(String),
    /// Parsing continues.
    Continue(String),
}

impl Analyzer {
    /// Creates the analyzer of a new connection.
    pub fn new(_cx: &mut Context<'_>) -> Self {
        Self {
            due: [Expected::Version; 2],
            incomplete: [Expected::Version; 2],
            frames: [Frames::new(MAX_MESSAGE), Frames::new(MAX_MESSAGE)],
            minor: 0,
            rows: Rows::default(),
            has_screen: false,
            is_opaque: false,
        }
    }

    fn set(&mut self, client: Expected, server: Expected) {
        self.due = [client, server];
    }

    fn message(&mut self, cx: &mut Context<'_>, from: Dir, d: &[u8]) -> Result<(), Malformed> {
        let due = self.incomplete[from.index()];
        if let Some(text) = message::long_text(due, d) {
            return Err(Malformed::Stop(format!("&enforce violation : {text}")));
        }
        let code = || Bytes(d).u32().unwrap_or_default();
        let first = d.first().copied().unwrap_or_default();
        match due {
            Expected::Version => self.version(cx, from, d)?,
            Expected::SecurityType => {
                cx.report(&mut self.rows, |c| RfbAuthenticationType { c, authtype: code() });
                match code() {
                    0 => self.set(Expected::ClientInit, Expected::Failure),
                    1 => self.set(Expected::ClientInit, Expected::ServerInit),
                    2 => self.set(Expected::Vnc, Expected::Vnc),
                    n => return Err(Malformed::Continue(format!("invalid RFB security type {n}"))),
                }
            }
            Expected::SecurityTypes => {
                self.due[1] = if first == 0 { Expected::Failure } else { Expected::Nothing };
            }
            Expected::Selection => {
                let authtype = first.into();
                cx.report(&mut self.rows, |c| RfbAuthenticationType { c, authtype });
                match first {
                    1 if self.minor > 7 => self.set(Expected::ClientInit, Expected::Result),
                    1 => self.set(Expected::ClientInit, Expected::ServerInit),
                    2 => self.set(Expected::Vnc, Expected::Vnc),
                    30 => self.set(Expected::Nothing, Expected::AppleChallenge),
                    n => {
                        return Err(Malformed::Continue(format!(
                            "unknown RFB auth selection: {n}"
                        )));
                    }
                }
            }
            Expected::Failure => self.due[1] = Expected::ServerInit,
            Expected::Vnc if from.is_orig() => self.due[0] = Expected::ClientInit,
            Expected::Vnc => self.set(Expected::Vnc, Expected::Result),
            Expected::AppleChallenge => {
                let n = Bytes(&d[2..]).u16().unwrap_or_default();
                self.set(Expected::AppleResponse(n), Expected::Result);
            }
            Expected::AppleResponse(_) => self.due[0] = Expected::ClientInit,
            Expected::Result => {
                let result = code() == 0;
                cx.raise(|c| RfbAuthResult { c, result: !result });
                cx.report(&mut self.rows, |c| RfbAuthenticationResult { c, result });
                match code() {
                    0 => self.due[1] = Expected::ServerInit,
                    1 => self.due[1] = Expected::Failure,
                    n => return Err(Malformed::Continue(format!("invalid RFB auth result: {n}"))),
                }
            }
            Expected::ClientInit => {
                self.due[0] = Expected::ClientMessage;
                cx.report(&mut self.rows, |c| RfbShareFlag { c, flag: first != 0 });
            }
            Expected::ServerInit => {
                self.has_screen = true;
                self.due[1] = Expected::ServerMessage;
                if let Some((width, height, name)) = message::server_init(d) {
                    let rows = &mut self.rows;
                    cx.report(rows, |c| RfbServerParameters { c, name, width, height });
                }
            }
            Expected::ClientMessage if matches!(first, 0 | 2..=6) => {}
            Expected::ClientMessage => {
                let reason = format!("invalid index for case: ClientMessage: {first}");
                return Err(Malformed::Stop(reason));
            }
            Expected::ServerMessage => server_message(first, d)?,
            Expected::Nothing => {
                let side = if from.is_orig() { "client" } else { "server" };
                return Err(Malformed::Stop(format!("invalid data from RFB {side}")));
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
            self.minor = message::leading_number(minor);
            if self.minor >= 7 {
                self.set(Expected::Selection, Expected::SecurityTypes);
            } else {
                self.set(Expected::Nothing, Expected::SecurityType);
            }
            cx.confirm(Tag::Rfb);
        } else {
            self.due[1] = Expected::Nothing;
        }
        Ok(())
    }
}

/// Checks a server's message after the screen parameters. Zeek's analyzer supports none with
/// pixels.
fn server_message(kind: u8, d: &[u8]) -> Result<(), Malformed> {
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
        // Of later data of the server, only the chunk with the screen parameters is parsed.
        if self.has_screen && !from.is_orig() {
            return;
        }
        let mut rest = data;
        let mut frames =
            std::mem::replace(&mut self.frames[from.index()], Frames::new(MAX_MESSAGE));
        loop {
            if self.is_opaque || cx.conn.is_partial() {
                break;
            }
            if !frames.has_partial() {
                self.incomplete[from.index()] = self.due[from.index()];
            }
            let due = self.incomplete[from.index()];
            let Some(d) = frames.next(&mut rest, |d| message::length(due, d)) else { break };
            match self.message(cx, from, d) {
                Ok(()) => {}
                Err(Malformed::Continue(reason)) => cx.violation(Tag::Rfb, &reason, &[]),
                Err(Malformed::Stop(why)) => {
                    cx.violation(Tag::Rfb, &format!("{BINPAC}{why}"), &[]);
                    self.is_opaque = true;
                }
            }
        }
        self.frames[from.index()] = frames;
    }

    fn gap(&mut self, _cx: &mut Context<'_>, _from: Dir, _len: u64) {
        self.is_opaque = true;
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
        let reported = |more: &[u8]| {
            let mut h = Harness::new(Proto::Tcp, 5900);
            let mut a = Analyzer::new(&mut h.cx());
            a.due[1] = Expected::ServerInit;
            let mut screen = [0; 28].to_vec();
            screen[23] = 4;
            screen.extend_from_slice(more);
            a.stream(&mut h.cx(), Dir::Resp, &screen);
            a.stream(&mut h.cx(), Dir::Resp, b"pixels");
            a.finish(&mut h.cx());
            assert_eq!(h.rows("rfb")[0]["desktop_name"], r"\x00\x00\x00\x00");
            h.violated(Tag::Rfb)
        };
        assert!(
            !reported(b"") && !reported(b"p") && !reported(b"\x02\x02\x03\0\0\0\0\0\0\x01a\x02")
        );
        assert!(!reported(b"\0\0\0\0") && !reported(b"\x01\0\0\0\0\x01rrggbb"));
        assert!(reported(b"pixels") && reported(b"\0\0\0\x01"));
    }

    #[test]
    fn a_message_that_has_begun_stays_what_it_is() {
        let (o, r) = (Dir::Orig, Dir::Resp);
        // The server refuses, and continues with its screen; then the client chooses a security
        // type.
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
        a.due[1] = Expected::Result;
        a.stream(&mut h.cx(), r, b"\0\0\0\x01");
        let events = h.events();
        assert!(events[0].starts_with("rfb_auth_result"), "{events:?}");
        assert_eq!(events.len(), 2);
        // A reason whose length is too large ends the analysis before the reason arrives.
        a.stream(&mut h.cx(), r, b"\xff\0\0\0");
        assert!(a.is_opaque);
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
        a.due = [Expected::ClientMessage, Expected::Failure];
        a.stream(&mut h.cx(), Dir::Orig, b"\x96\0");
        a.is_opaque = false;
        a.stream(&mut h.cx(), Dir::Orig, b"\x06\0\0\0\0\x01\0\0");
        a.stream(&mut h.cx(), Dir::Orig, &[0; 65_536]);
        let reported: Vec<_> =
            h.violations().into_iter().map(|(_, r)| r.replace(BINPAC, "")).collect();
        let long = "&enforce violation : ClientCutText:len";
        assert_eq!(reported, ["invalid index for case: ClientMessage: 150", long]);
    }
}
