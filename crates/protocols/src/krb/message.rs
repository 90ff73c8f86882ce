//! Messages (RFC 4120 §5).
//!
//! Like Zeek's, the parser identifies fields by position even where the ASN.1 modules identify them by tag,
//! so that it accepts the same messages.

use std::cell::Cell;

use gannet_base::Time;
use gannet_event::Arg;
use gannet_event::Packer;
use gannet_event::Type;

use super::reader::Reader;
use super::reader::content;
use super::reader::element;
use super::reader::head;
use super::reader::heads;
use super::reader::number;
use crate::support::Bytes;
use crate::support::RecordBounds;
use crate::support::RecordFault;
use crate::support::ber;
use crate::support::ber::Result;

/// Error code that requires pre-authentication (RFC 4120 §7.5.9).
const PREAUTH_REQUIRED: u64 = 25;

/// Message types, by application tag.
const AS_REQ: u8 = 10;
const AS_REP: u8 = 11;
const TGS_REQ: u8 = 12;
const TGS_REP: u8 = 13;
const AP_REQ: u8 = 14;
const AP_REP: u8 = 15;
const SAFE: u8 = 20;
const PRIV: u8 = 21;
const CRED: u8 = 22;
const ERROR: u8 = 30;

/// A name of one or more components.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Principal<'a> {
    /// The first three components.
    parts: [&'a [u8]; 3],
    /// Number of all components.
    count: usize,
}

impl Principal<'_> {
    /// The components joined by slashes; `unknown` if there are none or more than
    /// three.
    pub fn text(&self) -> Vec<u8> {
        match self.count {
            1 => self.parts[0].to_vec(),
            2 | 3 => {
                // As in Zeek, several components are truncated at their first NUL.
                let ends = |p: &&[u8]| memchr::memchr(0, p).unwrap_or(p.len());
                let parts = self.parts[..self.count].iter().map(|p| &p[..ends(p)]);
                parts.collect::<Vec<_>>().join(&b'/')
            }
            _ => b"unknown".to_vec(),
        }
    }
}

/// Packed as its [text](Principal::text).
impl Arg for Principal<'_> {
    const TYPE: Type = Type::String;

    fn pack(&self, to: &mut Packer<'_>) {
        self.text().as_slice().pack(to);
    }
}

/// Seconds since the Unix epoch. Values beyond the range of [`Time`] are packed as the latest time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnixSeconds(pub i64);

impl Arg for UnixSeconds {
    const TYPE: Type = Type::Time;

    fn pack(&self, to: &mut Packer<'_>) {
        Time::from_secs(self.0).pack(to);
    }
}

/// A client's request to a key distribution center.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request<'a> {
    /// Number in the message's `msg-type` field.
    pub kind: u64,
    /// Options: flags from the most significant bit.
    pub options: Option<u32>,
    /// Name of the client.
    pub client: Option<Principal<'a>>,
    /// Realm of the service.
    pub realm: Option<&'a [u8]>,
    /// Name of the service.
    pub service: Option<Principal<'a>>,
    /// Requested start time, in seconds since the Unix epoch.
    pub from: Option<i64>,
    /// Requested expiration time, in seconds since the Unix epoch.
    pub till: Option<i64>,
    /// Requested time until which the ticket is renewable, in seconds since the Unix epoch.
    pub renew_till: Option<i64>,
    /// Version of the protocol.
    pub version: u64,
    /// A random number.
    pub nonce: Option<u64>,
    /// Pre-authentication data, if lists are [collected](ParsedFacts::collects).
    pub padata: Option<Vec<TypeValue<'a>>>,
    /// Encryption types, if collected.
    pub ciphers: Vec<u64>,
    /// Hosts that may use the ticket, if collected.
    pub addresses: Vec<Address<'a>>,
    /// Additional tickets, if collected.
    pub tickets: Vec<Ticket<'a>>,
}

/// Type and value of an element of pre-authentication data.
pub type TypeValue<'a> = (u64, &'a [u8]);

/// Family and bytes of an address.
pub type Address<'a> = (u64, &'a [u8]);

/// Encrypted data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Encrypted<'a> {
    /// Encryption type.
    pub cipher: u64,
    /// Version of the key.
    pub key_version: Option<u64>,
    /// The data.
    pub data: &'a [u8],
}

