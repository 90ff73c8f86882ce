//! Packets in, rows out: captures made in memory are analyzed, and the logs read back.

mod listeners;
mod packets;
mod states;
mod tunnels;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::io::Read;
use std::io::Write;
use std::net::IpAddr;
use std::net::Ipv4Addr;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering;

use gannet_base::Interval;
use gannet_base::Time;
use gannet_capture::Format;
use gannet_capture::LinkType;
use gannet_capture::Packet;
use gannet_capture::Reader;
use gannet_capture::WriteOptions;
use gannet_capture::Writer;
use gannet_synth::Trace;
use gannet_synth::frame;

use crate::Engine;
use crate::Options;
use crate::Statistics;

const START: i64 = 1_700_000_000;

/// The two hosts of most packets.
const CLIENT: Ipv4Addr = Ipv4Addr::new(192, 168, 0, 1);
const SERVER: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 7);

fn client(port: u16) -> SocketAddr {
    (CLIENT, port).into()
}

fn server(port: u16) -> SocketAddr {
    (SERVER, port).into()
}

fn trace() -> Trace {
    Trace::new(Time::from_secs(START), 7)
}

/// The payload of an Ethernet frame without padding: an IPv4 packet.
fn packet(frame: &[u8]) -> &[u8] {
    let len = usize::from(u16::from_be_bytes([frame[16], frame[17]]));
    &frame[14..14 + len]
}

/// An IPv4 packet with a UDP datagram between the two hosts.
fn datagram(from: u16, to: u16, payload: &[u8]) -> Vec<u8> {
    packet(&frame::udp(client(from), server(to), 1, payload)).to_vec()
}

/// An Ethernet frame between the two hosts.
fn ethernet(kind: u16, payload: &[u8]) -> Vec<u8> {
    frame::ethernet(frame::mac(IpAddr::V4(CLIENT)), frame::mac(IpAddr::V4(SERVER)), kind, payload)
}

/// A capture in memory.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A capture of frames with one link type, each with its time in seconds since the start.
fn capture(link: LinkType, frames: &[(f64, Vec<u8>)]) -> Vec<u8> {
    let memory = Memory::default();
    let mut writer =
        Writer::to_write(Box::new(memory.clone()), "made.pcap", WriteOptions::default());
    for (number, (at, data)) in (1..).zip(frames) {
        let time = Time::from_secs(START) + Interval::from_micros((at * 1e6) as i64);
        let wire_len = data.len() as u32;
        let packet = Packet {
            time,
            wire_len,
            link_type: link,
            interface: 0,
            format: Format::Pcap,
            number,
            data,
        };
        writer.write(&packet).unwrap();
    }
    writer.finish().unwrap();
    let bytes = memory.0.lock().unwrap();
    bytes.clone()
}

pub(crate) fn capture_of(trace: &Trace) -> Vec<u8> {
    let memory = Memory::default();
    let mut writer =
        Writer::to_write(Box::new(memory.clone()), "made.pcap", WriteOptions::default());
    trace.write(&mut writer).unwrap();
    writer.finish().unwrap();
    let bytes = memory.0.lock().unwrap();
    bytes.clone()
}

/// A source that returns at most the given number of bytes per read.
struct Trickle(io::Cursor<Vec<u8>>, usize);

impl Read for Trickle {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let n = into.len().min(self.1);
        self.0.read(&mut into[..n])
    }
}

/// The logs of an analysis by name.
pub(crate) struct Ran {
    logs: BTreeMap<String, String>,
    pub(crate) statistics: Statistics,
    batches: u32,
}

pub(crate) fn analyze(capture: &[u8], options: Options, at_a_time: usize) -> Ran {
    static RUNS: AtomicU32 = AtomicU32::new(0);
    let run = RUNS.fetch_add(1, Ordering::Relaxed);
    let dir: PathBuf =
        std::env::temp_dir().join(format!("gannet-engine-{}-{run}", std::process::id()));
    fs::create_dir_all(&dir).unwrap();
    let logs = gannet_log::Options { dir: Some(dir.clone()), ..options.logs.clone() };
    let mut engine = Engine::new(Options { logs, ..options });
    let source = Trickle(io::Cursor::new(capture.to_vec()), at_a_time);
    let mut reader = Reader::from_read(Box::new(source), "made.pcap").unwrap();
    let mut batches = 0;
    while let Some(batch) = reader.next_batch().unwrap() {
        engine.batch(&batch).unwrap();
        batches += 1;
    }
    let (statistics, _) = engine.finish().unwrap();
    let mut logs = BTreeMap::new();
    for entry in fs::read_dir(&dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        logs.insert(name, fs::read_to_string(&path).unwrap());
    }
    fs::remove_dir_all(&dir).unwrap();
    Ran { logs, statistics, batches }
}

impl Ran {
    fn of(capture: &[u8]) -> Self {
        analyze(capture, Options::default(), usize::MAX)
    }

    /// Columns of a log's rows, in order, separated by spaces.
    pub(crate) fn rows(&self, log: &str, columns: &str) -> Vec<String> {
        let Some(text) = self.logs.get(log) else { return Vec::new() };
        let fields = text.lines().find_map(|l| l.strip_prefix("#fields\t")).unwrap();
        let at: Vec<_> =
            columns.split(' ').map(|c| fields.split('\t').position(|f| f == c).unwrap()).collect();
        text.lines()
            .filter(|l| !l.starts_with('#'))
            .map(|l| {
                let cells: Vec<_> = l.split('\t').collect();
                at.iter().map(|i| cells[*i]).collect::<Vec<_>>().join(" ")
            })
            .collect()
    }

    pub(crate) fn weirds(&self) -> Vec<String> {
        self.rows("weird", "name")
    }
}
