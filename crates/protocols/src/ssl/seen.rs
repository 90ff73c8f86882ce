//! Certificates that come by.

use std::sync::Arc;

use gannet_files::x509;
use gannet_files::x509::Certificate;

use super::events::CertificateRef;
use super::events::X509Seen;
use super::raise;
use super::rows::CertificateRows;
use crate::Context;

/// Reads a certificate that was seen and reports it. `None` if it cannot be read.
pub(crate) fn seen(
    cx: &mut Context<'_>,
    source: &'static str,
    der: &[u8],
    host: bool,
    client: bool,
    number: u32,
) -> Option<Arc<Certificate>> {
    let parsed = cx.env.certificates.parse(der);
    let mut is_reported = false;
    if cx.env.logs.events.any() {
        let certificate = parsed.as_ref().map(|(certificate, _)| certificate);
        is_reported = raise::certificate(cx, source, der, certificate, (host, client), number);
    }
    let Some((certificate, digest)) = parsed else {
        if !is_reported {
            weird(cx, x509::PARSE_ERROR_WEIRD, "");
        }
        return None;
    };
    if !is_reported {
        for &odd in &certificate.weirds {
            weird(cx, odd.name(), &odd.addition());
        }
    }
    cx.report(&mut CertificateRows, |c| X509Seen {
        c,
        is_client: client,
        is_host: host,
        certificate: CertificateRef(&certificate),
        digest,
    });
    Some(certificate)
}

/// A weird of a file: its name in the logs goes before the addition.
fn weird(cx: &mut Context<'_>, name: &'static str, addition: &str) {
    // Certificates are files that files.log leaves out; this one's name is used nowhere else.
    let fuid = cx.env.uids.file(cx.conn.uid, u64::MAX);
    let addl = match addition {
        "" => fuid.to_string(),
        _ => format!("{fuid}: {addition}"),
    };
    cx.env.weirds.net(&mut cx.env.logs, cx.now, name, &addl);
}
