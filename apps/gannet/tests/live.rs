//! Live captures on links that each test creates in a network namespace of its own. Without root, or where the system has
//! no namespaces, the tests report that they are skipped.
#![cfg(target_os = "linux")]
// Helpers of tests panic where a test fails.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;
use std::time::Instant;

use crate::support::Scratch;
use crate::support::gannet;
use rustix::process::Pid;
use rustix::process::Signal;
use rustix::process::kill_process;

/// Two connected interfaces (veth) in a network namespace, which is removed when this is dropped.
struct Link {
    namespace: String,
}

static LINKS: AtomicU32 = AtomicU32::new(0);

impl Link {
    /// Creates a link; `None`, which is reported, if the system does not permit it.
    fn new() -> Option<Self> {
        let number = LINKS.fetch_add(1, Ordering::Relaxed);
        let namespace = format!("gannet-{}-{number}", std::process::id());
        if !ip(&["netns", "add", &namespace]) {
            eprintln!("skipped: network namespaces cannot be created here (root is needed)");
            return None;
        }
        let link = Self { namespace };
        let made = link.sh(
            "sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1; \
             ip link add va type veth peer name vb && ip link set va mtu 65535 && \
             ip link set vb mtu 65535 && ip link set lo up && \
             ip link set va arp off up && ip link set vb arp off up",
        );
        assert!(made, "the link cannot be created");
        Some(link)
    }

    fn sh(&self, script: &str) -> bool {
        let status = Command::new("ip")
            .args(["netns", "exec", &self.namespace, "sh", "-c", script])
            .status();
        status.is_ok_and(|status| status.success())
    }

    /// The command, run in the namespace.
    fn gannet(&self) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace]).arg(gannet().get_program());
        command
    }

    /// Sends the frames of a capture; returns their number.
    fn send(&self, capture: &Path, more: &[&str]) -> u64 {
        let sent =
            self.gannet().args(["bench", "send", "va"]).arg(capture).args(more).output().unwrap();
        assert!(sent.status.success(), "{}", String::from_utf8_lossy(&sent.stderr));
        let words = String::from_utf8(sent.stderr).unwrap();
        words.split_whitespace().nth(2).unwrap().parse().unwrap()
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        ip(&["netns", "del", &self.namespace]);
    }
}

fn ip(args: &[&str]) -> bool {
    Command::new("ip").args(args).stderr(Stdio::null()).status().is_ok_and(|s| s.success())
}

/// A running live capture, and the file of its standard error.
struct Live {
    child: Child,
    words: PathBuf,
}

impl Live {
    fn start(link: &Link, s: &Scratch, args: &[&str]) -> Self {
        let mut command = link.gannet();
        command.args(["analyze", "-i", "vb", "-o"]).arg(s.path("live")).args(args).arg("--stats");
        Self::spawn(s, &mut command)
    }

    fn spawn(s: &Scratch, command: &mut Command) -> Self {
        let words = s.path("words");
        let child = command.stderr(fs::File::create(&words).unwrap()).spawn().unwrap();
        let live = Self { child, words };
        wait(|| live.words().contains("capturing on"));
        live
    }

    fn words(&self) -> String {
        fs::read_to_string(&self.words).unwrap()
    }

