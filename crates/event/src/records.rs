//! Connections and files as records, for listeners that store events.
//!
//! A [`Raised`](crate::Raised) event refers to its connections and files by index, which is valid only during the call
//! of the listener. [`ConnState`] and [`FileState`] are packed as the records declared here, with the names and types
//! of Zeek's `connection` and `fa_file`.

use gannet_base::Proto;
use gannet_base::Uid;

use crate::decl::Param;
use crate::decl::Record;
use crate::decl::Type;
use crate::pack::Arg;
use crate::pack::Id4;
use crate::pack::Packer;
use crate::pack::SetOf;
use crate::state::ConnState;
use crate::state::EndpointState;
use crate::state::FileState;

const fn field(name: &'static str, ty: Type, doc: &'static str) -> Param {
    Param { name, ty, optional: false, doc }
}

const fn optional(name: &'static str, ty: Type, doc: &'static str) -> Param {
    Param { name, ty, optional: true, doc }
}

/// Zeek's `endpoint`.
pub static ENDPOINT: Record = Record {
    name: "endpoint",
    fields: &[
        field("size", Type::Count, "Payload bytes; TCP: by sequence numbers."),
        field("state", Type::Count, "State by Zeek's numbers."),
        field("num_pkts", Type::Count, "Packets."),
        field("num_bytes_ip", Type::Count, "Bytes of IP packets."),
        field("flow_label", Type::Count, "IPv6 flow label."),
        optional("l2_addr", Type::String, "Link-layer address."),
    ],
};

/// Zeek's `connection`, without the fields that scripts add.
pub static CONNECTION: Record = Record {
    name: "connection",
    fields: &[
        field("id", Type::ConnId, "Originator and responder."),
        field("orig", Type::Record(&ENDPOINT), "The originator's side."),
        field("resp", Type::Record(&ENDPOINT), "The responder's side."),
        field("start_time", Type::Time, "Time of the first packet."),
        field("duration", Type::Interval, "From the first to the last packet."),
        field("service", Type::Set(&Type::String), "Confirmed protocols."),
        field("history", Type::String, "What happened, a letter each."),
        field("uid", Type::String, "Its name in all logs."),
        optional("vlan", Type::Count, "Outer VLAN tag."),
        optional("inner_vlan", Type::Count, "Inner VLAN tag."),
        field(
            "tunnels",
            Type::Vector(&Type::String),
            "Uids of the tunnels that carry it, outermost first.",
        ),
    ],
};

/// Zeek's `fa_file`, without the fields that scripts add; `conns` is a set of connection ids.
pub static FILE: Record = Record {
    name: "fa_file",
    fields: &[
        field("id", Type::String, "Its name in all logs."),
        optional("parent_id", Type::String, "The file that it was extracted from."),
        field("source", Type::String, "What carried it."),
        optional("is_orig", Type::Bool, "Whether the originator sent it."),
        field("conns", Type::Vector(&Type::ConnId), "Connections that carried it."),
        field("last_active", Type::Time, "Time of the last data."),
        field("seen_bytes", Type::Count, "Bytes seen."),
        optional("total_bytes", Type::Count, "Size, where it is known."),
        field("missing_bytes", Type::Count, "Bytes missed."),
        field("overflow_bytes", Type::Count, "Bytes that could not be put in order."),
        field("timeout_interval", Type::Interval, "Silence after which the file ends."),
        optional("bof_buffer", Type::String, "First bytes, where they are kept."),
    ],
};

impl Arg for EndpointState {
    const TYPE: Type = Type::Record(&ENDPOINT);

    fn pack(&self, to: &mut Packer<'_>) {
        self.size.pack(to);
        u64::from(self.state).pack(to);
        self.packets.pack(to);
        self.ip_bytes.pack(to);
        self.flow_label.pack(to);
        self.l2.map(mac).pack(to);
    }
}

/// Formats a link-layer address.
fn mac(address: [u8; 6]) -> [u8; 17] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = [b':'; 17];
    for (digits, byte) in text.chunks_mut(3).zip(address) {
        digits[0] = DIGITS[usize::from(byte >> 4)];
        digits[1] = DIGITS[usize::from(byte & 15)];
    }
    text
}

impl Arg for ConnState {
    const TYPE: Type = Type::Record(&CONNECTION);

    fn pack(&self, to: &mut Packer<'_>) {
        Id4(self.id, self.proto, self.ip_proto).pack(to);
        self.ends.iter().for_each(|end| end.pack(to));
        self.start.pack(to);
        self.duration.pack(to);
        to.list(self.services.len());
        self.services.iter().for_each(|name| name.pack(to));
        self.history.as_slice().pack(to);
        self.uid.pack(to);
        self.vlan.pack(to);
        self.inner_vlan.pack(to);
        let tunnels: Vec<Uid> = self.tunnels.iter().filter_map(|tunnel| tunnel.uid).collect();
        tunnels.pack(to);
    }
}

impl Arg for FileState {
    const TYPE: Type = Type::Record(&FILE);

