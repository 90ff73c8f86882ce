//! `gannet script lsp`: a language server over standard input and output.
//!
//! A thread reads messages (`wire`). The server handles all queued messages before it checks changed documents, so that
//! fast typing causes one check. `convert` converts positions and paths; `gannet_script::tools::query` looks up names.

mod answers;
mod convert;
mod rename;
mod wire;

use std::collections::HashMap;
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::mpsc;

use gannet_script::tools::session;
use gannet_script::tools::session::Session;
use gannet_script::tools::session::Settings;
use gannet_script::tools::warn;
use serde_json::Value;
use serde_json::json;

use super::Load;
use crate::outcome::Outcome;

/// Serve editors: a language server over standard input and output
///
/// Diagnostics while typing, hover with types and documentation, definitions, references,
/// renaming, completion, outline and formatting. Scripts are read in the sandbox and never run.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    load: Load,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let mut settings = args.load.settings(&[]);
    settings.warnings = warn::Level::Default;
    settings.index = true;
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || wire::read_all(&sender));
    let code = session::on_large_stack(move || Server::new(settings).serve(&receiver));
    Ok(match code {
        Some(0) => Outcome::Done,
        _ => Outcome::Code(1),
    })
}

/// An open document.
struct Document {
    path: PathBuf,
    text: String,
    version: Value,
    /// Whether the text changed since the last check.
    is_dirty: bool,
    session: Option<Session>,
    /// The latest session before `session` that has no syntax error.
    complete: Option<Session>,
    /// Files about which findings were published.
    published: HashSet<String>,
}

/// `RequestFailed` of the protocol: the request is valid, but cannot be fulfilled.
const REQUEST_FAILED: i32 = -32803;

struct Server {
    settings: Settings,
    documents: HashMap<String, Document>,
    is_shut_down: bool,
}

impl Server {
    fn new(settings: Settings) -> Self {
        Self { settings, documents: HashMap::new(), is_shut_down: false }
    }

    /// Serves until the client ends the connection; returns the exit code.
    fn serve(&mut self, messages: &mpsc::Receiver<Value>) -> u8 {
        while let Ok(message) = messages.recv() {
            let mut next = Some(message);
            while let Some(message) = next {
                if message["method"] == "exit" {
                    return u8::from(!self.is_shut_down);
                }
                self.handle_message(&message);
                next = messages.try_recv().ok();
            }
            self.check_changed();
        }
        // A client that closes the connection without `exit` does not read the exit code.
        0
    }

    fn handle_message(&mut self, message: &Value) {
        let params = &message["params"];
        let method = message["method"].as_str().unwrap_or_default();
        let Some(id) = message.get("id").filter(|id| !id.is_null()) else {
            return self.handle_notification(method, params);
        };
        if method.is_empty() {
            // A response, which no request of the server expects.
            return;
        }
        // Results refer to the latest text.
        self.check_changed();
        let response = match self.handle_request(method, params) {
            Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
            Err((code, message)) => {
                json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
            }
        };
        wire::write(&response);
    }

    fn handle_notification(&mut self, method: &str, params: &Value) {
        let uri = params["textDocument"]["uri"].as_str().unwrap_or_default().to_owned();
        match method {
            "textDocument/didOpen" => {
                let Some(path) = convert::path(&uri) else { return };
                let document = &params["textDocument"];
                let document = Document {
                    path,
                    text: document["text"].as_str().unwrap_or_default().to_owned(),
                    version: document["version"].clone(),
                    is_dirty: true,
                    session: None,
                    complete: None,
                    published: HashSet::new(),
                };
                self.documents.insert(uri, document);
            }
            "textDocument/didChange" => {
                let Some(document) = self.documents.get_mut(&uri) else { return };
                for change in params["contentChanges"].as_array().into_iter().flatten() {
                    convert::apply(&mut document.text, change);
                }
                document.version = params["textDocument"]["version"].clone();
                document.is_dirty = true;
            }
            "textDocument/didSave" => {
                // Other documents may load the saved file.
                for document in self.documents.values_mut() {
                    document.is_dirty = true;
                }
            }
            "textDocument/didClose" => {
                if let Some(document) = self.documents.remove(&uri) {
                    for uri in document.published {
                        publish(&uri, &Value::Null, &[]);
                    }
                }
            }
            _ => {}
        }
    }

