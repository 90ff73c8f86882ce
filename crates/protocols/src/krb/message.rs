//! Messages, as far as they are logged. All numbers, times and names lie in ASN.1, each field of a
//! sequence behind a tag with its number.

use gannet_base::Time;

use crate::support::Bytes;
use crate::support::ber;

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// AS-REQ or TGS-REQ.
    Request(Request<'a>),
    /// AS-REP or TGS-REP.
    Reply(Reply<'a>),
    /// AP-REQ: a ticket shown to a service.
    ApRequest(Ticket<'a>),
    /// AP-REP: the service's answer.
    ApReply,
    /// KRB-ERROR.
    Error(Error<'a>),
    /// KRB-SAFE, KRB-PRIV, KRB-CRED.
    Other,
}

/// A wish for a ticket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request<'a> {
    /// 10 for AS, 12 for TGS.
    pub kind: u64,
    /// Options.
    pub options: Option<u32>,
    /// Who asks.
    pub client: Option<Vec<u8>>,
    /// The realm.
    pub realm: Option<&'a [u8]>,
    /// For which service.
    pub service: Option<Vec<u8>>,
    /// From when.
    pub from: Option<Time>,
    /// Until when.
    pub till: Option<Time>,
}

/// A ticket for the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply<'a> {
    /// 11 for AS, 13 for TGS.
    pub kind: u64,
    /// The client's realm.
    pub realm: &'a [u8],
    /// The client.
    pub client: Vec<u8>,
    /// The ticket.
    pub ticket: Ticket<'a>,
}

/// A ticket, the part that can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticket<'a> {
    /// Realm of the service.
    pub realm: &'a [u8],
    /// The service.
    pub service: Vec<u8>,
    /// Encryption.
    pub cipher: u64,
}

/// What went wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Error<'a> {
    /// Code (RFC 4120 section 7.5.9).
    pub code: u64,
    /// The client's realm.
    pub client_realm: Option<&'a [u8]>,
    /// The client.
    pub client: Option<Vec<u8>>,
    /// The service.
    pub service: Option<Vec<u8>>,
    /// In words.
    pub text: Option<&'a [u8]>,
}

impl Request<'_> {
    /// Whether tickets may be handed on.
    pub fn forwardable(&self) -> Option<bool> {
        self.options.map(|o| o & 1 << 30 != 0)
    }

    /// Whether tickets may be renewed.
    pub fn renewable(&self) -> Option<bool> {
        self.options.map(|o| o & 1 << 23 != 0)
    }
}

impl<'a> Message<'a> {
    /// Parses a message; `None` if it cannot be read.
    pub fn parse(data: &'a [u8]) -> Option<Self> {
        let mut b = Bytes(data);
        let number = ber::head(&mut b)?.number();
        Some(match number {
            10 | 12 => Self::Request(request(&mut b)?),
            11 | 13 => Self::Reply(reply(&mut b)?),
            14 => Self::ApRequest(ap_request(&mut b)?),
            15 => {
                // The sequence's head is read as part of its first field.
                element(&mut b)?;
                element(&mut b)?;
                encrypted(&mut b)?;
                Self::ApReply
            }
            20..=22 => {
                element(&mut b)?;
                element(&mut b)?;
                Self::Other
            }
            30 => Self::Error(error(&mut b)?),
            _ => return None,
        })
    }
}

/// A tagged field: the value behind the tag.
fn element<'a>(b: &mut Bytes<'a>) -> Option<&'a [u8]> {
    ber::head(b)?;
    ber::value(b).map(|(_, content)| content)
}

/// What a head announces.
fn within<'a>(b: &mut Bytes<'a>, head: ber::Head) -> Option<Bytes<'a>> {
    b.take(usize::try_from(head.length).ok()?).map(Bytes)
}

fn request<'a>(b: &mut Bytes<'a>) -> Option<Request<'a>> {
    ber::head(b)?;
    element(b)?; // pvno
    let mut request = Request { kind: ber::unsigned(element(b)?), ..Request::default() };
    pre_authentication(b, 3)?;
    ber::head(b)?;
    while !b.is_empty() {
        let head = ber::head(b)?;
        let mut field = within(b, head)?;
        match head.index() {
            0 => {
                ber::head(&mut field)?;
                field.u8()?;
                request.options = Some(field.u32()?);
            }
            1 => request.client = Some(principal(&mut field)?),
            2 => request.realm = Some(ber::value(&mut field)?.1),
            3 => request.service = Some(principal(&mut field)?),
            4 => request.from = time(&mut field)?,
            5 => request.till = time(&mut field)?,
            6 => {
                time(&mut field)?;
            }
            7 | 10 => {
                ber::value(&mut field)?;
            }
            _ => {}
        }
    }
    Some(request)
}

/// Skips the field with pre-authentication data, if it is there; reads the head of the field after
/// it.
fn pre_authentication(b: &mut Bytes<'_>, index: u8) -> Option<ber::Head> {
    let first = ber::head(b)?;
    if first.index() != index {
        return Some(first);
    }
    let mut list = within(b, first)?;
    let head = ber::head(&mut list)?;
    if head.tag == ber::SEQUENCE {
        while !list.is_empty() {
            ber::head(&mut list)?;
            element(&mut list)?;
            ber::value(&mut list)?;
        }
    }
    ber::head(b)
}

