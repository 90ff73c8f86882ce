//! Options of `gannet zeek`: traces of events, coverage and profiles of scripts, and those that are refused.

// Helpers of tests panic where a test fails.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

use crate::support::Scratch;

const TYPES: &str = "
type conn_id: record { orig_h: addr; orig_p: port; resp_h: addr; resp_p: port; proto: count; };
type endpoint: record { size: count; num_pkts: count &optional; };
type connection: record {
    id: conn_id; orig: endpoint; resp: endpoint; start_time: time; history: string; uid: string;
    requests: count &default=0; seen: set[string] &optional;
};
global new_connection: event(c: connection);
global connection_state_remove: event(c: connection);
global http_request: event(c: connection, method: string, original_URI: string, unescaped_URI: string, version: string);
";

const HANDLERS: &str = "
event new_connection(c: connection) { c$seen = set(c$uid); }
event http_request(c: connection, method: string, original_URI: string, unescaped_URI: string, version: string)
    {
    ++c$requests;
    add c$seen[original_URI];
    print method, original_URI, c$id;
    }
event connection_state_remove(c: connection) { print c$id, c$orig, c$resp, c$history, c$requests, |c$seen|; }
";

fn sample() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/sample.pcap")
}

/// `gannet zeek` in a folder, without Zeek's scripts.
fn command(folder: &Scratch, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gannet"));
    command.arg("zeek").args(args).current_dir(folder.path("")).env_remove("ZEEKPATH");
    command
}

