//! Connections and files as events show them.

use std::borrow::Cow;

use gannet_base::ConnId;
use gannet_base::Interval;
use gannet_base::Proto;
use gannet_base::Time;
use gannet_base::Uid;

/// A connection as it was when an event last mentioned it: Zeek's `connection` record.
#[derive(Debug, PartialEq)]
pub struct ConnState {
    /// Its name in all logs.
    pub uid: Uid,
    /// Originator and responder.
    pub id: ConnId,
    /// Transport.
    pub proto: Proto,
    /// IP protocol number.
    pub ip_proto: u8,
    /// Time of the first packet.
    pub start: Time,
    /// From the first to the last packet.
    pub duration: Interval,
    /// History, one letter for each event.
    pub history: Vec<u8>,
    /// Confirmed protocols, as Zeek's `service` set holds them.
    pub services: Vec<&'static str>,
    /// Originator and responder.
    pub ends: [EndpointState; 2],
    /// Outer VLAN tag.
    pub vlan: Option<u16>,
    /// Inner VLAN tag.
    pub inner_vlan: Option<u16>,
    /// The tunnels that carry it, outermost first.
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

    /// The same, in its own vectors.
    fn clone_from(&mut self, of: &Self) {
        self.history.clone_from(&of.history);
        self.services.clone_from(&of.services);
        self.tunnels.clone_from(&of.tunnels);
        *self = Self {
            history: std::mem::take(&mut self.history),
            services: std::mem::take(&mut self.services),
            tunnels: std::mem::take(&mut self.tunnels),
            ends: of.ends.clone(),
            ..*of
        };
    }
}

/// A tunnel around a connection: Zeek's `Tunnel::EncapsulatingConn`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TunnelState {
    /// Its name, where it has one.
    pub uid: Option<Uid>,
    /// Its ends; ports are 0 where it is no connection.
    pub id: ConnId,
    /// Transport of that connection.
    pub proto: Proto,
    /// IP protocol of the packets that carry it.
    pub ip_proto: u8,
    /// Its kind as Zeek's scripts name it (`Tunnel::TEREDO`).
    pub kind: &'static str,
}

/// One side of a connection: Zeek's `endpoint` record.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EndpointState {
    /// Payload bytes; TCP: by sequence numbers.
    pub size: u64,
    /// State by Zeek's numbers (`TCP_INACTIVE` and so on, `UDP_INACTIVE`, `UDP_ACTIVE`).
    pub state: u8,
    /// Packets.
    pub packets: u64,
    /// Bytes of IP packets.
    pub ip_bytes: u64,
    /// IPv6 flow label.
    pub flow_label: u32,
    /// Link-layer address.
    pub l2: Option<[u8; 6]>,
}

/// Transport state of both sides, which connections do not store themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransportState {
    /// States by Zeek's numbers.
    pub states: [u8; 2],
    /// Payload bytes.
    pub sizes: [u64; 2],
}

/// Which of the files that an analyzer finds a file is. Under seeds, scripts see it in the file's name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FilePart {
    /// The analyzer says nothing about that: the handle of the file is asked for.
    #[default]
    Unnamed,
    /// The certificate with this number of a chain.
    Certificate(u32),
    /// The OCSP response that came with the certificates.
    OcspResponse,
}

/// A file as it was when an event last mentioned it: Zeek's `fa_file` record.
#[derive(Clone, Debug, PartialEq)]
pub struct FileState {
    /// Its name in all logs.
    pub fuid: Uid,
    /// The file that it was extracted from.
    pub parent: Option<Uid>,
    /// The protocol that carried it (`HTTP`, `SSL`, …).
    pub source: Cow<'static, str>,
    /// Whether the originator sent it, if known.
    pub is_orig: Option<bool>,
    /// Connections that carried it.
    pub conns: Vec<(ConnId, Proto)>,
    /// Time of the last data.
    pub last_active: Time,
    /// Bytes seen.
    pub seen_bytes: u64,
    /// Size, if known.
    pub total_bytes: Option<u64>,
    /// Bytes missed.
    pub missing_bytes: u64,
    /// Bytes that could not be put in order.
    pub overflow_bytes: u64,
    /// Silence after which the file is given up.
    pub timeout: Interval,
    /// First bytes, if they are stored.
    pub bof: Option<Vec<u8>>,
    /// Which of the files of its source it is; no field of the record.
    pub part: FilePart,
}
