//! Packets of the connection-oriented protocol ([C706] chapter 12).
//!
//! [C706]: https://pubs.opengroup.org/onlinepubs/9629399/

use gannet_event::Arg;
use gannet_event::Packer;
use gannet_event::Type;

use crate::support::Bytes;
use crate::support::OutOfBound;
use crate::support::Record;
use crate::support::RecordFault;
#[cfg(test)]
use crate::support::error_text;

/// Length of the common header, in bytes.
pub const HEADER_LENGTH: usize = 16;
/// Length of the fields of the authentication verifier before its value, in bytes.
const VERIFIER_LENGTH: usize = 8;

/// The common header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Packet type.
    pub kind: u8,
    /// Flags.
    flags: u8,
    /// Numbers are little-endian.
    little_endian: bool,
    /// Length of the packet including this header, in bytes.
    pub length: u16,
    /// Length of the authentication value, in bytes.
    auth_length: u16,
    /// Identifier of the call.
    pub call: u32,
}

impl Header {
    /// Parses a header; `None` if it is incomplete or not of version 5.
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

    /// Length of the fragment in bytes; negative if the authentication verifier exceeds the packet.
    fn fragment_length(self) -> i64 {
        let auth = i64::from(self.auth_length);
        let verifier = if auth > 0 { VERIFIER_LENGTH as i64 + auth } else { 0 };
        i64::from(self.length) - HEADER_LENGTH as i64 - verifier
    }

    /// Whether the packet is the first fragment of a call.
    pub fn is_first(self) -> bool {
        self.flags & 1 != 0
    }

    /// Whether the packet is the last fragment of a call.
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
    /// Authentication protocol.
    pub kind: u8,
    /// Authentication level: the protection of packets.
    pub level: u8,
    /// Identifier of the security context.
    pub context: u32,
    /// Authentication token.
    pub value: &'a [u8],
}

/// A packet type, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketType(pub u8);

impl PacketType {
    /// Name of the type in Zeek's scripts; that of a request for an unknown number.
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
    /// Parses a complete packet.
    pub fn parse(data: &'a [u8]) -> Result<Self, RecordFault> {
        let header = Header::parse(data).ok_or(RecordFault::Value("DCE_RPC_Header:rpc_vers"))?;
        let mut record = Record::new("DCE_RPC_PDU", data);
        record.at = HEADER_LENGTH;
        let length = header.fragment_length();
        record.string("frag", length)?;
        let fragment = &data[HEADER_LENGTH..record.at];
        let auth = Auth::parse(record.rest(), header.little_endian);
        Ok(Self { header, fragment, auth })
    }
}

impl<'a> Auth<'a> {
    /// Parses the authentication verifier after a fragment, if any.
    fn parse(data: &'a [u8], little_endian: bool) -> Option<Self> {
        let mut b = Bytes(data);
        let [kind, level, _, _, context @ ..] = b.array::<VERIFIER_LENGTH>()?;
        let context = match little_endian {
            true => u32::from_le_bytes(context),
            false => u32::from_be_bytes(context),
        };
        Some(Self { kind, level, context, value: b.rest() })
    }
}

/// A part of the body of a packet; of a fragmented call, that of the last fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body<'a> {
    /// Request to bind a context to an interface.
    Bind {
        /// Identifier of the context.
        context: u16,
        /// UUID of the interface.
        uuid: Uuid,
        /// Major and minor version of the interface.
        version: (u16, u16),
        /// Whether another context is bound (alter context).
        is_further: bool,
    },
    /// Accepted binding, with the port or pipe of the server.
    BindAck(&'a [u8]),
    /// Response to the binding of another context.
    AlterAck,
    /// Call of an operation.
    Request {
        /// Identifier of the context.
        context: u16,
        /// Number of the operation.
        operation: u16,
        /// The arguments.
        stub: &'a [u8],
    },
    /// Response to a call.
    Response {
        /// Identifier of the context.
        context: u16,
        /// The results.
        stub: &'a [u8],
    },
}

/// A reader of numbers in the byte order of the packet.
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

/// Reads a number of two bytes in the byte order of the packet.
fn number(header: Header, bytes: &[u8], at: usize) -> u16 {
    let mut n = Numbers { bytes: Bytes(&bytes[at..]), little_endian: header.little_endian };
    n.u16().unwrap_or_default()
}

