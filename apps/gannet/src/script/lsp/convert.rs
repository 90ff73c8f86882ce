//! Converts paths, positions and findings to and from those of the Language Server Protocol.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::path::PathBuf;

use gannet_script::source::Span;
use gannet_script::tools::finding::Finding;
use gannet_script::tools::session::Session;
use serde_json::Value;
use serde_json::json;

/// The path that a `file:` URI names, canonical where the file exists. For a document without a
/// file, its `untitled:` URI.
pub(super) fn path(uri: &str) -> Option<PathBuf> {
    if uri.starts_with("untitled:") {
        return Some(PathBuf::from(uri));
    }
    let rest = uri.strip_prefix("file://")?;
    let rest = &rest[rest.find('/')?..];
    let mut bytes = Vec::new();
    let mut open = rest.bytes();
    while let Some(byte) = open.next() {
        if byte == b'%' {
            let digits = [open.next()?, open.next()?];
            bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    let path = PathBuf::from(String::from_utf8(bytes).ok()?);
    Some(fs::canonicalize(&path).unwrap_or(path))
}

/// The URI of a path.
pub(super) fn uri(path: &str) -> String {
    let path = fs::canonicalize(path).unwrap_or_else(|_| PathBuf::from(path));
    let mut uri = "file://".to_owned();
    for byte in path.to_string_lossy().bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            uri.push_str(&format!("%{byte:02X}"));
        }
    }
    uri
}

/// Whether `found`, a path as a session stores it, names the same file as the canonical `path`.
pub(super) fn is_same_file(path: &Path, found: &str) -> bool {
    Path::new(found) == path || fs::canonicalize(found).is_ok_and(|found| found == path)
}

/// The position of an offset: the line and the UTF-16 code units before it in the line, both counted from 0.
pub(super) fn position(text: &[u8], offset: usize) -> Value {
    let before = text.get(..offset).unwrap_or(text);
    let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let line = before.iter().filter(|byte| **byte == b'\n').count();
    let character = String::from_utf8_lossy(&before[start..]).encode_utf16().count();
    json!({ "line": line, "character": character })
}

/// The offset of a position; at most the end of its line or of the text.
pub(super) fn offset(text: &str, position: &Value) -> usize {
    let line = usize::try_from(position["line"].as_u64().unwrap_or(0)).unwrap_or(usize::MAX);
    let character =
        usize::try_from(position["character"].as_u64().unwrap_or(0)).unwrap_or(usize::MAX);
    let mut start = 0;
    for _ in 0..line {
        match text[start..].find('\n') {
            Some(at) => start += at + 1,
            None => return text.len(),
        }
    }
    let mut units = 0;
    for (at, letter) in text[start..].char_indices() {
        if units >= character || letter == '\n' {
            return start + at;
        }
        units += letter.len_utf16();
    }
    text.len()
}

/// Applies a change: a new text for a range, or for the whole document.
pub(super) fn apply(text: &mut String, change: &Value) {
    let new = change["text"].as_str().unwrap_or_default();
    match change.get("range") {
        Some(range) => {
            let (from, to) = (offset(text, &range["start"]), offset(text, &range["end"]));
            text.replace_range(from..to.max(from), new);
        }
        None => new.clone_into(text),
    }
}

/// The range of a span.
pub(super) fn range(session: &Session, span: Span) -> Value {
    let Some(file) = session.program.sources.files.find(span.file).filter(|_| span.is_somewhere())
    else {
        return json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 0, "character": 0 } });
    };
    json!({
        "start": position(&file.text, span.start as usize),
        "end": position(&file.text, span.end as usize),
    })
}

/// The location of a span: a URI and a range.
pub(super) fn location(session: &Session, span: Span) -> Option<Value> {
    let file = session.program.sources.files.find(span.file)?;
    Some(json!({ "uri": uri(&file.path), "range": range(session, span) }))
}

/// Diagnostics by the URI of their file; the document's own file always has an entry.
pub(super) fn findings(session: &Session, own: &str, path: &Path) -> HashMap<String, Vec<Value>> {
    let mut files: HashMap<String, Vec<Value>> = HashMap::from([(own.to_owned(), Vec::new())]);
    for finding in &session.findings {
        let file = finding.file().and_then(|file| session.program.sources.files.find(file));
        let uri = match file {
            Some(file) if !is_same_file(path, &file.path) => uri(&file.path),
            _ => own.to_owned(),
        };
        files.entry(uri).or_default().push(diagnostic(session, finding));
    }
    files
}

fn diagnostic(session: &Session, finding: &Finding) -> Value {
    let span = finding.span().unwrap_or(Span::NOWHERE);
    let mut message = finding.message.clone();
    if let Some(label) = finding.labels.first().filter(|label| !label.text.is_empty())
        && !message.contains(&label.text)
    {
        message = format!("{message}: {}", label.text);
    }
    if let Some(hint) = &finding.hint {
        message = format!("{message}\nhint: {hint}");
    }
    let related: Vec<Value> = finding
        .labels
        .iter()
        .skip(1)
        .filter_map(|label| {
            let message = if label.text.is_empty() { "see also" } else { &label.text };
            Some(json!({ "location": location(session, label.span)?, "message": message }))
        })
        .collect();
    let mut tags = Vec::new();
    if matches!(finding.code, "unused-local" | "unreachable-code" | "unused-function") {
        tags.push(1);
    }
    if finding.code == "deprecated" {
        tags.push(2);
    }
    json!({
        "range": range(session, span),
        "severity": if finding.severity.is_error() { 1 } else { 2 },
        "code": finding.code,
        "source": "gannet",
        "message": message,
        "relatedInformation": related,
        "tags": tags,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_utf_16_units() {
        let text = "a\n\u{1f600}b\nc";
        assert_eq!(offset(text, &json!({ "line": 1, "character": 2 })), 6);
        assert_eq!(position(text.as_bytes(), 6), json!({ "line": 1, "character": 2 }));
        assert_eq!(offset(text, &json!({ "line": 9, "character": 0 })), text.len());
        assert_eq!(offset(text, &json!({ "line": 0, "character": 9 })), 1);
    }

    #[test]
    fn changes_are_applied_in_place() {
        let mut text = "one\ntwo\n".to_owned();
        let range =
            json!({ "start": { "line": 1, "character": 0 }, "end": { "line": 1, "character": 3 } });
        apply(&mut text, &json!({ "range": range, "text": "2" }));
        assert_eq!(text, "one\n2\n");
        apply(&mut text, &json!({ "text": "all" }));
        assert_eq!(text, "all");
    }

    #[test]
    fn paths_and_uris_are_inverse() {
        assert_eq!(path("file:///nowhere/a%20b.zeek"), Some(PathBuf::from("/nowhere/a b.zeek")));
        assert_eq!(uri("/nowhere/a b.zeek"), "file:///nowhere/a%20b.zeek");
        assert_eq!(path("untitled:1"), Some(PathBuf::from("untitled:1")));
        assert_eq!(path("git:/nowhere/a.zeek"), None);
        assert_eq!(path("file:///%2"), None);
    }
}
