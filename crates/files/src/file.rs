//! A single file: its in-order bytes, missing bytes, and its analyzers.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use gannet_base::ConnId;
use gannet_base::Interval;
use gannet_base::Proto;
use gannet_base::Time;
use gannet_base::Uid;
use gannet_event::Command;
use gannet_event::FileCommand;
use gannet_event::FileState;
use gannet_event::Sinks;
use gannet_event::WeirdSamples;
use gannet_event::WeirdSampling;

use crate::analyzers::Analyzers;
use crate::events::FileData;
use crate::events::FileExtractionLimit;
use crate::events::FileGap;
use crate::events::FileReassemblyOverflow;
use crate::events::FileSniff;
use crate::events::FileViolation;
use crate::events::FileWeird;
use crate::events::Metadata;
use crate::events::MimeMatch;
use crate::extract::Extract;
use crate::extract::Extractable;
use crate::extract::Extraction;
use crate::files_log;
use crate::hash::HashSelection;
use crate::manager::ContentFault;
use crate::manager::FaultKind;
use crate::manager::FileId;
use crate::manager::FileOptions;
use crate::manager::FileStart;
use crate::manager::FileWeirdFacts;
use crate::manager::Pair;
use crate::pe_raise;
use crate::sniff;
use crate::zip;

/// Default number of bytes from which the type of a file is detected.
pub(crate) const BEGINNING: usize = 4096;

/// Maximum number of bytes of a file buffered above a hole; if exceeded, the hole is skipped when
/// more data arrives.
pub(crate) const MAX_BUFFERED: usize = 512 << 10;

/// Maximum nesting depth of archives whose entries are files.
pub(crate) const MAX_NESTED_ARCHIVES: u32 = 8;

/// Maximum number of decompressed bytes of an archive's entries, including those of nested
/// archives.
pub(crate) const MAX_UNPACKED: u64 = 1 << 30;

/// The limit of buffered bytes as set by a script, where 0 means no limit.
pub(crate) fn max_buffered(bytes: u64) -> usize {
    match bytes {
        0 => usize::MAX,
        bytes => usize::try_from(bytes).unwrap_or(usize::MAX),
    }
}

/// What must be reported before more of the file is analyzed.
#[derive(Debug)]
pub(crate) enum PendingReport {
    /// The type, detected from the first bytes. The event shows these counts.
    Type {
        /// Number of bytes that arrived.
        seen: u64,
        /// Number of bytes that are missing.
        missing: u64,
    },
    /// The next bytes exceed the limit of the extraction.
    Limit {
        /// The limit.
        limit: u64,
        /// The number of those bytes.
        len: u64,
    },
}

/// Bytes for listeners: for events, and for the archive parser.
#[derive(Debug, Default)]
pub(crate) struct ListenedBytes {
    /// Whether events get the bytes.
    is_reported: bool,
    /// The archive parser, if the file is analyzed as an archive.
    pub(crate) archive: Option<Box<Archive>>,
    bytes: Vec<u8>,
    /// Parts of `bytes` that are contiguous in the file.
    parts: Vec<Part>,
    /// Number of bytes received before the type of the file was known: they are delivered a second
    /// time.
    ahead: usize,
    /// Whether a listener was added after the first bytes and before the type of the file was
    /// known: it also gets these bytes.
    is_late: bool,
}

/// A range of contiguous bytes: bytes are missing between two parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    /// Offset of the part in the file.
    offset: u64,
    /// Offset of the part in [`ListenedBytes::bytes`].
    begin: usize,
    /// Whether the part is replayed for listeners that were added late.
    is_replayed: bool,
}

impl ListenedBytes {
    /// Receives bytes at `offset` of the file. If they are the first bytes, delivered a second
    /// time, they arrived in `pieces` of these lengths.
    fn receive(&mut self, offset: u64, data: &[u8], pieces: &[usize]) {
        if let Some(archive) = &mut self.archive {
            archive.parser.push(data);
        }
        let again = self.ahead.min(data.len());
        self.ahead -= again;
        if self.is_late
            && let [before @ .., _] = pieces
        {
            // The last piece is the current one, which was not yet reported to earlier listeners.
            let current = offset + before.iter().sum::<usize>() as u64;
            while let Some(last) = self.parts.pop_if(|last| last.offset >= current) {
                self.bytes.truncate(last.begin);
            }
            let done = self.replay(offset, data, before);
            self.append(offset + done as u64, data.get(done..).unwrap_or_default(), false);
            return;
        }
        self.append(offset + again as u64, data.get(again..).unwrap_or_default(), false);
    }

    /// Receives bytes before the type of the file is known; `before` arrived earlier, in `pieces`
    /// of these lengths.
    fn receive_before_type(&mut self, offset: u64, data: &[u8], before: &[u8], pieces: &[usize]) {
        if self.is_late {
            self.replay(offset.saturating_sub(before.len() as u64), before, pieces);
        }
        self.append(offset, data, false);
        self.ahead = before.len() + data.len();
    }