    fn handle_request(&mut self, method: &str, params: &Value) -> Result<Value, (i32, String)> {
        match method {
            "initialize" => {
                self.configure(&params["initializationOptions"]);
                Ok(capabilities())
            }
            "shutdown" => {
                self.is_shut_down = true;
                Ok(Value::Null)
            }
            "textDocument/rename" => {
                let uri = params["textDocument"]["uri"].as_str().unwrap_or_default();
                rename::rename(&self.settings, &self.documents, uri, params)
                    .map_err(|message| (REQUEST_FAILED, message))
            }
            _ => {
                let handler = answers::handler(method)
                    .ok_or_else(|| (-32601, format!("no method {method}")))?;
                let uri = params["textDocument"]["uri"].as_str().unwrap_or_default();
                Ok(self
                    .documents
                    .get(uri)
                    .map_or(Value::Null, |document| handler(document, params)))
            }
        }
    }

    /// Applies the options of the client: `bare`, `zeekScripts`, `warnings` (none, default, all).
    fn configure(&mut self, options: &Value) {
        if let Some(bare) = options["bare"].as_bool() {
            self.settings.bare = bare;
        }
        if let Some(scripts) = options["zeekScripts"].as_str() {
            self.settings.scripts = Some(scripts.to_owned());
        }
        match options["warnings"].as_str() {
            Some("none") => self.settings.warnings = warn::Level::None,
            Some("all") => self.settings.warnings = warn::Level::All,
            _ => {}
        }
    }

    /// Checks changed documents and publishes their diagnostics.
    fn check_changed(&mut self) {
        let changed: Vec<String> = self
            .documents
            .iter()
            .filter(|(_, document)| document.is_dirty)
            .map(|(uri, _)| uri.clone())
            .collect();
        for uri in changed {
            self.check(&uri);
        }
    }

    fn check(&mut self, uri: &str) {
        let overlay = self
            .documents
            .values()
            .map(|document| (document.path.clone(), document.text.clone().into_bytes()))
            .collect();
        let Some(document) = self.documents.get_mut(uri) else { return };
        let settings = Settings {
            files: vec![document.path.to_string_lossy().into_owned()],
            overlay,
            ..self.settings.clone()
        };
        let session = session::read(&settings);
        let mut files = convert::findings(&session, uri, &document.path);
        let gone: Vec<String> =
            document.published.iter().filter(|uri| !files.contains_key(*uri)).cloned().collect();
        for uri in gone {
            files.insert(uri, Vec::new());
        }
        for (file, findings) in &files {
            let version = if file == uri { &document.version } else { &Value::Null };
            publish(file, version, findings);
        }
        document.published = files.into_keys().collect();
        document.is_dirty = false;
        if let Some(old) = document.session.replace(session).filter(|old| old.end.is_ok()) {
            document.complete = Some(old);
        }
    }
}

fn publish(uri: &str, version: &Value, findings: &[Value]) {
    let mut params = json!({ "uri": uri, "diagnostics": findings });
    if version.is_i64() {
        params["version"] = version.clone();
    }
    wire::write(&json!({
        "jsonrpc": "2.0", "method": "textDocument/publishDiagnostics", "params": params,
    }));
}

fn capabilities() -> Value {
    json!({
        "capabilities": {
            "positionEncoding": "utf-16",
            "textDocumentSync": { "openClose": true, "change": 2, "save": true },
            "hoverProvider": true,
            "definitionProvider": true,
            "referencesProvider": true,
            "renameProvider": { "prepareProvider": true },
            "documentSymbolProvider": true,
            "documentFormattingProvider": true,
            "completionProvider": { "triggerCharacters": ["$", ":", "&", "@"] },
        },
        "serverInfo": { "name": "gannet", "version": env!("CARGO_PKG_VERSION") },
    })
}
