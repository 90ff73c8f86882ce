//! The dialog of a login: what users type, and what servers answer.

use std::collections::VecDeque;

use gannet_base::Dir;

use super::before_nul;
use super::events::AuthenticationSkipped;
use super::events::LoginConfused;
use super::events::LoginConfusedText;
use super::events::LoginDisplay;
use super::events::LoginFailure;
use super::events::LoginInputLine;
use super::events::LoginOutputLine;
use super::events::LoginPrompt;
use super::events::LoginState;
use super::events::LoginSuccess;
use super::events::LoginTerminal;
use super::events::LoginText;
use crate::Context;
use crate::ScriptRequest;

/// Lines of the server within which the first prompt or failure comes.
const MAX_LINES: u32 = 50;
/// Lines of the server after a prompt that count as a login, in addition to those that the user typed.
const MAX_LOOKAHEAD: u32 = 10;
/// Lines that the user typed and the server did not ask for yet. At more, the dialog is confused.
const MAX_TYPEAHEAD: usize = 12;
/// What a terminal of VMS sends for the line before.
const VMS_REPEAT: &[u8] = b"\x1b[A";

/// How far a login is, in the order of Zeek's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Authenticates,
    LoggedIn,
    /// There is no authentication.
    Skips,
    /// The server's texts mean nothing more.
    Confused,
}

/// The dialog of one connection.
#[derive(Debug)]
pub(super) struct Dialog {
    /// Name that weirds have.
    source: &'static str,
    state: State,
    /// Lines that the user typed.
    user_lines: u32,
    /// What that was at the last failure.
    failed_at: Option<u32>,
    /// Lines of the server.
    lines: u32,
    /// Which of them was the last prompt, and the last failure; 0: none.
    prompt: u32,
    failure: u32,
    typeahead: VecDeque<Vec<u8>>,
    /// Name at the client, of rlogin.
    pub(super) client: Option<Vec<u8>>,
    /// Name at the server.
    pub(super) user: Option<Vec<u8>>,
    /// The client sent a text of a server.
    saw_ploy: bool,
    is_vms: bool,
    nul_told: bool,
    is_over: bool,
}

impl Dialog {
    pub(super) fn new(cx: &mut Context<'_>, source: &'static str) -> Self {
        let dialog = Self {
            source,
            state: State::Authenticates,
            user_lines: 0,
            failed_at: None,
            lines: 0,
            prompt: 0,
            failure: 0,
            typeahead: VecDeque::new(),
            client: None,
            user: None,
            saw_ploy: false,
            is_vms: false,
            nul_told: false,
            is_over: false,
        };
        dialog.report(cx);
        dialog
    }

    /// A script sets the state. In a state that Zeek does not have, only lines are reported, as in Zeek.
    pub(super) fn handle_request(
        &mut self,
        cx: &mut Context<'_>,
        request: ScriptRequest<'_>,
    ) -> bool {
        let ScriptRequest::Login { state } = request else { return false };
        let state = match state {
            0 => State::Authenticates,
            2 => State::Skips,
            3 => State::Confused,
            _ => State::LoggedIn,
        };
        self.enter(cx, state);
        true
    }

    fn enter(&mut self, cx: &mut Context<'_>, state: State) {
        self.state = state;
        self.report(cx);
    }

    fn report(&self, cx: &mut Context<'_>) {
        let state = self.state as u64;
        cx.raise(|c| LoginState { c, state });
    }

    /// Whether nothing more of the connection matters.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// A line of a side. NULs are taken out; the first one is a weird.
    pub(super) fn line(&mut self, cx: &mut Context<'_>, from: Dir, line: &[u8]) {
        if !line.contains(&0) {
            return self.text(cx, from, line);
        }
        if !std::mem::replace(&mut self.nul_told, true) {
            cx.weird("NUL_in_line", "", Some(self.source));
        }
        let line: Vec<_> = line.iter().copied().filter(|b| *b != 0).collect();
        self.text(cx, from, &line);
    }

    fn text(&mut self, cx: &mut Context<'_>, from: Dir, line: &[u8]) {
        if self.state == State::Skips {
            return;
        }
        match from {
            Dir::Orig => cx.raise(|c| LoginInputLine { c, line }),
            Dir::Resp => cx.raise(|c| LoginOutputLine { c, line }),
        }
        match self.state {
            State::LoggedIn | State::Skips => return,
            State::Authenticates if cx.conn.is_partial() => self.enter(cx, State::Confused),
            State::Authenticates if from.is_orig() => return self.typed(cx, line),
            State::Authenticates => return self.answered(cx, line),
            State::Confused => {}
        }
        // The user's lines are reported; those of the server may still show that a login succeeded.
        if from.is_orig() {
            self.is_ploy(cx, line);
            confused_text(cx, line);
        } else if !self.saw_ploy && is_success(cx, line) {
            self.succeed(cx, line, true);
            self.enter(cx, State::LoggedIn);
        }
    }

