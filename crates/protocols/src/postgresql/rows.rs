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
        /// Time of the request.
        ts: Time = "ts",
        /// Its connection.
        uid: Uid = "uid",
        /// Originator and responder of the connection.
        id: ConnId = "id",
        /// User name of the login.
        user: Option<&'a [u8]> = "user",
        /// Database.
        database: Option<&'a [u8]> = "database",
        /// The client's application name.
        application_name: Option<&'a [u8]> = "application_name",
        /// Kind of the client's message.
        frontend: Option<&'static str> = "frontend",
        /// The query.
        frontend_arg: Option<&'a [u8]> = "frontend_arg",
        /// Kinds of the server's messages.
        backend: Option<&'a [u8]> = "backend",
        /// Requested authentication, or the fields of errors and notices.
        backend_arg: Option<&'a [u8]> = "backend_arg",
        /// Whether the request succeeded.
        success: Option<bool> = "success",
        /// Number of rows returned.
        rows: Option<u64> = "rows",
    }
}

/// Maximum number of stored bytes of a server's text: one more than a log shows, so that truncation
/// is noticed.
const MAX_TEXT: usize = gannet_log::Limits::DEFAULT.string + 1;

/// The rows of a session.
#[derive(Debug, Default)]
pub(super) struct Rows {
    startup: StartupParameters,
    pending: Option<Pending>,
    /// Number of rows of the current query.
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

    /// Writes the current row at the end of the connection.
    pub(super) fn finish(&mut self, cx: &mut Context<'_>) {
        self.write(cx);
    }
}

impl OnEvent<SslRequest> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, _event: &SslRequest) {
        self.row(cx).set_frontend("ssl_request");
    }
}

impl OnEvent<SslReply> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &SslReply) {
        let row = self.row(cx);
        row.set_backend("ssl_reply");
        row.append_backend_arg(&[&event.data]);
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
        self.row(cx).set_frontend("startup");
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
                self.row(cx).set_frontend("terminate");
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
                row.set_backend("auth_ok");
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
                row.add_backend("auth_request");
                row.append_backend_arg(&[name.as_bytes()]);
            }
            Backend::Error(fields) => {
                let row = self.row(cx);
                row.add_backend("error");
                if fields.is_empty() {
                    row.append_backend_arg(&[]);
                }
                append_fields(row, fields);
                row.success = Some(false);
                self.write(cx);
            }
            Backend::UnterminatedError => {
                self.row(cx);
            }
            Backend::Notice(fields) if fields.is_empty() => {}
            Backend::Notice(fields) => append_fields(self.row(cx), fields),
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

/// Appends the fields of an error or a notice to a row.
fn append_fields(row: &mut Pending, fields: &[(u8, &[u8])]) {
    for (code, value) in fields {
        match field(*code) {
            Some(name) => row.append_backend_arg(&[name.as_bytes(), b"=", value]),
            None => row.append_backend_arg(&[b"UnknownErrorId", &[*code], b"=", value]),
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

/// A row that is being collected.
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

    fn set_frontend(&mut self, kind: &'static str) {
        self.frontend = Some(kind);
    }

    fn query(&mut self, text: &[u8]) {
        self.set_frontend("simple_query");
        self.query = Some(text[..text.len().min(MAX_TEXT)].to_vec());
    }

    /// Sets the server's message of the row.
    fn set_backend(&mut self, kind: &str) {
        self.backend = kind.as_bytes().to_vec();
    }

    /// Appends a message of the server.
    fn add_backend(&mut self, kind: &str) {
        let between = if self.backend.is_empty() { "" } else { "," };
        append(&mut self.backend, &[between.as_bytes(), kind.as_bytes()]);
    }

    /// Appends to the argument of the server's messages.
    fn append_backend_arg(&mut self, parts: &[&[u8]]) {
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

/// Appends to a stored text, up to [`MAX_TEXT`].
fn append(text: &mut Vec<u8>, parts: &[&[u8]]) {
    for part in parts {
        let available = MAX_TEXT.saturating_sub(text.len());
        text.extend_from_slice(&part[..part.len().min(available)]);
    }
}

/// Name of a field of an error or notice (section "Error and Notice Message Fields").
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

/// Name of an authentication type.
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