/// Exit code, standard output and standard error.
fn run(command: &mut Command) -> (i32, String, String) {
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn the_trace_of_events_raises_them_again() {
    let folder = Scratch::new("event-trace");
    folder.file("d.zeek", format!("{TYPES}{HANDLERS}").as_bytes());
    let sample = sample();
    let args = ["-b", "-C", "-r", sample.to_str().unwrap(), "--event-trace=t.zeek", "d.zeek"];
    let (code, first, errors) = run(&mut command(&folder, &args));
    assert_eq!((code, errors.as_str()), (0, ""));
    assert!(first.lines().count() > 10, "{first}");
    let trace = folder.read("t.zeek");
    assert!(trace.starts_with("module __EventTrace;\n\nglobal __base_time = "), "{trace}");
    assert!(trace.contains("$requests = 1; # from script\n"), "{trace}");
    assert!(trace.contains("\n# constants of type addr:\n#\t"), "{trace}");
    let (code, again, errors) = run(&mut command(&folder, &["-b", "d.zeek", "t.zeek"]));
    assert_eq!((code, errors.as_str()), (0, ""));
    assert_eq!(again, first);
    // The trace does not depend on the number of threads.
    let mut threads = args.to_vec();
    threads.extend(["--threads", "3"]);
    run(&mut command(&folder, &threads));
    assert_eq!(folder.read("t.zeek"), trace);
}

#[test]
fn a_trace_that_cannot_be_written_is_an_error() {
    let folder = Scratch::new("event-trace-errors");
    let (code, out, errors) =
        run(&mut command(&folder, &["-b", "-E", "no/t.zeek", "-e", "print 1;"]));
    assert_eq!((code, out.as_str()), (1, ""));
    assert_eq!(
        errors,
        "fatal error: can't open event trace file no/t.zeek: No such file or directory\n"
    );
    let sample = sample();
    folder.file("d.zeek", format!("{TYPES}{HANDLERS}").as_bytes());
    let args = ["-b", "-C", "-r", sample.to_str().unwrap(), "-E", "/dev/full", "d.zeek"];
    let (code, _, errors) = run(&mut command(&folder, &args));
    assert_eq!(code, 1);
    assert!(errors.contains("/dev/full: No space left on device"), "{errors}");
}

#[test]
fn coverage_counts_statements_of_all_runs() {
    let folder = Scratch::new("coverage");
    let code = "@ifdef ( nothing )
global x = 1;
@else
global x = 2;
@endif
function f(n: count): bool
	{
	if ( n > 1 )
		return T;
	for ( i in vector(1, 2) )
		print \"a	b\", i;
	{ # @no-test
	print \"left out\";
	}
	x = 3;	# @no-test: neither
	return F;
	}
event zeek_init()
	{
	f(1); f(2);
	}
";
    folder.file("c.zeek", code.as_bytes());
    let wanted = |runs: u64| {
        let lines = [
            (0, "line 1", "@ifdef ( nothing )"),
            (2, "line 10", "for ([i] in vector(1, 2))   print a\\x09b, i; "),
            (2, "line 11", "print a\\x09b, i;"),
            (1, "line 16", "return (F);"),
            (1, "line 20", "f(1);"),
            (1, "line 20", "f(2);"),
            (1, "line 3", "@else"),
            (2, "line 8", "if (1 < n)   return (T); "),
            (1, "line 9", "return (T);"),
            (1, "lines 18-20", "event zeek_init BODY"),
            (2, "lines 6-16", "function f BODY"),
        ];
        let count = |count: u64, text: &str| match text {
            text if text.starts_with("for") => runs,
            _ => count * runs,
        };
        let line = |(number, place, text): &(u64, &str, &str)| {
            format!("{}\t./c.zeek, {place}\t{text}\n", count(*number, text))
        };
        lines.iter().map(line).collect::<String>()
    };
    for runs in 1..=2 {
        let mut zeek = command(&folder, &["-b", "./c.zeek"]);
        let (code, _, errors) = run(zeek.env("ZEEK_PROFILER_FILE", "new/cov.txt"));
        assert_eq!((code, errors.as_str()), (0, ""));
        assert_eq!(folder.read("new/cov.txt"), wanted(runs));
    }
    let mut zeek = command(&folder, &["-b", "./c.zeek"]);
    run(zeek.env("ZEEK_PROFILER_FILE", "own/c.XXXXXX"));
    let names: Vec<_> = std::fs::read_dir(folder.path("own")).unwrap().flatten().collect();
    assert_eq!(names.len(), 1);
    assert_eq!(std::fs::read_to_string(names[0].path()).unwrap(), wanted(1));
    folder.file("odd.txt", b"no line\n");
    let mut zeek = command(&folder, &["-b", "./c.zeek"]);
    let (code, _, errors) = run(zeek.env("ZEEK_PROFILER_FILE", "odd.txt"));
    assert_eq!((code, errors.as_str()), (0, "invalid ZEEK_PROFILER_FILE line: no line\n"));
    let mut zeek = command(&folder, &["-b", "./c.zeek"]);
    let (code, _, errors) = run(zeek.env("ZEEK_PROFILER_FILE", "odd.txt/x"));
    assert_eq!(code, 1);
    assert!(errors.contains("ZEEK_PROFILER_FILE destination 'odd.txt/x'"), "{errors}");
}

#[test]
fn calls_and_their_stacks_have_zeeks_format() {
    let folder = Scratch::new("call-stacks");
    let code = "function g() { to_upper(\"x\"); } function f() { g(); g(); }
        event zeek_init() { f(); } event zeek_init() { to_upper(\"y\"); g(); }";
    let args = ["-b", "--profile-scripts=p.txt", "--profile-script-call-stacks", "-e", code];
    let (status, _, errors) = run(&mut command(&folder, &args));
    assert_eq!((status, errors.as_str()), (0, ""));
    let text = folder.read("p.txt");
    let line = |name: &str, kind: &str| {
        let is_it = |line: &&str| {
            let columns: Vec<_> = line.split('\t').collect();
            columns[0] == name && columns[2] == kind
        };
        let line = text.lines().find(is_it).unwrap_or_else(|| panic!("{name}: {text}"));
        line.split('\t').map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(line("g", "function")[3], "3");
    assert_eq!(line("g", "function")[8..10], ["g;zeek_init|g;zeek_init;f", "1|2"]);
    assert_eq!(line("to_upper", "BiF")[3], "4");
    assert_eq!(
        line("to_upper", "BiF")[8],
        "to_upper;zeek_init|to_upper;zeek_init;f;g|to_upper;zeek_init;g"
    );
    assert!(text.contains("\nzeek_init\t2-locations\tevent\t2\t"), "{text}");
    assert!(text.contains("\nall-BiFs\t"), "{text}");
    let (code, _, errors) =
        run(&mut command(&folder, &["-b", "--profile-script-call-stacks", "-e", "print 1;"]));
    assert_eq!(code, 1);
    assert!(errors.contains("needs --profile-scripts"), "{errors}");
}

#[test]
fn options_that_gannet_lacks_are_refused_with_a_reason() {
    let folder = Scratch::new("refused");
    let refused: &[(&[&str], &str)] = &[
        (&["-c", "x"], "weird.log"),
        (&["--capture-unprocessed=x"], "weird.log"),
        (&["-d"], "--diagnostics rich"),
        (&["--jobs"], "--threads"),
        (&["-P"], "ZEEK_DNS_FAKE"),
        (&["-S"], "signatures"),
        (&["-t", "x"], "--event-trace"),
        (&["-W"], "--script-budget"),
        (&["-X", "x"], "documentation"),
        (&["--test"], "cargo test"),
        (&["-O", "gen-C++"], "only Zeek's own script compilers"),
        (&["-O", "nonsense"], "-O help"),
        (&["-o", "f"], "requires an optimization"),
        (&["-0", "f"], "--optimize-files"),
        (&["-M"], "invalid option -- 'M'"),
        (&["--bare-mode=3"], "takes no value"),
        (&["--print"], "may be --print-id or --print-plugins"),
        (&["--pseudo-realtime=0"], "greater than 0"),
        (&["-B", "help"], "no debug streams"),
        (&["Some::Plugin"], "loads no plugins"),
        (&["-w", "no/x.pcap"], "problem opening dump file no/x.pcap"),
    ];
    for (args, word) in refused {
        let mut zeek = command(&folder, &["-b", "-e", "print 1;"]);
        let (code, out, errors) = run(zeek.args(*args));
        assert_eq!((code, out.as_str()), (1, ""), "{args:?}: {errors}");
        assert!(errors.contains(word) && errors.lines().count() == 1, "{args:?}: {errors}");
    }
    let mut zeek = command(&folder, &["-b", "-e", "print 1;"]);
    let (code, _, errors) = run(zeek.env("ZEEK_PLUGIN_ACTIVATE", "Zeek::ARP,Some::Plugin"));
    assert!(code == 1 && errors.contains("plugin Some::Plugin"), "{errors}");
    let accepted: &[&[&str]] = &[
        &["-O", "ZAM", "-o", "f", "--no-optimize-files=x"],
        &["-B", "logging"],
        &["-F"],
        &["Zeek::ARP"],
        &["--no-unused"],
    ];
    for args in accepted {
        let mut zeek = command(&folder, &["-b", "-e", "print 1;"]);
        let all = run(zeek.args(*args));
        assert_eq!(all, (0, "1\n".to_owned(), String::new()), "{args:?}");
    }
}

#[test]
fn versions_and_help_go_to_standard_output() {
    let folder = Scratch::new("asked");
    let (code, out, errors) = run(&mut command(&folder, &["--version"]));
    assert_eq!((code, errors.as_str()), (0, ""));
    assert!(out.starts_with("gannet version "), "{out}");
    let (code, out, errors) = run(&mut command(&folder, &["-V"]));
    assert_eq!((code, errors.as_str()), (0, ""));
    assert!(out.starts_with("{\"version\": {\"number\": "), "{out}");
    let (code, out, _) = run(&mut command(&folder, &["-O", "help"]));
    assert!(code == 0 && out.contains("    ZAM\n"), "{out}");
}

#[test]
fn an_existing_capture_is_replaced_even_without_packets() {
    let folder = Scratch::new("written");
    folder.file("o.pcap", b"an existing file");
    let (code, ..) = run(&mut command(&folder, &["-b", "-w", "o.pcap", "-e", "print 1;"]));
    assert_eq!(code, 0);
    let header = std::fs::read(folder.path("o.pcap")).unwrap();
    assert_eq!((header.len(), &header[..4]), (24, &[0xd4, 0xc3, 0xb2, 0xa1][..]));
    let sample = sample();
    let args = ["-b", "-C", "-w", "o.pcap", "-r", sample.to_str().unwrap(), "-e", "print 1;"];
    let sizes = [0; 2].map(|_| {
        assert_eq!(run(&mut command(&folder, &args)).0, 0);
        std::fs::metadata(folder.path("o.pcap")).unwrap().len()
    });
    assert!(sizes[0] > 1_000 && sizes[0] == sizes[1], "{sizes:?}");
}

#[test]
fn time_and_memory_are_shown_at_the_end() {
    let folder = Scratch::new("time");
    let (code, out, errors) = run(&mut command(&folder, &["-b", "-Q", "-e", "print 1;"]));
    assert_eq!((code, out.as_str()), (0, "1\n"));
    let begins: Vec<_> = errors.lines().map(|line| line.split(' ').nth(1).unwrap()).collect();
    assert_eq!(begins, ["initialization", "initialization", "total", "total"], "{errors}");
    assert!(errors.contains(", processing ") && errors.contains("M/0M"), "{errors}");
}
