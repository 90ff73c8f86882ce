use gannet_base::Dir;

use super::events::RdpEudpData;
use super::events::RdpEudpEstablished;
use super::events::RdpEudpSyn;
use super::events::RdpEudpSynAck;
use crate::Analyze;
use crate::Context;
use crate::Tag;
use crate::support::OutOfBound;
use crate::support::Record;
use crate::support::RecordFault;

/// Flags of a message (MS-RDPEUDP section 2.2.2.1).
mod flag {
    pub(super) const SYN: u16 = 1;
    pub(super) const ACK: u16 = 4;
    pub(super) const DATA: u16 = 8;
    pub(super) const ACK_OF_ACKS: u16 = 0x100;
    pub(super) const CORRELATION_ID: u16 = 0x800;
    pub(super) const SYNEX: u16 = 0x1000;
}

/// Version 2 of the transport, as announced in SYNs.
const VERSION_2: u16 = 0x0101;

/// Bits of the first byte of a version 2 message that contain its type.
const PACKET_TYPE: u8 = 0x78;
/// The type of a message without content, as Zeek reads it.
const DUMMY: u8 = 8;

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Syn,
    SynAck,
    Ack,
    Data,
}

/// The analyzer of RDP over UDP.
pub struct Udp {
    state: State,
    /// Versions that client and server announced.
    version: [u16; 2],
}

/// A SYN or SYN-ACK.
struct Syn {
    ack: u32,
    flags: u16,
    version: u16,
}

impl Udp {
    /// Creates the analyzer of a new connection.
    pub fn new(_cx: &mut Context<'_>) -> Self {
        Self { state: State::Syn, version: [1; 2] }
    }

    fn message(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) -> Result<(), RecordFault> {
        match self.state {
            State::Syn => {
                let syn = syn("RDPEUDP_SYN", data)?;
                if from.is_orig() && syn.flags & flag::SYN != 0 && syn.ack == u32::MAX {
                    self.version[0] = syn.version;
                    cx.raise(|c| RdpEudpSyn { c });
                    self.state = State::SynAck;
                }
            }
            State::SynAck => {
                let syn = syn("RDPEUDP_SYNACK", data)?;
                if !from.is_orig() && syn.flags & (flag::SYN | flag::ACK) != 0 {
                    self.version[1] = syn.version;
                    self.state = State::Ack;
                    cx.raise(|c| RdpEudpSynAck { c });
                    cx.confirm(Tag::RdpEudp);
                }
            }
            State::Ack | State::Data if self.version == [VERSION_2; 2] => {
                let mut record_reader = Record::new("RDPEUDP2_ACK", data);
                let is_dummy = record_reader.upto("header", 3)?[0] & PACKET_TYPE == DUMMY;
                let rest = record_reader.rest();
                if !is_dummy {
                    self.raise_data(cx, from, 2, rest);
                }
            }
            State::Ack | State::Data => {
                let rest = acks(data)?;
                self.raise_data(cx, from, 1, rest);
            }
        }
        Ok(())
    }

    /// Raises the event of data, which completes the handshake if it is the first.
    fn raise_data(&mut self, cx: &mut Context<'_>, from: Dir, version: u64, data: &[u8]) {
        if self.state == State::Ack {
            self.state = State::Data;
            cx.raise(|c| RdpEudpEstablished { c, version });
        }
        let is_orig = from.is_orig();
        cx.raise(|c| RdpEudpData { c, is_orig, version, data });
    }
}

/// Parses a version 1 message that may acknowledge others, and returns the data that it carries.
fn acks(data: &[u8]) -> Result<&[u8], OutOfBound> {
    let mut record_reader = Record::new("RDPEUDP1_ACK", data);
    let flags = be16(record_reader.upto("fec_header", 8)?, 6);
    let mut acks = Record::new("RDPUDP_ACK_VECTOR_HEADER", record_reader.rest());
    let n = be16(acks.upto("uAckVectorSize", 2)?, 0);
    acks.list("AckVectorElement", n, 1)?;
    // The list is padded to a multiple of four bytes.
    acks.upto("", acks.at.wrapping_neg() & 3)?;
    let mut rest = acks.rest();
    for (wanted, record, n) in [
        (flag::ACK_OF_ACKS, "RDPUDP_ACK_OF_ACKVECTOR_HEADER", 4),
        (flag::DATA, "RDPUDP_SOURCE_PAYLOAD_HEADER", 8),
    ] {
        if flags & wanted != 0 {
            let mut header = Record::new(record, rest);
            header.all(n)?;
            rest = header.rest();
        }
    }
    Ok(rest)
}

fn be16(data: &[u8], at: usize) -> u16 {
    data.get(at..at + 2).map_or(0, |b| u16::from_be_bytes([b[0], b[1]]))
}

