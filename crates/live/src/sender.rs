//! Sends frames on an interface, for tests and measurements.

use std::io;
use std::time::Duration;
use std::time::Instant;

use crate::Error;
use crate::Interface;
use crate::sys::Socket;

/// Sends frames on an interface, bypassing its queueing discipline.
#[derive(Debug)]
pub struct Sender {
    socket: Socket,
    name: String,
}

/// Maximum number of frames in a system call.
const MAX_BATCH: usize = 64;
/// Time after which sending fails if the interface accepts no frame.
const SEND_TIMEOUT: Duration = Duration::from_secs(5);

impl Sender {
    /// Opens an interface.
    ///
    /// # Errors
    /// If no interface has this name, or the process may not send on it.
    pub fn open(name: &str) -> Result<Self, Error> {
        let interface = Interface::named(name)?;
        let system_error = |what| move |source| Error::system(name, what, source);
        let socket = Socket::new().map_err(system_error("packet socket"))?;
        // The socket is used only to send.
        socket.attach(&crate::prefilter::REJECT_ALL).map_err(system_error("filter"))?;
        socket.bypass_queue().map_err(system_error("queue"))?;
        socket.bind(interface.index).map_err(system_error("bind"))?;
        Ok(Self { socket, name: name.to_owned() })
    }

    /// Sends all frames in order. Waits while the interface is busy.
    ///
    /// # Errors
    /// If the interface rejects a frame (too long, or down), or is busy for [`SEND_TIMEOUT`].
    pub fn send(&self, mut frames: &[&[u8]]) -> Result<(), Error> {
        let mut last_sent = Instant::now();
        while !frames.is_empty() {
            let batch = frames.get(..MAX_BATCH).unwrap_or(frames);
            match self.socket.send(batch) {
                Ok(sent) => {
                    frames = frames.get(sent..).unwrap_or_default();
                    last_sent = Instant::now();
                }
                Err(e) if is_busy(&e) && last_sent.elapsed() < SEND_TIMEOUT => {
                    std::thread::yield_now();
                }
                Err(e) => return Err(Error::system(&self.name, "sending", e)),
            }
        }
        Ok(())
    }
}

fn is_busy(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock || error.raw_os_error() == Some(libc::ENOBUFS)
}
