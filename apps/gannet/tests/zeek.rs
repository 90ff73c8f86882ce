//! `gannet zeek -r`: handlers of scripts over a capture.

// Helpers of tests panic where a test fails.
#![allow(clippy::unwrap_used)]

use std::net::SocketAddr;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::process::Output;

use gannet_base::Interval;
use gannet_base::Time;
use gannet_synth::Trace;
use gannet_synth::frame;
use gannet_synth::traffic;
use gannet_synth::traffic::Kind;

use crate::support::Scratch;

/// Declarations of the types and events that the scripts use, since Zeek's own scripts are not loaded.
const TYPES: &str = "
type conn_id: record { orig_h: addr; orig_p: port; resp_h: addr; resp_p: port; proto: count; };
type endpoint: record { size: count; num_pkts: count &optional; };
type connection: record {
    id: conn_id; orig: endpoint; resp: endpoint; start_time: time; history: string; uid: string;
    requests: count &default=0;
};
global new_connection: event(c: connection);
global connection_state_remove: event(c: connection);
global http_request: event(c: connection, method: string, original_URI: string, unescaped_URI: string, version: string);
global network_time_init: event();
";

fn sample() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/sample.pcap")
}

fn zeek(args: &[&str], code: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gannet"))
        .args(["zeek", "-b"])
        .args(args)
        .args(["-e", code])
        .env_remove("ZEEKPATH")
        .output()
        .unwrap()
}

