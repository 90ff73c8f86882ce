//! One connection of a client: buffered output, received bytes, and pending queries.

#![cfg_attr(
    not(feature = "quic"),
    allow(clippy::infallible_destructuring_match, reason = "there are more ways in other builds")
)]

use std::collections::VecDeque;
use std::io;
use std::ops::Range;

use crate::block::Origin;
use crate::h2;
use crate::h2::SendLimit;
use crate::inflight::Waiting;
use crate::message;
use crate::transport_link::TransportLink;

/// Bytes of the length before each message (RFC 1035 §4.2.2).
const LENGTH: usize = 2;
/// Maximum number of consecutive reads of a connection, so that others are served as well.
const READS: usize = 4;
/// Number of sent bytes in the output buffer at which they are dropped.
const DROP_SENT_AT: usize = 64 << 10;

/// A query that has not been sent completely.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queued {
    /// Length of its message in bytes.
    pub(crate) len: u16,
    /// Its id on this connection.
    pub(crate) id: u16,
    pub(crate) ticket: Ticket,
    /// Time at which it was added to the connection.
    pub(crate) queued_at: u64,
    /// Offset of its end in the byte stream of the connection.
    end: u64,
}

impl Queued {
    /// The range of its message in the output buffer, given the number of bytes dropped before.
    fn message_range(&self, dropped: u64) -> Range<usize> {
        let end = (self.end - dropped) as usize;
        end.saturating_sub(usize::from(self.len))..end
    }
}

/// The state that a query keeps when it moves to another connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticket {
    /// Position of the query in the run and in the input.
    pub(crate) origin: Origin,
    /// Due time; `None` if its lag is recorded already.
    pub(crate) due: Option<u64>,
    /// Time at which it was first passed to a connection.
    pub(crate) first_sent: u64,
    /// Whether it was sent before, so that this is a retry.
    pub(crate) is_retry: bool,
    /// Remaining number of retries.
    pub(crate) retries_left: u8,
    /// Whether another connection accepted it before and did not send it.
    pub(crate) moved: bool,
}

/// A connection.
pub(crate) struct Connection {
    pub(crate) link: TransportLink,
    /// Number of the connection, unique in the run.
    pub(crate) serial: u64,
    /// Index of its client.
    pub(crate) client: usize,
    /// Time at which it was started.
    pub(crate) started_at: u64,
    /// Whether the handshake is complete, so that queries can be sent.
    pub(crate) open: bool,
    /// Whether it accepts no more queries and closes after its last answer.
    pub(crate) closing: bool,
    /// Whether the poller waits for it to become writable.
    pub(crate) wants_write: bool,
    /// Number of queries that it accepted.
    pub(crate) accepted: u32,
    /// Time of the last data sent or received.
    pub(crate) used: u64,
    /// Time of its next timer, if the transport has timers of its own (QUIC).
    pub(crate) timer: Option<u64>,
    /// Queries waiting for answers, by id.
    pub(crate) waiting: Waiting,
    /// Queries whose messages are in `out`, in order.
    pub(crate) queue: VecDeque<Queued>,
    /// Framed queries; the message is the last part of each frame. The first `written` bytes are
    /// sent.
    out: Vec<u8>,
    written: usize,
    /// Number of bytes that were dropped from the front of `out`.
    dropped: u64,
    /// Number of queries at the front of the queue that were passed to QUIC, which may not have
    /// sent them.
    #[cfg(feature = "quic")]
    passed_to_quic: usize,
    /// The received part of an incomplete message.
    input: Vec<u8>,
    /// The HTTP/2 session, for DNS over HTTPS.
    h2: Option<Box<h2::Session>>,
}

impl Connection {
    pub(crate) fn new(
        link: TransportLink,
        h2: Option<h2::Session>,
        (client, serial): (usize, u64),
        now: u64,
    ) -> Self {
        // The first id differs between connections.
        let seed = (serial as u16).wrapping_mul(0x9e37).wrapping_add(1);
        Self {
            link,
            serial,
            client,
            started_at: now,
            open: false,
            closing: false,
            wants_write: true,
            accepted: 0,
            used: now,
            timer: None,
            waiting: Waiting::new(seed),
            queue: VecDeque::new(),
            out: Vec::new(),
            written: 0,
            dropped: 0,
            #[cfg(feature = "quic")]
            passed_to_quic: 0,
            input: Vec::new(),
            h2: h2.map(Box::new),
        }
    }

