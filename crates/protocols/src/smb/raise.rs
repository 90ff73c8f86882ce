//! Values that events of both versions carry.

use gannet_base::Time;

use super::cursor::Fields;
use super::events::FileAttrs;
use super::events::Guid;
use super::events::MacTimes;
use super::info::Times;

/// A time that counts units of 100 ns since 1601, as a double of seconds has it, at the nearest microsecond. One that
/// is too far away becomes the latest or earliest possible.
pub(super) fn time(filetime: u64) -> Time {
    let seconds = filetime as f64 / 10_000_000.0 - 11_644_473_600.0;
    let whole = seconds.floor();
    let micros = ((seconds - whole) * 1e6).round() as i64;
    Time::from_nanos((whole as i64).saturating_mul(1_000_000_000).saturating_add(micros * 1_000))
}

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

/// Reads the two parts of an identifier.
pub(super) fn guid(f: &mut Fields<'_>) -> Guid {
    Guid { persistent: f.u64(), volatile: f.u64() }
}

impl Guid {
    /// The number by which a file is known: the sum of both parts.
    pub(super) fn file(self) -> u64 {
        self.persistent.wrapping_add(self.volatile)
    }
}

/// Attributes by their flags ([MS-FSCC] §2.6).
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_begin_in_1601() {
        assert_eq!(time(131_940_000_000_000_000), Time::from_secs(1_549_526_400));
        // A double has 0.2826538 s here, which is nearer to 0.282654 than to 0.282653.
        let nanos = 1_584_367_250_282_654_000;
        assert_eq!(time(132_288_408_502_826_547), Time::from_nanos(nanos));
        assert!(time(0) < Time::ZERO && time(u64::MAX) > Time::from_secs(9_000_000_000));
    }
}
