//! The packets of connections, as shards report them.

use foldhash::fast::FixedState;
use gannet_base::ConnId;
use gannet_base::Proto;
use gannet_base::Uid;
use hashbrown::HashMap;

use crate::varint;

/// The lists of one shard.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    lists: Blocks<List>,
    /// The endpoints of each connection.
    ends: Blocks<Option<(ConnId, Proto)>>,
    /// ICMP errors by packet number, with the endpoints of the quoted packet.
    pub(crate) errors: Vec<(u64, ConnId, Proto)>,
    /// Packets that complete a datagram, each with an earlier fragment.
    pub(crate) pieces: Vec<(u64, u64)>,
    /// Fragments that may be missing from their connections.
    pub(crate) forgotten: u64,
}

/// The packets of one connection, in order: a line of a cache, in which those of most connections are.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct List {
    uid: Uid,
    /// Whether some packet may complete a datagram.
    completes: bool,
    /// The last one, 0 if there is none: numbers begin at 1.
    last: u64,
    /// Bytes of the distances.
    len: u32,
    /// The distances from one to the next.
    distances: Distances,
}

#[derive(Debug)]
enum Distances {
    Few([u8; FEW]),
    Many(Box<[u8]>),
}

/// Bytes in a list itself.
const FEW: usize = 31;
/// Bytes of the first block of others.
const MANY: usize = 128;

// A list is one cache line.
const _: () = assert!(size_of::<List>() == 64);

/// Values that do not move when others come.
#[derive(Debug)]
struct Blocks<T>(Vec<Vec<T>>);

/// Values of a block.
const VALUES: usize = 1 << 10;

impl<T> Default for Blocks<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Blocks<T> {
    fn len(&self) -> usize {
        self.0.last().map_or(0, |last| (self.0.len() - 1) * VALUES + last.len())
    }

    fn get(&self, at: usize) -> Option<&T> {
        self.0.get(at / VALUES)?.get(at % VALUES)
    }

    fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        self.0.get_mut(at / VALUES)?.get_mut(at % VALUES)
    }

    fn push(&mut self, value: T) {
        match self.0.last_mut() {
            Some(last) if last.len() < VALUES => last.push(value),
            _ => {
                let mut block = Vec::with_capacity(VALUES);
                block.push(value);
                self.0.push(block);
            }
        }
    }

    fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().flatten()
    }

    fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.iter_mut().flatten()
    }
}

impl Lists {
    /// Bytes of memory of a connection without packets.
    pub(crate) const BYTES: usize = size_of::<List>() + size_of::<Option<(ConnId, Proto)>>();

    /// Begins a list, of a connection if it has `ends`. Returns its place. Fewer than 2³² fit into an index.
    pub(crate) fn begin(&mut self, uid: Uid, ends: Option<(ConnId, Proto)>) -> u32 {
        let place = self.lists.len() as u32;
        self.lists.push(List::new(uid));
        self.ends.push(ends);
        place
    }

    #[inline]
    pub(crate) fn at(&mut self, place: u32) -> Option<&mut List> {
        self.lists.get_mut(place as usize)
    }

    /// Those with packets.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &List> {
        self.lists.iter().filter(|list| !list.is_empty())
    }
}

/// Adds fragments to the lists with packets that complete their datagrams.
pub(crate) fn add_pieces(shards: &mut [Lists]) {
    // In another shard, too.
    let mut pieces: Vec<_> =
        shards.iter_mut().flat_map(|shard| std::mem::take(&mut shard.pieces)).collect();
    if pieces.is_empty() {
        return;
    }
    pieces.sort_unstable();
    let lists = shards.iter_mut().flat_map(|shard| shard.lists.iter_mut());
    for list in lists.filter(|list| list.completes) {
        let first = list.first();
        let from = pieces.partition_point(|(of, _)| *of < first);
        let (mut more, mut rest) =
            (Vec::new(), pieces.get(from..).unwrap_or_default().iter().peekable());
        for number in list.numbers() {
            while let Some((of, piece)) = rest.next_if(|(of, _)| *of <= number) {
                more.extend((*of == number).then_some(*piece));
            }
            if rest.peek().is_none() {
                break;
            }
        }
        if !more.is_empty() {
            list.extend(more);
        }
    }
}

/// Adds ICMP errors to the connections of the packets that they quote.
pub(crate) fn add_errors(shards: &mut [Lists]) {
    let errors: Vec<_> =
        shards.iter_mut().flat_map(|shard| std::mem::take(&mut shard.errors)).collect();
    // Only the ends that errors name; most have other ports.
    let ports = |id: &ConnId| usize::from(id.orig_p ^ id.resp_p);
    let mut is_named = vec![false; 1 << 16];
    errors.iter().for_each(|(_, id, _)| is_named[ports(id)] = true);
    let mut by_ends: HashMap<(ConnId, Proto), Vec<(usize, usize)>, FixedState> = HashMap::default();
    for (_, id, proto) in &errors {
        by_ends.entry((ordered(*id), *proto)).or_default();
    }
    if by_ends.is_empty() {
        return;
    }
    for (shard, lists) in shards.iter().enumerate() {
        for (at, ends) in lists.ends.iter().enumerate() {
            let Some((id, proto)) = ends.as_ref().filter(|(id, _)| is_named[ports(id)]) else {
                continue;
            };
            if let Some(known) = by_ends.get_mut(&(ordered(*id), *proto)) {
                known.push((shard, at));
            }
        }
    }
    let list_at = |(shard, at): (usize, usize)| shards.get(shard)?.lists.get(at);
    let mut more: HashMap<(usize, usize), Vec<u64>> = HashMap::new();
    for (number, id, proto) in &errors {
        // Of the connections between these ends, the last that began before.
        let known = by_ends.get(&(ordered(*id), *proto)).into_iter().flatten();
        let began = known.filter_map(|at| {
            let list = list_at(*at).filter(|list| !list.is_empty())?;
            Some((list.first(), list.uid, *at))
        });
        let about = began.filter(|(first, ..)| first < number).max();
        if let Some((.., at)) = about {
            more.entry(at).or_default().push(*number);
        }
    }
    for ((shard, at), numbers) in more {
        if let Some(list) = shards.get_mut(shard).and_then(|lists| lists.lists.get_mut(at)) {
            list.extend(numbers);
        }
    }
}

