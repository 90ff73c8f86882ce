//! SIGINT, SIGTERM and SIGHUP end runs after their output is complete.

// Helpers of tests panic where a test fails.
#![allow(clippy::unwrap_used)]

mod support;

use std::io::Write;
use std::process::Stdio;
use std::thread;
use std::time::Duration;
use std::time::Instant;

use crate::support::Scratch;
use crate::support::gannet;
use crate::support::sample;
use rustix::process::Pid;
use rustix::process::Signal;
use rustix::process::kill_process;

/// Feeds a capture into a pipe that stays open and sends the signal once the command reads it.
/// Returns the exit code.
fn stopped_by(signal: Signal, s: &Scratch) -> Option<i32> {
    let mut child = gannet()
        .args(["analyze", "-", "-o"])
        .arg(s.path("logs"))
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(&sample()).unwrap();
    input.flush().unwrap();
    // The folder is created once the capture's header was read, after the signal handlers are installed.
    wait(|| s.path("logs").exists());
    thread::sleep(Duration::from_millis(300));
    kill_process(Pid::from_child(&child), signal).unwrap();
    if signal == Signal::INT {
        // After the first signal, the command reads the pipe to its end.
        thread::sleep(Duration::from_millis(300));
        kill_process(Pid::from_child(&child), signal).unwrap();
    }
    let mut code = None;
    let mut sent = Instant::now();
    wait(|| {
        code = child.try_wait().unwrap().map(|status| status.code());
        // On a busy machine, the second signal may arrive before the first one is handled: the two count as one, and a
        // third one is needed.
        if code.is_none() && signal == Signal::INT && sent.elapsed() > Duration::from_secs(5) {
            kill_process(Pid::from_child(&child), signal).unwrap();
            sent = Instant::now();
        }
        code.is_some()
    });
    drop(input);
    code.flatten()
}

fn wait(mut until: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !until() {
        assert!(begun.elapsed() < Duration::from_secs(20), "nothing happened");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_first_interrupt_reads_the_pipe_to_its_end() {
    let s = Scratch::new("drain");
    let all = sample();
    let (first, second) = all.split_at(all.len() / 2);
    let mut child = gannet();
    child.args(["analyze", "-", "-o"]).arg(s.path("logs")).stdin(Stdio::piped());
    let mut child = child.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(first).unwrap();
    wait(|| s.path("logs").exists());
    thread::sleep(Duration::from_millis(300));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    thread::sleep(Duration::from_millis(500));
    assert!(child.try_wait().unwrap().is_none(), "the pipe is still open");
    input.write_all(second).unwrap();
    drop(input);
    assert_eq!(child.wait().unwrap().code(), Some(0), "all was read");
    let conn = s.read("logs/conn.log");
    assert_eq!(conn.lines().filter(|l| !l.starts_with('#')).count(), 10, "{conn}");
}

#[test]
fn rows_of_a_silent_pipe_are_written_within_a_second() {
    for threads in ["1", "3"] {
        let s = Scratch::new(&format!("flush-{threads}"));
        let mut child = gannet();
        child.args(["analyze", "-", "-t", threads, "-o"]).arg(s.path("logs"));
        let mut child = child.stdin(Stdio::piped()).spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(&sample()).unwrap();
        let begun = Instant::now();
        let rows = || {
            let log = std::fs::read_to_string(s.path("logs/http.log")).unwrap_or_default();
            log.lines().filter(|l| !l.starts_with('#')).count()
        };
        wait(|| rows() > 0);
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
        assert!(child.try_wait().unwrap().is_none(), "the pipe is still open");
        drop(input);
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
}

#[cfg(feature = "lua")]
#[test]
fn captures_that_a_script_writes_are_completed() {
    let s = Scratch::new("script-signal");
    let script = s.file("w.lua", b"gannet.input(arg[2]):pace({ rate = 100 }):write(arg[3])");
    let input = s.file("in.pcap", &sample());
    let output = s.path("out.pcap");
    let mut child = gannet();
    child.arg("run").args([&script, &input, &output]).stderr(Stdio::piped());
    let child = child.spawn().unwrap();
    // The temporary file exists once the pipeline writes.
    wait(|| std::fs::read_dir(s.path("")).unwrap().count() > 2);
    thread::sleep(Duration::from_millis(100));
    // Background processes of a shell inherit an ignored SIGINT.
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let ended = child.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), ended.stderr.as_slice()), (Some(143), &b""[..]));
    let mut names: Vec<_> =
        std::fs::read_dir(s.path("")).unwrap().map(|e| e.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["in.pcap", "out.pcap", "w.lua"]);
    let packets = gannet().args(["info", "--json"]).arg(&output).output().unwrap();
    assert_eq!(packets.status.code(), Some(0));
}