/// Parses a body and passes its parts to `visit`, up to the first malformed part.
pub fn body<'a>(
    header: Header,
    data: &'a [u8],
    mut visit: impl FnMut(Body<'a>),
) -> Result<(), OutOfBound> {
    match header.kind {
        REQUEST => visit(request(header, data)?),
        RESPONSE => {
            let mut r = Record::new("DCE_RPC_Response", data);
            let fixed = r.upto("stub_pad", 8)?;
            visit(Body::Response { context: number(header, fixed, 4), stub: r.rest() });
        }
        BIND => bind_requests(header, Record::new("DCE_RPC_Bind", data), visit)?,
        ALTER_CONTEXT => bind_requests(header, Record::new("DCE_RPC_AlterContext", data), visit)?,
        BIND_ACK => {
            let address = bind_response(header, Record::new("DCE_RPC_Bind_Ack", data))?;
            visit(Body::BindAck(address.strip_suffix(b"\0").unwrap_or(address)));
        }
        ALTER_CONTEXT_RESP => {
            bind_response(header, Record::new("DCE_RPC_AlterContext_Resp", data))?;
            visit(Body::AlterAck);
        }
        _ => {}
    }
    Ok(())
}

const REQUEST: u8 = 0;
const RESPONSE: u8 = 2;
const BIND: u8 = 11;
const BIND_ACK: u8 = 12;
const ALTER_CONTEXT: u8 = 14;
const ALTER_CONTEXT_RESP: u8 = 15;

/// Parses the call of an operation.
fn request(header: Header, data: &[u8]) -> Result<Body<'_>, OutOfBound> {
    let mut r = Record::new("DCE_RPC_Request", data);
    let fixed = r.upto("opnum", 8)?;
    if header.flags & 0x80 != 0 {
        r.upto("uuid", 16)?;
    }
    let (context, operation) = (number(header, fixed, 4), number(header, fixed, 6));
    Ok(Body::Request { context, operation, stub: r.rest() })
}

/// Parses the contexts of a bind or alter context request.
fn bind_requests<'a>(
    header: Header,
    mut body: Record<'a>,
    mut visit: impl FnMut(Body<'a>),
) -> Result<(), OutOfBound> {
    body.upto("assoc_group_id", 8)?;
    let mut data = body.rest();
    let remaining = data.len() as i64;
    for _ in 0..contexts(&mut data, "request_contexts", remaining)? {
        let mut request = Record::new("ContextRequest", data);
        let fixed = request.upto("reserved", 4)?;
        data = request.rest();
        let (raw, version) = syntax(header, &mut data)?;
        check_count("ContextRequest", "transfer_syntaxes", fixed[2], data)?;
        for _ in 0..fixed[2] {
            syntax(header, &mut data)?;
        }
        let context = number(header, fixed, 0);
        let is_further = header.kind == ALTER_CONTEXT;
        visit(Body::Bind { context, uuid: Uuid::new(raw), version, is_further });
    }
    Ok(())
}

/// Parses the response to a bind or alter context request. Returns the secondary address.
fn bind_response<'a>(header: Header, mut body: Record<'a>) -> Result<&'a [u8], OutOfBound> {
    const FIXED: usize = 10;
    let fixed = body.upto("sec_addr_length", FIXED)?;
    let address = body.upto("sec_addr", usize::from(number(header, fixed, FIXED - 2)))?;
    let end = body.at.next_multiple_of(4);
    let mut data = body.data.get(end..).unwrap_or_default();
    let remaining = body.data.len() as i64 - end as i64;
    for _ in 0..contexts(&mut data, "reply_contexts", remaining)? {
        let mut reply = Record::new("ContextReply", data);
        reply.upto("ack_reason", 4)?;
        data = reply.rest();
        syntax(header, &mut data)?;
    }
    Ok(address)
}

/// Parses the number of contexts. `remaining` is the number of remaining bytes; negative if the padding exceeds the data.
fn contexts(data: &mut &[u8], field: &'static str, remaining: i64) -> Result<u8, OutOfBound> {
    const FIXED: usize = 4;
    const RECORD: &str = "ContextList";
    let (fixed, rest) = data.split_at_checked(FIXED).ok_or(OutOfBound::short_of(
        RECORD,
        "reserved",
        FIXED as i64,
        remaining,
    ))?;
    *data = rest;
    check_count(RECORD, field, fixed[0], rest)?;
    Ok(fixed[0])
}

/// Checks that a list does not have more elements than bytes follow.
fn check_count(
    record: &'static str,
    field: &'static str,
    count: u8,
    data: &[u8],
) -> Result<(), OutOfBound> {
    if usize::from(count) > data.len() {
        return Err(OutOfBound::new(record, field, count.into(), data.len()));
    }
    Ok(())
}

/// Parses the UUID and the version of an interface.
fn syntax(header: Header, data: &mut &[u8]) -> Result<([u8; 16], (u16, u16)), OutOfBound> {
    let mut r = Record::new("Syntax", data);
    let mut raw = [0; 16];
    raw.copy_from_slice(r.upto("uuid", 16)?);
    let version = r.upto("ver_minor", 4)?;
    *data = r.rest();
    Ok((raw, (number(header, version, 0), number(header, version, 2))))
}

/// UUID of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uuid {
    /// The UUID as a number.
    pub number: u128,
    /// The UUID in the byte order of the packet.
    pub raw: [u8; 16],
}