fn reply<'a>(b: &mut Bytes<'a>) -> Option<Reply<'a>> {
    ber::head(b)?;
    element(b)?;
    let kind = ber::unsigned(element(b)?);
    let head = pre_authentication(b, 2)?;
    let realm = ber::value(&mut within(b, head)?)?.1;
    let head = ber::head(b)?;
    let client = principal(&mut within(b, head)?)?;
    let ticket = ticket(b)?;
    encrypted(b)?;
    Some(Reply { kind, realm, client, ticket })
}

fn ap_request<'a>(b: &mut Bytes<'a>) -> Option<Ticket<'a>> {
    ber::head(b)?;
    element(b)?;
    element(b)?;
    ber::head(b)?; // options
    ber::head(b)?;
    b.take(5)?;
    let ticket = ticket(b)?;
    encrypted(b)?;
    Some(ticket)
}

fn ticket<'a>(b: &mut Bytes<'a>) -> Option<Ticket<'a>> {
    for _ in 0..3 {
        ber::head(b)?;
    }
    element(b)?;
    let realm = element(b)?;
    let head = ber::head(b)?;
    let service = principal(&mut within(b, head)?)?;
    Some(Ticket { realm, service, cipher: encrypted(b)? })
}

/// Encrypted data: which encryption.
fn encrypted(b: &mut Bytes<'_>) -> Option<u64> {
    let head = ber::head(b)?;
    let mut b = within(b, head)?;
    ber::head(&mut b)?;
    let cipher = ber::unsigned(element(&mut b)?);
    let mut head = ber::head(&mut b)?;
    if head.index() == 1 {
        ber::value(&mut b)?; // version of the key
        head = ber::head(&mut b)?;
    }
    ber::value(&mut within(&mut b, head)?)?;
    Some(cipher)
}

/// A name of up to three parts, joined by slashes.
fn principal(b: &mut Bytes<'_>) -> Option<Vec<u8>> {
    ber::head(b)?;
    ber::head(b)?;
    ber::value(b)?;
    ber::head(b)?;
    ber::head(b)?;
    let mut name = Vec::new();
    let mut parts = 0;
    while !b.is_empty() {
        let part = ber::value(b)?.1;
        parts += 1;
        if parts <= 3 {
            if parts > 1 {
                name.push(b'/');
            }
            name.extend_from_slice(part);
        }
    }
    Some(if (1..=3).contains(&parts) { name } else { b"unknown".to_vec() })
}

/// A time (`20370913024805Z`), if it has the length of one.
fn time(b: &mut Bytes<'_>) -> Option<Option<Time>> {
    ber::head(b)?;
    let text = b.rest();
    let text = match text.len() {
        15 => text,
        17 => &text[2..],
        _ => return Some(None),
    };
    let number = |from: usize, to: usize| {
        text[from..to].iter().fold(0, |n, b| 10 * n + i64::from(*b) - i64::from(b'0'))
    };
    let days = days(number(0, 4), number(4, 6), number(6, 8));
    let seconds = days * 86_400 + number(8, 10) * 3600 + number(10, 12) * 60 + number(12, 14);
    Some(Some(Time::from_secs(seconds)))
}

/// Days from 1970-01-01 to a date of the Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> i64 {
    // Years that begin in March put the leap day last.
    let months = year * 12 + month - 3;
    let (year, month) = (months.div_euclid(12), months.rem_euclid(12));
    let before = (153 * month + 2) / 5;
    365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + before + day
        - 719_469
}

fn error<'a>(b: &mut Bytes<'a>) -> Option<Error<'a>> {
    ber::head(b)?;
    let mut error = Error::default();
    loop {
        let head = ber::head(b)?;
        if head.index() == 6 {
            break;
        }
        error_field(&mut error, b, head)?;
    }
    error.code = ber::unsigned(ber::value(b)?.1);
    while !b.is_empty() {
        let head = ber::head(b)?;
        error_field(&mut error, b, head)?;
    }
    Some(error)
}

