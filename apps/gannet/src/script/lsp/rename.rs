//! Renames a local, a global or a field in all open documents and the scripts that they load.
//!
//! The scripts are checked with the new name before the edits are returned: if they have more errors than before, the
//! request is refused.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::collections::HashMap;
use std::path::PathBuf;

use gannet_script::program::Program;
use gannet_script::program::Target;
use gannet_script::source::Span;
use gannet_script::tools::query;
use gannet_script::tools::query::Occurrences;
use gannet_script::tools::session;
use gannet_script::tools::session::Session;
use gannet_script::tools::session::Settings;
use serde_json::Value;
use serde_json::json;

use super::Document;
use super::answers;
use super::convert;

/// The declared name to replace.
pub(super) struct RenameTarget {
    pub(super) name: String,
    pub(super) range: Value,
    /// The path and offset of the declaration.
    declared: (String, u32),
}

/// Finds the target at the position of a request. Names in Zeek's own scripts are refused.
pub(super) fn find_target(document: &Document, params: &Value) -> Result<RenameTarget, String> {
    let (session, target, at) =
        answers::target_at(document, params).ok_or("no name of a script is at this position")?;
    let all = query::occurrences(&session.program, target)
        .ok_or("no script declares it: it is part of the language")?;
    refuse_foreign(session, &all)?;
    let occurrence = all.spans.iter().find(|span| {
        span.file == at.file && span.start >= at.start && span.end <= at.end.max(at.start)
    });
    let range = convert::range(session, occurrence.copied().unwrap_or(at));
    let path = path_of(&session.program, all.declared).unwrap_or_default();
    Ok(RenameTarget { name: all.name, range, declared: (path, all.declared.start) })
}

/// Refuses names that occur in Zeek's own scripts.
fn refuse_foreign(session: &Session, all: &Occurrences) -> Result<(), String> {
    for span in std::iter::once(&all.declared).chain(&all.spans) {
        let path = path_of(&session.program, *span).unwrap_or_default();
        if session.is_of_zeek(&path) {
            return Err(format!("`{}` is a name of Zeek's own scripts ({path})", all.name));
        }
    }
    Ok(())
}

fn path_of(program: &Program, span: Span) -> Option<String> {
    program.sources.files.find(span.file).map(|file| file.path.to_string())
}

/// Ranges of files: the path of each file, start and end offsets.
type Ranges = BTreeMap<PathBuf, BTreeSet<(usize, usize)>>;

/// The edits for a rename request.
pub(super) fn rename(
    settings: &Settings,
    documents: &HashMap<String, Document>,
    uri: &str,
    params: &Value,
) -> Result<Value, String> {
    let document = documents.get(uri).ok_or("the document is not open")?;
    let new = params["newName"].as_str().unwrap_or_default();
    if !query::is_identifier(new) {
        return Err(format!(
            "`{new}` is not a valid name; use letters, digits and `_`, and no reserved word"
        ));
    }
    let found = find_target(document, params)?;
    if found.name == new {
        return Ok(json!({ "changes": {} }));
    }
    let mut ranges = Ranges::new();
    let mut texts: BTreeMap<PathBuf, Vec<u8>> = BTreeMap::new();
    let mut affected = Vec::new();
    for document in documents.values() {
        let Some(session) = &document.session else { continue };
        let Some(target) = find_declared(&session.program, &found.declared) else { continue };
        if session.end.is_err() {
            return Err("a script has a syntax error: names after it are unknown".to_owned());
        }
        let Some(all) = query::occurrences(&session.program, target) else { continue };
        refuse_foreign(session, &all)?;
        affected.push(document);
        for span in all.spans {
            let Some(file) = session.program.sources.files.find(span.file) else { continue };
            let path = PathBuf::from(&*file.path);
            let path = std::fs::canonicalize(&path).unwrap_or(path);
            texts.entry(path.clone()).or_insert_with(|| file.text.to_vec());
            ranges.entry(path).or_default().insert((span.start as usize, span.end as usize));
        }
    }
    check(settings, documents, &affected, &edited(&texts, &ranges, new))
        .map_err(|message| format!("`{new}` does not fit: {message}"))?;
    let mut changes = json!({});
    for (path, ranges) in &ranges {
        let Some(text) = texts.get(path) else { continue };
        let edits = ranges.iter().map(|(from, to)| {
            let (start, end) = (convert::position(text, *from), convert::position(text, *to));
            json!({ "range": { "start": start, "end": end }, "newText": new })
        });
        let uri = documents.iter().find(|(_, document)| document.path == *path);
        let uri = uri.map_or_else(|| convert::uri(&path.to_string_lossy()), |(uri, _)| uri.clone());
        changes[uri] = edits.collect();
    }
    Ok(json!({ "changes": changes }))
}

/// The target in another program whose declaration has this path and offset.
fn find_declared(program: &Program, (path, start): &(String, u32)) -> Option<Target> {
    let is_declared_there = |found: &&gannet_script::program::Use| {
        query::declaration(program, found.target).is_some_and(|(_, declared)| {
            declared.start == *start && path_of(program, declared).as_ref() == Some(path)
        })
    };
    let uses = program.uses.as_deref()?;
    uses.iter().find(is_declared_there).map(|found| found.target)
}

fn edited(
    texts: &BTreeMap<PathBuf, Vec<u8>>,
    ranges: &Ranges,
    new: &str,
) -> HashMap<PathBuf, Vec<u8>> {
    let edit = |(path, text): (&PathBuf, &Vec<u8>)| {
        let mut text = text.clone();
        for (from, to) in ranges.get(path).into_iter().flatten().rev() {
            if *to <= text.len() && from <= to {
                text.splice(from..to, new.bytes());
            }
        }
        (path.clone(), text)
    };
    texts.iter().map(edit).collect()
}

/// Checks documents with edited texts. Returns the first error of a document that has more errors than before.
fn check(
    settings: &Settings,
    documents: &HashMap<String, Document>,
    affected: &[&Document],
    edited: &HashMap<PathBuf, Vec<u8>>,
) -> Result<(), String> {
    let mut overlay: HashMap<PathBuf, Vec<u8>> = documents
        .values()
        .map(|document| (document.path.clone(), document.text.clone().into_bytes()))
        .collect();
    overlay.extend(edited.clone());
    for document in affected {
        let settings = Settings {
            files: vec![document.path.to_string_lossy().into_owned()],
            overlay: overlay.clone().into_iter().collect(),
            ..settings.clone()
        };
        let session = session::read(&settings);
        let errors = |session: &Session| {
            session.findings.iter().filter(|finding| finding.severity.is_error()).count()
        };
        if errors(&session) > document.session.as_ref().map_or(0, errors) {
            let new = session.findings.iter().find(|finding| finding.severity.is_error());
            let location = new.and_then(|new| {
                let span = new.span()?;
                Some(format!("{}, line {}", path_of(&session.program, span)?, span.first))
            });
            let message = new.map_or("error", |new| &new.message);
            return Err(format!("{message} ({})", location.unwrap_or_default()));
        }
    }
    Ok(())
}
