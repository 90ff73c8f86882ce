//! The lifetime of files: from a connection's bytes to the rows in the logs.

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod unpack;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::collections::BinaryHeap;
use std::collections::VecDeque;
use std::sync::Arc;

use gannet_base::Addr;
use gannet_base::ConnId;
use gannet_base::Dir;
use gannet_base::Interval;
use gannet_base::Proto;
use gannet_base::Time;
use gannet_base::Uid;
use gannet_base::UidSource;
use gannet_event::Connection;
use gannet_event::FileCommand;
use gannet_event::FilePart;
use gannet_event::FileRef;
use gannet_event::FileState;
use gannet_event::Sinks;
use gannet_event::WeirdSamples;
use gannet_event::WeirdSampling;
use gannet_log::Key;

use crate::analyzers::Analyzers;
use crate::events::FileNew;
use crate::events::FileOverNewConnection;
use crate::events::FileSniff;
use crate::events::FileTimeout;
use crate::events::Metadata;
use crate::extract::Extract;
use crate::extract::Extraction;
use crate::file::BEGINNING;
use crate::file::File;
use crate::file::MAX_BUFFERED;
use crate::file::max_buffered;
use crate::x509::Certificate;

/// Default idle time after which a file times out.
pub(crate) const TIMEOUT: Interval = Interval::from_secs(120);

/// Files that have ended are forgotten at whole multiples of this interval.
pub const FORGET_EVERY: Interval = Interval::from_secs(10);

/// The number of whole [`FORGET_EVERY`] intervals before a time.
pub fn era(t: Time) -> i64 {
    t.as_nanos().div_euclid(FORGET_EVERY.as_nanos())
}

/// Identifies a file in [`Files`]; valid until the file ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileId {
    index: u32,
    number: u64,
}

impl FileId {
    /// A number that is unique among all files.
    pub fn number(self) -> u64 {
        self.number
    }
}

/// Facts about a file when it begins.
#[derive(Clone, Debug)]
pub struct FileStart {
    /// The protocol that carries it: `HTTP`, `SMTP`, `FTP_DATA`, `SSL`, …
    pub source: &'static str,
    /// The side that sends it.
    pub from: Dir,
    /// Nesting depth within its source (files.log's `depth`).
    pub depth: u64,
    /// Its name, if stated by the protocol.
    pub filename: Option<Vec<u8>>,
    /// Its size in bytes, if stated by the protocol.
    pub total_bytes: Option<u64>,
    /// The file that contains it.
    pub parent: Option<Uid>,
    /// The type stated by the protocol, which replaces detection (certificates).
    pub mime_type: Option<&'static str>,
    /// The role of the file in its source. A [certificate](FilePart::Certificate) has no row in
    /// files.log.
    pub part: FilePart,
    /// The parsed certificate, if the file is one that was parsed before.
    pub certificate: Option<Arc<Certificate>>,
}

impl Default for FileStart {
    /// A file without any known facts.
    fn default() -> Self {
        Self {
            source: "",
            from: Dir::Orig,
            depth: 0,
            filename: None,
            total_bytes: None,
            parent: None,
            mime_type: None,
            part: FilePart::Unnamed,
            certificate: None,
        }
    }
}

/// A fault of a file's contents, or of its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContentFault {
    /// The file.
    pub fuid: Uid,
    /// The connection that carries it, if there is only one.
    pub conn: Option<(Uid, ConnId)>,
    /// The kind of fault.
    pub kind: FaultKind,
}

/// Kinds of [`ContentFault`], by the log that reports them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// A weird, for weird.log.
    Weird {
        /// Its name in weird.log.
        name: &'static str,
        /// Details; may be empty.
        addl: String,
        /// The analyzer that reported the weird, if Zeek logs it.
        source: Option<&'static str>,
        /// Whether the weird is sampled out.
        is_sampled_out: bool,
    },
    /// The file violates the format of an analyzer, for analyzer.log.
    Violation {
        /// The analyzer.
        analyzer: &'static str,
        /// The reason.
        reason: String,
    },
    /// A file that is [watched](Files::watch) timed out.
    GivenUp {
        /// The connection on which it began.
        uid: Uid,
    },
}

/// The facts of a file weird.
pub(crate) struct FileWeirdFacts {
    pub(crate) name: &'static str,
    /// Details; may be empty.
    pub(crate) addl: String,
    /// The analyzer that reports the weird, if Zeek logs it.
    pub(crate) source: Option<&'static str>,
}

