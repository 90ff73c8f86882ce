use gannet_base::Dir;

use super::MAX_LINE;
use super::dialog::Dialog;
use super::names::Text;
use crate::Analyze;
use crate::Context;
use crate::ScriptRequest;
use crate::support::limit_reached;

const SOURCE: Option<&str> = Some("CONTENTLINE");

/// Length of a window size after `ss`, in bytes.
const WINDOW_LEN: u8 = 8;

/// The analyzer of one connection of rlogin (RFC 1282).
#[derive(Debug)]
pub struct Rlogin {
    ends: [End; 2],
    dialog: Dialog,
}

/// State of one side.
#[derive(Debug)]
struct End {
    state: State,
    text: Text,
}

/// The next element of the stream of one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The NUL at the start of the client's stream.
    Start,
    ClientName,
    ServerName,
    Terminal,
    /// The NUL at the start of the server's stream.
    Acknowledgment,
    Lines,
    /// The server did not start with a NUL: it rejects the connection.
    Rejected,
    /// The stream cannot be interpreted; lines are still reported.
    Unknown,
    /// A window size message: bytes 255, 255, `s`, `s` and the size. The value is the number of the first four bytes seen.
    Control(u8),
    /// Number of remaining bytes of the window size.
    Window(u8),
}

impl Rlogin {
    /// For a new connection.
    pub fn new(cx: &mut Context<'_>) -> Self {
        let end = |state| End { state, text: Text::default() };
        Self {
            ends: [end(State::Start), end(State::Acknowledgment)],
            dialog: Dialog::new(cx, "RLOGIN"),
        }
    }

    fn byte(&mut self, cx: &mut Context<'_>, from: Dir, byte: u8) {
        let is_rejected = self.ends[from.other().index()].state == State::Rejected;
        let end = &mut self.ends[from.index()];
        if matches!(end.state, State::Start | State::Acknowledgment) && cx.conn.is_partial() {
            end.state = State::Unknown;
        }
        match end.state {
            State::Start if byte == 0 => end.state = State::ClientName,
            State::Start => {
                cx.weird("bad_rlogin_prolog", "", SOURCE);
                end.state = State::Unknown;
            }
            State::Acknowledgment if byte == 0 => end.state = State::Lines,
            State::Acknowledgment => end.state = State::Rejected,
            State::ClientName | State::ServerName | State::Terminal => self.name(cx, from, byte),
            State::Control(seen) => match (seen, byte) {
                (1, 255) | (2, b's') => end.state = State::Control(seen + 1),
                (3, b's') => end.state = State::Window(WINDOW_LEN),
                (1, _) => {
                    // It was not a window size message.
                    end.state = State::Lines;
                    self.push(cx, from, 255);
                    self.byte(cx, from, byte);
                }
                _ => {
                    end.state = State::Unknown;
                    for byte in &b"\xff\xffs"[..usize::from(seen)] {
                        self.push(cx, from, *byte);
                    }
                }
            },
            State::Window(1) => end.state = State::Lines,
            State::Window(remaining) => end.state = State::Window(remaining - 1),
            State::Lines | State::Rejected | State::Unknown => {
                if end.state == State::Lines && is_rejected {
                    cx.weird("rlogin_text_after_rejected", "", SOURCE);
                    end.state = State::Unknown;
                }
                match byte {
                    b'\r' | b'\n' => {
                        let line = end.text.take();
                        self.dialog.line(cx, from, &line);
                    }
                    255 if from.is_orig() && end.state == State::Lines => {
                        end.state = State::Control(1);
                    }
                    _ => self.push(cx, from, byte),
                }
            }
        }
    }

    fn name(&mut self, cx: &mut Context<'_>, from: Dir, byte: u8) {
        self.push(cx, from, byte);
        let end = &mut self.ends[from.index()];
        if byte != 0 || end.state == State::Unknown {
            return;
        }
        let name = end.text.take_name();
        match end.state {
            State::ClientName => {
                end.state = State::ServerName;
                self.dialog.client = Some(name);
            }
            State::ServerName => {
                end.state = State::Terminal;
                self.dialog.user_name(cx, &name);
            }
            _ => {
                end.state = State::Lines;
                self.dialog.terminal(cx, &name);
            }
        }
    }

