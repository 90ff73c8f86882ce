use gannet_base::ConnId;
use gannet_base::Dir;
use gannet_base::Time;
use gannet_base::Uid;
use gannet_base::UidSource;
use gannet_log::Logs;

/// A file in transit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileId(u32);

/// What is known of a file when it begins.
#[derive(Clone, Debug)]
pub struct FileStart {
    /// Where it was seen: `HTTP`, `SMTP`, `FTP_DATA`, `SSL`, …
    pub source: &'static str,
    /// Who sends it.
    pub from: Dir,
    /// How deep it is nested in its source (files.log's `depth`).
    pub depth: u64,
    /// Its name, where the protocol gives one.
    pub filename: Option<Vec<u8>>,
    /// Its size, where the protocol gives one.
    pub total_bytes: Option<u64>,
    /// The file that contains it.
    pub parent: Option<Uid>,
    /// Type told by the protocol, which then is not sniffed (certificates).
    pub mime_type: Option<&'static str>,
}

/// All files in transit.
#[derive(Debug)]
pub struct Files {
    _uids: UidSource,
}

impl Files {
    /// No files yet.
    pub fn new(uids: UidSource) -> Self {
        Self { _uids: uids }
    }

    /// A file begins.
    pub fn start(
        &mut self,
        _now: Time,
        _uid: Uid,
        _id: ConnId,
        _local: bool,
        _start: FileStart,
    ) -> FileId {
        FileId(0)
    }

    /// Its name in the logs.
    pub fn fuid(&self, _file: FileId) -> Option<Uid> {
        None
    }

    /// Its type, once enough was seen to tell.
    pub fn mime_type(&self, _file: FileId) -> Option<&'static str> {
        None
    }

    /// Its name becomes known later than its start.
    pub fn set_filename(&mut self, _file: FileId, _name: &[u8]) {}

    /// Its size becomes known later than its start.
    pub fn set_total(&mut self, _file: FileId, _bytes: u64) {}

    /// More of it, in order.
    pub fn data(&mut self, _logs: &mut Logs, _now: Time, _file: FileId, _data: &[u8]) {}

    /// A part of it is missing.
    pub fn gap(&mut self, _now: Time, _file: FileId, _len: u64) {}

    /// It is complete or given up.
    pub fn end(&mut self, _logs: &mut Logs, _now: Time, _file: FileId) {}
}
