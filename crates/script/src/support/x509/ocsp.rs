//! OCSP responses (RFC 6960 section 4.2): verification of the status of a certificate.

use sha1::{Digest as _, Sha1};

use super::der::{Certificate, Der, Element, tag, time};
use super::{Verdict, is_signature_valid, issuer_among, key_parts, verify};

/// OIDs of basic responses and of SHA-1.
const BASIC: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 0x30, 1, 1];
const SHA1: &[u8] = &[0x2b, 0x0e, 3, 2, 0x1a];

/// Status of a response that contains answers.
const SUCCESSFUL: u8 = 0;

/// A response.
struct Response<'a> {
    /// The signed part (`tbsResponseData`).
    signed: &'a [u8],
    /// The name of the responder, or the SHA-1 hash of its key.
    responder: Element<'a>,
    /// Single responses, one per requested certificate.
    answers: Der<'a>,
    /// The signature, then the OID of its algorithm.
    signature: &'a [u8],
    algorithm: &'a [u8],
    /// Certificates in the response.
    certificates: Vec<&'a [u8]>,
}

/// A single response, for one certificate.
struct Answer<'a> {
    hash: &'a [u8],
    issuer_name: &'a [u8],
    issuer_key: &'a [u8],
    serial: &'a [u8],
    status: u8,
    this_update: Element<'a>,
    next_update: Option<Element<'a>>,
}

impl<'a> Response<'a> {
    /// Parses a basic response; `Err` with the status of a response without answers.
    fn parse(der: &'a [u8]) -> Option<Result<Self, u8>> {
        let mut parts = Der(der).expect_tag(tag::SEQUENCE)?.inside();
        let status = *parts.expect_tag(tag::ENUMERATED)?.content.last()?;
        if status != SUCCESSFUL {
            return Some(Err(status));
        }
        let mut bytes =
            parts.expect_tag(tag::CONTEXT_0)?.inside().expect_tag(tag::SEQUENCE)?.inside();
        if bytes.expect_tag(tag::OID)?.content != BASIC {
            return None;
        }
        let basic = bytes.expect_tag(tag::OCTET_STRING)?.inside().expect_tag(tag::SEQUENCE)?;
        let mut parts = basic.inside();
        let signed = parts.expect_tag(tag::SEQUENCE)?;
        let algorithm = parts.expect_tag(tag::SEQUENCE)?.inside().expect_tag(tag::OID)?.content;
        let signature = parts.expect_tag(tag::BIT_STRING)?.bits()?;
        let mut certificates = Vec::new();
        if let Some(all) = parts.expect_tag(tag::CONTEXT_0) {
            let mut all = all.inside().expect_tag(tag::SEQUENCE)?.inside();
            while let Some(one) = all.expect_tag(tag::SEQUENCE) {
                certificates.push(one.whole);
            }
        }
        let mut fields = signed.inside();
        fields.expect_tag(tag::CONTEXT_0);
        let responder = fields.element()?;
        fields.expect_tag(tag::TIME)?;
        let answers = fields.expect_tag(tag::SEQUENCE)?.inside();
        let signed = signed.whole;
        Some(Ok(Self { signed, responder, answers, signature, algorithm, certificates }))
    }

    /// The certificate of the responder.
    fn signer(&self, among: &[&'a [u8]]) -> Option<Certificate<'a>> {
        let id = self.responder.inside().element()?;
        let is_signer = |one: &Certificate<'_>| match self.responder.tag {
            tag::CONTEXT_1 => one.subject == id.whole,
            tag::CONTEXT_2 => key_hash(one).is_some_and(|hash| hash == id.content),
            _ => false,
        };
        among.iter().filter_map(|der| Certificate::parse(der)).find(is_signer)
    }
}

impl<'a> Answer<'a> {
    fn parse(mut answers: Der<'a>) -> Option<Self> {
        let mut parts = answers.expect_tag(tag::SEQUENCE)?.inside();
        let mut id = parts.expect_tag(tag::SEQUENCE)?.inside();
        Some(Self {
            hash: id.expect_tag(tag::SEQUENCE)?.inside().expect_tag(tag::OID)?.content,
            issuer_name: id.expect_tag(tag::OCTET_STRING)?.content,
            issuer_key: id.expect_tag(tag::OCTET_STRING)?.content,
            serial: id.expect_tag(tag::INTEGER)?.content,
            status: parts.element()?.tag & 0x1f,
            this_update: parts.expect_tag(tag::TIME)?,
            next_update: parts
                .expect_tag(tag::CONTEXT_0)
                .and_then(|next| next.inside().expect_tag(tag::TIME)),
        })
    }

