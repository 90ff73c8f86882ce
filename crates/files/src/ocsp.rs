//! OCSP requests and responses: the status of certificates, as their issuer states it (RFC 6960).
//!
//! [`parse_request`] returns the requested certificates, [`parse_response`] the status of each
//! certificate. Both accept and reject the same messages as OpenSSL 3.

use crate::der::{
    Class, DerError, Element, Integer, Reader, Result, integer_hex, push_folded_hex, tag,
};
use crate::oid;
use crate::x509::{
    self, Algorithm, Extensions, Name, Weird, check_general_name, universal, unix_seconds,
};

/// Name in weird.log of a request that [`parse_request`] rejects.
pub const REQUEST_ERROR_WEIRD: &str = "openssl_ocsp_request_parse_error";

/// Name in weird.log of a response that [`parse_response`] rejects.
pub const RESPONSE_ERROR_WEIRD: &str = "openssl_ocsp_response_parse_error";

/// Maximum length of a text in bytes.
const MAX_TEXT: usize = 2048;

/// Contents octets of the object identifier of a basic response.
const BASIC_RESPONSE: [u8; 9] = [0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x30, 0x01, 0x01];

/// Identifies a certificate (RFC 6960 section 4.1.1). Hashes and serial number are in upper-case
/// hexadecimal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CertificateId {
    /// Name of the hash: `sha1`.
    pub hash_algorithm: String,
    /// Hash of the issuer's name.
    pub issuer_name_hash: String,
    /// Hash of the issuer's key.
    pub issuer_key_hash: String,
    /// Serial number.
    pub serial: String,
}

/// An OCSP request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// The certificates whose status is requested.
    pub certificates: Vec<CertificateId>,
}

/// An OCSP response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Response {
    /// The response status: zero is success (RFC 6960 section 4.2.1).
    pub status: Option<i64>,
    /// The status of each certificate; empty if the server sent an error.
    pub certificates: Vec<CertificateStatus>,
    /// The encoded basic response with the statuses, if it parses.
    pub basic: Option<Vec<u8>>,
    /// Weirds.
    pub weirds: Vec<Weird>,
}

/// The status of one certificate. Times are seconds since 1970.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CertificateStatus {
    /// The certificate.
    pub id: CertificateId,
    /// `good`, `revoked` or `unknown`.
    pub status: &'static str,
    /// Time of the revocation.
    pub revoked_at: Option<i64>,
    /// Reason of the revocation.
    pub revoke_reason: Option<&'static str>,
    /// Time at which the status was known to be correct.
    pub this_update: i64,
    /// Time at which newer information will be available.
    pub next_update: Option<i64>,
}

/// Parses the request at the start of `data`.
///
/// # Errors
/// If the bytes do not have the structure of a request.
pub fn parse_request(data: &[u8]) -> Result<Request> {
    let mut whole = Reader::new(data).sequence()?;
    let mut body = whole.sequence()?;
    if let Some(version) = body.optional(Class::Context, 0)? {
        universal(version.explicit()?, tag::INTEGER)?.integer()?;
    }
    if let Some(requestor) = body.optional(Class::Context, 1)? {
        check_general_name(&requestor.explicit()?)?;
    }
    let mut list = body.universal(tag::SEQUENCE)?.items();
    let mut certificates = Vec::new();
    while !list.is_empty() {
        let mut single = list.sequence()?;
        certificates.push(Id::read(&mut single)?.texts());
        extensions(&mut single, 0)?;
        single.finish()?;
    }
    extensions(&mut body, 2)?;
    body.finish()?;
    if let Some(signature) = whole.optional(Class::Context, 0)? {
        let mut members = universal(signature.explicit()?, tag::SEQUENCE)?.members()?;
        signed(&mut members)?;
    }
    whole.finish()?;
    Ok(Request { certificates })
}

