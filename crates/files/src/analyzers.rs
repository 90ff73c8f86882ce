//! What looks into a file while it passes: hashes, and analyzers for its type.

use gannet_base::Time;
use gannet_base::Uid;
use gannet_event::Sinks;

use crate::hash::Hashes;
use crate::hash::Wanted;
use crate::manager::TroubleKind;
use crate::ocsp;
use crate::pe;
use crate::rows;

/// Bytes of an OCSP response that are kept to be read at its end.
const MAX_OCSP: usize = 1 << 20;

/// The analyzers of one file.
#[derive(Debug, Default)]
pub(crate) struct Analyzers {
    names: Vec<&'static str>,
    hashes: Option<Box<Hashes>>,
    ocsp: Option<Vec<u8>>,
    pe: Option<Box<pe::Parser>>,
    /// The analyzer whose format the file violates, not reported yet, and the reason.
    pub(crate) failure: Option<(&'static str, pe::PeError)>,
}

/// What they found.
#[derive(Debug, Default)]
pub(crate) struct Results {
    pub(crate) names: Vec<&'static str>,
    pub(crate) md5: Option<String>,
    pub(crate) sha1: Option<String>,
    pub(crate) sha256: Option<String>,
    ocsp: Option<Vec<u8>>,
    pe: Option<Box<pe::Parser>>,
}

impl Analyzers {
    pub(crate) fn add_hashes(&mut self) {
        self.names.extend(["MD5", "SHA1", "SHA256"]);
        let all = Wanted { md5: true, sha1: true, sha256: true };
        self.hashes = Some(Box::new(Hashes::new(all)));
    }

    /// Adds what a type calls for.
    pub(crate) fn add_for(&mut self, mime_type: &str) {
        match mime_type {
            "application/x-dosexec" => {
                self.names.push("PE");
                self.pe = Some(Box::default());
            }
            "application/ocsp-response" => {
                self.names.push("OCSP_REPLY");
                self.ocsp = Some(Vec::new());
            }
            _ => {}
        }
    }

    /// The next bytes.
    pub(crate) fn data(&mut self, data: &[u8]) {
        if let Some(hashes) = &mut self.hashes {
            hashes.update(data);
        }
        if let Some(pe) = &mut self.pe
            && !pe.is_done()
        {
            // An invalid header ends the parsing; the facts read before remain.
            self.failure = pe.update(data).err().map(|e| ("PE", e)).or(self.failure);
        }
        if let Some(ocsp) = &mut self.ocsp {
            if ocsp.len() + data.len() <= MAX_OCSP {
                ocsp.extend_from_slice(data);
            } else {
                self.ocsp = None;
            }
        }
    }

    /// Bytes are missing: facts that need the whole file are unavailable.
    pub(crate) fn gap(&mut self) {
        self.hashes = None;
        self.ocsp = None;
    }

    pub(crate) fn finish(&mut self) -> Results {
        let fed = self.hashes.take().filter(|h| h.is_fed());
        let digests = fed.map(|h| h.finish()).unwrap_or_default();
        Results {
            names: std::mem::take(&mut self.names),
            md5: digests.md5,
            sha1: digests.sha1,
            sha256: digests.sha256,
            ocsp: self.ocsp.take(),
            pe: self.pe.take(),
        }
    }
}

impl Results {
    /// Writes the rows of their own logs, and reports weirds.
    pub(crate) fn write(
        &self,
        logs: &mut Sinks,
        ts: Time,
        fuid: Uid,
        mut odd: impl FnMut(TroubleKind),
    ) {
        if let Some(row) = self.pe.as_ref().and_then(|pe| rows::pe(ts, fuid, pe.info())) {
            logs.write(&row);
        }
        match self.ocsp.as_deref().map(ocsp::parse_response) {
            Some(Ok(response)) => {
                for status in &response.certificates {
                    logs.write(&rows::ocsp(ts, fuid, status));
                }
                for w in &response.weirds {
                    odd(TroubleKind::Weird { name: w.name(), addl: w.addition(), source: None });
                }
            }
            Some(Err(_)) => {
                let name = ocsp::RESPONSE_ERROR_WEIRD;
                odd(TroubleKind::Weird { name, addl: String::new(), source: None });
            }
            None => {}
        }
    }
}