    fn signal(&self, signal: Signal) {
        // `ip netns exec` replaces itself with the command, so the process id is that of the command.
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Ends the capture with SIGTERM; returns its standard error.
    fn end(mut self) -> String {
        self.signal(Signal::TERM);
        let mut code = None;
        wait(|| {
            code = self.child.try_wait().unwrap();
            code.is_some()
        });
        assert_eq!(code.unwrap().code(), Some(0), "{}", self.words());
        self.words()
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        // A test that fails must not leave the process running.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn wait(mut until: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !until() {
        assert!(begun.elapsed() < Duration::from_secs(180), "nothing happened");
        thread::sleep(Duration::from_millis(10));
    }
}

/// The first number of a line of the final table.
fn count(words: &str, name: &str) -> u64 {
    let line =
        words.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{words}"));
    let digits: String =
        line.split_whitespace().nth(1).unwrap().chars().filter(char::is_ascii_digit).collect();
    digits.parse().unwrap()
}

/// The sorted rows of each log without columns that depend on time.
fn rows(folder: &Path) -> BTreeMap<String, Vec<String>> {
    const TIME_DEPENDENT: [&str; 17] = [
        "ts",
        "uid",
        "duration",
        "fuid",
        "uids",
        "rtt",
        "conn_uids",
        "orig_fuids",
        "resp_fuids",
        "cert_chain_fuids",
        "lease_time",
        "tunnel_parents",
        "id",
        "fuids",
        "analyzer_id",
        "request_ts",
        "up_since",
    ];
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        let log = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if ["stats", "capture_loss"].contains(&log.as_str())
            || path.extension().is_none_or(|e| e != "log")
        {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let fields = text.lines().find_map(|l| l.strip_prefix("#fields\t")).unwrap();
        let fields: Vec<&str> = fields.split('\t').collect();
        let row = |line: &str| {
            let cells =
                line.split('\t').zip(&fields).filter(|(_, name)| !TIME_DEPENDENT.contains(name));
            cells.map(|(cell, _)| cell).collect::<Vec<_>>().join("\t")
        };
        // Rows about the sensor itself are only in logs of live captures.
        let is_row = |line: &&str| !line.starts_with('#') && !line.contains("CaptureLoss::");
        let mut rows: Vec<String> = text.lines().filter(is_row).map(row).collect();
        rows.sort();
        if !rows.is_empty() {
            all.insert(log, rows);
        }
    }
    all
}

fn analyzed(s: &Scratch, capture: &Path, args: &[&str]) -> BTreeMap<String, Vec<String>> {
    let out = s.path("offline");
    let _ = fs::remove_dir_all(&out);
    let done =
        gannet().args(["analyze", "-q", "-o"]).arg(&out).args(args).arg(capture).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    rows(&out)
}

#[test]
fn a_live_capture_has_the_rows_of_its_file() {
    let Some(link) = Link::new() else { return };
    let s = Scratch::new("live-rows");
    let sample = s.path("sample.pcap");
    fs::write(&sample, support::sample()).unwrap();
    for args in
        [&["-t", "1"][..], &["-t", "2"], &["-t", "2", "--sockets", "2"], &["-t", "1", "-f", "tcp"]]
    {
        let _ = fs::remove_dir_all(s.path("live"));
        let live = Live::start(&link, &s, args);
        link.send(&sample, &[]);
        let words = live.end();
        let filter: Vec<&str> = args.iter().skip_while(|a| **a != "-f").copied().collect();
        let offline = analyzed(&s, &sample, &filter);
        assert!(offline.len() > 3, "{offline:?}");
        assert_eq!(rows(&s.path("live")), offline, "{args:?}\n{words}");
        assert_eq!(count(&words, "dropped"), 0);
    }
}

#[test]
fn scripts_handle_live_traffic_and_time_advances_without_packets() {
    let Some(link) = Link::new() else { return };
    let s = Scratch::new("live-scripts");
    let sample = s.path("sample.pcap");
    fs::write(&sample, support::sample()).unwrap();
    let script = s.path("count.zeek");
    let code = r#"
        type connection: record { uid: string; };
        global new_connection: event(c: connection);
        global reading_live_traffic: function(): bool;
        global connections = 0;
        global began: time;
        global later: event();
        event later() { print "later", network_time() - began >= 200msec; }
        event new_connection(c: connection) { ++connections; }
        event zeek_init()
            {
            began = network_time();
            print "live", reading_live_traffic();
            schedule 200msec { later() };
            }
        event zeek_done() { print connections; }
        "#;
    fs::write(&script, code).unwrap();
    let printed = s.path("printed");
    let mut command = link.gannet();
    command.args(["zeek", "-b", "-C", "-i", "vb"]).arg(&script).env_remove("ZEEKPATH");
    let live = Live::spawn(&s, command.stdout(fs::File::create(&printed).unwrap()));
    wait(|| fs::read_to_string(&printed).unwrap().contains("later"));
    link.send(&sample, &[]);
    let words = live.end();
    let offline =
        gannet().args(["zeek", "-b", "-C", "-r"]).args([&sample, &script]).output().unwrap();
    let last = |text: &str| text.lines().last().unwrap_or_default().to_owned();
    let count = last(&String::from_utf8(offline.stdout).unwrap());
    assert!(count.parse::<u32>().unwrap() > 3, "{count}");
    let lines = format!("live, T\nlater, T\n{count}\n");
    assert_eq!(fs::read_to_string(&printed).unwrap(), lines, "{words}");
    assert!(words.contains("0 (0.00 %) dropped"), "{words}");
}

/// Sends captures of the conformance corpus over a link: the rows equal those of a file that another process captures on
/// the link, with any number of threads and sockets. Times differ by microseconds. `GANNET_LIVE_CAPTURES` sets the number
/// of captures.
#[test]
fn a_live_capture_has_the_rows_of_a_file_captured_on_the_same_link() {
    let shared =
        || Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(3).unwrap().join("shared");
    let shared = std::env::var_os("GANNET_SHARED").map_or_else(shared, PathBuf::from);
    let mut all = Vec::new();
    captures(&shared.join("conformance/captures"), &mut all);
    all.sort();
    if all.is_empty() {
        eprintln!("skipped: there are no captures in {}", shared.display());
        return;
    }
    let Some(link) = Link::new() else { return };
    let s = Scratch::new("live-corpus");
    let requested = std::env::var("GANNET_LIVE_CAPTURES").ok().and_then(|n| n.parse().ok());
    let requested: usize = requested.unwrap_or(8);
    let modes = [
        &["-t", "1"][..],
        &["-t", "2"],
        &["-t", "2", "--sockets", "2"],
        &["-t", "1", "--sockets", "2"],
    ];
    let (mut sent, mut unfit, mut packets) = (0, 0, 0);
    // Captures at equal distances in the corpus first, then those between them, until enough were sent.
    let step = (all.len() / requested.max(1)).max(1);
    let order = (0..step).flat_map(|from| (from..all.len()).step_by(step));
    for (capture, mode) in order.map(|at| &all[at]).zip(modes.iter().cycle()) {
        if sent == requested {
            break;
        }
        for name in ["live", "offline"] {
            let _ = fs::remove_dir_all(s.path(name));
        }
        let words = s.path("capture-words");
        let mut recorder = link
            .gannet()
            .args(["capture", "-i", "vb", "--ring-size", "32M", "-w"])
            .arg(s.path("sent.pcapng"))
            .stderr(fs::File::create(&words).unwrap())
            .spawn()
            .unwrap();
        let recorder_words = || fs::read_to_string(&words).unwrap();
        wait(|| recorder_words().contains("capturing on"));
        let live = Live::start(&link, &s, &[*mode, &["--ring-size", "32M"]].concat());
        let can_be_sent =
            link.gannet().args(["bench", "send", "va"]).arg(capture).output().unwrap();
        let words = live.end();
        kill_process(Pid::from_child(&recorder), Signal::INT).unwrap();
        assert!(recorder.wait().unwrap().success());
        // Captures of other link types or with truncated packets cannot be sent.
        if !can_be_sent.status.success() {
            unfit += 1;
            continue;
        }
        let about = capture.display();
        assert_eq!(count(&words, "dropped"), 0, "{about}: {words}");
        let mut command = gannet();
        command.args(["analyze", "-q", "-o"]).arg(s.path("offline"));
        let done = command.arg(s.path("sent.pcapng")).output().unwrap();
        let complaint = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.success(), "{about}: {complaint}");
        let (live, offline) = (rows(&s.path("live")), rows(&s.path("offline")));
        assert_eq!(live, offline, "{about} {mode:?}\n{words}");
        packets += count(&words, "read");
        sent += 1;
    }
    eprintln!("{sent} captures, {packets} packets: equal rows; {unfit} others cannot be sent");
    assert_eq!(sent, requested.min(all.len() - unfit));
}

