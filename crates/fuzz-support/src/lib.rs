//! Shared code of the fuzz targets: functions that feed arbitrary bytes to the engine.
//!
//! [`capture`] interprets bytes as a whole capture. [`conversation`] interprets them as the
//! payloads that two hosts exchange in one protocol, in valid frames, so that all of them reach its
//! analyzer. The target of a protocol is one line of [`protocol!`], which also calls its public
//! message parsers with the bytes.

pub mod script;

use std::io::Cursor;
use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;

use gannet_base::Proto;
use gannet_base::Time;
use gannet_capture::Reader;
use gannet_capture::WriteOptions;
use gannet_capture::Writer;
use gannet_engine::Engine;
use gannet_engine::Options;
use gannet_event::Command;
use gannet_event::Interest;
use gannet_event::Listener;
use gannet_event::Raised;
use gannet_event::write_json;
use gannet_log::StreamCount;
use gannet_protocols::Tag;
use gannet_synth::Trace;
use gannet_wire::checksum;
use gannet_wire::tunnel;

/// Analyses bytes as a capture, from the file header to the last row. Returns the number of rows of
/// each log.
pub fn capture(bytes: &[u8]) -> Vec<StreamCount> {
    let mut engine =
        Engine::new(Options { ignore_checksums: true, hash_files: true, ..Options::default() });
    if let Ok(mut reader) = Reader::from_read(Box::new(Cursor::new(bytes.to_vec())), "fuzz") {
        while let Ok(Some(batch)) = reader.next_batch() {
            if engine.batch(&batch).is_err() {
                break;
            }
        }
    }
    // Logs are discarded, so writing cannot fail.
    engine.finish().map_or_else(|_| Vec::new(), |(_, counts)| counts)
}

/// Decodes bytes as an IP packet: its transport, checksums and tunnels.
pub fn ip(bytes: &[u8]) {
    let Ok(ip) = gannet_wire::ip(bytes, bytes.len() as u32, true) else { return };
    if let Ok(tcp) = gannet_wire::tcp(&ip) {
        gannet_wire::tcp_options(tcp.options).for_each(drop);
    }
    let _ = gannet_wire::icmp(&ip).map(|icmp| icmp.counterpart());
    checksum::tcp(&ip);
    checksum::udp(&ip);
    checksum::icmp(&ip);
    let _ = tunnel::gre(ip.payload);
    let _ = tunnel::ip_in_ip(ip.payload, ip.protocol);
    if let Ok(udp) = gannet_wire::udp(&ip) {
        let _ = tunnel::ayiya(udp.payload);
        let _ = tunnel::geneve(udp.payload).map(|g| g.options().for_each(drop));
        let _ = tunnel::gtpv1(udp.payload);
        let _ = tunnel::teredo(udp.payload);
        let _ = tunnel::vxlan(udp.payload);
    }
}

/// Analyses bytes as a conversation in a protocol, on its first TCP port, or else its first UDP
/// port.
///
/// Each message begins with a little-endian 16-bit number: the lowest bit selects the sender, the
/// other fifteen bits are the length. If the protocol has ports of both transports, an initial byte
/// selects one: UDP from 0x80 on.
pub fn conversation(tag: Tag, bytes: &[u8]) -> Vec<StreamCount> {
    let mut trace = Trace::new(Time::from_secs(1_700_000_000), 0);
    let client: SocketAddr = ([192, 0, 2, 1], 40_000).into();
    let (tcp, udp) = (tag.tcp_ports().first(), tag.udp_ports().first());
    let server = |port: u16| SocketAddr::from(([198, 51, 100, 1], port));
    match (tcp, udp) {
        // A protocol without a port is detected by its content.
        (None, None) => stream(&mut trace, client, server(9_999), bytes),
        (Some(port), None) => stream(&mut trace, client, server(*port), bytes),
        (None, Some(port)) => datagrams(&mut trace, client, server(*port), bytes),
        (Some(one), Some(other)) => match bytes.split_first() {
            Some((0x80.., rest)) => datagrams(&mut trace, client, server(*other), rest),
            Some((_, rest)) => stream(&mut trace, client, server(*one), rest),
            None => {}
        },
    }
    written(&trace).map_or_else(Vec::new, |bytes| capture(&bytes))
}

/// The port on which an analyzer without ports is started.
const PORT: u16 = 9_999;

/// Analyses bytes as a conversation in a protocol whose analyzer only scripts start, here for a
/// port. The first byte selects the transport: UDP from 0x80 on; the rest is as in
/// [`conversation`]. Returns the number of events raised.
pub fn started(tag: Tag, bytes: &[u8]) -> usize {
    let mut trace = Trace::new(Time::from_secs(1_700_000_000), 0);
    let client: SocketAddr = ([192, 0, 2, 1], 40_000).into();
    let server: SocketAddr = ([198, 51, 100, 1], PORT).into();
    match bytes.split_first() {
        Some((0x80.., rest)) => datagrams(&mut trace, client, server, rest),
        Some((_, rest)) => stream(&mut trace, client, server, rest),
        None => {}
    }
    let analyzer = tag.zeek_name().to_owned();
    let on_port = |proto| Command::Port { analyzer: analyzer.clone(), proto, port: PORT, on: true };
    let count = Arc::default();
    let listener = Counts {
        commands: [Proto::Tcp, Proto::Udp].map(on_port).to_vec(),
        count: Arc::clone(&count),
    };
    let interest = Interest::of(gannet_engine::events(), |decl| !decl.one_thread);
    let options = Options { ignore_checksums: true, scripted: true, ..Options::default() };
    let mut engine = Engine::with_listener(options, interest, Box::new(listener));
    let bytes = written(&trace).unwrap_or_default();
    if let Ok(mut reader) = Reader::from_read(Box::new(Cursor::new(bytes)), "fuzz") {
        while let Ok(Some(batch)) = reader.next_batch() {
            if engine.batch(&batch).is_err() {
                break;
            }
        }
    }
    let _ = engine.finish();
    count.load(Ordering::Relaxed)
}

