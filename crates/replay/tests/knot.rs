//! Runs against Knot DNS, which nobody here wrote: it must understand every query over UDP and TCP,
//! and its own counts must agree with the report's. Skipped, with words, where it is not installed.

#![allow(clippy::unwrap_used)]

mod support;

use std::net::SocketAddr;
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::time::Duration;
use std::time::Instant;

use gannet_replay::Options;
use gannet_replay::Policy;
use gannet_replay::Timing;
use gannet_replay::Transport;

use support::Capture;
use support::free_port;
use support::run;

/// Queries of a run.
const QUERIES: u32 = 1000;

/// A server in a folder of its own, ended when dropped.
struct Knot {
    child: Child,
    folder: PathBuf,
    address: SocketAddr,
}

impl Knot {
    /// `None` where it is not installed.
    fn start() -> Option<Self> {
        Command::new("knotd").arg("--version").output().ok()?;
        let folder = std::env::temp_dir().join(format!("gannet-knot-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("db")).unwrap();
        let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
        let (at, port) = (folder.display(), address.port());
        let config = format!(
            "server:
    rundir: \"{at}\"
    pidfile: \"{at}/pid\"
    listen: 127.0.0.1@{port}
    udp-workers: 1
    tcp-workers: 1
    background-workers: 1
    tcp-max-clients: 200
control:
    listen: \"{at}/control\"
log:
  - target: \"{at}/log\"
    any: info
database:
    storage: \"{at}/db\"
mod-stats:
  - id: all
    request-protocol: on
template:
  - id: default
    storage: \"{at}\"
    global-module: mod-stats/all
    zonefile-sync: -1
    journal-content: none
zone:
  - domain: test.
    file: zone
"
        );
        std::fs::write(folder.join("conf"), config).unwrap();
        let zone = "test. 60 SOA ns.test. mail.test. 1 60 60 60 60
test. 60 NS ns.test.
ns.test. 60 A 127.0.0.1
*.test. 60 A 192.0.2.1
";
        std::fs::write(folder.join("zone"), zone).unwrap();
        let child = Command::new("knotd")
            .arg("-c")
            .arg(folder.join("conf"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let server = Self { child, folder, address };
        let begun = Instant::now();
        // Its counts are there when all of it is.
        while TcpStream::connect(server.address).is_err() || !server.folder.join("control").exists()
        {
            let log = || std::fs::read_to_string(server.folder.join("log")).unwrap_or_default();
            assert!(begun.elapsed() < Duration::from_secs(20), "it does not listen: {}", log());
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(server)
    }

    /// Requests that it counted over a protocol.
    fn count(&self, protocol: &str) -> u64 {
        let out = Command::new("knotc")
            .arg("-c")
            .arg(self.folder.join("conf"))
            .args(["stats", "mod-stats"])
            .output()
            .unwrap();
        let text = String::from_utf8(out.stdout).unwrap();
        let name = format!("mod-stats.request-protocol[{protocol}] = ");
        // What never came is not listed.
        text.lines().find_map(|l| l.strip_prefix(&name)).map_or(0, |n| n.parse().unwrap())
    }
}

impl Drop for Knot {
    fn drop(&mut self) {
        self.child.kill().unwrap_or_default();
        self.child.wait().unwrap();
        std::fs::remove_dir_all(&self.folder).unwrap_or_default();
    }
}

#[test]
fn knot_answers_and_counts_agree() {
    let Some(server) = Knot::start() else {
        eprintln!("skipped: Knot DNS is not installed (Debian: apt-get install knot)");
        return;
    };
    let capture = Capture::answered("knot", QUERIES, u32::MAX);
    for (transport, protocol) in [(Transport::Udp, "udp4"), (Transport::Tcp, "tcp4")] {
        for queries in [None, Some(25)] {
            let before = server.count(protocol);
            let policy = Policy { queries, ..Policy::default() };
            // Never more than a socket has room for, however slow the machine is.
            let (timing, in_flight) = (Timing::Max, 64);
            let timeout = Duration::from_secs(5);
            let report = run(&Options {
                transport,
                policy,
                timing,
                in_flight,
                timeout,
                ..capture.options(server.address)
            });
            let counts = report.counts();
            let expected = u64::from(QUERIES);
            assert_eq!(
                (counts.sent, counts.answered, counts.rcodes[0], counts.lost),
                (expected, expected, expected, 0),
                "{transport}: {counts:?}"
            );
            assert_eq!(counts.garbage + counts.mismatched + counts.unexpected, 0);
            assert_eq!(server.count(protocol) - before, expected, "{transport}");
        }
    }
}
