//! Servers, captures and runs that the tests share.

// Each test program uses a part of this module, and a panic here fails the test.
#![allow(dead_code, clippy::unwrap_used)]

use std::net::SocketAddr;
use std::net::TcpListener;
use std::net::TcpStream;
use std::net::UdpSocket;
use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;
use std::time::Instant;

use gannet_base::Time;
use gannet_capture::Format;
use gannet_capture::LinkType;
use gannet_capture::Packet;
use gannet_capture::WriteOptions;
use gannet_capture::Writer;
use gannet_replay::Error;
#[cfg(feature = "self-signed")]
use gannet_replay::Identity;
use gannet_replay::Input;
use gannet_replay::Live;
use gannet_replay::Options;
use gannet_replay::Report;
use gannet_replay::Served;
use gannet_replay::Server;
use gannet_replay::ServerBehaviour;
use gannet_replay::Timing;
use gannet_replay::Tls;
use gannet_replay::Transport;
use gannet_replay::Trust;

/// A self-signed certificate for the tests' servers.
#[cfg(feature = "self-signed")]
pub(crate) fn identity() -> Identity {
    Identity::self_signed(vec!["127.0.0.1".to_owned(), "dns.test".to_owned()]).unwrap()
}

/// Client settings that accept any certificate.
pub(crate) fn any_certificate() -> Tls {
    Tls::new("127.0.0.1", &Trust::Any).unwrap()
}

/// Options for a replay of a capture over an encrypted transport.
pub(crate) fn secured(
    capture: &Capture,
    target: SocketAddr,
    transport: Transport,
    tls: Tls,
) -> Options {
    let timeout = Duration::from_secs(5);
    Options { transport, tls: Some(tls), timeout, ..capture.options(target) }
}

/// A third-party server in a process and a folder of its own, both removed on drop.
pub(crate) struct ThirdPartyServer {
    child: Child,
    pub(crate) folder: PathBuf,
}

impl ThirdPartyServer {
    /// Starts the server and waits until it listens on `address` and is `ready`.
    pub(crate) fn start(
        command: &mut Command,
        folder: PathBuf,
        address: SocketAddr,
        ready: impl Fn(&Path) -> bool,
    ) -> Self {
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let server = Self { child, folder };
        let begun = Instant::now();
        while TcpStream::connect(address).is_err() || !ready(&server.folder) {
            let log = || std::fs::read_to_string(server.folder.join("log")).unwrap_or_default();
            assert!(begun.elapsed() < Duration::from_secs(20), "it does not listen: {}", log());
            std::thread::sleep(Duration::from_millis(20));
        }
        server
    }
}

impl Drop for ThirdPartyServer {
    fn drop(&mut self) {
        self.child.kill().unwrap_or_default();
        self.child.wait().unwrap();
        std::fs::remove_dir_all(&self.folder).unwrap_or_default();
    }
}

/// Sends all `queries` of a capture with these options; each must be answered correctly.
pub(crate) fn run_whole(queries: u32, options: Options) {
    // Never more than fit into a socket's buffer, even on a slow machine.
    let (timing, in_flight, timeout) = (Timing::Max, 64, Duration::from_secs(5));
    let options = Options { timing, in_flight, timeout, ..options };
    let report = run(&options);
    let counts = report.counts();
    let expected = u64::from(queries);
    assert_eq!(
        (counts.sent, counts.answered, counts.rcodes[0], counts.lost),
        (expected, expected, expected, 0),
        "{}: {counts:?}",
        options.transport
    );
    assert_eq!(counts.garbage + counts.mismatched + counts.unexpected, 0);
}

/// A server in a thread of its own.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<Served, Error>>,
}

impl Running {
    pub(crate) fn new(behaviour: ServerBehaviour) -> Self {
        Self::of(Server::bind(([127, 0, 0, 1], 0).into(), behaviour).unwrap())
    }

    /// A server with TLS.
    #[cfg(feature = "self-signed")]
    pub(crate) fn secure(behaviour: ServerBehaviour, identity: &Identity) -> Self {
        let server = Server::bind(([127, 0, 0, 1], 0).into(), behaviour).unwrap();
        Self::of(server.with_tls(identity.clone()))
    }

    /// A server with HTTPS.
    #[cfg(feature = "self-signed")]
    pub(crate) fn https(behaviour: ServerBehaviour, identity: &Identity) -> Self {
        let server = Server::bind(([127, 0, 0, 1], 0).into(), behaviour).unwrap();
        Self::of(server.with_https(identity))
    }

