//! IGMP: events for listeners, and the treatment of its packets by Zeek with Spicy.

use gannet_base::Addr;
use gannet_capture::Packet;
use gannet_protocols::packet::build;
use gannet_protocols::packet::events::IgmpGroup;
use gannet_protocols::packet::events::IgmpGroupType;
use gannet_protocols::packet::events::IgmpKind;
use gannet_protocols::packet::events::IgmpLeave;
use gannet_protocols::packet::events::IgmpMessage;
use gannet_protocols::packet::events::IgmpQuery;
use gannet_protocols::packet::events::IgmpReport1;
use gannet_protocols::packet::events::IgmpReport2;
use gannet_protocols::packet::events::IgmpReport3;
use gannet_wire::Ip;
use gannet_wire::igmp::Kind;
use gannet_wire::igmp::Message;
use gannet_wire::igmp::Record;
use gannet_wire::igmp::Records;

use crate::Shard;
use crate::tunnels::Encapsulation;

/// The name of the analyzer.
const IGMP: &str = "IGMP";

impl Shard {
    /// Whether the events of IGMP have a listener.
    #[inline]
    pub(crate) fn wants_igmp(&self) -> bool {
        let events = &self.env.logs.events;
        events.wants::<IgmpMessage>()
            || events.wants::<IgmpQuery>()
            || events.wants::<IgmpReport1>()
            || events.wants::<IgmpReport2>()
            || events.wants::<IgmpLeave>()
            || events.wants::<IgmpReport3<'_>>()
    }

    /// Processes a message. Returns whether the message belongs to no connection, as in Zeek with
    /// Spicy.
    #[cold]
    pub(crate) fn igmp(&mut self, ip: &Ip<'_>, encapsulation: &Encapsulation) -> bool {
        let is_read = self.options.inner_protocols && self.options.scripted;
        if !is_read && !self.wants_igmp() {
            return false;
        }
        let Some(message) = Message::parse(ip.payload) else { return is_read };
        if is_read && !message.is_intact && self.verifies(ip.src) {
            self.flow_weird("igmp_invalid_checksum", ip, IGMP, encapsulation);
        }
        if self.wants_igmp() {
            self.groups.push((ip.src, ip.payload.to_vec()));
        }
        is_read
    }

    /// Raises the events of the packet's messages after the packet was processed.
    #[cold]
    pub(crate) fn raise_igmp(&mut self, packet: &Packet<'_>) {
        for (source, payload) in std::mem::take(&mut self.groups) {
            let Some(message) = Message::parse(&payload) else { continue };
            let events = &mut self.env.logs.events;
            if events.wants::<IgmpMessage>() {
                let p = build::frame(packet.link_type.0, packet.data, packet.wire_len, None);
                let msg_type = IgmpKind(message.kind);
                events.raise(&IgmpMessage { packet: p, msg_type });
            }
            if !message.is_intact {
                continue;
            }
            let group_addr = message.group;
            match message.kind {
                Kind::Query if events.wants::<IgmpQuery>() => {
                    events.raise(&IgmpQuery { source, group_addr });
                }
                Kind::Report1 if events.wants::<IgmpReport1>() => {
                    events.raise(&IgmpReport1 { source, group_addr });
                }
                Kind::Report2 if events.wants::<IgmpReport2>() => {
                    events.raise(&IgmpReport2 { source, group_addr });
                }
                Kind::Leave if events.wants::<IgmpLeave>() => {
                    events.raise(&IgmpLeave { source, group_addr });
                }
                Kind::Report3 if events.wants::<IgmpReport3<'_>>() => {
                    events.raise(&IgmpReport3 { source, groups: groups(message.records) });
                }
                _ => {}
            }
        }
    }
}

/// Converts group records to the form of events.
fn groups(records: Records<'_>) -> Vec<IgmpGroup<'_>> {
    records.map(group).collect()
}

fn group(record: Record<'_>) -> IgmpGroup<'_> {
    let Record { kind, group, sources, data } = record;
    let sources: Vec<_> = sources.as_chunks::<4>().0.iter().map(|a| Addr::v4(*a)).collect();
    IgmpGroup {
        group_type: IgmpGroupType(kind),
        aux_data_len: data.len() as u64,
        num_sources: sources.len() as u64,
        multicast_addr: group,
        sources,
        aux_data: data,
    }
}
