//! Certificates in pre-authentication data (PKINIT, RFC 4556).

use super::events::KrbCertificate;
use super::events::Subject;
use super::rows::Session;
use crate::Context;

/// Reports a certificate, if there is one: it is logged among the certificates, and the row names it.
///
/// As in Zeek, an anonymous client (RFC 8062) has an empty certificate, which is a file nevertheless.
pub(super) fn report(
    cx: &mut Context<'_>,
    rows: &mut Session,
    der: Option<&[u8]>,
    is_client: bool,
) {
    let Some(der) = der else { return };
    // Its file is left out of files.log: any number that no other file has will do.
    let fuid = cx.env.uids.file(cx.conn.uid, u64::MAX - 1 - u64::from(!is_client));
    let certificate =
        crate::ssl::report_certificate(cx, "KRB", der, true, is_client, u32::from(!is_client));
    let subject = certificate.as_ref().map(Subject);
    cx.report(rows, |c| KrbCertificate { c, is_client, fuid, subject });
}
