//! Messages (RFC 4120 §5).
//!
//! The reader goes by position where the standard's modules would allow to go by tag, as Zeek
//! does: what it accepts and what it takes for another protocol is the same.

use crate::support::Bytes;
use crate::support::ber;

/// Error code that asks for pre-authentication (RFC 4120 §7.5.9).
const PREAUTH_REQUIRED: u64 = 25;

/// Kinds of messages, by application tag.
const AS_REQ: u8 = 10;
const AS_REP: u8 = 11;
const TGS_REQ: u8 = 12;
const TGS_REP: u8 = 13;
const AP_REQ: u8 = 14;
const AP_REP: u8 = 15;
const PRIV: u8 = 21;
const CRED: u8 = 22;
const ERROR: u8 = 30;

/// A name of one or more components.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Principal<'a> {
    /// The first three components.
    parts: [&'a [u8]; 3],
    count: usize,
}

impl Principal<'_> {
    /// The components with slashes between them; `unknown` where there are none or more than
    /// three.
    pub fn text(&self) -> Vec<u8> {
        match self.count {
            1 => self.parts[0].to_vec(),
            2 | 3 => {
                // Joined by a formatter that ends a component at its first NUL.
                let ends = |p: &&[u8]| memchr::memchr(0, p).unwrap_or(p.len());
                let parts = self.parts[..self.count].iter().map(|p| &p[..ends(p)]);
                parts.collect::<Vec<_>>().join(&b'/')
            }
            _ => b"unknown".to_vec(),
        }
    }
}

/// What a client asks a key distribution centre for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request<'a> {
    /// Number in the message's `msg-type` field.
    pub kind: u64,
    /// Options: flags from the most significant bit.
    pub options: Option<u32>,
    /// Client.
    pub client: Option<Principal<'a>>,
    /// Realm of the service.
    pub realm: Option<&'a [u8]>,
    /// Service.
    pub service: Option<Principal<'a>>,
    /// Wanted start, seconds since 1970.
    pub from: Option<i64>,
    /// Wanted end, seconds since 1970.
    pub till: Option<i64>,
}

impl Request<'_> {
    /// Whether a ticket that may be forwarded is wanted.
    pub fn forwardable(&self) -> Option<bool> {
        self.options.map(|o| o & 0x4000_0000 != 0)
    }

    /// Whether a ticket that may be renewed is wanted.
    pub fn renewable(&self) -> Option<bool> {
        self.options.map(|o| o & 0x0080_0000 != 0)
    }
}

/// A ticket, as far as it is not encrypted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticket<'a> {
    /// Realm that issued it.
    pub realm: &'a [u8],
    /// Service it is for.
    pub service: Principal<'a>,
    /// Encryption type.
    pub cipher: u64,
}

/// A key distribution centre's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply<'a> {
    /// Number in the message's `msg-type` field.
    pub kind: u64,
    /// Client's realm.
    pub realm: &'a [u8],
    /// Client.
    pub client: Principal<'a>,
    /// The ticket.
    pub ticket: Ticket<'a>,
}

/// A refusal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Error<'a> {
    /// Error code.
    pub code: u64,
    /// Client's realm.
    pub client_realm: Option<&'a [u8]>,
    /// Client.
    pub client: Option<Principal<'a>>,
    /// Service.
    pub service: Option<Principal<'a>>,
    /// Reason in words.
    pub text: Option<&'a [u8]>,
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// AS-REQ or TGS-REQ.
    Request(Request<'a>),
    /// AS-REP or TGS-REP.
    Reply(Reply<'a>),
    /// AP-REQ.
    ApRequest(Ticket<'a>),
    /// AP-REP.
    ApReply,
    /// KRB-ERROR.
    Error(Error<'a>),
    /// KRB-PRIV or KRB-CRED.
    Other,
}

/// What was met in a message's pre-authentication data, which counts even if the message turns
/// out to be broken further on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Aside<'a> {
    /// An AP-REQ.
    pub ap_request: bool,
    /// An address of the wrong length for its family.
    pub odd_addresses: u32,
    /// Certificate of a client (PKINIT, RFC 4556).
    pub client_certificate: Option<&'a [u8]>,
    /// Certificate of a server.
    pub server_certificate: Option<&'a [u8]>,
}

/// Reads a message. `None`: it is none.
pub fn parse<'a>(data: &'a [u8], aside: &mut Aside<'a>) -> Option<Message<'a>> {
    let mut b = Bytes(data);
    Some(match ber::head(&mut b)?.number() {
        AS_REQ | TGS_REQ => Message::Request(request(&mut b, aside)?),
        AS_REP | TGS_REP => Message::Reply(reply(&mut b, aside)?),
        AP_REQ => Message::ApRequest(ap_request(&mut b)?),
        kind @ (AP_REP | PRIV) => {
            // The element skipped first is the sequence around version and kind.
            element(&mut b)?;
            element(&mut b)?;
            encrypted_element(&mut b)?;
            if kind == AP_REP { Message::ApReply } else { Message::Other }
        }
        CRED => {
            element(&mut b)?;
            element(&mut b)?;
            heads::<2>(&mut b)?;
            tickets(&mut b)?;
            encrypted_element(&mut b)?;
            Message::Other
        }
        ERROR => Message::Error(error(&mut b, aside)?),
        _ => return None,
    })
}

/// Skips tags and lengths.
fn heads<const N: usize>(b: &mut Bytes<'_>) -> Option<()> {
    for _ in 0..N {
        ber::head(b)?;
    }
    Some(())
}

/// The content of an announced length.
fn part<'a>(b: &mut Bytes<'a>, length: u64) -> Option<Bytes<'a>> {
    b.take(usize::try_from(length).ok()?).map(Bytes)
}

