//! Analyzers of a file's contents: hashes, and those for its type.

use std::borrow::Cow;

use gannet_base::Time;
use gannet_base::Uid;
use gannet_event::FileRef;
use gannet_event::Sinks;

use crate::hash::HashSelection;
use crate::hash::Hashes;
use crate::manager::Disabled;
use crate::ocsp;
use crate::ocsp_raise;
use crate::pe;
use crate::rows;
use crate::x509;
use crate::x509::Certificate;
use crate::x509_raise;

/// Maximum size of an OCSP message or a certificate in bytes. A longer file is not parsed, which is
/// a weird.
const MAX_MESSAGE: usize = 1 << 20;
/// The weird for a file that exceeds [`MAX_MESSAGE`].
const TOO_LONG_WEIRD: &str = "file_message_too_long";

/// The analyzers of one file.
#[derive(Debug, Default)]
pub(crate) struct Analyzers {
    names: Vec<&'static str>,
    hashes: Option<Box<Hashes>>,
    ocsp: Option<Vec<u8>>,
    /// The bytes of an OCSP request, if a listener requested its analyzer.
    ocsp_request: Option<Vec<u8>>,
    /// The bytes of a certificate so far, if a listener requested its analyzer.
    x509: Option<Vec<u8>>,
    /// The analyzers for which the file is too long.
    too_long: Vec<&'static str>,
    pe: Option<Box<pe::Parser>>,
    /// The analyzer whose format the file violates, and the reason, until it is reported.
    pub(crate) failure: Option<(&'static str, String)>,
    /// Type-specific analyzers that are disabled.
    pub(crate) disabled: Disabled,
    /// Whether to store executable headers for events.
    pub(crate) keeps_headers: bool,
    /// Whether to store the DOS program of an executable as well.
    pub(crate) keeps_programs: bool,
}

/// The results of a file's analyzers.
#[derive(Debug, Default)]
pub(crate) struct Results {
    pub(crate) names: Vec<&'static str>,
    pub(crate) md5: Option<String>,
    pub(crate) sha1: Option<String>,
    pub(crate) sha256: Option<String>,
    ocsp: Option<Vec<u8>>,
    /// The bytes of an OCSP request, if a listener requested its analyzer.
    ocsp_request: Option<Vec<u8>>,
    /// The bytes of the complete certificate.
    x509: Option<Vec<u8>>,
    /// The analyzers for which the file is too long.
    too_long: Vec<&'static str>,
    pe: Option<Box<pe::Parser>>,
}

impl Analyzers {
    pub(crate) fn add_hashes(&mut self) {
        self.names.extend(["MD5", "SHA1", "SHA256"]);
        let all = HashSelection { md5: true, sha1: true, sha256: true };
        self.hashes = Some(Box::new(Hashes::new(all)));
    }

    /// Adds or removes hashes, as requested by a script.
    pub(crate) fn set_hashes(&mut self, which: HashSelection, on: bool) {
        if on {
            self.hashes.get_or_insert_default().add(which);
        } else if let Some(hashes) = &mut self.hashes {
            hashes.remove(which);
        }
    }

    /// Adds the analyzers for a type.
    pub(crate) fn add_for(&mut self, mime_type: &str) {
        match mime_type {
            "application/x-dosexec" if !self.disabled.pe => {
                self.names.push("PE");
                let mut parser = pe::Parser::new();
                parser.stores_parts = self.keeps_headers;
                parser.stores_program = self.keeps_headers && self.keeps_programs;
                self.pe = Some(Box::new(parser));
            }
            "application/ocsp-response" if !self.disabled.ocsp => {
                self.add_by_name("Files::ANALYZER_OCSP_REPLY");
            }
            _ => {}
        }
    }

    /// Passes the next bytes to the analyzers.
    pub(crate) fn data(&mut self, data: &[u8]) {
        if let Some(hashes) = &mut self.hashes {
            hashes.update(data);
        }
        if let Some(pe) = &mut self.pe
            && !pe.is_done()
        {
            // An invalid header ends the parsing; the facts parsed before remain.
            if let Err(error) = pe.update(data) {
                self.failure = Some(("PE", error.to_string()));
            }
        }
        let all = [
            (&mut self.ocsp, "OCSP_REPLY"),
            (&mut self.ocsp_request, "OCSP_REQUEST"),
            (&mut self.x509, "X509"),
        ];
        for (buffer, name) in all {
            if !append(buffer, data) {
                self.too_long.push(name);
            }
        }
    }

    /// Adds an analyzer that a listener requests by Zeek's name; returns whether the name is known
    /// here.
    pub(crate) fn add_by_name(&mut self, analyzer: &str) -> bool {
        let Some((buffer, name)) = self.message(analyzer) else { return false };
        if buffer.is_none() {
            *buffer = Some(Vec::new());
            self.names.push(name);
        }
        true
    }

