//! The packet list of one connection, while packets are added.

use crate::varint;

/// The packet numbers of one connection, delta-encoded. The struct is one cache line, which holds the last deltas.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct List {
    /// Number of the last packet, 0 if there is none: numbers begin at 1.
    last: u64,
    /// Encoded distances from one number to the next, without those in `tail`.
    encoded: Vec<u8>,
    /// Position of the connection in the lists of the shard.
    pub(crate) position: u32,
    /// Number of packets.
    packets: u32,
    /// Whether some packet may complete a datagram.
    is_marked: bool,
    /// Number of bytes used in `tail`.
    tail_len: u8,
    /// The last encoded distances.
    tail: [u8; MAX_TAIL],
}

/// Capacity of the tail, in bytes.
const MAX_TAIL: usize = 22;
/// Maximum capacity of a buffer that the next list of a slot reuses, in bytes.
const MAX_REUSED: usize = 192;
/// Number of bytes that are copied after the end of a list, so that the tail is copied without a loop.
pub(crate) const PADDING: usize = MAX_TAIL;

// A list is one cache line.
const _: () = assert!(size_of::<List>() == 64);

impl List {
    /// The empty list of the connection at `position`.
    pub(crate) fn new(position: u32) -> Self {
        let (encoded, tail) = (Vec::new(), [0; MAX_TAIL]);
        Self { last: 0, encoded, position, packets: 0, is_marked: false, tail_len: 0, tail }
    }

    /// Clears the list for another connection.
    pub(crate) fn begin(&mut self, position: u32) {
        self.encoded.clear();
        if self.encoded.capacity() > MAX_REUSED {
            self.encoded = Vec::new();
        }
        (self.last, self.position) = (0, position);
        (self.packets, self.is_marked, self.tail_len) = (0, false, 0);
    }

    /// Records that a packet may complete a datagram.
    pub(crate) fn mark(&mut self) {
        self.is_marked = true;
    }

    pub(crate) fn is_marked(&self) -> bool {
        self.is_marked
    }

    /// Number of the last packet; 0 if there is none.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// Appends a packet. Returns its distance if [`push_distance`](Self::push_distance) has to append it.
    #[inline(always)]
    pub(crate) fn push(&mut self, number: u64) -> Option<u64> {
        let distance = number.wrapping_sub(self.last);
        let at = usize::from(self.tail_len);
        // Nearly all distances take one or two bytes. Both are written; the next distance overwrites an unused second
        // one.
        if distance < 1 << 14
            && let Some(bytes) = self.tail.get_mut(at..at + 2)
        {
            // Shift all but the lowest seven bits by one; the bit between is the continuation bit.
            let high = distance as u16 & 0x3f80;
            let more = u16::from(high != 0);
            let both = (distance as u16 + high) | (more << 7);
            bytes.copy_from_slice(&both.to_le_bytes());
            self.last = number;
            self.tail_len = (at + 1 + usize::from(more)) as u8;
            self.packets += 1;
            return None;
        }
        Some(distance)
    }

    /// Appends a packet at any distance. Returns the additional memory of the list, in bytes.
    #[inline(always)]
    pub(crate) fn push_distance(&mut self, distance: u64) -> usize {
        let Some(number) = self.last.checked_add(distance) else { return 0 };
        let mut moved = 0;
        let (word, len) = varint::encode_word(distance);
        if usize::from(self.tail_len) + size_of_val(&word) > MAX_TAIL {
            moved = self.flush_tail();
        }
        let at = usize::from(self.tail_len);
        match self.tail.get_mut(at..at + size_of_val(&word)) {
            Some(bytes) if len <= bytes.len() => {
                bytes.copy_from_slice(&word.to_le_bytes());
                self.tail_len += len as u8;
            }
            _ => moved += self.push_long_distance(distance),
        }
        self.last = number;
        self.packets += 1;
        moved
    }

    /// Appends a distance whose encoding is longer than a word.
    #[cold]
    fn push_long_distance(&mut self, distance: u64) -> usize {
        let moved = self.flush_tail();
        let begin = self.encoded.len();
        varint::append(&mut self.encoded, distance);
        moved + self.encoded.len() - begin
    }

    /// Moves the tail to the encoded distances. Returns its number of bytes.
    #[inline(never)]
    fn flush_tail(&mut self) -> usize {
        let bytes = usize::from(self.tail_len);
        if self.encoded.capacity() == 0 {
            self.encoded.reserve(4 * MAX_TAIL);
        }
        let end = self.encoded.len() + bytes;
        self.encoded.extend_from_slice(&self.tail);
        self.encoded.truncate(end);
        self.tail_len = 0;
        bytes
    }

    /// Size of all encoded distances, in bytes.
    pub(crate) fn len(&self) -> usize {
        self.encoded.len() + usize::from(self.tail_len)
    }

    /// Number of packets. The memory limit of an index allows fewer than 2³².
    pub(crate) fn packets(&self) -> u64 {
        self.packets.into()
    }

    /// Appends all encoded distances to `all`, whose capacity grows by up to [`PADDING`] bytes more.
    pub(crate) fn append_to(&self, all: &mut Vec<u8>) {
        let end = all.len() + self.len();
        if !self.encoded.is_empty() {
            all.extend_from_slice(&self.encoded);
        }
        all.extend_from_slice(&self.tail);
        all.truncate(end);
    }

    /// Appends a packet if its number is above all others.
    pub(crate) fn add(&mut self, number: u64) {
        if number > self.last
            && let Some(distance) = self.push(number)
        {
            self.push_distance(distance);
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
                        varint::append(&mut expected, next - last);
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
