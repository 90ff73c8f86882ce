//! `gannet replay`: behaviour of the command, in addition to the tests of `crates/replay`.

#![allow(clippy::unwrap_used)]

use gannet_base::Time;
use gannet_synth::Trace;

use crate::support::Run;
use crate::support::Scratch;
use crate::support::echo::Echo;
use crate::support::gannet;

fn replay(arguments: &[&str]) -> Run {
    Run::of(gannet().arg("replay").args(arguments))
}

fn sample() -> String {
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/sample.pcap").to_owned()
}

#[test]
fn queries_of_a_capture_are_answered() {
    let server = Echo::start(&[]);
    let to = server.address.as_str();
    let run = replay(&[&sample(), "--to", to, "--timing", "speed=100x"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    assert!(run.stdout.contains("100.00 %") && run.stdout.contains("NOERROR"), "{}", run.stdout);
    let run = replay(&[&sample(), "--to", to, "--timing", "max", "--json", "--limit", "1"]);
    assert!(run.stdout.lines().last().unwrap().contains("\"queries\":1,\"responses\":1"));
}

#[test]
fn a_damaged_capture_is_an_error_also_with_quiet() {
    let s = Scratch::new("replay-cut");
    let bytes = crate::support::sample();
    let cut = s.file("cut.pcap", &bytes[..3_000]);
    let server = Echo::start(&[]);
    for quiet in [&[][..], &["--quiet"]] {
        let arguments = [cut.to_str().unwrap(), "--to", &server.address, "--timing", "max"];
        let run = replay(&[&arguments[..], quiet].concat());
        assert_eq!(run.code, 3, "{}", run.stderr);
        let line = run.stderr.trim_end();
        assert!(line.starts_with("error: ") && line.contains("cut.pcap: cut short in packet 16"));
        assert_eq!(line.lines().count(), 1, "{line}");
    }
}

#[test]
fn queries_go_over_connections_of_their_clients() {
    let server = Echo::start(&[]);
    let to = server.address.as_str();
    let tcp = ["--transport", "tcp", "--queries-per-connection", "1", "--timing", "max"];
    let run = replay(&[&[&sample(), "--to", to][..], &tcp, &["--limit", "3", "--json"]].concat());
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    let last = run.stdout.lines().last().unwrap().to_owned();
    assert!(last.contains("\"queries\":3,\"responses\":3"), "{last}");
    assert!(last.contains("\"type\":\"tcp\"") && last.contains("\"handshakes\":3"), "{last}");
}

#[test]
#[cfg(feature = "self-signed")]
fn a_certificate_is_trusted_by_its_file_alone() {
    let file = std::env::temp_dir().join(format!("gannet-cert-{}.pem", std::process::id()));
    let file = file.to_str().unwrap();
    let server = Echo::start(&["--tls", "--save-cert", file]);
    let arguments = [&sample(), "--to", &server.address, "--transport", "tls", "--limit", "1"];
    let run = replay(&[&arguments[..], &["--ca", file]].concat());
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    assert!(run.stdout.contains("over tls") && run.stdout.contains("100.00 %"), "{}", run.stdout);
    let run = replay(&[&arguments[..], &["--no-verify"]].concat());
    assert!(run.stdout.contains("100.00 %"), "{}", run.stdout);
    let run = replay(&[&arguments[..], &["--ca", file, "--tls-name", "other.test"]].concat());
    assert_eq!(run.code, 1, "TLS failed");
    assert!(run.stderr.contains("no connection to") && run.stderr.contains("certificate"));
    let run = replay(&[&arguments[..], &["--ca", "/nonexistent/ca"]].concat());
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("/nonexistent/ca"), "{}", run.stderr);
    std::fs::remove_file(file).unwrap();
}

#[test]
#[cfg(feature = "self-signed")]
fn the_echo_server_speaks_https() {
    let server = Echo::start(&["--https"]);
    let arguments = [&sample(), "--to", &server.address, "--transport", "https", "--no-verify"];
    let run = replay(&[&arguments[..], &["--path", "/any", "--timing", "max"]].concat());
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    assert!(run.stdout.contains("over https") && run.stdout.contains("100.00 %"), "{}", run.stdout);
}

#[test]
fn answers_are_compared_with_those_of_the_capture() {
    let server = Echo::start(&["--rcode", "5"]);
    let to = ["--to", &server.address, "--timing", "speed=100x"];
    let compare = ["--compare", "capture", "--differences", "-", "--json"];
    let run = replay(&[&[&sample()[..]], &to[..], &compare[..]].concat());
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    assert!(run.stdout.contains("\"rcode\":[\"REFUSED\""), "{}", run.stdout);
    assert!(run.stdout.contains("\"type\":\"comparison\""), "{}", run.stdout);
    let run =
        replay(&[&[&sample()[..]], &to[..], &["--compare", "capture", "--ignore", "x"]].concat());
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("'x' is not a field"), "{}", run.stderr);
}

