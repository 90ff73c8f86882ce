//! Raises the events of messages: a separate pass, only if they have a listener.

use gannet_base::Dir;

use super::events::*;
use super::message::Backend;
use super::message::Field;
use super::message::Frontend;
use crate::Context;
use crate::support::Bytes;

/// Raises the event of a valid message of the client; `frame` is the whole message.
#[cold]
pub(super) fn frontend(cx: &mut Context<'_>, frame: &[u8], message: &Frontend<'_>) {
    let body = frame.get(5..).unwrap_or_default();
    match *message {
        Frontend::Query(query) => cx.raise(|c| SimpleQuery { c, query }),
        Frontend::Terminate => cx.raise(|c| Terminate { c }),
        Frontend::Other(b'p') => cx.raise(|c| AuthenticationResponse { c, data: body }),
        Frontend::Other(ty) => other(cx, Dir::Orig, ty, body),
    }
}

/// Like [`frontend`], for a message of the server; `fault` says whether it is malformed.
#[cold]
pub(super) fn backend(cx: &mut Context<'_>, frame: &[u8], message: &Backend<'_>, fault: bool) {
    let body = frame.get(5..).unwrap_or_default();
    let mut b = Bytes(body);
    match message {
        Backend::AuthenticationOk => cx.raise(|c| AuthenticationOk { c }),
        Backend::Authentication(identifier) => {
            let (identifier, data) = (*identifier, body.get(4..).unwrap_or_default());
            cx.raise(|c| AuthenticationRequest { c, identifier, data });
        }
        Backend::Error(fields) => {
            for &(code, value) in fields {
                cx.raise(|c| ErrorField { c, code: [code], value });
            }
            if !fault {
                cx.raise(|c| ErrorResponse { c });
            }
        }
        Backend::Notice(fields) => notice(cx, fields, fault),
        Backend::Row => {
            let column_values = b.u16().unwrap_or(0);
            cx.raise(|c| RowSent { c, column_values });
        }
        Backend::Ready(state) => cx.raise(|c| ReadyForQuery { c, transaction_status: [*state] }),
        Backend::Other(b'S') => {
            let mut parts = body.split(|byte| *byte == 0);
            let (name, value) = (parts.next().unwrap_or(b""), parts.next().unwrap_or(b""));
            cx.raise(|c| ParameterStatus { c, name, value });
        }
        Backend::Other(b'K') => {
            let (process_id, secret_key) = (b.u32().unwrap_or(0), b.u32().unwrap_or(0));
            cx.raise(|c| BackendKeyData { c, process_id, secret_key });
        }
        Backend::Other(ty) => other(cx, Dir::Resp, *ty, body),
        Backend::UnterminatedError => {}
    }
}

fn notice(cx: &mut Context<'_>, fields: &[Field<'_>], fault: bool) {
    for &(code, value) in fields {
        cx.raise(|c| NoticeField { c, code: [code], value });
    }
    if !fault {
        cx.raise(|c| NoticeResponse { c });
    }
}

fn other(cx: &mut Context<'_>, from: Dir, ty: u8, chunk: &[u8]) {
    let is_orig = from.is_orig();
    cx.raise(|c| NotImplemented { c, is_orig, typ: [ty], chunk });
}