    /// Removes an analyzer at the request of a listener.
    pub(crate) fn remove_by_name(&mut self, analyzer: &str) {
        if let Some((buffer, name)) = self.message(analyzer) {
            *buffer = None;
            self.names.retain(|its| *its != name);
        } else if analyzer == "Files::ANALYZER_PE" {
            self.pe = None;
        }
    }

    /// The buffer of the analyzer with this name in Zeek, and the short name of the analyzer.
    fn message(&mut self, analyzer: &str) -> Option<(&mut Option<Vec<u8>>, &'static str)> {
        match analyzer {
            "Files::ANALYZER_OCSP_REPLY" => Some((&mut self.ocsp, "OCSP_REPLY")),
            "Files::ANALYZER_OCSP_REQUEST" => Some((&mut self.ocsp_request, "OCSP_REQUEST")),
            "Files::ANALYZER_X509" => Some((&mut self.x509, "X509")),
            _ => None,
        }
    }

    /// Whether headers are stored for events.
    #[inline]
    pub(crate) fn has_headers(&self) -> bool {
        self.pe.as_ref().is_some_and(|pe| !pe.stored_parts.is_empty())
    }

    /// Takes the headers that are stored for events.
    pub(crate) fn take_headers(&mut self) -> Vec<(pe::Kind, Vec<u8>)> {
        self.pe.as_mut().map(|pe| std::mem::take(&mut pe.stored_parts)).unwrap_or_default()
    }

    /// Handles missing bytes: facts that need the whole file become unavailable.
    pub(crate) fn gap(&mut self) {
        self.hashes = None;
        self.ocsp = None;
        self.ocsp_request = None;
        self.x509 = None;
    }

    pub(crate) fn finish(&mut self) -> Results {
        let hashes = self.hashes.take().filter(|h| h.has_data());
        let digests = hashes.map(|h| h.finish()).unwrap_or_default();
        Results {
            names: std::mem::take(&mut self.names),
            md5: digests.md5,
            sha1: digests.sha1,
            sha256: digests.sha256,
            ocsp: self.ocsp.take(),
            ocsp_request: self.ocsp_request.take(),
            x509: self.x509.take(),
            too_long: std::mem::take(&mut self.too_long),
            pe: self.pe.take(),
        }
    }
}

/// Appends data that is parsed at the end of the file. Beyond [`MAX_MESSAGE`], drops all of it and
/// returns false.
fn append(buffer: &mut Option<Vec<u8>>, data: &[u8]) -> bool {
    let Some(all) = buffer else { return true };
    let fits = all.len() + data.len() <= MAX_MESSAGE;
    if fits {
        all.extend_from_slice(data);
    } else {
        *buffer = None;
    }
    fits
}

impl Results {
    /// Writes the rows of the analyzers' own logs, and reports weirds. `certificate` is the parsed
    /// certificate, if the file is one that was parsed before.
    pub(crate) fn write(
        &self,
        logs: &mut Sinks,
        ts: Time,
        fuid: Uid,
        f: Option<FileRef>,
        certificate: Option<&Certificate>,
        weird: &mut dyn FnMut(&mut Sinks, &'static str, String),
    ) {
        for analyzer in &self.too_long {
            weird(logs, TOO_LONG_WEIRD, (*analyzer).to_owned());
        }
        if let Some(row) = self.pe.as_ref().and_then(|pe| rows::pe(ts, fuid, pe.info())) {
            logs.write(&row);
        }
        match self.ocsp.as_deref().map(ocsp::parse_response) {
            Some(Ok(response)) => {
                for w in &response.weirds {
                    weird(logs, w.name(), w.addition());
                }
                if let Some(f) = f {
                    ocsp_raise::response(logs, f, &response);
                }
                for status in &response.certificates {
                    logs.write(&rows::ocsp(ts, fuid, status));
                }
            }
            Some(Err(_)) => {
                weird(logs, ocsp::RESPONSE_ERROR_WEIRD, String::new());
            }
            None => {}
        }
        match self.ocsp_request.as_deref().map(ocsp::parse_request) {
            Some(Ok(request)) => {
                if let Some(f) = f {
                    ocsp_raise::request(logs, f, &request);
                }
            }
            Some(Err(_)) => {
                weird(logs, ocsp::REQUEST_ERROR_WEIRD, String::new());
            }
            None => {}
        }
        let read = |der| match certificate {
            Some(certificate) => Ok(Cow::Borrowed(certificate)),
            None => x509::parse(der).map(Cow::Owned),
        };
        match self.x509.as_deref().map(|der| (der, read(der))) {
            Some((der, Ok(certificate))) => {
                let mut weird =
                    |logs: &mut Sinks, w: x509::Weird| weird(logs, w.name(), w.addition());
                match f {
                    Some(f) => x509_raise::certificate(logs, f, der, &certificate, &mut weird),
                    None => certificate.weirds.iter().for_each(|w| weird(logs, *w)),
                }
            }
            Some((_, Err(_))) => {
                weird(logs, x509::PARSE_ERROR_WEIRD, String::new());
            }
            None => {}
        }
    }
}
