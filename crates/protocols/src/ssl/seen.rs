//! Reports certificates that are seen.

use std::sync::Arc;

use gannet_files::x509::Certificate;

use super::events::CertificateRef;
use super::events::X509Seen;
use super::raise;
use super::rows::CertificateRows;
use crate::Context;

/// Parses a certificate and reports it. `None` if it cannot be parsed.
pub(crate) fn report_certificate(
    cx: &mut Context<'_>,
    source: &'static str,
    der: &[u8],
    host: bool,
    client: bool,
    number: u32,
) -> Option<Arc<Certificate>> {
    let parsed = cx.env.certificates.parse(der);
    let certificate = parsed.as_ref().map(|(certificate, _)| certificate);
    raise::certificate(cx, source, der, certificate, (host, client), number);
    let (certificate, digest) = parsed?;
    cx.report(&mut CertificateRows, |c| X509Seen {
        c,
        is_client: client,
        is_host: host,
        certificate: CertificateRef(&certificate),
        digest,
    });
    Some(certificate)
}
