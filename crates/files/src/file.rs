//! One file: its bytes in order, missing bytes, and its analyzers.

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

/// The type of a file is detected from this many bytes.
pub(crate) const BEGINNING: usize = 4096;

/// Bytes of one file that wait above a hole; beyond them the hole is given up when more comes.
pub(crate) const MAX_BUFFERED: usize = 512 << 10;

/// Archives within each other whose entries are files.
pub(crate) const MAX_NESTED_ARCHIVES: u32 = 8;

/// Bytes of the entries of an archive, those of archives within it included.
pub(crate) const MAX_UNPACKED: u64 = 1 << 30;

/// The same as a script says it, where 0 is no limit.
pub(crate) fn most_held(most: u64) -> usize {
    match most {
        0 => usize::MAX,
        most => usize::try_from(most).unwrap_or(usize::MAX),
    }
}

/// What is reported before a file goes on.
#[derive(Debug)]
pub(crate) enum Matched {
    /// Its first bytes. The event shows these counts.
    Type {
        /// Bytes that arrived.
        seen: u64,
        /// Bytes that are missing.
        missing: u64,
    },
    /// The next bytes exceed the limit of its extraction.
    Limit {
        /// The limit.
        limit: u64,
        /// The number of bytes.
        len: u64,
    },
}

/// Bytes for listeners: those of events, and those of an archive.
#[derive(Debug, Default)]
pub(crate) struct ListenedBytes {
    /// Whether events have the bytes.
    is_reported: bool,
    /// The file as an archive.
    pub(crate) archive: Option<Box<Archive>>,
    bytes: Vec<u8>,
    /// Parts of these.
    parts: Vec<Part>,
    /// Bytes that it receives before the type of the file is known: they come again.
    ahead: usize,
    /// A listener came after the first bytes, before the type of the file was known: it gets these, too.
    is_behind: bool,
}

/// Bytes that belong together: between two parts, bytes are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    /// Where it begins in the file.
    offset: u64,
    /// Where it begins in the bytes that wait.
    begin: usize,
    /// For listeners that were behind.
    is_replayed: bool,
}