    /// Whether it is for `certificate`, issued by `issuer`.
    fn is_about(&self, certificate: &Certificate<'_>, issuer: &Certificate<'_>) -> bool {
        self.hash == SHA1
            && self.issuer_name == Sha1::digest(certificate.issuer).as_slice()
            && key_hash(issuer).is_some_and(|hash| hash == *self.issuer_key)
            && self.serial == certificate.serial
    }
}

/// The hash of a certificate's key, without its algorithm.
fn key_hash(certificate: &Certificate<'_>) -> Option<[u8; 20]> {
    let (_, _, bits) = key_parts(certificate.key)?;
    Some(Sha1::digest(bits).into())
}

/// The name of a response's status (RFC 6960 section 4.2.1).
fn status_name(status: u8) -> &'static str {
    match status {
        1 => "malformedrequest",
        2 => "internalerror",
        3 => "trylater",
        5 => "sigrequired",
        6 => "unauthorized",
        _ => "(UNKNOWN)",
    }
}

/// Verifies that an OCSP response reports the first of `certificates` as good at time `now`, in seconds since
/// 1970. The signer must be a certificate of the response or another one of `certificates`, with a chain to one
/// of `roots`, and the response must be current. The code is 1 if it is good.
#[must_use]
pub fn verify_response(
    certificates: &[Vec<u8>],
    response: &[u8],
    roots: &[&[u8]],
    now: i64,
) -> Verdict {
    let wrong = |text| Verdict::error(-1, text);
    let Some(certificate) = certificates.first().and_then(|der| Certificate::parse(der)) else {
        return wrong("No certificate in opaque");
    };
    let parsed = match Response::parse(response) {
        None => return wrong("Could not parse OCSP response"),
        Some(Err(status)) => return Verdict::error(-2, status_name(status)),
        Some(Ok(parsed)) => parsed,
    };
    let mut among = parsed.certificates.clone();
    among.extend(certificates.iter().skip(1).map(Vec::as_slice));
    let Some(signer) = parsed.signer(&among) else {
        return wrong("Could not find OCSP responder certificate");
    };
    let mut chain = vec![signer.whole.to_vec()];
    chain.extend(among.iter().map(|der| der.to_vec()));
    let signer_verdict = verify(&chain, roots, now);
    if signer_verdict.code != 0 {
        return Verdict::error(0, signer_verdict.text);
    }
    if !is_signature_valid(parsed.algorithm, signer.key, parsed.signed, parsed.signature) {
        return Verdict::error(0, "error:13800075:OCSP routines::signature failure");
    }
    let mut others = certificates.iter().skip(1).filter_map(|der| Certificate::parse(der));
    // Of several certificates with the issuer's name, the last one is used.
    let issuer = others.rfind(|other| other.subject == certificate.issuer);
    let Some(issuer) = issuer.or_else(|| issuer_among(roots, &certificate, now)) else {
        return Verdict::error(0, "Could not find issuer of host certificate");
    };
    let Some(answer) = Answer::parse(parsed.answers) else {
        return wrong("Could not lookup OCSP response information");
    };
    if !answer.is_about(&certificate, &issuer) {
        return wrong("OCSP reply is not for host certificate");
    }
    let Some(next_update) = answer.next_update else {
        return wrong("OCSP reply missing nextUpdate field");
    };
    let Some(begin) = time(answer.this_update) else {
        return wrong("OCSP reply contains invalid thisUpdate field");
    };
    let Some(end) = time(next_update) else {
        return wrong("OCSP reply contains invalid nextUpdate field");
    };
    if begin > now {
        return wrong("OCSP reply specifies time in future");
    }
    if end < now {
        return wrong("OCSP reply expired");
    }
    match answer.status {
        0 => Verdict { code: 1, text: "good", chain: Vec::new() },
        1 => wrong("revoked"),
        2 => wrong("unknown"),
        _ => wrong("(UNKNOWN)"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::wrap;
    use super::*;

    #[test]
    fn responses_without_an_answer() {
        let status = |status| wrap(tag::SEQUENCE, &wrap(tag::ENUMERATED, &[status]));
        let statuses: Vec<_> = (0..8)
            .map(|number| Response::parse(&status(number)).map(|parsed| parsed.map(|_| ()).err()))
            .collect();
        // A successful response needs response bytes.
        let mut wanted = vec![None];
        wanted.extend((1..8).map(|number| Some(Some(number))));
        assert_eq!(statuses, wanted);
        assert_eq!(status_name(6), "unauthorized");
        assert!(verify_response(&[], &[], &[], 0).text.contains("No certificate"));
    }

    #[test]
    fn an_answer_names_a_certificate_and_times() {
        let algorithm = wrap(tag::SEQUENCE, &wrap(tag::OID, SHA1));
        let id = [
            algorithm,
            wrap(tag::OCTET_STRING, &[1; 20]),
            wrap(tag::OCTET_STRING, &[2; 20]),
            wrap(tag::INTEGER, &[7]),
        ];
        let this = wrap(tag::TIME, b"20140424233647Z");
        let next = wrap(tag::CONTEXT_0, &wrap(tag::TIME, b"20140501233647Z"));
        let parts = [wrap(tag::SEQUENCE, &id.concat()), wrap(0x81, &[]), this, next];
        let whole = wrap(tag::SEQUENCE, &parts.concat());
        let answer = Answer::parse(Der(&whole)).expect("an answer");
        assert_eq!((answer.status, answer.serial, answer.hash), (1, &[7_u8][..], SHA1));
        assert_eq!(time(answer.this_update), Some(1_398_382_607));
        assert_eq!(answer.next_update.and_then(time), Some(1_398_987_407));
        for cut in 0..whole.len() {
            assert!(Answer::parse(Der(&whole[..cut])).is_none());
        }
    }

    /// A response for certificate 7, without the responder's certificate.
    fn response() -> Vec<u8> {
        let algorithm = wrap(tag::SEQUENCE, &wrap(tag::OID, SHA1));
        let hash = wrap(tag::OCTET_STRING, &[2; 20]);
        let id = [algorithm.clone(), hash.clone(), hash, wrap(tag::INTEGER, &[7])].concat();
        let this = wrap(tag::TIME, b"20140424233647Z");
        let answer = [wrap(tag::SEQUENCE, &id), wrap(0x80, &[]), this.clone()].concat();
        let responder = wrap(tag::CONTEXT_2, &wrap(tag::OCTET_STRING, &[2; 20]));
        let answers = wrap(tag::SEQUENCE, &wrap(tag::SEQUENCE, &answer));
        let signed = wrap(tag::SEQUENCE, &[responder, this, answers].concat());
        let certificates = wrap(tag::CONTEXT_0, &wrap(tag::SEQUENCE, &wrap(tag::SEQUENCE, &[])));
        let basic = [signed, algorithm, wrap(tag::BIT_STRING, &[0; 9]), certificates].concat();
        let basic = wrap(tag::OCTET_STRING, &wrap(tag::SEQUENCE, &basic));
        let bytes = wrap(tag::SEQUENCE, &[wrap(tag::OID, BASIC), basic].concat());
        let status = wrap(tag::ENUMERATED, &[SUCCESSFUL]);
        wrap(tag::SEQUENCE, &[status, wrap(tag::CONTEXT_0, &bytes)].concat())
    }

    #[test]
    fn a_response_has_a_signer_and_answers() {
        let whole = response();
        let Some(Ok(parsed)) = Response::parse(&whole) else { panic!("no response") };
        assert_eq!((parsed.responder.tag, parsed.certificates.len()), (tag::CONTEXT_2, 1));
        assert_eq!(Answer::parse(parsed.answers).map(|answer| answer.status), Some(0));
        assert!(parsed.signer(&parsed.certificates).is_none());
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_handled(at in 0..200_usize, byte: u8, cut in 0..300_usize) {
            let mut bytes = response();
            if let Some(place) = bytes.get_mut(at) {
                *place = byte;
            }
            bytes.truncate(cut);
            if let Some(Ok(parsed)) = Response::parse(&bytes) {
                let _ = (parsed.signer(&parsed.certificates), Answer::parse(parsed.answers));
            }
            let _ = verify_response(&[bytes.clone()], &bytes, &[], 0);
        }
    }
}
