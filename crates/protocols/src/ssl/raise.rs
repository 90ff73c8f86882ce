//! Raises the events of certificates: each is a file of its own.

use std::net::IpAddr;

use gannet_base::Addr;
use gannet_base::Interval;
use gannet_event::Event;
use gannet_event::Events;
use gannet_event::FileRef;
use gannet_event::FileState;
use gannet_files::events::CertificateFacts;
use gannet_files::events::Constraints;
use gannet_files::events::ExtensionFacts;
use gannet_files::events::FileHash;
use gannet_files::events::FileNew;
use gannet_files::events::FileOverNewConnection;
use gannet_files::events::FileSniff;
use gannet_files::events::FileStateRemove;
use gannet_files::events::Metadata;
use gannet_files::events::Names;
use gannet_files::events::X509AlternativeName;
use gannet_files::events::X509BasicConstraints;
use gannet_files::events::X509Certificate;
use gannet_files::events::X509Extension;
use gannet_files::events::X509Opaque;
use gannet_files::events::X509Timestamp;
use gannet_files::hash::Hashes;
use gannet_files::hash::Wanted;
use gannet_files::x509::Certificate;
use gannet_files::x509::text;

use crate::Context;
use crate::conn_state::mention;

/// Timeout of a file after silence, as in file events.
const TIMEOUT: Interval = Interval::from_secs(120);

/// Raises the events of a certificate that was read, or could not be read; `host` says whether it is the
/// first of its chain, `client` whether the client sent it.
#[cold]
pub(super) fn certificate(
    cx: &mut Context<'_>,
    source: &'static str,
    der: &[u8],
    certificate: Option<&Certificate>,
    (host, client): (bool, bool),
) {
    // Counted down from the largest number, so that the name is no other file's of the connection.
    let ordinal = cx.env.certificates.next_ordinal();
    let fuid = cx.env.uids.file(cx.conn.uid, u64::MAX - 1 - ordinal);
    let sinks = &mut cx.env.logs;
    let c = mention(sinks, cx.conn);
    let state = FileState {
        fuid,
        parent: None,
        source: source.into(),
        is_orig: Some(client),
        conns: vec![(cx.conn.id, cx.conn.proto)],
        last_active: cx.now,
        seen_bytes: 0,
        total_bytes: None,
        missing_bytes: 0,
        overflow_bytes: 0,
        timeout: TIMEOUT,
        bof: None,
    };
    let f = sinks.events.file(state.clone());
    if sinks.events.wants::<FileNew>() {
        sinks.events.raise(&FileNew { f });
    }
    if sinks.events.wants::<FileOverNewConnection>() {
        sinks.events.raise(&FileOverNewConnection { f, c, is_orig: client });
    }
    if sinks.events.wants::<FileSniff>() {
        let kind = match host {
            true => "application/x-x509-user-cert",
            false => "application/x-x509-ca-cert",
        };
        let meta = Metadata { mime_type: Some(kind), mime_types: None, inferred: Some(false) };
        sinks.events.raise(&FileSniff { f, meta });
    }
    sinks.events.drain();
    mention(sinks, cx.conn);
    let f = sinks.events.file(FileState { seen_bytes: der.len() as u64, ..state });
    if let Some(certificate) = certificate {
        facts(cx, f, der, certificate);
    }
    let sinks = &mut cx.env.logs;
    if sinks.events.wants::<FileHash<'_>>() {
        let mut hashes = Hashes::new(Wanted { md5: true, sha1: true, sha256: true });
        hashes.update(der);
        let digests = hashes.finish();
        let all = [("md5", digests.md5), ("sha1", digests.sha1), ("sha256", digests.sha256)];
        for (kind, hash) in all {
            if let Some(hash) = hash.as_deref() {
                sinks.events.raise(&FileHash { f, kind, hash });
            }
        }
    }
    if sinks.events.wants::<FileStateRemove>() {
        sinks.events.raise(&FileStateRemove { f });
    }
}

fn facts(cx: &mut Context<'_>, f: FileRef, der: &[u8], certificate: &Certificate) {
    let events = &mut cx.env.logs.events;
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
            let ext = ExtensionFacts {
                name: &extension.name,
                short_name: Some(extension.short_name),
                oid: &extension.oid,
                critical: extension.critical,
                value: &extension.value,
            };
            events.raise(&X509Extension { f, ext });
        }
        match extension.short_name {
            "basicConstraints" => constraints(events, f, certificate),
            "subjectAltName" => names(events, f, certificate),
            _ if events.wants::<X509Timestamp<'_>>() => {
                for timestamp in &extension.timestamps {
                    events.raise(&X509Timestamp {
                        f,
                        version: timestamp.version.into(),
                        logid: &timestamp.log_id,
                        timestamp: timestamp.millis,
                        hash_algorithm: timestamp.hash.into(),
                        signature_algorithm: timestamp.algorithm.into(),
                        signature: &timestamp.signature,
                    });
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
