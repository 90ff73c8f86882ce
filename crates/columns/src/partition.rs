//! Partitioning of logs into files by time.

use std::fmt::Write;

/// How the rows of a log are partitioned into files by their times, in UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Partition {
    /// One file per log.
    #[default]
    None,
    /// One folder per day: `conn/day=2026-11-21/part-0000.parquet`.
    Day,
    /// One folder per hour: `conn/day=2026-11-21/hour=08/part-0000.parquet`.
    Hour,
}

impl Partition {
    /// The part that a time in nanoseconds belongs to: the number of days or hours since 1970, `i64::MIN` without a
    /// time.
    pub(crate) fn part(self, ns: Option<i64>) -> i64 {
        const HOUR: i64 = 3_600_000_000_000;
        match (self, ns) {
            (Self::None, _) => 0,
            (_, None) => i64::MIN,
            (Self::Day, Some(ns)) => ns.div_euclid(24 * HOUR),
            (Self::Hour, Some(ns)) => ns.div_euclid(HOUR),
        }
    }

    /// The folder of a part, named as Hive partitions are.
    pub(crate) fn folder(self, part: i64) -> String {
        // Hive's name for null.
        const NONE: &str = "__HIVE_DEFAULT_PARTITION__";
        let (days, hour) = match self {
            Self::None => return String::new(),
            Self::Day => (part, None),
            Self::Hour => (part.div_euclid(24), Some(part.rem_euclid(24))),
        };
        let mut out = String::from("day=");
        if part == i64::MIN {
            out.push_str(NONE);
        } else {
            let (year, month, day) = gannet_log::civil(days);
            let _ = write!(out, "{year:04}-{month:02}-{day:02}");
        }
        match hour {
            Some(_) if part == i64::MIN => out + "/hour=" + NONE,
            Some(hour) => {
                let _ = write!(out, "/hour={hour:02}");
                out
            }
            None => out,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_days_and_hours() {
        let time = Some(1_795_424_399_999_999_999);
        let folder = |partition: Partition, time| partition.folder(partition.part(time));
        assert_eq!(folder(Partition::None, time), "");
        assert_eq!(folder(Partition::Day, time), "day=2026-11-23");
        assert_eq!(folder(Partition::Hour, time), "day=2026-11-23/hour=08");
        assert_eq!(folder(Partition::Hour, Some(-1)), "day=1969-12-31/hour=23");
        assert_eq!(folder(Partition::Day, None), "day=__HIVE_DEFAULT_PARTITION__");
    }
}
