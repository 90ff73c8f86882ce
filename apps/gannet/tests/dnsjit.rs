//! dnsjit's scripts, unmodified: its ten tests and its examples, where its source lies beside the
//! project or where `DNSJIT_SOURCE` points, Shotgun's where `SHOTGUN_SOURCE` points, and drool where it is
//! installed; and what dnsjit's modules do here with packets that it stumbles over.
//!
//! Of dnsjit 1.5.0's and drool 2.0.0's defects, these tests hold us to what is right:
//!
//! | what goes wrong there | test |
//! |---|---|
//! | `Channel:put` loses objects when the ring is full | `a_full_channel_says_so_and_loses_nothing`, `threads_get_every_object` |
//! | `drool replay -T` loses queries and hangs | `drool_with_threads_sends_every_query_and_ends` |
//! | nanoseconds of captures are taken for microseconds; captures are written with microseconds | `nanoseconds_are_nanoseconds`, `what_scripts_write_is_what_they_read` |
//! | 802.1ad is not read, VLAN ids have eight bits | `vlans_in_vlans_are_read_and_ids_have_twelve_bits` |
//! | an odd packet ends the stream as if it were over | `an_odd_packet_does_not_end_the_stream` |
//! | an empty payload ends the program | `an_empty_payload_is_no_header_and_no_end` |
//! | `multiply` cuts fractions; delays add up, and those that are late wait all the same | `timing_adds_nothing_up_and_counts_fractions`, `who_is_late_does_not_wait` |
//! | over TCP lengths are doubled, and answers sent as queries | `lengths_are_sent_once_and_answers_not_at_all` |
//! | `torfc1035` writes octal | `escapes_are_decimal` |
//! | IPv6 with extension headers has no payload | `extension_headers_leave_the_payload` |
//! | `nonblocking(false)` does not block | `blocking_again_is_blocking` |
//! | `thread:pop()` waits for ever; what comes with the end of a channel is lost | `threads_get_every_object` |
//! | `packets()` is 0 where packets are pulled | `nanoseconds_are_nanoseconds` |
//! | respdiff's times are all 1 | `respdiff_has_times` |
//!
//! What drool's manual promises and it does not do (loops, `add=`) is `gannet replay`'s, whose tests are in
//! `crates/replay`.

#![allow(clippy::unwrap_used)]
#![cfg(feature = "lua")]

mod support;

use std::fs;
use std::io::Write as _;
use std::net::TcpStream;
use std::net::UdpSocket;
use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::time::Duration;
use std::time::Instant;

use gannet_base::Time;
use gannet_capture::LinkType;
use gannet_capture::Packet;
use gannet_capture::Precision;
use gannet_capture::WriteOptions;
use gannet_capture::Writer;
use support::Run;
use support::gannet;

/// A folder that is there, by a variable or beside the project.
fn source(variable: &str, beside: &str, holds: &str) -> Option<PathBuf> {
    let shared = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared");
    let path =
        std::env::var_os(variable).map_or_else(|| Path::new(shared).join(beside), PathBuf::from);
    if !path.join(holds).exists() {
        let words = format!("skipped: no {beside} in {} (set {variable})\n", path.display());
        std::io::stderr().write_all(words.as_bytes()).unwrap();
        return None;
    }
    Some(fs::canonicalize(path).unwrap())
}

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

/// A capture of these frames, a second and a half and some nanoseconds apart.
struct Frames(PathBuf);

impl Frames {
    fn new(name: &str, frames: &[&[u8]]) -> Self {
        let path = std::env::temp_dir().join(format!("gannet-{name}-{}.pcap", std::process::id()));
        let options = WriteOptions { precision: Some(Precision::Nanos), ..WriteOptions::default() };
        let mut writer = Writer::create(&path, options).unwrap();
        for (index, data) in frames.iter().enumerate() {
            writer
                .write(&Packet {
                    time: Time::from_nanos(1_000_123_456_789 + 20_000_000 * index as i64),
                    wire_len: data.len() as u32,
                    link_type: LinkType::ETHERNET,
                    interface: 0,
                    number: index as u64 + 1,
                    data,
                })
                .unwrap();
        }
        writer.finish().unwrap();
        Self(path)
    }
}

impl Drop for Frames {
    fn drop(&mut self) {
        fs::remove_file(&self.0).unwrap_or_default();
    }
}

