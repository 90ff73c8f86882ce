//! Values in events of both versions.

use super::cursor::Fields;
use super::events::FileAttrs;
use super::events::Guid;
use super::events::MacTimes;
use super::info::Times;
use crate::support::filetime::time;

impl From<Times> for MacTimes {
    fn from(t: Times) -> Self {
        Self {
            modified: time(t.modified),
            modified_raw: t.modified,
            accessed: time(t.accessed),
            accessed_raw: t.accessed,
            created: time(t.created),
            created_raw: t.created,
            changed: time(t.changed),
            changed_raw: t.changed,
        }
    }
}

/// Parses the two parts of an identifier.
pub(super) fn guid(f: &mut Fields<'_>) -> Guid {
    Guid { persistent: f.u64(), volatile: f.u64() }
}

impl Guid {
    /// The number that identifies a file: the sum of both parts.
    pub(super) fn file(self) -> u64 {
        self.persistent.wrapping_add(self.volatile)
    }
}

/// Decodes file attribute flags ([MS-FSCC] §2.6).
///
/// [MS-FSCC]: https://learn.microsoft.com/en-us/openspecs/windows_protocols/ms-fscc
pub(super) fn attributes(flags: u32) -> FileAttrs {
    let has = |bit: u32| flags & bit != 0;
    FileAttrs {
        read_only: has(0x1),
        hidden: has(0x2),
        system: has(0x4),
        directory: has(0x10),
        archive: has(0x20),
        normal: has(0x80),
        temporary: has(0x100),
        sparse_file: has(0x200),
        reparse_point: has(0x400),
        compressed: has(0x800),
        offline: has(0x1000),
        not_content_indexed: has(0x2000),
        encrypted: has(0x4000),
        integrity_stream: has(0x8000),
        no_scrub_data: has(0x0002_0000),
    }
}
