//! Runs against Knot DNS, an independent implementation: it must understand every query over UDP
//! and TCP, and its own counts must agree with the report's. Skipped with a note if it is not
//! installed.

#![allow(clippy::unwrap_used)]

mod support;

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use gannet_replay::Options;
use gannet_replay::Policy;
use gannet_replay::Transport;

use support::Capture;
use support::ThirdPartyServer;
use support::free_port;
use support::run_whole;

/// Number of queries of a run.
const QUERIES: u32 = 1000;

/// A Knot DNS server and its address.
struct Knot {
    server: ThirdPartyServer,
    address: SocketAddr,
}

impl Knot {
    /// `None` if it is not installed.
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
        let mut command = Command::new("knotd");
        command.arg("-c").arg(folder.join("conf"));
        // Its counts are complete once this file exists.
        let ready = |folder: &Path| folder.join("control").exists();
        Some(Self {
            server: ThirdPartyServer::start(&mut command, folder, address, ready),
            address,
        })
    }

    /// Number of requests that it counted for a protocol.
    fn count(&self, protocol: &str) -> u64 {
        let out = Command::new("knotc")
            .arg("-c")
            .arg(self.server.folder.join("conf"))
            .args(["stats", "mod-stats"])
            .output()
            .unwrap();
        let text = String::from_utf8(out.stdout).unwrap();
        let name = format!("mod-stats.request-protocol[{protocol}] = ");
        // Counts of 0 are not listed.
        text.lines().find_map(|l| l.strip_prefix(&name)).map_or(0, |n| n.parse().unwrap())
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
            let options = capture.options(server.address);
            run_whole(QUERIES, Options { transport, policy, ..options });
            let expected = u64::from(QUERIES);
            assert_eq!(server.count(protocol) - before, expected, "{transport}");
        }
    }
}
