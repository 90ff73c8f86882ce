use gannet_base::ConnId;
use gannet_base::Time;
use gannet_base::Uid;

use super::events::BackendSeen;
use super::events::FrontendSeen;
use super::events::SslReply;
use super::events::SslRequest;
use super::events::StartupMessage;
use super::events::StartupParameter;
use super::message::Backend;
use super::message::Frontend;
use crate::Context;
use crate::OnEvent;

gannet_log::row! {
    /// One row for each TLS request, login, query or end of a PostgreSQL session.
    pub struct PostgresqlRow<'a> = "postgresql" {
        /// When it began.
        ts: Time = "ts",
        /// Its connection.
        uid: Uid = "uid",
        /// The connection's ends.
        id: ConnId = "id",
        /// User name of the login.
        user: Option<&'a [u8]> = "user",
        /// Database.
        database: Option<&'a [u8]> = "database",
        /// The client's application name.
        application_name: Option<&'a [u8]> = "application_name",
        /// The client's message.
        frontend: Option<&'static str> = "frontend",
        /// The query.
        frontend_arg: Option<&'a [u8]> = "frontend_arg",
        /// The server's message.
        backend: Option<&'a [u8]> = "backend",
        /// Requested authentication, or the fields of errors and notices.
        backend_arg: Option<&'a [u8]> = "backend_arg",
        /// Whether it succeeded.
        success: Option<bool> = "success",
        /// Rows returned.
        rows: Option<u64> = "rows",
    }
}

/// Stored bytes of the server's texts: the most that a log shows.
const MAX_TEXT: usize = gannet_log::Limits::DEFAULT.string + 1;

/// The rows of a session.
#[derive(Debug, Default)]
pub(super) struct Rows {
    startup: StartupParameters,
    pending: Option<Pending>,
    /// Rows of the current query.
    rows: Option<u64>,
}

impl Rows {
    /// The current row, or a new one.
    fn row(&mut self, cx: &Context<'_>) -> &mut Pending {
        self.pending.get_or_insert_with(|| Pending::new(cx.now))
    }

    fn write(&mut self, cx: &mut Context<'_>) {
        if let Some(row) = self.pending.take() {
            row.write(cx, &self.startup);
        }
    }

    /// The connection ends: the current row is written.
    pub(super) fn finish(&mut self, cx: &mut Context<'_>) {
        self.write(cx);
    }
}

impl OnEvent<SslRequest> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, _event: &SslRequest) {
        self.row(cx).ask("ssl_request");
    }
}

impl OnEvent<SslReply> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &SslReply) {
        let row = self.row(cx);
        row.answer("ssl_reply");
        row.about(&[&event.data]);
        row.success = Some(event.data == *b"S");
        self.write(cx);
    }
}

impl OnEvent<StartupParameter<'_>> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &StartupParameter<'_>) {
        self.row(cx);
        self.startup.parameter(event.name, event.value);
    }
}

impl OnEvent<StartupMessage> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, _event: &StartupMessage) {
        self.row(cx).ask("startup");
    }
}

impl OnEvent<FrontendSeen<'_>> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &FrontendSeen<'_>) {
        match event.message.0 {
            Frontend::Query(text) => {
                self.write(cx);
                self.row(cx).query(text);
                self.rows = Some(0);
            }
            Frontend::Terminate => {
                self.write(cx);
                self.row(cx).ask("terminate");
                self.write(cx);
            }
            Frontend::Other(_) => {}
        }
    }
}

impl OnEvent<BackendSeen<'_>> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &BackendSeen<'_>) {
        match event.message.0 {
            Backend::AuthenticationOk => {
                let row = self.row(cx);
                row.answer("auth_ok");
                row.success = Some(true);
            }
            Backend::Authentication(kind) => {
                let unknown;
                let name = match authentication(*kind) {
                    Some(name) => name,
                    None => {
                        unknown = format!("UnknownAuthId{kind}");
                        &*unknown
                    }
                };
                let row = self.row(cx);
                row.answer_too("auth_request");
                row.about(&[name.as_bytes()]);
            }
            Backend::Error(fields) => {
                let row = self.row(cx);
                row.answer_too("error");
                if fields.is_empty() {
                    row.about(&[]);
                }
                tell(row, fields);
                row.success = Some(false);
                self.write(cx);
            }
            Backend::Unfinished => {
                self.row(cx);
            }
            Backend::Notice(fields) if fields.is_empty() => {}
            Backend::Notice(fields) => tell(self.row(cx), fields),
            Backend::Row => {
                self.row(cx);
                *self.rows.get_or_insert(0) += 1;
            }
            Backend::Ready(state) => {
                let Some(row) = &mut self.pending else { return };
                row.success.get_or_insert(matches!(state, b'I' | b'T'));
                row.rows = self.rows.take();
                self.write(cx);
            }
            Backend::Other(_) => {}
        }
    }
}

