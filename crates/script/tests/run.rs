//! Programs and their output: each file of `tests/run` is parsed, compiled and run. The expected
//! output is in its lines that begin with `#>`, the expected messages in those with `#!`, and a non-zero exit status in one with `#=`.

mod printed;

use std::cell::RefCell;
use std::rc::Rc;

use gannet_script::diagnostics::Diagnostics;
use gannet_script::parse::{Input, Parser};
use gannet_script::program::Program;
use gannet_script::vm::Machine;

use printed::Printed;

/// Runs a program with a stack of the command's size. Returns the output, the messages and the exit status.
fn run(name: &str, code: &[u8]) -> (String, String, i32) {
    let (name, code) = (name.to_owned(), code.to_vec());
    let thread = std::thread::Builder::new().stack_size(1 << 29);
    let thread = thread.spawn(move || run_here(&name, &code));
    let result = thread.ok().and_then(|thread| thread.join().ok());
    result.unwrap_or_else(|| (String::new(), "the program panicked".to_owned(), -1))
}

fn run_here(name: &str, code: &[u8]) -> (String, String, i32) {
    let reports = Rc::new(RefCell::new(Vec::new()));
    let sink = reports.clone();
    let diagnostics = Diagnostics::new(Box::new(move |diagnostic, _| {
        let mut line = diagnostic.line();
        line.push(b'\n');
        sink.borrow_mut().extend(line);
    }));
    let mut program = Program { diagnostics, ..Program::default() };
    let mut machine = Machine::new();
    let printed = Printed::default();
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
fn programs_have_the_expected_output_and_messages() {
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
        let status_line = code.lines().find_map(|line| line.strip_prefix("#= "));
        assert_eq!(status.to_string(), status_line.unwrap_or("0"), "{name}");
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
fn tables_change_during_loops() {
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

/// A stream that writes one row to the text log of this path.
#[cfg(target_os = "linux")]
fn logging(path: &str) -> String {
    format!(
        "module Log;
        export {{
            type ID: enum {{ OWN }};
            type Writer: enum {{ WRITER_ASCII }};
            type Stream: record {{ columns: any; }};
            type Filter: record {{ name: string; writer: Writer; path: string; }};
            global __create_stream: function(id: ID, stream: Stream): bool;
            global __add_filter: function(id: ID, filter: Filter): bool;
            global __write: function(id: ID, columns: any): bool;
        }}
        type Row: record {{ text: string &log; }};
        event zeek_init()
            {{
            __create_stream(OWN, Stream($columns=Row));
            __add_filter(OWN, Filter($name=\"default\", $writer=WRITER_ASCII, $path=\"{path}\"));
            __write(OWN, Row($text=\"a row\"));
            }}"
    )
}

#[cfg(target_os = "linux")]
#[test]
fn a_text_log_that_cannot_be_written_is_an_error_of_the_run() {
    let folder = std::env::temp_dir().join(format!("gannet-full-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::os::unix::fs::symlink("/dev/full", folder.join("full.log")).unwrap();
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    for (path, why) in [
        (path("full"), "No space left on device"),
        (path("missing/x"), "No such file or directory"),
        (path("full.log/x"), "Not a directory"),
    ] {
        let (_, reported, status) = run("logs", logging(&path).as_bytes());
        assert!(reported.contains(&path) && reported.contains(why), "{reported}");
        // The error is not one of the initialization.
        assert!(!reported.contains("fatal"), "{reported}");
        assert_eq!(status, 1, "{path}: {reported}");
    }
    let (_, reported, status) = run("logs", logging(&path("good")).as_bytes());
    assert_eq!((reported.as_str(), status), ("", 0));
    let log = std::fs::read_to_string(folder.join("good.log")).unwrap();
    assert!(log.contains("\na row\n"), "{log}");
    std::fs::remove_dir_all(&folder).unwrap();
}

/// A stream that writes two rows to each of `names` files, which its path function names.
#[cfg(target_os = "linux")]
fn logging_to_many(folder: &str, names: usize) -> String {
    format!(
        "global cat: function(va_args: any): string;
        module Log;
        export {{
            type ID: enum {{ OWN }};
            type Writer: enum {{ WRITER_ASCII }};
            type Row: record {{ n: count &log; }};
            type Stream: record {{ columns: any; }};
            type Filter: record {{ name: string; writer: Writer; path_func: function(id: ID, path: string, row: Row): string; }};
            global __create_stream: function(id: ID, stream: Stream): bool;
            global __add_filter: function(id: ID, filter: Filter): bool;
            global __write: function(id: ID, columns: any): bool;
        }}
        function path_of(id: ID, path: string, row: Row): string {{ return cat(\"{folder}/\", row$n % {names}); }}
        event zeek_init()
            {{
            __create_stream(OWN, Stream($columns=Row));
            __add_filter(OWN, Filter($name=\"default\", $writer=WRITER_ASCII, $path_func=path_of));
            local n = 0;
            while ( n < {} )
                {{
                __write(OWN, Row($n=n));
                ++n;
                }}
            }}",
        2 * names
    )
}

#[cfg(target_os = "linux")]
#[test]
fn logs_beyond_the_limit_are_closed_and_opened_again_and_lose_no_row() {
    for names in [10, 1_000, 100_000] {
        let folder =
            std::env::temp_dir().join(format!("gannet-many-{names}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let code = logging_to_many(folder.to_str().unwrap(), names);
        let (_, reported, status) = run("many", code.as_bytes());
        // Only the first file that is closed early causes a warning.
        let warnings = reported.matches("more than 512 logs are open").count();
        let has_others = reported.lines().count() > warnings;
        let wanted = (usize::from(names > 512), false, 0);
        assert_eq!((warnings, has_others, status), wanted, "{names}: {reported}");
        for n in 0..names {
            let log = std::fs::read_to_string(folder.join(format!("{n}.log"))).unwrap();
            let lines: Vec<&str> = log.lines().collect();
            let begins = |begin: &str| lines.iter().filter(|line| line.starts_with(begin)).count();
            assert_eq!(["#separator", "#fields", "#close"].map(begins), [1; 3], "{log}");
            assert!(lines[0].starts_with("#separator"), "{log}");
            assert!(lines[lines.len() - 1].starts_with("#close"), "{log}");
            let rows: Vec<_> = lines.iter().filter(|line| !line.starts_with('#')).collect();
            assert_eq!(rows, [&n.to_string(), &(n + names).to_string()], "{log}");
        }
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), names);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}

#[test]
fn rows_that_lack_a_value_are_skipped_with_a_warning() {
    let path = std::env::temp_dir().join(format!("gannet-rows-{}.log", std::process::id()));
    let rows = "#fields\ta\tb\ts\to\tc\n\
        1\t1\tx\t-\tRed\n\
        2\t1\t-\ty\tRed\n\
        3\t-\tx\ty\tRed\n\
        4\t1\tx\ty\tBlue\n\
        -\t-\tx\ty\tRed\n\
        6\t1\tx\ty\tGreen\n";
    std::fs::write(&path, rows).unwrap();
    let file = path.to_string_lossy();
    let code = include_str!("input.zeek").replace("input.log", &file);
    let (printed, reported, _) = run("input", code.as_bytes());
    std::fs::remove_file(&path).unwrap();
    let skipped = "Skipping input with missing non-optional value";
    let warnings = [
        format!("{file}:3: {skipped} (record field s)"),
        format!("{file}:4: {skipped} (index field b)"),
        format!("{file}, line 5: Value 'Blue' for stream 'rows' is not a valid enum."),
        "Could not hash line. Ignoring".to_owned(),
    ];
    let lines: String = warnings.iter().map(|w| format!("{w}, Reporter::WARNING\n")).collect();
    let rows = "rows, 2\n1, 1, [s=x, o=<uninitialized>, c=Red]\n6, 1, [s=x, o=y, c=Green]\n\
        T, T\nF, F, F\n";
    assert_eq!(printed, format!("T\n{lines}{rows}"), "{reported}");
    let lines: String = warnings.iter().map(|w| format!("warning: {w}\n")).collect();
    assert!(reported.starts_with(&lines), "{reported}");
    for words in [
        "Stream rows is already queued for removal. Ignoring remove.",
        "Stream rows is already queued for removal. Ignoring force update.",
        "Stream none not found",
    ] {
        assert!(reported.contains(words), "{words}: {reported}");
    }
}

#[test]
fn options_from_a_file_keep_their_types() {
    let path = std::env::temp_dir().join(format!("gannet-options-{}.cfg", std::process::id()));
    let options = "hosts 1.2.3.4,5.6.7.8\nnames a,b\nreader Input::READER_CONFIG\n";
    std::fs::write(&path, options).unwrap();
    let code = include_str!("options.zeek").replace("options.cfg", &path.to_string_lossy());
    let (printed, reported, _) = run("options", code.as_bytes());
    std::fs::remove_file(&path).unwrap();
    let mut lines: Vec<_> = printed.lines().collect();
    lines.sort_unstable();
    let expected = ["T", "hosts, T, F, F", "names, F, T, F", "reader, F, F, T"];
    assert_eq!(lines, expected, "{reported}");
}

#[test]
fn options_with_an_invalid_enum_raise_no_event() {
    let path = std::env::temp_dir().join(format!("gannet-enums-{}.cfg", std::process::id()));
    std::fs::write(&path, "reader Input::READER_NONE\nhosts 1.2.3.4\n").unwrap();
    let file = path.to_string_lossy();
    let code = include_str!("options.zeek").replace("options.cfg", &file);
    let (printed, reported, _) = run("options", code.as_bytes());
    std::fs::remove_file(&path).unwrap();
    assert_eq!(printed, "T\nhosts, T, F, F\n", "{reported}");
    let warning = format!(
        "warning: Value 'Input::READER_NONE' for source 'thread {file}/Input::READER_CONFIG' is not a valid enum.\n\
         error: SendEvent for event InputConfig::new_value failed\n"
    );
    assert_eq!(reported, warning);
}