impl ListenedBytes {
    /// Bytes that begin at `offset` of the file. If they are the first ones again, they came in `pieces` of these lengths.
    fn receive(&mut self, offset: u64, data: &[u8], pieces: &[usize]) {
        if let Some(archive) = &mut self.archive {
            archive.parser.push(data);
        }
        let again = self.ahead.min(data.len());
        self.ahead -= again;
        if self.is_behind
            && let [before @ .., _] = pieces
        {
            // The last of them is the current one, which those that were not behind have not been given yet.
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

    /// The same before the type of the file is known; `before` came earlier, in `pieces` of these lengths.
    fn receive_ahead(&mut self, offset: u64, data: &[u8], before: &[u8], pieces: &[usize]) {
        if self.is_behind {
            self.replay(offset.saturating_sub(before.len() as u64), before, pieces);
        }
        self.append(offset, data, false);
        self.ahead = before.len() + data.len();
    }

    /// Bytes for those that were behind; returns how many there are.
    fn replay(&mut self, offset: u64, data: &[u8], pieces: &[usize]) -> usize {
        self.is_behind = false;
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

/// A file as an archive, whose entries are files.
#[derive(Debug)]
pub(crate) struct Archive {
    pub(crate) parser: zip::Parser,
    /// The current entry.
    pub(crate) entry: Option<FileId>,
    /// Entries so far that are files.
    pub(crate) entries: u64,
}

/// What archives within each other have in common.
#[derive(Clone, Debug)]
pub(crate) struct Nesting {
    /// How many archives the file is in.
    pub(crate) depth: u32,
    /// Bytes that entries of the outermost archive and of those within it may have yet.
    pub(crate) left: Arc<AtomicU64>,
}

impl Default for Nesting {
    fn default() -> Self {
        Self { depth: 0, left: Arc::new(AtomicU64::new(MAX_UNPACKED)) }
    }
}

/// One file, as far as it came.
#[derive(Debug)]
pub(crate) struct File {
    /// The archives that it is in.
    pub(crate) nesting: Option<Box<Nesting>>,
    pub(crate) fuid: Uid,
    pub(crate) uid: Uid,
    pub(crate) id: ConnId,
    pub(crate) proto: Proto,
    /// The matches of its first bytes, until reported.
    pub(crate) matched: Option<Matched>,
    /// Whether the matches of its first bytes are to be reported.
    pub(crate) reports_matches: bool,
    /// Whether the DOS program of an executable is kept for its event.
    pub(crate) keeps_programs: bool,
    /// Gaps that wait for their events: position and length, and the bytes missed before.
    pub(crate) gaps: Vec<(u64, u64, u64)>,
    /// Further connections that carry it.
    pub(crate) others: Vec<(Uid, ConnId)>,
    pub(crate) local_orig: bool,
    /// Whether its connection is the global shard's.
    pub(crate) is_hub: bool,
    /// Its name, where scripts read it and no connection carries it.
    pub(crate) input: Option<Box<str>>,
    pub(crate) start: FileStart,
    pub(crate) started: Time,
    pub(crate) last: Time,
    pub(crate) seen: u64,
    /// The bytes that the last event of its state showed as seen.
    pub(crate) shown: u64,
    pub(crate) missing: u64,
    pub(crate) overflow: u64,
    pub(crate) timed_out: bool,
    /// How often it had each weird.
    pub(crate) weirds: WeirdSamples,
    /// Whether its timeout is to be reported.
    pub(crate) watched: bool,
    pub(crate) mime_type: Option<&'static str>,
    pub(crate) analyzers: Analyzers,
    pub(crate) extraction: Extraction,
    /// Its first bytes, where they are reported.
    pub(crate) bof: Option<Vec<u8>>,
    /// Bytes that came before the handlers of its type ran, or of a limit of its extraction.
    pub(crate) unseen: Vec<u8>,
    /// Where these begin in the file.
    pub(crate) unseen_at: u64,
    /// Gaps among these: how many of them come before, and the length.
    pub(crate) unseen_gaps: Vec<(usize, u64)>,
    /// Whether handlers know that the next bytes exceed the limit of its extraction.
    pub(crate) is_limit_known: bool,
    /// Bytes that a listener asked for and did not receive yet.
    pub(crate) listened: Option<Box<ListenedBytes>>,
    /// A script ended its analysis: what arrives is ignored.
    pub(crate) stopped: bool,
    /// The same after the next bytes.
    pub(crate) stops: bool,
    /// Silence after which it is given up.
    pub(crate) timeout: Interval,
    /// Bytes that the type is detected from, if there are as many.
    pub(crate) first: usize,
    /// The first bytes, until the type is detected.
    pub(crate) beginning: Vec<u8>,
    /// Where it begins in the file.
    pub(crate) beginning_at: u64,
    /// The lengths of the pieces that it came in, where handlers may add analyzers of contents meanwhile.
    pub(crate) pieces: Vec<usize>,
    pub(crate) sniffed: bool,
    /// Bytes seen or known to be missing: where the next ones belong.
    pub(crate) offset: u64,
    /// What came too early, by offset; no two overlap.
    pub(crate) early: BTreeMap<u64, Box<[u8]>>,
    /// Bytes of it.
    pub(crate) held: usize,
    /// How many wait at the most: beyond them the hole is given up when more comes.
    pub(crate) most_held: usize,
    /// Whether parts wait: without that, what comes too early counts as overflow.
    pub(crate) reassembles: bool,
    /// Holes that were given up because too much waited above: where they began, and their lengths.
    pub(crate) overflows: Vec<(u64, u64)>,
    /// Whether parts arrived out of order: from then on gaps are reported with their offset.
    pub(crate) reorders: bool,
    /// Position of the next byte in order: `offset`, unless a gap ended below data that had
    /// arrived.
    pub(crate) next: u64,
    /// All bytes below this arrived, even if the order continues below it.
    pub(crate) taken: u64,
    pub(crate) number: u64,
    /// When it began first.
    pub(crate) born: Time,
    /// Distinguishes it from others with the same time.
    pub(crate) tie: u64,
    pub(crate) due: Time,
    /// When its row was written, if it is.
    pub(crate) over: Time,
    /// It timed out and its row is written: it begins again if more comes.
    pub(crate) dormant: bool,
}

impl File {
    /// The hosts that it goes between.
    pub(crate) fn pair(&self) -> Pair {
        let (a, b) = (self.id.orig_h, self.id.resp_h);
        (a.min(b), a.max(b), self.is_hub)
    }

    pub(crate) fn begin(&mut self, options: &FileOptions) {
        self.extraction = Extraction::of(options.extract.as_ref());
        self.analyzers.disabled = options.disabled;
        if options.hash {
            self.analyzers.add_hashes();
        }
        if let Some(mime) = self.mime_type {
            self.analyzers.add_for(mime);
        }
    }

    /// Whether it was given up for silence: what arrives begins it [again](Self::begin_again).
    #[inline]
    pub(crate) fn is_given_up(&self) -> bool {
        self.dormant && self.due != Time::MAX
    }

    /// As if nothing had come so far.
    #[cold]
    pub(crate) fn begin_again(&mut self, now: Time, options: &FileOptions) {
        self.dormant = false;
        self.timed_out = false;
        (self.stopped, self.stops) = (false, false);
        self.started = now;
        (self.seen, self.missing, self.overflow, self.offset) = (0, 0, 0, 0);
        self.shown = 0;
        (self.reorders, self.next, self.taken) = (false, 0, 0);
        self.mime_type = self.start.mime_type;
        self.sniffed = self.mime_type.is_some();
        self.analyzers = Analyzers::default();
        self.begin(options);
    }

    /// The next bytes.
    #[inline]
    pub(crate) fn deliver_next(&mut self, data: &[u8]) {
        if self.early.is_empty() && self.next == self.offset {
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
            // Data that fills the beginning at once is looked at where it lies.
            if let Some(first) = data.get(..self.first).filter(|_| self.beginning.is_empty()) {
                self.note_matches(data, self.seen);
                self.set_type(sniff::mime_type(first));
            } else {
                // Analyzers that the type calls for get the bytes from the start.
                if self.beginning.is_empty() {
                    self.beginning_at = self.next;
                } else {
                    // A file that comes in pieces has more of them: no growing step by step.
                    let room = self.first.saturating_sub(self.beginning.len());
                    self.beginning.reserve_exact(room.max(data.len()));
                }
                if let Some(listened) = &mut self.listened {
                    listened.receive_ahead(self.next, data, &self.beginning, &self.pieces);
                }
                self.beginning.extend_from_slice(data);
                if self.reports_matches {
                    self.pieces.push(data.len());
                }
                let before = self.seen;
                self.count(data.len());
                if self.beginning.len() >= self.first {
                    self.sniff_after(before);
                }
                return;
            }
        }
        self.look_into(self.next, data);
        self.count(data.len());
    }

    /// Bytes in order, the type being known.
    #[inline]
    fn look_into(&mut self, offset: u64, data: &[u8]) {
        if self.matched.is_some() {
            // What handlers of the type add gets the bytes from the start.
            return self.look_later(offset, data);
        }
        if !matches!(self.extraction, Extraction::No) && self.exceeds(data.len() as u64, false) {
            return self.look_later(offset, data);
        }
        if let Some(listened) = &mut self.listened {
            listened.receive(offset, data, &std::mem::take(&mut self.pieces));
        }
        self.analyzers.data(data);
        let file = extractable(self.fuid, &self.start, self.mime_type);
        self.extraction.data(file, data);
    }

    /// Bytes that wait until handlers ran, which get what they add from the start.
    #[cold]
    fn look_later(&mut self, offset: u64, data: &[u8]) {
        if self.unseen.is_empty() && self.unseen_gaps.is_empty() {
            self.unseen_at = offset;
        }
        self.unseen.extend_from_slice(data);
    }

    /// Whether the next bytes exceed the limit of its extraction, and handlers do not know that yet.
    #[cold]
    fn exceeds(&mut self, len: u64, is_gap: bool) -> bool {
        let limit = self.extraction.exceeded(len, is_gap);
        let is_known = std::mem::take(&mut self.is_limit_known);
        let Some(limit) = limit.filter(|_| !is_known) else { return false };
        self.matched = Some(Matched::Limit { limit, len });
        true
    }

    /// What a listener asks for.
    #[cold]
    pub(crate) fn steer(&mut self, what: FileCommand, extract: Option<&Arc<dyn Extract>>) {
        match what {
            FileCommand::Add { analyzer, path, limit, counts_gaps } => {
                match (hash_of(&analyzer), path) {
                    (Some(hash), _) => self.analyzers.set_hashes(hash, true),
                    (None, _) if self.analyzers.add_by_name(&analyzer) => {}
                    (None, _) if reads_contents(&analyzer) => {
                        let listened = self.listened.get_or_insert_default();
                        listened.is_reported = true;
                        listened.is_behind = !self.pieces.is_empty();
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
                        self.extraction = contents.map_or(Extraction::No, Extraction::Open);
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
                // What came so far counts at its end.
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
                    // What waited is lost, as in Zeek.
                    (self.early, self.held) = (BTreeMap::new(), 0);
                }
            }
            FileCommand::Buffer(most) => self.most_held = most_held(most),
        }
    }

    fn count(&mut self, n: usize) {
        self.seen += n as u64;
        self.go_on(n as u64);
    }

    /// Detects the type from the available beginning.
    pub(crate) fn sniff(&mut self) {
        self.sniff_after(self.seen);
    }

    /// The same, where the event of it is to show a file of `seen` bytes.
    fn sniff_after(&mut self, seen: u64) {
        if self.sniffed {
            return;
        }
        let beginning = std::mem::take(&mut self.beginning);
        let known = !beginning.is_empty() && self.missing == 0;
        let first = &beginning[..beginning.len().min(self.first)];
        self.note_matches(if known { &beginning } else { &[] }, seen);
        self.set_type(if known { sniff::mime_type(first) } else { None });
        self.look_into(self.beginning_at, &beginning);
        if self.matched.is_none() {
            self.pieces = Vec::new();
        }
    }

    /// Keeps what is to be reported of its first bytes: the pieces that fill the beginning, the last of them whole.
    fn note_matches(&mut self, beginning: &[u8], seen: u64) {
        if !self.reports_matches || beginning.is_empty() {
            return;
        }
        self.bof = Some(beginning.to_vec());
        self.matched = Some(Matched::Type { seen, missing: self.missing });
    }

    /// What its first bytes match.
    fn matches(&self) -> Metadata {
        let bof = self.bof.as_deref().unwrap_or_default();
        let all = sniff::matches(&bof[..bof.len().min(self.first)]);
        let all =
            all.into_iter().map(|(strength, mime)| MimeMatch { strength: strength.into(), mime });
        let all: Vec<_> = all.collect();
        Metadata {
            mime_type: all.first().map(|m| m.mime),
            mime_types: (!all.is_empty()).then_some(all),
            inferred: Some(true),
        }
    }

    /// Whether matches of its first bytes, or a limit of its extraction, are to be reported.
    #[inline]
    pub(crate) fn has_matched(&self) -> bool {
        self.matched.is_some()
    }

    /// The file as an archive.
    pub(crate) fn archive(&mut self) -> Option<&mut Archive> {
        self.listened.as_mut()?.archive.as_deref_mut()
    }

    /// Reports the bytes that a listener asked for. Returns whether the file is an archive.
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

    /// Reports the matches of its first bytes, and limits of its extraction. Handlers run at once, as in Zeek.
    #[cold]
    pub(crate) fn raise_sniff(&mut self, sinks: &mut Sinks, extract: Option<&Arc<dyn Extract>>) {
        while let Some(matched) = self.matched.take() {
            self.raise_matched(sinks, &matched);
            self.obey(sinks, extract);
            self.is_limit_known = matches!(matched, Matched::Limit { .. });
            let unseen = std::mem::take(&mut self.unseen);
            let gaps = std::mem::take(&mut self.unseen_gaps);
            let (mut offset, mut begin) = (self.unseen_at, 0);
            for (end, len) in gaps {
                let part = unseen.get(begin..end).unwrap_or_default();
                if !part.is_empty() {
                    self.look_into(offset, part);
                    offset += part.len() as u64;
                }
                self.look_over(offset, len);
                offset = offset.saturating_add(len);
                begin = end;
            }
            let rest = unseen.get(begin..).unwrap_or_default();
            if !rest.is_empty() {
                self.look_into(offset, rest);
            }
        }
        self.pieces = Vec::new();
    }

    fn raise_matched(&mut self, sinks: &mut Sinks, matched: &Matched) {
        match *matched {
            Matched::Type { seen: seen_bytes, missing: missing_bytes } => {
                if !sinks.events.wants::<FileSniff>() {
                    return;
                }
                self.shown = seen_bytes;
                let f = sinks.events.file(FileState { seen_bytes, missing_bytes, ..self.state() });
                sinks.events.raise(&FileSniff { f, meta: self.matches() });
            }
            Matched::Limit { limit, len } => {
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

    /// Its end comes: detects its type from what came.
    #[cold]
    pub(crate) fn know_type(&mut self, sinks: &mut Sinks, extract: Option<&Arc<dyn Extract>>) {
        self.flush_early();
        self.sniff();
        if self.has_matched() {
            self.raise_sniff(sinks, extract);
        }
    }

    /// Does what the listener asks for of this file.
    #[cold]
    pub(crate) fn obey(&mut self, sinks: &mut Sinks, extract: Option<&Arc<dyn Extract>>) {
        let mine = |c: &Command| matches!(c, Command::File { fuid, .. } if *fuid == self.fuid);
        for command in sinks.events.take_commands_if(mine) {
            if let Command::File { what, .. } = command {
                self.steer(what, extract);
            }
        }
    }

    /// Raises the events of an executable's headers. They show as many bytes as the last event about the file
    /// itself, as in Zeek.
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

    /// As events show it.
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

    /// The type of the file is known, or known to be none: starts the analyzers of that type.
    fn set_type(&mut self, mime_type: Option<&'static str>) {
        self.sniffed = true;
        self.mime_type = mime_type;
        if let Some(mime) = mime_type {
            self.analyzers.keeps_headers = self.reports_matches;
            self.analyzers.keeps_programs = self.keeps_programs;
            self.analyzers.add_for(mime);
        }
    }

    /// A part at `offset`: missing data below it may still arrive. Where parts overlap, the first
    /// counts.
    pub(crate) fn deliver_at(&mut self, offset: u64, mut data: &[u8]) {
        if self.dormant {
            return;
        }
        if self.held > self.most_held {
            self.give_up_holes();
        }
        self.reorders |= offset != self.offset;
        let taken = self.taken.max(self.next);
        let Some(end) = offset.checked_add(data.len() as u64).filter(|end| *end > taken) else {
            return; // seen before
        };
        let mut at = offset.max(taken);
        data = &data[(at - offset) as usize..];
        while !data.is_empty() {
            if at > self.next {
                return self.hold(at, data);
            }
            let until = self.first_held().map_or(end, |held| held.min(end));
            self.deliver(&data[..(until - at) as usize]);
            self.deliver_held();
            let done = (self.next - at).min(data.len() as u64);
            at += done;
            data = &data[done as usize..];
        }
    }

    fn first_held(&self) -> Option<u64> {
        self.early.keys().next().copied()
    }

    /// Keeps data above a hole, around what is kept already.
    fn hold(&mut self, mut at: u64, mut data: &[u8]) {
        if !self.reassembles {
            self.overflow = self.overflow.saturating_add(data.len() as u64);
            return;
        }
        while !data.is_empty() {
            if let Some((start, held)) = self.early.range(..=at).next_back() {
                let end = start + held.len() as u64;
                if end > at {
                    let skip = (end - at).min(data.len() as u64);
                    at += skip;
                    data = &data[skip as usize..];
                    continue;
                }
            }
            let until = self.early.range(at..).next().map_or(u64::MAX, |(start, _)| *start);
            let n = (until - at).min(data.len() as u64) as usize;
            self.early.insert(at, data[..n].into());
            self.held += n;
            at += n as u64;
            data = &data[n..];
        }
    }

    /// Delivers stored parts that are now in order.
    fn deliver_held(&mut self) {
        while self.first_held() == Some(self.next)
            && let Some(entry) = self.early.first_entry()
        {
            let held = entry.remove();
            self.held -= held.len();
            self.deliver(&held);
        }
    }

    /// Too much waits: what is missing below it is given up, and its first hole counts as overflow
    /// besides.
    #[cold]
    fn give_up_holes(&mut self) {
        if let Some(first) = self.first_held() {
            let skipped = first - self.next;
            self.overflow = self.overflow.saturating_add(skipped);
            if self.reports_matches {
                self.overflows.push((self.next, skipped));
            }
        }
        self.flush_early();
    }

    /// Gives up the holes below what came too early.
    fn flush_early(&mut self) {
        if let Some((start, held)) = self.early.last_key_value() {
            let end = start + held.len() as u64;
            self.skip_to(end);
        }
    }

    /// Bytes below `end` that did not come will not.
    fn skip_to(&mut self, end: u64) {
        while let Some(next) = self.first_held().filter(|next| *next < end) {
            self.miss(next - self.next);
            self.deliver_held();
        }
        if end > self.next {
            self.miss(end - self.next);
            self.deliver_held();
        }
    }

    /// `len` bytes are missing: the next ones, or those behind the first `at` of the current part.
    /// Once parts arrived out of order, Zeek takes `at` as an offset in the file and continues
    /// behind it, whatever has arrived already: data above it then counts as missing again.
    pub(crate) fn gap(&mut self, at: Option<u64>, len: u64) {
        if self.dormant {
            return;
        }
        let Some(at) = at.filter(|_| self.reorders) else {
            return self.skip_to(self.next.saturating_add(len));
        };
        let end = at.saturating_add(len);
        self.skip_to(end);
        self.taken = self.taken.max(self.next);
        self.next = end;
    }

    fn miss(&mut self, len: u64) {
        self.sniff();
        self.look_over(self.next, len);
        if self.reports_matches {
            self.gaps.push((self.next, len, self.missing));
        }
        self.missing = self.missing.saturating_add(len);
        self.go_on(len);
    }

    /// Missing bytes, the type being known.
    fn look_over(&mut self, offset: u64, len: u64) {
        if self.matched.is_some() || self.exceeds(len, true) {
            self.look_later(offset, &[]);
            self.unseen_gaps.push((self.unseen.len(), len));
            return;
        }
        self.analyzers.gap();
        if let Some(archive) = self.archive() {
            archive.parser.stop();
        }
        let file = extractable(self.fuid, &self.start, self.mime_type);
        self.extraction.gap(file, len);
    }

    fn go_on(&mut self, len: u64) {
        self.offset = self.offset.saturating_add(len);
        self.next = self.next.saturating_add(len);
    }

    /// Whether an analyzer found a fault that is not reported yet.
    #[inline]
    pub(crate) fn has_fault(&self) -> bool {
        self.analyzers.failure.is_some()
    }

    /// A fault that an analyzer found and that is not reported yet.
    pub(crate) fn fault(&mut self) -> Option<ContentFault> {
        let (analyzer, reason) = self.analyzers.failure.take()?;
        Some(self.has(FaultKind::Violation { analyzer, reason }))
    }

    /// Raises the event of a fault that an analyzer found and that is not reported yet.
    #[cold]
    pub(crate) fn raise_violation(&self, sinks: &mut Sinks) {
        if let Some((analyzer, reason)) = &self.analyzers.failure
            && sinks.events.wants::<FileViolation<'_>>()
        {
            let f = sinks.events.file(self.state());
            sinks.events.raise(&FileViolation { f, analyzer, reason });
        }
    }

    /// A fault of this file.
    pub(crate) fn has(&self, kind: FaultKind) -> ContentFault {
        let conn = self.others.is_empty().then_some((self.uid, self.id));
        ContentFault { fuid: self.fuid, conn, kind }
    }

    /// A weird of this file. Its event is raised, unless sampling leaves it out.
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
        self.has(FaultKind::Weird { name, addl, source, is_sampled_out })
    }

    pub(crate) fn finish(
        &mut self,
        logs: &mut Sinks,
        now: Time,
        faults: &mut Vec<ContentFault>,
        options: &mut FileOptions,
    ) {
        self.over = now;
        self.know_type(logs, options.extract.as_ref());
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
            faults.push(self.has(FaultKind::GivenUp { uid: self.uid }));
        }
        files_log::write(logs, now, self, faults, &mut options.sampling);
        self.analyzers = Analyzers::default();
    }
}

/// The analyzer of archives.
const ZIP: &str = "Files::ANALYZER_ZIP";

/// Whether a listener is an analyzer of this name, and reads the contents of the file.
fn reads_contents(analyzer: &str) -> bool {
    matches!(
        analyzer,
        "Files::ANALYZER_DATA_EVENT"
            | "Files::ANALYZER_ENTROPY"
            | "Files::ANALYZER_SHA224"
            | "Files::ANALYZER_SHA384"
            | "Files::ANALYZER_SHA512"
    )
}

/// The hash of an analyzer that is one.
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
    fn parts_for_listeners_have_offsets_in_the_file() {
        let mut listened = ListenedBytes { is_reported: true, ..ListenedBytes::default() };
        listened.receive_ahead(0, b"ab", b"", &[]);
        listened.receive_ahead(2, b"c", b"ab", &[2]);
        // The beginning comes again when the type is known.
        listened.receive(0, b"abc", &[2, 1]);
        listened.receive(3, b"d", &[]);
        listened.receive(1_000_000_000_000, b"e", &[]);
        listened.receive(1_000_000_000_001, b"fg", &[]);
        listened.receive(1_000_000_000_003, b"", &[]);
        assert_eq!(listened.bytes, b"abcdefg");
        assert_eq!(parts(&listened), [(0, 0, false), (1_000_000_000_000, 4, false)]);
        // A listener that came after the first bytes.
        let mut late = ListenedBytes { is_reported: true, ahead: 1, ..ListenedBytes::default() };
        late.receive(0, b"xyz", &[]);
        assert_eq!((&late.bytes[..], &parts(&late)[..]), (&b"yz"[..], &[(1, 0, false)][..]));
    }

    #[test]
    fn late_listeners_receive_the_beginning_in_its_pieces() {
        // When the type is known: the last piece is the current one. Another listener has all of them.
        let mut late = ListenedBytes {
            is_reported: true,
            ahead: 6,
            is_behind: true,
            ..ListenedBytes::default()
        };
        late.receive(0, b"aabbbcmore", &[2, 3, 1]);
        late.receive(10, b"d", &[]);
        assert_eq!(late.bytes, b"aabbbcmored");
        assert_eq!(parts(&late), [(0, 0, true), (2, 2, true), (5, 5, false)]);
        // What another listener was not given yet is the current piece.
        let mut late = ListenedBytes { is_reported: true, ..ListenedBytes::default() };
        late.receive_ahead(5, b"c", b"aabbb", &[2, 3]);
        late.is_behind = true;
        late.receive(0, b"aabbbcmore", &[2, 3, 1]);
        assert_eq!(late.bytes, b"aabbbcmore");
        assert_eq!(parts(&late), [(0, 0, true), (2, 2, true), (5, 5, false)]);
        // Before it is known.
        let mut late =
            ListenedBytes { is_reported: true, is_behind: true, ..ListenedBytes::default() };
        late.receive_ahead(5, b"c", b"aabbb", &[2, 3]);
        late.receive_ahead(6, b"d", b"aabbbc", &[2, 3, 1]);
        late.receive(0, b"aabbbcd", &[2, 3, 1, 1]);
        assert_eq!(late.bytes, b"aabbbcd");
        assert_eq!(parts(&late), [(0, 0, true), (2, 2, true), (5, 5, false)]);
    }
}
