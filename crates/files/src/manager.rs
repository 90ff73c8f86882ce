//! The life of files: from a connection's bytes to their rows.

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
use crate::file::most_held;
use crate::x509::Certificate;

/// A file that nothing arrives of is given up after this.
pub(crate) const TIMEOUT: Interval = Interval::from_secs(120);

/// Files that have ended are forgotten at whole multiples of this time.
pub const FORGET_EVERY: Interval = Interval::from_secs(10);

/// Which multiple of [`FORGET_EVERY`] a time belongs to.
pub fn era(t: Time) -> i64 {
    t.as_nanos().div_euclid(FORGET_EVERY.as_nanos())
}

/// A file in transit: a place in [`Files`], good until its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileId {
    index: u32,
    number: u64,
}

impl FileId {
    /// Its number, which no other file has.
    pub fn number(self) -> u64 {
        self.number
    }
}

/// What is known of a file when it begins.
#[derive(Clone, Debug)]
pub struct FileStart {
    /// Where it was seen: `HTTP`, `SMTP`, `FTP_DATA`, `SSL`, …
    pub source: &'static str,
    /// The side that sends it.
    pub from: Dir,
    /// How deep it is nested in its source (files.log's `depth`).
    pub depth: u64,
    /// Its name, where the protocol gives one.
    pub filename: Option<Vec<u8>>,
    /// Its size, where the protocol gives one.
    pub total_bytes: Option<u64>,
    /// The file that contains it.
    pub parent: Option<Uid>,
    /// Type stated by the protocol, which then is not detected (certificates).
    pub mime_type: Option<&'static str>,
    /// Which of the files of its source it is. A [certificate](FilePart::Certificate) has no row in files.log.
    pub part: FilePart,
    /// The certificate that it is, where that was read before.
    pub certificate: Option<Arc<Certificate>>,
}

impl Default for FileStart {
    /// A file of which nothing is known.
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

/// What is wrong with a file's content, or with how it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContentFault {
    /// The file.
    pub fuid: Uid,
    /// The connection that carries it, if there is only one.
    pub conn: Option<(Uid, ConnId)>,
    /// What.
    pub kind: FaultKind,
}

/// Kinds of [`ContentFault`], by the log that reports them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// A weird, for weird.log.
    Weird {
        /// Its name.
        name: &'static str,
        /// Details, may be empty.
        addl: String,
        /// The analyzer that saw the file, where Zeek logs it.
        source: Option<&'static str>,
        /// Whether sampling leaves it out.
        is_sampled_out: bool,
    },
    /// The file is not what an analyzer was started for, for analyzer.log.
    Violation {
        /// The analyzer.
        analyzer: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// A file that is [watched](Files::watch) was given up.
    GivenUp {
        /// The connection it began on.
        uid: Uid,
    },
}

/// What a weird of a file says.
pub(crate) struct FileWeirdFacts {
    pub(crate) name: &'static str,
    /// Details, may be empty.
    pub(crate) addl: String,
    /// The analyzer that saw the file, where Zeek logs it.
    pub(crate) source: Option<&'static str>,
}

/// Connections that are remembered for one file.
const MAX_CONNECTIONS: usize = 1000;

/// How files are analysed.
#[derive(Clone, Debug)]
pub struct FileOptions {
    /// Hash all files with MD5, SHA-1 and SHA-256.
    pub hash: bool,
    /// Files in transit between two hosts at the most; at more, the oldest is given up as one that
    /// timed out.
    pub most: usize,
    /// Takes the contents of files.
    pub extract: Option<Arc<dyn Extract>>,
    /// Analyzers of types that are not used.
    pub disabled: Disabled,
    /// Bytes that the type of a file is detected from, if there are as many.
    pub first: usize,
    /// How weirds of files are sampled.
    pub sampling: WeirdSampling,
    /// A file that nothing arrives of for as long is given up.
    pub timeout: Interval,
}

/// Analyzers of types that are not used.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disabled {
    /// Programs of Windows.
    pub pe: bool,
    /// Responses of OCSP.
    pub ocsp: bool,
}

