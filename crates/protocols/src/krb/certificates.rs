//! Certificates in pre-authentication data (PKINIT, RFC 4556).

use std::sync::Arc;

use gannet_base::Uid;
use gannet_files::x509::Certificate;

use crate::Context;

/// A certificate as the row names it.
#[derive(Debug)]
pub(super) struct Named {
    pub(super) fuid: Uid,
    pub(super) certificate: Option<Arc<Certificate>>,
}

impl Named {
    /// A certificate came by: it is logged among the certificates.
    pub(super) fn new(cx: &mut Context<'_>, der: &[u8], is_reply: bool) -> Self {
        // Its file is left out of files.log: any number that no other file has will do.
        let fuid = cx.env.uids.file(cx.conn.uid, u64::MAX - 1 - u64::from(is_reply));
        Self { fuid, certificate: crate::ssl::certificate_seen(cx, "KRB", der, true, !is_reply) }
    }

    /// Its subject.
    pub(super) fn subject(&self) -> Option<&str> {
        self.certificate.as_ref().map(|c| &*c.subject)
    }
}
