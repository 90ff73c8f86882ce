//! Packets of the connection-oriented protocol ([C706] chapter 12).
//!
//! [C706]: https://pubs.opengroup.org/onlinepubs/9629399/

use gannet_event::Arg;
use gannet_event::Packer;
use gannet_event::Type;

use crate::support::Bytes;

/// Length of the common header.
pub const HEADER_LENGTH: usize = 16;
/// Fields of the authentication verifier before its value.
const VERIFIER_LENGTH: usize = 8;

/// The common header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Kind of packet.
    pub kind: u8,
    /// Flags.
    flags: u8,
    /// Numbers are little-endian.
    little_endian: bool,
    /// Length of the packet, this header included.
    pub length: u16,
    /// Length of the authentication value.
    auth_length: u16,
    /// Call that the packet belongs to.
    pub call: u32,
}

impl Header {
    /// Reads a header. `None`: it is none, or not of version 5.
    pub fn parse(data: &[u8]) -> Option<Self> {
        let mut b = Bytes(data);
        let [version, _minor, kind, flags, order, ..] = b.array::<8>()?;
        let mut n = Numbers { bytes: b, little_endian: order >> 4 != 0 };
        let header = Self {
            kind,
            flags,
            little_endian: n.little_endian,
            length: n.u16()?,
            auth_length: n.u16()?,
            call: n.u32()?,
        };
        (version == 5).then_some(header)
    }

    /// Whether it is a call's first fragment.
    pub fn is_first(self) -> bool {
        self.flags & 1 != 0
    }

    /// Whether it is a call's last fragment.
    pub fn is_last(self) -> bool {
        self.flags & 2 != 0
    }
}

/// A packet: one fragment of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Header.
    pub header: Header,
    /// The fragment.
    pub fragment: &'a [u8],
    /// The authentication verifier.
    pub auth: Option<Auth<'a>>,
}

/// An authentication verifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Auth<'a> {
    /// The protocol of the login.
    pub kind: u8,
    /// How packets are protected.
    pub level: u8,
    /// Number of the login.
    pub context: u32,
    /// A token of the login.
    pub value: &'a [u8],
}

/// Kind of a packet, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketType(pub u8);

impl PacketType {
    /// Its name in Zeek's scripts; that of a request where the number is none.
    pub fn name(&self) -> &'static str {
        const NAMES: [&str; 21] = [
            "DCE_RPC::REQUEST",
            "DCE_RPC::PING",
            "DCE_RPC::RESPONSE",
            "DCE_RPC::FAULT",
            "DCE_RPC::WORKING",
            "DCE_RPC::NOCALL",
            "DCE_RPC::REJECT",
            "DCE_RPC::ACK",
            "DCE_RPC::CL_CANCEL",
            "DCE_RPC::FACK",
            "DCE_RPC::CANCEL_ACK",
            "DCE_RPC::BIND",
            "DCE_RPC::BIND_ACK",
            "DCE_RPC::BIND_NAK",
            "DCE_RPC::ALTER_CONTEXT",
            "DCE_RPC::ALTER_CONTEXT_RESP",
            "DCE_RPC::AUTH3",
            "DCE_RPC::SHUTDOWN",
            "DCE_RPC::CO_CANCEL",
            "DCE_RPC::ORPHANED",
            "DCE_RPC::RTS",
        ];
        NAMES.get(usize::from(self.0)).copied().unwrap_or(NAMES[0])
    }
}

impl<'a> Packet<'a> {
    /// Reads a packet of exactly its length.
    pub fn parse(data: &'a [u8]) -> Option<Self> {
        let header = Header::parse(data)?;
        let mut b = Bytes(data.get(HEADER_LENGTH..usize::from(header.length))?);
        let auth_length = usize::from(header.auth_length);
        if auth_length == 0 {
            return Some(Self { header, fragment: b.rest(), auth: None });
        }
        let fragment = b.take(b.0.len().checked_sub(auth_length + VERIFIER_LENGTH)?)?;
        let [kind, level, _, _, context @ ..] = b.array::<VERIFIER_LENGTH>()?;
        let context = match header.little_endian {
            true => u32::from_le_bytes(context),
            false => u32::from_be_bytes(context),
        };
        let auth = Auth { kind, level, context, value: b.rest() };
        Some(Self { header, fragment, auth: Some(auth) })
    }
}

