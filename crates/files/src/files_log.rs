//! files.log: one row per file.

use gannet_base::ConnId;
use gannet_base::Interval;
use gannet_base::Time;
use gannet_base::Uid;
use gannet_event::FilePart;
use gannet_event::Sinks;
use gannet_event::WeirdSampling;
use gannet_log::Set;

use crate::analyzers::Results;
use crate::events::FileHash;
use crate::events::FileStateRemove;
use crate::file::File;
use crate::manager::ContentFault;
use crate::manager::FileWeirdFacts;

gannet_log::row! {
    /// One row for each file that a connection carried.
    pub(crate) struct FileRow<'a> = "files" {
        /// Time of its first bytes.
        ts: Time = "ts",
        /// Its uid in the logs.
        fuid: Uid = "fuid",
        /// The connection that carried it.
        uid: Uid = "uid",
        /// The connection's originator and responder.
        id: ConnId = "id",
        /// The protocol that carried it.
        source: &'a str = "source",
        /// Nesting depth within its source.
        depth: u64 = "depth",
        /// Its analyzers.
        analyzers: Set<&'a str> = "analyzers",
        /// Its type, detected from its first bytes.
        mime_type: Option<&'a str> = "mime_type",
        /// Its name, if its source stated one.
        filename: Option<&'a [u8]> = "filename",
        /// From its first to its last bytes.
        duration: Interval = "duration",
        /// Whether its sender is local.
        local_orig: Option<bool> = "local_orig",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// Bytes seen.
        seen_bytes: u64 = "seen_bytes",
        /// Expected number of bytes, if its source stated it.
        total_bytes: Option<u64> = "total_bytes",
        /// Missing bytes (gaps).
        missing_bytes: u64 = "missing_bytes",
        /// Bytes that arrived but could not be ordered.
        overflow_bytes: u64 = "overflow_bytes",
        /// Whether it timed out.
        timedout: bool = "timedout",
        /// The file that contains it.
        parent_fuid: Option<Uid> = "parent_fuid",
        /// MD5 of its content.
        md5: Option<&'a str> = "md5",
        /// SHA-1 of its content.
        sha1: Option<&'a str> = "sha1",
        /// SHA-256 of its content.
        sha256: Option<&'a str> = "sha256",
        /// Name of the file in the folder of `--extract-files` that has its contents.
        extracted: Option<&'a str> = "extracted",
        /// Whether extraction was truncated.
        extracted_cutoff: Option<bool> = "extracted_cutoff",
        /// Bytes extracted.
        extracted_size: Option<u64> = "extracted_size",
    }
}

/// Raises the events for the end of a file.
fn raise(sinks: &mut Sinks, file: &File, results: &Results) {
    if !sinks.events.any() {
        return;
    }
    let f = sinks.events.file(file.state());
    let hashes = [("md5", &results.md5), ("sha1", &results.sha1), ("sha256", &results.sha256)];
    if sinks.events.wants::<FileHash<'_>>() {
        for (kind, hash) in hashes {
            if let Some(hash) = hash.as_deref() {
                sinks.events.raise(&FileHash { f, kind, hash });
            }
        }
    }
    if sinks.events.wants::<FileStateRemove>() {
        sinks.events.raise(&FileStateRemove { f });
    }
}

/// Writes the rows of a file that ended, one per connection, and the rows of its analyzers.
pub(crate) fn write(
    logs: &mut Sinks,
    now: Time,
    file: &mut File,
    faults: &mut Vec<ContentFault>,
    sampling: &mut WeirdSampling,
) {
    let results = file.analyzers.finish();
    let extracted = file.extraction.finish();
    let mut names = results.names.clone();
    if extracted.is_some() {
        names.push("EXTRACT");
    }
    let f = logs.events.any().then(|| logs.events.file(file.state()));
    let certificate = file.start.certificate.take();
    let certificate = certificate.as_deref();
    let (started, fuid) = (file.started, file.fuid);
    results.write(logs, started, fuid, f, certificate, &mut |logs, name, addl| {
        let weird = FileWeirdFacts { name, addl, source: None };
        faults.push(file.weird(logs, now, sampling, weird));
    });
    if matches!(file.start.part, FilePart::Certificate(_)) {
        return raise(logs, file, &results);
    }
    let mut row = FileRow {
        ts: file.started,
        fuid: file.fuid,
        uid: file.uid,
        id: file.id,
        source: file.start.source,
        depth: file.start.depth,
        analyzers: Set(names),
        mime_type: file.mime_type,
        filename: file.start.filename.as_deref(),
        duration: file.last - file.started,
        local_orig: Some(file.local_orig),
        is_orig: file.start.from.is_orig(),
        seen_bytes: file.seen,
        total_bytes: file.start.total_bytes,
        missing_bytes: file.missing,
        overflow_bytes: file.overflow,
        timedout: file.timed_out,
        parent_fuid: file.start.parent,
        md5: results.md5.as_deref(),
        sha1: results.sha1.as_deref(),
        sha256: results.sha256.as_deref(),
        extracted: extracted.as_ref().map(|e| e.name.as_str()),
        extracted_cutoff: extracted.as_ref().map(|e| e.cutoff),
        extracted_size: extracted.as_ref().map(|e| e.size),
    };
    raise(logs, file, &results);
    logs.write(&row);
    for (uid, id) in &file.others {
        (row.uid, row.id) = (*uid, *id);
        logs.write(&row);
    }
}
