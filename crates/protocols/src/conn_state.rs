//! Connections as events show them.

pub mod events;
use gannet_base::Dir;
use gannet_base::Proto;
use gannet_event::ConnState;
use gannet_event::Connection;
use gannet_event::EndpointState;
use gannet_event::Event;
use gannet_event::Sinks;
use gannet_flow::Conn;

use crate::Tag;

/// Raises an event of a connection if the event [has a listener](gannet_event::Events::wants).
#[cold]
#[inline(never)]
pub fn raise<E: Event>(sinks: &mut Sinks, conn: &Conn, make: impl FnOnce(Connection) -> E) {
    let c = mention(sinks, conn);
    sinks.events.raise(&make(c));
}

/// The current state of a connection as events carry it; queued events of the connection are
/// updated to it.
pub fn mention(sinks: &mut Sinks, conn: &Conn) -> Connection {
    let state = state(sinks, conn);
    sinks.events.connection(state)
}

/// Updates queued events of a connection to its state at the end of a packet.
#[cold]
pub fn mention_end(sinks: &mut Sinks, conn: &Conn) {
    let state = state(sinks, conn);
    sinks.events.set_end(state);
}

/// Raises an event that carries the current state of a connection, at the end of a packet. Queued
/// events keep the state that they have.
#[cold]
pub fn raise_at_end<E: Event>(sinks: &mut Sinks, conn: &Conn, make: impl FnOnce(Connection) -> E) {
    let c = mention_unless_known(sinks, conn);
    sinks.events.raise(&make(c));
    sinks.events.show_end(c);
    mention_end(sinks, conn);
}

/// The state of a connection that queued events carry, or its current one if there is none.
pub fn mention_unless_known(sinks: &mut Sinks, conn: &Conn) -> Connection {
    let state = state(sinks, conn);
    sinks.events.connection_unless_known(state)
}

/// Zeek's numbers of UDP states (`UDP_INACTIVE`, `UDP_ACTIVE`): nothing was sent, or something
/// was.
const UDP_STATES: [u8; 2] = [0, 1];

/// Bit in the history of an ICMP connection for a side that sent a message that may not be counted
/// yet.
const ICMP_SENT: u32 = 3;

fn state(sinks: &mut Sinks, conn: &Conn) -> ConnState {
    let (mut history, mut services) = sinks.events.spare();
    history.extend_from_slice(conn.history.as_bytes());
    let service = |s: &u8| Tag::ALL.get(usize::from(*s)).map(|tag| tag.script_service());
    services.extend(conn.services.as_slice().iter().filter_map(service));
    let transport = sinks.events.transport();
    let link = conn.link();
    let end = |side: Dir| {
        let sent = conn.sent(side);
        let (size, state) = match conn.proto {
            Proto::Tcp => (transport.sizes[side.index()], transport.states[side.index()]),
            Proto::Udp => (sent.payload, UDP_STATES[usize::from(conn.is_active(side))]),
            Proto::Icmp => {
                let is_active = sent.packets > 0 || conn.has_noted(side, ICMP_SENT);
                (sent.payload, u8::from(is_active))
            }
            _ => (sent.payload, 0),
        };
        EndpointState {
            size,
            state,
            packets: u64::from(sent.packets),
            ip_bytes: sent.ip_bytes,
            flow_label: conn.flow_label(side),
            l2: link.l2[side.index()].filter(|address| *address != [0; 6]),
        }
    };
    ConnState {
        uid: conn.uid,
        id: conn.id,
        proto: conn.proto,
        ip_proto: conn.ip_proto,
        start: conn.start,
        duration: conn.last.micros_since(conn.start),
        history,
        services,
        ends: [end(Dir::Orig), end(Dir::Resp)],
        vlan: link.vlan,
        inner_vlan: link.inner_vlan,
        tunnels: Vec::new(),
    }
}