/// The contents of a packet; of a fragmented call, those of the last fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body<'a> {
    /// A context is bound to an interface.
    Bind {
        /// Context.
        context: u16,
        /// Interface.
        uuid: Uuid,
        /// Major and minor version.
        version: (u16, u16),
        /// Whether it is a further binding.
        is_further: bool,
    },
    /// The binding is answered: with the port or pipe of the server.
    BindAck(&'a [u8]),
    /// A further binding is answered.
    AlterAck,
    /// An operation is called.
    Request {
        /// Context.
        context: u16,
        /// Operation.
        operation: u16,
        /// Its arguments.
        stub: &'a [u8],
    },
    /// A call is answered.
    Response {
        /// Context.
        context: u16,
        /// Its results.
        stub: &'a [u8],
    },
}

/// Numbers in the order of bytes that the packet has.
struct Numbers<'a> {
    bytes: Bytes<'a>,
    little_endian: bool,
}

impl Numbers<'_> {
    fn u16(&mut self) -> Option<u16> {
        if self.little_endian { self.bytes.u16_le() } else { self.bytes.u16() }
    }

    fn u32(&mut self) -> Option<u32> {
        if self.little_endian { self.bytes.u32_le() } else { self.bytes.u32() }
    }
}

/// Reads a body and shows its parts to `see`. `None`: it is broken from there on.
pub fn body<'a>(header: Header, data: &'a [u8], mut see: impl FnMut(Body<'a>)) -> Option<()> {
    let mut n = Numbers { bytes: Bytes(data), little_endian: header.little_endian };
    match header.kind {
        // Bind and alter context.
        11 | 14 => {
            n.bytes.take(8)?;
            let [contexts, ..] = n.bytes.array::<4>()?;
            // None of them is read where there are more than bytes.
            if usize::from(contexts) > n.bytes.0.len() {
                return None;
            }
            for _ in 0..contexts {
                let context = n.u16()?;
                let [syntaxes, _] = n.bytes.array::<2>()?;
                let raw = n.bytes.array()?;
                let version = (n.u16()?, n.u16()?);
                n.bytes.take(20 * usize::from(syntaxes))?;
                let is_further = header.kind == 14;
                see(Body::Bind { context, uuid: Uuid::new(raw), version, is_further });
            }
        }
        // Their answers.
        12 | 15 => {
            n.bytes.take(8)?;
            let length = usize::from(n.u16()?);
            let address = n.bytes.take(length)?;
            // Aligned to four bytes.
            n.bytes.take((2 + 4 - length % 4) % 4)?;
            let [contexts, ..] = n.bytes.array::<4>()?;
            n.bytes.take(24 * usize::from(contexts))?;
            if header.kind == 12 {
                see(Body::BindAck(address.strip_suffix(b"\0").unwrap_or(address)));
            } else {
                see(Body::AlterAck);
            }
        }
        0 => {
            n.u32()?;
            let (context, operation) = (n.u16()?, n.u16()?);
            if header.flags & 0x80 != 0 {
                n.bytes.take(16)?;
            }
            see(Body::Request { context, operation, stub: n.bytes.rest() });
        }
        2 => {
            n.u32()?;
            let context = n.u16()?;
            n.bytes.take(2)?;
            see(Body::Response { context, stub: n.bytes.rest() });
        }
        _ => {}
    }
    Some(())
}

/// An interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uuid {
    /// Its number.
    pub number: u128,
    /// The same as it lies in the packet.
    pub raw: [u8; 16],
}

impl Uuid {
    fn new(raw: [u8; 16]) -> Self {
        Self { number: uuid(raw), raw }
    }
}

/// Its bytes as they lie in the packet.
impl Arg for Uuid {
    const TYPE: Type = Type::String;

    fn pack(&self, to: &mut Packer<'_>) {
        self.raw.pack(to);
    }
}

