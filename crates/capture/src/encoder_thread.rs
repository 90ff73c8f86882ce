//! Output of a capture: an encoder in the caller's thread or in an encoder thread.

use std::io;
use std::sync::mpsc::Receiver;
use std::sync::mpsc::Sender;

use gannet_workers::Partner;

use crate::compress::Encoder;

/// An encoder, and the thread in which it runs.
pub(crate) enum Output {
    Here(Encoder),
    /// Moves to a thread with the first bytes: captures that fit into the writer's buffer need no
    /// thread.
    Waiting(Encoder),
    EncoderThread(EncoderThread),
    /// Finished, or failed.
    Gone,
}

impl Output {
    pub(crate) fn new(encoder: Encoder, encoder_thread: bool) -> Self {
        if encoder_thread { Self::Waiting(encoder) } else { Self::Here(encoder) }
    }

    /// Writes the contents of the buffer and empties it. An error of the thread is returned by a
    /// later call.
    pub(crate) fn drain(&mut self, buffer: &mut Vec<u8>) -> io::Result<()> {
        if matches!(self, Self::Waiting(_))
            && let Self::Waiting(encoder) = std::mem::replace(self, Self::Gone)
        {
            *self = Self::EncoderThread(EncoderThread::start(encoder)?);
        }
        match self {
            Self::Here(encoder) | Self::Waiting(encoder) => {
                let written = encoder.write_all(buffer);
                buffer.clear();
                written
            }
            Self::EncoderThread(encoder_thread) => encoder_thread.send(buffer),
            Self::Gone => {
                buffer.clear();
                Ok(())
            }
        }
    }

    /// Waits until all drained bytes are written to the file.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Here(encoder) | Self::Waiting(encoder) => encoder.flush(),
            Self::EncoderThread(encoder_thread) => encoder_thread.flush(),
            Self::Gone => Ok(()),
        }
    }

    /// Writes the last bytes and finishes the file; later calls do nothing.
    pub(crate) fn finish(&mut self, buffer: &mut Vec<u8>) -> io::Result<()> {
        match std::mem::replace(self, Self::Gone) {
            Self::Here(mut encoder) | Self::Waiting(mut encoder) => {
                encoder.write_all(buffer)?;
                encoder.finish()
            }
            Self::EncoderThread(mut encoder_thread) => {
                encoder_thread.send(buffer)?;
                encoder_thread.end()
            }
            Self::Gone => Ok(()),
        }
    }

    pub(crate) fn is_gone(&self) -> bool {
        matches!(self, Self::Gone)
    }
}

/// A thread that encodes and writes buffers, and returns them empty.
pub(crate) struct EncoderThread {
    partner: Partner<Order, Vec<u8>, io::Result<()>>,
    /// Number of buffers that were never sent.
    unused: usize,
}

enum Order {
    Write(Vec<u8>),
    Flush,
}

/// Number of buffers: one is written, one waits.
const BUFFERS: usize = 2;

impl EncoderThread {
    fn start(mut encoder: Encoder) -> io::Result<Self> {
        let work = move |orders: Receiver<Order>, back: Sender<Vec<u8>>| {
            for order in orders {
                let buffer = match order {
                    Order::Write(mut buffer) => {
                        encoder.write_all(&buffer)?;
                        buffer.clear();
                        buffer
                    }
                    Order::Flush => {
                        encoder.flush()?;
                        Vec::new()
                    }
                };
                // The receiver may have been dropped: then no further order arrives.
                let _ = back.send(buffer);
            }
            encoder.finish()
        };
        Ok(Self { partner: Partner::start("write", work)?, unused: BUFFERS })
    }

    /// Sends the buffer and replaces it by an empty one.
    fn send(&mut self, buffer: &mut Vec<u8>) -> io::Result<()> {
        let other = match self.unused.checked_sub(1) {
            Some(rest) => {
                self.unused = rest;
                Vec::with_capacity(buffer.capacity())
            }
            None => match self.partner.receive() {
                Ok(other) => other,
                Err(_) => return self.failed(buffer),
            },
        };
        let bytes = std::mem::replace(buffer, other);
        match self.partner.send(Order::Write(bytes)) {
            Ok(()) => Ok(()),
            Err(_) => self.failed(buffer),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.partner.send(Order::Flush).is_err() {
            return self.failed(&mut Vec::new());
        }
        // The reply to this order comes last: all buffers are returned before.
        while self.unused < BUFFERS {
            match self.partner.receive() {
                Ok(_) => self.unused += 1,
                Err(_) => return self.failed(&mut Vec::new()),
            }
        }
        match self.partner.receive() {
            Ok(_) => Ok(()),
            Err(_) => self.failed(&mut Vec::new()),
        }
    }

    /// Returns the error that ended the thread.
    fn failed(&mut self, buffer: &mut Vec<u8>) -> io::Result<()> {
        buffer.clear();
        self.end()
    }

    fn end(&mut self) -> io::Result<()> {
        match self.partner.end() {
            Some(Ok(result)) => result,
            Some(Err(_)) => Err(io::Error::other("the writer thread panicked")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::test::Shared;

    /// A disk that is full after this many bytes.
    struct Small(usize);

    impl Write for Small {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            match self.0.checked_sub(bytes.len()) {
                Some(rest) => {
                    self.0 = rest;
                    Ok(bytes.len())
                }
                None => Err(io::ErrorKind::StorageFull.into()),
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn bytes_arrive_in_their_order() {
        let sink = Shared::default();
        let mut output = Output::new(Encoder::Plain(Box::new(sink.clone())), true);
        let mut expected = Vec::new();
        for round in 0..50_u8 {
            let mut buffer = vec![round; usize::from(round)];
            expected.extend_from_slice(&buffer);
            output.drain(&mut buffer).unwrap();
            assert!(buffer.is_empty());
            if round % 10 == 3 {
                output.flush().unwrap();
                assert_eq!(sink.take(), expected);
                expected.clear();
            }
        }
        output.finish(&mut b"end".to_vec()).unwrap();
        expected.extend_from_slice(b"end");
        assert_eq!(sink.take(), expected);
        assert!(output.is_gone());
        output.finish(&mut b"more".to_vec()).unwrap();
        assert!(sink.take().is_empty());
    }

    #[test]
    fn errors_are_returned_once() {
        for encoder_thread in [false, true] {
            let mut output = Output::new(Encoder::Plain(Box::new(Small(10))), encoder_thread);
            let mut failures = 0;
            for _ in 0..10 {
                failures += usize::from(output.drain(&mut b"abcd".to_vec()).is_err());
            }
            failures += usize::from(output.finish(&mut b"abcd".to_vec()).is_err());
            assert!(failures >= 1, "encoder_thread: {encoder_thread}");
            assert!(!encoder_thread || failures == 1);
        }
        let mut output = Output::new(Encoder::Plain(Box::new(Small(10))), true);
        output.drain(&mut b"12345678901".to_vec()).unwrap();
        let error = output.flush().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}
