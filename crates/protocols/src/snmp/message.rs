use super::bindings::Bindings;
use super::bindings::IP_ADDRESS;
use super::bindings::MAX_SUB_IDENTIFIER;
use super::bindings::Oid;
use super::bindings::addr;
use super::bindings::signed;
use super::events::BulkPdu;
use super::events::Header;
use super::events::HeaderV1;
use super::events::HeaderV2;
use super::events::HeaderV3;
use super::events::Pdu;
use super::events::ScopedContext;
use super::events::TrapPdu;
use super::events::UserSecurity;
use crate::support::Bytes;
use crate::support::RecordFault;
use crate::support::ber;
use crate::support::ber::Result;

/// The body of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body<'a> {
    /// A PDU of one of these kinds.
    Pdu(Kind, Pdu<'a>),
    /// `GetBulkRequest`.
    Bulk(BulkPdu<'a>),
    /// A trap of version 1.
    Trap(TrapPdu<'a>),
    /// A PDU of an unknown kind, with its tag.
    Unknown(u8),
    /// An encrypted PDU.
    Encrypted,
    /// Data of version 3 that is neither an encrypted nor a plain scoped PDU, with its tag.
    UnknownScoped(u8),
}

/// Kind of a PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `GetRequest`.
    Get,
    /// `GetNextRequest`.
    GetNext,
    /// `Response`.
    Response,
    /// `SetRequest`.
    Set,
    /// `InformRequest`.
    Inform,
    /// `SNMPv2-Trap`.
    Trap,
    /// `Report`.
    Report,
}

/// A value that exceeds the maximum length of its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TooLong {
    /// A sub-identifier, with its length in bytes.
    SubIdentifier(usize),
    /// An integer, with its length in bytes: it counts as 0.
    Number(usize),
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// The header. As in Zeek, that of an encrypted message has no parameters of the user-based
    /// security model.
    pub header: Header<'a>,
    /// The body. `None` for an unknown version.
    pub body: Option<Body<'a>>,
    /// Values in header and body that are too long, in the order in which they are used.
    pub too_long: Vec<TooLong>,
    /// Whether the flags of version 3 are not a single byte, as the RFC requires.
    pub has_invalid_flags: bool,
}

/// Reason why a message is invalid, and the part before the fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed<'a> {
    /// Whether the fault is after the header.
    pub after_header: bool,
    /// The message as far as it was parsed.
    pub partial: Option<Box<Message<'a>>>,
    /// The fault.
    pub reason: RecordFault,
}

const DESCRIPTION: &[u8] = b"\x2b\x06\x01\x02\x01\x01\x01\x00";
const UP_TIME: &[u8] = b"\x2b\x06\x01\x02\x01\x01\x03\x00";

/// Tag of TimeTicks, in hundredths of a second (RFC 1155).
const TIME_TICKS: u8 = 0x43;

/// Parser of a datagram. Integers that are too long are reported when they are parsed, if their
/// value is used immediately: lengths, the version and the security model.
struct Reader<'a, 'f> {
    b: Bytes<'a>,
    long: &'f mut dyn FnMut(usize),
}

impl<'a> Reader<'a, '_> {
    fn check_length(&mut self) {
        if let Some(n) = ber::long_length(self.b.0) {
            (self.long)(n);
        }
    }

    fn head(&mut self) -> Result<ber::Head> {
        self.check_length();
        ber::head(&mut self.b)
    }

    fn sequence(&mut self) -> Result<ber::Head> {
        self.check_length();
        ber::sequence(&mut self.b)
    }

    fn value(&mut self) -> Result<(u8, &'a [u8])> {
        self.check_length();
        ber::value(&mut self.b)
    }

    fn tagged(&mut self, tag: u8) -> Result<&'a [u8]> {
        self.check_length();
        ber::tagged(&mut self.b, tag)
    }

    fn number(&mut self) -> Result<&'a [u8]> {
        self.check_length();
        ber::number(&mut self.b)
    }

    /// Parses an integer whose value is used immediately.
    fn integer(&mut self) -> Result<u64> {
        let number = self.number()?;
        if number.len() > MAX_NUMBER {
            (self.long)(number.len());
        }
        Ok(ber::unsigned(number))
    }
}

