//! A pipeline: a stream of captures, what is kept of it, and records of a batch.

use std::path::Path;
use std::path::PathBuf;

use gannet_capture::Options;
use gannet_capture::Packet;
use gannet_capture::Stream;
use gannet_capture::WriteOptions;
use gannet_capture::Writer;
use gannet_filter::Filter;
use gannet_pipeline::extract::Extractor;
use gannet_pipeline::extract::Message;
use gannet_pipeline::extract::Transport;
use gannet_wire::Network;
use gannet_wire::protocol;

use super::dns;
use super::group::Groups;
use super::join::Join;
use super::latency::Latencies;
use super::latency::Summary;

/// One packet or message, as Lua reads it; see [`DECLARATIONS`](super::DECLARATIONS).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Record {
    /// Nanoseconds since the epoch.
    pub(crate) time: i64,
    /// Of its packet, 1 for the first; 0 for messages.
    pub(crate) number: u64,
    /// All bytes of the packet or message, valid until the next batch.
    pub(crate) bytes: *const u8,
    pub(crate) src: [u8; 16],
    pub(crate) dst: [u8; 16],
    /// Where the bytes stand among those of the batch, for messages.
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
    /// The next record is the response to this query.
    pub(crate) has_pair: u8,
    pub(crate) is_second: u8,
}

impl Default for Record {
    fn default() -> Self {
        Self {
            time: 0,
            number: 0,
            bytes: std::ptr::null(),
            src: [0; 16],
            dst: [0; 16],
            at: 0,
            len: 0,
            wire_len: 0,
            payload_at: 0,
            payload_len: 0,
            name_at: 0,
            name_len: 0,
            link_type: 0,
            sport: 0,
            dport: 0,
            id: 0,
            flags: 0,
            qtype: 0,
            qclass: 0,
            counts: [0; 4],
            proto: 0,
            has_ip: 0,
            has_ports: 0,
            has_question: 0,
            has_pair: 0,
            is_second: 0,
        }
    }
}

impl Record {
    pub(crate) fn is_response(&self) -> bool {
        self.flags & 0x8000 != 0
    }
}

/// Records of a batch, with the bytes and names that they point to.
#[derive(Debug, Default)]
pub(crate) struct Records {
    pub(crate) list: Vec<Record>,
    pub(crate) bytes: Vec<u8>,
    pub(crate) names: Vec<u8>,
}

impl Records {
    fn clear(&mut self) {
        self.list.clear();
        self.bytes.clear();
        self.names.clear();
    }

    /// Bytes of one of these messages.
    pub(crate) fn message(&self, record: &Record) -> &[u8] {
        let at = record.at as usize;
        self.bytes.get(at..at + record.len as usize).unwrap_or_default()
    }

    /// Name of one of these messages.
    pub(crate) fn name(&self, record: &Record) -> &[u8] {
        let at = record.name_at as usize;
        self.names.get(at..at + usize::from(record.name_len)).unwrap_or_default()
    }

    /// Adds a message that stands elsewhere.
    pub(crate) fn push(&mut self, mut record: Record, message: &[u8], name: &[u8]) {
        record.at = self.bytes.len() as u32;
        self.bytes.extend_from_slice(message);
        record.name_at = self.names.len() as u32;
        self.names.extend_from_slice(name);
        self.list.push(record);
    }

    /// Lets messages point to their bytes, which move no more.
    fn settle(&mut self) {
        for record in &mut self.list {
            record.bytes = self.bytes.as_ptr().wrapping_add(record.at as usize);
        }
    }
}

/// What a batch is made of.
enum Kind {
    Packets,
    Messages(Box<Extractor>),
}

/// A pipeline.
pub(crate) struct Flow {
    stream: Stream,
    /// A packet must match all of them.
    filters: Vec<Filter>,
    kind: Kind,
    /// Queries, or responses, alone.
    only_queries: Option<bool>,
    join: Option<Box<Join>>,
    records: Records,
    /// Messages before they are joined.
    unjoined: Records,
    groups: Groups,
    /// What was wrong with a capture; told at the end.
    damage: Option<String>,
    ended: bool,
}

impl Flow {
    pub(crate) fn open(paths: &[PathBuf]) -> Result<Self, gannet_capture::Error> {
        Ok(Self {
            stream: Stream::open(paths, Options::default())?,
            filters: Vec::new(),
            kind: Kind::Packets,
            only_queries: None,
            join: None,
            records: Records::default(),
            unjoined: Records::default(),
            groups: Groups::default(),
            damage: None,
            ended: false,
        })
    }