/// What a script prints that finds `layer`, `object` and `produce` over these frames at hand.
fn over(name: &str, frames: &[&[u8]], text: &str) -> String {
    let capture = Frames::new(name, frames);
    let begin = "local object = require('dnsjit.core.objects')\n\
                 local input = require('dnsjit.input.mmpcap').new()\n\
                 local layer = require('dnsjit.filter.layer').new()\n\
                 assert(input:open(arg[2]) == 0)\nlayer:producer(input)\n\
                 local produce, ctx = layer:produce()\n";
    let mut command = gannet();
    command.arg("run").arg("-").arg(&capture.0);
    let run = Run::with_input(&mut command, format!("{begin}{text}").as_bytes());
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    run.stdout
}

fn ethernet(rest: &[&[u8]]) -> Vec<u8> {
    [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1][..], &rest.concat()].concat()
}

fn udp4(payload: &[u8]) -> Vec<u8> {
    let len = 28 + payload.len() as u8;
    let ip = [0x45, 0, 0, len, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    [&ip[..], &[4, 0, 0, 53, 0, len - 20, 0, 0], payload].concat()
}

const QUERY: &[u8] = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x04a\xc8.b\0\0\x01\0\x01";

#[test]
fn nanoseconds_are_nanoseconds() {
    let frame = ethernet(&[&[8, 0], &udp4(QUERY)]);
    let text = "local p = produce(ctx):cast_to(object.PCAP)\n\
                print(tonumber(p.ts.sec), tonumber(p.ts.nsec), input:packets())";
    assert_eq!(over("nanos", &[&frame], text), "1000\t123456789\t1\n");
}

#[test]
fn vlans_in_vlans_are_read_and_ids_have_twelve_bits() {
    let tags = [0x88, 0xa8, 0x2a, 0xbc, 0x81, 0, 0x00, 0x07, 8, 0];
    let frame = ethernet(&[&tags, &udp4(QUERY)]);
    let text = "local o = produce(ctx)\nprint(o:type())\n\
                local inner = o:cast_to(object.IEEE802)\nprint(inner.vid)\n\
                print(inner:prev():cast().vid, inner:prev():cast().pcp)";
    assert_eq!(over("qinq", &[&frame], text), "payload\n7\n2748\t1\n");
}

#[test]
fn an_odd_packet_does_not_end_the_stream() {
    let good = ethernet(&[&[8, 0], &udp4(QUERY)]);
    let many_tags = ethernet(&[&[0x81, 0, 0, 1].repeat(9), &[8, 0]]);
    let short = [1, 2, 3];
    let text = "local n = 0\nwhile produce(ctx) ~= nil do n = n + 1 end print(n)";
    let mut fragments = vec![0x60, 0, 0, 0, 0, 16, 44, 64];
    fragments.extend_from_slice(&[0; 32]);
    fragments.extend_from_slice(&[44, 0, 0, 1, 0, 0, 0, 1, 17, 0, 0, 1, 0, 0, 0, 1]);
    let fragments = ethernet(&[&[0x86, 0xdd], &fragments]);
    let frames = [&good[..], &many_tags, &short, &fragments, &[], &good];
    assert_eq!(over("odd", &frames, text), "6\n");
}

#[test]
fn an_empty_payload_is_no_header_and_no_end() {
    let empty = ethernet(&[&[8, 0], &udp4(&[])]);
    let good = ethernet(&[&[8, 0], &udp4(QUERY)]);
    let text = "local dns = require('dnsjit.core.object.dns').new()\nwhile true do\n\
                local o = produce(ctx) if o == nil then break end\n\
                dns:reset() dns.obj_prev = o print(dns:parse_header(), dns.have_id, dns.id) end";
    assert_eq!(over("empty", &[&empty, &good], text), "-2\t0\t0\n0\t1\t4660\n");
}

#[test]
fn escapes_are_decimal() {
    let good = ethernet(&[&[8, 0], &udp4(QUERY)]);
    let text = "local Dns = require('dnsjit.core.object.dns')\nlocal dns = Dns.new(produce(ctx))\n\
                local label = require('dnsjit.core.object.dns.label')\n\
                local labels, q = label.new(16), require('dnsjit.core.object.dns.q').new()\n\
                assert(dns:parse_header() == 0 and dns:parse_q(q, labels, 16) == 0)\n\
                print((label.torfc1035(dns, labels, 16)), Dns.type_tostring(65))\n\
                print((label.tooffstr(dns, labels, 16)):byte(1, 4))";
    assert_eq!(over("rfc1035", &[&good], text), "a\\200\\.b.\tHTTPS\n60\t49\t50\t62\n");
}

#[test]
fn timing_adds_nothing_up_and_counts_fractions() {
    let good = ethernet(&[&[8, 0], &udp4(QUERY)]);
    let frames = vec![&good[..]; 6];
    // 5 gaps of 20 ms, at half: 50 ms.
    let text = "local timing = require('dnsjit.filter.timing').new()\ntiming:multiply(0.5)\n\
                timing:producer(layer)\nlocal p, c = timing:produce()\n\
                local clock = require('dnsjit.lib.clock')\nlocal s, n = clock:monotonic()\n\
                while p(c) ~= nil do end\nlocal t, m = clock:monotonic()\n\
                local took = tonumber(t - s) + tonumber(m - n) / 1e9\n\
                print(took >= 0.05 and took < 0.5, took >= 0.05 or took)";
    assert_eq!(over("timing", &frames, text), "true\ttrue\n");
}

#[test]
fn a_full_channel_says_so_and_loses_nothing() {
    let text = "local channel = require('dnsjit.core.channel').new(4)\n\
                local o = produce(ctx):uncast()\n\
                for i = 1, 4 do channel:put(o) end\n\
                print(channel:full(), pcall(channel.put, channel, o))\n\
                local n = 0 while channel:get() ~= nil do n = n + 1 end print(n)";
    let good = ethernet(&[&[8, 0], &udp4(QUERY)]);
    let told = over("channel", &[&good], text);
    assert!(told.starts_with("true\tfalse\t") && told.ends_with("\n4\n"), "{told}");
}

#[test]
fn what_scripts_write_is_what_they_read() {
    let good = ethernet(&[&[8, 0], &udp4(QUERY)]);
    let out = std::env::temp_dir().join(format!("gannet-dnsjit-out-{}.pcap", std::process::id()));
    let text = format!(
        "local out = require('dnsjit.output.pcap').new()\n\
         assert(out:open('{}', input:linktype(), input:snaplen()) == 0)\n\
         local recv, rctx = out:receive()\nrecv(rctx, produce(ctx)) out:close()\n\
         print(out:have_errors())",
        out.display()
    );
    assert_eq!(over("write", &[&good], &text), "false\n");
    let mut reader = gannet_capture::Reader::open(&out).unwrap();
    let batch = reader.next_batch().unwrap().unwrap();
    let packet = batch.get(0).unwrap();
    assert_eq!((packet.data, packet.time), (&good[..], Time::from_nanos(1_000_123_456_789)));
    fs::remove_file(Path::new(&out)).unwrap();
}

/// A folder of one test, gone with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("gannet-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap_or_default();
    }
}

