//! Raises events whose arguments are parsed only for them, and the events of certificates, each of
//! which is a file.

use std::sync::Arc;

use gannet_base::Dir;
use gannet_base::Uid;
use gannet_event::FilePart;
use gannet_event::FileRef;
use gannet_event::Sinks;
use gannet_event::WeirdSamples;
use gannet_files::FileStart;
use gannet_files::events::FileWeird;
use gannet_files::x509;
use gannet_files::x509::Certificate;
use gannet_files::x509_raise;

use super::ciphers::cipher;
use super::events::*;
use super::extension::ty;
use super::message::Malformed;
use super::message::Reader;
use super::message::SignatureForm;
use crate::Context;
use crate::weird::FileWeirdSeen;

/// Raises the events of a certificate file, and reports its weirds. `certificate` is `None` if it
/// could not be parsed; `host` says whether it is the first of its chain, `client` whether the
/// client sent it; `number` is its index in the chain.
///
/// If scripts determine the analyzers of files, only those run. Otherwise the fields and hashes of
/// the certificate are reported.
#[cold]
pub(super) fn certificate(
    cx: &mut Context<'_>,
    source: &'static str,
    der: &[u8],
    certificate: Option<&Arc<Certificate>>,
    (host, client): (bool, bool),
    number: u32,
) {
    // Counted down from the largest number, so that the file identifier differs from those of other
    // files of the connection.
    let ordinal = cx.env.analyzer_ids.next_certificate(cx.conn.uid);
    let has_listener = cx.env.logs.events.any();
    if !has_listener && certificate.is_some_and(|certificate| certificate.weirds.is_empty()) {
        return;
    }
    let fuid = cx.env.uids.file(cx.conn.uid, u64::MAX - 1 - ordinal);
    if !has_listener {
        return weirds(cx, fuid, None, der, certificate);
    }
    let kind = match host {
        true => "application/x-x509-user-cert",
        false => "application/x-x509-ca-cert",
    };
    let is_scripted = cx.env.is_scripted();
    let start = FileStart {
        source,
        from: if client { Dir::Orig } else { Dir::Resp },
        mime_type: Some(kind),
        part: FilePart::Certificate(number),
        certificate: certificate.filter(|_| is_scripted).map(Arc::clone),
        ..FileStart::default()
    };
    let file = cx.complete_file_start(start, u64::MAX - 1 - ordinal);
    if !is_scripted {
        cx.env.files.add_hashes(file);
    }
    cx.file_data(file, der);
    if !is_scripted {
        let f = cx.env.files.file_ref(&mut cx.env.logs, file);
        weirds(cx, fuid, f, der, certificate);
    }
    cx.file_end(file);
}

/// Raises the events of a certificate's contents, if its file has events, and reports its weirds.
fn weirds(
    cx: &mut Context<'_>,
    fuid: Uid,
    f: Option<FileRef>,
    der: &[u8],
    certificate: Option<&Arc<Certificate>>,
) {
    let mut samples = WeirdSamples::default();
    let mut seen = Vec::new();
    let now = cx.now;
    let env = &mut *cx.env;
    let mut weird = |sinks: &mut Sinks, name: &'static str, addl: String| {
        let is_sampled_out = !env.files.sampling().permits(&mut samples, now, name);
        if let Some(f) = f.filter(|_| !is_sampled_out && sinks.events.wants::<FileWeird<'_>>()) {
            sinks.events.raise(&FileWeird { name, f, addl: &addl, source: "" });
        }
        seen.push((name, addl, is_sampled_out));
    };
    let mut weird_of = |sinks: &mut Sinks, w: x509::Weird| weird(sinks, w.name(), w.addition());
    match (certificate, f) {
        (Some(c), Some(f)) => x509_raise::certificate(&mut env.logs, f, der, c, &mut weird_of),
        (Some(c), None) => c.weirds.iter().for_each(|w| weird_of(&mut env.logs, *w)),
        (None, _) => weird(&mut env.logs, x509::PARSE_ERROR_WEIRD, String::new()),
    }
    for (name, addl, is_sampled_out) in &seen {
        let what =
            FileWeirdSeen { fuid, name, addl, source: None, is_sampled_out: *is_sampled_out };
        env.weirds.file(&mut env.logs, now, &what);
    }
}

/// Decodes a signature algorithm from two octets.
pub(super) fn algorithm(word: u16) -> SignatureAndHash {
    SignatureAndHash { hash: u64::from(word >> 8), signature: u64::from(word & 0xff) }
}

