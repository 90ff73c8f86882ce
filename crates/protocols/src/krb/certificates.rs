//! Certificates in pre-authentication data (PKINIT, RFC 4556).

use super::events::KrbCertificate;
use super::events::Subject;
use super::rows::Session;
use crate::Context;

/// Reports a certificate, if any, to the certificate log and to the row.
///
/// As in Zeek, the empty certificate of an anonymous client (RFC 8062) is a file, too.
pub(super) fn report(
    cx: &mut Context<'_>,
    rows: &mut Session,
    der: Option<&[u8]>,
    is_client: bool,
) {
    let Some(der) = der else { return };
    // The file is not in files.log: any number that no other file uses is suitable.
    let fuid = cx.env.uids.file(cx.conn.uid, u64::MAX - 1 - u64::from(!is_client));
    let certificate =
        crate::ssl::report_certificate(cx, "KRB", der, true, is_client, u32::from(!is_client));
    let subject = certificate.as_ref().map(Subject);
    cx.report(rows, |c| KrbCertificate { c, is_client, fuid, subject });
}
