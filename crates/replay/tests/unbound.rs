//! Runs against unbound, an independent implementation: it must understand every query over UDP,
//! TCP, TLS and HTTPS, and its own counts must agree with the report's. Skipped with a note if it
//! is not installed.

#![cfg(feature = "self-signed")]
#![allow(clippy::unwrap_used)]

mod support;

use std::net::SocketAddr;
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use gannet_replay::Https;
use gannet_replay::Options;
use gannet_replay::Policy;
use gannet_replay::Tls;
use gannet_replay::Transport;
use gannet_replay::Trust;

use support::Capture;
use support::ThirdPartyServer;
use support::free_port;
use support::run_whole;

/// Number of queries of a run.
const QUERIES: u32 = 1000;

/// An unbound server and its addresses.
struct Unbound {
    server: ThirdPartyServer,
    plain: SocketAddr,
    secure: SocketAddr,
    /// `None` if it was built without HTTP/2.
    https: Option<SocketAddr>,
}

impl Unbound {
    /// `None` if it is not installed.
    fn start() -> Option<Self> {
        let version = Command::new("unbound").arg("-V").output().ok()?;
        let has_h2 = String::from_utf8_lossy(&version.stdout).contains("libnghttp2");
        let folder = std::env::temp_dir().join(format!("gannet-unbound-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
        std::fs::write(folder.join("cert.pem"), made.cert.pem()).unwrap();
        std::fs::write(folder.join("key.pem"), made.signing_key.serialize_pem()).unwrap();
        let (plain, secure, https) = (free_port(), free_port(), free_port());
        let at = folder.display();
        let config = format!(
            "server:
  directory: \"{at}\"
  chroot: \"\"
  username: \"\"
  pidfile: \"\"
  use-syslog: no
  logfile: \"{at}/log\"
  do-daemonize: no
  num-threads: 1
  module-config: \"iterator\"
  interface: 127.0.0.1@{plain}
  interface: 127.0.0.1@{secure}
  interface: 127.0.0.1@{https}
  tls-port: {secure}
  https-port: {https}
  tls-service-pem: \"{at}/cert.pem\"
  tls-service-key: \"{at}/key.pem\"
  incoming-num-tcp: 200
  so-rcvbuf: 0
  extended-statistics: yes
  local-zone: \"test.\" redirect
  local-data: \"test. 60 IN A 192.0.2.1\"
remote-control:
  control-enable: yes
  control-interface: \"{at}/control\"
  control-use-cert: no
"
        );
        std::fs::write(folder.join("conf"), config).unwrap();
        let local = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let (plain, secure) = (local(plain), local(secure));
        let https = has_h2.then(|| local(https));
        let mut command = Command::new("unbound");
        command.args(["-d", "-c"]).arg(folder.join("conf"));
        let server = ThirdPartyServer::start(&mut command, folder, plain, |_| true);
        Some(Self { server, plain, secure, https })
    }

    /// The count with this name.
    fn count(&self, name: &str) -> u64 {
        let out = Command::new("unbound-control")
            .arg("-c")
            .arg(self.server.folder.join("conf"))
            .arg("stats_noreset")
            .output()
            .unwrap();
        let text = String::from_utf8(out.stdout).unwrap();
        let line = text.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix('='));
        line.unwrap_or_else(|| panic!("no {name} in {text}")).parse().unwrap()
    }
}

#[test]
fn unbound_answers_and_counts_agree() {
    let Some(server) = Unbound::start() else {
        eprintln!("skipped: unbound is not installed (Debian: apt-get install unbound)");
        return;
    };
    let capture = Capture::answered("unbound", QUERIES, u32::MAX);
    let trust = Trust::File(server.server.folder.join("cert.pem"));
    let tls = Some(Tls::new("127.0.0.1", &trust).unwrap());
    if let Some(https) = server.https {
        one_by_one(&tls.clone().unwrap(), https);
    }
    let mut all = server.count("total.num.queries");
    let mut transports = vec![
        (Transport::Udp, server.plain, None),
        (Transport::Tcp, server.plain, Some("num.query.tcp")),
        (Transport::Tls, server.secure, Some("num.query.tls")),
    ];
    match server.https {
        Some(https) => transports.push((Transport::Https, https, Some("num.query.https"))),
        None => eprintln!("skipped: this unbound has no HTTP/2"),
    }
    for (transport, target, own) in transports {
        for queries in [None, Some(25)] {
            let before = own.map_or(0, |name| server.count(name));
            let policy = Policy { queries, ..Policy::default() };
            let (tls, options) = (tls.clone(), capture.options(target));
            run_whole(QUERIES, Options { transport, policy, tls, ..options });
            let expected = u64::from(QUERIES);
            all += expected;
            assert_eq!(server.count("total.num.queries"), all, "{transport}");
            if let Some(name) = own {
                assert_eq!(server.count(name) - before, expected, "{transport}");
            }
        }
    }
}

/// Sends queries one by one, waiting for each answer, and then many at once.
fn one_by_one(tls: &Tls, server: SocketAddr) {
    let socket = TcpStream::connect(server).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let mut https = Https::connect(tls, socket, "/dns-query").unwrap();
    let query = |id: u16| gannet_synth::dns::query(id, "www.test", 1);
    let mut buffer = vec![0; 1 << 16];
    for id in 1..=3 {
        https.send(&query(id)).unwrap();
        let len = https.read(&mut buffer).unwrap();
        assert_eq!((usize::from(buffer[0]) << 8) + usize::from(buffer[1]) + 2, len);
        assert_eq!((buffer[2..4] == id.to_be_bytes(), buffer[4] & 0x80), (true, 0x80));
    }
    // More than the server accepts at once.
    for id in 0..300 {
        https.send(&query(id)).unwrap();
    }
    let mut bytes = Vec::new();
    let mut answers = 0;
    while answers < 300 {
        let len = https.read(&mut buffer).unwrap();
        bytes.extend_from_slice(&buffer[..len]);
        while let Some(len) =
            bytes.get(..2).map(|l| 2 + usize::from(u16::from_be_bytes([l[0], l[1]])))
            && bytes.len() >= len
        {
            assert!(len > 2 + 12, "it is an answer");
            bytes.drain(..len);
            answers += 1;
        }
    }
    assert!(Https::connect(tls, TcpStream::connect(server).unwrap(), "/elsewhere").is_ok());
}