/// The echo server, ended by `stop` with what it counted.
struct Echo {
    server: Child,
    port: String,
}

impl Echo {
    fn start(options: &[&str]) -> Self {
        let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let address = format!("127.0.0.1:{port}");
        let mut command = gannet();
        command.args(["replay", "--serve", &address, "--json"]).args(options);
        let server =
            command.stdout(Stdio::piped()).stderr(Stdio::null()).stdin(Stdio::null()).spawn();
        let begun = Instant::now();
        while TcpStream::connect(&address).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(10), "the echo server does not start");
            std::thread::sleep(Duration::from_millis(10));
        }
        Self { server: server.unwrap(), port: port.to_string() }
    }

    /// Queries that it saw, and messages that are none.
    fn stop(self) -> (u64, u64) {
        std::thread::sleep(Duration::from_millis(100));
        let id = rustix::process::Pid::from_child(&self.server);
        rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
        let said = String::from_utf8(self.server.wait_with_output().unwrap().stdout).unwrap();
        let count = |name: &str| {
            let at = said.find(&format!("\"{name}\":")).unwrap() + name.len() + 3;
            let digits: String = said[at..].chars().take_while(char::is_ascii_digit).collect();
            digits.parse().unwrap()
        };
        (count("queries"), count("other"))
    }
}

