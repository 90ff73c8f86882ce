use std::borrow::Cow;

use gannet_base::ConnId;
use gannet_base::Time;
use gannet_base::Uid;
use gannet_log::Vector;

use super::events::OperationSeen;
use super::message::Auth;
use super::message::Body;
use super::message::Message;
use super::message::Outcome;
use super::message::operation;
use super::names;
use crate::Context;
use crate::OnEvent;
use crate::Tag;

gannet_log::row! {
    /// One row for each LDAP operation except searches.
    pub struct LdapRow<'a> = "ldap" {
        /// Time of the first message.
        ts: Time = "ts",
        /// Identifier of the connection.
        uid: Uid = "uid",
        /// Endpoints of the connection.
        id: ConnId = "id",
        /// Message ID, which the request and its response share.
        message_id: i64 = "message_id",
        /// Version of LDAP in a bind request.
        version: Option<i64> = "version",
        /// The operation: `bind simple`, `bind SASL`, `unbind`, `modify`, `add`, `delete`, `compare`,
        /// `abandon`, `extended`.
        opcode: Option<&'a str> = "opcode",
        /// Result code.
        result: Option<&'static str> = "result",
        /// The server's diagnostic text.
        diagnostic_message: Option<&'a [u8]> = "diagnostic_message",
        /// The object, or the identifier and name of an extended request.
        object: Option<&'a [u8]> = "object",
        /// The mechanism of a bind (a password is `REDACTED`), or the changes of a modification.
        argument: Option<&'a [u8]> = "argument",
    }
}

gannet_log::row! {
    /// One row for each LDAP search.
    pub struct SearchRow<'a> = "ldap_search" {
        /// Time of the first message.
        ts: Time = "ts",
        /// Identifier of the connection.
        uid: Uid = "uid",
        /// Endpoints of the connection.
        id: ConnId = "id",
        /// Message ID, which the request and its response share.
        message_id: i64 = "message_id",
        /// Scope: `base`, `single`, `tree`.
        scope: Option<&'static str> = "scope",
        /// Alias handling: `never`, `searching`, `finding`, `always`.
        deref_aliases: Option<&'static str> = "deref_aliases",
        /// Base object of the search.
        base_object: Option<&'a [u8]> = "base_object",
        /// Number of objects found.
        result_count: u64 = "result_count",
        /// Result code.
        result: Option<&'static str> = "result",
        /// The server's diagnostic text.
        diagnostic_message: Option<&'a [u8]> = "diagnostic_message",
        /// The search filter.
        filter: Option<&'a [u8]> = "filter",
        /// The requested attributes. Always unset, as in Zeek by default.
        attributes: Option<Vector<&'a str>> = "attributes",
    }
}

const SOURCE: Option<&str> = Some("LDAP");

/// An incomplete operation.
#[derive(Debug)]
struct Operation {
    ts: Time,
    id: i64,
    version: Option<i64>,
    opcode: Option<Cow<'static, str>>,
    result: Option<&'static str>,
    diagnostic: Option<Vec<u8>>,
    object: Option<Vec<u8>>,
    argument: Option<Vec<u8>>,
}

/// An incomplete search.
#[derive(Debug)]
struct Search {
    ts: Time,
    id: i64,
    scope: Option<&'static str>,
    deref: Option<&'static str>,
    base: Option<Vec<u8>>,
    count: u64,
    result: Option<&'static str>,
    diagnostic: Option<Vec<u8>>,
    filter: Option<Vec<u8>>,
}

/// Incomplete operations of a connection.
#[derive(Debug, Default)]
pub(super) struct Rows {
    operations: Vec<Operation>,
    searches: Vec<Search>,
}

impl Rows {
    /// Whether no operation is incomplete.
    pub(super) fn is_empty(&self) -> bool {
        self.operations.is_empty() && self.searches.is_empty()
    }

