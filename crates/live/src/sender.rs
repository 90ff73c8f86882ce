//! Frames sent on an interface: for tests and measurements.

use std::io;
use std::time::Duration;
use std::time::Instant;

use crate::Error;
use crate::Interface;
use crate::sys::Socket;

/// Sends frames on an interface, past its queue.
#[derive(Debug)]
pub struct Sender {
    socket: Socket,
    name: String,
}

/// Frames that one call sends.
const AT_ONCE: usize = 64;
/// How long the interface may take no frame.
const PATIENCE: Duration = Duration::from_secs(5);

impl Sender {
    /// Opens an interface.
    ///
    /// # Errors
    /// When there is none of that name, or the process may not send on it.
    pub fn open(name: &str) -> Result<Self, Error> {
        let interface = Interface::named(name)?;
        let failed = |what| move |source| Error::system(name, what, source);
        let socket = Socket::new().map_err(failed("packet socket"))?;
        // What comes in is not wanted.
        socket.attach(&crate::prefilter::NOTHING).map_err(failed("filter"))?;
        socket.bypass_queue().map_err(failed("queue"))?;
        socket.bind(interface.index).map_err(failed("bind"))?;
        Ok(Self { socket, name: name.to_owned() })
    }

    /// Sends all these frames, in order. Waits while the interface takes none.
    ///
    /// # Errors
    /// When the interface refuses a frame (too long, or down), or takes none for seconds.
    pub fn send(&self, mut frames: &[&[u8]]) -> Result<(), Error> {
        let mut since = Instant::now();
        while !frames.is_empty() {
            let some = frames.get(..AT_ONCE).unwrap_or(frames);
            match self.socket.send(some) {
                Ok(sent) => {
                    frames = frames.get(sent..).unwrap_or_default();
                    since = Instant::now();
                }
                Err(e) if is_busy(&e) && since.elapsed() < PATIENCE => std::thread::yield_now(),
                Err(e) => return Err(Error::system(&self.name, "sending", e)),
            }
        }
        Ok(())
    }
}

fn is_busy(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock || error.raw_os_error() == Some(libc::ENOBUFS)
}