fn error_field<'a>(error: &mut Error<'a>, b: &mut Bytes<'a>, head: ber::Head) -> Option<()> {
    let mut field = within(b, head)?;
    match head.index() {
        0 | 1 | 3 | 5 => {
            ber::value(&mut field)?;
        }
        2 | 4 => {
            ber::head(&mut field)?;
        }
        6 | 12 => {}
        7 => error.client_realm = Some(ber::value(&mut field)?.1),
        8 => error.client = Some(principal(&mut field)?),
        9 => {
            ber::value(&mut field)?;
        }
        10 => error.service = Some(principal(&mut field)?),
        11 => error.text = Some(ber::value(&mut field)?.1),
        _ => return None,
    }
    Some(())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn tlv(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
        let content = parts.concat();
        let mut out = vec![tag];
        if content.len() < 128 {
            out.push(content.len() as u8);
        } else {
            out.extend_from_slice(&[0x82, (content.len() >> 8) as u8, content.len() as u8]);
        }
        out.extend_from_slice(&content);
        out
    }

    fn int(n: u8) -> Vec<u8> {
        tlv(2, &[&[n]])
    }

    fn name(parts: &[&[u8]]) -> Vec<u8> {
        let parts: Vec<_> = parts.iter().map(|p| tlv(0x1b, &[p])).collect();
        let parts: Vec<&[u8]> = parts.iter().map(|p| &p[..]).collect();
        tlv(0x30, &[&tlv(0xa0, &[&int(1)]), &tlv(0xa1, &[&tlv(0x30, &parts)])])
    }

    fn cipher(n: u8) -> Vec<u8> {
        tlv(0x30, &[&tlv(0xa0, &[&int(n)]), &tlv(0xa2, &[&tlv(4, &[b"xx"])])])
    }

    pub(in super::super) fn as_request() -> Vec<u8> {
        let body = tlv(
            0x30,
            &[
                &tlv(0xa0, &[&tlv(3, &[b"\0\x40\x80\0\0"])]),
                &tlv(0xa1, &[&name(&[b"me"])]),
                &tlv(0xa2, &[&tlv(0x1b, &[b"REALM"])]),
                &tlv(0xa3, &[&name(&[b"krbtgt", b"REALM"])]),
                &tlv(0xa5, &[&tlv(0x18, &[b"20370913024805Z"])]),
            ],
        );
        let pa = tlv(0x30, &[&tlv(0xa1, &[&int(2)]), &tlv(0xa2, &[&tlv(4, &[b"stamp"])])]);
        let fields = [
            tlv(0xa1, &[&int(5)]),
            tlv(0xa2, &[&int(10)]),
            tlv(0xa3, &[&tlv(0x30, &[&pa])]),
            tlv(0xa4, &[&body]),
        ];
        tlv(0x6a, &[&tlv(0x30, &[&fields.concat()])])
    }

    pub(in super::super) fn as_reply() -> Vec<u8> {
        let ticket = tlv(
            0x61,
            &[&tlv(
                0x30,
                &[
                    &tlv(0xa0, &[&int(5)]),
                    &tlv(0xa1, &[&tlv(0x1b, &[b"REALM"])]),
                    &tlv(0xa2, &[&name(&[b"krbtgt", b"REALM"])]),
                    &tlv(0xa3, &[&cipher(18)]),
                ],
            )],
        );
        let fields = [
            tlv(0xa0, &[&int(5)]),
            tlv(0xa1, &[&int(11)]),
            tlv(0xa3, &[&tlv(0x1b, &[b"REALM"])]),
            tlv(0xa4, &[&name(&[b"me"])]),
            tlv(0xa5, &[&ticket]),
            tlv(0xa6, &[&cipher(18)]),
        ];
        tlv(0x6b, &[&tlv(0x30, &[&fields.concat()])])
    }

    pub(in super::super) fn error_message(code: u8, text: Option<&[u8]>) -> Vec<u8> {
        let mut fields = vec![
            tlv(0xa0, &[&int(5)]),
            tlv(0xa1, &[&int(30)]),
            tlv(0xa4, &[&tlv(0x18, &[b"20200101000000Z"])]),
            tlv(0xa6, &[&int(code)]),
            tlv(0xaa, &[&name(&[b"host", b"x", b"y", b"z"])]),
        ];
        fields.extend(text.map(|t| tlv(0xab, &[&tlv(0x1b, &[t])])));
        tlv(0x7e, &[&tlv(0x30, &[&fields.concat()])])
    }

    #[test]
    fn requests() {
        let m = as_request();
        let Some(Message::Request(r)) = Message::parse(&m) else { panic!("no request") };
        assert_eq!((r.kind, r.realm), (10, Some(&b"REALM"[..])));
        assert_eq!(r.client, Some(b"me".to_vec()));
        assert_eq!(r.service, Some(b"krbtgt/REALM".to_vec()));
        assert_eq!(r.till, Some(Time::from_secs(2_136_422_885)));
        assert_eq!((r.forwardable(), r.renewable()), (Some(true), Some(true)));
        for n in 0..m.len() {
            // A message that ends between fields lacks them.
            assert_ne!(Message::parse(&m[..n]), Some(Message::Request(r.clone())));
        }
    }

    #[test]
    fn replies_and_errors() {
        let m = as_reply();
        let Some(Message::Reply(r)) = Message::parse(&m) else { panic!("no reply") };
        assert_eq!((r.kind, &*r.client, r.ticket.cipher), (11, &b"me"[..], 18));
        let m = error_message(6, Some(b"who?"));
        let Some(Message::Error(e)) = Message::parse(&m) else { panic!("no error") };
        assert_eq!((e.code, e.text), (6, Some(&b"who?"[..])));
        assert_eq!(e.service, Some(b"unknown".to_vec()));
        assert_eq!(Message::parse(b"\x63\x00"), None);
    }

    #[test]
    fn dates() {
        assert_eq!(days(1970, 1, 1), 0);
        assert_eq!(days(2000, 2, 29), 11_016);
        assert_eq!(days(2000, 3, 1), 11_017);
    }
}