/// Starts an analyzer, and counts events of protocols.
struct Counts {
    commands: Vec<Command>,
    count: Arc<AtomicUsize>,
}

impl Listener for Counts {
    fn event(&mut self, event: &Raised<'_>) {
        // Reads all arguments.
        write_json(&mut Vec::new(), event);
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    fn commands(&mut self, to: &mut Vec<Command>) {
        to.append(&mut self.commands);
    }
}

fn stream(trace: &mut Trace, client: SocketAddr, server: SocketAddr, bytes: &[u8]) {
    let mut tcp = trace.connect(client, server);
    for (to_server, part) in parts(bytes) {
        if to_server { tcp.send(part) } else { tcp.reply(part) }
    }
    tcp.close();
}

fn datagrams(trace: &mut Trace, client: SocketAddr, server: SocketAddr, bytes: &[u8]) {
    for (to_server, part) in parts(bytes) {
        if to_server {
            trace.udp(client, server, part);
        } else {
            trace.udp_reply(client, server, part);
        }
    }
}

fn parts(mut bytes: &[u8]) -> impl Iterator<Item = (bool, &[u8])> {
    std::iter::from_fn(move || {
        let (head, rest) = bytes.split_first_chunk()?;
        let head = u16::from_le_bytes(*head);
        let (part, rest) = rest.split_at(usize::from(head >> 1).min(rest.len()));
        bytes = rest;
        Some((head & 1 == 0, part))
    })
}

fn written(trace: &Trace) -> Option<Vec<u8>> {
    let file = Shared::default();
    let mut writer = Writer::to_write(Box::new(file.clone()), "x.pcap", WriteOptions::default());
    trace.write(&mut writer).ok()?;
    writer.finish().ok()?;
    Some(std::mem::take(&mut *file.0.lock().ok()?))
}

/// A file in memory.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, data: &[u8]) -> std::io::Result<usize> {
        if let Ok(mut bytes) = self.0.lock() {
            bytes.extend_from_slice(data);
        }
        Ok(data.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The target of a protocol: its tag, and functions that parse the bytes as one message.
#[macro_export]
macro_rules! protocol {
    ($tag:ident $(, $parse:expr)* $(,)?) => {
        libfuzzer_sys::fuzz_target!(|data: &[u8]| {
            $( let _ = $parse(data); )*
            $crate::conversation(gannet_protocols::Tag::$tag, data);
        });
    };
}

/// Replaces libFuzzer's macro in tests of targets: defines the target as a function, `target`.
#[macro_export]
macro_rules! fuzz_target {
    (|$data:ident: &[u8]| $body:expr) => {
        pub(crate) fn target($data: &[u8]) {
            $body
        }
    };
}

/// The target of protocols whose analyzers only scripts start: their tags, one of which the first
/// byte selects, and functions that parse the rest as one message.
#[macro_export]
macro_rules! started_protocols {
    ($($tag:ident)* $(, $parse:expr)* $(,)?) => {
        libfuzzer_sys::fuzz_target!(|data: &[u8]| {
            let Some((which, data)) = data.split_first() else { return };
            $( let _ = $parse(data); )*
            let tags = [$( gannet_protocols::Tag::$tag ),*];
            $crate::started(tags[usize::from(*which) % tags.len()], data);
        });
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(from_server: bool, text: &[u8]) -> Vec<u8> {
        let head = (text.len() as u16) << 1 | u16::from(from_server);
        [&head.to_le_bytes(), text].concat()
    }

    #[test]
    fn messages_reach_the_analyzer() {
        let request = part(false, b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n");
        let reply = part(true, b"HTTP/1.1 204 No Content\r\n\r\n");
        let counts = conversation(Tag::Http, &[request, reply].concat());
        let rows = |path| counts.iter().find(|c| c.path == path).map(|c| c.rows);
        assert_eq!((rows("conn"), rows("http")), (Some(1), Some(1)));
    }

    #[test]
    fn analyzers_that_scripts_start_are_started() {
        let call = [7u32, 0, 2, 100_000, 2, 0, 0, 0, 0, 0].map(u32::to_be_bytes).concat();
        let udp = started(Tag::Portmapper, &[&[0x80][..], &part(false, &call)].concat());
        let record = [&(1 << 31 | call.len() as u32).to_be_bytes(), &call[..]].concat();
        let tcp = started(Tag::Portmapper, &[&[0][..], &part(false, &record)].concat());
        let none = started(Tag::Portmapper, &[0x80]);
        let nothing = started(Tag::Portmapper, &[&[0][..], &part(false, &record[..9])].concat());
        assert!(udp > none + 2 && tcp > nothing, "{udp} {none} {tcp} {nothing}");
    }

    #[test]
    fn datagrams_reach_the_analyzer() {
        let message = [&[0x04, 0x01][..], &[0; 46]].concat();
        let counts = conversation(Tag::Syslog, &part(false, b"<34>su: failed"));
        assert!(counts.iter().any(|c| c.path == "syslog" && c.rows == 1), "{counts:?}");
        assert_eq!(parts(&part(true, &message)).next(), Some((false, &message[..])));
    }
}
