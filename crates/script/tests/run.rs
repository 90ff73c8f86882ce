//! Programs and their output: each file of `tests/run` is parsed, compiled and run; the expected
//! output is in its lines that begin with `#>`, the expected reports in those with `#!`.

use std::cell::RefCell;
use std::io::Write;
use std::rc::Rc;

use gannet_script::diagnostics::Diagnostics;
use gannet_script::parse::{Input, Parser};
use gannet_script::program::Program;
use gannet_script::vm::Machine;

#[derive(Clone, Default)]
struct Shared(Rc<RefCell<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The output, the reports, and the exit status of a program.
fn run(name: &str, code: &[u8]) -> (String, String, i32) {
    let reports = Rc::new(RefCell::new(Vec::new()));
    let sink = reports.clone();
    let diagnostics = Diagnostics::new(Box::new(move |diagnostic, _| {
        let mut line = diagnostic.line();
        line.push(b'\n');
        sink.borrow_mut().extend(line);
    }));
    let mut program = Program { diagnostics, ..Program::default() };
    let mut machine = Machine::new();
    let printed = Shared::default();
    machine.set_output(Box::new(printed.clone()));
    let input = Input::Text { name: name.to_owned(), code: code.to_vec() };
    let parsed = Parser::new(&mut program, &mut machine, Vec::new()).run([input]);
    let status = match parsed {
        Ok(()) if program.diagnostics.errors == 0 => machine.with(&mut program).run(),
        _ => 1,
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&printed.0.borrow()), text(&reports.borrow()), status)
}

fn expected(code: &str, mark: &str) -> String {
    code.lines()
        .filter_map(|line| line.strip_prefix(mark))
        .map(|line| format!("{}\n", line.strip_prefix(' ').unwrap_or(line)))
        .collect()
}

#[test]
fn programs_print_and_report_what_they_should() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/run");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "zeek"))
        .collect();
    files.sort();
    assert!(files.len() >= 3);
    for path in files {
        let code = std::fs::read_to_string(&path).unwrap();
        let name = format!("tests/run/{}", path.file_name().unwrap().display());
        let (printed, reported, status) = run(&name, code.as_bytes());
        assert_eq!(printed, expected(&code, "#>"), "{name} printed; reported: {reported}");
        assert_eq!(reported, expected(&code, "#!"), "{name} reported");
        assert_eq!(status, 0, "{name}");
    }
}

#[test]
fn recursion_ends_with_an_error() {
    let code = b"function f(n: count): count { return 1 + f(n + 1); }\n\
                 event zeek_done() { print f(0); }\n\
                 event zeek_done() &priority=-1 { print \"on\"; }\n";
    let (printed, reported, status) = run("deep", code);
    assert_eq!(printed, "on\n");
    assert!(reported.contains("maximum recursion depth 1000 exceeded"), "{reported}");
    assert_eq!(status, 0);
}

#[test]
fn tables_change_while_they_are_walked() {
    let code = b"event zeek_init()\n{\nlocal t: table[count] of count;\nlocal i = 0;\n\
                 while ( i < 1000 ) { t[i] = i; ++i; }\n\
                 for ( k in t ) { if ( k % 3 != 0 ) delete t[k]; }\n\
                 print |t|;\nlocal sum = 0;\nfor ( k, v in t ) sum += v;\nprint sum;\n}\n";
    let (printed, reported, _) = run("walk", code);
    assert_eq!(printed, "334\n166833\n", "{reported}");
}

#[test]
fn labels_and_loop_variables_are_checked() {
    let code = b"event zeek_init()\n{\nlocal n = 1;\nlocal i: string;\n\
                 switch ( set(1) ) { case 1: break; }\n\
                 switch ( 2 ) { case n: break; }\n\
                 switch ( 3 ) { case \"x\": break; default: break; default: break; }\n\
                 for ( i in vector(1) ) print i;\n}\n";
    let (_, reported, status) = run("labels", code);
    for message in [
        "switch expression must be of an atomic type when cases are expressions",
        "case label expression isn't constant (n)",
        "case expression type differs from switch type (x and (3))",
        "multiple default labels",
        "vector index in \"for\" loop must be integral",
    ] {
        assert!(reported.contains(message), "{message}: {reported}");
    }
    assert_eq!(status, 1);
}

#[test]
fn an_error_in_zeek_init_ends_the_run() {
    let code = b"event zeek_init() { local n = 0; print 1 / n; }\n\
                 event zeek_done() { print \"never\"; }\n";
    let (printed, reported, status) = run("early", code);
    assert_eq!(printed, "");
    assert!(reported.ends_with("fatal error: errors occurred while initializing\n"), "{reported}");
    assert_eq!(status, 1);
}
