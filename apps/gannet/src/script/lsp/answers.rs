//! Handlers of requests about a document.

use gannet_script::ids::FileId;
use gannet_script::program::Target;
use gannet_script::source::Span;
use gannet_script::tools::format;
use gannet_script::tools::query;
use gannet_script::tools::query::Item;
use gannet_script::tools::query::ItemKind;
use gannet_script::tools::session::Session;
use serde_json::Value;
use serde_json::json;

use super::Document;
use super::convert;
use super::rename;

/// Handles a request, and returns its result.
type Handler = fn(&Document, &Value) -> Value;

/// The handler of a request method, `None` for an unknown method.
pub(super) fn handler(method: &str) -> Option<Handler> {
    let handler: Handler = match method {
        "textDocument/hover" => hover,
        "textDocument/definition" => definition,
        "textDocument/references" => references,
        "textDocument/prepareRename" => prepare_rename,
        "textDocument/completion" => completion,
        "textDocument/documentSymbol" => outline,
        "textDocument/formatting" => formatting,
        _ => return None,
    };
    Some(handler)
}

pub(super) fn file_of(document: &Document, session: &Session) -> Option<FileId> {
    query::file(&session.program, |found| convert::is_same_file(&document.path, found))
}

/// The target of the name at the position of a request, and the span of the name.
pub(super) fn target_at<'a>(
    document: &'a Document,
    params: &Value,
) -> Option<(&'a Session, Target, Span)> {
    let session = document.session.as_ref()?;
    let offset = convert::offset(&document.text, &params["position"]);
    let (span, target) = query::target(&session.program, file_of(document, session)?, offset)?;
    Some((session, target, span))
}

fn hover(document: &Document, params: &Value) -> Value {
    let Some((session, target, span)) = target_at(document, params) else { return Value::Null };
    let Some((text, documentation)) = query::hover(&session.program, target) else {
        return Value::Null;
    };
    let mut value = format!("```zeek\n{text}\n```");
    if !documentation.is_empty() {
        value.push_str("\n\n");
        value.push_str(&documentation);
    }
    let range = convert::range(session, span);
    json!({ "contents": { "kind": "markdown", "value": value }, "range": range })
}

fn definition(document: &Document, params: &Value) -> Value {
    let Some((session, target, _)) = target_at(document, params) else { return Value::Null };
    query::definition(&session.program, target)
        .and_then(|span| convert::location(session, span))
        .unwrap_or(Value::Null)
}

fn references(document: &Document, params: &Value) -> Value {
    let Some((session, target, _)) = target_at(document, params) else { return Value::Null };
    let spans = query::references(&session.program, target);
    spans.into_iter().filter_map(|span| convert::location(session, span)).collect()
}

fn prepare_rename(document: &Document, params: &Value) -> Value {
    let Ok(found) = rename::find_target(document, params) else { return Value::Null };
    json!({ "range": found.range, "placeholder": found.name })
}

fn completion(document: &Document, params: &Value) -> Value {
    let offset = convert::offset(&document.text, &params["position"]);
    let complete = |session: &Session| {
        let file = file_of(document, session);
        query::complete(&session.program, file, document.text.as_bytes(), offset)
    };
    let mut items = document.session.as_ref().map(complete).unwrap_or_default();
    // Names after a syntax error are unknown: the latest session without one adds its names.
    if document.session.as_ref().is_none_or(|session| session.end.is_err())
        && let Some(session) = &document.complete
    {
        let more: Vec<Item> = complete(session)
            .into_iter()
            .filter(|item| !items.iter().any(|known| known.name == item.name))
            .collect();
        items.extend(more);
    }
    let items: Vec<Value> = items
        .iter()
        .map(|item| {
            let kind = match item.kind {
                ItemKind::Function => 3,
                ItemKind::Event => 23,
                ItemKind::Variable => 6,
                ItemKind::Constant => 21,
                ItemKind::Type => 22,
                ItemKind::EnumValue => 20,
                ItemKind::Field => 5,
                ItemKind::Module => 9,
                ItemKind::Word => 14,
            };
            json!({ "label": item.name, "kind": kind, "detail": item.detail })
        })
        .collect();
    json!({ "isIncomplete": true, "items": items })
}

fn outline(document: &Document, _: &Value) -> Value {
    let Some(session) = &document.session else { return Value::Null };
    let Some(file) = file_of(document, session) else { return json!([]) };
    query::outline(&session.program, file)
        .iter()
        .map(|item| {
            let kind = match item.kind {
                ItemKind::Function => 12,
                ItemKind::Event => 24,
                ItemKind::Constant => 14,
                ItemKind::Type => 23,
                ItemKind::EnumValue => 22,
                ItemKind::Variable | ItemKind::Field | ItemKind::Word => 13,
                ItemKind::Module => 2,
            };
            let range = convert::range(session, item.span);
            json!({
                "name": item.name, "kind": kind, "detail": item.detail,
                "range": range, "selectionRange": range,
            })
        })
        .collect()
}

fn formatting(document: &Document, _: &Value) -> Value {
    let Ok(text) = format::format(document.text.as_bytes()) else { return Value::Null };
    if text == document.text.as_bytes() {
        return json!([]);
    }
    let end = convert::position(document.text.as_bytes(), document.text.len());
    let range = json!({ "start": { "line": 0, "character": 0 }, "end": end });
    json!([{ "range": range, "newText": String::from_utf8_lossy(&text) }])
}