/// Adds the captures in a folder and its subfolders to `all`.
fn captures(folder: &Path, all: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_small = entry.metadata().is_ok_and(|about| about.len() < 4 << 20);
        if path.is_dir() {
            captures(&path, all);
        } else if is_small {
            all.push(path);
        }
    }
}

#[test]
fn all_sent_packets_are_read_or_dropped() {
    let Some(link) = Link::new() else { return };
    let s = Scratch::new("live-ledger");
    let flood = s.path("flood.pcap");
    let made =
        gannet().args(["synth", "syn-flood"]).arg(&flood).args(["-n", "20000"]).output().unwrap();
    assert!(made.status.success());
    let mut dropped = 0;
    for round in 0..5 {
        let _ = fs::remove_dir_all(s.path("live"));
        let live = Live::start(&link, &s, &["-t", "1", "--ring-size", "256K", "--logs", "conn"]);
        let sent = link.send(&flood, &[]);
        let words = live.end();
        let drops = count(&words, "dropped");
        assert_eq!(count(&words, "read") + drops, sent, "{round}: {words}");
        dropped += drops;
    }
    eprintln!("{dropped} packets dropped at a ring of 256 KiB");
}

#[test]
fn packets_in_the_ring_are_read_before_the_end() {
    let Some(link) = Link::new() else { return };
    let s = Scratch::new("live-drain");
    let sample = s.file("sample.pcap", &support::sample());
    let live = Live::start(&link, &s, &["-t", "1", "--ring-size", "64M"]);
    let sent = link.send(&sample, &["--frames", "100000"]);
    // The signal arrives while most packets are still in the ring.
    let words = live.end();
    assert_eq!(count(&words, "read") + count(&words, "dropped"), sent, "{words}");
    assert_eq!(count(&words, "read"), count(&words, "packets"), "{words}");
}

