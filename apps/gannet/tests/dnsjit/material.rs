//! Inputs of the tests: frames, captures of these, folders, a server.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::process::Stdio;
use std::time::Duration;

use gannet_base::Time;
use gannet_capture::Format;
use gannet_capture::LinkType;
use gannet_capture::Packet;
use gannet_capture::Precision;
use gannet_capture::WriteOptions;
use gannet_capture::Writer;

use crate::support::Run;
use crate::support::echo::Echo;
use crate::support::gannet;

/// The folder that an environment variable names, or `default` below `../shared`, if it contains `file`.
pub(crate) fn source(variable: &str, default: &str, file: &str) -> Option<PathBuf> {
    let shared = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared");
    let path =
        std::env::var_os(variable).map_or_else(|| Path::new(shared).join(default), PathBuf::from);
    if !path.join(file).exists() {
        let words = format!("skipped: no {default} in {} (set {variable})\n", path.display());
        std::io::stderr().write_all(words.as_bytes()).unwrap();
        return None;
    }
    Some(fs::canonicalize(path).unwrap())
}

/// A capture of these frames, 20 ms apart, which is removed when dropped.
pub(crate) struct Frames(pub(crate) PathBuf);

impl Frames {
    pub(crate) fn new(name: &str, frames: &[&[u8]]) -> Self {
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
                    format: Format::Pcap,
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

/// The output of a script that runs `layer`, `object` and `produce` over these frames.
pub(crate) fn over(name: &str, frames: &[&[u8]], text: &str) -> String {
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

pub(crate) fn ethernet(rest: &[&[u8]]) -> Vec<u8> {
    [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1][..], &rest.concat()].concat()
}

pub(crate) fn udp4(payload: &[u8]) -> Vec<u8> {
    let len = 28 + payload.len() as u8;
    let ip = [0x45, 0, 0, len, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    [&ip[..], &[4, 0, 0, 53, 0, len - 20, 0, 0], payload].concat()
}

pub(crate) const QUERY: &[u8] = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x04a\xc8.b\0\0\x01\0\x01";

/// The folder of a test, which is removed when dropped.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("gannet-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap_or_default();
    }
}

/// An echo server that reports its counters.
pub(crate) struct Counting(Echo);

impl Counting {
    pub(crate) fn start(options: &[&str]) -> Self {
        Self(Echo::start(&[&["--json"], options].concat()))
    }

    pub(crate) fn port(&self) -> &str {
        self.0.address.rsplit(':').next().unwrap()
    }

    /// Stops the server; returns the number of queries and of other messages that it received.
    pub(crate) fn stop(mut self) -> (u64, u64) {
        std::thread::sleep(Duration::from_millis(100));
        let child = &mut self.0.child;
        let id = rustix::process::Pid::from_child(child);
        rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
        let output = std::io::read_to_string(child.stdout.take().unwrap()).unwrap();
        let count = |name: &str| {
            let at = output.find(&format!("\"{name}\":")).unwrap() + name.len() + 3;
            let digits: String = output[at..].chars().take_while(char::is_ascii_digit).collect();
            digits.parse().unwrap()
        };
        (count("queries"), count("other"))
    }
}

/// Runs a script whose output need not be UTF-8.
pub(crate) fn lossy(command: &mut Command) -> Run {
    let output = command.stdin(Stdio::null()).output().unwrap();
    Run {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Queries over UDP, from many clients.
pub(crate) fn queries(count: usize) -> Vec<Vec<u8>> {
    let frame = |index: usize| {
        let mut frame = ethernet(&[&[8, 0], &udp4(QUERY)]);
        // The last byte of the source address.
        frame[29] = (index % 200) as u8;
        frame
    };
    (0..count).map(frame).collect()
}

pub(crate) fn tcp4(payload: &[u8]) -> Vec<u8> {
    let len = 40 + payload.len() as u8;
    let ip = [0x45, 0, 0, len, 0, 1, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    let tcp = [4, 0, 0, 53, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x18, 16, 0, 0, 0, 0, 0];
    [&ip[..], &tcp, payload].concat()
}