/// KRB-SAFE: a message with a checksum.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Safe<'a> {
    /// Version of the protocol.
    pub version: u64,
    /// Number in the message's `msg-type` field.
    pub kind: u64,
    /// Data of the message.
    pub data: &'a [u8],
    /// Time of sending, in seconds since the Unix epoch and microseconds.
    pub time: (Option<i64>, u64),
    /// Sequence number.
    pub number: Option<u64>,
    /// Sender and recipient.
    pub addresses: [Option<Address<'a>>; 2],
}

/// The unencrypted part of a ticket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticket<'a> {
    /// Realm that issued the ticket.
    pub realm: &'a [u8],
    /// Name of the service.
    pub service: Principal<'a>,
    /// Encryption type.
    pub cipher: u64,
    /// Version of the protocol.
    pub version: u64,
    /// The encrypted part.
    pub ciphertext: &'a [u8],
}

/// A reply of a key distribution center.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply<'a> {
    /// Number in the message's `msg-type` field.
    pub kind: u64,
    /// Client's realm.
    pub realm: &'a [u8],
    /// Name of the client.
    pub client: Principal<'a>,
    /// The ticket.
    pub ticket: Ticket<'a>,
    /// Version of the protocol.
    pub version: u64,
    /// Pre-authentication data, if lists are [collected](ParsedFacts::collects).
    pub padata: Option<Vec<TypeValue<'a>>>,
    /// The part encrypted for the client.
    pub encrypted: Encrypted<'a>,
}

