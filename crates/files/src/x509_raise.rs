//! Certificates as events.

use std::net::IpAddr;

use gannet_base::Addr;
use gannet_event::Event;
use gannet_event::Events;
use gannet_event::FileRef;
use gannet_event::Sinks;

use crate::events::CertificateFacts;
use crate::events::Constraints;
use crate::events::ExtensionFacts;
use crate::events::Names;
use crate::events::X509AlternativeName;
use crate::events::X509BasicConstraints;
use crate::events::X509Certificate;
use crate::events::X509Extension;
use crate::events::X509Opaque;
use crate::events::X509Timestamp;
use crate::x509::Certificate;
use crate::x509::Weird;
use crate::x509::text;
use crate::x509::text::Extension;

/// Raises the events of a certificate: its facts, and its extensions. Calls `weird` with each weird
/// at its position among the events.
pub fn certificate(
    sinks: &mut Sinks,
    f: FileRef,
    der: &[u8],
    certificate: &Certificate,
    weird: &mut dyn FnMut(&mut Sinks, Weird),
) {
    let of_extensions = certificate.weirds.iter().filter(|weird| weird.extension().is_some());
    let of_times = certificate.weirds.iter().filter(|weird| weird.extension().is_none());
    of_times.for_each(|w| weird(sinks, *w));
    facts(&mut sinks.events, f, der, certificate);
    if certificate.weirds.is_empty() {
        return extensions(&mut sinks.events, f, der, certificate);
    }
    let mut left: Vec<_> = of_extensions.copied().collect();
    for extension in text::extensions(der).unwrap_or_default() {
        extension_seen(&mut sinks.events, f, &extension);
        let is_its = |weird: &mut Weird| weird.extension() == Some(extension.short_name);
        left.extract_if(.., is_its).for_each(|w| weird(sinks, w));
        extension_facts(&mut sinks.events, f, &extension, certificate);
    }
    left.into_iter().for_each(|w| weird(sinks, w));
}

/// Raises the event with the facts of a certificate.
fn facts(events: &mut Events, f: FileRef, der: &[u8], certificate: &Certificate) {
    let key = certificate.key.as_ref();
    if events.wants::<X509Certificate<'_>>() {
        events.raise(&X509Certificate {
            f,
            cert_ref: X509Opaque(der),
            cert: CertificateFacts {
                version: certificate.version,
                serial: &certificate.serial,
                subject: &certificate.subject,
                issuer: &certificate.issuer,
                cn: certificate.common_name(),
                not_valid_before: certificate.not_before as f64,
                not_valid_after: certificate.not_after as f64,
                key_alg: &certificate.key_algorithm,
                sig_alg: &certificate.signature_algorithm,
                key_type: key.map(|k| k.kind),
                key_length: key.and_then(|k| k.bits),
                exponent: key.and_then(|k| k.exponent.as_deref()),
                curve: key.and_then(|k| k.curve),
                tbs_sig_alg: &certificate.signature_algorithm,
            },
        });
    }
}

/// Raises the events of the extensions of a certificate, if one of them has a listener.
fn extensions(events: &mut Events, f: FileRef, der: &[u8], certificate: &Certificate) {
    let all = [
        X509Extension::DECL,
        X509Timestamp::DECL,
        X509BasicConstraints::DECL,
        X509AlternativeName::DECL,
    ];
    if !all.iter().any(|decl| events.wants_id(decl.id)) {
        return;
    }
    for extension in text::extensions(der).unwrap_or_default() {
        extension_seen(events, f, &extension);
        extension_facts(events, f, &extension, certificate);
    }
}

fn extension_seen(events: &mut Events, f: FileRef, extension: &Extension) {
    if events.wants::<X509Extension<'_>>() {
        let ext = ExtensionFacts::of(extension);
        events.raise(&X509Extension { f, ext });
    }
}

fn extension_facts(
    events: &mut Events,
    f: FileRef,
    extension: &Extension,
    certificate: &Certificate,
) {
    match extension.short_name {
        "basicConstraints" => constraints(events, f, certificate),
        "subjectAltName" => names(events, f, certificate),
        _ if events.wants::<X509Timestamp<'_>>() => {
            for timestamp in &extension.timestamps {
                events.raise(&X509Timestamp::of(f, timestamp));
            }
        }
        _ => {}
    }
}

fn constraints(events: &mut Events, f: FileRef, certificate: &Certificate) {
    if let Some(constraints) = certificate.basic_constraints
        && events.wants::<X509BasicConstraints>()
    {
        let ext = Constraints { ca: constraints.ca, path_len: constraints.path_len };
        events.raise(&X509BasicConstraints { f, ext });
    }
}

fn names(events: &mut Events, f: FileRef, certificate: &Certificate) {
    if let Some(names) = &certificate.alternative_names
        && events.wants::<X509AlternativeName<'_>>()
    {
        let address = |ip: &IpAddr| match ip {
            IpAddr::V4(ip) => Addr::v4(ip.octets()),
            IpAddr::V6(ip) => Addr::v6(ip.octets()),
        };
        let ext = Names {
            dns: list(&names.dns),
            uri: list(&names.uri),
            email: list(&names.email),
            ip: names.ip.as_ref().map(|ip| ip.iter().map(address).collect()),
            other_fields: names.other,
        };
        events.raise(&X509AlternativeName { f, ext });
    }
}

fn list(names: &[Vec<u8>]) -> Option<Vec<&[u8]>> {
    (!names.is_empty()).then(|| names.iter().map(Vec::as_slice).collect())
}
