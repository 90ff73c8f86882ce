//! Scripts of others, unmodified: dnsjit's own tests and examples, Shotgun's, and drool.

use std::fs;
use std::net::UdpSocket;
use std::path::Path;
use std::process::Command;
use std::process::Stdio;
use std::time::Duration;
use std::time::Instant;

use super::material::Counting;
use super::material::Folder;
use super::material::Frames;
use super::material::QUERY;
use super::material::ethernet;
use super::material::lossy;
use super::material::queries;
use super::material::source;
use super::material::tcp4;
use crate::support::Run;
use crate::support::gannet;

const TESTS: [&str; 10] = [
    "test1",
    "test2",
    "test3",
    "test4",
    "test6",
    "test-ipsplit",
    "test-trie",
    "test-base64url",
    "test-padding",
    "test-sll2",
];

#[test]
fn dnsjits_own_tests_pass() {
    let Some(source) = source("DNSJIT_SOURCE", "dnsjit", "src/test/test1.sh") else { return };
    let tests = source.join("src/test");
    let folder = std::env::temp_dir().join(format!("gannet-dnsjit-{}", std::process::id()));
    let run = folder.join("test");
    fs::create_dir_all(&run).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_gannet"), folder.join("dnsjit")).unwrap();
    for entry in fs::read_dir(&tests).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if [".pcap", ".lz4", ".zst", ".xz", ".gz"].iter().any(|s| name.ends_with(s)) {
            fs::copy(&path, run.join(format!("{name}-dist"))).unwrap();
        }
    }
    let mut failed = Vec::new();
    for test in TESTS {
        let mut shell = Command::new("sh");
        shell.arg("-e").arg(tests.join(format!("{test}.sh"))).current_dir(&run);
        let result = Run::of(shell.env("srcdir", &tests));
        if result.code != 0 {
            failed.push(format!("{test}: {}{}", result.stdout, result.stderr));
        }
    }
    fs::remove_dir_all(folder).unwrap();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn dnsjits_examples_run() {
    let Some(source) = source("DNSJIT_SOURCE", "dnsjit", "src/test/test1.sh") else { return };
    let folder = Folder::new("dnsjit-examples");
    let capture = source.join("src/test/dns.pcap");
    let capture = capture.to_str().unwrap();
    let echo = Counting::start(&[]);
    let (host, port) = ("127.0.0.1", echo.port());
    let out = folder.path("out.pcap");
    let examples: [(&str, &[&str]); 12] = [
        ("count-pkts-per-ip", &[capture]),
        ("dumpdns", &[capture]),
        ("dumpdns-qr", &[capture]),
        ("dumpdns2pcap", &[capture, &out]),
        ("filter_rcode", &[capture, "0"]),
        ("pcap2tcpdns", &["-r", capture]),
        ("qr-multi-pcap-state", &[capture]),
        ("readme", &[capture]),
        ("replay", &[capture, host, port]),
        ("replay", &["-t", "-R", capture, host, port]),
        ("replay_multicli", &[capture, host, port]),
        ("replay_multicli", &["-t", "-R", capture, host, port]),
    ];
    for (name, arguments) in examples {
        let script = source.join(format!("examples/{name}.lua"));
        let run = lossy(gannet().arg("run").arg(script).args(arguments));
        assert_eq!(run.code, 0, "{name}: {}", run.stderr);
        assert!(!run.stdout.is_empty() || name == "dumpdns2pcap", "{name} says nothing");
        assert!(!run.stderr.contains("critical"), "{name}: {}", run.stderr);
        if name.starts_with("replay") {
            assert!(run.stdout.contains("errors\t0"), "{name}: {}", run.stdout);
        }
    }
    let (queries, others) = echo.stop();
    assert!(queries > 0 && others == 0, "{queries} queries, {others} others");
    let echo = Counting::start(&[]);
    let script = source.join("examples/respdiff.lua");
    let lmdb = folder.path("lmdb");
    let run = Run::of(gannet().arg("run").arg(script).args([
        capture,
        host,
        echo.port(),
        &lmdb,
        "original",
        "received",
    ]));
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(Path::new(&lmdb).join("data.mdb").is_file());
    echo.stop();
    let tls = Counting::start(&["--tls"]);
    let script = source.join("examples/replay.lua");
    let run = lossy(gannet().arg("run").arg(script).args(["-T", "-R", capture, host, tls.port()]));
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(tls.stop().0 > 0);
}