#[test]
fn a_second_server_that_does_not_answer_is_an_error() {
    let server = Echo::start(&[]);
    let to = ["--to", &server.address, "--timing", "max"];
    // A server that never answers: the socket only reserves the port.
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let silent = silent.local_addr().unwrap().to_string();
    let compare = ["--timeout", "0.2", "--compare", &silent];
    let run = replay(&[&[&sample()[..]], &to[..], &compare[..]].concat());
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert_eq!(run.stderr, format!("error: {silent} answered nothing within 200ms\n"));
    assert!(run.stdout.contains("only target"), "{}", run.stdout);
}

#[test]
fn differences_that_cannot_be_written_name_their_file() {
    let server = Echo::start(&["--rcode", "5"]);
    let to = ["--to", &server.address, "--timing", "max"];
    let compare = ["--compare", "capture", "--differences", "/dev/full"];
    let run = replay(&[&[&sample()[..]], &to[..], &compare[..]].concat());
    assert_eq!((run.code, run.stderr.lines().count()), (1, 1), "{}", run.stderr);
    assert!(run.stderr.starts_with("error: /dev/full: "), "{}", run.stderr);
}

#[test]
fn a_drawing_that_cannot_be_written_ends_the_run_before_it_begins() {
    let server = Echo::start(&["--rcode", "3"]);
    let to = ["--to", &server.address, "--timing", "max", "--svg", "/nonexistent/x.svg"];
    let run = replay(&[&[&sample()[..]], &to[..]].concat());
    assert_eq!((run.code, run.stderr.lines().count()), (1, 1), "{}", run.stderr);
    assert!(run.stderr.starts_with("error: /nonexistent/x.svg: "), "{}", run.stderr);
    assert_eq!(run.stdout, "");
}

#[cfg(target_os = "linux")]
#[test]
fn the_report_has_arguments_that_are_not_utf_8() {
    use std::os::unix::ffi::OsStrExt as _;
    let server = Echo::start(&["--rcode", "3"]);
    let s = Scratch::new("replay-name");
    let file = s.path("").join(std::ffi::OsStr::from_bytes(b"n\xff.pcap"));
    std::fs::copy(sample(), &file).unwrap();
    let mut command = gannet();
    command.args(["replay", "--json", "--timing", "max", "--to", &server.address]).arg(&file);
    let run = Run::of(&mut command);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    assert!(run.stdout.contains("n\u{fffd}.pcap"), "{}", run.stdout);
}