#[test]
fn rows_are_written_within_a_second_and_time_advances_without_packets() {
    let Some(link) = Link::new() else { return };
    let s = Scratch::new("live-soon");
    let sample = s.file("sample.pcap", &support::sample());
    let live = Live::start(&link, &s, &["-t", "1"]);
    link.send(&sample, &[]);
    let begun = Instant::now();
    wait(|| s.path("live/dns.log").exists());
    assert!(begun.elapsed() < Duration::from_secs(1));
    // A refused connection ends after some seconds, without a further packet.
    wait(|| s.path("live/conn.log").exists());
    live.end();
}

#[test]
fn signals_rotate_and_reopen_and_files_of_a_killed_run_are_completed() {
    let Some(link) = Link::new() else { return };
    let s = Scratch::new("live-signals");
    let sample = s.file("sample.pcap", &support::sample());
    let args = ["-t", "1", "--rotate", "1d", "--rotate-compress", "zstd"];
    let mut live = Live::start(&link, &s, &args);
    link.send(&sample, &[]);
    wait(|| s.path("live/dns.log").exists());
    live.signal(Signal::USR1);
    let rotated = |log: &str, end: &str| {
        let is = |name: &&String| name.starts_with(&format!("{log}.2")) && name.ends_with(end);
        s.list("live").iter().filter(is).count()
    };
    wait(|| rotated("dns", ".log.zst") == 1);
    assert!(!s.path("live/dns.log").exists());
    link.send(&sample, &[]);
    wait(|| s.path("live/dns.log").exists());
    fs::rename(s.path("live/dns.log"), s.path("live/moved")).unwrap();
    live.signal(Signal::HUP);
    wait(|| live.words().contains("reopened"));
    link.send(&sample, &[]);
    wait(|| s.path("live/dns.log").exists());
    live.child.kill().unwrap();
    live.child.wait().unwrap();
    // The next run completes the files of the killed one.
    let live = Live::start(&link, &s, &args);
    assert!(live.words().contains("of an earlier run"));
    wait(|| rotated("dns", ".log.zst") == 2);
    live.end();
    assert_eq!(
        s.list("live").iter().filter(|n| n.ends_with(".log")).count(),
        0,
        "{:?}",
        s.list("live")
    );
}