/// Fields of an error or a notice, one after the other.
fn tell(row: &mut Pending, fields: &[(u8, &[u8])]) {
    for (code, value) in fields {
        match field(*code) {
            Some(name) => row.about(&[name.as_bytes(), b"=", value]),
            None => row.about(&[b"UnknownErrorId", &[*code], b"=", value]),
        }
    }
}

/// The session parameters from the startup message.
#[derive(Debug, Default)]
struct StartupParameters {
    user: Option<Vec<u8>>,
    database: Option<Vec<u8>>,
    application: Option<Vec<u8>>,
}

impl StartupParameters {
    /// A parameter of the startup message.
    fn parameter(&mut self, name: &[u8], value: &[u8]) {
        let column = match name {
            b"user" => &mut self.user,
            b"database" => &mut self.database,
            b"application_name" => &mut self.application,
            _ => return,
        };
        *column = Some(value[..value.len().min(MAX_TEXT)].to_vec());
    }
}

/// A row in the making.
#[derive(Debug)]
struct Pending {
    ts: Time,
    frontend: Option<&'static str>,
    query: Option<Vec<u8>>,
    backend: Vec<u8>,
    backend_arg: Option<Vec<u8>>,
    success: Option<bool>,
    rows: Option<u64>,
}

impl Pending {
    fn new(ts: Time) -> Self {
        Self {
            ts,
            frontend: None,
            query: None,
            backend: Vec::new(),
            backend_arg: None,
            success: None,
            rows: None,
        }
    }

    fn ask(&mut self, what: &'static str) {
        self.frontend = Some(what);
    }

    fn query(&mut self, text: &[u8]) {
        self.ask("simple_query");
        self.query = Some(text[..text.len().min(MAX_TEXT)].to_vec());
    }

    /// The only answer there is.
    fn answer(&mut self, what: &str) {
        self.backend = what.as_bytes().to_vec();
    }

    /// One more answer.
    fn answer_too(&mut self, what: &str) {
        let between = if self.backend.is_empty() { "" } else { "," };
        append(&mut self.backend, &[between.as_bytes(), what.as_bytes()]);
    }

    /// More about the answers.
    fn about(&mut self, parts: &[&[u8]]) {
        if let Some(arg) = &mut self.backend_arg {
            append(arg, &[b","]);
        }
        append(self.backend_arg.get_or_insert_default(), parts);
    }

    fn write(&self, cx: &mut Context<'_>, startup: &StartupParameters) {
        cx.log(&PostgresqlRow {
            ts: self.ts,
            uid: cx.conn.uid,
            id: cx.conn.id,
            user: startup.user.as_deref(),
            database: startup.database.as_deref(),
            application_name: startup.application.as_deref(),
            frontend: self.frontend,
            frontend_arg: self.query.as_deref(),
            backend: Some(&*self.backend).filter(|b| !b.is_empty()),
            backend_arg: self.backend_arg.as_deref(),
            success: self.success,
            rows: self.rows,
        });
    }
}

/// Appends to a stored text, up to the limit.
fn append(text: &mut Vec<u8>, parts: &[&[u8]]) {
    for part in parts {
        let room = MAX_TEXT.saturating_sub(text.len());
        text.extend_from_slice(&part[..part.len().min(room)]);
    }
}

/// The word for a field of an error or notice (section "Error and Notice Message Fields").
fn field(code: u8) -> Option<&'static str> {
    Some(match code {
        b'S' => "SeverityLocalized",
        b'V' => "Severity",
        b'C' => "Code",
        b'M' => "Message",
        b'D' => "Detail",
        b'H' => "Hint",
        b'P' => "Position",
        b'p' => "InternalPosition",
        b'q' => "InternalQuery",
        b'W' => "Where",
        b's' => "Schema",
        b't' => "Table",
        b'c' => "Column",
        b'd' => "Data",
        b'n' => "Constraint",
        b'F' => "File",
        b'L' => "Line",
        b'R' => "Routine",
        _ => return None,
    })
}

/// The word for a way to log in.
fn authentication(kind: u32) -> Option<&'static str> {
    Some(match kind {
        2 => "KerberosV5",
        3 => "CleartextPassword",
        5 => "MD5Password",
        7 => "GSSAPI",
        8 => "GSSAPIContinue",
        9 => "SSPI",
        10 => "SASL",
        11 => "SASLContinue",
        12 => "SASLFinal",
        _ => return None,
    })
}