    fn pack(&self, to: &mut Packer<'_>) {
        self.fuid.pack(to);
        self.parent.pack(to);
        self.source.as_ref().pack(to);
        self.is_orig.pack(to);
        let number = |proto| match proto {
            Proto::Tcp => 6,
            Proto::Udp => 17,
            Proto::Icmp => 1,
            _ => 0,
        };
        let ends = |(id, proto): &(_, Proto)| Id4(*id, *proto, number(*proto));
        SetOf(self.conns.iter().map(ends).collect::<Vec<_>>()).0.pack(to);
        self.last_active.pack(to);
        self.seen_bytes.pack(to);
        self.total_bytes.pack(to);
        self.missing_bytes.pack(to);
        self.overflow_bytes.pack(to);
        self.timeout.pack(to);
        self.bof.as_deref().pack(to);
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use gannet_base::Addr;
    use gannet_base::ConnId;
    use gannet_base::Interval;
    use gannet_base::Time;
    use gannet_base::UidSource;

    use super::*;
    use crate::FilePart;
    use crate::TunnelState;
    use crate::read::Reader;
    use crate::read::Value;

    fn id() -> ConnId {
        let (orig_h, resp_h) = (Addr::v4([10, 0, 0, 1]), Addr::v4([10, 0, 0, 2]));
        ConnId { orig_h, orig_p: 1, resp_h, resp_p: 2 }
    }

    #[test]
    fn a_packed_connection_has_the_fields_of_its_record() {
        let uids = UidSource::new(1);
        let mut ends: [EndpointState; 2] = Default::default();
        (ends[0].size, ends[1].l2) = (7, Some([1, 2, 3, 4, 5, 0xab]));
        let state = ConnState {
            uid: uids.connection(1, 0),
            id: id(),
            proto: Proto::Tcp,
            ip_proto: 6,
            start: Time::from_secs(5),
            duration: Interval::from_secs(2),
            history: b"ShADd".to_vec(),
            services: vec!["http", "ssl"],
            ends,
            vlan: Some(9),
            inner_vlan: None,
            tunnels: vec![TunnelState {
                uid: Some(uids.connection(2, 0)),
                id: id(),
                proto: Proto::Udp,
                ip_proto: 17,
                kind: "Tunnel::TEREDO",
            }],
        };
        let mut bytes = Vec::new();
        state.pack(&mut Packer::new(&mut bytes));
        let mut reader = Reader::new(&bytes);
        let mut values = Vec::new();
        for param in CONNECTION.fields {
            let value = reader.param(param);
            match (&value, &param.ty) {
                (Some(Value::Record), Type::Record(record)) => {
                    values.extend(record.fields.iter().map(|f| reader.param(f)));
                }
                (Some(Value::Set(n)), _) | (Some(Value::Vector(n)), _) => {
                    values.extend((0..*n).map(|_| reader.value(&Type::String)));
                }
                _ => values.push(value),
            }
        }
        assert_eq!(reader.value(&Type::Bool), None);
        assert_eq!(values[0], Some(Value::ConnId(id(), Proto::Tcp, 6)));
        assert_eq!((&values[1], &values[6]), (&Some(Value::Count(7)), &None));
        assert_eq!(values[12], Some(Value::String(b"01:02:03:04:05:ab")));
        assert_eq!(values[13], Some(Value::Time(Time::from_secs(5))));
        assert_eq!(values[15], Some(Value::String(b"http")));
        assert_eq!(values[17], Some(Value::String(b"ShADd")));
        assert_eq!((&values[19], &values[20]), (&Some(Value::Count(9)), &None));
        assert_eq!(values[21], Some(Value::String(uids.connection(2, 0).to_string().as_bytes())));
    }

    #[test]
    fn a_packed_file_has_the_fields_of_its_record() {
        let state = FileState {
            fuid: UidSource::new(1).connection(1, 0),
            parent: None,
            source: Cow::Borrowed("HTTP"),
            is_orig: Some(false),
            conns: vec![(id(), Proto::Udp)],
            last_active: Time::from_secs(1),
            seen_bytes: 3,
            total_bytes: None,
            missing_bytes: 4,
            overflow_bytes: 5,
            timeout: Interval::from_secs(120),
            bof: Some(b"GIF".to_vec()),
            part: FilePart::Unnamed,
        };
        let mut bytes = Vec::new();
        state.pack(&mut Packer::new(&mut bytes));
        let mut reader = Reader::new(&bytes);
        for param in FILE.fields {
            let value = reader.param(param);
            match param.name {
                "source" => assert_eq!(value, Some(Value::String(b"HTTP"))),
                "is_orig" => assert_eq!(value, Some(Value::Bool(false))),
                "conns" => {
                    assert_eq!(value, Some(Value::Vector(1)));
                    let ends = reader.value(&Type::ConnId);
                    assert_eq!(ends, Some(Value::ConnId(id(), Proto::Udp, 17)));
                }
                "total_bytes" | "parent_id" => assert_eq!(value, None),
                "missing_bytes" => assert_eq!(value, Some(Value::Count(4))),
                "bof_buffer" => assert_eq!(value, Some(Value::String(b"GIF"))),
                _ => assert!(value.is_some(), "{}", param.name),
            }
        }
        assert_eq!(reader.value(&Type::Bool), None);
    }
}