impl<'a> Message<'a> {
    /// Parses a datagram.
    pub fn parse(data: &'a [u8]) -> std::result::Result<Self, Malformed<'a>> {
        Self::parse_with(data, &mut |_| {})
    }

    /// Like [`parse`](Self::parse); calls `long` with the size of each length and integer that is
    /// too long and was used while parsing, even if parsing fails.
    pub fn parse_with(
        data: &'a [u8],
        long: &mut dyn FnMut(usize),
    ) -> std::result::Result<Self, Malformed<'a>> {
        let mut b = Reader { b: Bytes(data), long };
        let failed = |after_header| move |reason| Malformed { after_header, partial: None, reason };
        let (mut message, then) = header(&mut b).map_err(failed(false))?;
        match then {
            NextStep::Nothing => {}
            NextStep::Body => {
                let body = message.body(&mut b).map_err(failed(true))?;
                message.body = Some(body);
            }
            // The encryption was recognized before the user name.
            NextStep::Broken(reason) => {
                let partial = Some(Box::new(message));
                return Err(Malformed { after_header: false, partial, reason });
            }
        }
        Ok(message)
    }

    fn note_name(&mut self, name: &[u8]) {
        self.too_long.extend(long_sub_identifier(name).map(TooLong::SubIdentifier));
    }

    fn note_number(&mut self, number: &[u8]) {
        if number.len() > MAX_NUMBER {
            self.too_long.push(TooLong::Number(number.len()));
        }
    }

    /// Decodes an integer whose length must not exceed that of an unsigned 64-bit one.
    fn integer(&mut self, b: &mut Reader<'_, '_>) -> Result<i64> {
        let number = b.number()?;
        self.note_number(number);
        Ok(signed(number))
    }

    fn body(&mut self, b: &mut Reader<'a, '_>) -> Result<Body<'a>> {
        let tag = b.head()?.tag;
        Ok(match tag {
            0xa4 => {
                let enterprise = b.tagged(ber::OBJECT_IDENTIFIER)?;
                self.note_name(enterprise);
                let agent = addr(b.tagged(IP_ADDRESS)?);
                let [generic_trap, specific_trap] = [self.integer(b)?, self.integer(b)?];
                let ticks = b.tagged(TIME_TICKS)?;
                self.note_number(ticks);
                Body::Trap(TrapPdu {
                    enterprise: Oid(enterprise),
                    agent,
                    generic_trap,
                    specific_trap,
                    time_stamp: signed(ticks) as u64,
                    bindings: self.bindings(b)?,
                })
            }
            0xa5 => Body::Bulk(BulkPdu {
                request_id: self.integer(b)?,
                non_repeaters: self.integer(b)? as u64,
                max_repetitions: self.integer(b)? as u64,
                bindings: self.bindings(b)?,
            }),
            0xa0 => Body::Pdu(Kind::Get, self.pdu(b)?),
            0xa1 => Body::Pdu(Kind::GetNext, self.pdu(b)?),
            0xa2 => Body::Pdu(Kind::Response, self.pdu(b)?),
            0xa3 => Body::Pdu(Kind::Set, self.pdu(b)?),
            0xa6 => Body::Pdu(Kind::Inform, self.pdu(b)?),
            0xa7 => Body::Pdu(Kind::Trap, self.pdu(b)?),
            0xa8 => Body::Pdu(Kind::Report, self.pdu(b)?),
            _ => Body::Unknown(tag),
        })
    }

    fn pdu(&mut self, b: &mut Reader<'a, '_>) -> Result<Pdu<'a>> {
        Ok(Pdu {
            request_id: self.integer(b)?,
            error_status: self.integer(b)?,
            error_index: self.integer(b)?,
            bindings: self.bindings(b)?,
        })
    }

    fn bindings(&mut self, b: &mut Reader<'a, '_>) -> Result<Bindings<'a>> {
        b.sequence()?;
        let mut bindings = Bindings { bytes: b.b.0, ..Bindings::default() };
        while !b.b.is_empty() {
            b.sequence()?;
            let name = b.tagged(ber::OBJECT_IDENTIFIER)?;
            let (tag, value) = b.value()?;
            bindings.count += 1;
            self.note_name(name);
            match tag {
                ber::OBJECT_IDENTIFIER => self.note_name(value),
                ber::INTEGER | 0x41..=0x43 | 0x46 => self.note_number(value),
                _ => {}
            }
            // Any type other than integer, address, object identifier or exception is a string.
            let string = !matches!(tag, 2 | 5 | 6 | 0x40..=0x43 | 0x46 | 0x80..=0x82);
            if name == DESCRIPTION && string {
                bindings.description = Some(value);
            } else if name == UP_TIME && matches!(tag, 0x41..=0x43 | 0x46) {
                bindings.up_time = Some(ber::unsigned(value));
            }
        }
        Ok(bindings)
    }
}