/// A field of a sequence: the content of the value inside its tag.
fn element<'a>(b: &mut Bytes<'a>) -> Option<&'a [u8]> {
    ber::head(b)?;
    ber::value(b).map(|(_, content)| content)
}

/// The content of a value.
fn content<'a>(b: &mut Bytes<'a>) -> Option<&'a [u8]> {
    ber::value(b).map(|(_, content)| content)
}

fn request<'a>(b: &mut Bytes<'a>, aside: &mut Aside<'a>) -> Option<Request<'a>> {
    ber::head(b)?;
    element(b)?;
    let kind = ber::unsigned(element(b)?);
    optional_padata(b, 3, aside)?;
    // What is read here, if there is no pre-authentication data, is the body's sequence.
    ber::head(b)?;
    let mut r = Request { kind, ..Request::default() };
    while !b.is_empty() {
        let head = ber::head(b)?;
        let mut arg = part(b, head.length)?;
        let a = &mut arg;
        match head.index() {
            0 => {
                ber::head(a)?;
                a.u8()?;
                r.options = Some(a.u32()?);
            }
            1 => r.client = Some(principal(a)?),
            2 => r.realm = Some(content(a)?),
            3 => r.service = Some(principal(a)?),
            4 => r.from = time(a)?,
            5 => r.till = time(a)?,
            6 => drop(time(a)?),
            7 | 10 => drop(content(a)?),
            8 => {
                ber::head(a)?;
                while !a.is_empty() {
                    content(a)?;
                }
            }
            9 => {
                ber::head(a)?;
                while !a.is_empty() {
                    address(a, aside)?;
                }
            }
            11 => tickets(a)?,
            _ => {}
        }
    }
    Some(r)
}

fn address(b: &mut Bytes<'_>, aside: &mut Aside<'_>) -> Option<()> {
    heads::<2>(b)?;
    let family = ber::unsigned(content(b)?);
    let length = element(b)?.len();
    if family == 2 && length != 4 || family == 24 && length != 16 {
        aside.odd_addresses += 1;
    }
    Some(())
}

fn reply<'a>(b: &mut Bytes<'a>, aside: &mut Aside<'a>) -> Option<Reply<'a>> {
    ber::head(b)?;
    element(b)?;
    let kind = ber::unsigned(element(b)?);
    let length = optional_padata(b, 2, aside)?;
    let realm = content(&mut part(b, length)?)?;
    let length = ber::head(b)?.length;
    let client = principal(&mut part(b, length)?)?;
    ber::head(b)?;
    let ticket = ticket(b)?;
    encrypted_element(b)?;
    Some(Reply { kind, realm, client, ticket })
}

fn ap_request<'a>(b: &mut Bytes<'a>) -> Option<Ticket<'a>> {
    ber::head(b)?;
    element(b)?;
    element(b)?;
    heads::<2>(b)?;
    b.take(5)?;
    ber::head(b)?;
    let ticket = ticket(b)?;
    encrypted_element(b)?;
    Some(ticket)
}

