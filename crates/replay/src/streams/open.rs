//! Opening of connections.

use std::cmp::Reverse;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use rustls::ClientConfig;

use crate::Transport;
use crate::byte_stream::ByteStream;
use crate::connection::Connection;
use crate::h2;
use crate::poller::Interest;
#[cfg(feature = "quic")]
use crate::quic;
use crate::socket;
use crate::transport_link::TransportLink;

use super::CloseReason;
use super::Refusal;
use super::Worker;

/// A TLS session that a client can resume.
pub(super) enum ResumableSession {
    Tls(Arc<ClientConfig>),
    #[cfg(feature = "quic")]
    Quic(quic::Client),
}

impl Worker<'_> {
    /// Slot of the connection for the client's next query.
    pub(super) fn connection(&mut self, client: usize, now: u64) -> Result<usize, Refusal> {
        let client = client % (self.max_connections / 2).max(1);
        if self.clients.len() <= client {
            self.clients.resize(client + 1, None);
        }
        if let Some(slot) = self.clients[client]
            && let Some(c) = self.connections.get_mut(slot).and_then(Option::as_mut)
        {
            let most = self.options.policy.queries;
            if most.is_none_or(|most| c.accepted < most.max(1)) && !c.is_going_away() {
                return Ok(slot);
            }
            c.closing = true;
            self.clients[client] = None;
            if c.is_quiet() {
                self.close(slot, CloseReason::Enough, now);
            }
        }
        if self.connections.len() - self.free.len() >= self.max_connections {
            return Err(Refusal::Full);
        }
        self.open(client, now)
    }

    /// Starts a connection.
    fn open(&mut self, client: usize, now: u64) -> Result<usize, Refusal> {
        let index = (client * self.options.threads + self.number) as u32;
        let local = self.options.bind.map(|range| range.address(index));
        let link = match self.link(client, local) {
            Ok(link) => link,
            Err(error) => {
                // Out of file descriptors: connections that close free some.
                let full = error.raw_os_error() == Some(libc::EMFILE);
                if full && self.connections.len() > self.free.len() {
                    return Err(Refusal::Full);
                }
                self.failed(&error, now);
                return Err(Refusal::Failed);
            }
        };
        let slot = self.free.pop().unwrap_or(self.connections.len());
        if self.poller.add(&link, slot, Interest::BOTH).is_err() {
            self.free.push(slot);
            return Err(Refusal::Failed);
        }
        if slot >= self.connections.len() {
            self.connections.resize_with(slot + 1, || None);
        }
        self.serial += 1;
        let serial = self.serial;
        let h2 = self.h2();
        self.connections[slot] = Some(Connection::new(link, h2, (client, serial), now));
        self.clients[client] = Some(slot);
        self.idle_checks.push(Reverse((self.idle_after(now), slot, serial)));
        self.schedule_timer(slot, now);
        Ok(slot)
    }

    /// The transport of a client's new connection.
    fn link(&mut self, client: usize, local: Option<IpAddr>) -> io::Result<TransportLink> {
        let target = self.options.target;
        let Some(tls) = self.options.tls.as_ref().filter(|_| self.options.transport.is_secure())
        else {
            return Ok(TransportLink::ByteStream(ByteStream::new(
                socket::stream(local, target)?,
                None,
            )));
        };
        if self.sessions.len() <= client {
            self.sessions.resize_with(client + 1, || None);
        }
        let resume = self.options.policy.resumption;
        let own = match &mut self.sessions[client] {
            Some(own) => own,
            none => none.insert(match self.options.transport {
                #[cfg(feature = "quic")]
                Transport::Quic => {
                    ResumableSession::Quic(tls.quic_client(resume).map_err(io::Error::other)?)
                }
                transport => {
                    ResumableSession::Tls(tls.client(resume, transport == Transport::Https))
                }
            }),
        };
        match own {
            ResumableSession::Tls(own) => {
                let session = tls.begin(own).map_err(io::Error::other)?;
                Ok(TransportLink::ByteStream(ByteStream::new(
                    socket::stream(local, target)?,
                    Some(session),
                )))
            }
            #[cfg(feature = "quic")]
            ResumableSession::Quic(own) => {
                Ok(TransportLink::Quic(Box::new(quic::Session::begin(own, local, target)?)))
            }
        }
    }

    /// The HTTP/2 session, if the transport is HTTPS.
    fn h2(&self) -> Option<h2::Session> {
        let options = self.options;
        let tls = options.tls.as_ref().filter(|_| options.transport == Transport::Https)?;
        Some(h2::Session::new(&tls.authority(options.target.port()), &options.path))
    }

    /// Records a connection that could not be established.
    pub(super) fn failed(&mut self, error: &io::Error, now: u64) {
        let counts = &mut self.stats.at(now).counts;
        counts.connections_failed += 1;
        self.stats.first_error.get_or_insert_with(|| error.to_string());
        self.stats.failed(error, now);
    }
}