/// Maximum number of connections that are recorded for one file.
const MAX_CONNECTIONS: usize = 1000;

/// Options of file analysis.
#[derive(Clone, Debug)]
pub struct FileOptions {
    /// Whether to hash all files with MD5, SHA-1 and SHA-256.
    pub hash: bool,
    /// Maximum number of files in transit between two hosts; beyond it, the oldest one is treated
    /// as timed out.
    pub max_per_pair: usize,
    /// The receiver of file contents.
    pub extract: Option<Arc<dyn Extract>>,
    /// Type-specific analyzers that are disabled.
    pub disabled: Disabled,
    /// Number of bytes from which the type of a file is detected, unless the file is shorter.
    pub sniff_bytes: usize,
    /// The sampling of file weirds.
    pub sampling: WeirdSampling,
    /// Idle time after which a file times out.
    pub timeout: Interval,
}

/// Type-specific analyzers that are disabled.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disabled {
    /// The analyzer of Windows executables.
    pub pe: bool,
    /// The analyzer of OCSP responses.
    pub ocsp: bool,
}

impl Default for FileOptions {
    fn default() -> Self {
        Self {
            hash: false,
            max_per_pair: 1_000_000,
            extract: None,
            disabled: Disabled::default(),
            sniff_bytes: BEGINNING,
            sampling: WeirdSampling::default(),
            timeout: TIMEOUT,
        }
    }
}

/// The ordered host pair of a file, and whether the global shard owns its connection: all files of
/// such a pair are in one shard.
pub(crate) type Pair = (Addr, Addr, bool);

/// Files in transit between one pair of hosts.
#[derive(Debug, Default)]
struct InTransit {
    count: usize,
    /// Files in the order of their start, including those that have ended.
    oldest: VecDeque<(u64, u32)>,
}

/// Whether a file is in transit.
fn is_in_transit(files: &[Option<File>], (number, index): &(u64, u32)) -> bool {
    files.get(*index as usize).and_then(Option::as_ref).is_some_and(|f| f.number == *number)
}

/// The file with this id.
fn numbered(files: &mut [Option<File>], id: FileId) -> Option<&mut File> {
    files.get_mut(id.index as usize)?.as_mut().filter(|f| f.number == id.number)
}

/// All files in transit.
#[derive(Debug)]
pub struct Files {
    options: FileOptions,
    uids: UidSource,
    files: Vec<Option<File>>,
    free: Vec<u32>,
    /// Due time, tie-breaker, number and index of a file.
    timers: BinaryHeap<Reverse<(Time, u64, u64, u32)>>,
    /// Whether any file has timed out: few analyses have such files.
    any_timed_out: bool,
    created: u64,
    /// Numbers and indices of files in the order of their start, including those that have ended;
    /// recorded once the limit is near.
    oldest: VecDeque<(u64, u32)>,
    /// The same by host pair, from the time when the total exceeded the limit of one pair.
    pairs: Option<BTreeMap<Pair, InTransit>>,
    discarded: u64,
    /// Whether matches of the first bytes of files are reported.
    reports_matches: bool,
    /// Whether the DOS programs of executables are stored.
    keeps_programs: bool,
    /// Maximum number of bytes buffered above holes of a file.
    max_buffered: usize,
    /// Whether out-of-order parts are buffered.
    reassembles: bool,
    /// Faults of files that are not reported yet.
    faults: Vec<ContentFault>,
    /// The uid of the next file, if it is that of an earlier file.
    next_fuid: Option<Uid>,
}

impl Files {
    /// An empty set of files with default options.
    pub fn new(uids: UidSource) -> Self {
        Self::with_options(uids, FileOptions::default())
    }

    /// An empty set of files.
    pub fn with_options(uids: UidSource, options: FileOptions) -> Self {
        Self {
            options,
            uids,
            files: Vec::new(),
            free: Vec::new(),
            timers: BinaryHeap::new(),
            any_timed_out: false,
            created: 0,
            oldest: VecDeque::new(),
            pairs: None,
            next_fuid: None,
            discarded: 0,
            reports_matches: false,
            keeps_programs: false,
            max_buffered: MAX_BUFFERED,
            reassembles: true,
            faults: Vec::new(),
        }
    }

    /// Sets whether matches of the first bytes of files are reported, which is costly to compute.
    pub fn report_matches(&mut self, on: bool) {
        self.reports_matches = on;
    }