fn error<'a>(b: &mut Bytes<'a>, aside: &mut Aside<'a>) -> Option<Error<'a>> {
    ber::head(b)?;
    let mut e = Error::default();
    let mut code = None;
    loop {
        if b.is_empty() && code.is_some() {
            return Some(e);
        }
        let head = ber::head(b)?;
        if head.index() == 6 {
            if code.is_none() {
                e.code = ber::unsigned(content(b)?);
                code = Some(e.code);
            }
            continue;
        }
        let mut arg = part(b, head.length)?;
        let a = &mut arg;
        match head.index() {
            0 | 1 | 3 | 5 => drop(content(a)?),
            2 | 4 => drop(time(a)?),
            7 => e.client_realm = Some(content(a)?),
            8 => e.client = Some(principal(a)?),
            9 => drop(content(a)?),
            10 => e.service = Some(principal(a)?),
            11 => e.text = Some(content(a)?),
            12 if code == Some(PREAUTH_REQUIRED) => padata(a, true, aside)?,
            12 => {}
            _ => return None,
        }
    }
}

/// Pre-authentication data if the next field is `[index]`. Returns the length of the field after
/// it, whose tag is read in any case.
fn optional_padata<'a>(b: &mut Bytes<'a>, index: u8, aside: &mut Aside<'a>) -> Option<u64> {
    let first = ber::head(b)?;
    if first.index() != index {
        return Some(first.length);
    }
    padata(&mut part(b, first.length)?, false, aside)?;
    Some(ber::head(b)?.length)
}

fn padata<'a>(b: &mut Bytes<'a>, is_error: bool, aside: &mut Aside<'a>) -> Option<()> {
    let head = ber::head(b)?;
    if head.tag != ber::SEQUENCE {
        return part(b, head.length).map(|_| ());
    }
    while !b.is_empty() {
        ber::head(b)?;
        let kind = ber::unsigned(element(b)?);
        let length = ber::head(b)?.length;
        if is_error {
            // Not data, but what would be accepted.
            part(b, length)?;
            continue;
        }
        match kind {
            1 => {
                heads::<2>(b)?;
                ap_request(b)?;
                aside.ap_request = true;
            }
            2 => encrypted(&mut part(b, length)?)?,
            3 => drop(content(b)?),
            11 | 19 => salt(&mut part(b, length)?)?,
            16 => aside.client_certificate = Some(pkinit(&mut part(b, length)?, false)?),
            17 => aside.server_certificate = Some(pkinit(&mut part(b, length)?, true)?),
            _ => drop(content(&mut part(b, length)?)?),
        }
    }
    Some(())
}

/// ETYPE-INFO: the salt is missing where the entry is short.
fn salt(b: &mut Bytes<'_>) -> Option<()> {
    ber::head(b)?;
    let entry = ber::head(b)?.length;
    ber::head(b)?;
    content(b)?;
    if entry > 7 {
        ber::head(b)?;
        let length = ber::head(b)?.length;
        part(b, length)?;
    }
    Some(())
}

/// The first certificate of a CMS message (RFC 4556 §3.2).
fn pkinit<'a>(b: &mut Bytes<'a>, is_reply: bool) -> Option<&'a [u8]> {
    heads::<4>(b)?;
    if is_reply {
        ber::head(b)?;
    }
    content(b)?;
    heads::<2>(b)?;
    content(b)?;
    content(b)?;
    content(b)?;
    let length = ber::head(b)?.length;
    part(b, length).map(|p| p.0)
}

fn tickets(b: &mut Bytes<'_>) -> Option<()> {
    let length = ber::head(b)?.length;
    let mut all = part(b, length)?;
    while !all.is_empty() {
        ticket(&mut all)?;
    }
    Some(())
}

fn ticket<'a>(b: &mut Bytes<'a>) -> Option<Ticket<'a>> {
    heads::<2>(b)?;
    element(b)?;
    let realm = element(b)?;
    let length = ber::head(b)?.length;
    let service = principal(&mut part(b, length)?)?;
    let cipher = encrypted_element(b)?;
    Some(Ticket { realm, service, cipher })
}

fn encrypted_element(b: &mut Bytes<'_>) -> Option<u64> {
    let length = ber::head(b)?.length;
    let mut data = part(b, length)?;
    let mut first = data;
    encrypted(&mut data)?;
    ber::head(&mut first)?;
    element(&mut first).map(ber::unsigned)
}

fn encrypted(b: &mut Bytes<'_>) -> Option<()> {
    ber::head(b)?;
    element(b)?;
    let mut next = ber::head(b)?;
    if next.index() == 1 {
        content(b)?;
        next = ber::head(b)?;
    }
    content(&mut part(b, next.length)?).map(|_| ())
}