/// What a script says that may print any bytes.
fn lossy(command: &mut Command) -> Run {
    let output = command.stdin(Stdio::null()).output().unwrap();
    Run {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Queries over UDP, from many clients.
fn queries(count: usize) -> Vec<Vec<u8>> {
    let frame = |index: usize| {
        let mut frame = ethernet(&[&[8, 0], &udp4(QUERY)]);
        // Its source.
        frame[29] = (index % 200) as u8;
        frame
    };
    (0..count).map(frame).collect()
}

fn tcp4(payload: &[u8]) -> Vec<u8> {
    let len = 40 + payload.len() as u8;
    let ip = [0x45, 0, 0, len, 0, 1, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    let tcp = [4, 0, 0, 53, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x18, 16, 0, 0, 0, 0, 0];
    [&ip[..], &tcp, payload].concat()
}

#[test]
fn dnsjits_examples_run() {
    let Some(source) = source("DNSJIT_SOURCE", "dnsjit", "src/test/test1.sh") else { return };
    let folder = Folder::new("dnsjit-examples");
    let capture = source.join("src/test/dns.pcap");
    let capture = capture.to_str().unwrap();
    let echo = Echo::start(&[]);
    let (host, port) = ("127.0.0.1", echo.port.as_str());
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
    if is_installed("mdb_stat") || Path::new("/usr/lib/x86_64-linux-gnu/liblmdb.so.0").exists() {
        let echo = Echo::start(&[]);
        let script = source.join("examples/respdiff.lua");
        let lmdb = folder.path("lmdb");
        let run = Run::of(
            gannet()
                .arg("run")
                .arg(script)
                .args([capture, host, &echo.port, &lmdb, "original", "received"]),
        );
        assert_eq!(run.code, 0, "{}", run.stderr);
        assert!(Path::new(&lmdb).join("data.mdb").is_file());
        echo.stop();
    } else {
        eprintln!("skipped: respdiff.lua, as LMDB is not installed");
    }
    let tls = Echo::start(&["--tls"]);
    let script = source.join("examples/replay.lua");
    let run = lossy(gannet().arg("run").arg(script).args(["-T", "-R", capture, host, &tls.port]));
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(tls.stop().0 > 0);
}

fn is_installed(program: &str) -> bool {
    Command::new(program).arg("-V").output().is_ok()
}

#[test]
fn a_live_capture_sees_what_goes_over_the_loopback() {
    let Some(source) = source("DNSJIT_SOURCE", "dnsjit", "src/test/test1.sh") else { return };
    let mut command = gannet();
    command.arg("run").arg(source.join("examples/capture.lua")).arg("lo");
    let folder = Folder::new("dnsjit-capture");
    let said = folder.path("said");
    let output = fs::File::create(&said).unwrap();
    let mut child =
        command.stdout(output).stderr(Stdio::piped()).stdin(Stdio::null()).spawn().unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let begun = Instant::now();
    let mut seen = false;
    let mut ended = None;
    while !seen && ended.is_none() && begun.elapsed() < Duration::from_secs(10) {
        // What the script prints comes in pieces of some kilobytes.
        for _ in 0..200 {
            socket.send_to(QUERY, "127.0.0.1:9").unwrap_or_default();
        }
        std::thread::sleep(Duration::from_millis(50));
        seen = String::from_utf8_lossy(&fs::read(&said).unwrap()).contains(" -> 127.0.0.1:9");
        ended = child.try_wait().unwrap();
    }
    child.kill().unwrap_or_default();
    let output = child.wait_with_output().unwrap();
    let words = String::from_utf8_lossy(&output.stderr);
    if ended.is_some() && words.contains("packet socket") {
        eprintln!("skipped: live captures need a right that this user has not");
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
    let said = run("filter-dnsq", &["-r", input, "-w", &filtered]);
    assert!(said.stderr.contains("50 out of 50 packets matched"), "{}", said.stderr);
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
    let said = run("generate-const-qps", &["-h"]);
    assert!(said.stdout.contains("--"), "{}", said.stdout);
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
        let echo = Echo::start(&[]);
        let mut command = gannet();
        command.args(["run", "/usr/bin/drool", "replay", "--csv"]).args(options);
        let run = Run::of(command.arg(&capture.0).args(["127.0.0.1", &echo.port]));
        assert_eq!(run.code, 0, "{options:?}: {}", run.stderr);
        let row = run.stdout.lines().last().unwrap();
        let cells: Vec<&str> = row.split(',').collect();
        assert_eq!((cells[3], cells[8]), ("3001", "0"), "{options:?}: {}", run.stdout);
        assert_eq!(echo.stop(), (expected, 0), "{options:?}");
    }
}

#[test]
fn lengths_are_sent_once_and_answers_not_at_all() {
    let framed = |message: &[u8]| [&[0, message.len() as u8], message].concat();
    let mut answer = QUERY.to_vec();
    answer[2] |= 0x80;
    let frames = [
        ethernet(&[&[8, 0], &tcp4(&framed(QUERY))]),
        ethernet(&[&[8, 0], &tcp4(&framed(&answer))]),
        ethernet(&[&[8, 0], &udp4(QUERY)]),
    ];
    let frames: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
    let echo = Echo::start(&[]);
    // No word of includes_dnslen, as drool has none.
    let text = format!(
        "local dns = require('dnsjit.core.object.dns').new()\n\
         local sent = 0\n\
         for _, what in ipairs({{ 'tcpcli', 'udpcli' }}) do\n\
         local input = require('dnsjit.input.mmpcap').new() input:open(arg[2])\n\
         local layer = require('dnsjit.filter.layer').new() layer:producer(input)\n\
         local produce, ctx = layer:produce()\n\
         local client = require('dnsjit.output.' .. what).new()\n\
         assert(client:connect('127.0.0.1', '{0}') == 0)\n\
         local send, cctx = client:receive() local receive = client:produce()\n\
         while true do\n\
         local o = produce(ctx) if o == nil then break end\n\
         dns.obj_prev = o\n\
         if dns:parse_header() == 0 and dns.qr == 0 then\n\
         send(cctx, o) sent = sent + 1\n\
         local got = receive(cctx)\n\
         assert(got ~= nil and got:cast().len == {1})\n\
         dns.obj_prev = got assert(dns:parse_header() == 0 and dns.qr == 1 and dns.id == 4660)\n\
         end end end print(sent)",
        echo.port,
        QUERY.len()
    );
    assert_eq!(over("lengths", &frames, &text), "4\n");
    assert_eq!(echo.stop(), (4, 0));
}

#[test]
fn extension_headers_leave_the_payload() {
    let head = |next: u8, len: u8| {
        let mut head = vec![0x60, 0, 0, 0, 0, len, next, 64];
        head.extend_from_slice(&[1; 32]);
        head
    };
    let len = QUERY.len() as u8;
    let mut options = vec![17, 1];
    options.extend_from_slice(&[0; 14]);
    let udp = [&[4, 0, 0, 53, 0, 8 + len, 0, 0][..], QUERY].concat();
    let over_udp = ethernet(&[&[0x86, 0xdd], &head(60, 24 + len), &options, &udp]);
    options[0] = 6;
    let tcp = [&tcp4(&[])[20..], QUERY].concat();
    let over_tcp = ethernet(&[&[0x86, 0xdd], &head(60, 36 + len), &options, &tcp, &[0; 3]]);
    let text = "while true do local o = produce(ctx) if o == nil then break end\n\
                local p, ip = o:cast(), o:cast_to(object.IP6)\n\
                print(o.obj_prev:type(), tonumber(p.len), tonumber(p.padding), ip.hlen) end";
    assert_eq!(
        over("extensions", &[&over_udp, &over_tcp], text),
        format!("udp\t{len}\t0\t16\ntcp\t{len}\t3\t16\n")
    );
}

#[test]
fn who_is_late_does_not_wait() {
    let good = ethernet(&[&[8, 0], &udp4(QUERY)]);
    let frames = vec![&good[..]; 11];
    // Ten gaps of 20 ms; the first packet is held for 150 ms, and the others make up for it.
    let text = "local timing = require('dnsjit.filter.timing').new()\ntiming:keep()\n\
                timing:producer(layer)\nlocal p, c = timing:produce()\n\
                local clock = require('dnsjit.lib.clock')\nlocal ffi = require('ffi')\n\
                local s, n = clock:monotonic()\np(c)\n\
                local nap = ffi.new('gannet_time_t', 0, 150000000) ffi.C.nanosleep(nap, nil)\n\
                while p(c) ~= nil do end\nlocal t, m = clock:monotonic()\n\
                local took = (t - s) + (m - n) / 1e9\n\
                print(took >= 0.2 and took < 0.34 or took)";
    assert_eq!(over("late", &frames, text), "true\n");
}

#[test]
fn blocking_again_is_blocking() {
    let good = ethernet(&[&[8, 0], &udp4(QUERY)]);
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let text = format!(
        "local client = require('dnsjit.output.udpcli').new()\n\
         client:timeout(0, 200000000) assert(client:connect('127.0.0.1', {}) == 0)\n\
         local receive, ctx = client:produce()\n\
         local clock = require('dnsjit.lib.clock')\n\
         local function took() local s, n = clock:monotonic() receive(ctx)\n\
         local t, m = clock:monotonic() return (t - s) + (m - n) / 1e9 end\n\
         client:nonblocking(true) print(client:nonblocking(), took() < 0.15)\n\
         client:nonblocking(false) print(client:nonblocking(), took() >= 0.19, client:timeouts())",
        silent.local_addr().unwrap().port()
    );
    assert_eq!(over("blocking", &[&good], &text), "true\ttrue\nfalse\ttrue\t1\n");
}

#[test]
fn threads_get_every_object() {
    let good = ethernet(&[&[8, 0], &udp4(QUERY)]);
    let text = "local channel = require('dnsjit.core.channel').new(4)\n\
                local back = require('dnsjit.core.channel').new(4)\n\
                local thread = require('dnsjit.core.thread').new()\n\
                assert(thread:start(function(own)\n\
                local channel, back, word, number = own:pop(4)\n\
                assert(word == 'word' and number == 7)\n\
                local ffi, count = require('ffi'), 0\n\
                require('dnsjit.core.objects')\n\
                while true do local o = channel:get() if o == nil then break end\n\
                o = ffi.cast('core_object_t *', o) assert(o:cast().len == 22)\n\
                o:free() count = count + 1 end\n\
                assert(own:pop() == nil)\n\
                back:put(ffi.cast('void *', count)) end) == 0)\n\
                thread:push(channel, back, 'word', 7)\n\
                local o = produce(ctx)\n\
                for i = 1, 20000 do channel:put(o:copy()) end channel:put(nil)\n\
                assert(thread:stop() == 0)\n\
                print(tonumber(require('ffi').cast('intptr_t', back:get())), back:get())\n\
                local broken = require('dnsjit.core.thread').new()\n\
                broken:start(function(own) own:pop() end)\n\
                local other = require('dnsjit.core.channel').new(4) broken:push(other)\n\
                assert(broken:stop() == 0)\n\
                print(pcall(function() for i = 1, 5 do other:put(o) end end))";
    let told = over("threads", &[&good], text);
    assert!(told.starts_with("20000\tnil\nfalse\t"), "{told}");
    assert!(told.ends_with("no other thread empties it\n"), "{told}");
}

#[test]
fn respdiff_has_times() {
    if !Path::new("/usr/lib/x86_64-linux-gnu/liblmdb.so.0").exists() {
        eprintln!("skipped: LMDB is not installed");
        return;
    }
    let folder = Folder::new("respdiff");
    let lmdb = folder.path("lmdb");
    let good = ethernet(&[&[8, 0], &udp4(QUERY)]);
    let text = format!(
        "local ffi = require('ffi')\n\
         local out = require('dnsjit.output.respdiff').new('{lmdb}', 'a', 'b')\n\
         local receive, rctx = out:receive()\n\
         local function payload(text, prev) local p = ffi.new('core_object_payload_t')\n\
         p.obj_type, p.payload, p.len = 40, ffi.cast('const uint8_t *', text), #text\n\
         if prev then p.obj_prev = ffi.cast('core_object_t *', prev) end return p end\n\
         local got = payload('GOT') local had = payload('HAD', got)\n\
         local asked = payload('ASKED', had)\n\
         receive(rctx, ffi.cast('core_object_t *', asked))\n\
         ffi.C.nanosleep(ffi.new('gannet_time_t', 0, 30000000), nil)\n\
         receive(rctx, ffi.cast('core_object_t *', asked))\n\
         local alone = payload('HAD') local lost = payload('ASKED', alone)\n\
         receive(rctx, ffi.cast('core_object_t *', lost))\n\
         out:commit(1, 2) print('done')"
    );
    assert_eq!(over("respdiff", &[&good], &text), "done\n");
    let data = fs::read(Path::new(&lmdb).join("data.mdb")).unwrap();
    let holds = |bytes: &[u8]| data.windows(bytes.len()).any(|w| w == bytes);
    assert!(holds(b"2018-05-21") && holds(b"ASKED"));
    assert!(holds(b"\0\0\0\0\x03\0HAD\0\0\0\0\x03\0GOT"), "the first took no time");
    let times = (30..200_u32).map(|t| [&t.to_le_bytes()[..], b"\x03\0GOT"].concat());
    assert!(times.into_iter().any(|answer| holds(&answer)), "the second took 30 ms");
    assert!(holds(b"\x03\0HAD\xff\xff\xff\xff\0\0"), "the third got none");
}