    /// Sets the number of bytes from which the types of new files are detected.
    pub fn set_sniff_bytes(&mut self, first: usize) {
        self.options.sniff_bytes = first;
    }

    /// Sets the idle time after which new files time out.
    pub fn set_timeout(&mut self, timeout: Interval) {
        self.options.timeout = timeout;
    }

    /// The idle time after which new files time out.
    pub fn timeout(&self) -> Interval {
        self.options.timeout
    }

    /// Sets whether out-of-order parts of new files are buffered.
    pub fn set_reassembly(&mut self, on: bool) {
        self.reassembles = on;
    }

    /// Sets the maximum number of bytes buffered for a new file; 0 means no limit.
    pub fn set_max_buffered(&mut self, bytes: u64) {
        self.max_buffered = max_buffered(bytes);
    }

    /// Sets whether the DOS programs of executables are stored for their event.
    pub fn keep_programs(&mut self, on: bool) {
        self.keeps_programs = on;
    }

    /// Number of files that were discarded at the limit.
    pub fn discarded(&self) -> u64 {
        self.discarded
    }

    /// Number of files in transit.
    pub fn len(&self) -> usize {
        self.files.len() - self.free.len()
    }

    /// Whether no file is in transit.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Starts a file, the `ordinal`-th of the connection `uid`; `local_orig` states whether its
    /// sender is local.
    pub fn start(
        &mut self,
        now: Time,
        uid: Uid,
        (id, proto): (ConnId, Proto),
        local_orig: bool,
        ordinal: u64,
        start: FileStart,
    ) -> FileId {
        let number = self.created;
        self.created += 1;
        let due = now + self.options.timeout;
        let mime_type = start.mime_type;
        let fuid = self.uids.file(uid, ordinal);
        let tie = fuid.bits() >> 1;
        let fuid = self.next_fuid.take().unwrap_or(fuid);
        let mut file = File {
            fuid,
            uid,
            id,
            proto,
            pending_report: None,
            nesting: None,
            reports_matches: self.reports_matches,
            keeps_programs: self.keeps_programs,
            max_buffered: self.max_buffered,
            reassembles: self.reassembles,
            overflows: Vec::new(),
            gaps: Vec::new(),
            others: Vec::new(),
            local_orig,
            is_global: false,
            started: now,
            last: now,
            seen: 0,
            shown: 0,
            missing: 0,
            overflow: 0,
            timed_out: false,
            weirds: WeirdSamples::default(),
            watched: false,
            mime_type,
            analyzers: Analyzers::default(),
            extraction: Extraction::Ignored,
            bof: None,
            deferred: Vec::new(),
            deferred_offset: 0,
            deferred_gaps: Vec::new(),
            is_limit_known: false,
            sniff_bytes: self.options.sniff_bytes,
            listened: None,
            stopped: false,
            stops: false,
            timeout: self.options.timeout,
            beginning: Vec::new(),
            beginning_at: 0,
            pieces: Vec::new(),
            sniffed: mime_type.is_some(),
            offset: 0,
            out_of_order: BTreeMap::new(),
            buffered: 0,
            reorders: false,
            next: 0,
            taken: 0,
            number,
            first_started: now,
            tie,
            due,
            logged_at: Time::MAX,
            dormant: false,
            input: None,
            start,
        };
        file.begin(&self.options);
        let index = match self.free.pop() {
            Some(index) => {
                self.files[index as usize] = Some(file);
                index
            }
            None => {
                self.files.push(Some(file));
                (self.files.len() - 1) as u32
            }
        };
        self.timers.push(Reverse((due, tie, number, index)));
        if self.pairs.is_none() {
            self.oldest.push_back((number, index));
        }
        FileId { index, number }
    }

    /// Starts a file that no connection carries: scripts read it under this name.
    #[cold]
    pub fn start_input(&mut self, now: Time, name: &str) -> FileId {
        let uid = self.uids.named_file(name.as_bytes());
        let nowhere = Addr::v4([0; 4]);
        let ends = ConnId { orig_h: nowhere, orig_p: 0, resp_h: nowhere, resp_p: 0 };
        self.set_next_fuid(uid);
        let id = self.start(now, uid, (ends, Proto::Unknown), false, 0, FileStart::default());
        if let Some(file) = self.get_mut(id) {
            file.input = Some(name.into());
        }
        id
    }