impl Uuid {
    fn new(raw: [u8; 16]) -> Self {
        Self { number: uuid(raw), raw }
    }
}

/// Packed in the byte order of the packet.
impl Arg for Uuid {
    const TYPE: Type = Type::String;

    fn pack(&self, to: &mut Packer<'_>) {
        self.raw.pack(to);
    }
}

/// Converts a UUID, whose first three fields are little-endian in the packet, to a number.
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

    /// A packet with this body.
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

    /// Responds to the call.
    pub(crate) fn response() -> Vec<u8> {
        packet(2, 3, 2, &[0, 0, 0, 0, 1, 0, 0, 0, 7])
    }

    fn bodies(data: &[u8]) -> Option<Vec<Body<'_>>> {
        let p = Packet::parse(data).ok()?;
        let mut all = Vec::new();
        body(p.header, p.fragment, |b| all.push(b)).ok()?;
        Some(all)
    }

    /// The parse error of a packet.
    fn parse_error(data: &[u8]) -> String {
        let packet = Packet::parse(data);
        let wrong = packet.and_then(|p| Ok(body(p.header, p.fragment, |_| {})?)).unwrap_err();
        error_text(wrong)
    }

    #[test]
    fn parse_errors() {
        let cut = |kind, of: Vec<u8>, n: usize| parse_error(&packet(kind, 3, 1, &of[16..16 + n]));
        assert_eq!(cut(BIND, bind(), 7), "out_of_bound: DCE_RPC_Bind:assoc_group_id: 8 > 7");
        assert_eq!(cut(BIND, bind(), 9), "out_of_bound: ContextList:reserved: 4 > 1");
        assert_eq!(cut(BIND, bind(), 12), "out_of_bound: ContextList:request_contexts: 1 > 0");
        assert_eq!(cut(BIND, bind(), 14), "out_of_bound: ContextRequest:reserved: 4 > 2");
        assert_eq!(cut(BIND, bind(), 30), "out_of_bound: Syntax:uuid: 16 > 14");
        assert_eq!(cut(BIND, bind(), 35), "out_of_bound: Syntax:ver_minor: 20 > 19");
        let none = "out_of_bound: ContextRequest:transfer_syntaxes: 1 > 0";
        assert_eq!(cut(ALTER_CONTEXT, bind(), 36), none);
        let ack = || bind_ack(b"\\PIPE\\ab\0");
        let length = "out_of_bound: DCE_RPC_Bind_Ack:sec_addr_length: 10 > 9";
        assert_eq!(cut(BIND_ACK, ack(), 9), length);
        let address = "out_of_bound: DCE_RPC_AlterContext_Resp:sec_addr: 19 > 18";
        assert_eq!(cut(ALTER_CONTEXT_RESP, ack(), 18), address);
        assert_eq!(cut(BIND_ACK, ack(), 19), "out_of_bound: ContextList:reserved: 4 > -1");
        assert_eq!(cut(BIND_ACK, ack(), 25), "out_of_bound: ContextReply:ack_reason: 4 > 1");
        assert_eq!(cut(REQUEST, request(1), 7), "out_of_bound: DCE_RPC_Request:opnum: 8 > 7");
        let object = packet(REQUEST, 0x83, 1, &[0; 9]);
        assert_eq!(parse_error(&object), "out_of_bound: DCE_RPC_Request:uuid: 24 > 9");
        let pad = "out_of_bound: DCE_RPC_Response:stub_pad: 8 > 5";
        assert_eq!(cut(RESPONSE, response(), 5), pad);
    }

    #[test]
    fn lengths_that_do_not_fit() {
        let mut p = packet(REQUEST, 3, 1, &[]);
        p[8] = 3;
        assert_eq!(parse_error(&p), "out_of_bound: DCE_RPC_PDU:frag: 3 > 16");
        p[10] = 5;
        assert_eq!(parse_error(&p), "out_of_bound: DCE_RPC_PDU:frag: -10 > 16");
        p[0] = 4;
        assert_eq!(parse_error(&p), "&enforce violation : DCE_RPC_Header:rpc_vers");
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
            let whole = body(packet.header, packet.fragment, |_| n += 1).is_ok();
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
            Ok((&b"stub"[..], Some(Auth { kind: 9, level: 2, context: 0, value: b"blob" })))
        );
        p[10] = 9;
        assert!(Packet::parse(&p).is_err());
    }

    #[test]
    fn numbers_in_big_endian_order() {
        let mut p = packet(0, 3, 2, &[0, 0, 0, 0, 0, 1, 0, 5]);
        p[4] = 0;
        p[8..10].reverse();
        let called = Body::Request { context: 1, operation: 5, stub: b"" };
        assert_eq!(bodies(&p), Some(vec![called]));
    }

    proptest! {
        #[test]
        fn any_bytes_are_parsed(kind in 0u8..20, data in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = bodies(&data);
            let _ = bodies(&packet(kind, 0x83, 1, &data));
        }
    }
}