/// An error message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Error<'a> {
    /// Error code.
    pub code: u64,
    /// Client's realm.
    pub client_realm: Option<&'a [u8]>,
    /// Name of the client.
    pub client: Option<Principal<'a>>,
    /// Name of the service.
    pub service: Option<Principal<'a>>,
    /// Error text.
    pub text: Option<&'a [u8]>,
    /// Version of the protocol.
    pub version: Option<u64>,
    /// Number in the message's `msg-type` field.
    pub kind: Option<u64>,
    /// Time of the client's clock, in seconds since the Unix epoch and microseconds.
    pub client_time: (Option<i64>, u64),
    /// Time of the server's clock, in seconds since the Unix epoch and microseconds.
    pub server_time: (Option<i64>, u64),
    /// Service's realm.
    pub service_realm: Option<&'a [u8]>,
    /// Accepted types of pre-authentication, if lists are [collected](ParsedFacts::collects).
    pub padata: Option<Vec<TypeValue<'a>>>,
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// AS-REQ or TGS-REQ.
    Request(Request<'a>),
    /// AS-REP or TGS-REP.
    Reply(Reply<'a>),
    /// AP-REQ.
    ApRequest(Ticket<'a>, u32),
    /// AP-REP.
    ApReply,
    /// KRB-ERROR.
    Error(Error<'a>),
    /// KRB-PRIV.
    Private,
    /// KRB-SAFE.
    Safe(Safe<'a>),
    /// KRB-CRED: tickets, if lists are [collected](ParsedFacts::collects).
    Credentials(Vec<Ticket<'a>>),
}

impl Message<'_> {
    /// Whether the message belongs in a row. For a request or reply, its `msg-type` field decides.
    pub(super) fn is_logged(&self) -> bool {
        match self {
            Self::Private | Self::Safe(_) | Self::Credentials(_) => false,
            Self::Request(r) => matches!(r.kind, 10 | 12),
            Self::Reply(r) => matches!(r.kind, 11 | 13),
            Self::ApRequest(..) | Self::ApReply | Self::Error(_) => true,
        }
    }
}

/// Results of parsing a message besides the message itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParsedFacts<'a> {
    /// Ticket and options of the first AP-REQ in the pre-authentication data, which is reported even if a later part of the
    /// message is malformed.
    pub ap_request: Option<(Ticket<'a>, u32)>,
    /// Input: whether lists are collected, which only events need.
    pub collects: bool,
    /// Tickets and options of further AP-REQs, if collected.
    pub ap_requests: Vec<(Ticket<'a>, u32)>,
    /// Number of addresses with a length that is wrong for their family.
    pub invalid_addresses: u32,
    /// Certificate of a client (PKINIT, RFC 4556).
    pub client_certificate: Option<&'a [u8]>,
    /// Certificate of a server.
    pub server_certificate: Option<&'a [u8]>,
    /// Length of the first number of more than eight bytes.
    pub long_number: Option<usize>,
}

/// Parses a message. Returns the error of an invalid one.
pub fn parse<'a>(data: &'a [u8], facts: &mut ParsedFacts<'a>) -> Result<Message<'a>> {
    let long = Cell::new(None);
    let message = pdu(&mut Reader { bytes: Bytes(data), long: &long }, facts);
    facts.long_number = long.get();
    message
}

fn pdu<'a>(b: &mut Reader<'a, '_>, facts: &mut ParsedFacts<'a>) -> Result<Message<'a>> {
    Ok(match head(b)?.number() {
        AS_REQ | TGS_REQ => Message::Request(request(b, facts)?),
        AS_REP | TGS_REP => Message::Reply(reply(b, facts)?),
        AP_REQ => {
            let (ticket, options) = ap_request(b)?;
            Message::ApRequest(ticket, options)
        }
        kind @ (AP_REP | PRIV) => {
            // The first skipped element is the sequence that contains version and type.
            element(b)?;
            element(b)?;
            encrypted_element(b)?;
            if kind == AP_REP { Message::ApReply } else { Message::Private }
        }
        SAFE => Message::Safe(safe(b)?),
        CRED => {
            element(b)?;
            element(b)?;
            heads::<2>(b)?;
            let all = tickets(b, facts.collects)?;
            encrypted_element(b)?;
            Message::Credentials(all)
        }
        ERROR => Message::Error(error(b, facts)?),
        index => return Err(RecordFault::Case { record: "KRB_PDU", index: index.into() }),
    })
}

fn request<'a>(b: &mut Reader<'a, '_>, facts: &mut ParsedFacts<'a>) -> Result<Request<'a>> {
    head(b)?;
    let version = element(b)?;
    let kind = element(b)?;
    let (_, padata) = optional_padata(b, 3, facts)?;
    // Without pre-authentication data, this is the sequence of the body.
    head(b)?;
    let (version, kind_number) = (ber::unsigned(version), ber::unsigned(kind));
    let mut r = Request { kind: kind_number, version, padata, ..Request::default() };
    while !b.is_empty() {
        let within = RecordBounds::new("KRB_REQ_Arg", b);
        let head = head(b)?;
        let a = &mut b.part(&within, "data", head.length)?;
        match head.index() {
            0 => r.options = Some(options(a)?),
            1 => r.client = Some(principal(a)?),
            2 => r.realm = Some(content(a)?),
            3 => r.service = Some(principal(a)?),
            4 => r.from = time(a)?,
            5 => r.till = time(a)?,
            6 => r.renew_till = time(a)?,
            7 => r.nonce = Some(ber::unsigned(content(a)?)),
            10 => drop(content(a)?),
            8 => {
                ber::head(a)?;
                while !a.is_empty() {
                    let cipher = content(a)?;
                    if facts.collects {
                        r.ciphers.push(ber::unsigned(cipher));
                    }
                }
            }
            9 => {
                ber::head(a)?;
                while !a.is_empty() {
                    let address = address(a, facts)?;
                    if facts.collects {
                        r.addresses.push(address);
                    }
                }
            }
            11 => r.tickets = tickets(a, facts.collects)?,
            _ => {}
        }
    }
    b.record_len(kind.len());
    Ok(r)
}

/// Parses the flags of a request.
fn options(b: &mut Reader<'_, '_>) -> Result<u32> {
    let within = RecordBounds::new("KRB_KDC_Options", b);
    head(b)?;
    // A byte of padding precedes the flags.
    let flags = within.part(b, "flags", 5)?;
    Ok(flags.last_chunk().map_or(0, |f| u32::from_be_bytes(*f)))
}

fn address<'a>(b: &mut Reader<'a, '_>, facts: &mut ParsedFacts<'_>) -> Result<Address<'a>> {
    heads::<2>(b)?;
    let family = ber::unsigned(content(b)?);
    let address = element(b)?;
    let length = address.len();
    if family == 2 && length != 4 || family == 24 && length != 16 {
        facts.invalid_addresses += 1;
    }
    Ok((family, address))
}

