//! Zeek's own scripts and the table of its built-in functions, from the folder `shared` next to the project or the one that
//! `GANNET_SHARED` names: every file of `base` and `policy` is checked without messages, and every built-in function exists.
//! Without that folder the tests print that they are skipped.

#![allow(clippy::print_stderr, reason = "a test that is skipped says so")]

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};

use gannet_script::bif::Natives;
use gannet_script::command::{self, Options};
use gannet_script::diagnostics::Diagnostics;
use gannet_script::parse::Parser;
use gannet_script::program::Program;
use gannet_script::types::Type;
use gannet_script::vm::Machine;

/// Stack size in bytes of a parser thread.
const STACK_SIZE: usize = 256 << 20;

fn shared() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let shared = std::env::var_os("GANNET_SHARED").map_or(root.join("../shared"), PathBuf::from);
    let folder = shared.join("zeek");
    if !folder.join("scripts.tar.xz").is_file() {
        eprintln!("skipped: no scripts in {}: GANNET_SHARED names another", folder.display());
        return None;
    }
    Some(folder)
}

/// Unpacks Zeek's scripts. Returns the search path, or `None` if they or `tar` are missing.
fn search_path(shared: &Path, name: &str) -> Option<Vec<String>> {
    let to = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&to);
    std::fs::create_dir_all(&to).ok()?;
    // Some files open logs in the current folder while they are parsed.
    std::env::set_current_dir(env!("CARGO_TARGET_TMPDIR")).ok()?;
    let mut tar = Command::new("tar");
    tar.arg("-xJf").arg(shared.join("scripts.tar.xz")).arg("-C").arg(&to);
    if !tar.status().is_ok_and(|status| status.success()) {
        eprintln!("skipped: tar cannot unpack {}", shared.join("scripts.tar.xz").display());
        return None;
    }
    let folders = [
        "scripts",
        "scripts/policy",
        "scripts/site",
        "build/scripts",
        "build/scripts/builtin-plugins",
    ];
    Some(folders.iter().map(|folder| to.join(folder).to_string_lossy().into_owned()).collect())
}

/// Parses the initial scripts and `more`. Returns the program and the reported messages.
fn parse(search_path: &[String], more: &str) -> (Program, String) {
    let reports = Rc::new(RefCell::new(String::new()));
    let sink = Rc::clone(&reports);
    let diagnostics = Diagnostics::new(Box::new(move |diagnostic, _| {
        let line = String::from_utf8_lossy(&diagnostic.line()).into_owned();
        sink.borrow_mut().push_str(&(line + "\n"));
    }));
    let mut program = Program { diagnostics, ..Program::default() };
    gannet_script::components::declare(&mut program);
    let mut machine = Machine::new();
    let options = Options { bare: true, files: vec![more.to_owned()], ..Options::default() };
    let files = command::inputs(&options, search_path);
    let mut parser = Parser::new(&mut program, &mut machine, search_path.to_vec());
    parser.warn_usage = true;
    let parsed = parser.run(files);
    if parsed.is_err() {
        reports.borrow_mut().push_str("parsing ended early\n");
    }
    let reports = reports.borrow().clone();
    (program, reports)
}

/// Files that refer to declarations of other scripts or of a build of Zeek with Spicy.
const NOT_ALONE: [&str; 6] = [
    "base/frameworks/spicy/init-framework.zeek",
    "base/protocols/ldap/",
    "base/protocols/redis/main.zeek",
    "base/protocols/redis/spicy-events.zeek",
    "policy/frameworks/cluster/websocket/server.zeek",
    "policy/frameworks/spicy/resource-usage.zeek",
];

fn scripts(folder: &Path, to: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            scripts(&path, to);
        } else if path.extension().is_some_and(|extension| extension == "zeek") {
            to.push(path);
        }
    }
}

#[test]
fn stock_scripts_check_silently() {
    let Some(search_path) = shared().and_then(|shared| search_path(&shared, "stock")) else {
        return;
    };
    let mut files = Vec::new();
    for folder in ["base", "policy"] {
        scripts(&Path::new(&search_path[0]).join(folder), &mut files);
    }
    files.sort();
    assert!(files.len() >= 516, "{} files", files.len());
    let next = AtomicUsize::new(0);
    let check = || {
        let mut wrong = Vec::new();
        while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            let name = file.to_string_lossy();
            if NOT_ALONE.iter().any(|not_alone| name.contains(not_alone)) {
                continue;
            }
            let (_, reports) = parse(&search_path, &name);
            // Warnings that a file, or an attribute, is deprecated.
            let deprecated = ["deprecated script loaded from", "The Broker-specific &backend"];
            if reports.lines().any(|line| !deprecated.iter().any(|text| line.contains(text))) {
                wrong.push(format!("{}:\n{reports}", file.display()));
            }
        }
        wrong
    };
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let threads: Vec<_> = (0..threads)
            .map(|_| std::thread::Builder::new().stack_size(STACK_SIZE).spawn_scoped(scope, check))
            .collect();
        threads.into_iter().flat_map(|thread| thread.unwrap().join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "{}", wrong.concat());
}

#[test]
fn built_in_functions_exist() {
    let Some(shared) = shared() else { return };
    let Some(search_path) = search_path(&shared, "functions") else { return };
    let table = std::fs::read_to_string(shared.join("bifs.tsv")).unwrap();
    let check = move || {
        let (program, _) = parse(&search_path, "base/init-default.zeek");
        let natives = Natives::default();
        let mut wrong = Vec::new();
        let mut count = 0;
        for line in table.lines() {
            let mut columns = line.split('\t');
            let (Some("function"), Some(_), Some(name), Some(signature)) =
                (columns.next(), columns.next(), columns.next(), columns.next())
            else {
                continue;
            };
            count += 1;
            if natives.find(name).is_none() {
                wrong.push(format!("{name} is missing"));
            }
            // Scripts declare it with the number of parameters in the table.
            let declared = program
                .names
                .find(name)
                .and_then(|name| program.globals.find(name))
                .map(|global| program.globals[global].ty)
                .filter(|ty| matches!(program.types.get(*ty), Type::Func(_)));
            if let Some(ty) = declared {
                let params = program.types.params(ty);
                let variadic = signature.contains("...");
                let expected = parameters(signature);
                if !variadic && params.len() != expected {
                    wrong.push(format!("{name}: {} parameters, not {expected}", params.len()));
                }
            }
        }
        assert!(count >= 591, "{count} functions");
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    };
    std::thread::Builder::new().stack_size(STACK_SIZE).spawn(check).unwrap().join().unwrap();
}

/// The number of parameters of a signature: `(a: count, b: table[count, string] of T): bool`.
fn parameters(signature: &str) -> usize {
    let (mut depth, mut count) = (0, usize::from(!signature.starts_with("()")));
    for character in signature.chars() {
        match character {
            '(' | '[' => depth += 1,
            ')' | ']' => {
                depth -= 1;
                if depth == 0 {
                    break;
                }
            }
            ',' if depth == 1 => count += 1,
            _ => (),
        }
    }
    count
}

#[test]
fn parameters_are_counted() {
    assert_eq!(parameters("(): bool"), 0);
    assert_eq!(parameters("(a: count, b: table[count, string] of T): bool"), 2);
    assert_eq!(parameters("(f: function(x: count): bool, y: int &default = 3): any"), 2);
}