    /// Adds earlier bytes for listeners that were added late; returns the number of bytes.
    fn replay(&mut self, offset: u64, data: &[u8], pieces: &[usize]) -> usize {
        self.is_late = false;
        let mut done = 0;
        for len in pieces {
            let Some(piece) = data.get(done..done + len) else { break };
            self.append(offset + done as u64, piece, true);
            done += len;
        }
        done
    }

    fn append(&mut self, offset: u64, data: &[u8], is_replayed: bool) {
        if !self.is_reported {
            return;
        }
        let begin = self.bytes.len();
        let follows = |last: &Part| {
            last.offset + (begin - last.begin) as u64 == offset && !last.is_replayed && !is_replayed
        };
        if !data.is_empty() && !self.parts.last().is_some_and(follows) {
            self.parts.push(Part { offset, begin, is_replayed });
        }
        self.bytes.extend_from_slice(data);
    }
}

/// The state of an archive, whose entries are files.
#[derive(Debug)]
pub(crate) struct Archive {
    pub(crate) parser: zip::Parser,
    /// The current entry, if it is a file.
    pub(crate) entry: Option<FileId>,
    /// Number of entries so far that are files.
    pub(crate) entries: u64,
}

/// State shared by nested archives.
#[derive(Clone, Debug)]
pub(crate) struct Nesting {
    /// Number of archives that contain the file.
    pub(crate) depth: u32,
    /// Number of bytes that entries of the outermost archive and of archives nested in it may still
    /// have.
    pub(crate) left: Arc<AtomicU64>,
}

impl Default for Nesting {
    fn default() -> Self {
        Self { depth: 0, left: Arc::new(AtomicU64::new(MAX_UNPACKED)) }
    }
}

/// A file in transit.
#[derive(Debug)]
pub(crate) struct File {
    /// The nesting of the file, if it is an entry of an archive.
    pub(crate) nesting: Option<Box<Nesting>>,
    pub(crate) fuid: Uid,
    pub(crate) uid: Uid,
    pub(crate) id: ConnId,
    pub(crate) proto: Proto,
    /// The next report, which must precede further analysis.
    pub(crate) pending_report: Option<PendingReport>,
    /// Whether matches of the first bytes are reported.
    pub(crate) reports_matches: bool,
    /// Whether the DOS program of an executable is stored for its event.
    pub(crate) keeps_programs: bool,
    /// Gaps to raise events for: offset and length, and the number of bytes that were missing
    /// before.
    pub(crate) gaps: Vec<(u64, u64, u64)>,
    /// Further connections that carry parts of the file.
    pub(crate) others: Vec<(Uid, ConnId)>,
    pub(crate) local_orig: bool,
    /// Whether the global shard owns the connection.
    pub(crate) is_global: bool,
    /// The name of a file that scripts read and no connection carries.
    pub(crate) input: Option<Box<str>>,
    pub(crate) start: FileStart,
    pub(crate) started: Time,
    pub(crate) last: Time,
    pub(crate) seen: u64,
    /// The number of bytes that the last event about the file showed as seen.
    pub(crate) shown: u64,
    pub(crate) missing: u64,
    pub(crate) overflow: u64,
    pub(crate) timed_out: bool,
    /// Number of occurrences of each weird of the file.
    pub(crate) weirds: WeirdSamples,
    /// Whether to report a timeout of the file.
    pub(crate) watched: bool,
    pub(crate) mime_type: Option<&'static str>,
    pub(crate) analyzers: Analyzers,
    pub(crate) extraction: Extraction,
    /// The first bytes, if they are reported.
    pub(crate) bof: Option<Vec<u8>>,
    /// Bytes that arrived before the pending report was made.
    pub(crate) deferred: Vec<u8>,
    /// Offset of these bytes in the file.
    pub(crate) deferred_offset: u64,
    /// Gaps among these bytes: number of bytes before the gap, and its length.
    pub(crate) deferred_gaps: Vec<(usize, u64)>,
    /// Whether the exceeded limit of the extraction was reported for the next bytes.
    pub(crate) is_limit_known: bool,
    /// Bytes that a listener requested and has not received yet.
    pub(crate) listened: Option<Box<ListenedBytes>>,
    /// Whether a script ended the analysis: further data is ignored.
    pub(crate) stopped: bool,
    /// Whether the analysis ends after the next bytes.
    pub(crate) stops: bool,
    /// Idle time after which the file times out.
    pub(crate) timeout: Interval,
    /// Number of bytes from which the type is detected, unless the file is shorter.
    pub(crate) sniff_bytes: usize,
    /// The first bytes, until the type is detected.
    pub(crate) beginning: Vec<u8>,
    /// Offset of these bytes in the file.
    pub(crate) beginning_at: u64,
    /// Lengths of the pieces in which they arrived, recorded if handlers may add analyzers of
    /// contents.
    pub(crate) pieces: Vec<usize>,
    pub(crate) sniffed: bool,
    /// Number of bytes seen or known to be missing: the offset of the next bytes.
    pub(crate) offset: u64,
    /// Out-of-order data, by offset; no two parts overlap.
    pub(crate) out_of_order: BTreeMap<u64, Box<[u8]>>,
    /// Number of bytes in `early`.
    pub(crate) buffered: usize,
    /// Maximum number of such bytes: if exceeded, the hole is skipped when more data arrives.
    pub(crate) max_buffered: usize,
    /// Whether out-of-order data is buffered; otherwise it counts as overflow.
    pub(crate) reassembles: bool,
    /// Holes that were skipped because too much data was buffered above: offsets and lengths.
    pub(crate) overflows: Vec<(u64, u64)>,
    /// Whether parts arrived out of order: further gaps are then reported with their offset.
    pub(crate) reorders: bool,
    /// Offset of the next in-order byte: equals `offset`, unless a gap ended below data that had
    /// arrived.
    pub(crate) next: u64,
    /// Offset below which all bytes have arrived, even if in-order delivery continues below it.
    pub(crate) taken: u64,
    pub(crate) number: u64,
    /// Time of its first start.
    pub(crate) first_started: Time,
    /// Distinguishes the file from others with the same time.
    pub(crate) tie: u64,
    pub(crate) due: Time,
    /// Time at which its row was written, if it was.
    pub(crate) logged_at: Time,
    /// Whether the file has timed out and its row is written: more data begins the file again.
    pub(crate) dormant: bool,
}

