//! Records: packets and messages as Lua reads them.

use gannet_capture::Packet;
use gannet_pipeline::extract::Message;
use gannet_pipeline::extract::Transport;
use gannet_wire::Datagram;
use gannet_wire::Decoded;
use gannet_wire::protocol;

use super::dns;

/// One packet or message, as Lua reads it; see [`DECLARATIONS`](super::DECLARATIONS).
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Record {
    /// Nanoseconds since the epoch.
    pub(crate) time: i64,
    /// Number of its packet, from 1; 0 for messages.
    pub(crate) number: u64,
    /// Address of the bytes of the packet or message, valid until the next batch. An integer, so
    /// that records can be sent between threads; Lua uses it as a pointer.
    pub(crate) bytes: usize,
    pub(crate) src: [u8; 16],
    pub(crate) dst: [u8; 16],
    /// Offset of a message's bytes among those of the batch.
    pub(crate) at: u32,
    pub(crate) len: u32,
    pub(crate) wire_len: u32,
    pub(crate) payload_at: u32,
    pub(crate) payload_len: u32,
    pub(crate) name_at: u32,
    pub(crate) name_len: u16,
    pub(crate) link_type: u16,
    pub(crate) sport: u16,
    pub(crate) dport: u16,
    pub(crate) id: u16,
    pub(crate) flags: u16,
    pub(crate) qtype: u16,
    pub(crate) qclass: u16,
    pub(crate) counts: [u16; 4],
    pub(crate) proto: u8,
    pub(crate) has_ip: u8,
    pub(crate) has_ports: u8,
    pub(crate) has_question: u8,
    /// 1 if the next record is the response to this query.
    pub(crate) has_pair: u8,
    pub(crate) is_second: u8,
}

impl Record {
    pub(crate) fn is_response(&self) -> bool {
        self.flags & 0x8000 != 0
    }
}

/// Records of a batch, with the bytes and names that they refer to.
#[derive(Debug, Default)]
pub(crate) struct Records {
    pub(crate) list: Vec<Record>,
    pub(crate) bytes: Vec<u8>,
    pub(crate) names: Vec<u8>,
}

impl Records {
    pub(crate) fn clear(&mut self) {
        self.list.clear();
        self.bytes.clear();
        self.names.clear();
    }

    /// The bytes of a message in this list.
    pub(crate) fn message(&self, record: &Record) -> &[u8] {
        let at = record.at as usize;
        self.bytes.get(at..at + record.len as usize).unwrap_or_default()
    }

    /// The name of a message in this list.
    pub(crate) fn name(&self, record: &Record) -> &[u8] {
        let at = record.name_at as usize;
        self.names.get(at..at + usize::from(record.name_len)).unwrap_or_default()
    }

    /// Adds a message stored elsewhere.
    pub(crate) fn push(&mut self, mut record: Record, message: &[u8], name: &[u8]) {
        record.at = self.bytes.len() as u32;
        self.bytes.extend_from_slice(message);
        record.name_at = self.names.len() as u32;
        self.names.extend_from_slice(name);
        self.list.push(record);
    }

    /// Adds a message of a packet.
    pub(crate) fn add(&mut self, number: u64, m: &Message<'_>) {
        let record = of_message(number, m, &mut self.names);
        let at = self.bytes.len() as u32;
        self.bytes.extend_from_slice(m.bytes);
        self.list.push(Record { at, ..record });
    }

    /// Adds the records of two lists in the order of packet numbers; for equal numbers, `a`
    /// precedes `b`.
    pub(crate) fn add_merged(&mut self, a: &Self, b: &Self) {
        let (mut xs, mut ys) = (a.list.iter().peekable(), b.list.iter().peekable());
        loop {
            let from_b = |y: &&Record| xs.peek().is_none_or(|x| y.number < x.number);
            let (record, from) = match ys.next_if(from_b) {
                Some(record) => (record, b),
                None => match xs.next() {
                    Some(record) => (record, a),
                    None => return,
                },
            };
            self.push(*record, from.message(record), from.name(record));
        }
    }

    /// Sets the addresses of messages, once `bytes` does not change any more.
    pub(crate) fn set_addresses(&mut self) {
        let start = self.bytes.as_ptr().expose_provenance();
        for record in &mut self.list {
            record.bytes = start + record.at as usize;
        }
    }
}

/// A packet's record.
pub(crate) fn of_packet(packet: &Packet<'_>) -> Record {
    let mut record = Record {
        time: packet.time.as_nanos(),
        number: packet.number,
        bytes: packet.data.as_ptr().expose_provenance(),
        len: packet.data.len() as u32,
        wire_len: packet.wire_len,
        link_type: packet.link_type.0,
        ..Record::default()
    };
    let decoded = gannet_wire::decode(packet.link_type.0, packet.data, packet.wire_len);
    let Some(Datagram { ip, transport }) = decoded.as_ref().ok().and_then(Decoded::datagram) else {
        return record;
    };
    (record.src, record.dst) = (ip.src.octets(), ip.dst.octets());
    (record.proto, record.has_ip) = (ip.protocol, 1);
    if let Some((sport, dport)) = transport.ports() {
        (record.sport, record.dport, record.has_ports) = (sport, dport, 1);
    }
    let payload = transport.payload().unwrap_or(ip.payload);
    // The payload is a slice of the packet, so the difference is its offset.
    let at = (payload.as_ptr() as usize).wrapping_sub(packet.data.as_ptr() as usize);
    if at <= packet.data.len() {
        (record.payload_at, record.payload_len) = (at as u32, payload.len() as u32);
    }
    record
}

/// A message's record; appends its name to `names`.
fn of_message(number: u64, m: &Message<'_>, names: &mut Vec<u8>) -> Record {
    let header = |at| dns::u16_at(m.bytes, at).unwrap_or(0);
    let name_at = names.len();
    let question = dns::question(m.bytes, names);
    let asked = question.unwrap_or_default();
    Record {
        time: m.time.as_nanos(),
        number,
        src: m.source.0.octets(),
        dst: m.destination.0.octets(),
        len: m.bytes.len() as u32,
        wire_len: m.bytes.len() as u32,
        name_at: name_at as u32,
        name_len: (names.len() - name_at) as u16,
        sport: m.source.1,
        dport: m.destination.1,
        id: header(0),
        flags: header(2),
        qtype: asked.qtype,
        qclass: asked.qclass,
        counts: [header(4), header(6), header(8), header(10)],
        proto: if m.transport == Transport::Tcp { protocol::TCP } else { protocol::UDP },
        has_ip: 1,
        has_ports: 1,
        has_question: u8::from(question.is_some()),
        ..Record::default()
    }
}