    /// Number of bytes not yet sent.
    pub(crate) fn backlog(&self) -> usize {
        self.out.len() - self.written
    }

    /// Whether nothing is buffered in either direction.
    pub(crate) fn is_quiet(&self) -> bool {
        self.queue.is_empty() && self.waiting.len() == 0
    }

    /// Whether a query of this length can be appended.
    pub(crate) fn can_send(&self, len: usize) -> Result<(), SendLimit> {
        #[cfg(feature = "quic")]
        if let TransportLink::Quic(session) = &self.link {
            return if session.can_send() { Ok(()) } else { Err(SendLimit::Temporary) };
        }
        self.h2.as_ref().map_or(Ok(()), |h2| h2.can_send(len))
    }

    /// Whether the server accepts no more queries over it.
    pub(crate) fn is_going_away(&self) -> bool {
        self.h2.as_ref().is_some_and(|h2| h2.is_closing())
    }

    /// Whether it uses DNS over HTTPS.
    pub(crate) fn is_h2(&self) -> bool {
        self.h2.is_some()
    }

    /// Whether there may be something to write after a read: window updates and pings need a
    /// response, and QUIC can send more when the peer has received data.
    pub(crate) fn wants_to_answer(&self) -> bool {
        match &self.link {
            TransportLink::ByteStream(_) => self.is_h2() && self.backlog() > 0,
            #[cfg(feature = "quic")]
            TransportLink::Quic(_) => !self.queue.is_empty(),
        }
    }

    /// Whether an incomplete message or frame was received.
    pub(crate) fn has_partial_input(&self) -> bool {
        !self.input.is_empty() || self.h2.as_ref().is_some_and(|h2| h2.has_partial_input())
    }

    /// Stops waiting for the answer to a query; returns whether the server must be notified.
    pub(crate) fn cancel(&mut self, id: u16) -> bool {
        #[cfg(feature = "quic")]
        if let TransportLink::Quic(session) = &mut self.link {
            session.cancel(id);
            return true;
        }
        let Some(h2) = &mut self.h2 else { return false };
        h2.cancel(id);
        h2.control(&mut self.out);
        true
    }

    /// Appends a query, with `id` if one is given.
    pub(crate) fn push(&mut self, message: &[u8], id: Option<u16>, ticket: Ticket, now: u64) {
        let len = message.len() as u16;
        match &mut self.h2 {
            Some(h2) => h2.request(message, id.unwrap_or(0), &mut self.out),
            None => {
                self.out.extend_from_slice(&len.to_be_bytes());
                self.out.extend_from_slice(message);
            }
        }
        let start = self.out.len() - message.len();
        if let Some(id) = id
            && let Some(place) = self.out.get_mut(start..start + 2)
        {
            place.copy_from_slice(&id.to_be_bytes());
            let Ticket { origin, first_sent, retries_left, .. } = ticket;
            self.waiting.sent(id, first_sent, &self.out[start..], retries_left, origin);
        }
        let end = self.dropped + self.out.len() as u64;
        self.queue.push_back(Queued { len, id: id.unwrap_or(0), ticket, queued_at: now, end });
        self.accepted += 1;
    }

