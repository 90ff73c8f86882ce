use gannet_base::Dir;

use crate::Analyze;
use crate::Context;
use crate::Tag;
use crate::support::Bytes;

/// Flags of a datagram ([MS-RDPEUDP] §2.2.2.1).
const SYN: u16 = 0x0001;
const ACK: u16 = 0x0004;
const DATA: u16 = 0x0008;
const ACK_OF_ACKS: u16 = 0x0100;
const CORRELATION: u16 = 0x0800;
const VERSION: u16 = 0x1000;
/// Version of the protocol from which on datagrams look different.
const VERSION_3: u16 = 0x0101;

/// Where the handshake stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Syn,
    SynAck,
    Open,
}

/// The analyzer of a connection over UDP: recognises the handshake.
pub struct Udp {
    state: State,
    /// What each side speaks, by [`Dir::index`].
    versions: [u16; 2],
}

impl Udp {
    /// For a new connection.
    pub fn new(_cx: &mut Context<'_>) -> Self {
        Self { state: State::Syn, versions: [1, 1] }
    }

    /// Reads a datagram. `None`: it is broken.
    fn read(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) -> Option<()> {
        let mut b = Bytes(data);
        if self.state == State::Open {
            return self.open(&mut b);
        }
        let acknowledged = b.u32()?;
        b.u16()?;
        let flags = b.u16()?;
        b.take(8)?;
        if flags & CORRELATION != 0 {
            b.take(32)?;
        }
        let mut version = None;
        if flags & VERSION != 0 {
            b.u16()?;
            let number = b.u16()?;
            if number == VERSION_3 {
                b.take(32)?;
            }
            version = Some(number);
        }
        // Without a version it cannot be told what follows.
        self.shake(cx, from, flags, acknowledged, version?);
        Some(())
    }

    fn shake(
        &mut self,
        cx: &mut Context<'_>,
        from: Dir,
        flags: u16,
        acknowledged: u32,
        version: u16,
    ) {
        let is_next = match self.state {
            State::Syn => from.is_orig() && flags & SYN != 0 && acknowledged == u32::MAX,
            _ => !from.is_orig() && flags & (SYN | ACK) != 0,
        };
        if !is_next {
            return;
        }
        self.versions[from.index()] = version;
        if self.state == State::Syn {
            self.state = State::SynAck;
        } else {
            cx.confirm(Tag::RdpEudp);
            self.state = State::Open;
        }
    }

    fn open(&self, b: &mut Bytes<'_>) -> Option<()> {
        if self.versions == [VERSION_3; 2] {
            return b.take(3).map(|_| ());
        }
        b.take(6)?;
        let flags = b.u16()?;
        let acks = usize::from(b.u16()?);
        // Padded to four bytes.
        b.take((2 + acks).next_multiple_of(4) - 2)?;
        if flags & ACK_OF_ACKS != 0 {
            b.take(4)?;
        }
        if flags & DATA != 0 {
            b.take(8)?;
        }
        Some(())
    }
}

impl Analyze for Udp {
    fn datagram(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8], _len: u32) {
        if self.read(cx, from, data).is_none() {
            cx.violation(Tag::RdpEudp, "Binpac exception: binpac exception", &[]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Harness;
    use gannet_base::Proto;

    fn syn(acknowledged: u32, flags: u16) -> Vec<u8> {
        let mut d = acknowledged.to_be_bytes().to_vec();
        d.extend_from_slice(&[0, 64]);
        d.extend_from_slice(&(flags | VERSION).to_be_bytes());
        d.extend_from_slice(&[0, 0, 0, 1, 4, 0xd0, 4, 0xd0, 0, 1, 0, 2]);
        d.resize(1232, 0);
        d
    }

    #[test]
    fn a_handshake() {
        let mut h = Harness::new(Proto::Udp, 3389);
        let mut a = Udp::new(&mut h.cx());
        a.datagram(&mut h.cx(), Dir::Orig, &syn(u32::MAX, SYN), 1232);
        assert!(!h.confirmed(Tag::RdpEudp));
        a.datagram(&mut h.cx(), Dir::Resp, &syn(1, SYN | ACK), 1232);
        assert!(h.confirmed(Tag::RdpEudp));
        a.datagram(&mut h.cx(), Dir::Orig, b"\0\0\0\x02\0\x40\0\x04\0\0\0\0", 12);
        assert!(!h.violated(Tag::RdpEudp));
        a.datagram(&mut h.cx(), Dir::Orig, b"\0", 1);
        assert!(h.violated(Tag::RdpEudp));
    }

    #[test]
    fn sides_matter() {
        let mut h = Harness::new(Proto::Udp, 3389);
        let mut a = Udp::new(&mut h.cx());
        a.datagram(&mut h.cx(), Dir::Resp, &syn(u32::MAX, SYN), 1232);
        a.datagram(&mut h.cx(), Dir::Resp, &syn(1, SYN | ACK), 1232);
        assert!(h.requests.is_empty());
        a.datagram(&mut h.cx(), Dir::Orig, &syn(u32::MAX, SYN)[..16], 16);
        assert!(h.violated(Tag::RdpEudp));
    }
}
