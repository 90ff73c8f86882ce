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
use crate::h2::NoRoom;
use crate::inflight::Waiting;
use crate::message;
use crate::transport_link::TransportLink;

/// Bytes of the length before each message (RFC 1035 §4.2.2).
const LENGTH: usize = 2;
/// Times a connection is read before others get their turn.
const READS: usize = 4;
/// Sent bytes are dropped from the buffer at this number.
const SPENT: usize = 64 << 10;

/// A query that is not out yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queued {
    /// Bytes of its message.
    pub(crate) len: u16,
    /// Its id on this connection.
    pub(crate) id: u16,
    pub(crate) ticket: Ticket,
    /// When the connection got it.
    pub(crate) queued_at: u64,
    /// Where it ends among all bytes that ever were to go out.
    end: u64,
}

impl Queued {
    /// The range of its message in a buffer, given the number of bytes dropped before.
    fn place(&self, before: u64) -> Range<usize> {
        let end = (self.end - before) as usize;
        end.saturating_sub(usize::from(self.len))..end
    }
}

/// The state that a query keeps when it moves to another connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticket {
    /// Which query of the run it is.
    pub(crate) origin: Origin,
    /// When it was to be sent; `None` where its lag is known already.
    pub(crate) due: Option<u64>,
    /// Time at which it was first passed to a connection.
    pub(crate) first_sent: u64,
    /// Whether it was sent before.
    pub(crate) again: bool,
    /// Times it may be sent again.
    pub(crate) tries: u8,
    /// Whether another connection took it before and did not send it.
    pub(crate) moved: bool,
}

/// A connection.
pub(crate) struct Connection {
    pub(crate) way: TransportLink,
    /// No other connection of the run has this number.
    pub(crate) serial: u64,
    /// Whose it is.
    pub(crate) client: usize,
    /// When it was begun.
    pub(crate) begun: u64,
    /// Whether queries can go over it.
    pub(crate) open: bool,
    /// Whether it takes no more queries and ends with its last answer.
    pub(crate) closing: bool,
    /// Whether the poller reports when there is room to write.
    pub(crate) wants_room: bool,
    /// Queries it took.
    pub(crate) taken: u32,
    /// When something went out or came in.
    pub(crate) used: u64,
    /// When it is looked after next, by a timer of its own.
    pub(crate) timer: Option<u64>,
    /// Queries by their ids.
    pub(crate) waiting: Waiting,
    /// Queries in `out`, in order.
    pub(crate) queue: VecDeque<Queued>,
    /// Framed queries; each one's message comes last. The first `written` bytes are sent.
    out: Vec<u8>,
    written: usize,
    /// Bytes that came before those in `out`.
    before: u64,
    /// Of the queue, those that QUIC has and that may be out.
    #[cfg(feature = "quic")]
    handed: usize,
    /// The start of a message whose rest is to come.
    input: Vec<u8>,
    /// Between the messages and the line, for DNS over HTTPS.
    h2: Option<Box<h2::Session>>,
}

impl Connection {
    pub(crate) fn new(
        way: TransportLink,
        h2: Option<h2::Session>,
        (client, serial): (usize, u64),
        now: u64,
    ) -> Self {
        // Ids begin anywhere, and not at the same place for every connection.
        let seed = (serial as u16).wrapping_mul(0x9e37).wrapping_add(1);
        Self {
            way,
            serial,
            client,
            begun: now,
            open: false,
            closing: false,
            wants_room: true,
            taken: 0,
            used: now,
            timer: None,
            waiting: Waiting::new(seed),
            queue: VecDeque::new(),
            out: Vec::new(),
            written: 0,
            before: 0,
            #[cfg(feature = "quic")]
            handed: 0,
            input: Vec::new(),
            h2: h2.map(Box::new),
        }
    }

    /// Bytes that are not out.
    pub(crate) fn backlog(&self) -> usize {
        self.out.len() - self.written
    }

    /// Whether nothing is buffered in either direction.
    pub(crate) fn is_quiet(&self) -> bool {
        self.queue.is_empty() && self.waiting.len() == 0
    }

    /// Whether a query of this length can be appended.
    pub(crate) fn has_room(&self, len: usize) -> Result<(), NoRoom> {
        #[cfg(feature = "quic")]
        if let TransportLink::Quic(session) = &self.way {
            return if session.has_room() { Ok(()) } else { Err(NoRoom::Now) };
        }
        self.h2.as_ref().map_or(Ok(()), |h2| h2.has_room(len))
    }

    /// Whether the server takes no more queries over it.
    pub(crate) fn is_going_away(&self) -> bool {
        self.h2.as_ref().is_some_and(|h2| h2.is_closing())
    }

    /// Whether it is one for DNS over HTTPS.
    pub(crate) fn is_h2(&self) -> bool {
        self.h2.is_some()
    }

    /// Whether there may be something to write after a read: window updates and pings need an
    /// answer, and QUIC has room when the other side has received data.
    pub(crate) fn wants_to_answer(&self) -> bool {
        match &self.way {
            TransportLink::ByteStream(_) => self.is_h2() && self.backlog() > 0,
            #[cfg(feature = "quic")]
            TransportLink::Quic(_) => !self.queue.is_empty(),
        }
    }

    /// Whether the start of something has come whose rest is missing.
    pub(crate) fn is_amid(&self) -> bool {
        !self.input.is_empty() || self.h2.as_ref().is_some_and(|h2| h2.is_amid())
    }