impl List {
    pub(crate) fn new(uid: Uid) -> Self {
        let distances = Distances::Few([0; FEW]);
        Self { uid, completes: false, last: 0, len: 0, distances }
    }

    pub(crate) fn uid(&self) -> Uid {
        self.uid
    }

    /// A packet may complete a datagram.
    pub(crate) fn mark(&mut self) {
        self.completes = true;
    }

    fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many there are.
    pub(crate) fn packets(&self) -> u64 {
        // The last byte of each distance, whose highest bit is 0; eight bytes at a time.
        const ONES: u64 = u64::MAX / 0xff;
        let (words, rest) = self.bytes().as_chunks::<8>();
        let of_word =
            |word: &[u8; 8]| (!u64::from_le_bytes(*word) >> 7 & ONES).wrapping_mul(ONES) >> 56;
        let of_rest = rest.iter().filter(|byte| **byte < 0x80).count();
        words.iter().map(of_word).sum::<u64>() + of_rest as u64
    }

    /// A packet after all others, or the last one again. Returns a distance that is left to [`put`](Self::put).
    #[inline(always)]
    pub(crate) fn push(&mut self, number: u64) -> Option<u64> {
        if number <= self.last {
            return None;
        }
        let distance = number - self.last;
        self.last = number;
        let at = self.len as usize;
        let bytes = match &mut self.distances {
            Distances::Few(bytes) => &mut bytes[..],
            Distances::Many(bytes) => &mut bytes[..],
        };
        // One or two bytes, as of nearly all packets: the second one is overwritten if it is none.
        if distance < 1 << 14
            && let Some(bytes) = bytes.get_mut(at..at + 2)
        {
            let more = u16::from(distance >= 1 << 7);
            let both = distance as u16 & 0x7f | more << 7 | (distance as u16 >> 7) << 8;
            bytes.copy_from_slice(&both.to_le_bytes());
            self.len = at as u32 + 1 + u32::from(more);
            return None;
        }
        Some(distance)
    }

    /// Appends any distance. Returns the bytes of memory that the list takes in addition.
    pub(crate) fn put(&mut self, distance: u64) -> usize {
        let (at, more) = (self.len as usize, varint::len(distance));
        self.len += more as u32;
        let (bytes, before) = match &mut self.distances {
            Distances::Few(bytes) => (&mut bytes[..], 0),
            Distances::Many(bytes) => {
                let before = bytes.len();
                (&mut bytes[..], before)
            }
        };
        if let Some(bytes) = bytes.get_mut(at..at + more) {
            varint::write(bytes, distance);
            return 0;
        }
        let after = MANY.max(2 * before);
        let mut larger = Vec::with_capacity(after);
        larger.extend_from_slice(&bytes[..at]);
        varint::put(&mut larger, distance);
        larger.resize(after, 0);
        self.distances = Distances::Many(larger.into_boxed_slice());
        after - before
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        let bytes = match &self.distances {
            Distances::Few(bytes) => &bytes[..],
            Distances::Many(bytes) => bytes,
        };
        bytes.get(..self.len as usize).unwrap_or_default()
    }

    /// The first packet; 0 if there is none.
    pub(crate) fn first(&self) -> u64 {
        varint::take(&mut self.bytes()).unwrap_or_default()
    }

    pub(crate) fn numbers(&self) -> impl Iterator<Item = u64> {
        let (mut rest, mut last) = (self.bytes(), 0);
        std::iter::from_fn(move || {
            last += varint::take(&mut rest)?;
            Some(last)
        })
    }

    /// Appends a packet, as [`push`](Self::push) does.
    pub(crate) fn add(&mut self, number: u64) {
        if let Some(distance) = self.push(number) {
            self.put(distance);
        }
    }

    /// More packets, in any order.
    fn extend(&mut self, more: impl IntoIterator<Item = u64>) {
        let mut numbers: Vec<_> = self.numbers().chain(more).collect();
        numbers.sort_unstable();
        *self = Self::new(self.uid);
        numbers.into_iter().for_each(|number| self.add(number));
    }
}

/// The same for both directions.
fn ordered(id: ConnId) -> ConnId {
    let flipped = id.flipped();
    if (id.orig_h, id.orig_p) <= (flipped.orig_h, flipped.orig_p) { id } else { flipped }
}

#[cfg(test)]
mod tests {
    use gannet_base::UidSource;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn lists_return_their_packets(
            distances in prop::collection::vec((0..64_u32, any::<u64>()), 0..100),
        ) {
            let mut list = List::new(UidSource::new(0).connection(0, 0));
            let (mut last, mut expected, mut encoded) = (0_u64, Vec::new(), Vec::new());
            for (shift, bits) in distances {
                let next = last.saturating_add(bits >> shift);
                list.add(next);
                if next > last {
                    expected.push(next);
                    varint::put(&mut encoded, next - last);
                }
                last = next;
            }
            prop_assert_eq!(list.bytes(), &encoded);
            prop_assert_eq!(list.packets(), expected.len() as u64);
            prop_assert_eq!(list.first(), expected.first().copied().unwrap_or_default());
            prop_assert_eq!(list.numbers().collect::<Vec<_>>(), expected);
        }
    }
}
