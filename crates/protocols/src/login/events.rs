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
        /// Name of the user at the client; only for rlogin and rsh.
        client_user: &'a [u8] = "client_user",
        /// Password; `<none>` if there was none.
        password: &'a [u8] = "password",
        /// The line that led to the event.
        line: &'a [u8] = "line",
    }

    /// A user did not log in.
    pub struct LoginFailure<'a> = "login_failure", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Name of the user.
        user: &'a [u8] = "user",
        /// Name of the user at the client; only for rlogin and rsh.
        client_user: &'a [u8] = "client_user",
        /// Password; `<none>` if there was none, `<timeout>` if the server waited for too long.
        password: &'a [u8] = "password",
        /// The line that led to the event.
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

    /// The dialog cannot be interpreted as a login.
    pub struct LoginConfused<'a> = "login_confused", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Name of the reason.
        msg: &'a [u8] = "msg",
        /// The line that led to the event.
        line: &'a [u8] = "line",
    }

    /// A line of the client in a dialog that cannot be interpreted.
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

    /// A side accepts the authentication of the other with a Telnet option (RFC 2941).
    pub struct AuthenticationAccepted<'a> = "authentication_accepted", opt_in {
        /// Name of the user; `<empty>` if there was none.
        name: &'a [u8] = "name",
        /// The connection.
        c: Connection = "c",
    }

    /// A side rejects the authentication of the other with a Telnet option (RFC 2941).
    pub struct AuthenticationRejected<'a> = "authentication_rejected", opt_in {
        /// Name of the user; `<empty>` if there was none.
        name: &'a [u8] = "name",
        /// The connection.
        c: Connection = "c",
    }

    /// The server sends a text that indicates that it requires no authentication.
    pub struct AuthenticationSkipped = "authentication_skipped", opt_in {
        /// The connection.
        c: Connection = "c",
    }

    /// A side encrypts the data that follows (RFC 2946).
    pub struct ActivatingEncryption = "activating_encryption", opt_in {
        /// The connection.
        c: Connection = "c",
    }

    /// A Telnet option contradicts an earlier one.
    pub struct InconsistentOption = "inconsistent_option", opt_in {
        /// The connection.
        c: Connection = "c",
    }

    /// A Telnet option is malformed.
    pub struct BadOption = "bad_option", opt_in {
        /// The connection.
        c: Connection = "c",
    }

    /// A Telnet suboption is not terminated correctly.
    pub struct BadOptionTermination = "bad_option_termination", opt_in {
        /// The connection.
        c: Connection = "c",
    }

    /// An rsh client sends a line.
    pub struct RshRequest<'a> = "rsh_request", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Name of the user at the client; `<none>` if there was none.
        client_user: &'a [u8] = "client_user",
        /// Name of the user at the server; `<none>` if there was none.
        server_user: &'a [u8] = "server_user",
        /// The line.
        line: &'a [u8] = "line",
        /// Whether it is the first line.
        new_session: bool = "new_session",
    }

    /// An rsh server sends a line.
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

    /// The state of a login is initialized or changes.
    pub struct LoginState = "gannet::login_state", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The state, as Zeek's number.
        state: u64 = "state",
    }

    /// A question to the listener: whether a line contains one of the texts of a list that scripts define.
    pub struct LoginText<'a> = "gannet::login_text", opt_in, one_thread {
        /// Name of the list, for example `login_prompts`.
        list: &'static str = "list",
        /// The line.
        line: &'a [u8] = "line",
    }
}