impl Default for FileOptions {
    fn default() -> Self {
        Self {
            hash: false,
            most: 1_000_000,
            extract: None,
            disabled: Disabled::default(),
            first: BEGINNING,
            sampling: WeirdSampling::default(),
            timeout: TIMEOUT,
        }
    }
}

/// The two hosts of a file, in order, and whether the global shard owns its connection: one shard
/// sees all files of such a pair.
pub(crate) type Pair = (Addr, Addr, bool);

/// Files of one pair of hosts.
#[derive(Debug, Default)]
struct InTransit {
    count: usize,
    /// In the order they began, those that are over included.
    oldest: VecDeque<(u64, u32)>,
}

/// Whether a file is in transit.
fn is_there(files: &[Option<File>], (number, index): &(u64, u32)) -> bool {
    files.get(*index as usize).and_then(Option::as_ref).is_some_and(|f| f.number == *number)
}

/// The file of an id.
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
    /// Due time, tie, number and index.
    timers: BinaryHeap<Reverse<(Time, u64, u64, u32)>>,
    created: u64,
    /// Numbers and places of files in the order they began, those that are over included, once the
    /// limit is near.
    oldest: VecDeque<(u64, u32)>,
    /// The same by pair of hosts, from when there were more than one pair may have.
    pairs: Option<BTreeMap<Pair, InTransit>>,
    given_up: u64,
    /// Whether it is reported what the first bytes of files match.
    reports_matches: bool,
    /// Whether the DOS programs of executables are kept.
    keeps_programs: bool,
    /// How many bytes of a file wait above a hole at the most.
    most_held: usize,
    /// Whether parts wait for those before them.
    reassembles: bool,
    /// Faults of files that are not reported yet.
    faults: Vec<ContentFault>,
    /// The name of the file that begins next, where it has that of another.
    next_name: Option<Uid>,
}

impl Files {
    /// No files yet.
    pub fn new(uids: UidSource) -> Self {
        Self::with_options(uids, FileOptions::default())
    }

    /// No files yet, with options.
    pub fn with_options(uids: UidSource, options: FileOptions) -> Self {
        Self {
            options,
            uids,
            files: Vec::new(),
            free: Vec::new(),
            timers: BinaryHeap::new(),
            created: 0,
            oldest: VecDeque::new(),
            pairs: None,
            next_name: None,
            given_up: 0,
            reports_matches: false,
            keeps_programs: false,
            most_held: MAX_BUFFERED,
            reassembles: true,
            faults: Vec::new(),
        }
    }

    /// Whether it is reported what the first bytes of files match, which is costly to find out.
    pub fn report_matches(&mut self, on: bool) {
        self.reports_matches = on;
    }

    /// How many bytes the types of files that begin from now on are detected from.
    pub fn detect_from(&mut self, first: usize) {
        self.options.first = first;
    }

    /// How long files that begin from now on may be silent before they are given up.
    pub fn give_up_after(&mut self, timeout: Interval) {
        self.options.timeout = timeout;
    }

    /// How long files that begin may be silent.
    pub fn timeout(&self) -> Interval {
        self.options.timeout
    }

    /// Whether parts of files that begin from now on wait for those before them.
    pub fn reassemble(&mut self, on: bool) {
        self.reassembles = on;
    }

    /// How many bytes of one such file wait at the most; 0: as many as come.
    pub fn hold_at_most(&mut self, bytes: u64) {
        self.most_held = most_held(bytes);
    }

    /// Whether the DOS programs of executables are kept for their event.
    pub fn keep_programs(&mut self, on: bool) {
        self.keeps_programs = on;
    }

    /// Files that were given up because there were too many.
    pub fn given_up(&self) -> u64 {
        self.given_up
    }

    /// Files in transit.
    pub fn len(&self) -> usize {
        self.files.len() - self.free.len()
    }