fn reply<'a>(b: &mut Reader<'a, '_>, facts: &mut ParsedFacts<'a>) -> Result<Reply<'a>> {
    let within = RecordBounds::new("KRB_KDC_REP", b);
    head(b)?;
    let version = ber::unsigned(element(b)?);
    let kind = element(b)?;
    let (length, padata) = optional_padata(b, 2, facts)?;
    let realm = content(&mut b.part(&within, "client_realm", length)?)?;
    let length = head(b)?.length;
    let client = principal(&mut b.part(&within, "client_name", length)?)?;
    let ticket = ticket(b, true)?;
    let encrypted = encrypted_element(b)?;
    b.record_len(kind.len());
    Ok(Reply { kind: ber::unsigned(kind), realm, client, ticket, version, padata, encrypted })
}

/// Parses an AP-REQ. Returns its ticket and options.
fn ap_request<'a>(b: &mut Reader<'a, '_>) -> Result<(Ticket<'a>, u32)> {
    head(b)?;
    element(b)?;
    element(b)?;
    let within = RecordBounds::new("KRB_AP_Options", b);
    heads::<2>(b)?;
    let flags = within.part(b, "flags", 5)?;
    let options = flags.last_chunk().map_or(0, |f| u32::from_be_bytes(*f));
    let ticket = ticket(b, true)?;
    encrypted_element(b)?;
    Ok((ticket, options))
}

fn error<'a>(b: &mut Reader<'a, '_>, facts: &mut ParsedFacts<'a>) -> Result<Error<'a>> {
    head(b)?;
    let mut e = Error::default();
    let mut code = None;
    loop {
        if b.is_empty() {
            // As in Zeek, a missing code is read after the end, which is an error.
            if code.is_none() {
                content(b)?;
            }
            return Ok(e);
        }
        let within = RecordBounds::new("KRB_ERROR_Arg", b);
        let head = head(b)?;
        if head.index() == 6 {
            if code.is_none() {
                let number = content(b)?;
                b.record_len(number.len());
                e.code = ber::unsigned(number);
                code = Some(e.code);
            }
            continue;
        }
        let a = &mut b.part(&within, "args", head.length)?;
        match head.index() {
            0 => e.version = Some(ber::unsigned(content(a)?)),
            1 => e.kind = Some(ber::unsigned(content(a)?)),
            2 => e.client_time.0 = time(a)?,
            3 => e.client_time.1 = ber::unsigned(content(a)?),
            4 => e.server_time.0 = time(a)?,
            5 => e.server_time.1 = ber::unsigned(content(a)?),
            7 => e.client_realm = Some(content(a)?),
            8 => e.client = Some(principal(a)?),
            9 => e.service_realm = Some(content(a)?),
            10 => e.service = Some(principal(a)?),
            11 => e.text = Some(content(a)?),
            12 if code == Some(PREAUTH_REQUIRED) => e.padata = Some(padata(a, true, facts)?),
            12 => {}
            index => {
                return Err(RecordFault::Case {
                    record: "KRB_ERROR_Arg_Data",
                    index: index.into(),
                });
            }
        }
    }
}

/// Parses KRB-SAFE. As in Zeek, the checksum is expected after an element that extends to the end, which is an error.
fn safe<'a>(b: &mut Reader<'a, '_>) -> Result<Safe<'a>> {
    let (version, kind) = (ber::unsigned(element(b)?), ber::unsigned(element(b)?));
    let mut safe = Safe { version, kind, ..Safe::default() };
    head(b)?;
    while !b.is_empty() {
        let within = RecordBounds::new("KRB_SAFE_Arg", b);
        let head = head(b)?;
        let a = &mut b.part(&within, "args", head.length)?;
        match head.index() {
            0 => safe.data = content(a)?,
            1 => safe.time.0 = time(a)?,
            2 => safe.time.1 = ber::unsigned(content(a)?),
            3 => safe.number = Some(ber::unsigned(content(a)?)),
            index @ (4 | 5) => {
                let address = address(a, &mut ParsedFacts::default())?;
                safe.addresses[usize::from(index - 4)] = Some(address);
            }
            index => {
                return Err(RecordFault::Case { record: "KRB_SAFE_Arg_Data", index: index.into() });
            }
        }
    }
    element(b)?;
    element(b)?;
    Ok(safe)
}

