//! Files that scripts write: rows of logs, rotated files.

mod printed;
mod reported;

use std::fs;
use std::path::Path;
use std::path::PathBuf;

/// The parts of the logging framework that these tests need, as Zeek's scripts declare them.
const LOG: &str = r#"
module Log;
export {
	type ID: enum { ONE, TWO };
	type Writer: enum { WRITER_ASCII, WRITER_NONE };
	type Stream: record { columns: any; };
	type Filter: record { name: string; writer: Writer; path: string; include: set[string] &optional; };
	const default_logdir = "" &redef;
	global __create_stream: function(id: ID, stream: Stream): bool;
	global __remove_stream: function(id: ID): bool;
	global __add_filter: function(id: ID, filter: Filter): bool;
	global __write: function(id: ID, columns: any): bool;
}
module GLOBAL;
type Row: record { a: count &log; b: count &log; };
"#;

#[expect(clippy::unwrap_used, reason = "a folder for tests")]
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// The rows of a log without its header.
fn rows(path: &Path) -> Vec<String> {
    let text =
        fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
}

#[test]
fn rows_with_other_columns_are_in_a_file_of_their_own() {
    for n in [10, 1_000, 100_000] {
        let folder = folder("writing-columns");
        let code = format!(
            "{LOG} redef Log::default_logdir = \"{}\";
            function filter(): Log::Filter {{ return [$name=\"f\", $writer=Log::WRITER_ASCII, $path=\"x\"]; }}
            function write(n: count) {{ local i = 0; while ( i < n ) {{ Log::__write(Log::ONE, Row($a=i, $b=7)); ++i; }} }}
            event zeek_init()
                {{
                Log::__create_stream(Log::ONE, [$columns=Row]);
                Log::__add_filter(Log::ONE, filter());
                write({n});
                local f = filter();
                f$include = set(\"b\");
                Log::__add_filter(Log::ONE, f);
                write({n});
                # The same columns as at first, after the stream was made again.
                Log::__remove_stream(Log::ONE);
                Log::__create_stream(Log::ONE, [$columns=Row]);
                Log::__add_filter(Log::ONE, f);
                write({n});
                }}",
            folder.display()
        );
        let (_, reported) = reported::run(&code, |_| {});
        assert!(reported.contains("changed to use new path 'x-2'"), "{reported}");
        assert_eq!(reported.lines().count(), 1, "{reported}");
        let (first, second) = (rows(&folder.join("x.log")), rows(&folder.join("x-2.log")));
        assert_eq!((first.len(), second.len()), (n, 2 * n));
        assert_eq!(first.last(), Some(&format!("{}\t7", n - 1)));
        assert!(second.iter().all(|row| row == "7"));
    }
}

#[test]
fn rotated_files_do_not_replace_each_other() {
    let folder = folder("writing-rotation");
    let file = folder.join("x");
    let declared = "
        type rotate_info: record { old_name: string; new_name: string; open: time; close: time; };
        global rotate_file_by_name: function(f: string): rotate_info;
        global open_for_append: function(f: string): file;
        global close: function(f: file): bool;";
    let code = format!(
        "{declared}
        event zeek_init()
            {{
            local i = 0;
            while ( i < 30 ) {{ local f = open_for_append(\"{file}\"); print f, i; close(f); rotate_file_by_name(\"{file}\"); ++i; }}
            }}",
        file = file.display()
    );
    let (_, reported) = reported::run(&code, |_| {});
    assert_eq!(reported, "");
    let mut numbers: Vec<u32> = fs::read_dir(&folder)
        .unwrap()
        .filter_map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap().trim().parse().ok())
        .collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..30).collect::<Vec<_>>());
    // A file that cannot be renamed, since the new name would be too long, stays as it is.
    let long = folder.join("x".repeat(250));
    fs::write(&long, "kept").unwrap();
    let code =
        format!("{declared} event zeek_init() {{ rotate_file_by_name(\"{}\"); }}", long.display());
    let (_, reported) = reported::run(&code, |_| {});
    assert!(reported.contains("rotate_file: can't open "), "{reported}");
    assert_eq!(fs::read_to_string(&long).unwrap(), "kept");
}

#[test]
fn nan_times_schedule_no_event_and_wait_for_no_timeout() {
    let code = "
        global ln: function(d: double): double;
        global double_to_interval: function(d: double): interval;
        global sleep: function(i: interval): interval;
        global late: event(n: count);
        global terminate: function(): bool;
        const exit_only_after_terminate = T;
        event late(n: count) { print \"late\", n; terminate(); }
        event zeek_init()
            {
            local none = double_to_interval(ln(-1.0));
            schedule none { late(1) };
            schedule 1 msec { late(2) };
            print sleep(none) < 10 secs;
            }
        ";
    let (printed, reported) = reported::run(code, |_| {});
    assert_eq!(printed, "T\nlate, 2\n");
    assert!(reported.contains("late is not scheduled: its time is not a number"), "{reported}");
}

/// Delayed writes of a stream that is removed, also with callbacks that delay once more, or always.
#[test]
fn delayed_writes_of_a_removed_stream_are_written() {
    const DELAYS: &str = "
        module Log;
        export {
            type DelayToken: opaque of LogDelayToken;
            global __delay: function(id: ID, rec: any, callback: any): any;
            global log_stream_policy: hook(rec: any, id: ID);
        }
        module GLOBAL;
        global delays: table[count] of count &default=0;
        global max_delays = 1;
        function again(rec: any, id: Log::ID): bool
            {
            if ( ++delays[(rec as Row)$a] <= max_delays )
                Log::__delay(id, rec, again);
            return T;
            }
        hook Log::log_stream_policy(rec: any, id: Log::ID) { Log::__delay(id, rec, again); }";
    for (n, max_delays, written) in [
        (10, 0, 10),
        (1_000, 0, 1_000),
        (150_000, 0, 150_000),
        (1_000, 1, 1_000),
        (3, 1_000_000, 0),
    ] {
        let folder = folder("writing-delayed");
        let prelude = LOG
            .replace("columns: any; };", "columns: any; max_delay_interval: interval &default=1hr; max_delay_queue_size: count &default=1000000; };");
        let code = format!(
            "{prelude} {DELAYS} redef Log::default_logdir = \"{}\";
            event zeek_init()
                {{
                max_delays = {max_delays};
                Log::__create_stream(Log::ONE, [$columns=Row]);
                Log::__add_filter(Log::ONE, [$name=\"f\", $writer=Log::WRITER_ASCII, $path=\"x\"]);
                local i = 0;
                while ( i < {n} ) {{ Log::__write(Log::ONE, Row($a=i, $b=7)); ++i; }}
                Log::__remove_stream(Log::ONE);
                }}",
            folder.display()
        );
        let (_, reported) = reported::run(&code, |_| {});
        let path = folder.join("x.log");
        let rows = if path.exists() { rows(&path).len() } else { 0 };
        assert_eq!(rows, written, "{n} {max_delays} {reported}");
        let lost = format!("{n} delayed records of stream Log::ONE are not written");
        assert_eq!(reported.contains(&lost), written == 0, "{reported}");
    }
}