#[test]
fn queries_are_changed_and_unchanged_ones_are_reported() {
    let s = Scratch::new("replay-changes");
    let server = Echo::start(&[]);
    let to = ["--to", &server.address, "--timing", "max"];
    let key = s.file("key", b"k.test:hmac-sha256:c2VjcmV0\n");
    let key = format!("@{}", key.display());
    // Each answer is a copy of the query, with the same signature and size.
    let length = |options: &[&str]| -> (u64, Run) {
        let run = replay(&[&[&sample()[..], "--json"], &to[..], options].concat());
        let last: serde_json::Value =
            serde_json::from_str(run.stdout.lines().last().unwrap()).unwrap();
        assert_eq!(run.code, 0, "{}", run.stderr);
        (last["gannet"]["sent_bytes"].as_u64().unwrap(), run)
    };
    let (plain, run) = length(&[]);
    let queries = run.stdout.lines().last().unwrap();
    let queries = queries.split("\"queries\":").nth(1).unwrap().split(',').next().unwrap();
    let queries: u64 = queries.parse().unwrap();
    let (with_edns, _) = length(&["--dnssec-ok"]);
    assert_eq!(with_edns, plain + 11 * queries);
    let (signed, run) = length(&["--tsig", &key]);
    assert_eq!((signed, run.stderr.as_str()), (plain + 79 * queries, ""));
    let (_, run) = length(&["--tsig", "k.test:hmac-sha256:c2VjcmV0"]);
    assert!(run.stdout.contains("k.test:hmac-sha256:..."), "{}", run.stdout);
    assert!(!run.stdout.contains("c2VjcmV0"), "{}", run.stdout);
    // A query with a signature (TSIG), which is not replaced.
    let mut query = gannet_synth::dns::query(7, "a.test", 1);
    query[11] = 1;
    query.extend_from_slice(b"\x01k\0\0\xfa\0\xff\0\0\0\0\0\0");
    let mut trace = Trace::new(Time::from_nanos(1_700_000_000_000_000_000), 1);
    let (client, server) = ("10.0.0.1:4000".parse().unwrap(), "10.0.0.2:53".parse().unwrap());
    trace.udp(client, server, &query);
    let signed = s.file("signed.pcap", &crate::support::pcap(trace.frames()));
    let run = replay(&[&[signed.to_str().unwrap()], &to[..], &["--no-edns"]].concat());
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(
        run.stderr.starts_with(
            "warning: 1 query was sent without the changes to EDNS and TSIG: its TSIG"
        ),
        "{}",
        run.stderr
    );
    assert!(run.stdout.contains("unchanged"), "{}", run.stdout);
}

#[test]
fn a_list_is_read_from_standard_input() {
    let server = Echo::start(&["--rcode", "3"]);
    let mut command = gannet();
    command.args(["replay", "--list", "-", "--to", &server.address, "-t", "rate=1k"]);
    let run = Run::with_input(&mut command, b"a.test A\nb.test NOTYPE\nc.test\n");
    assert_eq!(run.code, 3);
    assert_eq!(
        run.stderr,
        "warning: -:2: 'NOTYPE' is not a record type; TYPE65, for example, is a type by its number\n"
    );
    assert!(run.stdout.contains("NXDOMAIN               2"), "{}", run.stdout);
}

#[test]
fn public_addresses_are_refused() {
    let run = replay(&[&sample(), "--to", "8.8.8.8"]);
    assert_eq!(run.code, 2);
    assert!(run.stderr.starts_with("error: --to 8.8.8.8:53 is neither"), "{}", run.stderr);
    let run = replay(&["--serve", "0.0.0.0:0"]);
    assert_eq!(run.code, 2);
}