/// Maximum length of an integer, in bytes. An unsigned 64-bit integer takes one more if its first
/// bit is set.
const MAX_NUMBER: usize = 8;

/// Length of the first sub-identifier with more than [`MAX_SUB_IDENTIFIER`] bytes, in a complete
/// object identifier.
fn long_sub_identifier(name: &[u8]) -> Option<usize> {
    // All bytes of a sub-identifier except the last have their high bit set.
    if name.last().is_none_or(|b| b & 0x80 != 0) {
        return None;
    }
    name.split_inclusive(|b| b & 0x80 == 0).map(<[u8]>::len).find(|n| *n > MAX_SUB_IDENTIFIER)
}

/// The step after parsing a header.
enum NextStep {
    /// Nothing that can be parsed.
    Nothing,
    /// A body.
    Body,
    /// The parameters of an encrypted message are malformed.
    Broken(RecordFault),
}

/// Parses the header; returns the next step.
fn header<'a>(b: &mut Reader<'a, '_>) -> Result<(Message<'a>, NextStep)> {
    b.sequence()?;
    let version = b.integer()?;
    let mut message = Message {
        header: Header { version, v1: None, v2: None, v3: None },
        body: None,
        too_long: Vec::new(),
        has_invalid_flags: false,
    };
    let then = match version {
        0 => {
            message.header.v1 = Some(HeaderV1 { community: b.tagged(ber::OCTET_STRING)? });
            NextStep::Body
        }
        1 => {
            message.header.v2 = Some(HeaderV2 { community: b.tagged(ber::OCTET_STRING)? });
            NextStep::Body
        }
        3 => message.header_v3(b)?,
        _ => NextStep::Nothing,
    };
    Ok((message, then))
}

impl<'a> Message<'a> {
    /// Parses the header of version 3; returns the next step.
    fn header_v3(&mut self, b: &mut Reader<'a, '_>) -> Result<NextStep> {
        b.sequence()?;
        let [id, max_size] = [b.number()?, b.number()?];
        let flags = b.tagged(ber::OCTET_STRING)?;
        self.has_invalid_flags = flags.len() != 1;
        let model = b.number()?;
        let security_params = b.tagged(ber::OCTET_STRING)?;
        let scope = b.head()?.tag;
        let pdu_context = match scope {
            ber::SEQUENCE => {
                let engine_id = b.tagged(ber::OCTET_STRING)?;
                Some(ScopedContext { engine_id, name: b.tagged(ber::OCTET_STRING)? })
            }
            ber::OCTET_STRING => {
                self.body = Some(Body::Encrypted);
                None
            }
            tag => {
                self.body = Some(Body::UnknownScoped(tag));
                None
            }
        };
        for number in [model, id, max_size, model] {
            self.note_number(number);
        }
        if model.len() > MAX_NUMBER {
            (b.long)(model.len());
        }
        let flags = flags.first().copied().unwrap_or_default();
        let flag = |bit: u8| flags & bit != 0;
        let mut header = HeaderV3 {
            id: signed(id) as u64,
            max_size: signed(max_size) as u64,
            flags: flags.into(),
            auth_flag: flag(1),
            priv_flag: flag(2),
            reportable_flag: flag(4),
            security_model: ber::unsigned(model),
            security_params,
            pdu_context,
            user_security_parameters: None,
        };
        let user = match header.security_model {
            3 => {
                let security = &mut Reader { b: Bytes(security_params), long: &mut *b.long };
                user(security).map(Some)
            }
            _ => Ok(None),
        };
        let then = match (user, pdu_context.is_some()) {
            (Err(reason), true) => return Err(reason),
            (Err(reason), false) => NextStep::Broken(reason),
            // As in Zeek, the user of an encrypted message is not reported.
            (Ok(_), false) => NextStep::Nothing,
            (Ok(user), true) => {
                if let Some(User { parameters, boots, time }) = user {
                    self.note_number(boots);
                    self.note_number(time);
                    header.user_security_parameters = Some(parameters);
                }
                NextStep::Body
            }
        };
        self.header.v3 = Some(header);
        Ok(then)
    }
}

/// The parameters of the user-based security model (RFC 3414 section 2.4).
struct User<'a> {
    parameters: UserSecurity<'a>,
    /// Number of times that the engine was started.
    boots: &'a [u8],
    /// Seconds since the last start.
    time: &'a [u8],
}