impl File {
    /// The host pair of the file.
    pub(crate) fn pair(&self) -> Pair {
        let (a, b) = (self.id.orig_h, self.id.resp_h);
        (a.min(b), a.max(b), self.is_global)
    }

    pub(crate) fn begin(&mut self, options: &FileOptions) {
        self.extraction = Extraction::new(options.extract.as_ref());
        self.analyzers.disabled = options.disabled;
        if options.hash {
            self.analyzers.add_hashes();
        }
        if let Some(mime) = self.mime_type {
            self.analyzers.add_for(mime);
        }
    }

    /// Whether the file has timed out: more data [restarts](Self::begin_again) it.
    #[inline]
    pub(crate) fn is_timed_out(&self) -> bool {
        self.dormant && self.due != Time::MAX
    }

    /// Resets the file, as if no data had arrived.
    #[cold]
    pub(crate) fn begin_again(&mut self, now: Time, options: &FileOptions) {
        self.dormant = false;
        self.timed_out = false;
        (self.stopped, self.stops) = (false, false);
        (self.started, self.last) = (now, now);
        (self.seen, self.missing, self.overflow, self.offset) = (0, 0, 0, 0);
        self.shown = 0;
        (self.reorders, self.next, self.taken) = (false, 0, 0);
        self.mime_type = self.start.mime_type;
        self.sniffed = self.mime_type.is_some();
        self.analyzers = Analyzers::default();
        self.begin(options);
    }

    /// Delivers the next bytes.
    #[inline]
    pub(crate) fn deliver_next(&mut self, data: &[u8]) {
        if self.out_of_order.is_empty() && self.next == self.offset {
            self.deliver(data);
        } else {
            self.deliver_at(self.offset, data);
        }
    }

    fn deliver(&mut self, data: &[u8]) {
        if self.dormant {
            return;
        }
        if !self.sniffed {
            // If the data is as long as the beginning, no copy is needed.
            if let Some(first) = data.get(..self.sniff_bytes).filter(|_| self.beginning.is_empty())
            {
                self.store_beginning(data, self.seen);
                self.set_type(sniff::mime_type(first));
            } else {
                // Analyzers of the type get the bytes from the start.
                if self.beginning.is_empty() {
                    self.beginning_at = self.next;
                } else {
                    // The file arrives in pieces, so more pieces are likely: the buffer is
                    // allocated once.
                    let free = self.sniff_bytes.saturating_sub(self.beginning.len());
                    self.beginning.reserve_exact(free.max(data.len()));
                }
                if let Some(listened) = &mut self.listened {
                    listened.receive_before_type(self.next, data, &self.beginning, &self.pieces);
                }
                self.beginning.extend_from_slice(data);
                if self.reports_matches {
                    self.pieces.push(data.len());
                }
                let before = self.seen;
                self.count(data.len());
                if self.beginning.len() >= self.sniff_bytes {
                    self.sniff_after(before);
                }
                return;
            }
        }
        self.analyze(self.next, data);
        self.count(data.len());
    }

    /// Passes in-order bytes to the analyzers, after the type was detected.
    #[inline]
    fn analyze(&mut self, offset: u64, data: &[u8]) {
        if self.pending_report.is_some() {
            // Analyzers that handlers add for the type get the bytes from the start.
            return self.defer(offset, data);
        }
        if !matches!(self.extraction, Extraction::Ignored) && self.exceeds(data.len() as u64, false)
        {
            return self.defer(offset, data);
        }
        if let Some(listened) = &mut self.listened {
            listened.receive(offset, data, &std::mem::take(&mut self.pieces));
        }
        self.analyzers.data(data);
        let file = extractable(self.fuid, &self.start, self.mime_type);
        self.extraction.data(file, data);
    }

