//! The packets of one connection, while more may come.

use crate::varint;

/// The packets of one connection, in order: a line of a cache, in which the last ones are.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct List {
    /// The last one, 0 if there is none: numbers begin at 1.
    last: u64,
    /// The distances from one to the next, without the last few.
    before: Vec<u8>,
    /// The position of its connection in the lists of the shard.
    pub(crate) position: u32,
    /// The number of packets.
    packets: u32,
    /// Whether some packet may complete a datagram.
    completes: bool,
    /// Bytes of the last distances.
    len: u8,
    /// The last distances.
    tail: [u8; TAIL],
}

/// The most bytes of the last distances.
const TAIL: usize = 22;
/// The most bytes of memory that the next list of a slot uses again.
const KEPT: usize = 192;
/// Bytes that may be read after the end of a list, so that the last distances are copied without a loop.
pub(crate) const AFTER: usize = TAIL;

// A list is one cache line.
const _: () = assert!(size_of::<List>() == 64);

impl List {
    /// The empty list of a connection at this position.
    pub(crate) fn new(position: u32) -> Self {
        let (before, tail) = (Vec::new(), [0; TAIL]);
        Self { last: 0, before, position, packets: 0, completes: false, len: 0, tail }
    }

    /// Begins the list of another connection.
    pub(crate) fn begin(&mut self, position: u32) {
        self.before.clear();
        if self.before.capacity() > KEPT {
            self.before = Vec::new();
        }
        (self.last, self.position) = (0, position);
        (self.packets, self.completes, self.len) = (0, false, 0);
    }

    /// A packet may complete a datagram.
    pub(crate) fn mark(&mut self) {
        self.completes = true;
    }

    pub(crate) fn is_marked(&self) -> bool {
        self.completes
    }

    /// The last packet; 0 if there is none.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// Adds a packet after all others. Returns a distance that is left to [`put`](Self::put).
    #[inline(always)]
    pub(crate) fn push(&mut self, number: u64) -> Option<u64> {
        let distance = number.wrapping_sub(self.last);
        let at = usize::from(self.len);
        // One or two bytes, as of nearly all packets: the second one is overwritten if it is none.
        if distance < 1 << 14
            && let Some(bytes) = self.tail.get_mut(at..at + 2)
        {
            // All but the lowest seven bits move by one, and the bit between says whether there are any.
            let high = distance as u16 & 0x3f80;
            let more = u16::from(high != 0);
            let both = (distance as u16 + high) | (more << 7);
            bytes.copy_from_slice(&both.to_le_bytes());
            self.last = number;
            self.len = (at + 1 + usize::from(more)) as u8;
            self.packets += 1;
            return None;
        }
        Some(distance)
    }

    /// Adds a packet at any distance. Returns the bytes of memory that the list takes in addition.
    #[inline(always)]
    pub(crate) fn put(&mut self, distance: u64) -> usize {
        let Some(number) = self.last.checked_add(distance) else { return 0 };
        let mut moved = 0;
        let (word, len) = varint::word(distance);
        if usize::from(self.len) + size_of_val(&word) > TAIL {
            moved = self.empty_tail();
        }
        let at = usize::from(self.len);
        match self.tail.get_mut(at..at + size_of_val(&word)) {
            Some(bytes) if len <= bytes.len() => {
                bytes.copy_from_slice(&word.to_le_bytes());
                self.len += len as u8;
            }
            _ => moved += self.put_long(distance),
        }
        self.last = number;
        self.packets += 1;
        moved
    }

    /// Adds the bytes of a distance that needs more than a word.
    #[cold]
    fn put_long(&mut self, distance: u64) -> usize {
        let moved = self.empty_tail();
        let begin = self.before.len();
        varint::put(&mut self.before, distance);
        moved + self.before.len() - begin
    }

    /// Appends the last distances to those before. Returns their bytes.
    #[inline(never)]
    fn empty_tail(&mut self) -> usize {
        let bytes = usize::from(self.len);
        if self.before.capacity() == 0 {
            self.before.reserve(4 * TAIL);
        }
        let end = self.before.len() + bytes;
        self.before.extend_from_slice(&self.tail);
        self.before.truncate(end);
        self.len = 0;
        bytes
    }

    /// Bytes of all distances.
    pub(crate) fn len(&self) -> usize {
        self.before.len() + usize::from(self.len)
    }

    /// The number of packets. A list of 2³² takes more memory than an index has.
    pub(crate) fn packets(&self) -> u64 {
        self.packets.into()
    }

    /// Appends all distances, with up to [`AFTER`] bytes of memory more than they take.
    pub(crate) fn append_to(&self, all: &mut Vec<u8>) {
        let end = all.len() + self.len();
        if !self.before.is_empty() {
            all.extend_from_slice(&self.before);
        }
        all.extend_from_slice(&self.tail);
        all.truncate(end);
    }

    /// Adds a packet if it comes after all others.
    pub(crate) fn add(&mut self, number: u64) {
        if number > self.last
            && let Some(distance) = self.push(number)
        {
            self.put(distance);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn lists_have_all_packets(
            lists in prop::collection::vec(
                prop::collection::vec((0..64_u32, any::<u64>()), 0..100),
                1..4,
            ),
        ) {
            let mut list = List::new(0);
            for (position, distances) in lists.into_iter().enumerate() {
                list.begin(position as u32);
                let (mut last, mut packets, mut expected) = (0_u64, 0, b"before".to_vec());
                for (shift, bits) in distances {
                    let next = last.saturating_add(bits >> shift);
                    list.add(next);
                    if next > last {
                        packets += 1;
                        varint::put(&mut expected, next - last);
                    }
                    last = next;
                }
                let mut all = b"before".to_vec();
                list.append_to(&mut all);
                prop_assert_eq!(all, expected);
                prop_assert_eq!((list.packets(), list.last()), (packets, last));
            }
        }
    }
}