fn principal<'a>(b: &mut Bytes<'a>) -> Option<Principal<'a>> {
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
    Some(p)
}

/// A time in one of the forms `YYYYMMDDhhmmssZ`; other lengths count as none.
fn time(b: &mut Bytes<'_>) -> Option<Option<i64>> {
    ber::head(b)?;
    let text = b.rest();
    Some(match text.len() {
        15 => Some(seconds(text)),
        17 => Some(seconds(&text[2..])),
        _ => None,
    })
}

/// Seconds since 1970 of fourteen digits. Other characters count by their distance from `0`, and
/// what is beyond a unit's range runs over into the next.
fn seconds(text: &[u8]) -> i64 {
    let digit = |at: usize| text.get(at).map_or(0, |c| i64::from(*c as i8) - i64::from(b'0'));
    let two = |at: usize| digit(at) * 10 + digit(at + 1);
    let month = two(4) - 1;
    let year = digit(0) * 1000 + digit(1) * 100 + two(2) + month.div_euclid(12);
    let days = days_before(year, month.rem_euclid(12)) + two(6) - 1;
    ((days * 24 + two(8)) * 60 + two(10)) * 60 + two(12)
}

/// Days from 1970 to the first of a month, counted from 0, in the Gregorian calendar.
fn days_before(year: i64, month: i64) -> i64 {
    // Years begin in March: the leap day is their last.
    let (y, m) = if month < 2 { (year - 1, month + 10) } else { (year, month - 2) };
    let before = y * 365 + y.div_euclid(4) - y.div_euclid(100) + y.div_euclid(400);
    before + (153 * m + 2) / 5 - 719_468
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(crate) fn tlv(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
        let content = parts.concat();
        let mut out = vec![tag, 0x82];
        out.extend_from_slice(&(content.len() as u16).to_be_bytes());
        out.extend_from_slice(&content);
        out
    }

    fn int(index: u8, n: u8) -> Vec<u8> {
        tlv(0xa0 + index, &[&[2, 1, n]])
    }

    fn name(parts: &[&[u8]]) -> Vec<u8> {
        let parts: Vec<_> = parts.iter().map(|p| tlv(0x1b, &[p])).collect();
        let list = tlv(0x30, &parts.iter().map(|p| &p[..]).collect::<Vec<_>>());
        tlv(0x30, &[&int(0, 1), &tlv(0xa1, &[&list])])
    }

    fn sealed(cipher: u8) -> Vec<u8> {
        tlv(0x30, &[&int(0, cipher), &int(1, 2), &tlv(0xa2, &[&tlv(4, &[b"secret"])])])
    }

    /// An AS-REQ for `des/krbtgt/X` until 2037.
    pub(crate) fn as_req() -> Vec<u8> {
        as_req_with(&[])
    }

    /// The same with pre-authentication data.
    pub(crate) fn as_req_with(padata: &[u8]) -> Vec<u8> {
        let body = tlv(
            0x30,
            &[
                &tlv(0xa0, &[&[3, 5, 0, 0x40, 0x80, 0, 0]]),
                &tlv(0xa1, &[&name(&[b"des"])]),
                &tlv(0xa2, &[&tlv(0x1b, &[b"X"])]),
                &tlv(0xa3, &[&name(&[b"krbtgt", b"X"])]),
                &tlv(0xa5, &[&tlv(0x18, &[b"20370913024805Z"])]),
                &tlv(0xa8, &[&tlv(0x30, &[&[2, 1, 23]])]),
            ],
        );
        tlv(0x6a, &[&tlv(0x30, &[&int(1, 5), &int(2, 10), padata, &tlv(0xa4, &[&body])])])
    }

    /// Pre-authentication data by a certificate (RFC 4556): in field 3 of a request, 2 of a reply.
    pub(crate) fn pkinit_data(is_reply: bool, certificate: &[u8]) -> Vec<u8> {
        let algorithms = tlv(0x31, &[]);
        let content = tlv(0x30, &[&tlv(6, &[b"id-pkinit-authData"])]);
        let certificates = tlv(0xa0, &[certificate]);
        let signed = tlv(0x30, &[&[2, 1, 3], &algorithms, &content, &certificates]);
        let signed = tlv(0x30, &[&tlv(6, &[b"id-signedData"]), &tlv(0xa0, &[&signed])]);
        // What signs stands in a sequence of a request, and one of the choices of a reply.
        let inner = tlv(0x80, &[&signed]);
        let outer =
            if is_reply { tlv(0xa0, &[&tlv(0x30, &[&inner])]) } else { tlv(0x30, &[&inner]) };
        let kind = if is_reply { 17 } else { 16 };
        let entry = tlv(0x30, &[&int(1, kind), &tlv(0xa2, &[&tlv(4, &[&outer])])]);
        tlv(if is_reply { 0xa2 } else { 0xa3 }, &[&tlv(0x30, &[&entry])])
    }

    /// An AS-REP with a ticket for `cifs/h`.
    pub(crate) fn as_rep() -> Vec<u8> {
        as_rep_with(&[])
    }

    /// The same with pre-authentication data.
    pub(crate) fn as_rep_with(padata: &[u8]) -> Vec<u8> {
        let ticket = tlv(
            0x61,
            &[&tlv(
                0x30,
                &[
                    &int(0, 5),
                    &tlv(0xa1, &[&tlv(0x1b, &[b"X"])]),
                    &tlv(0xa2, &[&name(&[b"cifs", b"h"])]),
                    &tlv(0xa3, &[&sealed(18)]),
                ],
            )],
        );
        let fields = [
            int(0, 5),
            int(1, 11),
            padata.to_vec(),
            tlv(0xa3, &[&tlv(0x1b, &[b"X"])]),
            tlv(0xa4, &[&name(&[b"des"])]),
            tlv(0xa5, &[&ticket]),
            tlv(0xa6, &[&sealed(23)]),
        ];
        tlv(0x6b, &[&tlv(0x30, &fields.iter().map(|f| &f[..]).collect::<Vec<_>>())])
    }

    /// A KRB-ERROR with a code and perhaps words.
    pub(crate) fn krb_error(code: u8, text: &[u8]) -> Vec<u8> {
        let text = if text.is_empty() { Vec::new() } else { tlv(0xab, &[&tlv(0x1b, &[text])]) };
        let fields = [int(0, 5), int(1, 30), int(6, code), tlv(0xaa, &[&name(&[b"cifs", b"h"])])];
        let fields = [fields.concat(), text].concat();
        tlv(0x7e, &[&tlv(0x30, &[&fields])])
    }

    fn read(data: &[u8]) -> Option<Message<'_>> {
        parse(data, &mut Aside::default())
    }

    #[test]
    fn requests_replies_and_errors() {
        let data = as_req();
        let Some(Message::Request(r)) = read(&data) else { panic!("no request") };
        assert_eq!((r.kind, r.forwardable(), r.renewable()), (10, Some(true), Some(true)));
        assert_eq!(r.client.map(|c| c.text()), Some(b"des".to_vec()));
        assert_eq!(r.service.map(|c| c.text()), Some(b"krbtgt/X".to_vec()));
        assert_eq!((r.realm, r.from, r.till), (Some(&b"X"[..]), None, Some(2_136_422_885)));
        let data = as_rep();
        let Some(Message::Reply(r)) = read(&data) else { panic!("no reply") };
        assert_eq!((r.kind, r.realm, r.client.text()), (11, &b"X"[..], b"des".to_vec()));
        assert_eq!((r.ticket.service.text(), r.ticket.cipher), (b"cifs/h".to_vec(), 18));
        let data = krb_error(6, b"no such client");
        let Some(Message::Error(e)) = read(&data) else { panic!("no error") };
        assert_eq!((e.code, e.text), (6, Some(&b"no such client"[..])));
        assert!(e.client.is_none() && e.service.is_some());
    }

    #[test]
    fn nothing_cut_short_is_a_reply() {
        let data = as_rep();
        for n in 0..data.len() {
            assert_eq!(read(&data[..n]), None);
        }
        assert_eq!(read(b"\x64\x82\x00\x00"), None);
    }

    #[test]
    fn times_run_over() {
        assert_eq!(seconds(b"19700101000000Z"), 0);
        assert_eq!(seconds(b"20000229235960Z"), 951_868_800);
        assert_eq!(seconds(b"20001301000000Z"), seconds(b"20010101000000Z"));
        assert_eq!(seconds(b"19691231235959Z"), -1);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(data in prop::collection::vec(any::<u8>(), 0..200), at in 0usize..400) {
            let _ = parse(&data, &mut Aside::default());
            let mut message = as_rep();
            for (to, from) in message.iter_mut().skip(at).zip(&data) {
                *to = *from;
            }
            let _ = parse(&message, &mut Aside::default());
        }
    }
}