/// Elements of pre-authentication data.
type Padata<'a> = Vec<TypeValue<'a>>;

/// Parses pre-authentication data if the next field is `[index]`. Returns the length of the field after
/// it, whose tag is consumed in any case.
fn optional_padata<'a>(
    b: &mut Reader<'a, '_>,
    index: u8,
    facts: &mut ParsedFacts<'a>,
) -> Result<(u64, Option<Padata<'a>>)> {
    let first = head(b)?;
    if first.index() != index {
        return Ok((first.length, None));
    }
    let within = RecordBounds::new("KRB_PA_Data_Optional_Contents", b);
    let all = padata(&mut b.part(&within, "padata", first.length)?, false, facts)?;
    Ok((head(b)?.length, Some(all)))
}

fn padata<'a>(
    b: &mut Reader<'a, '_>,
    is_error: bool,
    facts: &mut ParsedFacts<'a>,
) -> Result<Padata<'a>> {
    let mut all = Vec::new();
    let outer = head(b)?;
    if outer.tag != ber::SEQUENCE {
        RecordBounds::new("KRB_PA_Data_Container", b).part(b, "unknown", outer.length)?;
        return Ok(all);
    }
    while !b.is_empty() {
        let within = RecordBounds::new("KRB_PA_Data", b);
        head(b)?;
        let kind = number(b)?;
        let length = head(b)?.length;
        if is_error {
            // The value describes an accepted type.
            let value = within.part(b, "pa_data_placeholder", length)?;
            if facts.collects {
                all.push((kind, value));
            }
            continue;
        }
        let within = RecordBounds::new("KRB_PA_Data_Element", b);
        let mut part = |field| b.part(&within, field, length);
        let mut value: Option<&[u8]> = None;
        match kind {
            1 => {
                heads::<2>(b)?;
                let request = ap_request(b)?;
                if facts.ap_request.is_none() {
                    facts.ap_request = Some(request);
                } else if facts.collects {
                    facts.ap_requests.push(request);
                }
            }
            2 => value = Some(encrypted(&mut part("pa_enc_ts")?)?.data),
            3 => value = Some(content(b)?),
            11 => value = Some(salt(&mut part("pf_enctype_info")?)?),
            16 => facts.client_certificate = Some(pkinit(&mut part("pa_pk_as_req")?, false)?),
            17 => facts.server_certificate = Some(pkinit(&mut part("pa_pk_as_rep")?, true)?),
            19 => value = Some(salt(&mut part("pf_enctype_info2")?)?),
            _ => {
                let unknown = content(&mut part("unknown")?)?;
                value = (!unknown.is_empty()).then_some(unknown);
            }
        }
        if facts.collects
            && let Some(value) = value
        {
            all.push((kind, value));
        }
    }
    Ok(all)
}

/// Parses ETYPE-INFO. Returns the salt; empty for a short entry, which has none.
fn salt<'a>(b: &mut Reader<'a, '_>) -> Result<&'a [u8]> {
    let within = RecordBounds::new("KRB_PA_ENCTYPE_INFO", b);
    head(b)?;
    let entry = head(b)?.length;
    head(b)?;
    content(b)?;
    if entry > 7 {
        head(b)?;
        let length = head(b)?.length;
        return Ok(within.part(b, "salt", length)?);
    }
    Ok(&[])
}

/// Returns the first certificate of a CMS message (RFC 4556 §3.2).
fn pkinit<'a>(b: &mut Reader<'a, '_>, is_reply: bool) -> Result<&'a [u8]> {
    let record = if is_reply { "KRB_PA_PK_AS_Rep" } else { "KRB_PA_PK_AS_Req" };
    let within = RecordBounds::new(record, b);
    heads::<4>(b)?;
    if is_reply {
        head(b)?;
    }
    content(b)?;
    heads::<2>(b)?;
    content(b)?;
    content(b)?;
    content(b)?;
    let length = head(b)?.length;
    Ok(within.part(b, "cert", length)?)
}