    pub(crate) fn filter(&mut self, expression: &str) -> Result<(), gannet_filter::Error> {
        self.filters.push(Filter::parse(expression)?);
        Ok(())
    }

    pub(crate) fn dns(&mut self, ports: &[u16]) {
        self.kind = Kind::Messages(Box::new(Extractor::new(ports)));
    }

    pub(crate) fn only(&mut self, queries: bool) {
        self.only_queries = Some(queries);
    }

    pub(crate) fn join(&mut self, timeout: i64) {
        self.join = Some(Box::new(Join::new(timeout)));
    }

    pub(crate) fn records(&self) -> &[Record] {
        &self.records.list
    }

    pub(crate) fn names(&self) -> &[u8] {
        &self.records.names
    }

    /// Reads the next batch that gives records; how many it gives, 0 at the end. A damaged capture
    /// is an error at the end, when all that could be read was handed out.
    pub(crate) fn next(&mut self) -> Result<usize, String> {
        self.records.clear();
        while !self.ended {
            self.unjoined.clear();
            let batch = match self.stream.next_batch() {
                Ok(Some(batch)) => batch,
                Ok(None) => {
                    self.ended = true;
                    if let Some(join) = &mut self.join {
                        join.finish(&mut self.records);
                    }
                    break;
                }
                Err(error) => {
                    self.damage.get_or_insert_with(|| error.to_string());
                    continue;
                }
            };
            let target = if self.join.is_some() { &mut self.unjoined } else { &mut self.records };
            let filters = &self.filters;
            let wanted = batch.iter().filter(|p| matches(filters, p));
            match &mut self.kind {
                Kind::Packets => target.list.extend(wanted.map(|p| of_packet(&p))),
                Kind::Messages(extractor) => {
                    let only = self.only_queries;
                    for packet in wanted {
                        extractor.packet(&packet, &mut |m| {
                            if only.is_none_or(|queries| m.is_query() == queries) {
                                push_message(packet.number, m, target);
                            }
                        });
                    }
                }
            }
            if let Some(join) = &mut self.join {
                join.add(&self.unjoined, &mut self.records);
            }
            if !self.records.list.is_empty() {
                break;
            }
        }
        if matches!(self.kind, Kind::Messages(_)) {
            self.records.settle();
        }
        match self.damage.take_if(|_| self.records.list.is_empty()) {
            Some(damage) => Err(damage),
            None => Ok(self.records.list.len()),
        }
    }

    /// Hands out messages with their names, one by one and without copies, until `call` says that it
    /// has enough. Damage is an error at the end.
    fn messages(&mut self, mut call: impl FnMut(&Record, &[u8]) -> bool) -> Result<(), String> {
        let (only, filters) = (self.only_queries, &self.filters);
        let Kind::Messages(extractor) = &mut self.kind else { return Ok(()) };
        let (mut name, mut goes_on) = (Vec::new(), true);
        while goes_on && !self.ended {
            let batch = match self.stream.next_batch() {
                Ok(Some(batch)) => batch,
                Ok(None) => break,
                Err(error) => {
                    self.damage.get_or_insert_with(|| error.to_string());
                    continue;
                }
            };
            for packet in batch.iter().filter(|p| matches(filters, p)) {
                extractor.packet(&packet, &mut |m| {
                    if goes_on && only.is_none_or(|queries| m.is_query() == queries) {
                        name.clear();
                        goes_on = call(&of_message(packet.number, m, &mut name), &name);
                    }
                });
                if !goes_on {
                    break;
                }
            }
        }
        self.ended = true;
        self.damage.take().map_or(Ok(()), Err)
    }

    /// How long responses took, by the timeout that was set.
    pub(crate) fn latencies(&mut self, limit: Option<u64>) -> Result<Summary, String> {
        let timeout = self.join.as_ref().map_or(i64::MAX, |join| join.timeout());
        let mut latencies = Latencies::new(timeout).ok_or("no memory for a histogram")?;
        let mut left = limit.unwrap_or(u64::MAX);
        self.messages(|record, name| {
            if !record.is_response() {
                if left == 0 {
                    return false;
                }
                left -= 1;
            }
            latencies.add(record, name);
            true
        })?;
        Ok(latencies.summary())
    }