    /// The answer to that query is not awaited any longer; returns whether to notify the server.
    pub(crate) fn cancel(&mut self, id: u16) -> bool {
        #[cfg(feature = "quic")]
        if let TransportLink::Quic(session) = &mut self.way {
            session.cancel(id);
            return true;
        }
        let Some(h2) = &mut self.h2 else { return false };
        h2.cancel(id);
        h2.control(&mut self.out);
        true
    }

    /// Puts a query behind the others, under `id` if there is one.
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
            let Ticket { origin, first_sent, tries, .. } = ticket;
            self.waiting.sent(id, first_sent, &self.out[start..], tries, origin);
        }
        let end = self.before + self.out.len() as u64;
        self.queue.push_back(Queued { len, id: id.unwrap_or(0), ticket, queued_at: now, end });
        self.taken += 1;
    }

    /// Writes until all is out or there is no room; `sent` gets each query that is out with its
    /// last byte. Whether all is.
    pub(crate) fn write(&mut self, sent: &mut impl FnMut(&Queued)) -> io::Result<bool> {
        let line = match &mut self.way {
            TransportLink::ByteStream(line) => line,
            #[cfg(feature = "quic")]
            TransportLink::Quic(_) => return self.write_quic(sent),
        };
        while self.out.len() > self.written {
            match line.write(&self.out[self.written..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(bytes) => self.written += bytes,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            let out = self.before + self.written as u64;
            while let Some(front) = self.queue.pop_front_if(|q| q.end <= out) {
                sent(&front);
            }
            // The message of one that is out in part is kept whole.
            let kept = self.queue.front().map_or(self.out.len(), |q| q.place(self.before).start);
            drop_spent(&mut self.out, &mut self.written, &mut self.before, kept);
        }
        line.flush()
    }

    /// The same for QUIC: passes queries on as long as there is room, and counts those that are
    /// sent.
    #[cfg(feature = "quic")]
    fn write_quic(&mut self, sent: &mut impl FnMut(&Queued)) -> io::Result<bool> {
        let TransportLink::Quic(session) = &mut self.way else { return Ok(true) };
        while let Some(queued) = self.queue.get(self.handed) {
            let message = queued.place(self.before);
            let framed = self.out.get(message.start.saturating_sub(LENGTH)..message.end);
            if !session.request(framed.unwrap_or_default(), queued.id) {
                break;
            }
            self.handed += 1;
            self.written = message.end;
        }
        for _ in 0..session.flush()? {
            self.handed = self.handed.saturating_sub(1);
            if let Some(front) = self.queue.pop_front() {
                sent(&front);
            }
        }
        let kept = self.queue.front().map_or(self.out.len(), |q| q.place(self.before).start);
        // QUIC takes a message with its length.
        let kept = if self.queue.is_empty() { kept } else { kept.saturating_sub(LENGTH) };
        drop_spent(&mut self.out, &mut self.written, &mut self.before, kept);
        Ok(!session.wants_room())
    }

    /// Reads available data; complete messages go to `out`. Returns whether the other side has
    /// ended.
    pub(crate) fn read(
        &mut self,
        buffer: &mut [u8],
        now: u64,
        out: &mut impl FnMut(&mut Waiting, &[u8]),
    ) -> io::Result<bool> {
        for _ in 0..READS {
            let line = match &mut self.way {
                TransportLink::ByteStream(line) => line,
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
            match line.read(buffer) {
                Ok(0) => return Ok(true),
                Ok(bytes) => {
                    self.used = now;
                    let bytes = buffer.get(..bytes).unwrap_or_default();
                    self.take(bytes, &mut *out).map_err(io::Error::other)?;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The connection is gone; the data before was valid.
                Err(_) => return Ok(true),
            }
        }
        Ok(false)
    }

    /// Takes back the unsent queries with their messages.
    pub(crate) fn take_queue(&mut self) -> Vec<(Queued, Box<[u8]>)> {
        let queue = std::mem::take(&mut self.queue);
        let take = |q: Queued| (q, self.out.get(q.place(self.before)).unwrap_or_default().into());
        queue.into_iter().map(take).collect()
    }

    /// Takes bytes that came in and hands out the messages they complete.
    fn take(
        &mut self,
        bytes: &[u8],
        mut out: impl FnMut(&mut Waiting, &[u8]),
    ) -> Result<(), h2::ProtocolError> {
        let waiting = &mut self.waiting;
        if let Some(h2) = &mut self.h2 {
            h2.take(bytes, |id, body| {
                // An answer to another query is none to that of its stream.
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

/// Hands out the whole messages of a stream; how many bytes they take.
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

/// Drops sent bytes that are not needed for a retry, once they are all or many.
fn drop_spent(out: &mut Vec<u8>, written: &mut usize, before: &mut u64, kept: usize) {
    let spent = kept.min(*written);
    if spent == out.len() || spent > SPENT {
        out.drain(..spent);
        *written -= spent;
        *before += spent as u64;
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
        Ticket { origin: 3.into(), due: None, first_sent: 5, again: false, tries: 0, moved: false }
    }

    #[test]
    fn queries_go_out_framed_and_what_is_not_out_comes_back() {
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
        /// However a stream is cut, its messages are the same.
        #[test]
        fn frames_come_whole(
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
            prop_assert!(!c.is_amid());
        }
    }
}