    /// A line of the user.
    fn typed(&mut self, cx: &mut Context<'_>, line: &[u8]) {
        if self.is_vms
            && let Some(at) = memchr::memmem::find(line, VMS_REPEAT)
        {
            if line.len() > at + VMS_REPEAT.len() {
                return self.confuse(cx, "extra_repeat_text", line);
            }
            // What is repeated is the name, not the line before, which is the password.
            return match self.user.clone() {
                Some(user) if memchr::memmem::find(&user, VMS_REPEAT).is_some() => {
                    self.confuse(cx, "username_with_embedded_repeat", &user);
                }
                Some(user) => self.text(cx, Dir::Orig, &user),
                None => self.confuse(cx, "repeat_without_username", line),
            };
        }
        self.user_lines += 1;
        if !self.is_ploy(cx, line) {
            self.type_ahead(cx, line);
        }
    }

    /// A line of the server.
    fn answered(&mut self, cx: &mut Context<'_>, line: &[u8]) {
        if is_empty(line) {
            return;
        }
        self.lines += 1;
        if self.lines > MAX_LINES && self.prompt == 0 && self.failure == 0 {
            self.confuse(cx, "no_login_prompt", line);
        }
        let prompt = prompt_in(cx, line);
        let is_timeout = has(cx, "login_timeouts", line);
        if let Some(prompt) = prompt
            && !is_timeout
            && !is_success(cx, line)
        {
            self.prompted(cx, line, prompt);
        } else if is_timeout || is_failure(cx, line) {
            // Several texts may follow one line of the user: the first is the failure.
            if self.failed_at.is_none_or(|at| self.user_lines > at) {
                if is_timeout {
                    self.type_ahead(cx, b"<timeout>");
                }
                self.fail(cx, line);
            }
            // Lines are counted from here again until they mean a login.
            (self.prompt, self.failure) = (self.lines, self.lines);
            self.failed_at = Some(self.user_lines);
        } else if has(cx, "skip_authentication", line) {
            cx.raise(|c| AuthenticationSkipped { c });
            self.enter(cx, State::Skips);
            self.is_over = true;
        } else if is_success(cx, line) || self.is_late() {
            self.succeed(cx, line, false);
            self.enter(cx, State::LoggedIn);
        }
    }

    /// Whether enough lines came after a prompt to count as a login.
    fn is_late(&self) -> bool {
        let typed = self.typeahead.len() as u32;
        self.prompt > 0 && self.lines > self.prompt + MAX_LOOKAHEAD + typed
    }

    /// The server asks for a name or a password; `prompt` is what follows in its line.
    fn prompted(&mut self, cx: &mut Context<'_>, line: &[u8], mut prompt: usize) {
        self.is_vms = memchr::memmem::find(line, b"Username:").is_some();
        // Each prompt takes a line that was typed before, be it several in one line or in adjacent ones.
        let is_adjacent = self.prompt + 1 == self.lines && self.prompt != self.failure;
        loop {
            let next = match line.get(prompt + 1..) {
                Some(rest) => prompt_in(cx, rest).map(|at| prompt + 1 + at),
                None => None,
            };
            if next.is_none() && !is_adjacent {
                break;
            }
            let Some(typed) = self.typeahead.pop_front() else {
                self.confuse(cx, "multiple_login_prompts", line);
                break;
            };
            let (Some(next), false) = (next, is_adjacent) else { break };
            if !is_empty(&typed) {
                self.confuse(cx, "non_empty_multi_login", line);
                break;
            }
            prompt = next;
        }
        if self.state == State::Confused {
            return;
        }
        let user = line.get(prompt..).unwrap_or_default().trim_ascii_start();
        if !user.is_empty() && self.typeahead.is_empty() {
            self.type_ahead(cx, user);
        }
        self.prompt = self.lines;
        if has(cx, "direct_login_prompts", line) {
            self.succeed(cx, line, true);
            self.enter(cx, State::LoggedIn);
            self.is_over = true;
        }
    }

    /// A side ends. What was typed may have been a login.
    pub(super) fn end(&mut self, cx: &mut Context<'_>) {
        if self.state == State::Authenticates && !self.typeahead.is_empty() {
            self.succeed(cx, b"<EOF>", true);
            self.enter(cx, State::LoggedIn);
        }
    }

    /// A variable of a side's environment.
    pub(super) fn variable(&mut self, cx: &mut Context<'_>, from: Dir, name: &[u8], value: &[u8]) {
        if !from.is_orig() {
            return self.confuse(cx, "responder_environment", name);
        }
        match name {
            b"USER" => {
                if self.user.as_ref().is_some_and(|user| user != value) {
                    self.confuse(cx, "multiple_USERs", value);
                }
                self.user = Some(value.to_vec());
            }
            b"TERM" => self.terminal(cx, value),
            b"DISPLAY" => cx.raise(|c| LoginDisplay { c, display: value }),
            b"TTYPROMPT" => cx.raise(|c| LoginPrompt { c, prompt: value }),
            _ => {}
        }
    }

