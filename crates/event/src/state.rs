//! State of connections and files in events.

use std::borrow::Cow;

use gannet_base::ConnId;
use gannet_base::Interval;
use gannet_base::Proto;
use gannet_base::Time;
use gannet_base::Uid;

/// The state of a connection when an event last mentioned it: Zeek's `connection` record.
#[derive(Debug, PartialEq)]
pub struct ConnState {
    /// Its uid in logs.
    pub uid: Uid,
    /// Originator and responder.
    pub id: ConnId,
    /// Transport.
    pub proto: Proto,
    /// IP protocol number.
    pub ip_proto: u8,
    /// Time of the first packet.
    pub start: Time,
    /// Time from the first to the last packet.
    pub duration: Interval,
    /// History, one letter for each event.
    pub history: Vec<u8>,
    /// Confirmed protocols: Zeek's `service` set.
    pub services: Vec<&'static str>,
    /// Originator and responder.
    pub ends: [EndpointState; 2],
    /// Outer VLAN tag.
    pub vlan: Option<u16>,
    /// Inner VLAN tag.
    pub inner_vlan: Option<u16>,
    /// Tunnels that carry the connection, outermost first.
    pub tunnels: Vec<TunnelState>,
}

impl Clone for ConnState {
    fn clone(&self) -> Self {
        Self {
            history: self.history.clone(),
            services: self.services.clone(),
            tunnels: self.tunnels.clone(),
            ends: self.ends.clone(),
            ..*self
        }
    }

    /// Reuses the vectors of `self`.
    fn clone_from(&mut self, source: &Self) {
        self.history.clone_from(&source.history);
        self.services.clone_from(&source.services);
        self.tunnels.clone_from(&source.tunnels);
        *self = Self {
            history: std::mem::take(&mut self.history),
            services: std::mem::take(&mut self.services),
            tunnels: std::mem::take(&mut self.tunnels),
            ends: source.ends.clone(),
            ..*source
        };
    }
}

/// A tunnel that carries a connection: Zeek's `Tunnel::EncapsulatingConn`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TunnelState {
    /// Its uid, if it has one.
    pub uid: Option<Uid>,
    /// Its endpoints; ports are 0 if the tunnel is not a connection.
    pub id: ConnId,
    /// Transport of the tunnel's connection.
    pub proto: Proto,
    /// IP protocol number of the packets of the tunnel.
    pub ip_proto: u8,
    /// Tunnel type by Zeek's name (`Tunnel::TEREDO`).
    pub kind: &'static str,
}

/// One side of a connection: Zeek's `endpoint` record.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EndpointState {
    /// Number of payload bytes; for TCP from sequence numbers.
    pub size: u64,
    /// State by Zeek's numbers: `TCP_INACTIVE` and so on, or `UDP_INACTIVE`, `UDP_ACTIVE`.
    pub state: u8,
    /// Number of packets.
    pub packets: u64,
    /// Number of bytes in IP packets, headers included.
    pub ip_bytes: u64,
    /// IPv6 flow label.
    pub flow_label: u32,
    /// Link-layer address.
    pub l2: Option<[u8; 6]>,
}

/// Transport state of both sides, which the state of connections does not contain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransportState {
    /// States of originator and responder, by Zeek's numbers.
    pub states: [u8; 2],
    /// Payload bytes of originator and responder.
    pub sizes: [u64; 2],
}

/// Position of a file among those that an analyzer finds. With a seed, the file's uid depends on it, as in Zeek.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FilePart {
    /// Not known: the file is identified by its handle (Zeek's `get_file_handle`).
    #[default]
    Unnamed,
    /// The certificate at this index of a chain.
    Certificate(u32),
    /// The OCSP response stapled to the certificates.
    OcspResponse,
}

/// The state of a file when an event last mentioned it: Zeek's `fa_file` record.
#[derive(Clone, Debug, PartialEq)]
pub struct FileState {
    /// Its uid in logs.
    pub fuid: Uid,
    /// The file from which it was extracted.
    pub parent: Option<Uid>,
    /// The protocol that carries it (`HTTP`, `SSL`, …).
    pub source: Cow<'static, str>,
    /// Whether the originator sent it, if known.
    pub is_orig: Option<bool>,
    /// Connections that carry it.
    pub conns: Vec<(ConnId, Proto)>,
    /// Time of the last data.
    pub last_active: Time,
    /// Number of bytes received.
    pub seen_bytes: u64,
    /// Size in bytes, if known.
    pub total_bytes: Option<u64>,
    /// Number of bytes missing in the middle.
    pub missing_bytes: u64,
    /// Number of bytes that were not delivered because the reassembly buffer overflowed.
    pub overflow_bytes: u64,
    /// Inactivity timeout.
    pub timeout: Interval,
    /// First bytes of the file, if they are stored.
    pub bof: Option<Vec<u8>>,
    /// Position among the files of its source; not a field of Zeek's record.
    pub part: FilePart,
}