    /// Writes until everything is sent or the socket is full; calls `sent` for each query whose
    /// last byte was sent. Returns whether everything was sent.
    pub(crate) fn write(&mut self, sent: &mut impl FnMut(&Queued)) -> io::Result<bool> {
        let stream = match &mut self.link {
            TransportLink::ByteStream(stream) => stream,
            #[cfg(feature = "quic")]
            TransportLink::Quic(_) => return self.write_quic(sent),
        };
        while self.out.len() > self.written {
            match stream.write(&self.out[self.written..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(bytes) => self.written += bytes,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            let out = self.dropped + self.written as u64;
            while let Some(front) = self.queue.pop_front_if(|q| q.end <= out) {
                sent(&front);
            }
            // The message of a partially sent query is kept whole, for a retry.
            let kept =
                self.queue.front().map_or(self.out.len(), |q| q.message_range(self.dropped).start);
            drop_spent(&mut self.out, &mut self.written, &mut self.dropped, kept);
        }
        stream.flush()
    }

    /// [`write`](Self::write) for QUIC: passes queries on as long as QUIC accepts them, and counts
    /// those that are sent.
    #[cfg(feature = "quic")]
    fn write_quic(&mut self, sent: &mut impl FnMut(&Queued)) -> io::Result<bool> {
        let TransportLink::Quic(session) = &mut self.link else { return Ok(true) };
        while let Some(queued) = self.queue.get(self.passed_to_quic) {
            let message = queued.message_range(self.dropped);
            let framed = self.out.get(message.start.saturating_sub(LENGTH)..message.end);
            if !session.request(framed.unwrap_or_default(), queued.id) {
                break;
            }
            self.passed_to_quic += 1;
            self.written = message.end;
        }
        for _ in 0..session.flush()? {
            self.passed_to_quic = self.passed_to_quic.saturating_sub(1);
            if let Some(front) = self.queue.pop_front() {
                sent(&front);
            }
        }
        let kept =
            self.queue.front().map_or(self.out.len(), |q| q.message_range(self.dropped).start);
        // QUIC needs the length before the message.
        let kept = if self.queue.is_empty() { kept } else { kept.saturating_sub(LENGTH) };
        drop_spent(&mut self.out, &mut self.written, &mut self.dropped, kept);
        Ok(!session.wants_write())
    }

    /// Reads available data; passes complete messages to `out`. Returns whether the peer has closed
    /// the connection.
    pub(crate) fn read(
        &mut self,
        buffer: &mut [u8],
        now: u64,
        out: &mut impl FnMut(&mut Waiting, &[u8]),
    ) -> io::Result<bool> {
        for _ in 0..READS {
            let stream = match &mut self.link {
                TransportLink::ByteStream(stream) => stream,
                #[cfg(feature = "quic")]
                TransportLink::Quic(session) => {
                    let (waiting, used) = (&mut self.waiting, &mut self.used);
                    session.read(&mut |_, message| {
                        *used = now;
                        out(waiting, message);
                    })?;
                    return Ok(false);
                }
            };
            match stream.read(buffer) {
                Ok(0) => return Ok(true),
                Ok(bytes) => {
                    self.used = now;
                    let bytes = buffer.get(..bytes).unwrap_or_default();
                    self.take(bytes, &mut *out).map_err(io::Error::other)?;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The connection is broken; the data before were valid.
                Err(_) => return Ok(true),
            }
        }
        Ok(false)
    }

    /// Removes and returns the unsent queries with their messages.
    pub(crate) fn take_queue(&mut self) -> Vec<(Queued, Box<[u8]>)> {
        let queue = std::mem::take(&mut self.queue);
        let take =
            |q: Queued| (q, self.out.get(q.message_range(self.dropped)).unwrap_or_default().into());
        queue.into_iter().map(take).collect()
    }

    /// Processes received bytes and passes on the messages that they complete.
    fn take(
        &mut self,
        bytes: &[u8],
        mut out: impl FnMut(&mut Waiting, &[u8]),
    ) -> Result<(), h2::ProtocolError> {
        let waiting = &mut self.waiting;
        if let Some(h2) = &mut self.h2 {
            h2.take(bytes, |id, body| {
                // The id of the answer must be that of the stream's query.
                let is_its = message::id(body) == id || body.len() < LENGTH;
                out(waiting, if is_its { body } else { &[] });
            })?;
            h2.control(&mut self.out);
        } else if self.input.is_empty() {
            let used = frames(bytes, |message| out(waiting, message));
            self.input.extend_from_slice(&bytes[used..]);
        } else {
            self.input.extend_from_slice(bytes);
            let used = frames(&self.input, |message| out(waiting, message));
            self.input.drain(..used);
        }
        Ok(())
    }
}

/// Passes the complete messages of a stream to `out`; returns the number of bytes that they take.
pub(crate) fn frames(bytes: &[u8], mut out: impl FnMut(&[u8])) -> usize {
    let mut at = 0;
    while let Some(len) = bytes.get(at..at + LENGTH) {
        let start = at + LENGTH;
        let end = start + usize::from(u16::from_be_bytes([len[0], len[1]]));
        let Some(message) = bytes.get(start..end) else { break };
        out(message);
        at = end;
    }
    at
}

/// Drops sent bytes that are not needed for a retry, if all bytes are sent or [`DROP_SENT_AT`] bytes can
/// be dropped.
fn drop_spent(out: &mut Vec<u8>, written: &mut usize, dropped: &mut u64, kept: usize) {
    let spent = kept.min(*written);
    if spent == out.len() || spent > DROP_SENT_AT {
        out.drain(..spent);
        *written -= spent;
        *dropped += spent as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::byte_stream::ByteStream;
    use std::io::Read;
    use std::net::TcpStream;

    use proptest::prelude::*;

    fn pair() -> (Connection, TcpStream) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        socket.set_nonblocking(true).unwrap();
        (
            Connection::new(
                TransportLink::ByteStream(ByteStream::new(socket, None)),
                None,
                (0, 1),
                0,
            ),
            listener.accept().unwrap().0,
        )
    }

    fn ticket() -> Ticket {
        Ticket {
            origin: 3.into(),
            due: None,
            first_sent: 5,
            is_retry: false,
            retries_left: 0,
            moved: false,
        }
    }

    #[test]
    fn queries_are_framed_and_unsent_ones_are_returned() {
        let (mut c, mut server) = pair();
        c.waiting = Waiting::new(0x1234);
        let mut id = || c.waiting.take_id(5);
        let (first, second, third) = (id(), id(), id());
        c.push(b"\0\0one", first, ticket(), 5);
        c.push(b"\0\0three", None, ticket(), 6);
        let mut ids = Vec::new();
        assert!(c.write(&mut |q| ids.push(q.id)).unwrap());
        assert_eq!(ids, [0x1234, 0]);
        let mut got = [0; 16];
        server.read_exact(&mut got).unwrap();
        assert_eq!(&got, b"\0\x05\x12\x34one\0\x07\0\0three");
        c.push(b"\0\0late", second, ticket(), 7);
        c.push(b"\0\0later", third, ticket(), 7);
        let back: Vec<_> = c.take_queue().into_iter().map(|(q, m)| (q.id, m)).collect();
        assert_eq!(
            back,
            [(0x1235, b"\x12\x35late"[..].into()), (0x1236, b"\x12\x36later"[..].into())]
        );
    }

    #[test]
    fn a_full_socket_is_no_failure() {
        let (mut c, _server) = pair();
        let message = vec![7; 60_000];
        let mut sent = 0;
        let mut queued = 0;
        while queued < 10_000 {
            c.push(&message, None, ticket(), 0);
            queued += 1;
            if !c.write(&mut |_| sent += 1).unwrap() {
                break;
            }
        }
        assert!(sent < queued && c.backlog() > 0);
        assert_eq!(c.take_queue().len(), queued - sent);
    }

    proptest! {
        /// The messages of a stream do not depend on how it is split.
        #[test]
        fn messages_do_not_depend_on_splits(
            messages in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 0..20),
            step in 1_usize..50,
        ) {
            let (mut c, _server) = pair();
            let mut stream = Vec::new();
            for message in &messages {
                stream.extend_from_slice(&(message.len() as u16).to_be_bytes());
                stream.extend_from_slice(message);
            }
            let mut got = Vec::new();
            for piece in stream.chunks(step) {
                c.take(piece, |_, message| got.push(message.to_vec())).unwrap();
            }
            prop_assert_eq!(got, messages);
            prop_assert!(!c.has_partial_input());
        }
    }
}
