//! Reports to systemd: the service is ready, it is alive, it stops. See sd_notify(3).

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
    /// How often it wants to hear that the service lives.
    every: Option<Duration>,
    said: Instant,
}

impl Manager {
    /// As the environment says.
    pub(crate) fn of_environment() -> Self {
        let every = env::var("WATCHDOG_USEC").ok().and_then(|text| text.parse().ok());
        // Half of the time, as its manual recommends.
        let every = every.map(|micros: u64| Duration::from_micros(micros / 2));
        Self { socket: socket(), every, said: Instant::now() }
    }

    fn say(&self, words: &str) {
        if let Some((socket, address)) = &self.socket {
            // A manager that does not listen is no reason to stop.
            let _ = socket.send_to_addr(words.as_bytes(), address);
        }
    }

    /// Packets are captured from now on.
    pub(crate) fn ready(&self, status: &str) {
        self.say(&format!("READY=1\nSTATUS={status}"));
    }

    /// The service lives. Said as often as the manager wants to hear it.
    pub(crate) fn lives(&mut self) {
        if self.every.is_some_and(|every| self.said.elapsed() >= every) {
            self.said = Instant::now();
            self.say("WATCHDOG=1");
        }
    }

    /// The service stops.
    pub(crate) fn stops(&self) {
        self.say("STOPPING=1");
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
