//! State of files, trees and commands.

use std::sync::Arc;

use gannet_base::Time;
use gannet_base::Uid;

use gannet_event::Arg;
use gannet_event::Packer;
use gannet_event::Type;

use super::cursor::Fields;

/// Text that several records share.
pub(super) type Text = Arc<[u8]>;

/// Times of a file, as encoded in messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Times {
    pub(super) created: u64,
    pub(super) accessed: u64,
    pub(super) modified: u64,
    pub(super) changed: u64,
}

impl Times {
    /// Parses them, in the order of messages.
    pub(super) fn read(f: &mut Fields<'_>) -> Self {
        Self { created: f.u64(), accessed: f.u64(), modified: f.u64(), changed: f.u64() }
    }
}

/// An action on a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Read,
    Write,
    Open,
    Close,
    Delete,
    Rename,
    SetAttribute,
}

impl Action {
    /// Name of the action, if it is logged for this type of share.
    pub(super) fn logged(self, share: Share) -> Option<&'static str> {
        Some(match (self, share) {
            (Self::Delete, _) => "SMB::FILE_DELETE",
            (Self::Rename, _) => "SMB::FILE_RENAME",
            (Self::Open, Share::Print) => "SMB::PRINT_OPEN",
            (Self::Close, Share::Print) => "SMB::PRINT_CLOSE",
            (Self::Open, Share::Pipe) => return None,
            (Self::Open, _) => "SMB::FILE_OPEN",
            _ => return None,
        })
    }
}

/// Type of a share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Share {
    #[default]
    Disk,
    Pipe,
    Print,
    Other(u8),
}

impl Share {
    pub(super) fn new(number: u8) -> Self {
        match number {
            1 => Self::Disk,
            2 => Self::Pipe,
            3 => Self::Print,
            n => Self::Other(n),
        }
    }

    pub(super) fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::Disk => "DISK",
            Self::Pipe => "PIPE",
            Self::Print => "PRINT",
            Self::Other(_) => return None,
        })
    }

    /// Text for an unknown type.
    pub(super) fn unknown(self) -> String {
        match self {
            Self::Other(n) => format!("unknown-{n}"),
            _ => String::new(),
        }
    }
}

/// A file, directory or pipe.
#[derive(Clone, Debug, Default)]
pub struct File {
    pub(super) ts: Time,
    pub(super) fuid: Option<Uid>,
    /// The action on the file, and the action's name if it is logged.
    pub(super) action: Option<(Action, Option<&'static str>)>,
    pub(super) path: Option<Text>,
    pub(super) name: Option<Text>,
    pub(super) size: u64,
    pub(super) previous: Option<Text>,
    pub(super) times: Option<Times>,
}

impl File {
    /// The action's name and the file's name, if the action is logged.
    pub(super) fn logged_action(&self) -> Option<(&'static str, &[u8])> {
        Some((self.action?.1?, self.name.as_deref()?))
    }
}

gannet_event::record! {
    /// The record of a file in events.
    #[derive(Clone, Copy, Debug)]
    pub struct FileFacts<'a> = "gannet::SMBFile" {
        /// Time of the request that began the action.
        ts: Time = "ts",
        /// Identifier of its contents in files.log.
        fuid: Option<Uid> = "fuid",
        /// Action, if it is logged.
        action: Option<&'static str> = "action",
        /// Path of the share.
        path: Option<&'a [u8]> = "path",
        /// Name of the file.
        name: Option<&'a [u8]> = "name",
        /// Size of the file, in bytes.
        size: u64 = "size",
        /// Previous name of the file.
        prev_name: Option<&'a [u8]> = "prev_name",
        /// Time of the last write, like all times in units of 100 ns since 1601.
        modified: Option<u64> = "modified",
        /// Time of the last access.
        accessed: Option<u64> = "accessed",
        /// Creation time.
        created: Option<u64> = "created",
        /// Time of the last change of attributes.
        changed: Option<u64> = "changed",
    }
}

impl Arg for File {
    const TYPE: Type = FileFacts::TYPE;

