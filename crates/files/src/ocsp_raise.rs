//! OCSP requests and responses as events.

use gannet_base::Time;
use gannet_event::FileRef;
use gannet_event::Sinks;

use crate::der::Class;
use crate::der::Element;
use crate::der::Reader;
use crate::der::Result;
use crate::der::tag;
use crate::events::ExtensionFacts;
use crate::events::OcspExtension;
use crate::events::OcspRequest;
use crate::events::OcspRequestCertificate;
use crate::events::OcspResponseBytes;
use crate::events::OcspResponseCertificate;
use crate::events::OcspResponseStatus;
use crate::events::X509Opaque;
use crate::events::X509Timestamp;
use crate::ocsp;
use crate::oid;
use crate::x509::Algorithm;
use crate::x509::Name;
use crate::x509::text;
use crate::x509::universal;

/// Raises the events of a request.
pub(crate) fn request(sinks: &mut Sinks, f: FileRef, request: &ocsp::Request) {
    if sinks.events.wants::<OcspRequest>() {
        // Zeek reports version 0 for any request.
        sinks.events.raise(&OcspRequest { f, version: 0 });
    }
    if sinks.events.wants::<OcspRequestCertificate<'_>>() {
        for id in &request.certificates {
            sinks.events.raise(&OcspRequestCertificate {
                f,
                hash_algorithm: &id.hash_algorithm,
                issuer_name_hash: &id.issuer_name_hash,
                issuer_key_hash: &id.issuer_key_hash,
                serial_number: &id.serial,
            });
        }
    }
}

/// Raises the events of a response.
pub(crate) fn response(sinks: &mut Sinks, f: FileRef, response: &ocsp::Response) {
    let status = status_name(response.status);
    if sinks.events.wants::<OcspResponseStatus<'_>>() {
        sinks.events.raise(&OcspResponseStatus { f, status });
    }
    let wants_details = sinks.events.wants::<OcspResponseBytes<'_>>()
        || sinks.events.wants::<OcspExtension<'_>>()
        || sinks.events.wants::<X509Timestamp<'_>>();
    // The basic response is parsed again for these details.
    let basic = response.basic.as_deref().filter(|_| wants_details);
    let details = basic.and_then(|basic| Details::read(basic).ok());
    let mut single = details.iter().flat_map(|d| &d.single_extensions);
    for certificate in &response.certificates {
        raise_certificate(sinks, f, certificate);
        for extension in single.next().into_iter().flatten() {
            raise_extension(sinks, f, extension, false);
        }
    }
    let Some(details) = details else { return };
    if sinks.events.wants::<OcspResponseBytes<'_>>() {
        sinks.events.raise(&OcspResponseBytes {
            f,
            status,
            version: 0,
            responder_id: &details.responder,
            produced_at: Time::from_secs(details.produced_at),
            signature_algorithm: &details.signature_algorithm,
            certs: details.certificates.iter().map(|der| X509Opaque(der)).collect(),
        });
    }
    for extension in &details.extensions {
        raise_extension(sinks, f, extension, true);
    }
}

fn raise_certificate(sinks: &mut Sinks, f: FileRef, status: &ocsp::CertificateStatus) {
    if sinks.events.wants::<OcspResponseCertificate<'_>>() {
        sinks.events.raise(&OcspResponseCertificate {
            f,
            hash_algorithm: &status.id.hash_algorithm,
            issuer_name_hash: &status.id.issuer_name_hash,
            issuer_key_hash: &status.id.issuer_key_hash,
            serial_number: &status.id.serial,
            cert_status: status.status,
            revoke_time: Time::from_secs(status.revoked_at.unwrap_or(0)),
            revoke_reason: status.revoke_reason.unwrap_or_default(),
            this_update: Time::from_secs(status.this_update),
            next_update: Time::from_secs(status.next_update.unwrap_or(0)),
        });
    }
}

fn raise_extension(sinks: &mut Sinks, f: FileRef, extension: &text::Extension, global: bool) {
    if sinks.events.wants::<OcspExtension<'_>>() {
        let ext = ExtensionFacts::of(extension);
        sinks.events.raise(&OcspExtension { f, ext, global_resp: global });
    }
    if sinks.events.wants::<X509Timestamp<'_>>() {
        for timestamp in &extension.timestamps {
            sinks.events.raise(&X509Timestamp::of(f, timestamp));
        }
    }
}

/// Name of a response status (RFC 6960 section 4.2.1), as spelled by OpenSSL.
fn status_name(status: Option<i64>) -> &'static str {
    match status {
        Some(0) => "successful",
        Some(1) => "malformedrequest",
        Some(2) => "internalerror",
        Some(3) => "trylater",
        Some(5) => "sigrequired",
        Some(6) => "unauthorized",
        _ => "(UNKNOWN)",
    }
}

/// The fields of a BasicOCSPResponse besides the statuses of certificates.
struct Details<'a> {
    responder: String,
    produced_at: i64,
    signature_algorithm: String,
    certificates: Vec<&'a [u8]>,
    /// Extensions of each certificate status.
    single_extensions: Vec<Vec<text::Extension>>,
    extensions: Vec<text::Extension>,
}

impl<'a> Details<'a> {
    /// Parses what [`ocsp::parse_response`] accepted.
    fn read(basic: &'a [u8]) -> Result<Self> {
        let mut whole = Reader::new(basic).sequence()?;
        let mut body = whole.sequence()?;
        body.optional(Class::Context, 0)?;
        let responder = responder(&body.element()?)?;
        let produced_at = ocsp::seconds(&ocsp::time(body.element()?)?, &mut Vec::new());
        let mut list = body.universal(tag::SEQUENCE)?.items();
        let mut single_extensions = Vec::new();
        while !list.is_empty() {
            let (_, extensions) = ocsp::SingleResponse::with_extensions(&mut list)?;
            single_extensions.push(match extensions {
                Some(list) => text::list_of(list)?,
                None => Vec::new(),
            });
        }
        let extensions = match body.optional(Class::Context, 1)? {
            Some(list) => text::list_of(list.explicit()?)?,
            None => Vec::new(),
        };
        let algorithm = Algorithm::read(&mut whole)?.identifier;
        whole.universal(tag::BIT_STRING)?;
        let mut certificates = Vec::new();
        if let Some(list) = whole.optional(Class::Context, 0)? {
            let mut list = universal(list.explicit()?, tag::SEQUENCE)?.items();
            while !list.is_empty() {
                certificates.push(list.element()?.raw);
            }
        }
        let signature_algorithm = oid::algorithm_name(algorithm);
        Ok(Self {
            responder,
            produced_at,
            signature_algorithm,
            certificates,
            single_extensions,
            extensions,
        })
    }
}

/// A ResponderID: a name, or the hash of a key.
fn responder(element: &Element<'_>) -> Result<String> {
    let inner = element.explicit()?;
    if element.tag == 1 {
        return Ok(Name::from_element(&universal(inner, tag::SEQUENCE)?)?.plain_line());
    }
    Ok(ocsp::octets_hex(&universal(inner, tag::OCTET_STRING)?.octets()?))
}
