//! Waiting for events of many sockets with epoll(7).

use std::os::fd::AsFd;
use std::os::fd::OwnedFd;

use rustix::event::PollFd;
use rustix::event::PollFlags;
use rustix::event::Timespec;
use rustix::event::epoll;
use rustix::io::Errno;

use crate::Error;

/// Maximum number of sockets reported by one poll; the others are reported by the next.
const MAX_EVENTS: usize = 64;

/// Awaited events of a socket; a hangup is reported in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interest {
    pub(crate) read: bool,
    pub(crate) write: bool,
}

impl Interest {
    pub(crate) const READ: Self = Self { read: true, write: false };
    pub(crate) const BOTH: Self = Self { read: true, write: true };
}

/// A socket that is ready.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    /// The key it was added with.
    pub(crate) key: usize,
    /// The socket is readable, or the peer has closed the connection.
    pub(crate) read: bool,
    /// The socket is writable, or connecting has ended.
    pub(crate) write: bool,
}

pub(crate) struct Poller {
    epoll: OwnedFd,
    ready: Vec<Ready>,
}

impl Poller {
    pub(crate) fn new() -> Result<Self, Error> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(failed)?;
        Ok(Self { epoll, ready: Vec::with_capacity(MAX_EVENTS) })
    }

    /// Adds a socket, until it is closed.
    pub(crate) fn add(
        &self,
        socket: &impl AsFd,
        key: usize,
        interest: Interest,
    ) -> Result<(), Error> {
        epoll::add(&self.epoll, socket, data(key), flags(interest)).map_err(failed)
    }

    /// Changes the awaited events of a socket.
    pub(crate) fn change(&self, socket: &impl AsFd, key: usize, interest: Interest) {
        // Fails only for sockets that were not added or are closed.
        epoll::modify(&self.epoll, socket, data(key), flags(interest)).unwrap_or_default();
    }

    /// Waits for events, at most this long.
    pub(crate) fn poll(&mut self, nanoseconds: u64) {
        let timeout = Timespec {
            tv_sec: (nanoseconds / 1_000_000_000) as i64,
            tv_nsec: (nanoseconds % 1_000_000_000) as _,
        };
        let empty = epoll::Event { flags: epoll::EventFlags::empty(), data: data(0) };
        let mut events = [empty; MAX_EVENTS];
        if nanoseconds > 0 {
            // ppoll(2) takes nanoseconds on every kernel, epoll_wait(2) milliseconds on older ones.
            let mut ready = [PollFd::new(&self.epoll, PollFlags::IN)];
            rustix::event::poll(&mut ready, Some(&timeout)).unwrap_or_default();
        }
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        // A signal ends a wait early; the caller's loop then checks whether to stop.
        let found = epoll::wait(&self.epoll, &mut events, Some(&now)).unwrap_or(0);
        self.ready.clear();
        self.ready.extend(events[..found.min(MAX_EVENTS)].iter().map(Ready::of));
    }

    /// Number of sockets that the last [`poll`](Self::poll) found ready.
    pub(crate) fn len(&self) -> usize {
        self.ready.len()
    }

    /// One of the ready sockets.
    pub(crate) fn ready(&self, index: usize) -> Option<Ready> {
        self.ready.get(index).copied()
    }
}

impl Ready {
    fn of(event: &epoll::Event) -> Self {
        // Copied out: the kernel's struct is packed.
        let (flags, key) = (event.flags, event.data.u64() as usize);
        let over = epoll::EventFlags::HUP | epoll::EventFlags::ERR;
        let read = flags.intersects(epoll::EventFlags::IN | over);
        let write = flags.intersects(epoll::EventFlags::OUT | over);
        Self { key, read, write }
    }
}

fn data(key: usize) -> epoll::EventData {
    epoll::EventData::new_u64(key as u64)
}

fn flags(interest: Interest) -> epoll::EventFlags {
    let mut flags = epoll::EventFlags::empty();
    flags.set(epoll::EventFlags::IN, interest.read);
    flags.set(epoll::EventFlags::OUT, interest.write);
    flags
}

fn failed(error: Errno) -> Error {
    Error::System { what: "epoll", error: error.into() }
}