/// Parses the response at the start of `data`. A response of a type other than basic has no
/// certificates, nor has one whose basic response does not parse.
///
/// # Errors
/// If the bytes do not have the structure of a response.
pub fn parse_response(data: &[u8]) -> Result<Response> {
    let mut whole = Reader::new(data).sequence()?;
    let status = whole.universal(tag::ENUMERATED)?.integer()?.to_i64();
    let mut response = Response { status, ..Response::default() };
    if let Some(bytes) = whole.optional(Class::Context, 0)? {
        let mut members = universal(bytes.explicit()?, tag::SEQUENCE)?.members()?;
        let kind = members.universal(tag::OID)?.oid()?;
        let basic = members.universal(tag::OCTET_STRING)?.octets()?;
        members.finish()?;
        if kind == BASIC_RESPONSE
            && let Ok(certificates) = basic_response(&basic, &mut response.weirds)
        {
            response.certificates = certificates;
            response.basic = Some(basic.into_owned());
        }
    }
    whole.finish()?;
    Ok(response)
}

/// Parses a BasicOCSPResponse (RFC 6960 section 4.2.1).
fn basic_response(data: &[u8], weirds: &mut Vec<Weird>) -> Result<Vec<CertificateStatus>> {
    let mut whole = Reader::new(data).sequence()?;
    let mut body = whole.sequence()?;
    signed(&mut whole)?;

    if let Some(version) = body.optional(Class::Context, 0)? {
        universal(version.explicit()?, tag::INTEGER)?.integer()?;
    }
    let responder = body.element()?;
    match (responder.class, responder.tag) {
        (Class::Context, 1) => {
            Name::from_element(&universal(responder.explicit()?, tag::SEQUENCE)?)?;
        }
        (Class::Context, 2) => {
            universal(responder.explicit()?, tag::OCTET_STRING)?.octets()?;
        }
        _ => return Err(DerError::UnexpectedTag),
    }
    let produced = time(body.element()?)?;
    let mut list = body.universal(tag::SEQUENCE)?.items();
    let mut singles = Vec::new();
    while !list.is_empty() {
        singles.push(SingleResponse::read(&mut list)?);
    }
    extensions(&mut body, 1)?;
    body.finish()?;

    seconds(&produced, weirds);
    let statuses = singles.iter().map(|single| {
        // A repeated certificate keeps its first status.
        let first = singles.iter().find(|other| other.id == single.id).unwrap_or(single);
        first.status(weirds)
    });
    Ok(statuses.collect())
}

/// Parses the fields after the signed part: algorithm, signature, and certificates if present.
fn signed(members: &mut Reader<'_>) -> Result<()> {
    Algorithm::read(members)?;
    members.universal(tag::BIT_STRING)?.bits()?;
    if let Some(certificates) = members.optional(Class::Context, 0)? {
        let mut list = universal(certificates.explicit()?, tag::SEQUENCE)?.items();
        while !list.is_empty() {
            x509::check(list.element()?.raw)?;
        }
    }
    members.finish()
}

/// Checks explicitly tagged extensions, if present.
fn extensions(members: &mut Reader<'_>, number: u32) -> Result<()> {
    if let Some(list) = members.optional(Class::Context, number)? {
        Extensions::read(list.explicit()?)?;
    }
    Ok(())
}

/// A CertID.
#[derive(Debug, PartialEq)]
pub(crate) struct Id<'a> {
    algorithm: &'a [u8],
    name_hash: std::borrow::Cow<'a, [u8]>,
    key_hash: std::borrow::Cow<'a, [u8]>,
    serial: Integer<'a>,
}

impl<'a> Id<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self> {
        let mut members = reader.sequence()?;
        let algorithm = Algorithm::read(&mut members)?.identifier;
        let name_hash = members.universal(tag::OCTET_STRING)?.octets()?;
        let key_hash = members.universal(tag::OCTET_STRING)?.octets()?;
        let serial = members.universal(tag::INTEGER)?.integer()?;
        members.finish()?;
        Ok(Self { algorithm, name_hash, key_hash, serial })
    }

    fn texts(&self) -> CertificateId {
        let mut serial = integer_hex(self.serial);
        serial.truncate(MAX_TEXT);
        CertificateId {
            hash_algorithm: oid::algorithm_name(self.algorithm),
            issuer_name_hash: octets_hex(&self.name_hash),
            issuer_key_hash: octets_hex(&self.key_hash),
            serial,
        }
    }
}

/// A SingleResponse.
pub(crate) struct SingleResponse<'a> {
    id: Id<'a>,
    state: State<'a>,
    this_update: Element<'a>,
    next_update: Option<Element<'a>>,
}