/// A UUID as its text has it, of which the first three fields lie in little-endian order.
fn uuid(b: [u8; 16]) -> u128 {
    let [a0, a1, a2, a3, b0, b1, c0, c1, rest @ ..] = b;
    let mut out = [0; 16];
    out[..8].copy_from_slice(&[a3, a2, a1, a0, b1, b0, c1, c0]);
    out[8..].copy_from_slice(&rest);
    u128::from_be_bytes(out)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A packet around a body.
    pub(crate) fn packet(kind: u8, flags: u8, call: u8, body: &[u8]) -> Vec<u8> {
        let length = (HEADER_LENGTH + body.len()) as u16;
        let mut p = vec![5, 0, kind, flags, 0x10, 0, 0, 0];
        p.extend_from_slice(&length.to_le_bytes());
        p.extend_from_slice(&[0, 0, call, 0, 0, 0]);
        p.extend_from_slice(body);
        p
    }

    /// Binds context 1 to samr.
    pub(crate) fn bind() -> Vec<u8> {
        let mut b = vec![0; 8];
        b.extend_from_slice(&[1, 0, 0, 0, 1, 0, 1, 0]);
        b.extend_from_slice(b"\x78\x57\x34\x12\x34\x12\xcd\xab\xef\x00\x01\x23\x45\x67\x89\xac");
        b.extend_from_slice(&[0; 24]);
        packet(11, 3, 1, &b)
    }

    /// Accepts the binding, for a pipe of this name.
    pub(crate) fn bind_ack(name: &[u8]) -> Vec<u8> {
        let mut b = vec![0; 8];
        b.extend_from_slice(&(name.len() as u16).to_le_bytes());
        b.extend_from_slice(name);
        b.resize(b.len().next_multiple_of(4), 0);
        b.extend_from_slice(&[1, 0, 0, 0]);
        b.extend_from_slice(&[0; 24]);
        packet(12, 3, 1, &b)
    }

    /// Calls an operation in context 1.
    pub(crate) fn request(operation: u8) -> Vec<u8> {
        packet(0, 3, 2, &[0, 0, 0, 0, 1, 0, operation, 0, 9, 9])
    }

    /// Answers it.
    pub(crate) fn response() -> Vec<u8> {
        packet(2, 3, 2, &[0, 0, 0, 0, 1, 0, 0, 0, 7])
    }

    fn bodies(data: &[u8]) -> Option<Vec<Body<'_>>> {
        let p = Packet::parse(data)?;
        let mut all = Vec::new();
        body(p.header, p.fragment, |b| all.push(b))?;
        Some(all)
    }

    const SAMR: u128 = 0x1234_5778_1234_abcd_ef00_0123_4567_89ac;

    #[test]
    fn packets() {
        let raw = *b"\x78\x57\x34\x12\x34\x12\xcd\xab\xef\x00\x01\x23\x45\x67\x89\xac";
        let (version, is_further) = ((0, 0), false);
        let bound =
            Body::Bind { context: 1, uuid: Uuid { number: SAMR, raw }, version, is_further };
        assert_eq!(bodies(&bind()), Some(vec![bound]));
        assert_eq!(bodies(&bind_ack(b"\\PIPE\\a\0")), Some(vec![Body::BindAck(b"\\PIPE\\a")]));
        let called = Body::Request { context: 1, operation: 5, stub: b"\x09\x09" };
        assert_eq!(bodies(&request(5)), Some(vec![called]));
        assert_eq!(bodies(&response()), Some(vec![Body::Response { context: 1, stub: b"\x07" }]));
        assert_eq!(bodies(&packet(3, 3, 1, b"")), Some(vec![]));
        let mut many = bind();
        let mut seen = |contexts: u8| {
            many[24] = contexts;
            let mut n = 0;
            let packet = Packet::parse(&many).unwrap();
            let whole = body(packet.header, packet.fragment, |_| n += 1).is_some();
            (n, whole)
        };
        assert_eq!([seen(1), seen(2), seen(45)], [(1, true), (1, false), (0, false)]);
        let mut cut = bind();
        cut[8] -= 1;
        assert_eq!(bodies(&cut), None);
        cut[0] = 4;
        assert_eq!(Header::parse(&cut), None);
    }

    #[test]
    fn verifiers() {
        let mut p = packet(0, 3, 1, b"stub\x09\x02\0\0\0\0\0\0blob");
        p[10] = 4;
        let got = Packet::parse(&p).map(|p| (p.fragment, p.auth));
        assert_eq!(
            got,
            Some((&b"stub"[..], Some(Auth { kind: 9, level: 2, context: 0, value: b"blob" })))
        );
        p[10] = 9;
        assert_eq!(Packet::parse(&p), None);
    }

    #[test]
    fn numbers_the_other_way_round() {
        let mut p = packet(0, 3, 2, &[0, 0, 0, 0, 0, 1, 0, 5]);
        p[4] = 0;
        p[8..10].reverse();
        let called = Body::Request { context: 1, operation: 5, stub: b"" };
        assert_eq!(bodies(&p), Some(vec![called]));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(kind in 0u8..20, data in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = bodies(&data);
            let _ = bodies(&packet(kind, 0x83, 1, &data));
        }
    }
}