fn tickets<'a>(b: &mut Reader<'a, '_>, collects: bool) -> Result<Vec<Ticket<'a>>> {
    let mut list = Vec::new();
    let within = RecordBounds::new("KRB_Ticket_Sequence", b);
    let length = head(b)?.length;
    let mut all = b.part(&within, "tickets", length)?;
    while !all.is_empty() {
        let ticket = ticket(&mut all, false)?;
        if collects {
            list.push(ticket);
        }
    }
    Ok(list)
}

/// Parses a ticket, which may be a field of a sequence.
fn ticket<'a>(b: &mut Reader<'a, '_>, in_sequence: bool) -> Result<Ticket<'a>> {
    let within = RecordBounds::new("KRB_Ticket", b);
    if in_sequence {
        head(b)?;
    }
    heads::<2>(b)?;
    let version = ber::unsigned(element(b)?);
    let realm = element(b)?;
    let length = head(b)?.length;
    let service = principal(&mut b.part(&within, "sname", length)?)?;
    let Encrypted { cipher, data: ciphertext, .. } = encrypted_element(b)?;
    Ok(Ticket { realm, service, cipher, version, ciphertext })
}

/// Parses encrypted data as a field of a sequence.
fn encrypted_element<'a>(b: &mut Reader<'a, '_>) -> Result<Encrypted<'a>> {
    let within = RecordBounds::new("KRB_Encrypted_Data_in_Seq", b);
    let length = head(b)?.length;
    encrypted(&mut b.part(&within, "data", length)?)
}

fn encrypted<'a>(b: &mut Reader<'a, '_>) -> Result<Encrypted<'a>> {
    let within = RecordBounds::new("KRB_Encrypted_Data", b);
    head(b)?;
    let cipher = ber::unsigned(element(b)?);
    let mut next = head(b)?;
    let mut key_version = None;
    if next.index() == 1 {
        key_version = Some(ber::unsigned(content(b)?));
        next = head(b)?;
    }
    let data = content(&mut b.part(&within, "ciphertext", next.length)?)?;
    Ok(Encrypted { cipher, key_version, data })
}

fn principal<'a>(b: &mut Reader<'a, '_>) -> Result<Principal<'a>> {
    heads::<2>(b)?;
    content(b)?;
    heads::<2>(b)?;
    let mut p = Principal::default();
    while !b.is_empty() {
        let part = content(b)?;
        if let Some(slot) = p.parts.get_mut(p.count) {
            *slot = part;
        }
        p.count += 1;
    }
    Ok(p)
}

/// Parses a time `YYYYMMDDhhmmssZ`, with or without two bytes before it; `None` for any other length.
fn time(b: &mut Reader<'_, '_>) -> Result<Option<i64>> {
    head(b)?;
    let text = b.rest();
    Ok(match text.len() {
        15 => Some(seconds(text)),
        17 => Some(seconds(&text[2..])),
        _ => None,
    })
}

/// Computes seconds since the Unix epoch from fourteen digits. As in Zeek, other characters have the value of their
/// distance from `0`, and excess units carry over to the next.
fn seconds(text: &[u8]) -> i64 {
    let digit = |at: usize| text.get(at).map_or(0, |c| i64::from(*c as i8) - i64::from(b'0'));
    let two = |at: usize| digit(at) * 10 + digit(at + 1);
    let month = two(4) - 1;
    let year = digit(0) * 1000 + digit(1) * 100 + two(2) + month.div_euclid(12);
    let days = days_before(year, month.rem_euclid(12)) + two(6) - 1;
    ((days * 24 + two(8)) * 60 + two(10)) * 60 + two(12)
}

/// Days from the Unix epoch to the first day of a month (0 to 11) in the Gregorian calendar.
fn days_before(year: i64, month: i64) -> i64 {
    // Years start in March, so that the leap day is the last day.
    let (y, m) = if month < 2 { (year - 1, month + 10) } else { (year, month - 2) };
    let before = y * 365 + y.div_euclid(4) - y.div_euclid(100) + y.div_euclid(400);
    before + (153 * m + 2) / 5 - 719_468
}

#[cfg(test)]
pub(super) mod tests;
