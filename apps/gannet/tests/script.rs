//! `gannet script`: checks, formatting, stages, and the language server.

// Helpers of tests panic where a test fails.
#![allow(clippy::unwrap_used, clippy::needless_pass_by_value)]

use std::fs;
use std::io::BufRead;
use std::io::BufReader;
use std::io::Read;
use std::io::Write;
use std::path::PathBuf;
use std::process::Child;
use std::process::ChildStdout;
use std::process::Command;
use std::process::Output;
use std::process::Stdio;

use serde_json::Value;
use serde_json::json;

/// Creates a folder with these files.
fn folder(name: &str, files: &[(&str, &str)]) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("script-{name}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    for (name, text) in files {
        fs::write(folder.join(name), text).unwrap();
    }
    folder.canonicalize().unwrap()
}

fn script(folder: &PathBuf, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gannet"))
        .arg("script")
        .args(args)
        .current_dir(folder)
        .env_remove("ZEEKPATH")
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn check_reports_each_file_and_fails() {
    let files = [
        ("good.zeek", "global a = 1;\n"),
        ("cut.zeek", "global b = );\n"),
        ("bad.zeek", "global c = 1 + \"x\";\n"),
    ];
    let folder = folder("check", &files);
    let good = script(&folder, &["check", "good.zeek"]);
    assert_eq!((good.status.code(), text(&good.stderr)), (Some(0), String::new()));
    let all = script(&folder, &["check", "cut.zeek", "bad.zeek", "good.zeek"]);
    assert_eq!(all.status.code(), Some(1));
    assert_eq!(
        text(&all.stderr),
        "error in ./cut.zeek, line 1: syntax error, at or near \")\"\n\
         error in ./bad.zeek, line 1: requires arithmetic operands (1 + x)\n"
    );
    let json = script(&folder, &["check", "--json", "bad.zeek"]);
    let finding: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(finding["file"], "./bad.zeek");
    assert_eq!((&finding["line"], &finding["column"]), (&json!(1), &json!(12)));
    assert_eq!(finding["code"], "type");
    let missing = script(&folder, &["check", "nowhere.zeek"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(text(&missing.stderr).contains("can't find nowhere.zeek"));
}

#[test]
fn a_syntax_error_is_located_in_the_file_that_leaves_a_block_open() {
    let files = [
        ("brace.zeek", "event start()\n\t{\n\tif ( T )\n\t\t{\n\t\tprint 2;\n\t}\n"),
        ("list.zeek", "global t: table[count] of string = {\n\t[1] = \"a\",\n"),
        ("statement.zeek", "global c: count = 1\n"),
        ("export.zeek", "export {\nglobal q = 1;\n"),
        ("whole.zeek", "event start()\n\t{\n\tprint 3;\n\t}\n"),
        ("global.zeek", "global x = 1;\n"),
        ("wrong.zeek", "}\n"),
    ];
    let folder = folder("open", &files);
    let blamed = |first: &str, then: &str| {
        let output = script(&folder, &["check", "--json", first, then]);
        let finding: Value = serde_json::from_slice(&output.stdout).unwrap();
        let part = |key: &str| finding[key].to_string();
        format!("{} {} {}: {}", part("file"), part("line"), part("column"), part("message"))
    };
    let unclosed = "`{` is not closed at the end of the file";
    assert_eq!(blamed("brace.zeek", "whole.zeek"), format!(r#""./brace.zeek" 2 2: "{unclosed}""#));
    assert_eq!(blamed("list.zeek", "whole.zeek"), format!(r#""./list.zeek" 1 36: "{unclosed}""#));
    assert_eq!(
        blamed("export.zeek", "global.zeek"),
        format!(r#""./export.zeek" 1 8: "{unclosed}""#)
    );
    assert_eq!(
        blamed("statement.zeek", "whole.zeek"),
        r#""./statement.zeek" 1 20: "the file ends within a statement""#
    );
    assert_eq!(blamed("whole.zeek", "wrong.zeek"), r#""./wrong.zeek" 1 1: "unexpected `}`""#);
    let lines = text(&script(&folder, &["check", "brace.zeek", "whole.zeek"]).stderr);
    assert_eq!(
        lines,
        "error in ./whole.zeek, line 2: syntax error, at or near \"{\"\n\
         note in ./brace.zeek, line 2: `{` is not closed at the end of the file\n"
    );
}

#[test]
fn warnings_fail_on_request() {
    let folder = folder("warn", &[("w.zeek", "function f() { local x = 1; }\nf();\n")]);
    let usual = script(&folder, &["check", "w.zeek"]);
    assert_eq!(usual.status.code(), Some(0));
    assert_eq!(
        text(&usual.stderr),
        "warning in ./w.zeek, line 1: local `x` is never read [unused-local]\n"
    );
    assert_eq!(script(&folder, &["check", "--deny-warnings", "w.zeek"]).status.code(), Some(1));
    let none = script(&folder, &["check", "--deny-warnings", "-W", "none", "w.zeek"]);
    assert_eq!((none.status.code(), text(&none.stderr)), (Some(0), String::new()));
}

#[test]
fn formatting_checks_and_writes() {
    let folder = folder("fmt", &[("a.zeek", "global a=1 ;\n"), ("b.zeek", "global b = 1;\n")]);
    let check = script(&folder, &["fmt", "--check", "a.zeek", "b.zeek"]);
    assert_eq!((check.status.code(), text(&check.stdout)), (Some(1), "a.zeek\n".to_owned()));
    assert_eq!(text(&script(&folder, &["fmt", "a.zeek"]).stdout), "global a = 1;\n");
    assert_eq!(script(&folder, &["fmt", "--write", "a.zeek", "b.zeek"]).status.code(), Some(0));
    assert_eq!(fs::read_to_string(folder.join("a.zeek")).unwrap(), "global a = 1;\n");
    assert_eq!(script(&folder, &["fmt", "--check", "a.zeek", "b.zeek"]).status.code(), Some(0));
    fs::write(folder.join("c.zeek"), "global c = \"\n").unwrap();
    let wrong = script(&folder, &["fmt", "c.zeek"]);
    assert_eq!(wrong.status.code(), Some(1));
    assert!(text(&wrong.stderr).starts_with("error: c.zeek, line 1: "));
}

#[test]
fn stages_are_printed() {
    let folder = folder("ir", &[("a.zeek", "function f(n: count): count { return n + 1; }\n")]);
    let code = text(&script(&folder, &["ir", "a.zeek"]).stdout);
    assert!(code.starts_with("function f\n") && code.contains("# n + 1"), "{code}");
    let types = text(&script(&folder, &["ir", "--stage", "types", "a.zeek"]).stdout);
    assert!(types.contains("line 1: count  n + 1"), "{types}");
    let tokens = text(&script(&folder, &["ir", "--stage", "tokens", "a.zeek"]).stdout);
    assert!(tokens.starts_with("   1 Word(Function)  function\n"), "{tokens}");
    let ast = text(&script(&folder, &["ir", "--stage", "ast", "a.zeek"]).stdout);
    assert!(ast.contains("Return n + 1"), "{ast}");
}

/// A client of the language server.
struct Client {
    child: Child,
    output: BufReader<ChildStdout>,
    requests: u64,
    /// The latest diagnostics of each file.
    published: Vec<(String, Value)>,
}

impl Client {
    fn start() -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_gannet"))
            .args(["script", "lsp", "--bare"])
            .env_remove("ZEEKPATH")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut client = Self { child, output, requests: 0, published: Vec::new() };
        let answer = client.request("initialize", json!({ "capabilities": {} }));
        assert_eq!(answer["capabilities"]["hoverProvider"], true);
        client.notify("initialized", json!({}));
        client
    }

    fn send(&mut self, message: &Value) {
        let body = message.to_string();
        let input = self.child.stdin.as_mut().unwrap();
        write!(input, "Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
    }

    fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    fn receive(&mut self) -> Value {
        let mut length = 0;
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "the server ended");
            if line == "\r\n" {
                break;
            }
            if let Some(value) = line.strip_prefix("Content-Length: ") {
                length = value.trim().parse().unwrap();
            }
        }
        let mut body = vec![0; length];
        self.output.read_exact(&mut body).unwrap();
        let message: Value = serde_json::from_slice(&body).unwrap();
        if message["method"] == "textDocument/publishDiagnostics" {
            let uri = message["params"]["uri"].as_str().unwrap().to_owned();
            self.published.retain(|(known, _)| *known != uri);
            self.published.push((uri, message["params"]["diagnostics"].clone()));
        }
        message
    }

    fn request(&mut self, method: &str, params: Value) -> Value {
        self.respond(method, params)["result"].clone()
    }

    /// Sends a request; returns the whole response, with its result or error.
    fn respond(&mut self, method: &str, params: Value) -> Value {
        self.requests += 1;
        let id = self.requests;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        loop {
            let message = self.receive();
            if message["id"] == id {
                return message;
            }
        }
    }

    fn request_at(&mut self, method: &str, uri: &str, line: u32, character: u32) -> Value {
        let position = json!({ "line": line, "character": character });
        let params = json!({ "textDocument": { "uri": uri }, "position": position });
        self.request(&format!("textDocument/{method}"), params)
    }

    fn findings(&self, uri: &str) -> Vec<Value> {
        let found = self.published.iter().find(|(known, _)| known == uri);
        found.and_then(|(_, list)| list.as_array().cloned()).unwrap_or_default()
    }

    fn open(&mut self, uri: &str, text: &str) {
        let document = json!({ "uri": uri, "languageId": "zeek", "version": 1, "text": text });
        self.notify("textDocument/didOpen", json!({ "textDocument": document }));
    }

    fn replace(&mut self, uri: &str, version: u32, text: &str) {
        let document = json!({ "uri": uri, "version": version });
        let changes = json!([{ "text": text }]);
        self.notify(
            "textDocument/didChange",
            json!({ "textDocument": document, "contentChanges": changes }),
        );
    }

    fn labels(answer: &Value) -> Vec<String> {
        let items = answer["items"].as_array().cloned().unwrap_or_default();
        items.iter().map(|item| item["label"].as_str().unwrap().to_owned()).collect()
    }

    fn end(mut self) {
        assert_eq!(self.request("shutdown", Value::Null), Value::Null);
        self.notify("exit", Value::Null);
        assert!(self.child.wait().unwrap().success());
    }
}

const LIBRARY: &str = "\
module Lib;
export {
	## A host and what is known of it.
	type Host: record {
		## Its address.
		address: addr;
		names: set[string] &optional; ##< Its names.
	};
	## Adds a name to a host.
	##
	## h: the host.
	global add_name: function(h: Host, name: string): count;
}
function add_name(h: Host, name: string): count
	{
	return |name|;
	}
";

const MAIN: &str = "\
@load ./library
module Main;
global hosts: table[addr] of Lib::Host;
event seen(a: addr)
	{
	local host = hosts[a];
	print Lib::add_name(host, \"x\"), host$address;
	}
";

#[test]
fn an_editor_is_served_before_a_file_exists() {
    let folder = folder("lsp-new", &[]);
    let mut client = Client::start();
    for uri in [format!("file://{}/new.zeek", folder.display()), "untitled:Untitled-1".to_owned()] {
        client.open(&uri, "function f(name: string): count { return |nam|; }\n");
        let hover = client.request_at("hover", &uri, 0, 9);
        assert!(hover.is_object() || hover.is_null(), "{hover}");
        let findings = client.findings(&uri);
        assert_eq!(
            findings[0]["range"]["start"],
            json!({ "line": 0, "character": 42 }),
            "{findings:?}"
        );
        client.replace(&uri, 2, "function f(name: string): count { return |name|; }\n");
        let hover = client.request_at("hover", &uri, 0, 9);
        let shown = hover["contents"]["value"].as_str().unwrap();
        assert!(shown.contains("function f(name: string): count"), "{shown}");
        assert_eq!(client.findings(&uri), Vec::<Value>::new());
    }
    // An open document that is not saved can be loaded by another one.
    let uri = format!("file://{}/main.zeek", folder.display());
    client.open(&uri, "@load ./new\nglobal n = f(\"a\");\n");
    client.request_at("hover", &uri, 0, 0);
    assert_eq!(client.findings(&uri), Vec::<Value>::new());
}

#[test]
fn an_editor_renames_declarations() {
    let folder = folder("lsp-rename", &[("library.zeek", LIBRARY), ("main.zeek", MAIN)]);
    let uri = format!("file://{}/main.zeek", folder.display());
    let library = format!("file://{}/library.zeek", folder.display());
    let mut client = Client::start();
    let more = "\
event seen(a: addr)
\t{
\tlocal outer = 1;
\tlocal add_one = function [outer] (n: count): count { return n + outer; };
\tlocal h: Lib::Host = [$address=a];
\th = Lib::Host($address=a, $names=set(\"outer\"));
\tif ( h?$names ) print add_one(outer), h$names;
\t}
event zeek_init() { event seen(1.2.3.4); }
";
    let main = format!("{MAIN}{more}");
    client.open(&uri, &main);
    let mut rename = |line: u32, character: u32, new: &str| {
        let position = json!({ "line": line, "character": character });
        let params =
            json!({ "textDocument": { "uri": uri }, "position": position, "newName": new });
        client.request_at("hover", &uri, 0, 0);
        let answer = client.respond("textDocument/rename", params);
        if let Some(error) = answer.get("error") {
            assert_eq!(error["code"], -32803, "{error}");
            return Err(error["message"].as_str().unwrap().to_owned());
        }
        // Applies the edits to the texts, the last one first.
        let mut texts = [main.clone(), LIBRARY.to_owned()];
        for (text, uri) in texts.iter_mut().zip([&uri, &library]) {
            let edits = answer["result"]["changes"][uri].as_array().cloned().unwrap_or_default();
            for edit in edits.iter().rev() {
                let at = |what: &str| {
                    let place = &edit["range"][what];
                    let lines = text.split_inclusive('\n');
                    let line = usize::try_from(place["line"].as_u64().unwrap()).unwrap();
                    let before: usize = lines.take(line).map(str::len).sum();
                    before + usize::try_from(place["character"].as_u64().unwrap()).unwrap()
                };
                let range = at("start")..at("end");
                text.replace_range(range, edit["newText"].as_str().unwrap());
            }
        }
        Ok(texts)
    };
    let changed = |old: &str, new: &str, texts: &[String; 2]| {
        let before = main.clone() + LIBRARY;
        let after = texts.concat();
        let words = |text: &str, word: &str| {
            let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
            text.split(|c| !is_part(c)).filter(|found| *found == word).count()
        };
        (words(&before, old), words(&after, old), words(&after, new))
    };
    // A function of another file; the comments keep its name.
    let texts = rename(6, 14, "name_it").unwrap();
    assert_eq!(changed("add_name", "name_it", &texts), (3, 0, 3));
    assert!(texts[1].contains("function name_it(h: Host"), "{}", texts[1]);
    // A field, in a constructor with and without a type.
    let texts = rename(6, 40, "ip").unwrap();
    assert_eq!(changed("address", "ip", &texts), (5, 1, 4), "{texts:?}");
    assert!(texts[0].contains("[$ip=a]") && texts[0].contains("Lib::Host($ip=a"), "{texts:?}");
    // A local and its capture; a string with the same text does not change.
    let texts = rename(10, 8, "base").unwrap();
    assert_eq!(changed("outer", "base", &texts), (5, 1, 4), "{texts:?}");
    // A type, named with and without its module.
    let texts = rename(12, 17, "Machine").unwrap();
    assert_eq!(changed("Host", "Machine", &texts), (6, 0, 6), "{texts:?}");
    // An event, with its handlers.
    let texts = rename(8, 7, "met").unwrap();
    assert_eq!(changed("seen", "met", &texts), (3, 0, 3), "{texts:?}");
    // Refused names and positions.
    let refused = [
        (16, 7, "start", "a name of Zeek's own scripts"),
        (6, 14, "local", "`local` is not a valid name"),
        (6, 14, "a b", "`a b` is not a valid name"),
        (6, 14, "Host", "`Host` does not fit: "),
        (10, 8, "add_one", "`add_one` does not fit: "),
        (1, 0, "x", "no name of a script"),
    ];
    for (line, character, new, words) in refused {
        let error = rename(line, character, new).unwrap_err();
        assert!(error.contains(words), "{error}");
    }
    let range = client.request_at("prepareRename", &uri, 6, 14);
    assert_eq!(range["placeholder"], "add_name");
    assert_eq!(range["range"]["start"], json!({ "line": 6, "character": 12 }));
    assert_eq!(client.request_at("prepareRename", &uri, 16, 7), Value::Null);
    client.end();
}

#[test]
fn an_editor_is_served() {
    let folder = folder("lsp", &[("library.zeek", LIBRARY), ("main.zeek", MAIN)]);
    let uri = format!("file://{}/main.zeek", folder.display());
    let library = format!("file://{}/library.zeek", folder.display());
    let mut client = Client::start();
    client.open(&uri, MAIN);

    let hover = client.request_at("hover", &uri, 6, 14);
    let shown = hover["contents"]["value"].as_str().unwrap();
    assert!(shown.contains("function Lib::add_name(h: Lib::Host, name: string): count"), "{shown}");
    assert!(shown.ends_with("Adds a name to a host.\n\nh: the host."), "{shown}");
    assert_eq!(client.findings(&uri), Vec::<Value>::new());
    let field = client.request_at("hover", &uri, 6, 43);
    let shown = field["contents"]["value"].as_str().unwrap();
    assert!(
        shown.contains("Lib::Host$address: addr") && shown.ends_with("Its address."),
        "{shown}"
    );
    let local = client.request_at("hover", &uri, 6, 22);
    assert!(local["contents"]["value"].as_str().unwrap().contains("local host: Lib::Host"));

    let definition = client.request_at("definition", &uri, 6, 14);
    assert_eq!(definition["uri"], library);
    assert_eq!(definition["range"]["start"]["line"], 13);
    let definition = client.request_at("definition", &uri, 5, 15);
    assert_eq!(
        (&definition["uri"], &definition["range"]["start"]["line"]),
        (&json!(uri), &json!(2))
    );
    let references = client.request_at("references", &uri, 5, 8);
    assert_eq!(references.as_array().unwrap().len(), 3, "{references}");

    let outline =
        client.request("textDocument/documentSymbol", json!({ "textDocument": { "uri": uri } }));
    let names: Vec<&str> =
        outline.as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["Main::hosts", "seen"]);

    // Incomplete text, as while typing.
    let typing =
        MAIN.replace("\tprint Lib::add_name(host, \"x\"), host$address;\n", "\tprint host$\n");
    client.replace(&uri, 2, &typing);
    let fields = client.request_at("completion", &uri, 6, 12);
    assert_eq!(Client::labels(&fields), ["address", "names"]);
    assert_eq!(client.findings(&uri)[0]["code"], "syntax");
    let typing = MAIN.replace("print Lib::add_name(host, \"x\"), host$address;", "print Lib::ad");
    client.replace(&uri, 3, &typing);
    assert_eq!(Client::labels(&client.request_at("completion", &uri, 6, 14)), ["Lib::add_name"]);
    let typing = MAIN.replace("print Lib::add_name(host, \"x\"), host$address;", "print ho");
    client.replace(&uri, 4, &typing);
    let names = Client::labels(&client.request_at("completion", &uri, 6, 9));
    assert!(
        names.starts_with(&["host".to_owned(), "hook".to_owned(), "hosts".to_owned()]),
        "{names:?}"
    );

    // A type error caused by unsaved text of a loaded file.
    client.open(
        &library,
        &LIBRARY.replace("name: string): count", "name: string): string").replace("|name|", "name"),
    );
    client.replace(
        &uri,
        5,
        &MAIN.replace("print Lib", "local n: count = Lib").replace(", host$address", ""),
    );
    client.request_at("hover", &uri, 0, 0);
    let findings = client.findings(&uri);
    assert_eq!(findings[0]["code"], "type", "{findings:?}");
    assert_eq!(findings[0]["range"]["start"], json!({ "line": 6, "character": 18 }));

    let untidy = json!({ "textDocument": { "uri": uri }, "options": {} });
    client.replace(&uri, 6, "global a=1;\n");
    let edits = client.request("textDocument/formatting", untidy);
    assert_eq!(edits[0]["newText"], "global a = 1;\n");
    assert_eq!(client.findings(&uri), Vec::<Value>::new());
    client.notify("textDocument/didClose", json!({ "textDocument": { "uri": uri } }));
    client.end();
}

#[test]
fn a_profile_counts_calls_and_times() {
    let code = "function fib(n: count): count\n\t{\n\tif ( n < 2 )\n\t\treturn n;\n\treturn fib(n - 1) + fib(n - 2);\n\t}\n\
                function spin()\n\t{\n\tlocal n = 0;\n\twhile ( n < 10 )\n\t\t++n;\n\t}\nspin();\nspin();\nprint fib(24);\n";
    let folder = folder("profile", &[("fib.zeek", code)]);
    let output = Command::new(env!("CARGO_BIN_EXE_gannet"))
        .args(["zeek", "-b", "--profile-scripts=profile.txt", "fib.zeek"])
        .current_dir(&folder)
        .env_remove("ZEEKPATH")
        .output()
        .unwrap();
    assert_eq!(text(&output.stdout), "46368\n");
    let report = fs::read_to_string(folder.join("profile.txt")).unwrap();
    let row = |name: &str| {
        let line = report.lines().find(|line| line.contains(name)).unwrap_or_default();
        line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    let fib = row("fib  ./fib.zeek:2");
    assert_eq!(fib.first().map(String::as_str), Some("150049"), "{report}");
    assert_eq!(row("spin  ").first().map(String::as_str), Some("2"), "{report}");
    assert!(fib[1].parse::<f64>().unwrap() > 0.0, "{report}");
    assert!(report.contains("./fib.zeek:5  return fib(n - 1) + fib(n - 2);"), "{report}");
}
