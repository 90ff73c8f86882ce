//! The dialog of a login: lines of the user and of the server.

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

/// Maximum number of lines of the server before the first prompt or failure; after more lines, the dialog is confused.
const MAX_LINES: u32 = 50;
/// A login counts as successful if more lines of the server than this and the number of typed-ahead lines follow a prompt.
const MAX_LOOKAHEAD: u32 = 10;
/// Maximum number of typed-ahead lines, for which no prompt has arrived; with more, the dialog is confused.
const MAX_TYPEAHEAD: usize = 12;
/// Key sequence of a VMS terminal that repeats the previous line.
const VMS_REPEAT: &[u8] = b"\x1b[A";

/// State of a login, in the order of Zeek's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Authenticates,
    LoggedIn,
    /// The server requires no authentication.
    Skips,
    /// The dialog cannot be interpreted; texts of the server are only searched for a success.
    Confused,
}

/// The dialog of one connection.
#[derive(Debug)]
pub(crate) struct Dialog {
    /// Source of weirds.
    source: &'static str,
    state: State,
    /// Number of lines of the user.
    user_lines: u32,
    /// Value of `user_lines` at the last failure.
    failed_at: Option<u32>,
    /// Number of lines of the server.
    lines: u32,
    /// Line numbers of the last prompt and of the last failure; 0 for none.
    prompt: u32,
    failure: u32,
    /// Lines of the user for which no prompt has arrived.
    typeahead: VecDeque<Vec<u8>>,
    /// Name of the user at the client; only for rlogin and rsh.
    pub(super) client: Option<Vec<u8>>,
    /// Name of the user at the server.
    pub(super) user: Option<Vec<u8>>,
    /// The client sent a text that only servers send.
    saw_ploy: bool,
    is_vms: bool,
    /// The weird of a NUL was reported.
    nul_reported: bool,
    /// The analysis has ended.
    is_done: bool,
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
            nul_reported: false,
            is_done: false,
        };
        dialog.report(cx);
        dialog
    }

    /// Sets the state at the request of a script. As in Zeek, only lines are reported in an unknown state.
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

    /// Whether the analysis of the connection has ended.
    pub(super) fn is_done(&self) -> bool {
        self.is_done
    }

    /// Processes a line of a side. NULs are removed; the first one is a weird.
    pub(super) fn line(&mut self, cx: &mut Context<'_>, from: Dir, line: &[u8]) {
        if !line.contains(&0) {
            return self.text(cx, from, line);
        }
        if !std::mem::replace(&mut self.nul_reported, true) {
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
            State::Authenticates if from.is_orig() => return self.user_line(cx, line),
            State::Authenticates => return self.server_line(cx, line),
            State::Confused => {}
        }
        // The lines of the user are reported; a line of the server may still indicate a successful login.
        if from.is_orig() {
            self.is_ploy(cx, line);
            confused_text(cx, line);
        } else if !self.saw_ploy && is_success(cx, line) {
            self.succeed(cx, line, true);
            self.enter(cx, State::LoggedIn);
        }
    }

    /// Processes a line of the user during authentication.
    fn user_line(&mut self, cx: &mut Context<'_>, line: &[u8]) {
        if self.is_vms
            && let Some(at) = memchr::memmem::find(line, VMS_REPEAT)
        {
            if line.len() > at + VMS_REPEAT.len() {
                return self.confuse(cx, "extra_repeat_text", line);
            }
            // As in Zeek, the key repeats the user name, not the previous line, which is the password.
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

    /// Processes a line of the server during authentication.
    fn server_line(&mut self, cx: &mut Context<'_>, line: &[u8]) {
        if is_empty(line) {
            return;
        }
        self.lines += 1;
        if self.lines > MAX_LINES && self.prompt == 0 && self.failure == 0 {
            self.confuse(cx, "no_login_prompt", line);
        }
        let prompt = prompt_end(cx, line);
        let is_timeout = matches_list(cx, "login_timeouts", line);
        if let Some(prompt) = prompt
            && !is_timeout
            && !is_success(cx, line)
        {
            self.handle_prompt(cx, line, prompt);
        } else if is_timeout || is_failure(cx, line) {
            // Several failure texts may follow one line of the user: only the first one counts.
            if self.failed_at.is_none_or(|at| self.user_lines > at) {
                if is_timeout {
                    self.type_ahead(cx, b"<timeout>");
                }
                self.fail(cx, line);
            }
            // Restart the count of lines after which a login counts as successful.
            (self.prompt, self.failure) = (self.lines, self.lines);
            self.failed_at = Some(self.user_lines);
        } else if matches_list(cx, "skip_authentication", line) {
            cx.raise(|c| AuthenticationSkipped { c });
            self.enter(cx, State::Skips);
            self.is_done = true;
        } else if is_success(cx, line) || self.exceeds_lookahead() {
            self.succeed(cx, line, false);
            self.enter(cx, State::LoggedIn);
        }
    }

    /// Whether enough lines follow a prompt for a login to count as successful.
    fn exceeds_lookahead(&self) -> bool {
        let typed = self.typeahead.len() as u32;
        self.prompt > 0 && self.lines > self.prompt + MAX_LOOKAHEAD + typed
    }

    /// Processes a prompt for a name or a password; `prompt` is the offset after it in the line.
    fn handle_prompt(&mut self, cx: &mut Context<'_>, line: &[u8], mut prompt: usize) {
        self.is_vms = memchr::memmem::find(line, b"Username:").is_some();
        // Each of several prompts in one line or in adjacent lines consumes a typed-ahead line.
        let is_adjacent = self.prompt + 1 == self.lines && self.prompt != self.failure;
        loop {
            let next = match line.get(prompt + 1..) {
                Some(rest) => prompt_end(cx, rest).map(|at| prompt + 1 + at),
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
        if matches_list(cx, "direct_login_prompts", line) {
            self.succeed(cx, line, true);
            self.enter(cx, State::LoggedIn);
            self.is_done = true;
        }
    }

    /// Handles the end of a side: typed-ahead lines may have been a login.
    pub(super) fn end(&mut self, cx: &mut Context<'_>) {
        if self.state == State::Authenticates && !self.typeahead.is_empty() {
            self.succeed(cx, b"<EOF>", true);
            self.enter(cx, State::LoggedIn);
        }
    }

    /// Processes an environment variable of a side.
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

    /// Reports the terminal of the client.
    pub(super) fn terminal(&self, cx: &mut Context<'_>, terminal: &[u8]) {
        cx.raise(|c| LoginTerminal { c, terminal });
    }

    /// Processes the user name that rlogin sends first, like a line after a prompt.
    pub(super) fn user_name(&mut self, cx: &mut Context<'_>, user: &[u8]) {
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

    /// Takes name and password from the typed-ahead lines.
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
        // After a failure, the server may prompt only for a password.
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

    /// Whether the user sends a text that only servers send, possibly as a deception.
    fn is_ploy(&mut self, cx: &mut Context<'_>, line: &[u8]) -> bool {
        let is = prompt_end(cx, line).is_some()
            || is_failure(cx, line)
            || is_success(cx, line)
            || matches_list(cx, "skip_authentication", line);
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

/// Whether a line contains a text of a list that scripts define. An empty list matches any line.
fn matches_list(cx: &mut Context<'_>, list: &'static str, line: &[u8]) -> bool {
    cx.env.logs.events.decide(&LoginText { list, line })
}

fn is_failure(cx: &mut Context<'_>, line: &[u8]) -> bool {
    matches_list(cx, "login_failure_msgs", line)
        && !matches_list(cx, "login_non_failure_msgs", line)
}

fn is_success(cx: &mut Context<'_>, line: &[u8]) -> bool {
    matches_list(cx, "login_success_msgs", line)
}

/// Returns the offset after the first prompt in a line; `None` if the line has a failure text.
fn prompt_end(cx: &mut Context<'_>, line: &[u8]) -> Option<usize> {
    if !matches_list(cx, "login_prompts", line) || is_failure(cx, line) {
        return None;
    }
    // All prefixes that contain the prompt are at least as long as the shortest one, which ends with the prompt: binary search.
    let (mut low, mut high) = (1, line.len().max(1));
    while low < high {
        let middle = low.midpoint(high);
        if matches_list(cx, "login_prompts", line.get(..middle).unwrap_or(line)) {
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
