//! Stores of the Broker framework whose entries are in a database, where other runs find them.
// Tests may unwrap; Clippy's exception covers only test functions, not their helpers.
#![allow(clippy::unwrap_used)]
#![cfg(feature = "sqlite")]

mod printed;
mod reported;

use std::fs;
use std::path::Path;
use std::path::PathBuf;

/// The types and functions of stores that the tests need.
const DECLARED: &str = r#"
module Broker;

export {
	type Data: record { data: opaque of Broker::Data &optional; };
	type QueryStatus: enum { SUCCESS, FAILURE };
	type QueryResult: record { status: QueryStatus; result: Data; };
	type BackendType: enum { MEMORY, SQLITE };
	type SQLiteFailureMode: enum { SQLITE_FAILURE_MODE_FAIL, SQLITE_FAILURE_MODE_DELETE };
	type SQLiteSynchronous: enum { SQLITE_SYNCHRONOUS_OFF };
	type SQLiteOptions: record {
		path: string &default="";
		synchronous: SQLiteSynchronous &optional;
		failure_mode: SQLiteFailureMode &default=SQLITE_FAILURE_MODE_FAIL;
		integrity_check: bool &default=F;
	};
	type BackendOptions: record { sqlite: SQLiteOptions; };
	global __create_master: function(id: string, b: BackendType, options: BackendOptions): opaque of Broker::Store;
	global __is_closed: function(h: opaque of Broker::Store): bool;
	global __close: function(h: opaque of Broker::Store): bool;
	global __put: function(h: opaque of Broker::Store, k: any, v: any, e: interval): bool;
	global __put_unique: function(h: opaque of Broker::Store, k: any, v: any, e: interval): QueryResult;
	global __insert_into_set: function(h: opaque of Broker::Store, k: any, i: any, e: interval): bool;
	global __erase: function(h: opaque of Broker::Store, k: any): bool;
	global __clear: function(h: opaque of Broker::Store): bool;
	global __get: function(h: opaque of Broker::Store, k: any): QueryResult;
	global __keys: function(h: opaque of Broker::Store): QueryResult;
}

module GLOBAL;

function opened(path: string): opaque of Broker::Store
	{
	return Broker::__create_master("hosts", Broker::SQLITE, [$sqlite=[$path=path]]);
	}

function show(store: opaque of Broker::Store)
	{
	when [store] ( local keys = Broker::__keys(store) )
		{
		print (keys$result as set[string]);
		}
	timeout 1sec { print "no keys"; }
	}

function show_one(store: opaque of Broker::Store, key: string)
	{
	when [store, key] ( local found = Broker::__get(store, key) )
		{
		print key, found$status;
		}
	timeout 1sec { print "no answer"; }
	}
"#;

/// Runs a script with `code` in `zeek_init`, in which `PATH` is the database. Returns its output and the reported messages.
fn run(path: &Path, code: &str) -> (String, String) {
    let path = format!("\"{}\"", path.display());
    let code = format!("{DECLARED}\nevent zeek_init() {{ {} }}\n", code.replace("PATH", &path));
    reported::run(&code, |_| ())
}

fn database(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_file(&path);
    path
}

#[test]
fn another_run_finds_the_entries_of_a_store() {
    let path = database("again.sqlite");
    let first = r#"
        local s = opened(PATH);
        Broker::__put(s, "a", set(1.2.3.4, [::1]), 0sec);
        Broker::__put(s, "b", 5, 0sec);
        Broker::__put(s, "c", 5, 0sec);
        Broker::__put(s, "over", 5, 1usec);
        Broker::__insert_into_set(s, "d", 80/tcp, 0sec);
        Broker::__erase(s, "b");
        when [s] ( local done = Broker::__put_unique(s, "e", T, 0sec) ) { print done$status; }
        timeout 1sec { print "no answer"; }
    "#;
    assert_eq!(run(&path, first), ("Broker::SUCCESS\n".to_owned(), String::new()));
    let second = r#"
        local s = opened(PATH);
        show(s);
        show_one(s, "a");
        show_one(s, "b");
    "#;
    let keys = "{\na,\nc,\nd,\ne\n}\n";
    let shown = format!("{keys}a, Broker::SUCCESS\nb, Broker::FAILURE\n");
    let (printed, reported) = run(&path, second);
    let sorted = |text: &str| {
        let mut lines: Vec<_> = text.lines().map(|l| l.trim_matches([' ', ',', '\t'])).collect();
        lines.sort_unstable();
        lines.join("\n")
    };
    assert_eq!((sorted(&printed), reported), (sorted(&shown), String::new()));
    let third = "local s = opened(PATH); Broker::__clear(s); print Broker::__close(s);\
                 show(opened(PATH));";
    assert_eq!(run(&path, third), ("T\n{\n\n}\n".to_owned(), String::new()));
    fs::remove_file(path).unwrap();
}

#[test]
fn a_store_without_its_database_is_closed_and_reported() {
    let path = database("other.sqlite");
    fs::write(&path, "no database, but a text that is long enough to be one").unwrap();
    let (printed, reported) = run(&path, "print Broker::__is_closed(opened(PATH));");
    assert_eq!(printed, "T\n");
    assert!(reported.contains("Failed to attach master store hosts: "), "{reported}");
    assert!(reported.contains("Could not create Broker master store 'hosts'"), "{reported}");
    let deleted = r#"
        local options: Broker::SQLiteOptions = [$path=PATH, $integrity_check=T,
            $failure_mode=Broker::SQLITE_FAILURE_MODE_DELETE,
            $synchronous=Broker::SQLITE_SYNCHRONOUS_OFF];
        print Broker::__is_closed(Broker::__create_master("hosts", Broker::SQLITE, [$sqlite=options]));
    "#;
    assert_eq!(run(&path, deleted), ("F\n".to_owned(), String::new()));
    fs::remove_file(path).unwrap();
}