    /// Stores bytes until handlers have run, so that analyzers that they add get them from the
    /// start.
    #[cold]
    fn defer(&mut self, offset: u64, data: &[u8]) {
        if self.deferred.is_empty() && self.deferred_gaps.is_empty() {
            self.deferred_offset = offset;
        }
        self.deferred.extend_from_slice(data);
    }

    /// Whether the next bytes exceed the limit of the extraction, and this was not reported yet.
    #[cold]
    fn exceeds(&mut self, len: u64, is_gap: bool) -> bool {
        let limit = self.extraction.exceeded(len, is_gap);
        let is_known = std::mem::take(&mut self.is_limit_known);
        let Some(limit) = limit.filter(|_| !is_known) else { return false };
        self.pending_report = Some(PendingReport::Limit { limit, len });
        true
    }

    /// Applies a command of a listener.
    #[cold]
    pub(crate) fn apply_command(&mut self, what: FileCommand, extract: Option<&Arc<dyn Extract>>) {
        match what {
            FileCommand::Add { analyzer, path, limit, counts_gaps } => {
                match (hash_of(&analyzer), path) {
                    (Some(hash), _) => self.analyzers.set_hashes(hash, true),
                    (None, _) if self.analyzers.add_by_name(&analyzer) => {}
                    (None, _) if reads_contents(&analyzer) => {
                        let listened = self.listened.get_or_insert_default();
                        listened.is_reported = true;
                        listened.is_late = !self.pieces.is_empty();
                    }
                    (None, _) if analyzer == ZIP => {
                        let archive = &mut self.listened.get_or_insert_default().archive;
                        archive.get_or_insert_with(|| {
                            let parser = zip::Parser::new();
                            Box::new(Archive { parser, entry: None, entries: 0 })
                        });
                    }
                    (None, Some(path)) => {
                        let contents =
                            extract.and_then(|extract| extract.create(&path, limit, counts_gaps));
                        self.extraction = contents.map_or(Extraction::Ignored, Extraction::Open);
                    }
                    _ => {}
                }
            }
            FileCommand::Remove(analyzer) => match hash_of(&analyzer) {
                Some(hash) => self.analyzers.set_hashes(hash, false),
                None if reads_contents(&analyzer) => {
                    if let Some(listened) = &mut self.listened {
                        listened.is_reported = false;
                    }
                }
                None if analyzer == ZIP => {
                    if let Some(archive) = self.archive() {
                        archive.parser.stop();
                    }
                }
                None if analyzer == "Files::ANALYZER_EXTRACT" => {
                    self.extraction.finish();
                }
                None => self.analyzers.remove_by_name(&analyzer),
            },
            FileCommand::Stop => {
                // Data before this point is still parsed at the end of the file.
                if let Some(archive) = self.archive() {
                    archive.parser.stop();
                }
                self.stopped = true;
            }
            FileCommand::Timeout(time) => self.timeout = time,
            FileCommand::Limit(limit) => self.extraction.set_limit(limit),
            FileCommand::Reassemble(on) => {
                self.reassembles = on;
                if !on {
                    // As in Zeek, buffered data is lost.
                    (self.out_of_order, self.buffered) = (BTreeMap::new(), 0);
                }
            }
            FileCommand::Buffer(bytes) => self.max_buffered = max_buffered(bytes),
        }
    }

    fn count(&mut self, n: usize) {
        self.seen += n as u64;
        self.advance(n as u64);
    }

    /// Detects the type from the bytes that have arrived.
    pub(crate) fn sniff(&mut self) {
        self.sniff_after(self.seen);
    }

    /// Like [`Self::sniff`], with an event that shows a file of `seen` bytes.
    fn sniff_after(&mut self, seen: u64) {
        if self.sniffed {
            return;
        }
        let beginning = std::mem::take(&mut self.beginning);
        let known = !beginning.is_empty() && self.missing == 0;
        let first = &beginning[..beginning.len().min(self.sniff_bytes)];
        self.store_beginning(if known { &beginning } else { &[] }, seen);
        self.set_type(if known { sniff::mime_type(first) } else { None });
        self.analyze(self.beginning_at, &beginning);
        if self.pending_report.is_none() {
            self.pieces = Vec::new();
        }
    }

    /// Stores the first bytes for the report: all pieces that fill the beginning, including all of
    /// the last one.
    fn store_beginning(&mut self, beginning: &[u8], seen: u64) {
        if !self.reports_matches || beginning.is_empty() {
            return;
        }
        self.bof = Some(beginning.to_vec());
        self.pending_report = Some(PendingReport::Type { seen, missing: self.missing });
    }