    /// Counts the rest by fields, natively; how many rows there are.
    pub(crate) fn count_by(&mut self, fields: &[u8], limit: Option<u64>) -> Result<usize, String> {
        let mut left = limit.unwrap_or(u64::MAX);
        let mut groups = std::mem::take(&mut self.groups);
        if self.join.is_none() && matches!(self.kind, Kind::Messages(_)) {
            let counted = match left {
                0 => Ok(()),
                _ => self.messages(|record, name| {
                    groups.count(fields, record, name);
                    left -= 1;
                    left > 0
                }),
            };
            self.groups = groups;
            counted?;
            return Ok(self.groups.finish());
        }
        while left > 0 && self.next()? > 0 {
            for record in self.records.list.iter().filter(|r| r.is_second == 0) {
                if left == 0 {
                    break;
                }
                left -= 1;
                groups.count(fields, record, self.records.name(record));
            }
        }
        self.groups = groups;
        Ok(self.groups.finish())
    }

    /// What was counted.
    pub(crate) fn groups(&mut self) -> &mut Groups {
        &mut self.groups
    }

    /// A row of what was counted.
    pub(crate) fn row(&self, row: usize) -> (&[u8], u64) {
        self.groups.row(row)
    }

    /// Writes the rest of the packets to a capture; how many there were.
    pub(crate) fn write(&mut self, path: &Path, limit: Option<u64>) -> Result<u64, String> {
        let text = |e: gannet_capture::Error| e.to_string();
        let mut writer = Writer::create(path, WriteOptions::default()).map_err(text)?;
        let mut left = limit.unwrap_or(u64::MAX);
        while left > 0 {
            let batch = match self.stream.next_batch() {
                Ok(Some(batch)) => batch,
                Ok(None) => break,
                Err(error) => {
                    self.damage.get_or_insert_with(|| error.to_string());
                    continue;
                }
            };
            for packet in batch {
                if left > 0 && matches(&self.filters, &packet) {
                    writer.write(&packet).map_err(text)?;
                    left -= 1;
                }
            }
        }
        let count = writer.packets();
        writer.finish().map_err(text)?;
        self.damage.take().map_or(Ok(count), Err)
    }
}

fn matches(filters: &[Filter], packet: &Packet<'_>) -> bool {
    filters.iter().all(|f| f.matches(packet.link_type.0, packet.data, packet.wire_len))
}

fn of_packet(packet: &Packet<'_>) -> Record {
    let mut record = Record {
        time: packet.time.as_nanos(),
        number: packet.number,
        bytes: packet.data.as_ptr(),
        len: packet.data.len() as u32,
        wire_len: packet.wire_len,
        link_type: packet.link_type.0,
        ..Record::default()
    };
    let Ok(frame) = gannet_wire::link(packet.link_type.0, packet.data, packet.wire_len) else {
        return record;
    };
    let Network::Ip(data) = frame.network else { return record };
    let Ok(ip) = gannet_wire::ip(data, frame.wire_len, false) else { return record };
    (record.src, record.dst) = (ip.src.octets(), ip.dst.octets());
    (record.proto, record.has_ip) = (ip.protocol, 1);
    let mut payload = ip.payload;
    if ip.fragment.is_none_or(|f| f.offset == 0) {
        let ports = match ip.protocol {
            protocol::UDP => {
                gannet_wire::udp(&ip).ok().map(|u| (u.src_port, u.dst_port, u.payload))
            }
            protocol::TCP => {
                gannet_wire::tcp(&ip).ok().map(|t| (t.src_port, t.dst_port, t.payload))
            }
            _ => None,
        };
        if let Some((sport, dport, data)) = ports {
            (record.sport, record.dport, record.has_ports) = (sport, dport, 1);
            payload = data;
        }
    }
    // The payload is a part of the packet, so the difference is its place in it.
    let at = (payload.as_ptr() as usize).wrapping_sub(packet.data.as_ptr() as usize);
    if at <= packet.data.len() {
        (record.payload_at, record.payload_len) = (at as u32, payload.len() as u32);
    }
    record
}

fn push_message(number: u64, m: &Message<'_>, out: &mut Records) {
    let record = of_message(number, m, &mut out.names);
    let at = out.bytes.len() as u32;
    out.bytes.extend_from_slice(m.bytes);
    out.list.push(Record { at, ..record });
}

/// A message's record, with its name behind those in `names`.
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