    /// Enforces the limit of files per host pair after a file was started on a connection, which
    /// the global shard owns if `is_global`; returns whether files were discarded.
    #[inline]
    pub fn discard_excess(
        &mut self,
        logs: &mut Sinks,
        now: Time,
        id: FileId,
        is_global: bool,
    ) -> bool {
        if is_global && let Some(file) = self.get_mut(id) {
            file.is_global = true;
        }
        if self.pairs.is_some() || self.len() > self.options.max_per_pair.max(1) {
            return self.discard_oldest(logs, now, id);
        }
        if self.oldest.len() > 2 * self.len() + 1_024 {
            let files = &self.files;
            self.oldest.retain(|its| is_in_transit(files, its));
        }
        false
    }

    /// Discards the oldest files between the hosts of a file while there are too many.
    #[cold]
    fn discard_oldest(&mut self, logs: &mut Sinks, now: Time, id: FileId) -> bool {
        let files = &self.files;
        let is_new = self.pairs.is_none();
        let pairs = self.pairs.get_or_insert_default();
        let entering =
            std::mem::take(&mut self.oldest).into_iter().filter(|i| is_in_transit(files, i));
        let one = (!is_new).then_some((id.number, id.index));
        for (number, index) in entering.chain(one) {
            let Some(Some(file)) = files.get(index as usize) else { continue };
            let its = pairs.entry(file.pair()).or_default();
            its.count += 1;
            its.oldest.push_back((number, index));
        }
        let Some(pair) = self.get(id).map(File::pair) else { return false };
        let max = self.options.max_per_pair.max(1);
        let mut full = false;
        while let Some(its) = self.pairs.as_mut().and_then(|pairs| pairs.get_mut(&pair)) {
            if its.oldest.len() > 2 * its.count + 1_024 {
                let files = &self.files;
                its.oldest.retain(|i| is_in_transit(files, i));
            }
            if its.count <= max {
                break;
            }
            let Some((number, index)) = its.oldest.pop_front() else { break };
            full = true;
            let id = FileId { index, number };
            if let Some(file) = self.get_mut(id) {
                file.timed_out |= !file.dormant;
                self.discarded += 1;
                self.end(logs, now, id);
            }
        }
        full
    }

    fn get(&self, id: FileId) -> Option<&File> {
        self.files.get(id.index as usize)?.as_ref().filter(|f| f.number == id.number)
    }

    fn get_mut(&mut self, id: FileId) -> Option<&mut File> {
        numbered(&mut self.files, id)
    }

    /// Raises the events of a new file, on a connection if one carries it. As in Zeek, handlers run
    /// immediately, and their commands are applied.
    #[cold]
    pub fn raise_new(&mut self, sinks: &mut Sinks, id: FileId, c: Option<Connection>) {
        let Some(file) = self.get(id) else { return };
        let is_orig = file.start.from.is_orig();
        let state = FileState { total_bytes: None, ..file.state() };
        let f = sinks.events.file(state.clone());
        if sinks.events.wants::<FileNew>() {
            sinks.events.raise(&FileNew { f });
            sinks.events.mark();
        }
        if let Some(c) = c
            && sinks.events.wants::<FileOverNewConnection>()
        {
            sinks.events.raise(&FileOverNewConnection { f, c, is_orig });
            sinks.events.mark();
        }
        sinks.events.drain();
        self.apply_commands(sinks, id);
        let Some(file) = self.get(id).filter(|file| !file.stopped) else { return };
        if let Some(mime) = file.start.mime_type
            && sinks.events.wants::<FileSniff>()
        {
            let meta = Metadata { mime_type: Some(mime), mime_types: None, inferred: Some(false) };
            let f = sinks.events.file(state);
            sinks.events.raise(&FileSniff { f, meta });
            sinks.events.mark();
            sinks.events.drain();
            self.apply_commands(sinks, id);
            if let Some(file) = self.get_mut(id) {
                // The type is detected from the first data, which is analyzed before the file
                // stops.
                file.stops = std::mem::take(&mut file.stopped);
            }
        }
    }

    /// Applies the commands of the listener for a file.
    #[cold]
    pub fn apply_commands(&mut self, sinks: &mut Sinks, id: FileId) {
        if let Some(Some(file)) = self.files.get_mut(id.index as usize)
            && file.number == id.number
        {
            file.apply_commands(sinks, self.options.extract.as_ref());
        }
    }

