//! Raises the events of messages in a separate walk, which runs only if an event has a listener.

use std::borrow::Cow;

use super::ber::Malformed;
use super::ber::Text;
use super::ber::ascii;
use super::ber::value;
use super::events::*;
use super::message::Auth;
use super::message::Body;
use super::message::Message;
use super::message::operation;
use crate::Context;
use crate::support::Bytes;

/// Raises the events of a parsed message; `data` is the whole message or its first bytes.
#[cold]
pub(super) fn message(cx: &mut Context<'_>, data: &[u8], m: &Message<'_>) {
    let mut seen = MessageSeen {
        c: crate::conn_state::mention(&mut cx.env.logs, cx.conn),
        message_id: m.id,
        opcode: ProtocolOpcode(Some(m.code)),
        result: ResultCode(None),
        matched_dn: empty(),
        diagnostic_message: empty(),
        object: empty(),
        argument: empty(),
    };
    // Only the parts that rows do not use are parsed again. Parts that are missing at the end of a long message are omitted.
    let _ = operation_event(cx, data, m, &mut seen);
    cx.raise(|c| MessageSeen { c, ..seen });
}

/// Raises the event of an operation, and completes the one of its message.
fn operation_event<'a>(
    cx: &mut Context<'_>,
    data: &'a [u8],
    m: &'a Message<'a>,
    seen: &mut MessageSeen<'a>,
) -> Result<(), Malformed> {
    let message_id = m.id;
    let mut b = Bytes(value(&mut Bytes(data))?.content);
    value(&mut b)?;
    let mut b = Bytes(value(&mut b)?.content);
    match &m.body {
        Body::Bind { version, name, auth } => {
            let (auth_type, info) = login(auth);
            (seen.object, seen.argument) = (name.clone(), info.clone());
            let auth_type = BindAuthType(Some(auth_type));
            let (version, name) = (*version, name.clone());
            cx.raise(|c| BindRequest { c, message_id, version, name, auth_type, auth_info: info });
        }
        Body::Search { base, scope, deref, filter } => {
            (0..3).try_for_each(|_| value(&mut b).map(drop))?;
            let (size_limit, time_limit) = (value(&mut b)?.integer()?, value(&mut b)?.integer()?);
            let types_only = value(&mut b)?.content.first().is_some_and(|flag| *flag != 0);
            value(&mut b)?;
            let mut list = Bytes(value(&mut b)?.content);
            let mut attributes = Vec::new();
            while !list.is_empty() {
                attributes.push(ascii(value(&mut list)?.content));
            }
            let scope = SearchScope(Some(*scope));
            let name =
                gannet_event::EnumName::name(&scope).replace("LDAP::SearchScope_", "SearchScope::");
            (seen.object, seen.argument) = (base.clone(), Cow::Owned(name.into_bytes()));
            cx.raise(|c| SearchRequest {
                c,
                message_id,
                base_object: base.clone(),
                scope,
                deref: SearchDerefAlias(Some(*deref)),
                size_limit,
                time_limit,
                types_only,
                filter,
                attributes,
            });
        }
        Body::Modify(object, changes) => {
            (seen.object, seen.argument) = (object.clone(), Cow::Borrowed(&changes[..]));
        }
        Body::Object(object) => seen.object = object.clone(),
        Body::Extended(name) => {
            seen.object = name.clone();
            value(&mut b)?;
            let request_value = if b.is_empty() { &[][..] } else { value(&mut b)?.content };
            let request_name = name.clone();
            cx.raise(|c| ExtendedRequest { c, message_id, request_name, request_value });
        }
        Body::BindResponse(outcome, _) | Body::Outcome(outcome) => {
            let result = ResultCode(Some(outcome.code));
            value(&mut b)?;
            seen.result = result;
            seen.matched_dn = value(&mut b)?.text()?;
            seen.diagnostic_message = outcome.diagnostic.clone();
            if m.code == operation::EXTENDED_RESPONSE {
                value(&mut b)?;
                let (mut response_name, mut response_value) = (empty(), &[][..]);
                while !b.is_empty() {
                    match value(&mut b)? {
                        field if field.number == 10 => response_name = ascii(field.content),
                        field if field.number == 11 => response_value = field.content,
                        _ => {}
                    }
                }
                cx.raise(|c| ExtendedResponse {
                    c,
                    message_id,
                    result,
                    response_name,
                    response_value,
                });
            }
        }
        Body::Nothing if m.code == operation::SEARCH_RESULT_ENTRY => {
            let name = value(&mut b)?.text()?;
            seen.object = name.clone();
            cx.raise(|c| SearchResultEntry { c, message_id, object_name: name });
        }
        Body::Nothing => {}
    }
    Ok(())
}

/// Returns the number of an authentication method, and its password or mechanism.
fn login<'a>(auth: &Auth<'a>) -> (u8, Text<'a>) {
    let signature = |token: &'a [u8]| {
        let end = token.iter().position(|b| *b == 0).unwrap_or(token.len());
        ascii(&token[..end])
    };
    match auth {
        Auth::Simple(password) => (0, ascii(password)),
        Auth::Sasl { mechanism, .. } => (3, mechanism.clone()),
        Auth::SicilyNegotiate(token) => (10, signature(token)),
        Auth::SicilyResponse(token) => (11, signature(token)),
        Auth::Other(number) => (*number, empty()),
    }
}

fn empty<'a>() -> Text<'a> {
    Cow::Borrowed(&[])
}