fn over_sample(code: &str) -> String {
    let sample = sample();
    let code = format!("{TYPES}{code}");
    let output = zeek(&["-C", "-r", sample.to_str().unwrap()], &code);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn built_in_functions_and_events_need_no_scripts_of_zeek() {
    let code = r#"
        event zeek_init() { print fmt("%s %d", 10.0.0.0/8, |split_string("a,b", /,/)|), to_upper("x"); }
        event zeek_done() { print sort(vector(3, 1), function(a: count, b: count): int { return a < b ? -1 : 1; }); }
        global changes = 0;
        global t: table[count] of string &on_change=function(t: table[count] of string, how: TableChange, n: count, old: string) { print how; };
        event zeek_init() { t[1] = "a"; }
        "#;
    let output = zeek(&[], code);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    let lines = "10.0.0.0/8 2, X\nTABLE_ELEMENT_NEW\n[1, 3]\n";
    assert_eq!(String::from_utf8_lossy(&output.stdout), lines);
}

#[test]
fn files_after_one_with_an_error_are_not_read() {
    let folder = Scratch::new("first-error");
    let wrong = |name: &str| format!("global {name}: count = \"text\";\n");
    folder.file("first.zeek", (wrong("a") + &wrong("b")).as_bytes());
    folder.file("second.zeek", wrong("c").as_bytes());
    let all = folder
        .file("all.zeek", ("@load ./first\n@load ./second\n".to_owned() + &wrong("d")).as_bytes());
    let output = zeek(&[all.to_str().unwrap()], "global e: count = \"text\";");
    let errors = String::from_utf8_lossy(&output.stderr);
    let named = ["(a = text)", "(b = text)", "(c = text)", "(d = text)", "(e = text)"];
    assert_eq!(
        named.map(|name| errors.contains(name)),
        [true, true, false, false, false],
        "{errors}"
    );
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn scripts_see_the_enums_of_spicy_on_request() {
    let code = "print LDAP::ProtocolOpcode_BIND_REQUEST, LDAP::ResultCode_Undef, \
        Redis::RedisCommand_SUBSCRIBE, enum_to_int(LDAP::SearchScope_SEARCH_TREE);";
    let output = zeek(&["--spicy"], code);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "LDAP::ProtocolOpcode_BIND_REQUEST, LDAP::ResultCode_Undef, Redis::RedisCommand_SUBSCRIBE, 2\n"
    );
    assert!(!zeek(&[], code).status.success());
}

#[test]
fn handlers_run_over_a_capture_between_init_and_done() {
    let printed = over_sample(
        r#"
        global conns = 0;
        event zeek_init() { print "init"; }
        event network_time_init() { print "first packet"; }
        event new_connection(c: connection) { ++conns; }
        event http_request(c: connection, method: string, original_URI: string, unescaped_URI: string, version: string)
            { print c$id$resp_p, c$id$proto, method, original_URI, version; }
        event zeek_done() { print conns; }
        "#,
    );
    let lines: Vec<_> = printed.lines().collect();
    assert_eq!(
        lines,
        [
            "init",
            "first packet",
            "80/tcp, 6, GET, /birds/gannet.html, 1.1",
            "80/tcp, 6, POST, /sightings, 1.1",
            "10"
        ]
    );
}

#[test]
fn events_queued_by_zeek_init_are_handled_with_the_first_packet() {
    let printed = over_sample(
        r#"
        global is_timed = function(): bool { return network_time() > double_to_time(0.0); };
        event three() { print "three", is_timed(); }
        event two() { print "two", is_timed(); event three(); }
        event one() { print "one", is_timed(); event two(); }
        event at_once() { print "at once", is_timed(); }
        event zeek_init() { event one(); schedule 0sec { at_once() }; }
        event network_time_init() { print "first packet"; }
        "#,
    );
    assert_eq!(printed, "one, F\ntwo, T\nat once, T\nfirst packet\nthree, T\n");
}

#[test]
fn events_at_the_end_reach_scripts() {
    let printed = over_sample(
        r#"
        type http_stats_rec: record { num_requests: count; num_replies: count; request_version: double; reply_version: double; };
        global http_stats: event(c: connection, stats: http_stats_rec);
        global udp_session_done: event(u: connection);
        event http_stats(c: connection, stats: http_stats_rec)
            { print c$id$resp_p, stats$num_requests, stats$num_replies, stats$request_version, stats$reply_version; }
        global sessions = 0;
        event udp_session_done(u: connection) { if ( u$id$resp_p == 53/udp ) ++sessions; }
        event zeek_done() { print sessions > 0; }
        "#,
    );
    assert_eq!(printed, "80/tcp, 1, 1, 1.1, 1.1\n80/tcp, 1, 1, 1.1, 1.1\nT\n");
}

#[test]
fn a_connection_keeps_what_scripts_add_and_shows_how_it_is() {
    let printed = over_sample(
        r#"
        event http_request(c: connection, method: string, original_URI: string, unescaped_URI: string, version: string)
            { ++c$requests; }
        event connection_state_remove(c: connection)
            { if ( c$requests > 0 ) print c$requests, c$orig$size > 0, |c$uid| > 10, |c$history| > 4; }
        "#,
    );
    assert_eq!(printed, "1, T, T, T\n1, T, T, T\n");
}

#[test]
fn timers_are_due_by_the_time_of_packets() {
    let printed = over_sample(
        r#"
        global late: event(at: time);
        event late(at: time) { print network_time() >= at + 200 msec, network_time() < at + 10 min; }
        global first = T;
        event new_connection(c: connection)
            { if ( first ) schedule 200 msec { late(network_time()) }; first = F; }
        "#,
    );
    assert_eq!(printed, "T, T\n");
}

/// Network time jumps from 0 to the time of the first packet, beyond the timeout of `when` statements in `zeek_init`.
#[test]
fn pending_results_precede_timeouts_at_the_first_packet() {
    let printed = over_sample(
        r#"
        module Storage;
        export {
            type ReturnCode: enum { SUCCESS, OPERATION_FAILED };
            type OperationResult: record
                { code: ReturnCode; error_str: string &optional; value: any &optional; };
            type NoBackend: enum { NO_BACKEND };
            type BackendOptions: record { forced_sync: bool &default=F; };
            global Storage::Async::__open_backend: function(backend: NoBackend,
                options: BackendOptions, key_type: any, value_type: any): OperationResult;
        }
        module GLOBAL;
        event zeek_init()
            {
            when ( local r = Storage::Async::__open_backend(Storage::NO_BACKEND,
                Storage::BackendOptions(), string, string) )
                { print r$code, network_time() > double_to_time(0.0); }
            timeout 5 sec { print "timeout"; }
            }
        "#,
    );
    assert_eq!(printed, "Storage::OPERATION_FAILED, T\n");
}

#[test]
fn time_advances_where_scripts_handle_no_packets() {
    let printed = over_sample(
        r#"
        global late: event();
        event late() { print network_time() > double_to_time(0.0); }
        event zeek_init() { schedule 1 sec { late() }; }
        event zeek_done() { print network_time() > double_to_time(0.0); }
        "#,
    );
    assert_eq!(printed, "T\nT\n");
}

#[test]
fn terminate_and_exit_end_the_run() {
    let sample = sample();
    let code = format!(
        "{TYPES}
        event new_connection(c: connection) {{ print \"one\"; exit(7); }}"
    );
    let output = zeek(&["-C", "-r", sample.to_str().unwrap()], &code);
    assert_eq!(output.status.code(), Some(7));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "one\n");
}

#[test]
fn a_capture_that_is_missing_is_an_error() {
    let output = zeek(&["-r", "/nonexistent/trace.pcap"], "print 1;");
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("problem with trace file /nonexistent/trace.pcap"), "{error}");
    assert!(output.stdout.is_empty());
}

#[test]
fn help_is_printed_and_missing_scripts_are_one_line() {
    let zeek = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gannet"));
        let output = command.arg("zeek").args(args).env_remove("ZEEKPATH").output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    let (code, help, _) = zeek(&["-h"]);
    assert_eq!(code, Some(0));
    assert!(
        help.contains("gannet zeek -C -r trace.pcap") && help.contains("--bare-mode"),
        "{help}"
    );
    let sample = sample();
    for args in [&["-r", sample.to_str().unwrap()][..], &["-e", "print 1;"]] {
        let (code, out, words) = zeek(args);
        assert_eq!((code, out.as_str(), words.lines().count()), (Some(1), "", 1), "{words}");
        assert!(words.contains("ZEEKPATH") && words.contains("--zeek-scripts DIR"), "{words}");
    }
    let (code, _, words) = zeek(&["-b", "-i", "no-such-link"]);
    assert_eq!(code, Some(1));
    assert!(words.starts_with("fatal error: problem with interface no-such-link ("), "{words}");
}

#[test]
fn scripts_among_the_captures_of_analyze_run() {
    let folder = std::env::temp_dir().join(format!("gannet-scripted-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let script = folder.join("count.zeek");
    let code =
        "global n = 0; event new_connection(c: connection) { ++n; } event zeek_done() { print n; }";
    std::fs::write(&script, format!("{TYPES}{code}")).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_gannet"));
    command.args(["analyze", "-C"]).arg(sample()).arg(&script).env_remove("ZEEKPATH");
    let output = command.output().unwrap();
    let words = String::from_utf8(output.stderr).unwrap();
    // Without -b, scripts need Zeek's own scripts.
    assert!(words.contains("can't find Zeek's scripts"), "{words}");
    let refused = Command::new(env!("CARGO_BIN_EXE_gannet"))
        .args(["analyze", "--hash-files"])
        .arg(sample())
        .arg(&script)
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(2));
    let words = String::from_utf8(refused.stderr).unwrap();
    assert!(words.contains("--hash-files cannot be used with scripts"), "{words}");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn errors_name_the_connection_and_the_packet_once_per_location() {
    let code = format!(
        "{TYPES}event new_connection(c: connection) {{ local v = vector(1); print v[c$id$resp_p == 80/tcp ? 5 : 6]; }}"
    );
    let sample = sample();
    let output = zeek(&["--diagnostics", "rich", "-C", "-r", sample.to_str().unwrap()], &code);
    let words = String::from_utf8(output.stderr).unwrap();
    let place = words.lines().find(|line| line.contains("^")).unwrap_or_default();
    let (_, about) = place.split_once("connection C").unwrap_or_else(|| panic!("{words}"));
    assert!(about.contains(", packet "), "{words}");
    assert_eq!(words.matches("no such index").count(), 1, "{words}");
    assert!(words.lines().last().unwrap().ends_with("9 times more"), "{words}");
}

/// Output, errors and exit code of a script; asserts that they are equal with one, two and seven threads.
fn with_threads(code: &str, capture: &Path) -> (String, String, Option<i32>) {
    let code = format!("{TYPES}{code}");
    let run = |threads: &str| {
        let args = ["--threads", threads, "-C", "-r", capture.to_str().unwrap()];
        let output = zeek(&args, &code);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (text(&output.stdout), text(&output.stderr), output.status.code())
    };
    let alone = run("1");
    for threads in ["2", "7"] {
        assert_eq!(run(threads), alone, "{threads} threads");
    }
    alone
}

/// Like [`with_threads`], over a trace.
pub(crate) fn over_trace(trace: &Trace, code: &str) -> (String, String, Option<i32>) {
    let s = Scratch::new("zeek-trace");
    with_threads(code, &s.file("trace.pcap", &crate::support::pcap(trace.frames())))
}

#[test]
fn scripts_print_the_same_for_any_number_of_threads() {
    let code = r#"
        global conns = 0;
        event network_time_init() { print "first packet", network_time(); }
        event later(n: count) { print "later", n, network_time(); }
        event new_connection(c: connection) { ++conns; print c$uid, c$id, c$history; schedule 50msec { later(conns) }; }
        event http_request(c: connection, method: string, original_URI: string, unescaped_URI: string, version: string)
            { ++c$requests; print c$uid, c$requests, c$orig$size, method, original_URI, network_time(); }
        event connection_state_remove(c: connection) { print "end", c$uid, c$history, c$requests, c$resp$num_pkts; }
        event zeek_done() { print conns, network_time(); }
        "#;
    let (printed, errors, status) = with_threads(code, &sample());
    assert_eq!((errors.as_str(), status), ("", Some(0)));
    assert!(printed.lines().filter(|line| line.starts_with("end")).count() == 10, "{printed}");
}

#[test]
fn events_of_a_message_have_records_of_their_own_where_a_script_changes_one() {
    let types = r#"
        type dns_msg: record { id: count; opcode: count; QR: bool; num_queries: count; };
        global dns_message: event(c: connection, is_orig: bool, msg: dns_msg, len: count);
        global dns_request: event(c: connection, msg: dns_msg, query: string, qtype: count, qclass: count);
        global dns_end: event(c: connection, msg: dns_msg);
        global kept: vector of dns_msg;
        "#;
    let show = r#"
        event dns_request(c: connection, msg: dns_msg, query: string, qtype: count, qclass: count)
            { print c$uid, "request", query, msg; kept += msg; }
        event dns_end(c: connection, msg: dns_msg) { print c$uid, "end", msg; kept += msg; }
        event zeek_done() { for ( _, m in kept ) print m; }
        "#;
    let reads = "event dns_message(c: connection, is_orig: bool, msg: dns_msg, len: count)
        { print c$uid, \"begin\", msg; }";
    let (read, errors, _) = with_threads(&format!("{types}{show}{reads}"), &sample());
    assert_eq!(errors, "");
    let begins: Vec<_> = read.lines().filter(|line| line.contains("begin")).collect();
    let ends: Vec<_> = read.lines().filter(|line| line.contains("end")).collect();
    assert!(begins.len() > 3);
    let ended: Vec<_> = begins.iter().map(|line| line.replace("begin", "end")).collect();
    assert_eq!(ended, ends, "each message ends as it began");
    for change in ["msg$id = 7", "msg$num_queries += 7", "++msg$opcode", "local l = msg; l$id = 7"]
    {
        let changes = format!(
            "event dns_message(c: connection, is_orig: bool, msg: dns_msg, len: count)
            {{ print c$uid, \"begin\", msg; {change}; }}"
        );
        let (changed, ..) = with_threads(&format!("{types}{show}{changes}"), &sample());
        assert_eq!(changed, read, "{change}");
    }
}

#[test]
fn messages_do_not_share_records() {
    let code = format!(
        "{TYPES}
        type dns_msg: record {{ id: count; opcode: count; QR: bool; num_queries: count; }};
        global dns_message: event(c: connection, is_orig: bool, msg: dns_msg, len: count);
        global dns_end: event(c: connection, msg: dns_msg);
        global begun = 0; global ended = 0; global sum = 0; global last = 0; global wrong = 0;
        event dns_message(c: connection, is_orig: bool, msg: dns_msg, len: count)
            {{ ++begun; sum += msg$id; last = msg$id; }}
        event dns_end(c: connection, msg: dns_msg)
            {{ ++ended; sum += msg$id; if ( msg$id != last ) ++wrong; }}
        event zeek_done() {{ print begun, ended, sum, wrong; }}"
    );
    for count in [10_u64, 1_000, 100_000] {
        let mut trace = Trace::new(Time::from_secs(1_000), 1);
        let mut sum = 0;
        for n in 0..count {
            // Each id occurs twice in a row, so that two successive messages have equal records.
            let id = (n / 2 % 50_000) as u16;
            sum += 2 * u64::from(id);
            let client = SocketAddr::from(([10, 0, 0, 1], 10_000 + (n % 100) as u16));
            let query = gannet_synth::dns::query(id, "a.example", 1);
            trace.udp(client, SocketAddr::from(([10, 0, 0, 2], 53)), &query);
        }
        let s = Scratch::new("zeek-messages");
        let capture = s.file("trace.pcap", &crate::support::pcap(trace.frames()));
        let output = zeek(&["-C", "-r", capture.to_str().unwrap()], &code);
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            format!("{count}, {count}, {sum}, 0\n"),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

#[test]
fn errors_and_the_exit_status_of_scripts_are_the_same_for_any_number_of_threads() {
    let code = r#"
        type R: record { x: count &optional; };
        event new_connection(c: connection) { local r = R(); if ( c$id$resp_p == 80/tcp ) print r$x; }
        "#;
    let (_, errors, status) = with_threads(code, &sample());
    assert!(errors.contains("field value missing") && status == Some(0), "{errors}");
    let code = r#"
        global n = 0;
        event new_connection(c: connection) { ++n; print n; if ( n == 3 ) exit(7); }
        event zeek_done() { print "done"; }
        "#;
    let (printed, _, status) = with_threads(code, &sample());
    assert!(printed.starts_with("1\n2\n3\n") && status == Some(7), "{printed} {status:?}");
}

#[test]
fn scripts_that_control_the_analysis_run_in_its_thread() {
    let sample = sample();
    let args = ["--threads", "2", "--verbose", "-C", "-r", sample.to_str().unwrap()];
    let says = |code: &str| {
        let declared = "global skip_further_processing: function(cid: conn_id): bool;";
        let output = zeek(&args, &format!("{TYPES}{declared}{code}"));
        assert!(output.status.success());
        let text = String::from_utf8(output.stderr).unwrap();
        let line = text.lines().find(|line| line.contains("analyz")).unwrap_or_default();
        line.to_owned()
    };
    let plain = "event new_connection(c: connection) { print c$uid; }";
    assert_eq!(says(plain), "analyzing with 2 threads");
    let calls = "function stop(c: connection) { skip_further_processing(c$id); }
        event new_connection(c: connection) { stop(c); }";
    assert_eq!(says(calls), "analyzing with one thread: stop calls skip_further_processing");
    let unused = "function stop(c: connection) { skip_further_processing(c$id); }
        event new_connection(c: connection) { print c$uid; }";
    assert_eq!(says(unused), "analyzing with 2 threads");
    let ends = "event new_connection(c: connection) { terminate(); }";
    assert_eq!(says(ends), "analyzing with one thread: new_connection calls terminate");
    let passed =
        "event new_connection(c: connection) { local f = skip_further_processing; f(c$id); }";
    assert_eq!(
        says(passed),
        "analyzing with one thread: new_connection calls skip_further_processing"
    );
    let scheduled = "event late(c: connection) { print c$uid; }
        event new_connection(c: connection) { schedule 1sec { late(c) }; }";
    assert!(says(scheduled).ends_with("new_connection schedules an event with a connection"));
    // A call that sets the default value does not need the thread of the analysis.
    let usual = "type fa_file: record { id: string; };
        global file_new: event(f: fa_file);
        module Files;
        export {
            option enable_reassembler = T;
            global __enable_reassembly: function(id: string): bool;
            global enable_reassembly: function(f: fa_file);
        }
        function enable_reassembly(f: fa_file) { __enable_reassembly(f$id); }
        event file_new(f: fa_file) { Files::enable_reassembly(f); }";
    assert_eq!(says(usual), "analyzing with 2 threads");
    let otherwise =
        format!("{usual} event file_new(f: fa_file) {{ Files::enable_reassembly(f); }}");
    let why = "enable_reassembly calls Files::__enable_reassembly";
    assert!(says(&otherwise).ends_with(why), "{}", says(&otherwise));
    // Tunnels end with their connection, so a call in a hook that runs then has no effect.
    let ended = "module PacketAnalyzer::GTPV1;
        global remove_gtpv1_connection: function(cid: conn_id): bool;
        type Hook: hook(c: connection);
        hook finalize_gtpv1(c: connection) { remove_gtpv1_connection(c$id); }
        event connection_state_remove(c: connection) { local h: Hook = finalize_gtpv1; hook h(c); }";
    assert_eq!(says(ended), "analyzing with 2 threads");
    let before =
        format!("{ended} event new_connection(c: connection) {{ hook finalize_gtpv1(c); }}");
    assert!(says(&before).ends_with("remove_gtpv1_connection"), "{}", says(&before));
}

#[test]
fn a_step_over_the_last_entry_completes_the_pass_over_a_table() {
    let address = |n, port| SocketAddr::from(([10, 0, 0, n], port));
    let mut trace = Trace::new(Time::from_secs(1_000), 1);
    for _ in 0..40 {
        let frame = frame::udp(address(1, 4_000), address(2, 9), 1, b"x");
        trace.push(Interval::from_secs(1), frame);
    }
    // A step checks two entries: both are checked in one step, which completes the pass over the table. The next pass
    // begins after table_expire_interval, not after table_expire_delay.
    let code = "
        const table_expire_interval = 10sec;
        const table_expire_delay = 1sec;
        const table_incremental_step = 2;
        global udp_request: event(u: connection);
        global n = 0;
        global first: time;
        function gone(t: table[count] of count, i: count): interval {
            print \"gone\", network_time() - first;
            return 0sec;
        }
        global t: table[count] of count &create_expire=2sec &expire_func=gone;
        event udp_request(u: connection) {
            if ( n == 0 ) first = network_time();
            if ( n <= 1 || 14 <= n && n <= 16 ) t[n] = n;
            ++n;
        }";
    let (printed, errors, _) = over_trace(&trace, code);
    let times = [10, 10, 20, 20, 21].map(|n| format!("gone, {n}.0 secs\n"));
    assert_eq!((printed, errors.as_str()), (times.concat(), ""));
}

#[test]
fn scripts_read_how_much_was_acknowledged_and_missed() {
    let address = |n, port| SocketAddr::from(([10, 0, 0, n], port));
    let mut trace = Trace::new(Time::from_secs(1_000), 1);
    let mut tcp = trace.connect(address(1, 4_000), address(2, 9_000));
    tcp.send(&[b'x'; 100]);
    tcp.lose(50);
    tcp.send(&[b'x'; 100]);
    tcp.reply(&[b'y'; 10]);
    tcp.close();
    for _ in 0..3 {
        // A truncated IPv4 header.
        let frame = frame::udp(address(1, 4_000), address(2, 9_000), 1, b"x");
        trace.push(Interval::from_millis(1), frame[..30].to_vec());
    }
    let code = "
        type GapStats: record { ack_events: count; ack_bytes: count; gap_events: count; gap_bytes: count; };
        type EventStats: record { queued: count; dispatched: count; };
        global get_gap_stats: function(): GapStats;
        global get_event_stats: function(): EventStats;
        type ReporterStats: record { weirds: count; weirds_by_type: table[string] of count; };
        global get_reporter_stats: function(): ReporterStats;
        event connection_state_remove(c: connection) { print get_gap_stats(), get_event_stats()$dispatched; }
        event zeek_done() { print get_reporter_stats(); }";
    let (printed, errors, _) = over_trace(&trace, code);
    let counts = "[ack_events=3, ack_bytes=0, gap_events=1, gap_bytes=50], 1\n\
                  [weirds=3, weirds_by_type={\n[truncated_IP] = 3\n}]\n";
    assert_eq!((printed.as_str(), errors.as_str()), (counts, ""));
}

#[test]
fn scripts_choose_the_ports_of_tunnels() {
    let address = |port| SocketAddr::from(([10, 0, 0, 1], port));
    let inner = frame::udp(address(4_000), address(9_000), 1, b"in");
    let payload = [&[8, 0, 0, 0, 0, 0, 1, 0], &inner[..]].concat();
    let mut trace = Trace::new(Time::from_secs(1_000), 1);
    for port in [4_789, 4_790] {
        trace
            .push(Interval::from_millis(1), frame::udp(address(5_000), address(port), 1, &payload));
    }
    let code = |port: u16| {
        format!(
            "module PacketAnalyzer;
            export {{
                global register_packet_analyzer: function(parent: Tag, identifier: count, child: Tag): bool;
            }}
            event zeek_init() {{ register_packet_analyzer(ANALYZER_UDP, {port}, ANALYZER_VXLAN); }}
            event new_connection(c: connection) {{ print c$id$resp_p; }}"
        )
    };
    for (port, all) in
        [(4_789, "4789/udp\n9000/udp\n4790/udp\n"), (4_790, "4789/udp\n4790/udp\n9000/udp\n")]
    {
        let (printed, errors, _) = over_trace(&trace, &code(port));
        assert_eq!((printed.as_str(), errors.as_str()), (all, ""));
    }
}

#[test]
fn tunnels_that_a_script_sets_are_kept() {
    let address = |port| SocketAddr::from(([10, 0, 0, 1], port));
    let inner = frame::udp(address(4_000), address(9_000), 1, b"in");
    let payload = [&[8, 0, 0, 0, 0, 0, 1, 0], &inner[..]].concat();
    let mut trace = Trace::new(Time::from_secs(1_000), 1);
    for _ in 0..2 {
        let outer = frame::udp(address(5_000), address(4_789), 1, &payload);
        trace.push(Interval::from_millis(1), outer);
    }
    let code = "module Tunnel;
        export {
            type Type: enum { VXLAN };
            type EncapsulatingConn: record { cid: conn_id; tunnel_type: Type; uid: string &optional; };
        }
        redef record connection += { tunnel: vector of EncapsulatingConn &optional; };
        event new_connection(c: connection)
            {
            if ( ! c?$tunnel ) return;
            print c$tunnel[0]$cid$orig_p;
            c$tunnel = vector();
            }
        event connection_state_remove(c: connection) { if ( c?$tunnel ) print |c$tunnel|; }";
    let (printed, errors, _) = over_trace(&trace, code);
    assert_eq!((printed.as_str(), errors.as_str()), ("5000/udp\n0\n", ""));
}

#[test]
fn connections_within_ip_tunnels_have_no_link_layer_addresses() {
    let address = |n, port| SocketAddr::from(([10, 0, 0, n], port));
    let framed = frame::udp(address(1, 4_000), address(2, 9_000), 1, &[7; 40]);
    let inner = &framed[14..];
    let [a, b] = [3, 4].map(|n| address(n, 0).ip());
    let mut trace = Trace::new(Time::from_secs(1_000), 1);
    trace.push(Interval::ZERO, frame::ip(a, b, 4, 1, inner));
    trace.push(Interval::from_millis(1), frame::udp(address(5, 1), address(6, 2), 1, b"out"));
    let code = "redef record endpoint += { l2_addr: string &optional; };
        event new_connection(c: connection) { print c$orig?$l2_addr, c$resp?$l2_addr; }";
    let (printed, errors, _) = over_trace(&trace, code);
    assert_eq!((printed.as_str(), errors.as_str()), ("F, F\nT, T\n", ""));
}

#[test]
fn a_tunnel_of_frames_occurs_once_among_the_analyzers_of_a_packet() {
    let code = r#"
        global unknown_protocol: event(analyzer_name: string, protocol: count, first_bytes: string, analyzer_history: string_vec);
        event unknown_protocol(analyzer_name: string, protocol: count, first_bytes: string, analyzer_history: string_vec)
            {
            print protocol, analyzer_history;
            }
        "#;
    let address = |n| std::net::IpAddr::from([10, 0, 0, n]);
    let frame_inside = frame::ethernet([1; 6], [2; 6], 0x9999, &[0; 60]);
    let gre = [&[0, 0, 0x65, 0x58], &frame_inside[..]].concat();
    let mut trace = Trace::new(Time::from_secs(1_000), 1);
    trace.push(Interval::ZERO, frame::ip(address(1), address(2), 47, 1, &gre));
    let (printed, errors, _) = over_trace(&trace, code);
    let expected = "39321, [ETHERNET, IP, GRE, IPTUNNEL, ETHERNET]\n";
    assert_eq!((printed.as_str(), errors.as_str()), (expected, ""));
}

#[test]
fn an_analyzer_is_disabled_once() {
    let code = r#"
        module Analyzer;
        export { global disabling_analyzer: hook(c: connection, tag: any, aid: count); }
        module GLOBAL;
        global disable_analyzer: function(cid: conn_id, aid: count, complains: bool &default=T, prevent: bool &default=F): bool;
        event http_request(c: connection, method: string, original_URI: string, unescaped_URI: string, version: string)
            {
            print disable_analyzer(c$id, current_analyzer(), F), disable_analyzer(c$id, current_analyzer(), F);
            }
        "#;
    let code = format!("global current_analyzer: function(): count; {code}");
    let exchange: [(bool, &[u8]); 1] = [(true, b"GET / HTTP/1.1\r\n\r\n")];
    assert_eq!(over_connection(80, &exchange, &code), "T, F\n");
}

#[test]
fn dns_sections_requested_by_scripts_have_weirds() {
    let code = r#"
        const dns_skip_all_auth = T;
        const dns_skip_all_addl = F;
        global dns_request: event(c: connection);
        global conn_weird: event(name: string, c: connection);
        event dns_request(c: connection) { }
        event conn_weird(name: string, c: connection) { print name; }
        "#;
    let address = |n, port| SocketAddr::from(([10, 0, 0, n], port));
    let (client, server) = (address(1, 4_000), address(2, 53));
    // A resource record without data, followed by another one.
    let record = b"\x00\x00\x10\x00\x01\x00\x00\x00\x01\x00\x00";
    let head = b"\x12\x34\x81\x00\x00\x01\x00\x00\x00\x00\x00\x02\x01a\x00\x00\x01\x00\x01";
    let message = [&head[..], record, record].concat();
    let mut trace = Trace::new(Time::from_secs(1_000), 1);
    trace.udp(client, server, &message);
    let (printed, errors, _) = over_trace(&trace, code);
    assert_eq!((printed.as_str(), errors.as_str()), ("DNS_zero_rdlength\n", ""));
}

#[test]
fn scripts_receive_all_events() {
    for exchanges in [10, 1_000, 100_000] {
        let code = r#"
            global begun = 0; global ended = 0;
            event new_connection(c: connection) { ++begun; }
            event connection_state_remove(c: connection) { ++ended; }
            event zeek_done() { print begun, ended; }
            "#;
        let (printed, errors, _) = over_trace(&traffic::of(Kind::Dns, exchanges, 1), code);
        assert_eq!(errors, "");
        let (begun, ended) = printed.trim().split_once(", ").unwrap();
        assert!(begun == ended && begun.parse::<usize>().unwrap() >= exchanges, "{printed}");
    }
}

#[test]
fn connections_are_the_same_whether_or_not_a_handler_stores_them() {
    const SHOWN: &str = "c$uid, c$id, c$orig$size, c$resp?$num_pkts, c$history, c$requests";
    // Scripts that only read values; that store all connections, change every other one, or look it up.
    let reads = |what: &str| {
        format!(
            r#"
            global udp_request: event(u: connection);
            global connection_exists: function(cid: conn_id): bool;
            global lookup_connection: function(cid: conn_id): connection;
            redef record connection += {{ mark: count &optional; }};
            global uids: set[string];
            global texts: table[string] of count &default=0;
            global bytes = 0; global begun = 0; global ended = 0; global marked = 0; global kept: vector of connection;
            event new_connection(c: connection) {{ {what} ++begun; add uids[c$uid]; }}
            event udp_request(u: connection) {{ if ( u?$mark ) ++marked; ++texts[u$history]; }}
            event connection_state_remove(c: connection)
                {{ ++ended; if ( c?$mark ) ++marked; bytes += c$orig$size + c$resp$size; if ( c$uid !in uids ) print "new"; }}
            event zeek_done() {{ print begun, ended, bytes, |uids|, marked; for ( [h], n in texts ) print h, n; }}
            "#
        )
    };
    for exchanges in [10, 1_000, 100_000] {
        let trace = traffic::of(Kind::Dns, exchanges, 1);
        let of = |what| {
            let (printed, errors, _) = over_trace(&trace, &reads(what));
            assert_eq!(errors, "", "{what}");
            printed
        };
        let brief = of("");
        let counts: Vec<usize> =
            brief.lines().next().unwrap().split(", ").map(|n| n.parse().unwrap()).collect();
        let [begun, ended, bytes, uids, marked] = counts[..] else { panic!("{brief}") };
        assert!(begun >= exchanges && ended == begun && uids == begun, "{brief}");
        assert!(bytes > 0 && marked == 0, "{brief}");
        assert_eq!(of("kept += c;"), brief);
        if exchanges > 1_000 {
            break;
        }
        assert_eq!(of("if ( ! connection_exists(c$id) ) print c$uid;"), brief);
        assert_eq!(of("if ( lookup_connection(c$id)$uid != c$uid ) print c$uid;"), brief);
        let changed = of("if ( begun % 2 == 0 ) c$mark = 1;");
        let marks: usize =
            changed.lines().next().unwrap().rsplit(", ").next().unwrap().parse().unwrap();
        // Each mark is counted at the end of its connection, and at each further request.
        assert!(marks >= begun.div_ceil(2), "{changed}");
    }
    let sample =
        over_sample(&format!("event connection_state_remove(c: connection) {{ print {SHOWN}; }}"));
    let kept = "event connection_state_remove(c: connection) { local k = c; print ";
    assert_eq!(over_sample(&format!("{kept}{SHOWN}; }}")), sample);
    assert!(sample.lines().count() > 3, "{sample}");
    // A `conn_id` that a script stores does not change with the connections of later events.
    let now = over_sample("event connection_state_remove(c: connection) { print c$id; }");
    let later = over_sample(
        "global ids: vector of conn_id;
        event connection_state_remove(c: connection) { ids += c$id; }
        event zeek_done() { for ( i, id in ids ) print id; }",
    );
    assert_eq!(later, now);
}

#[test]
fn file_analyzers_receive_all_bytes_of_files_that_scripts_read() {
    let file = std::env::temp_dir().join(format!("gannet-input-{}", std::process::id()));
    // Whole blocks of 1,024 bytes, and an incomplete one.
    for pieces in [0_usize, 10, 1_000, 20_000] {
        let size = pieces * 1_024 + 7;
        std::fs::write(&file, vec![b'x'; size]).unwrap();
        let code = format!(
            r#"
            type fa_file: record {{
                id: string; source: string; seen_bytes: count; is_orig: bool &optional; bytes: count &default=0;
            }};
            global exit_only_after_terminate = T;
            global file_new: event(f: fa_file);
            global file_state_remove: event(f: fa_file);
            module Input;
            export {{
                type AnalysisDescription: record {{ source: string; name: string; reader: Reader &default=READER_BINARY; }};
            }}
            global __create_analysis_stream: function(description: AnalysisDescription): bool;
            function add_analysis(description: AnalysisDescription): bool {{ return __create_analysis_stream(description); }}
            global end_of_data: event(name: string, source: string);
            event zeek_init() {{ print add_analysis([$source="{}", $name="a file"]); }}
            event file_new(f: fa_file) {{ print "new", f$source, f?$is_orig; }}
            event file_state_remove(f: fa_file) {{ print "over", f$seen_bytes; }}
            event Input::end_of_data(name: string, source: string) {{ print "read", name; terminate(); }}
            "#,
            file.display()
        );
        let output = zeek(&[], &code);
        let words = String::from_utf8_lossy(&output.stderr);
        let lines = format!("T\nnew, a file, F\nover, {size}\nread, a file\n");
        assert_eq!(String::from_utf8_lossy(&output.stdout), lines, "{words}");
    }
    std::fs::remove_file(&file).unwrap();
}

#[test]
fn scripts_write_streams_to_files() {
    let path = std::env::temp_dir().join(format!("gannet-stream-{}", std::process::id()));
    let code = format!(
        r#"
        global connection_established: event(c: connection);
        global set_contents_file: function(cid: conn_id, direction: count, f: file): bool;
        global get_contents_file: function(cid: conn_id, direction: count): file;
        global tcp_content_deliver_all_orig = T;
        global tcp_content_deliver_all_resp = T;
        global tcp_contents: event(c: connection, is_orig: bool, seq: count, contents: string);
        global f = open("{}");
        global written = 0;
        event connection_established(c: connection)
            {{
            if ( c$id$resp_p == 80/tcp && written == 0 )
                {{
                written = 1;
                set_contents_file(c$id, 1, f);
                print c$id$orig_p;
                }}
            }}
        "#,
        path.display()
    );
    let printed = over_sample(&code);
    assert_eq!(printed.lines().count(), 1);
    let written = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert!(written.starts_with("GET ") || written.starts_with("POST "), "{written}");
    assert!(!written.contains("HTTP/1.1 200"), "{written}");
}

#[test]
fn a_gap_is_written_before_the_bytes_after_it() {
    let address = |n, port| SocketAddr::from(([10, 0, 0, n], port));
    let mut trace = Trace::new(Time::from_secs(1_000), 1);
    let mut tcp = trace.connect(address(1, 4_000), address(2, 9_000));
    tcp.send(b"one");
    tcp.lose(50);
    tcp.send(b"two");
    tcp.reply(b"x");
    // Missing bytes that are acknowledged before later bytes arrive.
    tcp.lose(20);
    tcp.reply(b"x");
    tcp.send(b"three");
    tcp.reply(b"x");
    tcp.close();
    let path = std::env::temp_dir().join(format!("gannet-gaps-{}", std::process::id()));
    let code = format!(
        r#"
        global connection_established: event(c: connection);
        global set_contents_file: function(cid: conn_id, direction: count, f: file): bool;
        global f = open("{}");
        event connection_established(c: connection) {{ set_contents_file(c$id, 1, f); }}
        "#,
        path.display()
    );
    let (_, errors, _) = over_trace(&trace, &code);
    let written = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!((&*written, &*errors), ("one\n<<gap 50>>\ntwothree", ""));
}

#[test]
fn identifiers_and_components_are_listed() {
    let output = |args: &[&str]| {
        let code =
            "const width: count = 7 &redef; global t: table[count] of string = { [1] = \"a\" };";
        let output = zeek(args, code);
        assert!(output.stderr.is_empty() == output.status.success());
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(output(&["-I", "width"]), "width : count = 7 &redef\n");
    assert_eq!(output(&["-I", "nothing"]), "");
    assert!(!output(&["-N"]).contains("ANALYZER_HTTP"));
    assert!(output(&["-NN"]).contains("    [Analyzer] HTTP (ANALYZER_HTTP)\n"));
}

/// The output of a script for one TCP connection to this port.
pub(crate) fn over_connection(port: u16, exchange: &[(bool, &[u8])], code: &str) -> String {
    let address = |n, port| SocketAddr::from(([10, 0, 0, n], port));
    let mut trace = Trace::new(Time::from_secs(1_000), 1);
    let mut tcp = trace.connect(address(1, 4_000), address(2, port));
    for (is_orig, data) in exchange {
        if *is_orig { tcp.send(data) } else { tcp.reply(data) }
    }
    tcp.close();
    let (printed, errors, status) = over_trace(&trace, code);
    assert_eq!((errors.as_str(), status), ("", Some(0)));
    printed
}

/// A server's first messages of TLS 1.2, with one certificate.
fn tls_server(certificate: &[u8]) -> Vec<u8> {
    let u24 = |n: usize| (n as u32).to_be_bytes()[1..].to_vec();
    let message = |kind: u8, body: &[u8]| [&[kind][..], &u24(body.len()), body].concat();
    let hello = [&[3, 3][..], &[7; 32], &[0, 0, 0x9c, 0]].concat();
    let one = [u24(certificate.len()), certificate.to_vec()].concat();
    let messages = [message(2, &hello), message(11, &[u24(one.len()), one].concat())].concat();
    [&[22, 3, 3][..], &(messages.len() as u16).to_be_bytes(), &messages].concat()
}

#[test]
fn scripts_stop_the_file_of_a_certificate() {
    let server = tls_server(b"no certificate");
    let exchange: &[(bool, &[u8])] = &[(false, &server)];
    let types = "
        type fa_file: record { id: string; source: string; seen_bytes: count; };
        type fa_metadata: record { mime_type: string &optional; };
        global file_new: event(f: fa_file);
        global file_sniff: event(f: fa_file, meta: fa_metadata);
        global file_hash: event(f: fa_file, kind: string, hash: string);
        global file_state_remove: event(f: fa_file);
        module Files;
        export {
            global __stop: function(file_id: string): bool;
        }
        module GLOBAL;
        event file_sniff(f: fa_file, meta: fa_metadata) { print f$source, f$seen_bytes, meta$mime_type; }
        event file_hash(f: fa_file, kind: string, hash: string) { print kind, hash; }
        event file_state_remove(f: fa_file) { print \"over\", f$seen_bytes; }";
    let sniffed = "SSL, 0, application/x-x509-user-cert\n";
    let hashes = "md5, 76bbd195e629c56f6e9367ab8825442a\n\
                  sha1, 2a6a501e58584d09e523b22509aba9d918561d9d\n\
                  sha256, de826f9e5acba22f80b95e447f9a1a29db2441d3f8dee9d83dfbb0e52370dfc0\n";
    let sniff = "event file_sniff(f: fa_file, meta: fa_metadata)";
    for (handler, expected) in [
        (String::new(), format!("{sniffed}{hashes}over, 14\n")),
        ("event file_new(f: fa_file) { Files::__stop(f$id); }".to_owned(), String::new()),
        // The type is known once bytes were processed, which are hashed.
        (format!("{sniff} {{ Files::__stop(f$id); }}"), format!("{sniffed}{hashes}")),
    ] {
        let code = format!("{types} {handler}");
        assert_eq!(over_connection(443, exchange, &code), expected, "{handler}");
    }
}

#[test]
fn scripts_skip_contents_of_http_and_smtp() {
    let code = r#"
        global skip_http_entity_data: function(c: connection, is_orig: bool): any;
        global http_entity_data: event(c: connection, is_orig: bool, length: count, data: string);
        event http_entity_data(c: connection, is_orig: bool, length: count, data: string)
            { print data; skip_http_entity_data(c, F); }
        "#;
    let exchange: &[(bool, &[u8])] = &[
        (true, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
        (false, b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"),
        (false, b"def"),
        (false, b"ghi"),
        (true, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
        (false, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nxy"),
    ];
    assert_eq!(over_connection(80, exchange, code), "abc\nxy\n");
    let code = r#"
        global skip_smtp_data: function(c: connection): any;
        global smtp_data: event(c: connection, is_orig: bool, data: string);
        event smtp_data(c: connection, is_orig: bool, data: string)
            { print data; skip_smtp_data(c); }
        "#;
    let exchange: &[(bool, &[u8])] = &[
        (false, b"220 ready\r\n"),
        (true, b"HELO a\r\n"),
        (false, b"250 ok\r\n"),
        (true, b"MAIL FROM:<a@b>\r\n"),
        (false, b"250 ok\r\n"),
        (true, b"RCPT TO:<c@d>\r\n"),
        (false, b"250 ok\r\n"),
        (true, b"DATA\r\n"),
        (false, b"354 go\r\n"),
        (true, b"Subject: x\r\n"),
        (true, b"\r\nmore\r\n"),
        (true, b".\r\n"),
    ];
    assert_eq!(over_connection(25, exchange, code), "Subject: x\n");
}

#[test]
fn invalid_base64_is_an_error() {
    let code = r#"
        global decode_base64_conn: function(cid: conn_id, s: string, a: string &default=""): string;
        event new_connection(c: connection)
            { print decode_base64_conn(c$id, "YQ=="), |decode_base64_conn(c$id, "!!!")|; }
        "#;
    let mut trace = Trace::new(Time::from_secs(1_000), 1);
    let address = |n, port| SocketAddr::from(([10, 0, 0, n], port));
    trace.connect(address(1, 4_000), address(2, 9)).close();
    let (printed, errors, _) = over_trace(&trace, code);
    assert_eq!(
        (&*printed, errors.contains("error in decoding string !!!")),
        ("a, 0\n", true),
        "{errors}"
    );
}

#[test]
fn searches_for_all_matches_have_a_limit_of_length() {
    let code = r#"
        const max_find_all_string_length: int = 10;
        global net_weird: event(name: string, addl: string, source: string);
        event net_weird(name: string, addl: string, source: string) { print sub(addl, /^.*: /, ""); }
        event zeek_init()
            {
            local s = "abcdefghijk";
            print |find_all(s, /a/)|, |find_all(s, /a/, 5)|, |find_all(s, /a/, 11)|, |find_all(s, /a/, 0)|;
            }
        "#;
    let output = zeek(&[], code);
    let printed = String::from_utf8_lossy(&output.stdout);
    let weirds =
        "length 11 exceeded 10(from constant max_find_all_string_length\nlength 11 exceeded 5\n";
    assert_eq!(printed, format!("0, 0, 1, 1\n{weirds}"), "{output:?}");
}

#[test]
fn an_option_that_has_no_effect_is_a_warning() {
    let trace = Trace::new(Time::from_secs(1_000), 1);
    let warning = |name: &str| format!("warning: {name} has no effect in gannet\n");
    for (code, warning) in [
        ("const tcp_match_undelivered = T;", String::new()),
        ("const tcp_match_undelivered = F;", warning("tcp_match_undelivered")),
        ("module KRB; export { const keytab = \"\"; }", String::new()),
        ("module KRB; export { const keytab = \"x\"; }", warning("KRB::keytab")),
    ] {
        let (_, errors, status) = over_trace(&trace, code);
        assert_eq!((errors.ends_with(&warning), status), (true, Some(0)), "{errors}");
        assert_eq!(errors.is_empty(), warning.is_empty(), "{errors}");
    }
}

#[test]
fn options_of_scripts_change_how_tcp_connections_are_followed() {
    let events = r#"
        global connection_attempt: event(c: connection);
        function at(name: string) { print fmt("%s %.0f", name, floor(time_to_double(network_time()) - 1000.0)); }
        event new_connection(c: connection) { if ( c$id$orig_p == 9/tcp || c$id$resp_p == 9/tcp ) at("new"); }
        event connection_attempt(c: connection) { at("attempt"); }
        event connection_state_remove(c: connection) { if ( c$id$resp_p == 9/tcp ) at("over"); }
        "#;
    let address = |n, port| SocketAddr::from(([10, 0, 0, n], port));
    let [client, server] = [address(1, 4_000), address(2, 9)];
    let follow = |first: usize, options: &str, begin: fn(&mut Trace, SocketAddr, SocketAddr)| {
        let mut trace = Trace::new(Time::from_secs(1_000), 1);
        begin(&mut trace, client, server);
        // Packets of another connection advance network time.
        for second in 1..20 {
            trace.wait(Interval::from_millis(999));
            trace.ping(address(3, 0).ip(), address(4, 0).ip(), 7, second);
        }
        let s = Scratch::new("zeek-trace");
        let capture = s.file("trace.pcap", &crate::support::pcap(&trace.frames()[first..]));
        let (printed, errors, status) = with_threads(&format!("{options}{events}"), &capture);
        assert_eq!((&*errors, status), ("", Some(0)));
        printed.replace('\n', ",")
    };
    let knock = |options| follow(0, options, Trace::knock);
    assert_eq!(knock(""), "new 0,attempt 5,over 5,");
    assert_eq!(knock("const tcp_attempt_delay = 2 secs;"), "new 0,attempt 2,over 2,");
    let closed = |first, options| follow(first, options, |t, a, b| t.connect(a, b).close());
    assert_eq!(closed(0, ""), "new 0,over 5,");
    assert_eq!(closed(0, "const tcp_close_delay = 8 secs;"), "new 0,over 8,");
    // Captures that begin with the SYN-ACK, or within the connection.
    assert_eq!(closed(1, ""), "new 0,over 5,");
    assert_eq!(closed(1, "const tcp_SYN_ack_ok = F;"), "new 0,over 5,");
    for first in [1, 2, 3] {
        assert_eq!(closed(first, "const partial_connection_ok = F;"), "", "{first}");
    }
    assert_eq!(closed(0, "const partial_connection_ok = F;"), "new 0,over 5,");
}

#[test]
fn scripts_use_the_resolver_of_the_system() {
    let code = "
        event zeek_init()
            {
            when ( local q = lookup_hostname(\"192.0.2.1\") ) { print q; }
            when ( local r = lookup_hostname(\"no name\") ) { print r; }
            when ( local s = lookup_hostname_txt(\"no..name\") ) { print s; }
            }";
    let output = zeek(&[], code);
    let mut lines: Vec<_> = std::str::from_utf8(&output.stdout).unwrap().lines().collect();
    lines.retain(|line| !matches!(*line, "{" | "}"));
    lines.sort_unstable();
    assert_eq!(lines, ["0.0.0.0", "192.0.2.1", "<???>"], "{output:?}");
    let refused = zeek(&["--sandbox"], code);
    let words = String::from_utf8_lossy(&refused.stderr);
    assert!(words.contains("lookup_hostname is not allowed in a sandbox"), "{words}");
}

#[test]
fn a_sandbox_writes_no_packets_and_extracts_no_files() {
    let s = Scratch::new("zeek-sandbox");
    let (packets, file) = (s.path("packets.pcap"), s.path("file"));
    let code = format!(
        "{TYPES}
        global dump_current_packet: function(file_name: string): bool;
        event new_connection(c: connection) {{ print dump_current_packet(\"{}\"); }}
        module Files;
        export {{
            type AnalyzerArgs: record {{ extract_filename: string; }};
            type Kind: enum {{ NONE }};
            global __add_analyzer: function(file_id: string, tag: Files::Tag, args: AnalyzerArgs): bool;
        }}
        module GLOBAL;
        type fa_file: record {{ id: string; }};
        global file_new: event(f: fa_file);
        event file_new(f: fa_file)
            {{ print Files::__add_analyzer(f$id, Files::ANALYZER_EXTRACT, [$extract_filename=\"{}\"]); }}",
        packets.display(),
        file.display()
    );
    let sample = sample();
    let refused = zeek(&["--sandbox", "-C", "-r", sample.to_str().unwrap()], &code);
    let printed = String::from_utf8_lossy(&refused.stdout);
    assert!(printed.contains('F') && !printed.contains('T'), "{refused:?}");
    let words = String::from_utf8_lossy(&refused.stderr);
    assert!(words.contains("dump_current_packet is not allowed in a sandbox"), "{words}");
    assert!(words.contains("the extraction of files is not allowed in a sandbox"), "{words}");
    assert!(!packets.exists() && !file.exists());
    let open = zeek(&["-C", "-r", sample.to_str().unwrap()], &code);
    assert!(packets.exists() && file.exists(), "{open:?}");
}

#[test]
fn an_option_of_scripts_ends_connections_of_dns() {
    let events = r#"
        event connection_state_remove(c: connection)
            {
            if ( c$id$resp_p == 53/udp )
                print fmt("%.0f", floor(time_to_double(network_time()) - 1000.0));
            }
        "#;
    let address = |n, port| SocketAddr::from(([10, 0, 0, n], port));
    let mut trace = Trace::new(Time::from_secs(1_000), 1);
    let (client, server) = (address(1, 4_000), address(2, 53));
    trace.udp(
        client,
        server,
        b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01a\x00\x00\x01\x00\x01",
    );
    for second in 1..20 {
        trace.wait(Interval::from_millis(999));
        trace.ping(address(3, 0).ip(), address(4, 0).ip(), 7, second);
    }
    for (option, at) in [
        ("", "10\n"),
        ("const dns_session_timeout = 4 secs;", "4\n"),
        // The shorter inactivity timeout ends them first.
        ("const udp_inactivity_timeout = 2 secs;", "2\n"),
    ] {
        let (printed, errors, status) = over_trace(&trace, &format!("{option}{events}"));
        assert_eq!((&*printed, &*errors, status), (at, "", Some(0)), "{option}");
    }
}

#[test]
fn options_of_scripts_limit_what_is_read() {
    let events = "
        global http_entity_data: event(c: connection, is_orig: bool, length: count, data: string);
        global http_header: event(c: connection, is_orig: bool, original_name: string, name: string, value: string);
        global conn_weird: event(name: string, c: connection, addl: string, source: string);
        event http_request(c: connection, method: string, original_URI: string, unescaped_URI: string, version: string)
            { print original_URI, unescaped_URI; }
        event http_entity_data(c: connection, is_orig: bool, length: count, data: string) { print data; }
        event http_header(c: connection, is_orig: bool, original_name: string, name: string, value: string)
            { if ( name == \"A\" ) print value; }
        event conn_weird(name: string, c: connection, addl: string, source: string)
            { if ( name != \"HTTP_obsolete_line_folding\" ) print name, addl; }
        ";
    let web: &[(bool, &[u8])] = &[
        (true, b"GET /a%62cdef HTTP/1.1\r\nA: 1\r\n 234\r\n 5\r\n\r\n"),
        (false, b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabcdefghi"),
    ];
    let all = "/a%62cdef, /abcdef\n1 234 5\nabcdefghi\n";
    assert_eq!(over_connection(80, web, events), all);
    let none = "const truncate_http_URI = -1;";
    assert_eq!(over_connection(80, web, &[none, events].concat()), all);
    let small = "
        const truncate_http_URI = 4;
        const http_entity_data_delivery_size = 4;
        module MIME;
        export { const max_header_bytes = 5; }
        module GLOBAL;
        ";
    assert_eq!(
        over_connection(80, web, &[small, events].concat()),
        "/a%6..., /abc...\nexceeded_mime_max_header_bytes, 8\n1 234\nabcd\nefgh\ni\n"
    );
    let transfer: &[(bool, &[u8])] = &[
        (false, b"220 ready\r\n"),
        (true, b"USER a\r\n"),
        (false, b"331 go\r\n"),
        (true, b"PASSWORD x\r\n"),
    ];
    let length = |most: &str| {
        let option =
            format!("module FTP; export {{ const max_command_length = {most}; }} module GLOBAL;");
        over_connection(21, transfer, &[&option, events].concat())
    };
    assert_eq!(length("4"), "FTP_max_command_length_exceeded, 8 > 4\n");
    assert_eq!([length("8"), length("0")], ["", ""]);
}

#[test]
fn scripts_read_sequence_numbers() {
    let code = r#"
        global get_orig_seq: function(cid: conn_id): count;
        global get_resp_seq: function(cid: conn_id): count;
        global connection_established: event(c: connection);
        global orig: count; global resp: count;
        event new_connection(c: connection) { print get_orig_seq(c$id) > 0, get_resp_seq(c$id); }
        event connection_established(c: connection)
            { orig = get_orig_seq(c$id); resp = get_resp_seq(c$id); }
        event http_request(c: connection, method: string, original_URI: string, unescaped_URI: string, version: string)
            { print get_orig_seq(c$id) - orig, get_resp_seq(c$id) - resp; }
        event zeek_done() { print get_orig_seq([$orig_h=10.0.0.9, $orig_p=1/tcp, $resp_h=10.0.0.8, $resp_p=2/tcp, $proto=6]); }
        "#;
    let exchange: &[(bool, &[u8])] =
        &[(true, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"), (false, b"HTTP/1.1 204 No\r\n\r\n")];
    assert_eq!(over_connection(80, exchange, code), "T, 0\n27, 0\n0\n");
}

#[test]
fn scripts_read_and_set_the_state_of_a_login() {
    let code = r#"
        module Analyzer;
        export {
            global __register_for_port: function(analyzer: Analyzer::Tag, p: port): bool;
        }
        module GLOBAL;
        global get_login_state: function(cid: conn_id): count;
        global set_login_state: function(cid: conn_id, new_state: count): bool;
        global login_input_line: event(c: connection, line: string);
        event zeek_init() { Analyzer::__register_for_port(Analyzer::ANALYZER_TELNET, 23/tcp); }
        event new_connection(c: connection) { print get_login_state(c$id), set_login_state(c$id, 1); }
        event login_input_line(c: connection, line: string)
            { print line, get_login_state(c$id), set_login_state(c$id, 2), get_login_state(c$id); }
        "#;
    let exchange: &[(bool, &[u8])] = &[(true, b"one\r\n"), (true, b"two\r\n")];
    // A line of the client before any text of the server makes the login confused (3). Once the script sets the state to
    // skipping (2), lines are not reported.
    let printed = over_connection(23, exchange, code);
    assert_eq!(printed, "0, F\none, 3, T, 2\n");
}

#[test]
fn scripts_match_signatures_themselves() {
    let file = std::env::temp_dir().join(format!("gannet-own-{}.sig", std::process::id()));
    std::fs::write(&file, "signature own { ftp /.*secret/ event \"found\" }").unwrap();
    let code = format!(
        r#"
        @load-sigs {}
        type signature_state: record {{ sig_id: string; conn: connection; is_orig: bool; payload_size: count; }};
        global signature_match: event(state: signature_state, msg: string, data: string);
        global match_signatures: function(c: connection, pattern_type: int, s: string, bol: bool, eol: bool, from_orig: bool, clear: bool): bool;
        event http_request(c: connection, method: string, original_URI: string, unescaped_URI: string, version: string)
            {{ print match_signatures(c, 7, original_URI, T, T, T, T); }}
        event signature_match(state: signature_state, msg: string, data: string)
            {{ print state$sig_id, state$conn$uid != "", state$is_orig, msg, data; }}
        "#,
        file.display()
    );
    let exchange: &[(bool, &[u8])] = &[
        (true, b"GET /open HTTP/1.1\r\nHost: a\r\n\r\n"),
        (false, b"HTTP/1.1 204 No\r\n\r\n"),
        (true, b"GET /secret HTTP/1.1\r\nHost: a\r\n\r\n"),
        (false, b"HTTP/1.1 204 No\r\n\r\n"),
    ];
    let printed = over_connection(80, exchange, &code);
    assert_eq!(printed, "T\nT\nown, T, T, found, /secret\n");
    std::fs::remove_file(&file).unwrap();
    let code = r#"
        global match_signatures: function(c: connection, pattern_type: int, s: string, bol: bool, eol: bool, from_orig: bool, clear: bool): bool;
        event new_connection(c: connection) { print match_signatures(c, 1, "x", T, T, T, T); }
        "#;
    assert_eq!(over_connection(80, &[], code), "F\n");
}

#[test]
fn scripts_read_statistics_of_timers_and_reassembly() {
    let code = r#"
        type ReassemblerStats: record { file_size: count; frag_size: count; tcp_size: count; unknown_size: count; };
        type TimerStats: record { current: count; max: count; cumulative: count; };
        type BrokerStats: record {
            num_peers: count; num_stores: count; num_pending_queries: count; num_events_incoming: count;
            num_events_outgoing: count; num_logs_incoming: count; num_logs_outgoing: count;
            num_ids_incoming: count; num_ids_outgoing: count;
        };
        global get_reassembler_stats: function(): ReassemblerStats;
        global get_timer_stats: function(): TimerStats;
        global get_broker_stats: function(): BrokerStats;
        global most = 0;
        event later() { }
        event new_connection(c: connection) { schedule 1hr { later() }; schedule 2hr { later() }; }
        event http_request(c: connection, method: string, original_URI: string, unescaped_URI: string, version: string)
            { local t = get_timer_stats(); print t$current >= 3, t$max >= t$current, t$cumulative; }
        event connection_state_remove(c: connection)
            { print get_reassembler_stats()$frag_size, get_broker_stats()$num_stores; }
        "#;
    let exchange: &[(bool, &[u8])] =
        &[(true, b"GET /open HTTP/1.1\r\nHost: a\r\n\r\n"), (false, b"HTTP/1.1 204 No\r\n\r\n")];
    assert_eq!(over_connection(80, exchange, code), "T, T, 2\n0, 0\n");
}

#[test]
fn connections_with_a_number_of_packets_that_scripts_set_are_reported() {
    let code = r#"
        module ConnThreshold;
        export { const generic_packet_thresholds: set[count] = { 5, 2 } &redef; }
        module GLOBAL;
        global conn_generic_packet_threshold_crossed: event(c: connection, threshold: count);
        event conn_generic_packet_threshold_crossed(c: connection, threshold: count)
            { print threshold, c$orig$num_pkts + c$resp$num_pkts; }
        "#;
    let exchange: &[(bool, &[u8])] = &[(true, b"one"), (false, b"two")];
    assert_eq!(over_connection(9_000, exchange, code), "2, 2\n5, 5\n");
}

#[test]
fn a_stream_that_cannot_be_written_is_an_error_and_an_event() {
    let code = format!(
        r#"{TYPES}
        global connection_established: event(c: connection);
        global contents_file_write_failure: event(c: connection, is_orig: bool, msg: string);
        global set_contents_file: function(cid: conn_id, direction: count, f: file): bool;
        global f = open("/dev/full");
        global failures = 0;
        event zeek_init() {{ set_buf(f, F); }}
        event connection_established(c: connection) {{ set_contents_file(c$id, 1, f); }}
        event contents_file_write_failure(c: connection, is_orig: bool, msg: string)
            {{ if ( ++failures == 1 ) print c$id$resp_p, is_orig, msg; }}
        "#
    );
    let sample = sample();
    let output = zeek(&["-C", "-r", sample.to_str().unwrap()], &code);
    let (printed, errors) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(printed.ends_with(", T, TCP reassembler content write failure\n"), "{printed}");
    assert!(errors.contains("TCP_Reassembler contents write failed"), "{errors}");
}

#[test]
fn scripts_read_the_options_of_geneve() {
    let address = |port| SocketAddr::from(([10, 0, 0, 1], port));
    let geneve = |options: &[u8], inner: &[u8]| {
        let words = u8::try_from(options.len() / 4).unwrap();
        let payload = [&[words, 0, 0x65, 0x58, 0, 0, 7, 0], options, inner].concat();
        frame::udp(address(5_000), address(6_081), 1, &payload)
    };
    let inner = geneve(&[0x01, 0x03, 0x04, 0], &frame::udp(address(1), address(9_000), 1, b"in"));
    let packet = geneve(&[0x01, 0x02, 0x83, 1, b'a', b'b', b'c', b'd'], &inner);
    let mut trace = Trace::new(Time::from_secs(1_000), 1);
    trace.push(Interval::from_millis(1), packet);
    trace.udp(address(1), address(9_001), b"x");
    let code = r#"
        module PacketAnalyzer::Geneve;
        export {
            type Option: record { class: count; critical: bool; typ: count; data: string; };
        }
        module GLOBAL;
        type geneve_options_vec: vector of PacketAnalyzer::Geneve::Option;
        type geneve_options_vec_vec: vector of geneve_options_vec;
        module PacketAnalyzer::Geneve;
        export { global get_options: function(): geneve_options_vec_vec; }
        module GLOBAL;
        event new_connection(c: connection)
            { print c$id$resp_p, PacketAnalyzer::Geneve::get_options(); }
        "#;
    let (printed, errors, _) = over_trace(&trace, code);
    let outer = "[class=258, critical=T, typ=3, data=abcd]";
    let inner = "[class=259, critical=F, typ=4, data=]";
    assert!(printed.contains(&format!("9000/udp, [[{outer}], [{inner}]]")), "{printed}{errors}");
    assert!(printed.contains("9001/udp, []"), "{printed}{errors}");
}

#[test]
fn scripts_read_the_session_of_pppoe() {
    let frame = frame::udp(
        SocketAddr::from(([10, 0, 0, 1], 5_000)),
        SocketAddr::from(([10, 0, 0, 2], 9_000)),
        1,
        b"in",
    );
    let (addresses, ip) = (&frame[..12], &frame[14..]);
    // PPPoE version 1, session data, session 0x023a; the length counts PPP's protocol, IPv4 (RFC 2516, section 4).
    let length = u16::try_from(ip.len() + 2).unwrap().to_be_bytes();
    let header = [&[0x88, 0x64, 0x11, 0, 0x02, 0x3a][..], &length, &[0, 0x21]].concat();
    let packet = [addresses, &header, ip].concat();
    let mut trace = Trace::new(Time::from_secs(1_000), 1);
    trace.push(Interval::from_millis(1), packet);
    let address = |port| SocketAddr::from(([10, 0, 0, 1], port));
    trace.udp(address(1), address(9_001), b"x");
    let code = r#"
        module PacketAnalyzer::PPPoE;
        export { global session_id: function(): count; }
        module GLOBAL;
        event new_connection(c: connection)
            { print c$id$resp_p, PacketAnalyzer::PPPoE::session_id(); }
        "#;
    let (printed, errors, _) = over_trace(&trace, code);
    assert!(printed.contains("9000/udp, 570"), "{printed}{errors}");
    assert!(printed.contains("9001/udp, 4294967295"), "{printed}{errors}");
}

#[cfg(target_os = "linux")]
#[test]
fn output_that_cannot_be_written_is_an_error() {
    let of = |args: &[&str], code: &str| {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_gannet"));
        command.args(["zeek", "-b"]).args(args).args(["-e", code]).env_remove("ZEEKPATH");
        let output = command.stdout(full).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let sample = sample();
    let capture = ["-r", sample.to_str().unwrap()];
    let handler =
        format!("{TYPES} event connection_state_remove(c: connection) {{ print c$uid; }}");
    // A file whose last reference is dropped, one that is open at the end, one that is closed.
    let dropped = r#"event zeek_init() { local f = open("/dev/full"); print f, "x"; }"#;
    let open = r#"global f = open("/dev/full"); event zeek_init() { print f, "x"; }"#;
    let closed = r#"event zeek_init() { local f = open("/dev/full"); print f, "x"; close(f); }"#;
    for (args, code, name) in [
        (&[][..], "print 1;", "standard output"),
        (&capture, handler.as_str(), "standard output"),
        (&[], dropped, "/dev/full"),
        (&[], open, "/dev/full"),
        (&[], closed, "/dev/full"),
    ] {
        let (status, says) = of(args, code);
        assert_eq!(status, Some(1), "{code}: {says}");
        assert!(says.contains(&format!("error: {name}: No space left")), "{code}: {says}");
        assert_eq!(says.lines().count(), 1, "{says}");
    }
    assert_eq!(of(&[], "event zeek_init() { }"), (Some(0), String::new()));
}

#[test]
fn a_truncated_capture_is_an_error_after_its_events() {
    let s = Scratch::new("zeek-cut");
    let cut = s.file("cut.pcap", &crate::support::sample()[..3_000]);
    let code = format!("{TYPES} event connection_state_remove(c: connection) {{ print c$uid; }}");
    let output = zeek(&["-r", cut.to_str().unwrap()], &code);
    assert_eq!(output.stdout.iter().filter(|byte| **byte == b'\n').count(), 5);
    let says = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{says}");
    assert!(says.contains("cut short in packet 16"), "{says}");
    // As for `gannet analyze`: a single line has no empty lines around it.
    let rich = zeek(&["--diagnostics=rich", "-r", cut.to_str().unwrap()], &code);
    let rich = String::from_utf8(rich.stderr).unwrap();
    assert!(rich.starts_with("error: ") && rich.lines().count() == 1, "{rich}");
    assert!(says.ends_with(&rich), "{rich}");
}

#[test]
fn errors_before_the_first_script_are_reported_in_both_forms() {
    for form in ["zeek", "rich"] {
        let args = [&format!("--diagnostics={form}"), "--load-seeds", "/nonexistent/seeds"];
        let output = zeek(&args, "print 1;");
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(1), &[][..]));
        let says = String::from_utf8(output.stderr).unwrap();
        assert!(says.contains("Could not load seeds from file '/nonexistent/seeds'"), "{says}");
    }
}

#[test]
fn a_capture_among_the_scripts_is_refused() {
    let sample = sample();
    let name = sample.to_str().unwrap();
    let output = zeek(&["-C", name], "print 1;");
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(1), &[][..]));
    let says = String::from_utf8(output.stderr).unwrap();
    assert_eq!(says, format!("fatal error: {name} is a capture: -r {name} reads it\n"));
}

#[test]
fn signatures_among_the_scripts_are_refused() {
    let s = Scratch::new("zeek-signatures");
    let file = s.file("x.sig", b"signature x { payload /x/ }");
    let name = file.to_str().unwrap();
    let output = zeek(&[name], "print 1;");
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(1), &[][..]));
    let says = String::from_utf8(output.stderr).unwrap();
    assert_eq!(says, format!("fatal error: {name} has signatures: -s {name} loads them\n"));
}

#[test]
fn sources_of_zeek_that_were_not_built_are_refused() {
    let s = Scratch::new("zeek-unbuilt");
    s.file("scripts/base/init-bare.zeek", b"@load base/bif/const.bif\n");
    let folder = s.path("scripts");
    let output = zeek(&["--zeek-scripts", folder.to_str().unwrap()], "print 1;");
    let says = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{says}");
    assert!(says.contains("base/bif is missing: Zeek's build makes it"), "{says}");
}

#[test]
fn a_profile_that_cannot_be_written_ends_the_run_before_it_begins() {
    let output = zeek(&["--profile-scripts=/nonexistent/profile"], "print 1;");
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(1), &[][..]));
    let says = String::from_utf8(output.stderr).unwrap();
    assert!(says.starts_with("error: cannot write the profile: /nonexistent/profile: "), "{says}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_profile_that_does_not_fit_on_the_disk_fails_the_run() {
    let output = zeek(&["--profile-scripts=/dev/full"], "print 1;");
    assert_eq!((output.status.code(), &*output.stdout), (Some(1), &b"1\n"[..]));
    let says = String::from_utf8(output.stderr).unwrap();
    assert!(says.starts_with("error: /dev/full: "), "{says}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_string_beyond_the_limit_ends_only_its_handler() {
    let code = "event zeek_done() &priority=1 { local s = \"0123456789\"; while ( T ) s = s + s; } \
                event zeek_done() { print \"next\"; }";
    for (option, most) in [("--max-string=1M", "1048576"), ("--max-string=2k", "2048")] {
        let output = zeek(&[option], code);
        let says = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), &*output.stdout), (Some(0), &b"next\n"[..]), "{says}");
        assert!(
            says.contains(&format!("is longer than {most}, the limit of --max-string (s + s)")),
            "{says}"
        );
    }
    let output = zeek(&["--max-string=0"], code);
    assert_eq!(output.status.code(), Some(1));
}

#[cfg(target_os = "linux")]
#[test]
fn names_that_are_not_utf_8_are_refused_with_a_message() {
    use std::os::unix::ffi::OsStrExt as _;
    let name = std::ffi::OsStr::from_bytes(b"n\xff.zeek");
    let output = crate::support::gannet().args(["zeek", "-b"]).arg(name).output().unwrap();
    let says = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        (output.status.code(), &*says),
        (Some(1), "error: argument n\u{fffd}.zeek: not UTF-8\n")
    );
}

#[test]
fn saved_seeds_repeat_the_run() {
    let s = Scratch::new("zeek-seeds");
    let seeds = s.path("seeds");
    let seeds = seeds.to_str().unwrap();
    let sample = sample();
    let code = format!("{TYPES} event new_connection(c: connection) {{ print c$uid; }}");
    let run = |args: &[&str]| zeek(&[&["-r", sample.to_str().unwrap()], args].concat(), &code);
    let first = run(&["--save-seeds", seeds]);
    assert_eq!(first.status.code(), Some(0));
    assert!(!first.stdout.is_empty());
    assert_eq!(run(&["--load-seeds", seeds]).stdout, first.stdout);
}

/// With seeds, connections get Zeek's uids in the order in which events first refer to them; weirds are such events.
#[test]
fn a_weird_without_handlers_assigns_the_uid_of_its_connection() {
    let s = Scratch::new("zeek-weird-names");
    let address = |n, port| SocketAddr::from(([10, 0, 0, n], port));
    let mut trace = Trace::new(Time::from_secs(1_000), 1);
    trace.push(Interval::from_millis(1), frame::udp(address(1, 4_000), address(2, 53), 1, b"no"));
    trace.connect(address(1, 4_001), address(2, 9)).close();
    let capture = s.file("trace.pcap", &crate::support::pcap(trace.frames()));
    let seeds = s.path("seeds");
    let run = |option: &str, code: &str| {
        let args = ["-C", "-r", capture.to_str().unwrap(), option, seeds.to_str().unwrap()];
        let output = zeek(&args, &format!("{TYPES}{code}"));
        String::from_utf8(output.stdout).unwrap()
    };
    let all = run("--save-seeds", "event new_connection(c: connection) { print c$uid; }");
    let established = "global connection_established: event(c: connection);
        event connection_established(c: connection) { print c$uid; }";
    let second = run("--load-seeds", established);
    assert_eq!((all.lines().count(), all.lines().nth(1)), (2, second.lines().next()));
}