fn user<'a>(b: &mut Reader<'a, '_>) -> Result<User<'a>> {
    b.sequence()?;
    let engine_id = b.tagged(ber::OCTET_STRING)?;
    let [boots, time] = [b.number()?, b.number()?];
    let parameters = UserSecurity {
        engine_id,
        engine_boots: signed(boots),
        engine_time: signed(time),
        user_name: b.tagged(ber::OCTET_STRING)?,
        authentication: b.tagged(ber::OCTET_STRING)?,
        privacy: b.tagged(ber::OCTET_STRING)?,
    };
    Ok(User { parameters, boots, time })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Encodes a value with its tag.
    pub(in super::super) fn tlv(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
        let content = parts.concat();
        let mut out = vec![tag, content.len() as u8];
        out.extend_from_slice(&content);
        out
    }

    /// A message of version 2c with these variable bindings.
    pub(in super::super) fn v2c(kind: u8, bindings: &[(&[u8], Vec<u8>)]) -> Vec<u8> {
        let list: Vec<_> =
            bindings.iter().map(|(oid, v)| tlv(0x30, &[&tlv(6, &[oid]), v])).collect();
        let list: Vec<&[u8]> = list.iter().map(|v| &v[..]).collect();
        let number = tlv(2, &[b"\x01"]);
        let pdu = tlv(kind, &[&number, &number, &number, &tlv(0x30, &list)]);
        tlv(0x30, &[&number, &tlv(4, &[b"public"]), &pdu])
    }

    /// The variable bindings of a message.
    fn bindings<'a>(m: &Message<'a>) -> Bindings<'a> {
        match m.body {
            Some(Body::Pdu(_, pdu)) => pdu.bindings,
            _ => panic!("{m:?}"),
        }
    }

    #[test]
    fn responses() {
        let m =
            v2c(0xa2, &[(DESCRIPTION, tlv(4, &[b"box"])), (UP_TIME, tlv(0x43, &[b"\x01\x00"]))]);
        let m = Message::parse(&m).unwrap();
        assert_eq!((m.header.version, m.header.community()), (1, Some(&b"public"[..])));
        assert!(matches!(m.body, Some(Body::Pdu(Kind::Response, _))));
        let bindings = bindings(&m);
        assert_eq!((bindings.count, bindings.iter().count()), (2, 2));
        assert_eq!((bindings.description, bindings.up_time), (Some(&b"box"[..]), Some(256)));
    }

    #[test]
    fn version_three() {
        let n = tlv(2, &[b"\x03"]);
        let s = |t: &[u8]| tlv(4, &[t]);
        let usm = tlv(0x30, &[&s(b"e"), &n, &n, &s(b"user"), &s(b""), &s(b"")]);
        let global = tlv(0x30, &[&n, &n, &s(b"\x03"), &n]);
        let secret = tlv(0x30, &[&n, &global, &tlv(4, &[&usm]), &s(b"secret")]);
        let m = Message::parse(&secret).unwrap();
        assert_eq!((m.header.community(), m.body), (None, Some(Body::Encrypted)));
        let report = tlv(0xa8, &[&n, &n, &n, &tlv(0x30, &[])]);
        let plain = tlv(0x30, &[&s(b"engine"), &s(b"name"), &report]);
        let m = tlv(0x30, &[&n, &global, &tlv(4, &[&usm]), &plain]);
        let m = Message::parse(&m).unwrap();
        assert_eq!(m.header.community(), Some(&b"user"[..]));
        assert!(matches!(m.body, Some(Body::Pdu(Kind::Report, _))));
    }

    #[test]
    fn long_parts() {
        assert_eq!(long_sub_identifier(b"\x2b\x86\x01"), None);
        let mut name = vec![0x2b];
        name.extend_from_slice(&[0x81; 10]);
        assert_eq!(long_sub_identifier(&name), None, "not whole");
        name.push(1);
        assert_eq!(long_sub_identifier(&name), Some(11));
        let m = v2c(0xa0, &[(&name, tlv(5, &[]))]);
        assert_eq!(Message::parse(&m).unwrap().too_long, [TooLong::SubIdentifier(11)]);
    }

    #[test]
    fn long_numbers() {
        let big = tlv(0x46, &[b"\0\xff\xff\xff\xff\xff\xff\xff\xff"]);
        let fits = tlv(0x46, &[b"\x7f\xff\xff\xff\xff\xff\xff\xff"]);
        let ten = tlv(2, &[&[1; 10]]);
        let text = tlv(4, &[&[1; 10]]);
        let m = v2c(0xa2, &[(b"\x2b", big), (b"\x2b", fits), (b"\x2b", ten), (b"\x2b", text)]);
        let m = Message::parse(&m).unwrap();
        assert_eq!(m.too_long, [TooLong::Number(9), TooLong::Number(10)]);
        assert_eq!(bindings(&m).count, 4);
        let n = tlv(2, &[b"\x01"]);
        let get = |id: &[u8]| {
            let pdu = tlv(0xa0, &[&tlv(2, &[id]), &n, &n, &tlv(0x30, &[])]);
            tlv(0x30, &[&n, &tlv(4, &[b"public"]), &pdu])
        };
        assert_eq!(Message::parse(&get(&[0; 9])).unwrap().too_long, [TooLong::Number(9)]);
        let wide = get(&[0; 10]);
        let e = Message::parse(&wide).unwrap_err();
        assert_eq!((e.after_header, e.reason), (true, RecordFault::Wide(10)));
    }

    #[test]
    fn long_numbers_of_headers_and_lengths() {
        let (nine, n) = (tlv(2, &[&[0; 9]]), tlv(2, &[b"\x03"]));
        let read = |m: &[u8]| {
            let mut long = Vec::new();
            let too_long = Message::parse_with(m, &mut |n| long.push(n)).map(|m| m.too_long);
            (long, too_long.map_err(|e| e.after_header))
        };
        let pdu = |kind| tlv(kind, &[&n, &n, &n, &tlv(0x30, &[])]);
        // A version that is too long counts as version 1 (0).
        let m = tlv(0x30, &[&nine, &tlv(4, &[b"public"]), &pdu(0xa0)]);
        assert_eq!(read(&m), (vec![9], Ok(vec![])));
        // A length of nine bytes counts as 0.
        let m = tlv(0x30, &[&n, b"\x30\x89\0\0\0\0\0\0\0\0\0", b"\x31\0"]);
        assert_eq!(read(&m), (vec![9], Err(false)));
        let s = |t: &[u8]| tlv(4, &[t]);
        let usm = tlv(0x30, &[&s(b"e"), &nine, &nine, &s(b"user"), &s(b""), &s(b"")]);
        let global = tlv(0x30, &[&nine, &n, &s(b"\x03"), &n]);
        let plain = tlv(0x30, &[&s(b"engine"), &s(b"name"), &pdu(0xa8)]);
        let m = tlv(0x30, &[&n, &global, &tlv(4, &[&usm]), &plain]);
        assert_eq!(read(&m), (vec![], Ok(vec![TooLong::Number(9); 3])));
        let global = tlv(0x30, &[&n, &n, &s(b"\x03"), &nine]);
        let secret = tlv(0x30, &[&n, &global, &tlv(4, &[&usm]), &s(b"secret")]);
        assert_eq!(read(&secret), (vec![9], Ok(vec![TooLong::Number(9); 2])));
    }

    #[test]
    fn what_fails_where() {
        let error = |m: &[u8]| {
            let e = Message::parse(m).unwrap_err();
            (e.after_header, e.partial.is_some(), crate::support::error_text(e.reason))
        };
        assert_eq!(error(b"\x31\x00"), (false, false, "Got ASN.1 tag 49, expect 48".into()));
        let mut m = v2c(0xa0, &[(b"\x2b", tlv(5, &[]))]);
        let last = m.len() - 2;
        m[last] = 9; // a value longer than the datagram
        m[last + 1] = 9;
        let short = "out_of_bound: ASN1Encoding:content: 11 > 2";
        assert_eq!(error(&m), (true, false, short.into()));
    }

    #[test]
    fn encrypted_messages_count_before_their_user_does() {
        let n = tlv(2, &[b"\x03"]);
        let global = tlv(0x30, &[&n, &n, &tlv(4, &[b"\x03"]), &n]);
        let secret = tlv(0x30, &[&n, &global, &tlv(4, &[b"no"]), &tlv(4, &[b"secret"])]);
        let e = Message::parse(&secret).unwrap_err();
        assert_eq!(
            (e.after_header, e.partial.map(|m| m.body)),
            (false, Some(Some(Body::Encrypted)))
        );
        let plain =
            tlv(0x30, &[&n, &global, &tlv(4, &[b"no"]), &tlv(0x30, &[&tlv(4, &[]), &tlv(4, &[])])]);
        assert_eq!(Message::parse(&plain).unwrap_err().partial, None);
    }
}