#[test]
fn a_run_that_reaches_no_server_fails() {
    let unused = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let silent = unused.local_addr().unwrap().to_string();
    let closed =
        std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let cases: [(&[&str], &str); 4] = [
        (&["--to", &silent, "--timeout", "0.2"], "answered nothing within 200ms"),
        (&["--to", &closed], "nothing listens at"),
        (&["--to", &closed, "--transport", "tcp"], "nothing listens at"),
        (&["--to", &closed, "--transport", "tls", "--no-verify"], "nothing listens at"),
    ];
    for (arguments, why) in cases {
        for quiet in [&[][..], &["-q"], &["-q", "--json"]] {
            let run = replay(&[&[&sample(), "-t", "max"][..], arguments, quiet].concat());
            assert_eq!(run.code, 1, "{arguments:?}: {}", run.stderr);
            assert!(
                run.stderr.starts_with("error: ") && run.stderr.contains(why),
                "{}",
                run.stderr
            );
            assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
        }
    }
    // The table shows the share of the input that was sent, and the first error.
    let run = replay(&[&sample(), "-t", "max", "--to", &closed, "--transport", "tcp"]);
    assert!(run.stdout.contains("0 bytes, 0.00 % of the input"), "{}", run.stdout);
    assert!(run.stdout.contains("first error"), "{}", run.stdout);
    // With --no-answers, missing answers are no error.
    let run = replay(&[&sample(), "-t", "max", "--to", &silent, "--no-answers", "-q"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
}

#[test]
fn a_run_that_sends_a_part_of_its_queries_has_its_own_exit_code() {
    // The server stops after its first query, so that later connections are refused.
    for quiet in [&[][..], &["-q"]] {
        let server = Echo::start(&["--queries", "1"]);
        let arguments = ["--to", &server.address, "--transport", "tcp", "-t", "rate=4"];
        let each = ["--queries-per-connection", "1", "--limit", "3"];
        let run = replay(&[&[&sample()[..]], &arguments[..], &each[..], quiet].concat());
        assert_eq!(run.code, 4, "{}", run.stderr);
        let reason = format!("error: 2 of 3 queries were not sent to {}: ", server.address);
        assert!(run.stderr.starts_with(&reason), "{}", run.stderr);
        assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
        assert!(run.stdout.contains("unsent"), "{}", run.stdout);
    }
}

#[test]
fn a_run_that_ends_within_the_warm_up_fails() {
    let server = Echo::start(&[]);
    let run = replay(&[&sample(), "--to", &server.address, "-t", "max", "--warm-up", "60"]);
    assert_eq!(run.code, 1);
    assert!(run.stderr.contains("nothing was sent after the warm-up of 60s"), "{}", run.stderr);
    assert!(!run.stdout.contains("send lag"), "{}", run.stdout);
}

#[test]
fn invalid_arguments_are_reported() {
    let to = "127.0.0.1:9";
    let s = Scratch::new("replay-wrong");
    let empty = s.file("empty.txt", b"# no names\n").display().to_string();
    let wrong: [(&[&str], &str); 25] = [
        (&["/nonexistent", "--to", "127.0.0.1:9"], "/nonexistent"),
        (&[&sample()], "--to <HOST[:PORT]>"),
        (&[&sample(), "--to", "127.0.0.1:9", "--timing", "fast"], "'fast' is not a timing"),
        (&[&sample(), "--to", "127.0.0.1:9", "--ports", "54"], "no DNS queries found"),
        (&[&sample(), "--to", "127.0.0.1:9", "--bind", "::1"], "different IP versions"),
        (&["-", "--to", to, "--loop", "2"], "--loop 2: standard input can be read only once"),
        (&[&sample(), "--to", to, "--limit", "0"], "--limit"),
        (&[&sample(), "--to", to, "--duration", "0"], "expected more than 0 seconds"),
        (&[&sample(), "--to", to, "--timeout", "-1"], "a number of seconds from 0"),
        (&[&sample(), "--to", to, "--retries", "-1"], "invalid value '-1'"),
        (&[&sample(), "--to", "127.0.0.1:0"], "port 0"),
        (&[&sample(), "--to", to, "--drop", "0.5"], "cannot be used with"),
        (&[&sample(), "--to", to, "--ca", "x"], "--ca is only for tls, https and quic"),
        (
            &[&sample(), "--to", to, "--path", "/x", "--transport", "tls"],
            "--path is only for https",
        ),
        (&[&sample(), "--to", to, "--idle", "1"], "--idle is only for tcp"),
        (&[&sample(), "--to", to, "--filter", "port 1"], "only packets that match --filter"),
        (&["--list", &empty, "--to", to], "(1 lines, 0 of them not queries)"),
        (&[&sample(), "--to", to, "--edns-size", "511"], "511 is not in 512..=65535"),
        (&[&sample(), "--to", to, "--no-edns", "--dnssec-ok"], "cannot be used with"),
        (&[&sample(), "--to", to, "--client-subnet", "10.0.0.0/33"], "is not a network"),
        (
            &[&sample(), "--to", to, "--tsig", "k:hmac-md5:eA=="],
            "--tsig: 'hmac-md5' is not a supported algorithm",
        ),
        (&[&sample(), "--to", to, "--tsig", "@/nonexistent/k"], "--tsig: /nonexistent/k: No such"),
        (&["--serve", "127.0.0.1:0", &sample()], "cannot be used with"),
        (&["--serve", "127.0.0.1:0", "--drop", "0.7", "--garbage", "0.7"], "exceeds 1"),
        (&["--serve", "127.0.0.1:0", "--queries", "0"], "--queries"),
    ];
    for (arguments, words) in wrong {
        let run = replay(arguments);
        assert_eq!(run.code, 2, "{arguments:?}");
        assert!(run.stderr.contains(words), "{arguments:?}: {}", run.stderr);
    }
}
