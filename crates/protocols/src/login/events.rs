//! Events of logins.

use gannet_event::Connection;

gannet_event::events! {
    crate::events::module_of(crate::Tag::Telnet);

    /// A user logged in.
    pub struct LoginSuccess<'a> = "login_success", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Name of the user; `<none>` if there was none.
        user: &'a [u8] = "user",
        /// Name at the client, of rlogin.
        client_user: &'a [u8] = "client_user",
        /// Password; `<none>` if there was none.
        password: &'a [u8] = "password",
        /// The line that showed it.
        line: &'a [u8] = "line",
    }

    /// A user did not log in.
    pub struct LoginFailure<'a> = "login_failure", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Name of the user.
        user: &'a [u8] = "user",
        /// Name at the client, of rlogin.
        client_user: &'a [u8] = "client_user",
        /// Password; `<none>` if there was none, `<timeout>` if the server waited for too long.
        password: &'a [u8] = "password",
        /// The line that showed it.
        line: &'a [u8] = "line",
    }

    /// A line of the client.
    pub struct LoginInputLine<'a> = "login_input_line", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The line, without its end.
        line: &'a [u8] = "line",
    }

    /// A line of the server.
    pub struct LoginOutputLine<'a> = "login_output_line", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The line, without its end.
        line: &'a [u8] = "line",
    }

    /// The dialog is no login as the analyzer knows them. This is raised once.
    pub struct LoginConfused<'a> = "login_confused", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Why, as a name.
        msg: &'a [u8] = "msg",
        /// The line that showed it.
        line: &'a [u8] = "line",
    }

    /// A line of the client in such a dialog.
    pub struct LoginConfusedText<'a> = "login_confused_text", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The line.
        line: &'a [u8] = "line",
    }

    /// A client names its terminal.
    pub struct LoginTerminal<'a> = "login_terminal", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Name of the terminal.
        terminal: &'a [u8] = "terminal",
    }

    /// A client names its display.
    pub struct LoginDisplay<'a> = "login_display", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Name of the display.
        display: &'a [u8] = "display",
    }

    /// A client names the prompt of its terminal.
    pub struct LoginPrompt<'a> = "login_prompt", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The prompt.
        prompt: &'a [u8] = "prompt",
    }

    /// A side accepts the other's authentication by an option of Telnet (RFC 2941).
    pub struct AuthenticationAccepted<'a> = "authentication_accepted", opt_in {
        /// Name of the user; `<empty>` if there was none.
        name: &'a [u8] = "name",
        /// The connection.
        c: Connection = "c",
    }

    /// A side rejects it.
    pub struct AuthenticationRejected<'a> = "authentication_rejected", opt_in {
        /// Name of the user; `<empty>` if there was none.
        name: &'a [u8] = "name",
        /// The connection.
        c: Connection = "c",
    }

    /// The server shows a text by which no authentication follows.
    pub struct AuthenticationSkipped = "authentication_skipped", opt_in {
        /// The connection.
        c: Connection = "c",
    }

    /// A side encrypts what follows (RFC 2946).
    pub struct ActivatingEncryption = "activating_encryption", opt_in {
        /// The connection.
        c: Connection = "c",
    }

    /// An option of Telnet contradicts an earlier one.
    pub struct InconsistentOption = "inconsistent_option", opt_in {
        /// The connection.
        c: Connection = "c",
    }

    /// An option of Telnet is malformed.
    pub struct BadOption = "bad_option", opt_in {
        /// The connection.
        c: Connection = "c",
    }

    /// An option of Telnet does not end as options do.
    pub struct BadOptionTermination = "bad_option_termination", opt_in {
        /// The connection.
        c: Connection = "c",
    }

    /// A line of a client of rsh.
    pub struct RshRequest<'a> = "rsh_request", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Name of the user at the client; `<none>` if there was none.
        client_user: &'a [u8] = "client_user",
        /// Name of the user at the server; `<none>` if there was none.
        server_user: &'a [u8] = "server_user",
        /// The line.
        line: &'a [u8] = "line",
        /// Whether it is the first one.
        new_session: bool = "new_session",
    }

    /// A line of a server of rsh.
    pub struct RshReply<'a> = "rsh_reply", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Name of the user at the client; `<none>` if there was none.
        client_user: &'a [u8] = "client_user",
        /// Name of the user at the server; `<none>` if there was none.
        server_user: &'a [u8] = "server_user",
        /// The line.
        line: &'a [u8] = "line",
    }

    /// A login has another state, or begins.
    pub struct LoginState = "gannet::login_state", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The state, by Zeek's number.
        state: u64 = "state",
    }

    /// Whether a line has one of the texts that scripts list: a question.
    pub struct LoginText<'a> = "gannet::login_text", opt_in, one_thread {
        /// The list: `login_prompts`, for example.
        list: &'static str = "list",
        /// The line.
        line: &'a [u8] = "line",
    }
}
