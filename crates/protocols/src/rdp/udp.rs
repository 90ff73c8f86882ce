use gannet_base::Dir;

use crate::Analyze;
use crate::Context;
use crate::Tag;
use crate::support::Bytes;

/// Flags of a message (MS-RDPEUDP section 2.2.2.1).
mod flag {
    pub(super) const SYN: u16 = 1;
    pub(super) const ACK: u16 = 4;
    pub(super) const DATA: u16 = 8;
    pub(super) const ACK_OF_ACKS: u16 = 0x100;
    pub(super) const CORRELATION_ID: u16 = 0x800;
    pub(super) const SYNEX: u16 = 0x1000;
}

/// Version 2 of the transport, as SYNs announce it.
const VERSION_2: u16 = 0x0101;

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Syn,
    SynAck,
    Data,
}

/// The analyzer of RDP over UDP.
pub struct Udp {
    state: State,
    /// What client and server announced.
    version: [u16; 2],
}

/// A SYN or SYN-ACK.
struct Syn {
    ack: u32,
    flags: u16,
    version: u16,
}

impl Udp {
    /// For a new connection.
    pub fn new(_cx: &mut Context<'_>) -> Self {
        Self { state: State::Syn, version: [1; 2] }
    }

    fn message(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) -> Option<()> {
        let mut b = Bytes(data);
        match self.state {
            State::Syn => {
                let syn = syn(&mut b)?;
                if from.is_orig() && syn.flags & flag::SYN != 0 && syn.ack == u32::MAX {
                    self.version[0] = syn.version;
                    self.state = State::SynAck;
                }
            }
            State::SynAck => {
                let syn = syn(&mut b)?;
                if !from.is_orig() && syn.flags & (flag::SYN | flag::ACK) != 0 {
                    self.version[1] = syn.version;
                    self.state = State::Data;
                    cx.confirm(Tag::RdpEudp);
                }
            }
            State::Data if self.version == [VERSION_2; 2] => {
                b.take(3)?;
            }
            State::Data => {
                b.take(6)?;
                let flags = b.u16()?;
                let acks = usize::from(b.u16()?);
                b.take(acks)?;
                // The list of acks is padded to a multiple of four bytes.
                let read = data.len() - b.0.len();
                b = Bytes(b.0.get(read.wrapping_neg() & 3..).unwrap_or_default());
                if flags & flag::ACK_OF_ACKS != 0 {
                    b.take(4)?;
                }
                if flags & flag::DATA != 0 {
                    b.take(8)?;
                }
            }
        }
        Some(())
    }
}

fn syn(b: &mut Bytes<'_>) -> Option<Syn> {
    let ack = b.u32()?;
    b.u16()?;
    let flags = b.u16()?;
    b.take(8)?;
    if flags & flag::CORRELATION_ID != 0 {
        b.take(32)?;
    }
    // As to Zeek, a message that announces no version cannot be read.
    if flags & flag::SYNEX == 0 {
        return None;
    }
    b.u16()?;
    let version = b.u16()?;
    if version == VERSION_2 {
        b.take(32)?;
    }
    Some(Syn { ack, flags, version })
}

impl Analyze for Udp {
    fn datagram(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8], _len: u32) {
        if self.message(cx, from, data).is_none() {
            let reason = "Binpac exception: binpac exception: out_of_bound";
            cx.violation(Tag::RdpEudp, reason, &[]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Harness;
    use gannet_base::Proto;

    #[test]
    fn a_handshake() {
        let mut h = Harness::new(Proto::Udp, 3389);
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
        a.datagram(&mut h.cx(), Dir::Orig, b"\0\0\0\x01\x04\0\0\x04\0\x09\x07\0", 0);
        assert!(h.violated(Tag::RdpEudp));
    }

    #[test]
    fn a_version_must_be_told() {
        let mut h = Harness::new(Proto::Udp, 3389);
        let mut a = Udp::new(&mut h.cx());
        let syn = b"\xff\xff\xff\xff\x04\x00\x00\x01\0\0\0\x01\x04\xd0\x04\xd0";
        a.datagram(&mut h.cx(), Dir::Orig, syn, 0);
        assert!(h.violated(Tag::RdpEudp));
    }
}