    /// The types that the first bytes match.
    fn matches(&self) -> Metadata {
        let bof = self.bof.as_deref().unwrap_or_default();
        let all = sniff::matches(&bof[..bof.len().min(self.sniff_bytes)]);
        let all =
            all.into_iter().map(|(strength, mime)| MimeMatch { strength: strength.into(), mime });
        let all: Vec<_> = all.collect();
        Metadata {
            mime_type: all.first().map(|m| m.mime),
            mime_types: (!all.is_empty()).then_some(all),
            inferred: Some(true),
        }
    }

    /// Whether a report must be made before more of the file is analyzed.
    #[inline]
    pub(crate) fn has_pending_report(&self) -> bool {
        self.pending_report.is_some()
    }

    /// The state of the archive, if the file is analyzed as one.
    pub(crate) fn archive(&mut self) -> Option<&mut Archive> {
        self.listened.as_mut()?.archive.as_deref_mut()
    }

    /// Reports the bytes that a listener requested. Returns whether the file is analyzed as an
    /// archive.
    #[inline]
    pub(crate) fn raise_listened(&mut self, sinks: &mut Sinks) -> bool {
        self.listened.is_some() && self.raise_data(sinks)
    }

    #[cold]
    fn raise_data(&mut self, sinks: &mut Sinks) -> bool {
        let Some(listened) = &mut self.listened else { return false };
        let is_archive = listened.archive.is_some();
        let (bytes, parts) =
            (std::mem::take(&mut listened.bytes), std::mem::take(&mut listened.parts));
        if sinks.events.wants::<FileData<'_>>() {
            for (at, &Part { offset, begin, is_replayed }) in parts.iter().enumerate() {
                let end = parts.get(at + 1).map_or(bytes.len(), |next| next.begin);
                let data = bytes.get(begin..end).unwrap_or_default();
                let f = sinks.events.file(self.state());
                sinks.events.raise(&FileData { f, offset, data, is_replayed });
            }
        }
        is_archive
    }

    /// Makes the pending reports: matches of the first bytes, and exceeded limits of the
    /// extraction. As in Zeek, handlers run immediately.
    #[cold]
    pub(crate) fn raise_pending_reports(
        &mut self,
        sinks: &mut Sinks,
        extract: Option<&Arc<dyn Extract>>,
    ) {
        while let Some(report) = self.pending_report.take() {
            self.raise_pending_report(sinks, &report);
            self.apply_commands(sinks, extract);
            self.is_limit_known = matches!(report, PendingReport::Limit { .. });
            let deferred = std::mem::take(&mut self.deferred);
            let gaps = std::mem::take(&mut self.deferred_gaps);
            let (mut offset, mut begin) = (self.deferred_offset, 0);
            for (end, len) in gaps {
                let part = deferred.get(begin..end).unwrap_or_default();
                if !part.is_empty() {
                    self.analyze(offset, part);
                    offset += part.len() as u64;
                }
                self.analyze_gap(offset, len);
                offset = offset.saturating_add(len);
                begin = end;
            }
            let rest = deferred.get(begin..).unwrap_or_default();
            if !rest.is_empty() {
                self.analyze(offset, rest);
            }
        }
        self.pieces = Vec::new();
    }

    fn raise_pending_report(&mut self, sinks: &mut Sinks, report: &PendingReport) {
        match *report {
            PendingReport::Type { seen: seen_bytes, missing: missing_bytes } => {
                if !sinks.events.wants::<FileSniff>() {
                    return;
                }
                self.shown = seen_bytes;
                let f = sinks.events.file(FileState { seen_bytes, missing_bytes, ..self.state() });
                sinks.events.raise(&FileSniff { f, meta: self.matches() });
            }
            PendingReport::Limit { limit, len } => {
                if !sinks.events.wants::<FileExtractionLimit>() {
                    return;
                }
                let f = sinks.events.file(self.state());
                sinks.events.raise(&FileExtractionLimit { f, limit, len });
            }
        }
        sinks.events.mark();
        sinks.events.drain();
    }

    /// At the end of the file, detects the type from the bytes that have arrived.
    #[cold]
    pub(crate) fn detect_type_at_end(
        &mut self,
        sinks: &mut Sinks,
        extract: Option<&Arc<dyn Extract>>,
    ) {
        self.flush_out_of_order();
        self.sniff();
        if self.has_pending_report() {
            self.raise_pending_reports(sinks, extract);
        }
    }

    /// Applies the commands of the listener for this file.
    #[cold]
    pub(crate) fn apply_commands(&mut self, sinks: &mut Sinks, extract: Option<&Arc<dyn Extract>>) {
        let mine = |c: &Command| matches!(c, Command::File { fuid, .. } if *fuid == self.fuid);
        for command in sinks.events.take_commands_if(mine) {
            if let Command::File { what, .. } = command {
                self.apply_command(what, extract);
            }
        }
    }

    /// Raises the events of an executable's headers. As in Zeek, they show as many seen bytes as
    /// the last event about the file itself.
    #[cold]
    pub(crate) fn raise_headers(&mut self, sinks: &mut Sinks) {
        let headers = self.analyzers.take_headers();
        let f = sinks.events.file(FileState { seen_bytes: self.shown, ..self.state() });
        for (kind, data) in headers {
            pe_raise::raise(sinks, f, kind, &data);
        }
    }

    /// Raises the events of gaps.
    #[cold]
    pub(crate) fn raise_gaps(&mut self, sinks: &mut Sinks) {
        for (offset, len, missing_bytes) in std::mem::take(&mut self.gaps) {
            if sinks.events.wants::<FileGap>() {
                self.shown = self.seen;
                let f = sinks.events.file(FileState { missing_bytes, ..self.state() });
                sinks.events.raise(&FileGap { f, offset, len });
            }
        }
        for (offset, skipped) in std::mem::take(&mut self.overflows) {
            if sinks.events.wants::<FileReassemblyOverflow>() {
                self.shown = self.seen;
                let f = sinks.events.file(self.state());
                sinks.events.raise(&FileReassemblyOverflow { f, offset, skipped });
            }
        }
    }

    /// The state in the form of events.
    pub(crate) fn state(&self) -> FileState {
        let first = self.input.is_none().then_some(self.id);
        let conns = first.into_iter().chain(self.others.iter().map(|(_, id)| *id));
        let source = match &self.input {
            Some(name) => Cow::Owned(name.to_string()),
            None => Cow::Borrowed(self.start.source),
        };
        FileState {
            fuid: self.fuid,
            parent: self.start.parent,
            source,
            is_orig: self.input.is_none().then_some(self.start.from.is_orig()),
            conns: conns.map(|id| (id, self.proto)).collect(),
            last_active: self.last,
            seen_bytes: self.seen,
            total_bytes: self.start.total_bytes,
            missing_bytes: self.missing,
            overflow_bytes: self.overflow,
            timeout: self.timeout,
            bof: self.bof.clone(),
            part: self.start.part,
        }
    }

    /// Sets the detected type, `None` if it is unknown, and starts the analyzers for it.
    fn set_type(&mut self, mime_type: Option<&'static str>) {
        self.sniffed = true;
        self.mime_type = mime_type;
        if let Some(mime) = mime_type {
            self.analyzers.keeps_headers = self.reports_matches;
            self.analyzers.keeps_programs = self.keeps_programs;
            self.analyzers.add_for(mime);
        }
    }

    /// Delivers a part at `offset`: missing data below it may still arrive. If parts overlap, the
    /// first one wins.
    pub(crate) fn deliver_at(&mut self, offset: u64, mut data: &[u8]) {
        if self.dormant {
            return;
        }
        if self.buffered > self.max_buffered {
            self.skip_holes();
        }
        self.reorders |= offset != self.offset;
        let taken = self.taken.max(self.next);
        let Some(end) = offset.checked_add(data.len() as u64).filter(|end| *end > taken) else {
            return; // all bytes arrived before
        };
        let mut at = offset.max(taken);
        data = &data[(at - offset) as usize..];
        while !data.is_empty() {
            if at > self.next {
                return self.buffer(at, data);
            }
            let until = self.first_buffered().map_or(end, |held| held.min(end));
            self.deliver(&data[..(until - at) as usize]);
            self.deliver_buffered();
            let done = (self.next - at).min(data.len() as u64);
            at += done;
            data = &data[done as usize..];
        }
    }

    fn first_buffered(&self) -> Option<u64> {
        self.out_of_order.keys().next().copied()
    }

    /// Buffers data above a hole, except what is buffered already.
    fn buffer(&mut self, mut at: u64, mut data: &[u8]) {
        if !self.reassembles {
            self.overflow = self.overflow.saturating_add(data.len() as u64);
            return;
        }
        while !data.is_empty() {
            if let Some((start, held)) = self.out_of_order.range(..=at).next_back() {
                let end = start + held.len() as u64;
                if end > at {
                    let skip = (end - at).min(data.len() as u64);
                    at += skip;
                    data = &data[skip as usize..];
                    continue;
                }
            }
            let until = self.out_of_order.range(at..).next().map_or(u64::MAX, |(start, _)| *start);
            let n = (until - at).min(data.len() as u64) as usize;
            self.out_of_order.insert(at, data[..n].into());
            self.buffered += n;
            at += n as u64;
            data = &data[n..];
        }
    }

    /// Delivers buffered parts that are now in order.
    fn deliver_buffered(&mut self) {
        while self.first_buffered() == Some(self.next)
            && let Some(entry) = self.out_of_order.first_entry()
        {
            let held = entry.remove();
            self.buffered -= held.len();
            self.deliver(&held);
        }
    }

    /// Skips all holes because too much data is buffered; the first hole also counts as overflow.
    #[cold]
    fn skip_holes(&mut self) {
        if let Some(first) = self.first_buffered() {
            let skipped = first - self.next;
            self.overflow = self.overflow.saturating_add(skipped);
            if self.reports_matches {
                self.overflows.push((self.next, skipped));
            }
        }
        self.flush_out_of_order();
    }

    /// Skips the holes below all buffered data.
    fn flush_out_of_order(&mut self) {
        if let Some((start, held)) = self.out_of_order.last_key_value() {
            let end = start + held.len() as u64;
            self.skip_to(end);
        }
    }

    /// Skips all missing bytes below `end`.
    fn skip_to(&mut self, end: u64) {
        while let Some(next) = self.first_buffered().filter(|next| *next < end) {
            self.skip(next - self.next);
            self.deliver_buffered();
        }
        if end > self.next {
            self.skip(end - self.next);
            self.deliver_buffered();
        }
    }

    /// Handles a gap of `len` bytes: the next ones, or those after the first `at` bytes of the
    /// current part. Once parts arrived out of order, Zeek treats `at` as an offset in the file and
    /// continues after the gap, whatever has arrived already: data above it then counts as missing
    /// again.
    pub(crate) fn gap(&mut self, at: Option<u64>, len: u64) {
        if self.dormant {
            return;
        }
        let Some(at) = at.filter(|_| self.reorders) else {
            let from = self.gaps.len();
            self.skip_to(self.next.saturating_add(len));
            // The event shows the offset in the part, which differs from that in the file if an earlier file had the
            // beginning of the part.
            if let (Some(at), Some((offset, ..))) = (at, self.gaps.get_mut(from)) {
                *offset = at;
            }
            return;
        };
        let end = at.saturating_add(len);
        self.skip_to(end);
        self.taken = self.taken.max(self.next);
        self.next = end;
    }

    fn skip(&mut self, len: u64) {
        self.sniff();
        self.analyze_gap(self.next, len);
        if self.reports_matches {
            self.gaps.push((self.next, len, self.missing));
        }
        self.missing = self.missing.saturating_add(len);
        self.advance(len);
    }

    /// Reports missing bytes to the analyzers, after the type was detected.
    fn analyze_gap(&mut self, offset: u64, len: u64) {
        if self.pending_report.is_some() || self.exceeds(len, true) {
            self.defer(offset, &[]);
            self.deferred_gaps.push((self.deferred.len(), len));
            return;
        }
        self.analyzers.gap();
        if let Some(archive) = self.archive() {
            archive.parser.stop();
        }
        let file = extractable(self.fuid, &self.start, self.mime_type);
        self.extraction.gap(file, len);
    }

    fn advance(&mut self, len: u64) {
        self.offset = self.offset.saturating_add(len);
        self.next = self.next.saturating_add(len);
    }

    /// Whether an analyzer found a violation that is not reported yet.
    #[inline]
    pub(crate) fn has_fault(&self) -> bool {
        self.analyzers.failure.is_some()
    }

    /// Takes the violation that an analyzer found, if it is not reported yet.
    pub(crate) fn fault(&mut self) -> Option<ContentFault> {
        let (analyzer, reason) = self.analyzers.failure.take()?;
        Some(self.with_fault(FaultKind::Violation { analyzer, reason }))
    }

    /// Raises the event of a violation that an analyzer found and that is not reported yet.
    #[cold]
    pub(crate) fn raise_violation(&self, sinks: &mut Sinks) {
        if let Some((analyzer, reason)) = &self.analyzers.failure
            && sinks.events.wants::<FileViolation<'_>>()
        {
            let f = sinks.events.file(self.state());
            sinks.events.raise(&FileViolation { f, analyzer, reason });
        }
    }

    /// A fault of this file, with its connection.
    pub(crate) fn with_fault(&self, kind: FaultKind) -> ContentFault {
        let conn = self.others.is_empty().then_some((self.uid, self.id));
        ContentFault { fuid: self.fuid, conn, kind }
    }

    /// Returns a weird of this file. Raises its event unless the weird is sampled out.
    #[cold]
    pub(crate) fn weird(
        &mut self,
        sinks: &mut Sinks,
        now: Time,
        sampling: &mut WeirdSampling,
        FileWeirdFacts { name, addl, source }: FileWeirdFacts,
    ) -> ContentFault {
        let is_sampled_out = !sampling.permits(&mut self.weirds, now, name);
        if !is_sampled_out && sinks.events.wants::<FileWeird<'_>>() {
            let f = sinks.events.file(self.state());
            let source = source.unwrap_or_default();
            sinks.events.raise(&FileWeird { name, f, addl: &addl, source });
        }
        self.with_fault(FaultKind::Weird { name, addl, source, is_sampled_out })
    }

    pub(crate) fn finish(
        &mut self,
        logs: &mut Sinks,
        now: Time,
        faults: &mut Vec<ContentFault>,
        options: &mut FileOptions,
    ) {
        self.logged_at = now;
        self.detect_type_at_end(logs, options.extract.as_ref());
        if self.analyzers.has_headers() {
            self.raise_headers(logs);
        }
        if !self.gaps.is_empty() {
            self.raise_gaps(logs);
        }
        self.raise_listened(logs);
        if self.has_fault() {
            self.raise_violation(logs);
        }
        faults.extend(self.fault());
        if self.watched && self.timed_out {
            faults.push(self.with_fault(FaultKind::GivenUp { uid: self.uid }));
        }
        files_log::write(logs, now, self, faults, &mut options.sampling);
        self.analyzers = Analyzers::default();
    }
}