/// A CertStatus.
enum State<'a> {
    Good,
    Revoked(Element<'a>, Option<Integer<'a>>),
    Unknown,
}

impl<'a> SingleResponse<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self> {
        Ok(Self::with_extensions(reader)?.0)
    }

    /// Parses a SingleResponse, and returns its extensions.
    pub(crate) fn with_extensions(reader: &mut Reader<'a>) -> Result<(Self, Option<Element<'a>>)> {
        let mut members = reader.sequence()?;
        let id = Id::read(&mut members)?;
        let state = State::read(&members.element()?)?;
        let this_update = time(members.element()?)?;
        let next_update = match members.optional(Class::Context, 0)? {
            Some(next_update) => Some(time(next_update.explicit()?)?),
            None => None,
        };
        let extensions = match members.optional(Class::Context, 1)? {
            Some(list) => Some(list.explicit()?),
            None => None,
        };
        if let Some(list) = extensions {
            Extensions::read(list)?;
        }
        members.finish()?;
        Ok((Self { id, state, this_update, next_update }, extensions))
    }

    /// The status in the form of the log.
    fn status(&self, weirds: &mut Vec<Weird>) -> CertificateStatus {
        let mut status = CertificateStatus { id: self.id.texts(), ..CertificateStatus::default() };
        status.status = match &self.state {
            State::Good => "good",
            State::Unknown => "unknown",
            State::Revoked(at, reason) => {
                status.revoked_at = Some(seconds(at, weirds)).filter(|&at| at != 0);
                status.revoke_reason = reason.and_then(reason_name);
                "revoked"
            }
        };
        status.this_update = seconds(&self.this_update, weirds);
        status.next_update = self
            .next_update
            .as_ref()
            .map(|next_update| seconds(next_update, weirds))
            .filter(|&at| at != 0);
        status
    }
}

impl<'a> State<'a> {
    fn read(element: &Element<'a>) -> Result<Self> {
        match (element.class, element.tag) {
            (Class::Context, 0) if element.primitive()?.is_empty() => Ok(Self::Good),
            (Class::Context, 1) => {
                let mut members = element.members()?;
                let at = time(members.element()?)?;
                let reason = match members.optional(Class::Context, 0)? {
                    Some(reason) => {
                        Some(universal(reason.explicit()?, tag::ENUMERATED)?.integer()?)
                    }
                    None => None,
                };
                members.finish()?;
                Ok(Self::Revoked(at, reason))
            }
            (Class::Context, 2) if element.primitive()?.is_empty() => Ok(Self::Unknown),
            _ => Err(DerError::UnexpectedTag),
        }
    }
}

