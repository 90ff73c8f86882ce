//! Packets of several rings in the order of their times.
//!
//! A ring gives its packets away a block at a time, up to the time that the kernel waits for a block to become full. A
//! packet may go on once no ring can still have an earlier one: that is known of a ring with pending packets, and
//! assumed of one without after a *window*.

use gannet_base::Interval;
use gannet_base::Time;
use gannet_capture::Bytes;
use gannet_capture::Record;

use crate::ring::Block;

/// How long a ring may keep a packet back: the kernel gives blocks away after ten milliseconds, late when it is busy.
pub(crate) const WINDOW: Interval = Interval::from_millis(30);

/// The pending packets of a ring, and which of them is next.
#[derive(Debug, Default)]
pub(crate) struct Lane {
    pub(crate) block: Block,
    pub(crate) at: usize,
}

impl Lane {
    fn head(&self) -> Option<&Record> {
        self.block.records.get(self.at)
    }

    /// Whether all of its packets have been merged.
    pub(crate) fn is_empty(&self) -> bool {
        self.head().is_none()
    }
}

/// Bytes of one merged batch, at the most.
const MOST_BYTES: usize = 1 << 20;

/// Merges packets of all lanes in the order of their times, as many as fit into a batch. `now` is the time of the
/// kernel's clock. Returns their bytes; `records` gets where they lie.
pub(crate) fn merge(
    lanes: &mut [Lane],
    now: Time,
    most: usize,
    records: &mut Vec<Record>,
) -> Bytes {
    records.clear();
    let mut bytes: Vec<u8> = Vec::new();
    let waits = lanes.iter().any(Lane::is_empty);
    let limit = if waits { now - WINDOW } else { Time::MAX };
    while records.len() < most && bytes.len() < MOST_BYTES {
        let next = lanes.iter_mut().filter_map(|lane| Some((lane.head()?.time, lane)));
        let Some((time, lane)) = next.min_by_key(|(time, _)| *time) else { break };
        if time > limit {
            break;
        }
        let Some(record) = lane.head().copied() else { break };
        let (start, len) = (record.offset as usize, record.cap_len as usize);
        records.push(Record { offset: bytes.len() as u32, ..record });
        bytes.extend_from_slice(lane.block.bytes.get(start..start + len).unwrap_or_default());
        lane.at += 1;
        if lane.is_empty() {
            // The kernel gets the block back, and its next one may be there.
            lane.block.bytes = Bytes::default();
            if !waits {
                break;
            }
        }
    }
    Bytes::from(bytes)
}

#[cfg(test)]
mod tests {
    use gannet_capture::LinkType;

    use super::*;

    fn lane(times: &[i64]) -> Lane {
        let record = |(n, time): (usize, &i64)| Record {
            time: Time::from_nanos(time * 1_000_000),
            offset: n as u32,
            cap_len: 1,
            wire_len: 1,
            link_type: LinkType::ETHERNET,
            interface: 0,
        };
        let bytes = Bytes::from(times.iter().map(|t| *t as u8).collect::<Vec<_>>());
        let records = times.iter().enumerate().map(record).collect();
        Lane { block: Block { bytes, records }, at: 0 }
    }

    fn merged(lanes: &mut [Lane], now: i64) -> Vec<u8> {
        let mut records = Vec::new();
        let bytes = merge(lanes, Time::from_nanos(now * 1_000_000), 100, &mut records);
        records.iter().map(|r| bytes[r.offset as usize]).collect()
    }

    #[test]
    fn packets_go_on_when_none_can_come_before() {
        let mut lanes = [lane(&[1, 4, 5]), lane(&[2, 3, 9])];
        // The first lane is empty after 5: a packet of its next block may be before 9.
        assert_eq!(merged(&mut lanes, 10), [1, 2, 3, 4, 5]);
        assert_eq!(merged(&mut lanes, 10), []);
        assert_eq!(merged(&mut lanes, 38), []);
        assert_eq!(merged(&mut lanes, 39), [9]);
        assert_eq!(merged(&mut lanes, 1_000), []);
    }
}