/// Needs no privileges: the error is found before an interface is opened.
#[test]
fn a_missing_user_or_program_is_refused_before_logs_of_an_earlier_run_are_renamed() {
    let s = Scratch::new("live-refused");
    let text = s.file("text", b"no program");
    let rows = b"#separator \\x09\n#path\tconn\n#open\t2026-11-23-17-00-00\n";
    s.file("live/conn.log", rows);
    for (option, value, words) in [
        ("--user", "no-such-user", "no user is named 'no-such-user'"),
        ("--user", "1:x", "no user is named '1:x'"),
        ("--postprocessor", "no-such-program", ": no such program in PATH"),
        ("--postprocessor", "/nonexistent/program", ": No such file or directory"),
        ("--postprocessor", text.to_str().unwrap(), "/text: not an executable file"),
    ] {
        let mut command = gannet();
        command.args(["analyze", "-i", "lo", "--rotate", "1d", option, value, "-o"]);
        let run = support::Run::of(command.arg(s.path("live")));
        assert_eq!(run.code, 2, "{}", run.stderr);
        assert!(run.stderr.contains(words), "{}", run.stderr);
        assert_eq!(s.list("live"), ["conn.log"], "{option} {value}");
    }
}

#[test]
fn a_full_disk_ends_one_log_and_not_the_capture() {
    let Some(link) = Link::new() else { return };
    let s = Scratch::new("live-full");
    let disk = s.path("disk");
    fs::create_dir(&disk).unwrap();
    let mounted =
        Command::new("mount").args(["-t", "tmpfs", "-o", "size=64k", "none"]).arg(&disk).status();
    if !mounted.is_ok_and(|status| status.success()) {
        eprintln!("skipped: no tmpfs can be mounted here");
        return;
    }
    let sample = s.file("sample.pcap", &support::sample());
    let out = disk.join("logs");
    fs::create_dir(&out).unwrap();
    std::os::unix::fs::symlink(&out, s.path("live")).unwrap();
    let live = Live::start(&link, &s, &["-t", "1"]);
    link.send(&sample, &[]);
    wait(|| out.join("dns.log").exists());
    fs::write(disk.join("ballast"), vec![0; 60 << 10]).unwrap_or_default();
    link.send(&sample, &["--frames", "20000"]);
    wait(|| live.words().contains("rows are discarded and counted"));
    fs::remove_file(disk.join("ballast")).unwrap();
    thread::sleep(Duration::from_millis(1200));
    link.send(&sample, &[]);
    wait(|| live.words().contains("writing resumed"));
    let words = {
        live.signal(Signal::TERM);
        let mut live = live;
        let status = live.child.wait().unwrap();
        assert_eq!(status.code(), Some(1), "rows were lost: {}", live.words());
        live.words()
    };
    for entry in fs::read_dir(&out).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        assert!(text.is_empty() || text.ends_with('\n'), "no row is written in part");
    }
    let _ = Command::new("umount").arg(&disk).status();
    assert!(words.contains("could not be written"), "{words}");
}

#[test]
fn capture_resumes_after_an_interface_was_down() {
    let Some(link) = Link::new() else { return };
    let s = Scratch::new("live-down");
    let sample = s.file("sample.pcap", &support::sample());
    let live = Live::start(&link, &s, &["-t", "1"]);
    assert!(link.sh("ip link set vb down"));
    wait(|| live.words().contains("vb is down"));
    assert!(link.sh("ip link set vb up"));
    wait(|| live.words().contains("vb is up again"));
    link.send(&sample, &[]);
    let words = live.end();
    assert_eq!(count(&words, "read"), 68, "{words}");
}

#[test]
fn capture_resumes_on_an_interface_that_is_created_again() {
    let again = "ip link del va && ip link add va type veth peer name vb && ip link set va mtu 65535 && \
                 ip link set vb mtu 65535 && ip link set va arp off up && ip link set vb arp off up";
    for sockets in ["1", "2"] {
        let Some(link) = Link::new() else { return };
        let s = Scratch::new("live-again");
        let sample = s.file("sample.pcap", &support::sample());
        let live = Live::start(&link, &s, &["-t", "1", "--sandbox", "off", "--sockets", sockets]);
        assert!(link.sh(again));
        wait(|| live.words().contains("vb was created again; capturing resumed"));
        link.send(&sample, &[]);
        let words = live.end();
        assert_eq!(count(&words, "read"), 68, "{sockets}: {words}");
    }
    // Without capabilities a ring cannot be opened.
    let Some(link) = Link::new() else { return };
    let s = Scratch::new("live-again");
    let live = Live::start(&link, &s, &["-t", "1"]);
    assert!(link.sh(again));
    wait(|| live.words().contains("vb was created again, but capturing did not resume"));
    assert!(!live.end().contains(" again\n"));
}

