//! Certificates as events.

use std::net::IpAddr;

use gannet_base::Addr;
use gannet_event::Event;
use gannet_event::Events;
use gannet_event::FileRef;

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
use crate::x509::text;

/// Raises the events of a certificate: what it says, and its extensions.
pub fn certificate(events: &mut Events, f: FileRef, der: &[u8], certificate: &Certificate) {
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
        if events.wants::<X509Extension<'_>>() {
            let ext = ExtensionFacts::of(&extension);
            events.raise(&X509Extension { f, ext });
        }
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