    /// Whether no file is in transit.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A file begins, the `ordinal`th of the connection `uid`; `local_orig` says whether its
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
        let fuid = self.next_name.take().unwrap_or(fuid);
        let mut file = File {
            fuid,
            uid,
            id,
            proto,
            matched: None,
            nesting: None,
            reports_matches: self.reports_matches,
            keeps_programs: self.keeps_programs,
            most_held: self.most_held,
            reassembles: self.reassembles,
            overflows: Vec::new(),
            gaps: Vec::new(),
            others: Vec::new(),
            local_orig,
            is_hub: false,
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
            extraction: Extraction::No,
            bof: None,
            unseen: Vec::new(),
            unseen_at: 0,
            unseen_gaps: Vec::new(),
            is_limit_known: false,
            first: self.options.first,
            heard: None,
            stopped: false,
            stops: false,
            timeout: self.options.timeout,
            beginning: Vec::new(),
            beginning_at: 0,
            pieces: Vec::new(),
            sniffed: mime_type.is_some(),
            offset: 0,
            early: BTreeMap::new(),
            held: 0,
            reorders: false,
            next: 0,
            taken: 0,
            number,
            born: now,
            tie,
            due,
            over: Time::MAX,
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

    /// A file begins that no connection carries: scripts read it under this name.
    #[cold]
    pub fn start_input(&mut self, now: Time, name: &str) -> FileId {
        let uid = self.uids.named_file(name.as_bytes());
        let nowhere = Addr::v4([0; 4]);
        let ends = ConnId { orig_h: nowhere, orig_p: 0, resp_h: nowhere, resp_p: 0 };
        self.name_next(uid);
        let id = self.start(now, uid, (ends, Proto::Unknown), false, 0, FileStart::default());
        if let Some(file) = self.get_mut(id) {
            file.input = Some(name.into());
        }
        id
    }

    /// Makes room for a file that was just started on a connection, which `is_hub` or not, where there
    /// are more between its hosts than there may be; returns whether it had to.
    #[inline]
    pub fn make_room(&mut self, logs: &mut Sinks, now: Time, id: FileId, is_hub: bool) -> bool {
        if is_hub && let Some(file) = self.get_mut(id) {
            file.is_hub = true;
        }
        if self.pairs.is_some() || self.len() > self.options.most.max(1) {
            return self.give_up_oldest(logs, now, id);
        }
        if self.oldest.len() > 2 * self.len() + 1_024 {
            let files = &self.files;
            self.oldest.retain(|its| is_there(files, its));
        }
        false
    }

    /// Gives up the oldest files between the hosts of one, as long as there are too many.
    #[cold]
    fn give_up_oldest(&mut self, logs: &mut Sinks, now: Time, id: FileId) -> bool {
        let files = &self.files;
        let is_new = self.pairs.is_none();
        let pairs = self.pairs.get_or_insert_default();
        let entering = std::mem::take(&mut self.oldest).into_iter().filter(|i| is_there(files, i));
        let one = (!is_new).then_some((id.number, id.index));
        for (number, index) in entering.chain(one) {
            let Some(Some(file)) = files.get(index as usize) else { continue };
            let its = pairs.entry(file.pair()).or_default();
            its.count += 1;
            its.oldest.push_back((number, index));
        }
        let Some(pair) = self.get(id).map(File::pair) else { return false };
        let most = self.options.most.max(1);
        let mut full = false;
        while let Some(its) = self.pairs.as_mut().and_then(|pairs| pairs.get_mut(&pair)) {
            if its.oldest.len() > 2 * its.count + 1_024 {
                let files = &self.files;
                its.oldest.retain(|i| is_there(files, i));
            }
            if its.count <= most {
                break;
            }
            let Some((number, index)) = its.oldest.pop_front() else { break };
            full = true;
            let id = FileId { index, number };
            if let Some(file) = self.get_mut(id) {
                file.timed_out |= !file.dormant;
                self.given_up += 1;
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

    /// Raises the events of a file that began, on a connection if one carries it. Handlers run at once, as in Zeek, and
    /// what they ask for is done.
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
        self.obey(sinks, id);
        let Some(file) = self.get(id).filter(|file| !file.stopped) else { return };
        if let Some(mime) = file.start.mime_type
            && sinks.events.wants::<FileSniff>()
        {
            let meta = Metadata { mime_type: Some(mime), mime_types: None, inferred: Some(false) };
            let f = sinks.events.file(state);
            sinks.events.raise(&FileSniff { f, meta });
            sinks.events.mark();
            sinks.events.drain();
            self.obey(sinks, id);
            if let Some(file) = self.get_mut(id) {
                // Its type comes with its first data, which is read before the file stops.
                file.stops = std::mem::take(&mut file.stopped);
            }
        }
    }

    /// Does what the listener asks for of a file.
    #[cold]
    pub fn obey(&mut self, sinks: &mut Sinks, id: FileId) {
        if let Some(Some(file)) = self.files.get_mut(id.index as usize)
            && file.number == id.number
        {
            file.obey(sinks, self.options.extract.as_ref());
        }
    }

    /// All hashes of a file are computed.
    pub fn add_hashes(&mut self, id: FileId) {
        if let Some(file) = self.get_mut(id) {
            file.analyzers.add_hashes();
        }
    }

    /// Mentions a file, for events about it.
    pub fn mention(&self, sinks: &mut Sinks, id: FileId) -> Option<FileRef> {
        self.get(id).map(|file| sinks.events.file(file.state()))
    }

    /// Analyzers of the types of files to come are used, or no longer: `Files::ANALYZER_PE`.
    #[cold]
    pub fn enable(&mut self, analyzer: &str, on: bool) {
        match analyzer {
            "Files::ANALYZER_PE" => self.options.disabled.pe = !on,
            "Files::ANALYZER_OCSP_REPLY" => self.options.disabled.ocsp = !on,
            _ => {}
        }
    }

    /// Carries out a request about a file.
    #[cold]
    pub fn steer(&mut self, fuid: Uid, what: FileCommand) {
        let file = self.files.iter_mut().flatten().find(|file| file.fuid == fuid);
        if let Some(file) = file.filter(|file| !file.dormant) {
            file.steer(what, self.options.extract.as_ref());
        }
    }

    /// Raises the event of a file that another connection carries, too.
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

    /// Its name in the logs.
    pub fn fuid(&self, id: FileId) -> Option<Uid> {
        self.get(id).map(|f| f.fuid)
    }

    /// Its type, once enough was seen to tell: 4,096 bytes, a gap, or its end.
    pub fn mime_type(&self, id: FileId) -> Option<&'static str> {
        self.get(id)?.mime_type
    }

    /// Its type from the available bytes, as its end would set it.
    pub fn settle_mime_type(&mut self, id: FileId) -> Option<&'static str> {
        let file = self.get_mut(id)?;
        file.sniff();
        file.mime_type
    }

    /// The next file that begins has this name, as another part of one that ended already.
    pub fn name_next(&mut self, fuid: Uid) {
        self.next_name = Some(fuid);
    }

    /// Another connection carries parts of it: it gets a row for each. Returns whether the
    /// connection is new to it; one between the same endpoints is not.
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

    /// It timed out, and a connection has more of it: that is another file, which has only its id
    /// and the facts that its source states now.
    pub fn renew(&mut self, id: FileId, uid: Uid, conn: ConnId, filename: Option<Vec<u8>>) {
        if let Some(file) = self.get_mut(id) {
            (file.uid, file.id) = (uid, conn);
            file.others.clear();
            (file.start.filename, file.start.total_bytes) = (filename, None);
        }
    }

    /// Whether its row is written already: it was complete or silent for long.
    pub fn is_over(&self, id: FileId) -> bool {
        self.get(id).is_none_or(|f| f.dormant)
    }

    /// Whether all of it came: more under its name is another file.
    pub fn is_complete(&self, id: FileId) -> bool {
        self.get(id).is_some_and(|f| f.dormant && f.due == Time::MAX)
    }

    /// Whether its row was written so long ago that more data is another file: when a multiple of
    /// [`FORGET_EVERY`] has passed since. (This does not depend on when it is checked.)
    pub fn is_forgotten(&self, id: FileId, now: Time) -> bool {
        let over = |f: &File| f.dormant && era(f.over) != era(now);
        self.get(id).is_none_or(over)
    }

    /// How weirds of files are sampled.
    pub fn sampling(&mut self) -> &mut WeirdSampling {
        &mut self.options.sampling
    }

    /// Requests a report when it times out.
    pub fn watch(&mut self, id: FileId) {
        if let Some(file) = self.get_mut(id) {
            file.watched = true;
        }
    }

    /// Whether it began on this connection and is not over.
    pub fn is_carried_by(&self, id: FileId, uid: Uid) -> bool {
        self.get(id).is_some_and(|f| f.uid == uid && !f.dormant)
    }

    /// Its name, where its source gave one.
    pub fn filename(&self, id: FileId) -> Option<&[u8]> {
        self.get(id)?.start.filename.as_deref()
    }

    /// Its name becomes known later than its start.
    pub fn set_filename(&mut self, id: FileId, name: &[u8]) {
        if let Some(file) = self.get_mut(id) {
            file.start.filename = Some(name.to_vec());
        }
    }

    /// Its size becomes known later than its start.
    pub fn set_total(&mut self, id: FileId, bytes: u64) {
        if let Some(file) = self.get_mut(id) {
            file.start.total_bytes = Some(bytes);
        }
    }

    /// The file, of which something came: one that was given up begins again, and its silence counts from
    /// now.
    #[inline]
    fn touch(&mut self, now: Time, id: FileId) -> Option<&mut File> {
        let file = self.files.get_mut(id.index as usize)?.as_mut();
        let file = file.filter(|f| f.number == id.number)?;
        if file.is_given_up() {
            file.begin_again(now, &self.options);
            file.due = now + file.timeout;
            self.timers.push(Reverse((file.due, file.tie, file.number, id.index)));
        }
        if file.stopped {
            return None;
        }
        file.stopped = file.stops;
        file.last = now;
        Some(file)
    }

    /// More data, in order. A file of known size ends with its last byte; later data is ignored.
    pub fn data(&mut self, logs: &mut Sinks, now: Time, id: FileId, data: &[u8]) {
        let Some(file) = self.touch(now, id) else { return };
        file.deliver_next(data);
        if file.has_matched() {
            return self.data_with_sniff(logs, now, id);
        }
        if file.analyzers.has_headers() {
            file.raise_headers(logs);
        }
        if file.raise_heard(logs) {
            self.unpack(logs, now, id);
        } else if file.has_fault() {
            self.note_fault(logs, id);
        }
        self.end_if_complete(logs, now, id);
    }

    /// The rest of what data does, where the type of a file became known.
    #[cold]
    fn data_with_sniff(&mut self, logs: &mut Sinks, now: Time, id: FileId) {
        let extract = self.options.extract.clone();
        let Some(file) = self.get_mut(id) else { return };
        file.raise_sniff(logs, extract.as_ref());
        if file.analyzers.has_headers() {
            file.raise_headers(logs);
        }
        if file.raise_heard(logs) {
            self.unpack(logs, now, id);
        } else if file.has_fault() {
            self.note_fault(logs, id);
        }
        self.end_if_complete(logs, now, id);
    }

    /// A part of it, from byte `offset` on.
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
        if file.has_matched() {
            return self.data_with_sniff(logs, now, id);
        }
        if file.analyzers.has_headers() {
            file.raise_headers(logs);
        }
        if file.raise_heard(logs) {
            self.unpack(logs, now, id);
        } else if file.has_fault() {
            self.note_fault(logs, id);
        }
        self.end_if_complete(logs, now, id);
    }