#[test]
fn messages_are_json_objects_for_programs() {
    let Some(link) = Link::new() else { return };
    let s = Scratch::new("live-messages");
    let live = Live::start(&link, &s, &["-t", "1", "--log-format", "json"]);
    live.signal(Signal::HUP);
    wait(|| live.words().contains("reopened"));
    let words = live.end();
    let lines: Vec<serde_json::Value> =
        words.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let capturing = lines.iter().find(|line| line["message"] == "capturing on vb").unwrap();
    assert_eq!(capturing["level"], "INFO");
    assert_eq!(capturing["interfaces"], "vb");
    assert!(capturing["timestamp"].as_str().unwrap().ends_with('Z'));
}

#[test]
fn rows_that_no_target_takes_are_reported_without_a_table_too() {
    let Some(link) = Link::new() else { return };
    let sample = support::sample();
    for args in [&["--log-format", "json"][..], &["-q"]] {
        let s = Scratch::new("live-not-sent");
        let sample = s.file("sample.pcap", &sample);
        let closed = format!("unix:{}", s.path("closed.sock").display());
        let mut command = link.gannet();
        command.args(["analyze", "-i", "vb", "-t", "1", "-o"]).arg(s.path("live"));
        command
            .args(args)
            .args(["--to", &closed])
            .stderr(fs::File::create(s.path("words")).unwrap());
        let live = Live { child: command.spawn().unwrap(), words: s.path("words") };
        // With `-q` no message says that the capture has begun.
        wait(|| {
            link.send(&sample, &[]);
            s.path("live/dns.log").exists()
        });
        let words = live.end();
        let count = words
            .lines()
            .filter(|line| line.contains("rows were dropped without being sent"))
            .count();
        assert_eq!(count, 1, "{words}");
    }
}

#[test]
fn metrics_are_served() {
    let Some(link) = Link::new() else { return };
    let s = Scratch::new("live-metrics");
    let sample = s.file("sample.pcap", &support::sample());
    let live = Live::start(&link, &s, &["-t", "1", "--metrics", "127.0.0.1:9911"]);
    link.send(&sample, &[]);
    let ask =
        "exec 3<>/dev/tcp/127.0.0.1/9911; printf 'GET /metrics HTTP/1.1\\r\\n\\r\\n' >&3; cat <&3";
    let metrics = || {
        let mut bash = link.gannet();
        bash = Command::new(bash.get_program());
        bash.args(["netns", "exec", &link.namespace, "bash", "-c", ask]);
        String::from_utf8(bash.output().unwrap().stdout).unwrap()
    };
    wait(|| metrics().contains("\nzeek_net_received_packets_total{endpoint=\"gannet\"} 68\n"));
    let text = metrics();
    let text = text.split_once("\r\n\r\n").unwrap().1;
    match Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
    {
        Ok(mut promtool) => {
            use std::io::Write as _;
            promtool.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
            let checked = promtool.wait_with_output().unwrap();
            assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
        }
        Err(_) => eprintln!("not checked: promtool is not installed"),
    }
    live.end();
}

#[test]
fn gannet_capture_writes_the_packets_of_an_interface() {
    let Some(link) = Link::new() else { return };
    let s = Scratch::new("live-capture");
    let sample = s.file("sample.pcap", &support::sample());
    let capture = |name: &str, more: &[&str]| {
        let words = s.path("words");
        let mut child = link
            .gannet()
            .args(["capture", "-i", "vb", "-w"])
            .arg(s.path(name))
            .args(more)
            .stderr(fs::File::create(&words).unwrap())
            .spawn()
            .unwrap();
        wait(|| fs::read_to_string(&words).unwrap().contains("capturing on"));
        link.send(&sample, &[]);
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        assert!(child.wait().unwrap().success());
    };
    capture("all.pcapng.zst", &[]);
    let offline = analyzed(&s, &sample, &[]);
    assert_eq!(analyzed(&s, &s.path("all.pcapng.zst"), &[]), offline);
    fs::create_dir(s.path("ring")).unwrap();
    capture("ring/x.pcap", &["--file-size", "2K", "--files", "2"]);
    assert_eq!(s.list("ring").len(), 2, "{:?}", s.list("ring"));
}