    /// The client's terminal.
    pub(super) fn terminal(&self, cx: &mut Context<'_>, terminal: &[u8]) {
        cx.raise(|c| LoginTerminal { c, terminal });
    }

    /// The name at the server, which rlogin sends ahead: like a line after a prompt.
    pub(super) fn named(&mut self, cx: &mut Context<'_>, user: &[u8]) {
        self.user_lines += 1;
        self.prompt += 1;
        self.type_ahead(cx, user);
    }

    fn succeed(&mut self, cx: &mut Context<'_>, line: &[u8], without_user: bool) {
        if cx.wants::<LoginSuccess<'_>>()
            && let Some((user, password)) = self.credentials(cx, line, without_user)
        {
            let client_user = self.client.as_deref().unwrap_or_default();
            let (user, password) = (&user, &password);
            cx.raise(|c| LoginSuccess { c, user, client_user, password, line });
        }
    }

    fn fail(&mut self, cx: &mut Context<'_>, line: &[u8]) {
        if cx.wants::<LoginFailure<'_>>()
            && let Some((user, password)) = self.credentials(cx, line, false)
        {
            let client_user = self.client.as_deref().unwrap_or_default();
            let (user, password) = (&user, &password);
            cx.raise(|c| LoginFailure { c, user, client_user, password, line });
        }
    }

    /// Name and password, out of what was typed.
    fn credentials(
        &mut self,
        cx: &mut Context<'_>,
        line: &[u8],
        without_user: bool,
    ) -> Option<(Vec<u8>, Vec<u8>)> {
        const NONE: &[u8] = b"<none>";
        let is_prompted = self.prompt > self.failure;
        if is_prompted {
            while self.typeahead.front().is_some_and(|text| is_empty(text)) {
                self.typeahead.pop_front();
            }
        }
        // After a failure the server may ask for a password only.
        let user = if is_prompted { self.typeahead.pop_front() } else { self.user.clone() };
        let Some(user) = user.or_else(|| without_user.then(|| NONE.to_vec())) else {
            let why = if is_prompted { "no_username" } else { "no_username2" };
            self.confuse(cx, why, line);
            return None;
        };
        self.user = Some(user.clone());
        let password = self.typeahead.pop_front().unwrap_or_else(|| NONE.to_vec());
        Some((user, password))
    }

    fn type_ahead(&mut self, cx: &mut Context<'_>, text: &[u8]) {
        if self.typeahead.len() >= MAX_TYPEAHEAD {
            self.confuse(cx, "excessive_typeahead", text);
        } else {
            self.typeahead.push_back(before_nul(text).to_vec());
        }
    }

    /// Whether the user sends a text of a server, to deceive.
    fn is_ploy(&mut self, cx: &mut Context<'_>, line: &[u8]) -> bool {
        let is = prompt_in(cx, line).is_some()
            || is_failure(cx, line)
            || is_success(cx, line)
            || has(cx, "skip_authentication", line);
        if is {
            self.saw_ploy = true;
            self.confuse(cx, "possible_login_ploy", line);
        }
        is
    }

    fn confuse(&mut self, cx: &mut Context<'_>, why: &str, line: &[u8]) {
        self.enter(cx, State::Confused);
        cx.raise(|c| LoginConfused { c, msg: why.as_bytes(), line });
        if cx.wants::<LoginConfusedText<'_>>() {
            for text in self.typeahead.drain(..) {
                confused_text(cx, &text);
            }
            confused_text(cx, line);
        }
    }
}

fn confused_text(cx: &mut Context<'_>, line: &[u8]) {
    cx.raise(|c| LoginConfusedText { c, line });
}

/// Whether a line has a text of a list of scripts. A list without texts is in any line.
fn has(cx: &mut Context<'_>, list: &'static str, line: &[u8]) -> bool {
    cx.env.logs.events.decide(&LoginText { list, line })
}

fn is_failure(cx: &mut Context<'_>, line: &[u8]) -> bool {
    has(cx, "login_failure_msgs", line) && !has(cx, "login_non_failure_msgs", line)
}

fn is_success(cx: &mut Context<'_>, line: &[u8]) -> bool {
    has(cx, "login_success_msgs", line)
}

/// What follows the first prompt in a line, as an offset. A line with a failure has none.
fn prompt_in(cx: &mut Context<'_>, line: &[u8]) -> Option<usize> {
    if !has(cx, "login_prompts", line) || is_failure(cx, line) {
        return None;
    }
    // A text that is in the beginning of a line is in all longer ones: the shortest ends with the text.
    let (mut low, mut high) = (1, line.len().max(1));
    while low < high {
        let middle = low.midpoint(high);
        if has(cx, "login_prompts", line.get(..middle).unwrap_or(line)) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Some(low)
}

fn is_empty(line: &[u8]) -> bool {
    line.iter().all(|b| b.is_ascii_whitespace() || *b == 0x0b)
}