/// Starts a script that reads a pipe, with the default handler of SIGINT. Returns its process and standard input.
#[cfg(all(feature = "lua", target_os = "linux"))]
fn counting(s: &Scratch, text: &str) -> (std::process::Child, std::process::ChildStdin) {
    let script = s.file("c.lua", text.as_bytes());
    // Background processes of a shell inherit an ignored SIGINT.
    let mut child = std::process::Command::new("env");
    child.args(["--default-signal=INT"]).arg(gannet().get_program()).arg("run").arg(script);
    child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = child.spawn().unwrap();
    let input = child.stdin.take().unwrap();
    (child, input)
}

#[cfg(all(feature = "lua", target_os = "linux"))]
#[test]
fn a_first_interrupt_lets_a_script_read_its_pipe_to_the_end() {
    let count = "local all = 0\n\
                 gannet.input('-'):each(function() all = all + 1 io.stdout:write('.') io.stdout:flush() end)\n\
                 print(all)";
    let analyze = "local all = 0\n\
                   gannet.analyze('-'):on('new_packet', function()\n\
                   all = all + 1 io.stdout:write('.') io.stdout:flush() end):run()\nprint(all)";
    let packets = gannet_synth::sample().frames().len();
    for text in [count, analyze] {
        let s = Scratch::new("script-drain");
        let (mut child, mut input) = counting(&s, text);
        let all = sample();
        let (first, second) = all.split_at(all.len() / 2);
        input.write_all(first).unwrap();
        let mut dot = [0];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut dot).unwrap();
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        thread::sleep(Duration::from_millis(500));
        assert!(child.try_wait().unwrap().is_none(), "the pipe is still open");
        input.write_all(second).unwrap();
        drop(input);
        let ended = child.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&ended.stdout);
        assert_eq!((ended.status.code(), ended.stderr.as_slice()), (Some(0), &b""[..]));
        assert_eq!(text.trim_start_matches('.'), format!("{packets}\n"));
    }
}

#[cfg(all(feature = "lua", target_os = "linux"))]
#[test]
fn a_second_interrupt_ends_a_script_at_once() {
    use std::os::unix::process::ExitStatusExt as _;
    let s = Scratch::new("script-twice");
    let text =
        "gannet.input('-'):each(function() io.stdout:write('.') io.stdout:flush() end) print('on')";
    let (mut child, mut input) = counting(&s, text);
    input.write_all(&sample()).unwrap();
    let mut dot = [0];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut dot).unwrap();
    let mut status = None;
    wait(|| {
        // Two signals in quick succession may count as one.
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        thread::sleep(Duration::from_millis(300));
        status = child.try_wait().unwrap();
        status.is_some()
    });
    drop(input);
    assert_eq!(status.unwrap().signal(), Some(2));
    let mut rest = String::new();
    std::io::Read::read_to_string(child.stdout.as_mut().unwrap(), &mut rest).unwrap();
    assert!(!rest.contains("on"), "{rest}");
}

#[cfg(feature = "lua")]
#[test]
fn a_script_that_writes_nothing_ends_at_once() {
    use std::os::unix::process::ExitStatusExt as _;
    let s = Scratch::new("script-loop");
    let script = s.file("l.lua", b"io.stdout:write('on\\n') io.stdout:flush() while true do end");
    let mut child = gannet().arg("run").arg(&script).stdout(Stdio::piped()).spawn().unwrap();
    let mut on = [0; 3];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut on).unwrap();
    // Background processes of a shell inherit an ignored SIGINT.
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(15));
}

#[test]
fn a_script_that_loops_ends_with_the_second_signal_and_the_first_one_says_so() {
    use std::io::BufRead as _;
    let s = Scratch::new("zeek-loop");
    let input = s.file("sample.pcap", &sample());
    let code = "event zeek_init() { print \"on\"; flush_all(); while ( T ) { } }";
    let mut child = gannet();
    child.args(["zeek", "-b", "-e", code, "-r"]).arg(input).current_dir(s.path(""));
    let mut child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut on = [0; 3];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut on).unwrap();
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let mut note = String::new();
    std::io::BufReader::new(child.stderr.take().unwrap()).read_line(&mut note).unwrap();
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(143));
    assert!(note.ends_with("another signal ends it immediately\n"), "{note}");
}

#[test]
fn signals_complete_the_logs() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::HUP, 129), (Signal::INT, 130)] {
        let s = Scratch::new(&format!("signal-{code}"));
        assert_eq!(stopped_by(signal, &s), Some(code));
        let conn = s.read("logs/conn.log");
        assert_eq!(conn.lines().filter(|l| !l.starts_with('#')).count(), 10, "{conn}");
        assert!(conn.lines().last().is_some_and(|l| l.starts_with("#close\t")), "{conn}");
    }
}
