use gannet_base::Dir;

use super::MAX_LINE;
use super::before_nul;
use super::dialog::Dialog;
use super::events::RshReply;
use super::events::RshRequest;
use super::names::Text;
use crate::Analyze;
use crate::Context;
use crate::ScriptRequest;
use crate::support::limit_reached;

const SOURCE: Option<&str> = Some("CONTENTS_RSH");

/// The analyzer of one rsh connection: a port for errors, two names, and lines.
#[derive(Debug)]
pub struct Rsh {
    states: [State; 2],
    texts: [Text; 2],
    /// The names were read, but no line of the client.
    is_new: bool,
    dialog: Dialog,
}

/// The next element of the stream of one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The client's port for errors, in digits.
    Port,
    ClientName,
    ServerName,
    Lines,
}

impl Rsh {
    /// For a new connection.
    pub fn new(cx: &mut Context<'_>) -> Self {
        Self {
            states: [State::Port, State::Lines],
            texts: Default::default(),
            is_new: false,
            dialog: Dialog::new(cx, "RSH"),
        }
    }

    fn byte(&mut self, cx: &mut Context<'_>, from: Dir, byte: u8) {
        let side = from.index();
        if self.states[side] == State::Port && cx.conn.is_partial() {
            self.states[side] = State::Lines;
        }
        match self.states[side] {
            State::Port if byte.is_ascii_digit() => {}
            State::Port if byte == 0 => self.states[side] = State::ClientName,
            State::Port => {
                cx.weird("bad_rsh_prolog", "", SOURCE);
                self.states[side] = State::Lines;
            }
            State::Lines if matches!(byte, b'\r' | b'\n' | 0) => self.line(cx, from),
            State::Lines => self.push(cx, from, byte),
            State::ClientName | State::ServerName => self.name(cx, from, byte),
        }
    }

    fn name(&mut self, cx: &mut Context<'_>, from: Dir, byte: u8) {
        self.push(cx, from, byte);
        let (state, text) = (&mut self.states[from.index()], &mut self.texts[from.index()]);
        if byte != 0 || *state == State::Lines {
            return;
        }
        let name = text.take_name();
        match *state {
            State::ClientName => {
                self.dialog.client = Some(name);
                *state = State::ServerName;
            }
            // An empty name is skipped.
            _ if !name.is_empty() => {
                self.dialog.user = Some(name);
                self.is_new = true;
                *state = State::Lines;
            }
            _ => {}
        }
    }

    fn line(&mut self, cx: &mut Context<'_>, from: Dir) {
        let line = self.texts[from.index()].take();
        self.dialog.line(cx, from, &line);
        let line = before_nul(&line).trim_ascii_start();
        let none = &b"<none>"[..];
        let client_user = self.dialog.client.as_deref().unwrap_or(none);
        let server_user = self.dialog.user.as_deref().unwrap_or(none);
        if from.is_orig() {
            let new_session = std::mem::take(&mut self.is_new);
            cx.raise(|c| RshRequest { c, client_user, server_user, line, new_session });
        } else {
            cx.raise(|c| RshReply { c, client_user, server_user, line });
        }
    }

    fn push(&mut self, cx: &mut Context<'_>, from: Dir, byte: u8) {
        if !self.texts[from.index()].push(byte) {
            self.states[from.index()] = State::Lines;
            limit_reached(cx, "rsh_line_size_exceeded", &MAX_LINE.to_string(), SOURCE);
        }
    }
}

impl Analyze for Rsh {
    fn handle_request(&mut self, cx: &mut Context<'_>, request: ScriptRequest<'_>) -> bool {
        self.dialog.handle_request(cx, request)
    }

    fn stream(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) {
        if !self.dialog.is_done() {
            data.iter().for_each(|byte| self.byte(cx, from, *byte));
        }
    }

    fn end(&mut self, cx: &mut Context<'_>, from: Dir) {
        if !self.texts[from.index()].is_empty() {
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

    fn rsh() -> (Harness, Rsh) {
        let mut h = Harness::new(Proto::Tcp, 514);
        h.listen("rsh_");
        let rsh = Rsh::new(&mut h.cx());
        (h, rsh)
    }

    #[test]
    fn a_command_and_its_answer() {
        let (mut h, mut rsh) = rsh();
        rsh.stream(&mut h.cx(), Dir::Orig, b"1022\0ann\0bob\0 ls -l\0");
        rsh.stream(&mut h.cx(), Dir::Resp, b"total 0\n");
        rsh.stream(&mut h.cx(), Dir::Orig, b"more");
        rsh.end(&mut h.cx(), Dir::Orig);
        let names = r#""client_user":"ann","server_user":"bob""#;
        let events = [
            format!(r#"rsh_request {names},"line":"ls -l","new_session":true"#),
            format!(r#"rsh_reply {names},"line":"total 0""#),
            format!(r#"rsh_request {names},"line":"more","new_session":false"#),
        ];
        assert_eq!(h.events(), events);
    }

    #[test]
    fn an_invalid_prolog_is_a_weird() {
        let (mut h, mut rsh) = rsh();
        rsh.stream(&mut h.cx(), Dir::Orig, b"ls\n");
        assert_eq!(h.rows("weird")[0]["name"], "bad_rsh_prolog");
    }

    proptest! {
        #[test]
        fn any_streams_are_analyzed(all: Vec<(bool, Vec<u8>)>) {
            let (mut h, mut rsh) = rsh();
            for (orig, data) in all {
                rsh.stream(&mut h.cx(), if orig { Dir::Orig } else { Dir::Resp }, &data);
            }
            rsh.end(&mut h.cx(), Dir::Orig);
        }
    }
}