#[test]
fn a_capture_drops_its_privileges() {
    let Some(link) = Link::new() else { return };
    let s = Scratch::new("live-sandbox");
    let sample = s.file("sample.pcap", &support::sample());
    let live = Live::start(&link, &s, &["-t", "1", "--user", "65534:65534", "--rotate", "1d"]);
    let pid = live.child.id();
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let value = |name: &str| {
        let line = status.lines().find_map(|l| l.strip_prefix(name)).unwrap_or_default();
        line.trim_start_matches(':').split_whitespace().next().unwrap_or_default().to_owned()
    };
    assert_eq!((value("Uid").as_str(), value("NoNewPrivs").as_str()), ("65534", "1"));
    assert_eq!(u64::from_str_radix(&value("CapEff"), 16), Ok(0));
    if live.words().contains("not enforced") {
        eprintln!("not checked: {}", live.words());
    } else {
        assert_eq!(value("Seccomp"), "2");
    }
    link.send(&sample, &[]);
    wait(|| s.path("live/dns.log").exists());
    live.signal(Signal::USR1);
    wait(|| !s.path("live/dns.log").exists());
    link.send(&sample, &[]);
    let words = live.end();
    assert_eq!(count(&words, "read"), 136, "{words}");
}

#[test]
fn top_shows_the_hosts_with_the_most_traffic() {
    let Some(link) = Link::new() else { return };
    let s = Scratch::new("live-top");
    let sample = s.file("sample.pcap", &support::sample());
    let live = Live::start(&link, &s, &["-t", "1", "--metrics", "127.0.0.1:9911"]);
    let top = |more: &[&str]| {
        let output = link.gannet().arg("top").args(more).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let (json, screen) = thread::scope(|scope| {
        scope.spawn(|| link.send(&sample, &["--rate", "100", "--frames", "700"]));
        (top(&["--json"]), top(&["--once"]))
    });
    let snapshot: serde_json::Value = serde_json::from_str(&json).unwrap();
    for kind in ["hosts", "pairs", "services"] {
        let rows = snapshot["talkers"][kind].as_array().unwrap();
        let bytes: Vec<_> = rows.iter().map(|row| row["bytes"].as_f64().unwrap()).collect();
        assert!(bytes.is_sorted_by(|a, b| a >= b) && !bytes.is_empty(), "{kind}: {json}");
    }
    assert!(snapshot["packets"].as_u64() > Some(50), "{json}");
    for part in ["capturing on vb", "HOST", "PAIR OF HOSTS", "SERVICE", "UDP 53", "LOG"] {
        assert!(screen.contains(part), "{part}: {screen}");
    }
    live.end();
    let refused = link.gannet().args(["top", "--once"]).output().unwrap();
    let words = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(2), "{words}");
    assert!(words.contains("no sensor responds at 127.0.0.1:9911"), "{words}");
}

#[test]
fn rows_go_to_a_socket_as_json_lines() {
    use std::io::BufRead as _;
    let Some(link) = Link::new() else { return };
    let s = Scratch::new("live-to");
    let sample = s.file("sample.pcap", &support::sample());
    let socket = s.path("rows.sock");
    let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let live = Live::start(&link, &s, &["-t", "1", "--to", &format!("unix:{}", socket.display())]);
    link.send(&sample, &[]);
    let (client, _) = listener.accept().unwrap();
    let lines = thread::spawn(move || {
        std::io::BufReader::new(client).lines().map(Result::unwrap).collect::<Vec<_>>()
    });
    wait(|| s.path("live/dns.log").exists());
    let words = live.end();
    let lines = lines.join().unwrap();
    let of = |log: &str| {
        lines.iter().filter(|l| l.starts_with(&format!("{{\"_path\":\"{log}\","))).count()
    };
    assert_eq!((of("conn"), of("dns")), (10, 4), "{words}\n{lines:?}");
    assert_eq!(count(&words, "sent"), lines.len() as u64);
    assert_eq!(rows(&s.path("live"))["dns"].len(), 4, "files are written, too");
}

