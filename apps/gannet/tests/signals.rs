//! SIGINT and SIGTERM end a live analysis in order.

// A panic in a helper is a test's report.
#![allow(clippy::unwrap_used)]

mod support;

use std::io::Write;
use std::process::Stdio;
use std::thread;
use std::time::Duration;
use std::time::Instant;

use rustix::process::Pid;
use rustix::process::Signal;
use rustix::process::kill_process;
use support::Scratch;
use support::gannet;
use support::sample;

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
    // The folder is made once the capture's header was read, after the signals were taken over.
    wait(|| s.path("logs").exists());
    thread::sleep(Duration::from_millis(300));
    kill_process(Pid::from_child(&child), signal).unwrap();
    let mut code = None;
    wait(|| {
        code = child.try_wait().unwrap().map(|status| status.code());
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
fn both_signals_complete_the_logs() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130)] {
        let s = Scratch::new(&format!("signal-{code}"));
        assert_eq!(stopped_by(signal, &s), Some(code));
        let conn = s.read("logs/conn.log");
        assert_eq!(conn.lines().filter(|l| !l.starts_with('#')).count(), 10, "{conn}");
        assert!(conn.lines().last().is_some_and(|l| l.starts_with("#close\t")), "{conn}");
    }
}