/// Name of a reason code of RFC 5280 section 5.3.1.
fn reason_name(reason: Integer<'_>) -> Option<&'static str> {
    Some(match reason.to_i64() {
        Some(-1) => return None,
        Some(0) => "unspecified",
        Some(1) => "keyCompromise",
        Some(2) => "cACompromise",
        Some(3) => "affiliationChanged",
        Some(4) => "superseded",
        Some(5) => "cessationOfOperation",
        Some(6) => "certificateHold",
        Some(8) => "removeFromCRL",
        Some(9) => "privilegeWithdrawn",
        Some(10) => "aACompromise",
        _ => "(UNKNOWN)",
    })
}

/// Checks that an element is a GeneralizedTime.
pub(crate) fn time(element: Element<'_>) -> Result<Element<'_>> {
    let element = universal(element, tag::GENERALIZED_TIME)?;
    element.octets().map(|_| element)
}

/// A time in seconds since 1970; zero if it is invalid.
pub(crate) fn seconds(time: &Element<'_>, weirds: &mut Vec<Weird>) -> i64 {
    match time.octets().map(|octets| unix_seconds(time, &octets)) {
        Ok(Ok(seconds)) => seconds,
        Ok(Err(weird)) => {
            weirds.push(weird);
            0
        }
        Err(_) => 0,
    }
}

/// Octets in upper-case hexadecimal, folded like serial numbers; a single zero if there are none.
pub(crate) fn octets_hex(octets: &[u8]) -> String {
    if octets.is_empty() {
        return "0".to_owned();
    }
    let mut text = String::new();
    push_folded_hex(octets, &mut text);
    text.truncate(MAX_TEXT);
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::der::push_header;
    use proptest::prelude::*;

    /// An element with these contents.
    fn wrap(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
        let content = parts.concat();
        let mut out = Vec::new();
        push_header(tag, content.len(), &mut out);
        out.extend(content);
        out
    }

    const SHA1: &[u8] = &[0x30, 0x09, 0x06, 0x05, 0x2b, 0x0e, 0x03, 0x02, 0x1a, 0x05, 0x00];

    fn certificate_id(serial: u8) -> Vec<u8> {
        wrap(0x30, &[SHA1, &wrap(4, &[&[0xab; 20]]), &wrap(4, &[&[]]), &[2, 1, serial]])
    }

    fn response_of(singles: &[Vec<u8>]) -> Vec<u8> {
        let time = wrap(24, &[b"20221027035102Z"]);
        let singles: Vec<&[u8]> = singles.iter().map(Vec::as_slice).collect();
        let body = wrap(0x30, &[&wrap(0xa2, &[&wrap(4, &[b"key"])]), &time, &wrap(0x30, &singles)]);
        let basic = wrap(0x30, &[&body, SHA1, &[3, 1, 0]]);
        let bytes = wrap(0x30, &[&wrap(6, &[&BASIC_RESPONSE]), &wrap(4, &[&basic])]);
        wrap(0x30, &[&[10, 1, 0], &wrap(0xa0, &[&bytes])])
    }

    #[test]
    fn statuses_of_certificates() {
        let now = wrap(24, &[b"20221027035102Z"]);
        let next = wrap(0xa0, &[&wrap(24, &[b"20221103025102Z"])]);
        let revoked = wrap(0xa1, &[&wrap(24, &[b"20200101000000Z"]), &wrap(0xa0, &[&[10, 1, 1]])]);
        let response = parse_response(&response_of(&[
            wrap(0x30, &[&certificate_id(1), &[0x80, 0], &now, &next]),
            wrap(0x30, &[&certificate_id(2), &revoked, &now]),
            wrap(0x30, &[&certificate_id(1), &[0x82, 0], &now]),
        ]))
        .unwrap();
        assert_eq!(response.status, Some(0));
        let [good, gone, again] = response.certificates.as_slice() else {
            panic!("three are told of")
        };
        assert_eq!(good.id.hash_algorithm, "sha1");
        assert_eq!(good.id.issuer_name_hash, "AB".repeat(20));
        assert_eq!(good.id.issuer_key_hash, "0");
        assert_eq!(good.id.serial, "01");
        assert_eq!(
            (good.status, good.this_update, good.next_update),
            ("good", 1_666_842_662, Some(1_667_443_862))
        );
        assert_eq!(
            (gone.status, gone.revoked_at, gone.revoke_reason),
            ("revoked", Some(1_577_836_800), Some("keyCompromise"))
        );
        assert_eq!(again.status, "good");
    }

    #[test]
    fn requests() {
        let body = wrap(0x30, &[&wrap(0x30, &[&wrap(0x30, &[&certificate_id(7)])])]);
        let request = parse_request(&wrap(0x30, &[&body])).unwrap();
        assert_eq!(request.certificates.len(), 1);
        assert_eq!(request.certificates[0].serial, "07");
        assert!(parse_request(&wrap(0x30, &[&body, &[5, 0]])).is_err());
    }

    #[test]
    fn responses_without_an_answer() {
        assert_eq!(
            parse_response(&[0x30, 3, 10, 1, 6]).unwrap(),
            Response { status: Some(6), ..Response::default() }
        );
        assert!(parse_response(&[0x30, 3, 2, 1, 6]).is_err());
    }

    proptest! {
        #[test]
        fn mutations_never_panic(at in 0usize..200, byte in any::<u8>(), cut in 0usize..200) {
            let now = wrap(24, &[b"20221027035102Z"]);
            let mut data = response_of(&[wrap(0x30, &[&certificate_id(1), &[0x80, 0], &now])]);
            if let Some(slot) = data.get_mut(at) {
                *slot = byte;
            }
            let end = data.len() - cut.min(data.len());
            let _ = (parse_response(&data), parse_response(&data[..end]), parse_request(&data));
        }
    }
}