    /// Adds a message to its operation, which it may start or complete.
    fn message(&mut self, cx: &mut Context<'_>, m: &Message<'_>) {
        match m.code {
            operation::SEARCH_REQUEST => {
                let search = self.search(cx, m.id);
                if let Body::Search { base, scope, deref, filter } = &m.body {
                    let id = m.id;
                    let (scope, deref) = (names::scope(*scope), names::aliases(*deref));
                    change(cx, id, "LDAP_search_scope_change", &mut search.scope, scope);
                    change(cx, id, "LDAP_search_deref_aliases_change", &mut search.deref, deref);
                    let name = "LDAP_search_base_object_change";
                    change_text(cx, id, name, &mut search.base, base);
                    let name = "LDAP_search_filter_change";
                    report_changed_field(cx, id, name, search.filter.as_deref(), filter);
                    search.filter = Some(filter.clone());
                }
            }
            operation::SEARCH_RESULT_ENTRY => self.search(cx, m.id).count += 1,
            operation::SEARCH_RESULT_DONE => {
                let search = self.search(cx, m.id);
                if let Body::Outcome(outcome) = &m.body {
                    let result = names::result(outcome.code);
                    change(cx, m.id, "LDAP_search_result_change", &mut search.result, result);
                    let name = "LDAP_search_diagnostic_message_change";
                    change_text(cx, m.id, name, &mut search.diagnostic, &outcome.diagnostic);
                }
                if let Some(at) = self.searches.iter().position(|s| s.id == m.id) {
                    self.searches.remove(at).write(cx);
                }
            }
            operation::SEARCH_RESULT_REFERENCE => {}
            _ => {
                self.operation(cx, m.id).message(cx, m);
                let finished = matches!(
                    m.code,
                    operation::BIND_RESPONSE
                        | operation::UNBIND_REQUEST
                        | operation::MODIFY_RESPONSE
                        | operation::ADD_RESPONSE
                        | operation::DELETE_RESPONSE
                        | operation::MODIFY_DN_RESPONSE
                        | operation::COMPARE_RESPONSE
                        | operation::ABANDON_REQUEST
                        | operation::EXTENDED_RESPONSE
                );
                if finished && let Some(at) = self.operations.iter().position(|o| o.id == m.id) {
                    self.operations.remove(at).write(cx);
                }
            }
        }
    }

    fn operation(&mut self, cx: &mut Context<'_>, id: i64) -> &mut Operation {
        let at = self.operations.iter().position(|o| o.id == id).unwrap_or_else(|| {
            if self.operations.len() >= cx.env.pending.of(Tag::LdapTcp) {
                let n = self.operations.len().to_string();
                cx.weird("LDAP_max_pending_messages_exceeded", &n, SOURCE);
                self.operations.drain(..).filter(|o| o.id > 0).for_each(|o| o.write(cx));
            }
            self.operations.push(Operation {
                ts: cx.now,
                id,
                version: None,
                opcode: None,
                result: None,
                diagnostic: None,
                object: None,
                argument: None,
            });
            cx.conn.note_table(self.operations.len());
            self.operations.len() - 1
        });
        &mut self.operations[at]
    }

    fn search(&mut self, cx: &mut Context<'_>, id: i64) -> &mut Search {
        let at = self.searches.iter().position(|s| s.id == id).unwrap_or_else(|| {
            if self.searches.len() >= cx.env.pending.of(Tag::LdapTcp) {
                let n = self.searches.len().to_string();
                cx.weird("LDAP_max_pending_searches_exceeded", &n, SOURCE);
                self.searches.drain(..).filter(|s| s.id > 0).for_each(|s| s.write(cx));
            }
            self.searches.push(Search {
                ts: cx.now,
                id,
                scope: None,
                deref: None,
                base: None,
                count: 0,
                result: None,
                diagnostic: None,
                filter: None,
            });
            cx.conn.note_table(self.searches.len());
            self.searches.len() - 1
        });
        &mut self.searches[at]
    }

    /// Writes the rows of incomplete operations.
    pub(super) fn finish(&mut self, cx: &mut Context<'_>) {
        self.operations.drain(..).filter(|o| o.id > 0).for_each(|o| o.write(cx));
        self.searches.drain(..).filter(|s| s.id > 0).for_each(|s| s.write(cx));
    }
}

impl OnEvent<OperationSeen<'_>> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &OperationSeen<'_>) {
        self.message(cx, event.message.0);
    }
}