    /// `len` bytes of it are missing: the next ones, or, if it arrives in parts, those behind the
    /// first `at` of the current part.
    pub fn gap(&mut self, logs: &mut Sinks, now: Time, id: FileId, at: Option<u64>, len: u64) {
        let Some(file) = self.touch(now, id) else { return };
        file.gap(at, len);
        if !file.gaps.is_empty() || file.has_matched() {
            self.gaps(logs, id);
        }
        if self.get(id).is_some_and(File::has_fault) {
            self.note_fault(logs, id);
        }
    }

    /// Raises the events of gaps; the first one settles the type of the file.
    #[cold]
    fn gaps(&mut self, logs: &mut Sinks, id: FileId) {
        let extract = self.options.extract.clone();
        let Some(file) = self.get_mut(id) else { return };
        if file.has_matched() {
            file.raise_sniff(logs, extract.as_ref());
        }
        if file.analyzers.has_headers() {
            file.raise_headers(logs);
        }
        file.raise_gaps(logs);
    }

    /// It is complete or given up: its rows are written.
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

    /// Whether there is anything to [take](Self::take_faults).
    #[inline]
    pub fn has_faults(&self) -> bool {
        !self.faults.is_empty()
    }

    /// Faults of files since the last call, except those that [`expire`](Self::expire) and
    /// [`finish`](Self::finish) reported.
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