    /// Adds all hashes to a file.
    pub fn add_hashes(&mut self, id: FileId) {
        if let Some(file) = self.get_mut(id) {
            file.analyzers.add_hashes();
        }
    }

    /// A reference to a file for events about it.
    pub fn file_ref(&self, sinks: &mut Sinks, id: FileId) -> Option<FileRef> {
        self.get(id).map(|file| sinks.events.file(file.state()))
    }

    /// Enables or disables a type-specific analyzer such as `Files::ANALYZER_PE` for further files.
    #[cold]
    pub fn enable(&mut self, analyzer: &str, on: bool) {
        match analyzer {
            "Files::ANALYZER_PE" => self.options.disabled.pe = !on,
            "Files::ANALYZER_OCSP_REPLY" => self.options.disabled.ocsp = !on,
            _ => {}
        }
    }

    /// Applies a command for a file.
    #[cold]
    pub fn apply_command(&mut self, fuid: Uid, what: FileCommand) {
        let file = self.files.iter_mut().flatten().find(|file| file.fuid == fuid);
        if let Some(file) = file.filter(|file| !file.dormant) {
            file.apply_command(what, self.options.extract.as_ref());
        }
    }

    /// Raises the event that another connection carries the file as well.
    #[cold]
    pub fn raise_joined(&mut self, sinks: &mut Sinks, id: FileId, c: Connection) {
        let Some(file) = self.get_mut(id) else { return };
        let is_orig = file.start.from.is_orig();
        let f = sinks.events.file(file.state());
        if sinks.events.wants::<FileOverNewConnection>() {
            file.shown = file.seen;
            sinks.events.raise(&FileOverNewConnection { f, c, is_orig });
            sinks.events.mark();
        }
        sinks.events.drain();
    }

    /// The uid of the file in the logs.
    pub fn fuid(&self, id: FileId) -> Option<Uid> {
        self.get(id).map(|f| f.fuid)
    }

