//! Runs of the command on captures in folders of their own.

// Not every test program uses all helpers, which panic where a test fails.
#![allow(dead_code, clippy::unwrap_used)]

pub(crate) mod echo;

use std::fs;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::process::Output;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;

use gannet_capture::Format;
use gannet_capture::LinkType;
use gannet_capture::Packet;
use gannet_capture::Precision;
use gannet_capture::WriteOptions;
use gannet_capture::Writer;
use gannet_synth::Frame;

/// The command, without arguments.
pub(crate) fn gannet() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gannet"));
    command.stdin(Stdio::null());
    command
}

/// The result of a run of the command.
pub(crate) struct Run {
    /// The exit code.
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Run {
    /// Runs a command to its end.
    pub(crate) fn of(command: &mut Command) -> Self {
        command.output().unwrap().into()
    }

    /// Runs a command with `input` on its standard input.
    pub(crate) fn with_input(command: &mut Command, input: &[u8]) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // The command may end before it has read all input.
        let _ = child.stdin.take().unwrap().write_all(input);
        child.wait_with_output().unwrap().into()
    }
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self {
            code: output.status.code().unwrap(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }
}

/// A folder that is removed when dropped.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// A new folder, whose name contains `name` and a unique number.
    pub(crate) fn new(name: &str) -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("gannet-{}-{number}-{name}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    /// A path within it.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// A new file within it.
    pub(crate) fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }

    /// The text of a file within it.
    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    /// The names in a subfolder.
    pub(crate) fn list(&self, name: &str) -> Vec<String> {
        list(&self.path(name))
    }

    /// Analyses a capture into a subfolder; the run must succeed.
    pub(crate) fn analyze(&self, out: &str, args: &[&str], capture: &Path) -> Run {
        let out = self.path(out);
        let run = Run::of(gannet().arg("analyze").args(args).arg("-o").arg(out).arg(capture));
        assert_eq!(run.code, 0, "{}", run.stderr);
        run
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Remaining files only occupy space in the folder for temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The names in a folder, sorted.
pub(crate) fn list(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// The sample as the bytes of a pcap file.
pub(crate) fn sample() -> Vec<u8> {
    pcap(gannet_synth::sample().frames())
}

/// The sample as two files, cut before the packet `at`.
pub(crate) fn rotated(at: usize) -> (Vec<u8>, Vec<u8>) {
    let trace = gannet_synth::sample();
    let (first, second) = trace.frames().split_at(at);
    (pcap(first), pcap(second))
}

/// Frames as the bytes of a pcap file.
pub(crate) fn pcap(frames: &[Frame]) -> Vec<u8> {
    let bytes = Arc::new(Mutex::new(Vec::new()));
    let options = WriteOptions { precision: Some(Precision::Micros), ..WriteOptions::default() };
    let mut writer = Writer::to_write(Box::new(Shared(Arc::clone(&bytes))), "x.pcap", options);
    for (number, frame) in (1..).zip(frames) {
        let packet = Packet {
            time: frame.time,
            wire_len: frame.bytes.len() as u32,
            link_type: LinkType::ETHERNET,
            interface: 0,
            format: Format::Pcap,
            number,
            data: &frame.bytes,
        };
        writer.write(&packet).unwrap();
    }
    writer.finish().unwrap();
    let bytes = bytes.lock().unwrap();
    bytes.clone()
}

struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, data: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(data);
        Ok(data.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