    fn pack(&self, to: &mut Packer<'_>) {
        let facts = FileFacts {
            ts: self.ts,
            fuid: self.fuid,
            action: self.action.and_then(|a| a.1),
            path: self.path.as_deref(),
            name: self.name.as_deref(),
            size: self.size,
            prev_name: self.previous.as_deref(),
            modified: self.times.map(|t| t.modified),
            accessed: self.times.map(|t| t.accessed),
            created: self.times.map(|t| t.created),
            changed: self.times.map(|t| t.changed),
        };
        facts.pack(to);
    }
}

/// Converts a FILETIME, in units of 100 ns since 1601 ([MS-DTYP] §2.3.3), to seconds since 1970,
/// with the precision of a double for seconds since 1601.
///
/// [MS-DTYP]: https://learn.microsoft.com/en-us/openspecs/windows_protocols/ms-dtyp
pub(super) fn seconds(filetime: u64) -> f64 {
    filetime as f64 / 10_000_000.0 - 11_644_473_600.0
}

/// A tree connect: a connected share.
#[derive(Clone, Debug, Default)]
pub(super) struct Tree {
    pub(super) ts: Time,
    pub(super) path: Option<Text>,
    pub(super) service: Option<Text>,
    pub(super) file_system: Option<Text>,
    pub(super) share: Share,
}

/// Index of a record in a [`Pool`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PoolIndex(u32);

/// A pool of records, each of which may be referenced several times.
#[derive(Debug)]
pub(super) struct Pool<T> {
    slots: Vec<Option<T>>,
    free: Vec<u32>,
    /// Number of records at which unreferenced ones are removed.
    sweep_at: usize,
}

/// Minimum number of records before unreferenced ones are removed.
const SWEEP_AT: usize = 64;

impl<T: Default> Pool<T> {
    pub(super) fn new() -> Self {
        Self { slots: Vec::new(), free: Vec::new(), sweep_at: SWEEP_AT }
    }

    pub(super) fn add(&mut self, record: T) -> PoolIndex {
        if let Some(at) = self.free.pop() {
            self.slots[at as usize] = Some(record);
            return PoolIndex(at);
        }
        self.slots.push(Some(record));
        PoolIndex(self.slots.len() as u32 - 1)
    }

    /// The record at an index; a new one if it was removed.
    pub(super) fn get(&mut self, at: PoolIndex) -> &mut T {
        self.slots[at.0 as usize].get_or_insert_with(T::default)
    }

    /// Whether unreferenced records should be removed.
    pub(super) fn is_full(&self) -> bool {
        self.slots.len() - self.free.len() >= self.sweep_at
    }

    /// Removes all records except the `used` ones.
    pub(super) fn retain(&mut self, used: impl Iterator<Item = PoolIndex>) {
        let mut keep = vec![false; self.slots.len()];
        for PoolIndex(at) in used {
            keep[at as usize] = true;
        }
        self.free.clear();
        for (at, slot) in self.slots.iter_mut().enumerate() {
            if !keep[at] {
                *slot = None;
                self.free.push(at as u32);
            }
        }
        let live = self.slots.len() - self.free.len();
        self.sweep_at = (2 * live).max(SWEEP_AT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::float_cmp)]
    fn times_since_1601() {
        assert_eq!(seconds(116_444_736_000_000_000), 0.0);
        assert_eq!(seconds(116_444_736_015_000_000), 1.5);
        assert_eq!(seconds(0), -11_644_473_600.0);
    }

    #[test]
    fn unused_records_go() {
        let mut pool = Pool::new();
        let refs: Vec<_> = (0..SWEEP_AT).map(|n| pool.add(n)).collect();
        assert!(pool.is_full());
        pool.retain([refs[3], refs[5]].into_iter());
        assert!(!pool.is_full());
        assert_eq!((*pool.get(refs[3]), *pool.get(refs[5])), (3, 5));
        let indexes: Vec<_> = (0..SWEEP_AT - 2).map(|n| pool.add(n)).collect();
        assert!(!indexes.contains(&refs[3]) && pool.slots.len() == SWEEP_AT);
    }
}