    /// Its rows are written if all of it came.
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
            // Kept for its name until its protocol says that it ended.
            file.dormant = true;
            file.due = Time::MAX;
        }
    }

    /// Advances packet time to `now`, before the next `packet`: files without data for long time
    /// out, and their faults are reported.
    ///
    /// The timers that `now` has reached fire. Whether a file was idle for long enough, and when its next timer is due, is
    /// computed from the time of the packet.
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

    /// When [`expire`](Self::expire) has something to do next.
    #[inline]
    pub fn next_due(&self) -> Time {
        self.timers.peek().map_or(Time::MAX, |Reverse((due, ..))| *due)
    }

    #[cold]
    fn fire(&mut self, logs: &mut Sinks, packet: Time) {
        let Some(Reverse((due, tie, number, index))) = self.timers.pop() else { return };
        let Some(Some(file)) = self.files.get_mut(index as usize) else { return };
        if file.number != number || file.due != due || file.dormant {
            return;
        }
        if file.last + file.timeout <= packet {
            file.timed_out = true;
            if let Some(key) = logs.key() {
                logs.set_key(Key { due, tie, ..key });
            }
            logs.events.drain_if_full();
            if logs.events.wants::<FileTimeout>() {
                let f = logs.events.file(file.state());
                logs.events.raise(&FileTimeout { f });
                logs.events.mark();
                logs.events.drain();
            }
            if self.reports_matches {
                self.unpack_rest(logs, due, FileId { index, number });
            }
            if let Some(file) = numbered(&mut self.files, FileId { index, number }) {
                file.finish(logs, due, &mut self.faults, &mut self.options);
                file.dormant = true;
            }
            return;
        }
        file.due = packet + file.timeout;
        let again = file.due;
        self.timers.push(Reverse((again, tie, number, index)));
    }

    /// The end of input: all remaining files time out, and their faults are reported.
    pub fn finish(
        &mut self,
        logs: &mut Sinks,
        now: Time,
        mut tell: impl FnMut(&mut Sinks, &ContentFault),
    ) {
        let open = (0..).zip(&self.files).filter_map(|(index, file)| Some((index, file.as_ref()?)));
        let mut open: Vec<_> = open
            .filter(|(_, f)| !f.dormant)
            .map(|(index, f)| (f.born, f.tie, FileId { index, number: f.number }))
            .collect();
        open.sort_by_key(|(born, tie, _)| (*born, *tie));
        for (born, tie, id) in open {
            // The entry of an archive ends with that.
            let Some(file) = self.get_mut(id) else { continue };
            logs.set_key(Key { packet: u64::MAX, due: born, tie });
            logs.events.drain_if_full();
            file.timed_out = true;
            if logs.events.wants::<FileTimeout>() {
                let f = logs.events.file(file.state());
                logs.events.raise(&FileTimeout { f });
                logs.events.mark();
                // Handlers see the file before what arrived early counts.
                logs.events.drain();
            }
            if self.reports_matches {
                self.unpack_rest(logs, now, id);
            }
            if let Some(file) = numbered(&mut self.files, id) {
                file.finish(logs, now, &mut self.faults, &mut self.options);
                file.dormant = true;
                file.due = Time::MAX;
            }
            self.faults.drain(..).for_each(|w| tell(logs, &w));
        }
    }
}
