use gannet_base::Dir;

use super::MAX_LINE;
use super::dialog::Dialog;
use super::events::BadOptionTermination;
use super::options::Options;
use super::terminal::Item;
use super::terminal::Terminal;
use crate::Analyze;
use crate::Context;
use crate::ScriptRequest;
use crate::support::limit_reached;

/// Source of weirds about lines and options.
const SOURCE: Option<&str> = Some("NVT");

/// The analyzer of one Telnet connection.
#[derive(Debug)]
pub struct Telnet {
    terminals: [Terminal; 2],
    options: Options,
    dialog: Dialog,
    items: Vec<Item>,
}

impl Telnet {
    /// For a new connection.
    pub fn new(cx: &mut Context<'_>) -> Self {
        Self {
            terminals: Default::default(),
            options: Options::default(),
            dialog: Dialog::new(cx, "TELNET"),
            items: Vec::new(),
        }
    }

    fn item(&mut self, cx: &mut Context<'_>, from: Dir, item: &Item) {
        let Self { terminals, options, dialog, .. } = self;
        let mut limit = |name| limit_reached(cx, name, &MAX_LINE.to_string(), SOURCE);
        match item {
            Item::LongLine => limit("nvt_line_size_exceeded"),
            Item::LongOption => limit("nvt_option_size_exceeded"),
            Item::Line(line) => dialog.line(cx, from, line),
            Item::Option(command, option) => {
                options.option(cx, from, (*command, *option));
                for side in [Dir::Orig, Dir::Resp] {
                    terminals[side.index()].is_binary = options.is_binary(side);
                }
            }
            Item::Suboption(option, data) => {
                options.suboption(cx, Some(dialog), from, (*option, data));
            }
            Item::BadEnd => cx.raise(|c| BadOptionTermination { c }),
        }
    }
}

impl Analyze for Telnet {
    fn handle_request(&mut self, cx: &mut Context<'_>, request: ScriptRequest<'_>) -> bool {
        self.dialog.handle_request(cx, request)
    }

    fn stream(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) {
        if self.dialog.is_done() || self.options.encrypts(from) {
            return;
        }
        let mut items = std::mem::take(&mut self.items);
        for byte in data {
            self.terminals[from.index()].byte(*byte, &mut items);
            for item in items.drain(..) {
                self.item(cx, from, &item);
            }
        }
        self.items = items;
    }

    // As in Zeek, an incomplete line continues after a gap.