/// The analyzer of archives.
const ZIP: &str = "Files::ANALYZER_ZIP";

/// Whether the analyzer with this name reports the contents of the file to a listener, which implements it.
pub fn reads_contents(analyzer: &str) -> bool {
    matches!(
        analyzer,
        "Files::ANALYZER_DATA_EVENT"
            | "Files::ANALYZER_ENTROPY"
            | "Files::ANALYZER_SHA224"
            | "Files::ANALYZER_SHA384"
            | "Files::ANALYZER_SHA512"
    )
}

/// The hash that an analyzer computes, if the name is that of a hash analyzer.
fn hash_of(analyzer: &str) -> Option<HashSelection> {
    let none = HashSelection::default();
    match analyzer {
        "Files::ANALYZER_MD5" => Some(HashSelection { md5: true, ..none }),
        "Files::ANALYZER_SHA1" => Some(HashSelection { sha1: true, ..none }),
        "Files::ANALYZER_SHA256" => Some(HashSelection { sha256: true, ..none }),
        _ => None,
    }
}

fn extractable(
    fuid: Uid,
    start: &FileStart,
    mime_type: Option<&'static str>,
) -> impl Fn() -> Extractable {
    let source = start.source;
    move || Extractable { fuid, source, mime_type }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(listened: &ListenedBytes) -> Vec<(u64, usize, bool)> {
        listened.parts.iter().map(|part| (part.offset, part.begin, part.is_replayed)).collect()
    }

    #[test]
    fn received_bytes_have_file_offsets() {
        let mut listened = ListenedBytes { is_reported: true, ..ListenedBytes::default() };
        listened.receive_before_type(0, b"ab", b"", &[]);
        listened.receive_before_type(2, b"c", b"ab", &[2]);
        // The beginning is delivered again when the type is known.
        listened.receive(0, b"abc", &[2, 1]);
        listened.receive(3, b"d", &[]);
        listened.receive(1_000_000_000_000, b"e", &[]);
        listened.receive(1_000_000_000_001, b"fg", &[]);
        listened.receive(1_000_000_000_003, b"", &[]);
        assert_eq!(listened.bytes, b"abcdefg");
        assert_eq!(parts(&listened), [(0, 0, false), (1_000_000_000_000, 4, false)]);
        // A listener that was added after the first bytes.
        let mut late = ListenedBytes { is_reported: true, ahead: 1, ..ListenedBytes::default() };
        late.receive(0, b"xyz", &[]);
        assert_eq!((&late.bytes[..], &parts(&late)[..]), (&b"yz"[..], &[(1, 0, false)][..]));
    }

    #[test]
    fn late_listeners_receive_the_beginning_in_its_pieces() {
        // When the type is known, the last piece is the current one. An earlier listener has
        // received all pieces.
        let mut late = ListenedBytes {
            is_reported: true,
            ahead: 6,
            is_late: true,
            ..ListenedBytes::default()
        };
        late.receive(0, b"aabbbcmore", &[2, 3, 1]);
        late.receive(10, b"d", &[]);
        assert_eq!(late.bytes, b"aabbbcmored");
        assert_eq!(parts(&late), [(0, 0, true), (2, 2, true), (5, 5, false)]);
        // Pieces that the earlier listener has not received begin with the current one.
        let mut late = ListenedBytes { is_reported: true, ..ListenedBytes::default() };
        late.receive_before_type(5, b"c", b"aabbb", &[2, 3]);
        late.is_late = true;
        late.receive(0, b"aabbbcmore", &[2, 3, 1]);
        assert_eq!(late.bytes, b"aabbbcmore");
        assert_eq!(parts(&late), [(0, 0, true), (2, 2, true), (5, 5, false)]);
        // Before the type is known.
        let mut late =
            ListenedBytes { is_reported: true, is_late: true, ..ListenedBytes::default() };
        late.receive_before_type(5, b"c", b"aabbb", &[2, 3]);
        late.receive_before_type(6, b"d", b"aabbbc", &[2, 3, 1]);
        late.receive(0, b"aabbbcd", &[2, 3, 1, 1]);
        assert_eq!(late.bytes, b"aabbbcd");
        assert_eq!(parts(&late), [(0, 0, true), (2, 2, true), (5, 5, false)]);
    }
}