    /// A server with QUIC.
    #[cfg(all(feature = "quic", feature = "self-signed"))]
    pub(crate) fn quic(behaviour: ServerBehaviour, identity: &Identity) -> Self {
        let server = Server::bind(([127, 0, 0, 1], 0).into(), behaviour).unwrap();
        Self::of(server.with_quic(identity.clone()))
    }

    fn of(server: Server) -> Self {
        let address = server.address().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let thread = std::thread::spawn({
            let stop = Arc::clone(&stop);
            move || server.run(&stop)
        });
        Self { address, stop, thread }
    }

    pub(crate) fn end(self) -> Served {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap().unwrap()
    }
}

/// A port that was just free for UDP and TCP.
pub(crate) fn free_port() -> u16 {
    loop {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        if TcpListener::bind(address).is_ok() {
            return address.port();
        }
    }
}

/// A capture of `count` queries, `gap` nanoseconds apart, from `sources` addresses; its path is
/// removed when it is dropped.
pub(crate) struct Capture(pub(crate) PathBuf);

impl Capture {
    pub(crate) fn new(name: &str, count: u32, gap: i64, sources: u8) -> Self {
        let path = std::env::temp_dir().join(format!("gannet-{name}-{}.pcap", std::process::id()));
        let mut writer = Writer::create(&path, WriteOptions::default()).unwrap();
        for n in 0..count {
            let question = format!("q{n}.{}.test", "x".repeat(n as usize % 5));
            let data = udp(n as u8 % sources, &gannet_synth::dns::query(n as u16, &question, 1));
            let packet = Packet {
                time: Time::from_nanos(1_700_000_000_000_000_000 + i64::from(n) * gap),
                wire_len: data.len() as u32,
                link_type: LinkType::RAW,
                interface: 0,
                format: Format::Pcap,
                number: u64::from(n) + 1,
                data: &data,
            };
            writer.write(&packet).unwrap();
        }
        writer.finish().unwrap();
        Self(path)
    }

    /// Queries of three clients as [`new`](Self::new) writes them, each followed by its answer: the
    /// query itself, with a different response code in every `wrong`th one.
    pub(crate) fn answered(name: &str, count: u32, wrong: u32) -> Self {
        let path = std::env::temp_dir().join(format!("gannet-{name}-{}.pcap", std::process::id()));
        let mut writer = Writer::create(&path, WriteOptions::default()).unwrap();
        for n in 0..count {
            let query = gannet_synth::dns::query(n as u16, &format!("q{n}.test"), 1);
            let mut answer = query.clone();
            answer[2] |= 0x80;
            answer[3] = answer[3] & 0xf0 | if n % wrong == 0 { 3 } else { 0 };
            let asked = udp(n as u8 % 3, &query);
            let mut answered = udp(n as u8 % 3, &answer);
            let (from, to) = answered.split_at_mut(16);
            from[12..].swap_with_slice(&mut to[..4]);
            to[4..8].copy_from_slice(&[0, 53, 4, 0]);
            for (step, data) in [asked, answered].into_iter().enumerate() {
                let at = i64::from(n) * 1_000_000 + step as i64 * 300_000;
                let packet = Packet {
                    time: Time::from_nanos(1_700_000_000_000_000_000 + at),
                    wire_len: data.len() as u32,
                    link_type: LinkType::RAW,
                    interface: 0,
                    format: Format::Pcap,
                    number: u64::from(n) * 2 + step as u64 + 1,
                    data: &data,
                };
                writer.write(&packet).unwrap();
            }
        }
        writer.finish().unwrap();
        Self(path)
    }

    pub(crate) fn options(&self, target: SocketAddr) -> Options {
        let paths = vec![self.0.clone()];
        let input = Input::Captures { paths, ports: vec![53], filter: None };
        Options { timeout: Duration::from_secs(1), ..Options::new(input, target) }
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).unwrap_or_default();
    }
}

fn udp(source: u8, payload: &[u8]) -> Vec<u8> {
    let len = (28 + payload.len()) as u16;
    let mut b = vec![0x45, 0, (len >> 8) as u8, len as u8, 0, 0, 0, 0, 64, 17, 0, 0];
    b.extend_from_slice(&[10, 0, 0, source, 10, 1, 0, 1, 4, 0, 0, 53]);
    b.extend_from_slice(&(len - 20).to_be_bytes());
    b.extend_from_slice(&[0, 0]);
    b.extend_from_slice(payload);
    b
}

pub(crate) fn run(options: &Options) -> Report {
    let report = gannet_replay::run(options, &AtomicBool::new(false), &Live::default()).unwrap();
    assert!(report.counts().adds_up(), "{:?}", report.counts());
    report
}
