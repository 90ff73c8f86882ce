//! Notifications to systemd: ready, watchdog, stopping. See sd_notify(3).

use std::env;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::SocketAddr;
use std::os::unix::net::UnixDatagram;
use std::time::Duration;
use std::time::Instant;

/// The socket of the service manager, if there is one.
#[derive(Debug)]
pub(crate) struct Manager {
    socket: Option<(UnixDatagram, SocketAddr)>,
    /// Interval of watchdog notifications, if the manager requests them.
    watchdog_interval: Option<Duration>,
    last_ping: Instant,
}

impl Manager {
    /// Reads the socket and the interval from the environment.
    pub(crate) fn from_environment() -> Self {
        let watchdog_interval = env::var("WATCHDOG_USEC").ok().and_then(|text| text.parse().ok());
        // Half of the watchdog's time, as sd_watchdog_enabled(3) recommends.
        let watchdog_interval =
            watchdog_interval.map(|micros: u64| Duration::from_micros(micros / 2));
        Self { socket: socket(), watchdog_interval, last_ping: Instant::now() }
    }

    fn send(&self, words: &str) {
        if let Some((socket, address)) = &self.socket {
            // An error is ignored: the capture does not depend on the manager.
            let _ = socket.send_to_addr(words.as_bytes(), address);
        }
    }

    /// Notifies that packets are captured.
    pub(crate) fn ready(&self, status: &str) {
        self.send(&format!("READY=1\nSTATUS={status}"));
    }

    /// Sends a watchdog notification when one is due.
    pub(crate) fn ping_watchdog(&mut self) {
        if self.watchdog_interval.is_some_and(|interval| self.last_ping.elapsed() >= interval) {
            self.last_ping = Instant::now();
            self.send("WATCHDOG=1");
        }
    }

    /// Notifies that the service is stopping.
    pub(crate) fn stopping(&self) {
        self.send("STOPPING=1");
    }
}

fn socket() -> Option<(UnixDatagram, SocketAddr)> {
    let name = env::var("NOTIFY_SOCKET").ok()?;
    let address = match name.strip_prefix('@') {
        Some(name) => SocketAddr::from_abstract_name(name).ok()?,
        None => SocketAddr::from_pathname(name).ok()?,
    };
    Some((UnixDatagram::unbound().ok()?, address))
}