#[test]
fn a_sensor_takes_its_options_from_a_file_and_reports_that_it_is_ready() {
    let Some(link) = Link::new() else { return };
    let s = Scratch::new("live-sensor");
    let out = s.path("live");
    let text =
        format!("interface = \"vb\"\nout = \"{}\"\nthreads = 1\nquiet = true\n", out.display());
    let file = s.file("gannet.toml", text.as_bytes());
    let manager = std::os::unix::net::UnixDatagram::bind(s.path("notify")).unwrap();
    manager.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let checked = gannet().args(["config", "check", "--config"]).arg(&file).output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    let begun = Instant::now();
    let mut child = link
        .gannet()
        .args(["sensor", "--config"])
        .arg(&file)
        .env("NOTIFY_SOCKET", s.path("notify"))
        .env("WATCHDOG_USEC", "2000000")
        .spawn()
        .unwrap();
    let mut heard = String::new();
    let mut buffer = [0; 1024];
    while !heard.contains("WATCHDOG=1") {
        let len = manager.recv(&mut buffer).unwrap();
        heard.push_str(std::str::from_utf8(&buffer[..len]).unwrap());
        if heard.starts_with("READY=1") && !heard.contains("WATCHDOG") {
            eprintln!("ready after {:?}", begun.elapsed());
        }
    }
    assert!(heard.starts_with("READY=1"), "{heard}");
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let len = manager.recv(&mut buffer).unwrap();
    assert!(buffer[..len].ends_with(b"STOPPING=1"));
    assert!(child.wait().unwrap().success());
    assert!(out.join("stats.log").exists());
    let unknown = s.file("wrong.toml", b"rotat = 1\n");
    let refused = gannet().args(["sensor", "--config"]).arg(&unknown).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn sighup_applies_changes_of_the_file() {
    let Some(link) = Link::new() else { return };
    let s = Scratch::new("live-reload");
    let out = s.path("live");
    let file = s.path("gannet.toml");
    let write = |more: &str| {
        let out = out.display();
        let text = format!("interface = \"vb\"\nout = \"{out}\"\nthreads = 1\n{more}");
        // The file is replaced by a new one, as editors do.
        fs::write(s.path("new.toml"), text).unwrap();
        fs::rename(s.path("new.toml"), &file).unwrap();
    };
    write("rotate = \"1h\"\n");
    let words = s.path("words");
    let mut command = link.gannet();
    command.args(["sensor", "--config"]).arg(&file);
    let child = command.stderr(fs::File::create(&words).unwrap()).spawn().unwrap();
    let live = Live { child, words };
    wait(|| live.words().contains("capturing on"));

    write("rotate = \"2h\"\nkeep = \"30d\"\nring-size = \"64M\"\n");
    live.signal(Signal::HUP);
    wait(|| live.words().contains("ring-size"));
    let words = live.words();
    assert!(words.contains("gannet.toml: applied: "), "{words}");
    assert!(words.contains("rotate") && words.contains("keep"), "{words}");
    assert!(words.contains("gannet.toml: changes need a restart: ring-size"), "{words}");

    write("rotat = 1\n");
    live.signal(Signal::HUP);
    wait(|| live.words().contains("no option is named 'rotat'"));
    assert!(live.words().contains("the options are unchanged"), "{}", live.words());
    let words = live.end();
    assert!(words.contains("logs in"), "{words}");
}

#[test]
fn the_systemd_unit_is_valid_and_hardened() {
    let unit =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/systemd/gannet@.service");
    let Ok(security) =
        Command::new("systemd-analyze").args(["security", "--offline=yes"]).arg(&unit).output()
    else {
        eprintln!("skipped: systemd-analyze is not installed");
        return;
    };
    let text = String::from_utf8(security.stdout).unwrap();
    let Some(line) = text.lines().find(|line| line.contains("Overall exposure level")) else {
        eprintln!("skipped: systemd-analyze cannot check a file");
        return;
    };
    let level: f64 = line.rsplit(": ").next().unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!(level <= 2.0, "{line}");
}