fn syn(record: &'static str, data: &[u8]) -> Result<Syn, RecordFault> {
    let mut record_reader = Record::new(record, data);
    let head = record_reader.upto("syndata_payload", 16)?;
    let ack = head.first_chunk().map_or(0, |a| u32::from_be_bytes(*a));
    let flags = be16(head, 6);
    let mut rest = record_reader.rest();
    if flags & flag::CORRELATION_ID != 0 {
        let mut id = Record::new("RDPUDP_CORRELATION_ID_PAYLOAD", rest);
        id.all(32)?;
        rest = id.rest();
    }
    if flags & flag::SYNEX == 0 {
        return Err(RecordFault::NoCase);
    }
    let mut extended = Record::new("RDPUDP_SYNEX_PAYLOAD", rest);
    let version = be16(extended.upto("uUdpVer", 4)?, 2);
    if version == VERSION_2 {
        extended.list("has_cookie_hash", 32, 1)?;
    }
    Ok(Syn { ack, flags, version })
}

impl Analyze for Udp {
    fn datagram(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8], _len: u32) {
        if let Err(e) = self.message(cx, from, data) {
            cx.violation(Tag::RdpEudp, &e.to_string(), &[]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::BINPAC;
    use crate::testing::Harness;
    use gannet_base::Proto;

    #[test]
    fn a_handshake() {
        let mut h = Harness::new(Proto::Udp, 3389);
        h.listen("rdpeudp_");
        let mut a = Udp::new(&mut h.cx());
        let mut syn = b"\xff\xff\xff\xff\x04\x00\x10\x01".to_vec();
        syn.extend_from_slice(&[0; 8]);
        syn.extend_from_slice(b"\x00\x01\x00\x02");
        a.datagram(&mut h.cx(), Dir::Orig, &syn, 0);
        assert!(!h.confirmed(Tag::RdpEudp));
        syn[7] = 5;
        a.datagram(&mut h.cx(), Dir::Resp, &syn, 0);
        assert!(h.confirmed(Tag::RdpEudp));
        a.datagram(&mut h.cx(), Dir::Orig, b"\0\0\0\x01\x04\0\0\x04\0\x01\x07\0", 0);
        assert!(!h.violated(Tag::RdpEudp));
        a.datagram(
            &mut h.cx(),
            Dir::Resp,
            b"\0\0\0\x01\x04\0\0\x0c\0\x01\x07\0\0\0\0\x01\0\0\0\x01ab",
            0,
        );
        assert_eq!(
            h.events(),
            [
                "rdpeudp_syn ",
                "rdpeudp_synack ",
                r#"rdpeudp_established "version":1"#,
                r#"rdpeudp_data "is_orig":true,"version":1,"data":"""#,
                r#"rdpeudp_data "is_orig":false,"version":1,"data":"ab""#,
            ]
        );
        for (data, end) in [
            (&b"\0\0\0\x01\x04\0\0"[..], "RDPEUDP1_ACK:fec_header: 8 > 7"),
            (b"\0\0\0\x01\x04\0\0\x04\0", "RDPUDP_ACK_VECTOR_HEADER:uAckVectorSize: 2 > 1"),
            // A repeated SYN-ACK: its sequence number is read as the length of a list.
            (
                b"\0\0\0\0\x04\0\x10\x05\x12\x34\x56\x78\0\0\0\0\0\x01\0\x01",
                "RDPUDP_ACK_VECTOR_HEADER:AckVectorElement: 4660 > 10",
            ),
            (
                b"\0\0\0\x01\x04\0\0\x04\0\x09\x07\0",
                "RDPUDP_ACK_VECTOR_HEADER:AckVectorElement: 9 > 2",
            ),
            (b"\0\0\0\x01\x04\0\0\x04\0\x01\x07", "RDPUDP_ACK_VECTOR_HEADER: 4 > 3"),
            (b"\0\0\0\x01\x04\0\0\x0c\0\x01\x07\0\x01", "RDPUDP_SOURCE_PAYLOAD_HEADER: 8 > 1"),
        ] {
            let mut h = Harness::new(Proto::Udp, 3389);
            let mut a = Udp { state: State::Data, version: [1; 2] };
            a.datagram(&mut h.cx(), Dir::Orig, data, 0);
            let reason = format!("{BINPAC}out_of_bound: {end}");
            assert_eq!(h.violations(), [(Tag::RdpEudp, reason)]);
        }
    }

    #[test]
    fn a_version_is_required() {
        let mut h = Harness::new(Proto::Udp, 3389);
        let mut a = Udp::new(&mut h.cx());
        let syn = b"\xff\xff\xff\xff\x04\x00\x00\x01\0\0\0\x01\x04\xd0\x04\xd0";
        a.datagram(&mut h.cx(), Dir::Orig, syn, 0);
        let reason = format!("{BINPAC}invalid case: -");
        assert_eq!(h.violations(), [(Tag::RdpEudp, reason)]);
    }
}