    fn end(&mut self, cx: &mut Context<'_>, from: Dir) {
        if self.terminals[from.index()].has_partial() {
            self.stream(cx, from, b"\n");
        }
        if !self.dialog.is_done() {
            self.dialog.end(cx);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::before_nul;
    use super::*;
    use crate::testing::Harness;
    use gannet_base::Proto;
    use proptest::prelude::*;

    fn telnet() -> (Harness, Telnet) {
        let mut h = Harness::new(Proto::Tcp, 23);
        h.listen("");
        let telnet = Telnet::new(&mut h.cx());
        (h, telnet)
    }

    /// The events of the given data.
    fn events_of(chunks: &[(Dir, &[u8])], texts: &[(&'static str, &'static str)]) -> Vec<String> {
        let (mut h, mut telnet) = telnet();
        h.answer(texts);
        for (from, data) in chunks {
            telnet.stream(&mut h.cx(), *from, data);
        }
        telnet.end(&mut h.cx(), Dir::Orig);
        telnet.finish(&mut h.cx());
        let lines = |e: &String| !e.starts_with("login_input") && !e.starts_with("login_output");
        h.events().into_iter().filter(lines).collect()
    }

    const TEXTS: &[(&str, &str)] = &[
        ("login_prompts", "login:"),
        ("login_prompts", "Password:"),
        ("login_failure_msgs", "incorrect"),
        ("login_success_msgs", "Last login"),
        ("login_timeouts", "timed out"),
        ("skip_authentication", "guest"),
        ("direct_login_prompts", "TERMINAL?"),
        ("login_prompts", "TERMINAL?"),
    ];

    #[test]
    fn the_state_of_a_login_is_reported_and_set() {
        let mut h = Harness::new(Proto::Tcp, 23);
        h.listen("gannet::login_state");
        let mut telnet = Telnet::new(&mut h.cx());
        assert_eq!(h.events(), ["gannet::login_state \"state\":0"]);
        h.answer(TEXTS);
        telnet.stream(&mut h.cx(), Dir::Resp, b"login: \n");
        telnet.stream(&mut h.cx(), Dir::Orig, b"ann\n");
        assert!(h.events().is_empty());
        telnet.stream(&mut h.cx(), Dir::Resp, b"Last login today\n");
        assert_eq!(h.events(), ["gannet::login_state \"state\":1"]);
        h.listen("login_");
        for (state, lines) in [(2, 0), (7, 1), (1, 1), (3, 2)] {
            assert!(telnet.handle_request(&mut h.cx(), ScriptRequest::Login { state }));
            telnet.stream(&mut h.cx(), Dir::Orig, b"text\n");
            assert_eq!(h.events().len(), lines, "{state}");
        }
        assert!(!telnet.handle_request(&mut h.cx(), ScriptRequest::SkipMail));
    }

    #[test]
    fn lines_of_both_sides() {
        let (mut h, mut telnet) = telnet();
        telnet.stream(&mut h.cx(), Dir::Orig, b"l\xff\xfd\x01s\r\n");
        telnet.stream(&mut h.cx(), Dir::Resp, b"a\r\0b\n");
        let events = h.events();
        let lines = [
            r#"login_input_line "line":"ls""#,
            r#"login_output_line "line":"a""#,
            r#"login_output_line "line":"b""#,
        ];
        assert_eq!(events, lines);
    }

    #[test]
    fn a_login_fails_and_succeeds() {
        let chunks: &[(Dir, &[u8])] = &[
            (Dir::Resp, b"login: \n"),
            (Dir::Orig, b"ann\n"),
            (Dir::Resp, b"Password:\n"),
            (Dir::Orig, b"one\n"),
            (Dir::Resp, b"Login incorrect\n"),
            (Dir::Resp, b"login:\n"),
            (Dir::Orig, b"bob\n"),
            (Dir::Orig, b"two\n"),
            (Dir::Resp, b"Last login: today\n"),
        ];
        let events = [
            r#"login_failure "user":"one","client_user":"","password":"<none>","line":"Login incorrect""#,
            r#"login_success "user":"bob","client_user":"","password":"two","line":"Last login: today""#,
        ];
        // As in Zeek, the prompt for the password consumes the previous line.
        assert_eq!(events_of(chunks, TEXTS), events);
    }

    #[test]
    fn a_server_without_authentication() {
        let chunks: &[(Dir, &[u8])] = &[(Dir::Resp, b"be our guest\n"), (Dir::Resp, b"login:\n")];
        assert_eq!(events_of(chunks, TEXTS), ["authentication_skipped "]);
        let chunks: &[(Dir, &[u8])] = &[(Dir::Resp, b"TERMINAL?\n")];
        let event = r#"login_success "user":"<none>","client_user":"","password":"<none>","line":"TERMINAL?""#;
        assert_eq!(events_of(chunks, TEXTS), [event]);
    }

    #[test]
    fn users_who_send_texts_of_servers() {
        let chunks: &[(Dir, &[u8])] = &[(Dir::Orig, b"Last login\n"), (Dir::Resp, b"Last login\n")];
        let events = [
            r#"login_confused "msg":"possible_login_ploy","line":"Last login""#,
            r#"login_confused_text "line":"Last login""#,
        ];
        assert_eq!(events_of(chunks, TEXTS), events);
    }

    #[test]
    fn a_server_that_waits_for_too_long() {
        let chunks: &[(Dir, &[u8])] = &[(Dir::Resp, b"login:\n"), (Dir::Resp, b"timed out\n")];
        let event = r#"login_failure "user":"<timeout>","client_user":"","password":"<none>","line":"timed out""#;
        assert_eq!(events_of(chunks, TEXTS), [event]);
    }

    #[test]
    fn too_many_typed_ahead_lines() {
        let chunks: &[(Dir, &[u8])] = &[(Dir::Orig, b"x\nx\nx\nx\nx\nx\nx\nx\nx\nx\nx\nx\ny\n")];
        let events = events_of(chunks, TEXTS);
        assert_eq!(events[0], r#"login_confused "msg":"excessive_typeahead","line":"y""#);
        let chunks: &[(Dir, &[u8])] = &[(Dir::Resp, &b"x\n".repeat(51))];
        let events = events_of(chunks, TEXTS);
        assert_eq!(events[0], r#"login_confused "msg":"no_login_prompt","line":"x""#);
    }

    #[test]
    fn terminal_display_and_user() {
        let chunks: &[(Dir, &[u8])] = &[
            (
                Dir::Orig,
                b"\xff\xfa\x18\0vt100\xff\xf0\xff\xfa\x27\0\0DISPLAY\x01a:0\x03USER\x01ann\xff\xf0",
            ),
            (
                Dir::Orig,
                b"\xff\xfa\x18\x02\xff\xf0\xff\xfa\x27\0\0TERM\xff\xf0\xff\xfa\x18\x01\xff\xfb\x18",
            ),
        ];
        let events = [
            r#"login_terminal "terminal":"vt100""#,
            r#"login_display "display":"a:0""#,
            "bad_option ",
            "bad_option ",
            "bad_option_termination ",
        ];
        assert_eq!(events_of(chunks, TEXTS), events);
    }

    #[test]
    fn authentication_and_encryption() {
        let chunks: &[(Dir, &[u8])] = &[
            (Dir::Resp, b"\xff\xfd\x25\xff\xfb\x26"),
            (Dir::Orig, b"\xff\xfb\x25\xff\xfd\x26\xff\xfa\x25\x03ann\xff\xf0"),
            (Dir::Orig, b"\xff\xfa\x25\0\x02\xff\xf0"),
            (Dir::Resp, b"\xff\xfa\x25\x01\xff\xf0"),
            (Dir::Orig, b"\xff\xfa\x25\0\x02\xff\xf0\xff\xfa\x26\x03\xff\xf0"),
            (Dir::Resp, b"\xff\xfa\x25\x02\x02\xff\xf0\xff\xfb\x26"),
            (Dir::Orig, b"\xff\xfa\x26\x03\xff\xf0"),
            (Dir::Orig, b"\xff\xfa\x18\x02\xff\xf0"),
        ];
        let events = [
            "inconsistent_option ",
            "inconsistent_option ",
            "authentication_accepted ",
            "inconsistent_option ",
            "activating_encryption ",
        ];
        // The data that follows is encrypted and not analyzed.
        assert_eq!(events_of(chunks, TEXTS), events);
    }

    #[test]
    fn the_first_nul_is_a_weird() {
        let (mut h, mut telnet) = telnet();
        telnet.stream(&mut h.cx(), Dir::Orig, b"a\0b\nc\0\n");
        assert_eq!(h.rows("weird").len(), 1);
        let events = h.events();
        assert_eq!(
            events[1..],
            [r#"login_input_line "line":"ab""#, r#"login_input_line "line":"c""#,]
        );
        assert_eq!(before_nul(b"a\0b"), b"a");
    }

    proptest! {
        #[test]
        fn any_streams_are_analyzed(all: Vec<(bool, Vec<u8>)>) {
            let (mut h, mut telnet) = telnet();
            h.answer(TEXTS);
            for (orig, data) in all {
                telnet.stream(&mut h.cx(), if orig { Dir::Orig } else { Dir::Resp }, &data);
            }
            telnet.end(&mut h.cx(), Dir::Orig);
        }
    }
}