    /// The type of the file, once detected: after 4,096 bytes, at a gap, or at its end.
    pub fn mime_type(&self, id: FileId) -> Option<&'static str> {
        self.get(id)?.mime_type
    }

    /// Detects the type from the bytes that have arrived, as at the end of the file.
    pub fn detect_mime_type(&mut self, id: FileId) -> Option<&'static str> {
        let file = self.get_mut(id)?;
        file.sniff();
        file.mime_type
    }

    /// Gives the next new file this uid, as another part of a file that has ended.
    pub fn set_next_fuid(&mut self, fuid: Uid) {
        self.next_fuid = Some(fuid);
    }

    /// Records that another connection carries parts of the file, which then has a row for each
    /// connection. Returns whether the connection is new to the file; one between the same
    /// endpoints is not.
    pub fn join(
        &mut self,
        logs: &mut Sinks,
        now: Time,
        id: FileId,
        uid: Uid,
        conn: ConnId,
    ) -> bool {
        let Some(file) = numbered(&mut self.files, id) else { return false };
        let new = file.id != conn && file.others.iter().all(|(_, other)| *other != conn);
        if new && file.others.len() < MAX_CONNECTIONS {
            file.others.push((uid, conn));
        } else if new {
            let (name, addl) = ("file_connections_limit_reached", MAX_CONNECTIONS.to_string());
            let weird = FileWeirdFacts { name, addl, source: Some(file.start.source) };
            self.faults.push(file.weird(logs, now, &mut self.options.sampling, weird));
        }
        new
    }

    /// Restarts a file that timed out, when a connection has more of it: as another file with the
    /// same id and only the facts that its source states now.
    pub fn renew(&mut self, id: FileId, uid: Uid, conn: ConnId, filename: Option<Vec<u8>>) {
        if let Some(file) = self.get_mut(id) {
            (file.uid, file.id) = (uid, conn);
            file.others.clear();
            (file.start.filename, file.start.total_bytes) = (filename, None);
        }
    }

    /// Whether the row of the file is written: the file was complete or has timed out.
    pub fn is_over(&self, id: FileId) -> bool {
        self.get(id).is_none_or(|f| f.dormant)
    }

    /// Whether all bytes of the file arrived: more data with its name belongs to another file.
    pub fn is_complete(&self, id: FileId) -> bool {
        self.get(id).is_some_and(|f| f.dormant && f.due == Time::MAX)
    }

    /// Whether the row of the file was written so long ago that more data is another file: when a
    /// multiple of [`FORGET_EVERY`] has passed since. (The result does not depend on the times of
    /// checks.)
    pub fn is_forgotten(&self, id: FileId, now: Time) -> bool {
        let over = |f: &File| f.dormant && era(f.logged_at) != era(now);
        self.get(id).is_none_or(over)
    }

    /// The sampling of file weirds.
    pub fn sampling(&mut self) -> &mut WeirdSampling {
        &mut self.options.sampling
    }

    /// Requests a report if the file times out.
    pub fn watch(&mut self, id: FileId) {
        if let Some(file) = self.get_mut(id) {
            file.watched = true;
        }
    }

    /// Whether the file began on this connection and has not ended.
    pub fn is_carried_by(&self, id: FileId, uid: Uid) -> bool {
        self.get(id).is_some_and(|f| f.uid == uid && !f.dormant)
    }

    /// The name of the file, if its source stated one.
    pub fn filename(&self, id: FileId) -> Option<&[u8]> {
        self.get(id)?.start.filename.as_deref()
    }

    /// Sets a name that becomes known after the start of the file.
    pub fn set_filename(&mut self, id: FileId, name: &[u8]) {
        if let Some(file) = self.get_mut(id) {
            file.start.filename = Some(name.to_vec());
        }
    }

    /// Sets a size that becomes known after the start of the file.
    pub fn set_total(&mut self, id: FileId, bytes: u64) {
        if let Some(file) = self.get_mut(id) {
            file.start.total_bytes = Some(bytes);
        }
    }

    /// Whether a file timed out, so that more data [restarts](Self::resume) it.
    #[inline]
    pub fn is_timed_out(&self, id: FileId) -> bool {
        self.any_timed_out && self.get(id).is_some_and(File::is_timed_out)
    }

    /// Restarts a file that timed out and gets more data. Returns whether it did: the events of a
    /// [new file](Self::raise_new) follow.
    #[cold]
    pub fn resume(&mut self, now: Time, id: FileId) -> bool {
        let Some(file) = numbered(&mut self.files, id).filter(|file| file.is_timed_out()) else {
            return false;
        };
        file.begin_again(now, &self.options);
        file.due = now + file.timeout;
        self.timers.push(Reverse((file.due, file.tie, file.number, id.index)));
        true
    }

    /// Returns a file for which data arrived: restarts its idle time, and the file itself if it
    /// timed out.
    #[inline]
    fn touch(&mut self, now: Time, id: FileId) -> Option<&mut File> {
        if self.is_timed_out(id) {
            self.resume(now, id);
        }
        let file = numbered(&mut self.files, id)?;
        if file.stopped {
            return None;
        }
        file.stopped = file.stops;
        file.last = now;
        Some(file)
    }

    /// Delivers more in-order data. A file of known size ends with its last byte; later data is
    /// ignored.
    pub fn data(&mut self, logs: &mut Sinks, now: Time, id: FileId, data: &[u8]) {
        let Some(file) = self.touch(now, id) else { return };
        file.deliver_next(data);
        if file.has_pending_report() {
            return self.data_with_sniff(logs, now, id);
        }
        if file.analyzers.has_headers() {
            file.raise_headers(logs);
        }
        if file.raise_listened(logs) {
            self.unpack(logs, now, id);
        } else if file.has_fault() {
            self.note_fault(logs, id);
        }
        self.end_if_complete(logs, now, id);
    }

    /// Completes [`Self::data`] if the type of the file was detected.
    #[cold]
    fn data_with_sniff(&mut self, logs: &mut Sinks, now: Time, id: FileId) {
        let extract = self.options.extract.clone();
        let Some(file) = self.get_mut(id) else { return };
        file.raise_pending_reports(logs, extract.as_ref());
        if file.analyzers.has_headers() {
            file.raise_headers(logs);
        }
        if file.raise_listened(logs) {
            self.unpack(logs, now, id);
        } else if file.has_fault() {
            self.note_fault(logs, id);
        }
        self.end_if_complete(logs, now, id);
    }

    /// Delivers a part of the file, from byte `offset` on.
    pub fn data_at(&mut self, logs: &mut Sinks, now: Time, id: FileId, offset: u64, data: &[u8]) {
        if self.touch(now, id).is_none() {
            return;
        }
        let Some(file) = numbered(&mut self.files, id) else { return };
        let room = u64::MAX - offset;
        if data.len() as u64 > room && !file.dormant {
            let addl = format!("offset={offset:x} len={:x}", data.len());
            let source = Some(file.start.source);
            let weird = FileWeirdFacts { name: "file_offset_overflow", addl, source };
            self.faults.push(file.weird(logs, now, &mut self.options.sampling, weird));
            file.deliver_at(offset, &data[..room as usize]);
            return self.end_if_complete(logs, now, id);
        }
        file.deliver_at(offset, data);
        if !file.gaps.is_empty() {
            self.gaps(logs, id);
        }
        let Some(file) = self.get_mut(id) else { return };
        if file.has_pending_report() {
            return self.data_with_sniff(logs, now, id);
        }
        if file.analyzers.has_headers() {
            file.raise_headers(logs);
        }
        if file.raise_listened(logs) {
            self.unpack(logs, now, id);
        } else if file.has_fault() {
            self.note_fault(logs, id);
        }
        self.end_if_complete(logs, now, id);
    }

    /// Reports `len` missing bytes: the next ones, or, if the file arrives in parts, those after
    /// the first `at` bytes of the current part.
    pub fn gap(&mut self, logs: &mut Sinks, now: Time, id: FileId, at: Option<u64>, len: u64) {
        let Some(file) = self.touch(now, id) else { return };
        file.gap(at, len);
        if !file.gaps.is_empty() || file.has_pending_report() {
            self.gaps(logs, id);
        }
        if self.get(id).is_some_and(File::has_fault) {
            self.note_fault(logs, id);
        }
    }

    /// Raises the events of gaps; the first gap ends the detection of the type.
    #[cold]
    fn gaps(&mut self, logs: &mut Sinks, id: FileId) {
        let extract = self.options.extract.clone();
        let Some(file) = self.get_mut(id) else { return };
        if file.has_pending_report() {
            file.raise_pending_reports(logs, extract.as_ref());
        }
        if file.analyzers.has_headers() {
            file.raise_headers(logs);
        }
        file.raise_gaps(logs);
    }

    /// Ends a file that is complete or discarded: writes its rows.
    pub fn end(&mut self, logs: &mut Sinks, now: Time, id: FileId) {
        if self.get(id).is_none() {
            return;
        }
        if self.reports_matches {
            self.unpack_rest(logs, now, id);
            if self.get(id).is_none() {
                return;
            }
        }
        if let Some(mut file) = self.files[id.index as usize].take() {
            self.free.push(id.index);
            if let Some(pairs) = &mut self.pairs {
                let pair = file.pair();
                if let Some(its) = pairs.get_mut(&pair) {
                    its.count = its.count.saturating_sub(1);
                    if its.count == 0 {
                        pairs.remove(&pair);
                    }
                }
            }
            if !file.dormant {
                file.finish(logs, now, &mut self.faults, &mut self.options);
            }
        }
    }

    /// Whether [`take_faults`](Self::take_faults) would return any.
    #[inline]
    pub fn has_faults(&self) -> bool {
        !self.faults.is_empty()
    }

    /// Takes the faults of files since the last call, except those that [`expire`](Self::expire)
    /// and [`finish`](Self::finish) returned.
    pub fn take_faults(&mut self) -> Vec<ContentFault> {
        std::mem::take(&mut self.faults)
    }

    #[cold]
    fn note_fault(&mut self, logs: &mut Sinks, id: FileId) {
        let Some(file) = self.get_mut(id) else { return };
        file.raise_violation(logs);
        let fault = file.fault();
        self.faults.extend(fault);
    }

    /// Writes the rows of the file if all bytes arrived.
    pub fn end_if_complete(&mut self, logs: &mut Sinks, now: Time, id: FileId) {
        let complete = |f: &File| f.start.total_bytes.is_some_and(|t| f.offset >= t);
        if self.get(id).is_some_and(complete)
            && let Some(Some(file)) = self.files.get_mut(id.index as usize)
            && !file.dormant
        {
            if file.reports_matches {
                self.unpack_rest(logs, now, id);
            }
            let Some(file) = numbered(&mut self.files, id) else { return };
            file.finish(logs, now, &mut self.faults, &mut self.options);
            // The name is kept until the protocol reports the end of the file.
            file.dormant = true;
            file.due = Time::MAX;
        }
    }

    /// Advances packet time to `now`, before the next `packet`: files without data for their
    /// timeout end, and their faults are reported.
    ///
    /// The timers that `now` has reached fire. Whether a file was idle for long enough, and the due
    /// time of its next timer, are computed from the time of the packet.
    #[inline]
    pub fn expire(
        &mut self,
        logs: &mut Sinks,
        now: Time,
        packet: Time,
        mut tell: impl FnMut(&mut Sinks, &ContentFault),
    ) {
        while let Some(Reverse((due, ..))) = self.timers.peek()
            && *due <= now
        {
            self.fire(logs, packet);
            self.faults.drain(..).for_each(|w| tell(logs, &w));
        }
    }

    /// The next time at which [`expire`](Self::expire) has work to do.
    #[inline]
    pub fn next_due(&self) -> Time {
        self.timers.peek().map_or(Time::MAX, |Reverse((due, ..))| *due)
    }

    #[cold]
    fn fire(&mut self, logs: &mut Sinks, packet: Time) {
        let Some(Reverse((due, tie, number, index))) = self.timers.pop() else { return };
        let Some(file) = self.timed_file(due, number, index) else { return };
        if file.last + file.timeout <= packet {
            if let Some(key) = logs.key() {
                logs.set_key(Key { due, tie, ..key });
            }
            return self.time_out(logs, due, FileId { index, number });
        }
        file.due = packet + file.timeout;
        let again = file.due;
        self.timers.push(Reverse((again, tie, number, index)));
    }

    /// The file of a timer, unless the file has ended or its due time was changed.
    fn timed_file(&mut self, due: Time, number: u64, index: u32) -> Option<&mut File> {
        let file = self.files.get_mut(index as usize)?.as_mut()?;
        (file.number == number && file.due == due && !file.dormant).then_some(file)
    }

    /// Ends a file without data for its timeout.
    fn time_out(&mut self, logs: &mut Sinks, now: Time, id: FileId) {
        let Some(file) = numbered(&mut self.files, id) else { return };
        file.timed_out = true;
        logs.events.drain_if_full();
        if logs.events.wants::<FileTimeout>() {
            let f = logs.events.file(file.state());
            logs.events.raise(&FileTimeout { f });
            logs.events.mark();
            // Handlers see the state of the file without out-of-order data.
            logs.events.drain();
        }
        if self.reports_matches {
            self.unpack_rest(logs, now, id);
        }
        if let Some(file) = numbered(&mut self.files, id) {
            file.finish(logs, now, &mut self.faults, &mut self.options);
            file.dormant = true;
            self.any_timed_out = true;
        }
    }

    /// Ends the files that had no data for their timeout when the input ends at `now`, and reports their faults. Called
    /// before connections are closed: all timers fire then, whatever their due times.
    pub fn expire_at_end(
        &mut self,
        logs: &mut Sinks,
        now: Time,
        mut tell: impl FnMut(&mut Sinks, &ContentFault),
    ) {
        let first = logs.key();
        while let Some(Reverse((due, tie, number, index))) = self.timers.pop() {
            let Some(file) = self.timed_file(due, number, index) else { continue };
            if file.last + file.timeout > now {
                continue;
            }
            if let Some(key) = first {
                // Before the keys of connections, in the order of the timers.
                let before = key.due.as_nanos().saturating_add(due.as_nanos().max(0));
                logs.set_key(Key { due: Time::from_nanos(before), tie, ..key });
            }
            self.time_out(logs, due, FileId { index, number });
            self.faults.drain(..).for_each(|w| tell(logs, &w));
        }
    }

    /// Ends the input: all remaining files time out, and their faults are reported.
    pub fn finish(
        &mut self,
        logs: &mut Sinks,
        now: Time,
        mut tell: impl FnMut(&mut Sinks, &ContentFault),
    ) {
        let open = (0..).zip(&self.files).filter_map(|(index, file)| Some((index, file.as_ref()?)));
        let mut open: Vec<_> = open
            .filter(|(_, f)| !f.dormant)
            .map(|(index, f)| (f.first_started, f.tie, FileId { index, number: f.number }))
            .collect();
        open.sort_by_key(|(first_started, tie, _)| (*first_started, *tie));
        for (first_started, tie, id) in open {
            // An entry of an archive ended with its archive.
            if self.get_mut(id).is_none() {
                continue;
            }
            logs.set_key(Key { packet: u64::MAX, due: first_started, tie });
            self.time_out(logs, now, id);
            if let Some(file) = numbered(&mut self.files, id) {
                file.due = Time::MAX;
            }
            self.faults.drain(..).for_each(|w| tell(logs, &w));
        }
    }
}
