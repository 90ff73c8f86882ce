//! Batches of packets that do not come from a file: packets of a capture ring.

use gannet_base::Time;

use crate::Batch;
use crate::Bytes;
use crate::LinkType;
use crate::packet::PacketRef;
use crate::shared::Pool;
use crate::shared::Refs;

/// Position of a packet in the bytes of its batch, with its metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Capture time.
    pub time: Time,
    /// Offset of its data in the bytes of the batch.
    pub offset: u32,
    /// Number of captured bytes.
    pub cap_len: u32,
    /// Number of bytes on the wire.
    pub wire_len: u32,
    /// Link type of its data.
    pub link_type: LinkType,
    /// Index of its interface, below 16,384.
    pub interface: u16,
}

/// Collects the records of a batch in one buffer. The memory of the record list is reused.
#[derive(Debug, Default)]
pub struct Gathered {
    refs: Refs,
    spare: Pool<Refs>,
    bytes: Bytes,
    first: u64,
}

/// The bits of an interface index.
const INTERFACE: u16 = (1 << 14) - 1;

impl Gathered {
    /// Begins a batch whose packets are in `bytes`; its first packet has the number `first`.
    pub fn begin(&mut self, bytes: Bytes, first: u64) {
        self.spare.exchange(&mut self.refs);
        if let Some(refs) = self.refs.own() {
            refs.clear();
        }
        self.bytes = bytes;
        self.first = first;
    }

    /// Adds a packet. Its data is empty if it exceeds the bytes of the batch.
    #[inline]
    pub fn push(&mut self, record: &Record) {
        let end = u64::from(record.offset) + u64::from(record.cap_len);
        let is_inside = end <= self.bytes.len() as u64;
        if let Some(refs) = self.refs.own() {
            refs.push(PacketRef {
                time: record.time.as_nanos(),
                offset: if is_inside { record.offset } else { 0 },
                cap_len: if is_inside { record.cap_len } else { 0 },
                wire_len: record.wire_len,
                link_type: record.link_type.0,
                origin: record.interface & INTERFACE,
            });
        }
    }

    /// The batch.
    pub fn batch(&self) -> Batch<'_> {
        Batch::new(&self.refs, &self.bytes, &self.bytes, self.first)
    }

    /// Drops the bytes of the batch.
    pub fn clear(&mut self) {
        self.begin(Bytes::default(), 0);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;
    use std::sync::atomic::Ordering;

    use super::*;
    use crate::OwnedBatch;

    /// A buffer that records its release.
    #[derive(Debug)]
    struct Block(Vec<u8>, Arc<AtomicBool>);

    impl AsRef<[u8]> for Block {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }

    impl Drop for Block {
        fn drop(&mut self) {
            self.1.store(true, Ordering::Relaxed);
        }
    }

    #[test]
    fn memory_is_released_when_its_last_reader_is_done() {
        let released = Arc::new(AtomicBool::new(false));
        let block: Box<dyn crate::Owner> =
            Box::new(Block((0..100).collect(), Arc::clone(&released)));
        let mut gathered = Gathered::default();
        gathered.begin(Bytes::from(block), 7);
        let record = |offset, cap_len| Record {
            time: Time::from_secs(i64::from(offset)),
            offset,
            cap_len,
            wire_len: cap_len,
            link_type: LinkType::ETHERNET,
            interface: 3,
        };
        [record(10, 5), record(20, 80), record(21, 80)].iter().for_each(|r| gathered.push(r));
        let batch = gathered.batch();
        let found: Vec<_> =
            batch.iter().map(|p| (p.number, p.interface, p.data.first().copied())).collect();
        assert_eq!(found, [(7, 3, Some(10)), (8, 3, Some(20)), (9, 3, None)], "beyond the end");
        let mut kept = OwnedBatch::default();
        kept.keep(&batch);
        gathered.clear();
        assert!(!released.load(Ordering::Relaxed) && gathered.batch().is_empty());
        assert_eq!(kept.batch().len(), 3);
        kept.clear();
        assert!(released.load(Ordering::Relaxed));
    }
}