    fn push(&mut self, cx: &mut Context<'_>, from: Dir, byte: u8) {
        let end = &mut self.ends[from.index()];
        if !end.text.push(byte) {
            end.state = State::Unknown;
            limit_reached(cx, "rlogin_line_size_exceeded", &MAX_LINE.to_string(), SOURCE);
        }
    }
}

impl Analyze for Rlogin {
    fn handle_request(&mut self, cx: &mut Context<'_>, request: ScriptRequest<'_>) -> bool {
        self.dialog.handle_request(cx, request)
    }

    fn stream(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) {
        if !self.dialog.is_done() {
            data.iter().for_each(|byte| self.byte(cx, from, *byte));
        }
    }

    fn end(&mut self, cx: &mut Context<'_>, from: Dir) {
        if !self.ends[from.index()].text.is_empty() {
            self.stream(cx, from, b"\n");
        }
        if !self.dialog.is_done() {
            self.dialog.end(cx);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Harness;
    use gannet_base::Proto;
    use proptest::prelude::*;

    fn rlogin() -> (Harness, Rlogin) {
        let mut h = Harness::new(Proto::Tcp, 513);
        h.listen("login_");
        let rlogin = Rlogin::new(&mut h.cx());
        (h, rlogin)
    }

    #[test]
    fn names_terminal_and_lines() {
        let (mut h, mut rlogin) = rlogin();
        rlogin.stream(&mut h.cx(), Dir::Orig, b"\0ann\0bo");
        rlogin.stream(&mut h.cx(), Dir::Orig, b"b\0xterm/9600\0");
        rlogin.stream(&mut h.cx(), Dir::Resp, b"\0hi\r");
        rlogin.stream(&mut h.cx(), Dir::Orig, b"l\xff\xffss\0\x18\0\x50\0\0\0\0s\r");
        let events = [
            r#"login_terminal "terminal":"xterm/9600""#,
            r#"login_output_line "line":"hi""#,
            r#"login_input_line "line":"ls""#,
        ];
        assert_eq!(h.events(), events);
        assert_eq!(rlogin.dialog.client.as_deref(), Some(&b"ann"[..]));
        assert!(h.rows("weird").is_empty());
    }

    #[test]
    fn incomplete_window_sizes_are_text() {
        let (mut h, mut rlogin) = rlogin();
        rlogin.stream(&mut h.cx(), Dir::Orig, b"\0a\0b\0c\0x\xffy\rz\xff\xffs?w\r");
        let events = h.events();
        assert_eq!(
            events[1..],
            [
                r#"login_input_line "line":"x\xffy""#.replace("\\x", "\\\\x"),
                r#"login_input_line "line":"z\xff\xffsw""#.replace("\\x", "\\\\x"),
            ]
        );
    }

    #[test]
    fn violations_are_weirds() {
        let (mut h, mut rlogin) = rlogin();
        rlogin.stream(&mut h.cx(), Dir::Orig, b"x");
        assert_eq!(h.rows("weird")[0]["name"], "bad_rlogin_prolog");
        let (mut h, mut rlogin) = self::rlogin();
        rlogin.stream(&mut h.cx(), Dir::Orig, b"\0a\0b\0c\0");
        rlogin.stream(&mut h.cx(), Dir::Resp, b"no\n");
        rlogin.stream(&mut h.cx(), Dir::Orig, b"ls\n");
        assert_eq!(h.rows("weird")[0]["name"], "rlogin_text_after_rejected");
    }

    proptest! {
        #[test]
        fn any_streams_are_analyzed(all: Vec<(bool, Vec<u8>)>) {
            let (mut h, mut rlogin) = rlogin();
            for (orig, data) in all {
                rlogin.stream(&mut h.cx(), if orig { Dir::Orig } else { Dir::Resp }, &data);
            }
            rlogin.end(&mut h.cx(), Dir::Orig);
        }
    }
}
