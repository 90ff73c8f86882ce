//! In a sandbox scripts start no processes and change no files.

mod printed;
mod reported;

use std::fs;
use std::path::Path;
use std::path::PathBuf;

/// The functions that a sandbox refuses, as Zeek's scripts declare them.
const DECLARED: &str = r#"
global system: function(str: string): int;
type env_table: table[string] of string;
global system_env: function(str: string, env: env_table): int;
global piped_exec: function(program: string, to_write: string): bool;
global open: function(f: string): file;
global open_for_append: function(f: string): file;
global active_file: function(f: file): bool;
global close: function(f: file): bool;
global mkdir: function(f: string): bool;
global rmdir: function(d: string): bool;
global unlink: function(f: string): bool;
global rename: function(src_f: string, dst_f: string): bool;

module Broker;
export {
	type BackendType: enum { MEMORY, SQLITE };
	type SQLiteOptions: record { path: string; };
	type BackendOptions: record { sqlite: SQLiteOptions; };
	global __create_master: function(id: string, b: BackendType, options: BackendOptions): opaque of Broker::Store;
	global __is_closed: function(h: opaque of Broker::Store): bool;
}

module Storage;
export {
	type Backend: enum { STORAGE_BACKEND_SQLITE };
	type ReturnCode: enum { SUCCESS, OPERATION_FAILED };
	type OperationResult: record { code: ReturnCode; error_str: string &optional; value: any &optional; };
	type Options: record {
		database_path: string;
		table_name: string &default="t";
		busy_timeout: interval &default=1sec;
		pragma_commands: table[string] of string &default=table();
	};
	type BackendOptions: record { forced_sync: bool &default=F; sqlite: Options; };
	global is_open: function(backend: opaque of Storage::BackendHandle): bool;
}

module Storage::Sync;
export {
	global __open_backend: function(btype: Storage::Backend, options: any, key_type: any, val_type: any): Storage::OperationResult;
}

module GLOBAL;
"#;

/// Runs a script. Returns its output and the reported messages.
fn run(code: &str, sandbox: bool) -> (String, String) {
    reported::run(&format!("{DECLARED}\n{code}"), |machine| machine.set_sandbox(sandbox))
}

#[expect(clippy::unwrap_used, reason = "a folder for tests")]
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("kept"), "kept").unwrap();
    folder
}

/// Scripts that start a process or change a file, with their output outside of a sandbox, for this build.
fn effects(folder: &Path) -> Vec<(String, &'static str)> {
    let mut all = all_effects(folder);
    // A build without SQLite has no databases.
    all.retain(|(code, _)| cfg!(feature = "sqlite") || !code.contains("sqlite"));
    all
}

fn all_effects(folder: &Path) -> Vec<(String, &'static str)> {
    let at = |name: &str| folder.join(name).display().to_string();
    vec![
        (format!("print piped_exec(\"cat > {}\", \"x\");", at("made")), "T\n"),
        (format!("local f = open(\"{}\"); print active_file(f); close(f);", at("made")), "T\n"),
        (
            format!(
                "local f = open_for_append(\"{}\"); print active_file(f); close(f);",
                at("made")
            ),
            "T\n",
        ),
        (
            format!(
                "print ! Broker::__is_closed(Broker::__create_master(\"x\", Broker::SQLITE, \
                 [$sqlite=[$path=\"{}\"]]));",
                at("made")
            ),
            "T\n",
        ),
        (
            format!(
                "local o: Storage::BackendOptions = [$sqlite=[$database_path=\"{}\"]];\
                 print Storage::Sync::__open_backend(Storage::STORAGE_BACKEND_SQLITE, o, string, \
                 string)$code == Storage::SUCCESS;",
                at("made")
            ),
            "T\n",
        ),
        (format!("print mkdir(\"{}\");", at("made")), "T\n"),
        (format!("print rename(\"{}\", \"{}\");", at("kept"), at("made")), "T\n"),
        (format!("print unlink(\"{}\");", at("kept")), "T\n"),
        (format!("print system(\"touch {}; true\") == 0;", at("made")), "T\n"),
        (format!("print system_env(\"touch {}; true\", table()) == 0;", at("made")), "T\n"),
    ]
}

#[test]
fn a_sandbox_refuses_each_effect() {
    let folder = folder("sandbox-closed");
    for (code, _) in effects(&folder) {
        let (printed, reported) = run(&code, true);
        assert_eq!(printed, "F\n", "{code}");
        assert!(reported.contains("is not allowed in a sandbox"), "{code}: {reported}");
    }
    assert!(folder.join("kept").is_file());
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
}

#[test]
fn outside_of_a_sandbox_each_effect_is_allowed() {
    for index in 0..effects(Path::new("")).len() {
        let folder = folder("sandbox-open");
        let (code, expected) = effects(&folder).swap_remove(index);
        let (printed, reported) = run(&code, false);
        assert_eq!((printed.as_str(), reported.as_str()), (expected, ""), "{code}");
    }
}

#[test]
fn standard_output_is_open_in_a_sandbox() {
    let code = "local f = open(\"/dev/stdout\"); print active_file(f); print f, \"seen\";";
    assert_eq!(run(code, true), ("T\nseen\n".to_owned(), String::new()));
    let code = "local f = open(\"-\"); print active_file(f); print f, \"seen\";";
    assert_eq!(run(code, true), ("T\nseen\n".to_owned(), String::new()));
}