/// Raises the event of an extension that few listeners use; the extension was checked before.
pub(super) fn rare_extension(cx: &mut Context<'_>, is_client: bool, kind: u16, data: &[u8]) {
    let mut r = Reader::new(data);
    match kind {
        ty::PRE_SHARED_KEY if is_client => {
            if cx.wants::<OfferedPsksSeen<'_>>()
                && let Ok((identities, binders)) = offered_psks(&mut r)
            {
                cx.raise(|c| OfferedPsksSeen { c, is_client, identities, binders });
            }
        }
        ty::PRE_SHARED_KEY => {
            let selected_identity = r.u16("").unwrap_or(0);
            cx.raise(|c| SelectedPskSeen { c, is_client, selected_identity });
        }
        ty::CONNECTION_ID => {
            let cid = data.get(1..).unwrap_or_default();
            cx.raise(|c| ConnectionIdSeen { c, is_client, cid });
        }
        ty::ENCRYPTED_CLIENT_HELLO if data.first() == Some(&0) => {
            if let [_, k0, k1, a0, a1, config, e0, e1, rest @ ..] = data {
                let word = |a: &u8, b: &u8| u16::from_be_bytes([*a, *b]);
                let len = usize::from(word(e0, e1));
                let (enc, payload) = rest.split_at_checked(len).unwrap_or((rest, &[]));
                let payload_length = match payload {
                    [a, b, ..] => u64::from(word(a, b)),
                    _ => 0,
                };
                cx.raise(|c| EncryptedClientHelloSeen {
                    c,
                    is_client,
                    kdf_id: word(k0, k1),
                    aead_id: word(a0, a1),
                    config_id: (*config).into(),
                    enc,
                    payload_length,
                });
            }
        }
        ty::SIGNED_CERTIFICATE_TIMESTAMP if cx.wants::<TimestampSeen<'_>>() => {
            let Ok(mut list) = r.vector16("", "") else { return };
            while let Ok(mut one) = list.vector16("", "") {
                let Ok(seen) = timestamp(&mut one) else { return };
                let (version, logid, timestamp, algorithm, signature) = seen;
                cx.raise(|c| TimestampSeen {
                    c,
                    is_client,
                    version,
                    logid,
                    timestamp,
                    algorithm,
                    signature,
                });
            }
        }
        _ => {}
    }
}

type Psks<'a> = (Vec<PskIdentity<'a>>, Vec<&'a [u8]>);

fn offered_psks<'a>(r: &mut Reader<'a>) -> Result<Psks<'a>, Malformed> {
    let (mut identities, mut binders) = (Vec::new(), Vec::new());
    let mut list = r.vector16("", "")?;
    while !list.is_empty() {
        let identity = list.vector16("", "")?.rest();
        let age = list.take(4, "")?.first_chunk().map_or(0, |b| u32::from_be_bytes(*b));
        identities.push(PskIdentity { identity, age });
    }
    let mut list = r.vector16("", "")?;
    while !list.is_empty() {
        binders.push(list.vector8("", "")?.rest());
    }
    Ok((identities, binders))
}

type Promise<'a> = (u64, &'a [u8], u64, SignatureAndHash, &'a [u8]);

fn timestamp<'a>(r: &mut Reader<'a>) -> Result<Promise<'a>, Malformed> {
    let version = r.u8("")?.into();
    let logid = r.take(32, "")?;
    let millis = r.take(8, "")?.first_chunk().map_or(0, |b| u64::from_be_bytes(*b));
    r.vector16("", "")?;
    let algorithm = algorithm(r.u16("")?);
    Ok((version, logid, millis, algorithm, r.vector16("", "")?.rest()))
}

/// Raises the event of a CertificateRequest, which was checked before.
pub(super) fn certificate_request(
    cx: &mut Context<'_>,
    is_client: bool,
    body: &[u8],
    form: SignatureForm,
) {
    if !cx.wants::<CertificateRequested<'_>>() {
        return;
    }
    let read = || {
        let mut r = Reader::new(body);
        let types = r.vector8("", "")?.rest();
        let mut algorithms = Vec::new();
        if form == SignatureForm::WithAlgorithm {
            let list = words(r.vector16("", "")?.rest());
            algorithms.extend(list.into_iter().map(algorithm));
        }
        let mut authorities = Vec::new();
        let mut list = r.vector16("", "")?;
        while !list.is_empty() {
            authorities.push(list.vector16("", "")?.rest());
        }
        Ok::<_, Malformed>((octets(types), algorithms, authorities))
    };
    if let Ok((certificate_types, algorithms, authorities)) = read() {
        cx.raise(|c| CertificateRequested {
            c,
            is_client,
            certificate_types,
            algorithms,
            authorities,
        });
    }
}

/// Raises the event of a client key exchange, according to the cipher suite that the server chose.
pub(super) fn client_key(cx: &mut Context<'_>, suite: Option<u16>, body: &[u8]) {
    let wants = cx.wants::<RsaClientPms<'_>>()
        || cx.wants::<DhClientParams<'_>>()
        || cx.wants::<EcdhClientParams<'_>>();
    let Some(suite) = suite.filter(|_| wants) else { return };
    let name = cipher(suite.into());
    if name.starts_with("TLS_RSA_") {
        cx.raise(|c| RsaClientPms { c, pms: body });
    } else if name.starts_with("TLS_ECDH") {
        cx.raise(|c| EcdhClientParams { c, point: body });
    } else if name.starts_with("TLS_DH") {
        cx.raise(|c| DhClientParams { c, yc: body });
    }
}

/// Raises the event of the signature in a server key exchange.
pub(super) fn server_signature(
    cx: &mut Context<'_>,
    signed: Option<&[u8]>,
    form: Option<SignatureForm>,
) {
    let mut r = Reader::new(signed.unwrap_or_default());
    let algorithm = match form {
        Some(SignatureForm::WithAlgorithm) => algorithm(r.u16("").unwrap_or(0)),
        _ => SignatureAndHash { hash: 256, signature: 256 },
    };
    if let Ok(signature) = r.vector16("", "") {
        let signature = signature.rest();
        cx.raise(|c| ServerSignature { c, algorithm, signature });
    }
}