impl Operation {
    fn message(&mut self, cx: &mut Context<'_>, m: &Message<'_>) {
        if let Body::Bind { version, auth, .. } = &m.body {
            self.version.get_or_insert(*version);
            if let Some(opcode) = &self.opcode {
                cx.weird("LDAP_bind_opcode_already_set", opcode, SOURCE);
            }
            self.opcode = Some(Cow::Borrowed(match auth {
                Auth::Simple(_) => "bind simple",
                Auth::Sasl { .. } => "bind SASL",
                Auth::SicilyNegotiate(_) => "sicily_negotiate",
                Auth::SicilyResponse(_) => "sicily_response",
                Auth::Other(kind) => {
                    let kind = names::login(*kind);
                    cx.weird("LDAP_unknown_auth_type", kind, SOURCE);
                    kind
                }
            }));
        }
        let name = names::operation(m.code);
        if name != "bind" {
            if let Some(before) = &self.opcode
                && *before != name
            {
                let addl = format!("{}: {before} -> {name}", m.id);
                cx.weird("LDAP_message_opcode_change", &addl, SOURCE);
            }
            self.opcode = Some(Cow::Borrowed(name));
        } else if self.opcode.is_none() {
            cx.weird("LDAP_bind_without_opcode", &format!("{}: {name}", m.id), SOURCE);
            self.opcode = Some(Cow::Borrowed(name));
        }
        if let Body::BindResponse(outcome, _) | Body::Outcome(outcome) = &m.body {
            self.outcome(cx, outcome);
        }
        let (object, argument): (&[u8], &[u8]) = match &m.body {
            Body::Bind { name, auth, .. } => (name, argument(auth)),
            Body::Modify(object, changes) => (object, changes),
            Body::Object(object) | Body::Extended(object) => (object, b""),
            _ => (b"", b""),
        };
        change_text(cx, m.id, "LDAP_message_object_change", &mut self.object, object);
        if let (Body::Extended(oid), Some(object)) = (&m.body, &mut self.object)
            && !oid.is_empty()
        {
            object.extend(format!(" ({})", names::extension(oid)).bytes());
        }
        change_text(cx, m.id, "LDAP_message_argument_change", &mut self.argument, argument);
    }

    fn outcome(&mut self, cx: &mut Context<'_>, outcome: &Outcome<'_>) {
        let result = names::result(outcome.code);
        change(cx, self.id, "LDAP_message_result_change", &mut self.result, result);
        let name = "LDAP_message_diagnostic_message_change";
        change_text(cx, self.id, name, &mut self.diagnostic, &outcome.diagnostic);
    }

    fn write(&self, cx: &mut Context<'_>) {
        cx.log(&LdapRow {
            ts: self.ts,
            uid: cx.conn.uid,
            id: cx.conn.id,
            message_id: self.id,
            version: self.version,
            opcode: self.opcode.as_deref(),
            result: self.result,
            diagnostic_message: self.diagnostic.as_deref(),
            object: self.object.as_deref(),
            argument: self.argument.as_deref(),
        });
    }
}

impl Search {
    fn write(&self, cx: &mut Context<'_>) {
        cx.log(&SearchRow {
            ts: self.ts,
            uid: cx.conn.uid,
            id: cx.conn.id,
            message_id: self.id,
            scope: self.scope,
            deref_aliases: self.deref,
            base_object: self.base.as_deref(),
            result_count: self.count,
            result: self.result,
            diagnostic_message: self.diagnostic.as_deref(),
            filter: self.filter.as_deref(),
            attributes: None,
        });
    }
}

/// Returns the mechanism of a bind, for the argument column.
fn argument<'a>(auth: &'a Auth<'_>) -> &'a [u8] {
    match auth {
        Auth::Simple(b"") | Auth::Other(_) => b"",
        Auth::Simple(_) => b"REDACTED",
        Auth::Sasl { mechanism, .. } => mechanism,
        Auth::SicilyNegotiate(b"") | Auth::SicilyResponse(b"") => b"",
        Auth::SicilyNegotiate(_) | Auth::SicilyResponse(_) => b"NTLMSSP",
    }
}

/// Sets a field; a change of its value is a weird.
fn change(
    cx: &mut Context<'_>,
    id: i64,
    name: &'static str,
    field: &mut Option<&'static str>,
    value: &'static str,
) {
    report_changed_field(cx, id, name, field.map(str::as_bytes), value.as_bytes());
    *field = Some(value);
}

/// Like [`change`], for text; empty text is ignored.
fn change_text(
    cx: &mut Context<'_>,
    id: i64,
    name: &'static str,
    field: &mut Option<Vec<u8>>,
    value: &[u8],
) {
    if !value.is_empty() {
        report_changed_field(cx, id, name, field.as_deref(), value);
        *field = Some(value.to_vec());
    }
}

fn report_changed_field(
    cx: &mut Context<'_>,
    id: i64,
    name: &'static str,
    before: Option<&[u8]>,
    value: &[u8],
) {
    if let Some(before) = before
        && before != value
    {
        let addl = [id.to_string().as_bytes(), b": ", before, b" -> ", value].concat();
        cx.weird_bytes(name, &addl, SOURCE);
    }
}
