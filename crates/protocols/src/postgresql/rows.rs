use gannet_base::ConnId;
use gannet_base::Time;
use gannet_base::Uid;

use crate::Context;

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

/// The session parameters from the startup message.
#[derive(Debug, Default)]
pub(super) struct Who {
    user: Option<Vec<u8>>,
    database: Option<Vec<u8>>,
    application: Option<Vec<u8>>,
}

impl Who {
    /// A parameter of the startup message.
    pub(super) fn parameter(&mut self, name: &[u8], value: &[u8]) {
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
pub(super) struct Pending {
    ts: Time,
    frontend: Option<&'static str>,
    query: Option<Vec<u8>>,
    backend: Vec<u8>,
    backend_arg: Option<Vec<u8>>,
    pub(super) success: Option<bool>,
    pub(super) rows: Option<u64>,
}

impl Pending {
    pub(super) fn new(ts: Time) -> Self {
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

    pub(super) fn ask(&mut self, what: &'static str) {
        self.frontend = Some(what);
    }

    pub(super) fn query(&mut self, text: &[u8]) {
        self.ask("simple_query");
        self.query = Some(text[..text.len().min(MAX_TEXT)].to_vec());
    }

    /// The only answer there is.
    pub(super) fn answer(&mut self, what: &str) {
        self.backend = what.as_bytes().to_vec();
    }

    /// One more answer.
    pub(super) fn answer_too(&mut self, what: &str) {
        let between = if self.backend.is_empty() { "" } else { "," };
        append(&mut self.backend, &[between.as_bytes(), what.as_bytes()]);
    }

    /// More about the answers.
    pub(super) fn about(&mut self, parts: &[&[u8]]) {
        if let Some(arg) = &mut self.backend_arg {
            append(arg, &[b","]);
        }
        append(self.backend_arg.get_or_insert_default(), parts);
    }

    pub(super) fn write(&self, cx: &mut Context<'_>, who: &Who) {
        cx.log(&PostgresqlRow {
            ts: self.ts,
            uid: cx.conn.uid,
            id: cx.conn.id,
            user: who.user.as_deref(),
            database: who.database.as_deref(),
            application_name: who.application.as_deref(),
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
pub(super) fn field(code: u8) -> Option<&'static str> {
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
pub(super) fn authentication(kind: u32) -> Option<&'static str> {
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