#[test]
fn a_live_capture_has_the_packets_of_the_loopback() {
    let Some(source) = source("DNSJIT_SOURCE", "dnsjit", "src/test/test1.sh") else { return };
    let mut command = gannet();
    command.arg("run").arg(source.join("examples/capture.lua")).arg("lo");
    let folder = Folder::new("dnsjit-capture");
    let printed = folder.path("printed");
    let output = fs::File::create(&printed).unwrap();
    let mut child =
        command.stdout(output).stderr(Stdio::piped()).stdin(Stdio::null()).spawn().unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let begun = Instant::now();
    let mut seen = false;
    let mut ended = None;
    while !seen && ended.is_none() && begun.elapsed() < Duration::from_secs(10) {
        // The output of the script is buffered until it has some kilobytes.
        for _ in 0..200 {
            socket.send_to(QUERY, "127.0.0.1:9").unwrap_or_default();
        }
        std::thread::sleep(Duration::from_millis(50));
        seen = String::from_utf8_lossy(&fs::read(&printed).unwrap()).contains(" -> 127.0.0.1:9");
        ended = child.try_wait().unwrap();
    }
    child.kill().unwrap_or_default();
    let output = child.wait_with_output().unwrap();
    let words = String::from_utf8_lossy(&output.stderr);
    if ended.is_some() && words.contains("packet socket") {
        eprintln!("skipped: live captures need a privilege that this user lacks");
        return;
    }
    assert!(seen, "{words}");
}

#[test]
fn shotguns_scripts_run() {
    let Some(source) = source("SHOTGUN_SOURCE", "shotgun", "pcap/filter-dnsq.lua") else { return };
    let folder = Folder::new("shotgun");
    let frames = queries(50);
    let frames: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
    let capture = Frames::new("shotgun", &frames);
    let input = capture.0.to_str().unwrap();
    let chunks = folder.path("chunks");
    fs::create_dir_all(&chunks).unwrap();
    let run = |name: &str, arguments: &[&str]| {
        let script = source.join(format!("pcap/{name}.lua"));
        let run = Run::of(gannet().arg("run").arg(script).args(arguments));
        assert_eq!(run.code, 0, "{name}: {}", run.stderr);
        run
    };
    let filtered = folder.path("queries.pcap");
    let output = run("filter-dnsq", &["-r", input, "-w", &filtered]);
    assert!(output.stderr.contains("50 out of 50 packets matched"), "{}", output.stderr);
    run("extract-clients", &["-r", &filtered, "-O", &chunks, "--seed", "7"]);
    let chunk = fs::read_dir(&chunks).unwrap().next().unwrap().unwrap().path();
    let chunk = chunk.to_str().unwrap();
    let limited = folder.path("limited.pcap");
    run("limit-clients", &["-r", chunk, "-w", &limited, "-l", "1"]);
    let parts = folder.path("parts");
    fs::create_dir_all(&parts).unwrap();
    run("split-clients", &["-r", chunk, "-O", &parts, "-n", "2"]);
    run("count-packets-per-ip", &["-r", input]);
    run("count-packets-over-time", &["-r", input]);
    run("cut-pcap", &[input, &folder.path("cut.pcap"), "1000"]);
    let output = run("generate-const-qps", &["-h"]);
    assert!(output.stdout.contains("--"), "{}", output.stdout);
}

#[test]
fn drool_with_threads_sends_every_query_and_ends() {
    if !Path::new("/usr/bin/drool").is_file() {
        eprintln!("skipped: drool is not installed (Debian: apt-get install drool)");
        return;
    }
    let mut frames = queries(3000);
    frames.push(ethernet(&[&[8, 0], &tcp4(&[&[0, QUERY.len() as u8], QUERY].concat())]));
    let frames: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
    let capture = Frames::new("drool", &frames);
    for (options, expected) in [
        (&["--no-tcp"][..], 3001),
        (&["--no-tcp", "-n"], 3001),
        (&["--no-tcp", "-n", "-T", "--udp-threads", "2"], 3001),
        (&["-T"], 3001),
        (&[], 3001),
    ] {
        let echo = Counting::start(&[]);
        let mut command = gannet();
        command.args(["run", "/usr/bin/drool", "replay", "--csv"]).args(options);
        let run = Run::of(command.arg(&capture.0).args(["127.0.0.1", echo.port()]));
        assert_eq!(run.code, 0, "{options:?}: {}", run.stderr);
        let row = run.stdout.lines().last().unwrap();
        let cells: Vec<&str> = row.split(',').collect();
        assert_eq!((cells[3], cells[8]), ("3001", "0"), "{options:?}: {}", run.stdout);
        assert_eq!(echo.stop(), (expected, 0), "{options:?}");
    }
}
