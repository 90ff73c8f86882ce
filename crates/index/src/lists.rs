//! The packets of connections, as shards report them.

use foldhash::fast::FixedState;
use gannet_base::Addr;
use gannet_base::ConnId;
use gannet_base::Proto;
use hashbrown::HashMap;

use crate::list::List;
use crate::records::RecordPosition;
use crate::records::Records;
use crate::records::first;
use crate::records::numbers;

/// The lists of one shard.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    lists: Blocks<Listed>,
    records: Records,
    /// Lists with a packet that may complete a datagram, with their last packets.
    completing: Vec<(u32, u64)>,
    /// ICMP errors by packet number, with the endpoints of the quoted packet.
    pub(crate) errors: Vec<(u64, ConnId, Proto)>,
    /// Packets that complete a datagram, each with an earlier fragment.
    pub(crate) pieces: Vec<(u64, u64)>,
    /// Fragments that may be missing from their connections.
    pub(crate) forgotten: u64,
}

/// A connection or a tunnel without one.
#[derive(Debug)]
struct Listed {
    /// The key of its uid.
    key: u64,
    /// The record of its packets, once its list has ended.
    place: RecordPosition,
    ends: Ends,
}

/// The endpoints of a connection.
#[derive(Debug)]
pub(crate) enum Ends {
    /// Those of a tunnel without a connection.
    None,
    V4 {
        hosts: [[u8; 4]; 2],
        ports: [u16; 2],
        proto: Proto,
    },
    V6(Box<(ConnId, Proto)>),
}

// Each connection of a capture has one.
const _: () = assert!(size_of::<Listed>() == 32);

impl Ends {
    pub(crate) fn new(id: ConnId, proto: Proto) -> Self {
        match (id.orig_h.as_v4(), id.resp_h.as_v4()) {
            (Some(orig), Some(resp)) => {
                Self::V4 { hosts: [orig, resp], ports: [id.orig_p, id.resp_p], proto }
            }
            _ => Self::V6(Box::new((id, proto))),
        }
    }

    fn get(&self) -> Option<(ConnId, Proto)> {
        match self {
            Self::None => None,
            Self::V4 { hosts: [orig, resp], ports: [orig_p, resp_p], proto } => {
                let (orig_h, resp_h) = (Addr::v4(*orig), Addr::v4(*resp));
                Some((ConnId { orig_h, orig_p: *orig_p, resp_h, resp_p: *resp_p }, *proto))
            }
            Self::V6(ends) => Some(**ends),
        }
    }

    fn ports(&self) -> Option<[u16; 2]> {
        match self {
            Self::None => None,
            Self::V4 { ports, .. } => Some(*ports),
            Self::V6(ends) => Some([ends.0.orig_p, ends.0.resp_p]),
        }
    }
}

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

    fn iter(&self) -> impl Iterator<Item = &T> + Clone {
        self.0.iter().flatten()
    }
}

impl Lists {
    /// Bytes of memory of a connection with few packets.
    pub(crate) const BYTES: usize = size_of::<List>() + size_of::<Listed>();

    /// Begins the list of a connection or tunnel. Returns its position. Fewer than 2³² fit into an index.
    pub(crate) fn begin(&mut self, key: u64, ends: Ends) -> u32 {
        let position = self.lists.len() as u32;
        self.lists.push(Listed { key, place: RecordPosition::default(), ends });
        position
    }

    /// Stores the packets of a list that has ended.
    pub(crate) fn end(&mut self, list: &List) {
        if list.is_marked() {
            self.completing.push((list.position, list.last()));
        }
        self.set(list.position, list);
    }

    fn set(&mut self, position: u32, list: &List) {
        if let Some(listed) = self.lists.get_mut(position as usize) {
            listed.place = self.records.add(list);
        }
    }

    fn record(&self, position: u32) -> &[u8] {
        let listed = self.lists.get(position as usize);
        listed.map(|listed| self.records.at(listed.place)).unwrap_or_default()
    }

    /// The keys of lists with packets, and their records.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, RecordPosition)> + Clone {
        let lists = self.lists.iter().filter(|listed| !listed.place.is_none());
        lists.map(|listed| (listed.key, listed.place))
    }

    /// The most that [`iter`](Self::iter) returns.
    pub(crate) fn len(&self) -> usize {
        self.lists.len()
    }

    pub(crate) fn chunks(&self) -> impl Iterator<Item = &[u8]> {
        self.records.chunks()
    }

    /// Adds more packets to a list that has ended, in any order.
    fn extend(&mut self, position: u32, more: impl IntoIterator<Item = u64>) {
        let mut all: Vec<_> = numbers(self.record(position)).chain(more).collect();
        // Two parts that are sorted are merged.
        all.sort();
        let mut list = List::new(position);
        all.into_iter().for_each(|number| list.add(number));
        self.set(position, &list);
    }

    /// The packets of each list.
    #[cfg(test)]
    pub(crate) fn packets(&self) -> Vec<Vec<u64>> {
        self.iter().map(|(_, place)| numbers(self.records.at(place)).collect()).collect()
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
    for shard in shards {
        for (position, last) in std::mem::take(&mut shard.completing) {
            let record = shard.record(position);
            let first = first(record);
            let from = pieces.partition_point(|(of, _)| *of < first);
            let mut rest = pieces.get(from..).unwrap_or_default().iter().peekable();
            if rest.peek().is_none_or(|(of, _)| *of > last) {
                continue;
            }
            let mut more = Vec::new();
            for number in numbers(record) {
                while let Some((of, piece)) = rest.next_if(|(of, _)| *of <= number) {
                    more.extend((*of == number).then_some(*piece));
                }
                if rest.peek().is_none() {
                    break;
                }
            }
            if !more.is_empty() {
                shard.extend(position, more);
            }
        }
    }
}

/// Adds ICMP errors to the connections of the packets that they quote.
pub(crate) fn add_errors(shards: &mut [Lists]) {
    let errors: Vec<_> =
        shards.iter_mut().flat_map(|shard| std::mem::take(&mut shard.errors)).collect();
    if errors.is_empty() {
        return;
    }
    // Only the ends that errors name; most have other ports.
    let named = |[a, b]: [u16; 2]| usize::from(a ^ b);
    let mut is_named = vec![false; 1 << 16];
    let mut by_ends: HashMap<(ConnId, Proto), Vec<(usize, u32)>, FixedState> = HashMap::default();
    for (_, id, proto) in &errors {
        is_named[named([id.orig_p, id.resp_p])] = true;
        by_ends.entry((ordered(*id), *proto)).or_default();
    }
    for (shard, lists) in shards.iter().enumerate() {
        for (position, listed) in lists.lists.iter().enumerate() {
            if listed.ends.ports().is_some_and(|ports| is_named[named(ports)])
                && let Some((id, proto)) = listed.ends.get()
                && let Some(known) = by_ends.get_mut(&(ordered(id), proto))
            {
                known.push((shard, position as u32));
            }
        }
    }
    let mut more: HashMap<(usize, u32), Vec<u64>> = HashMap::new();
    for (number, id, proto) in &errors {
        // Of the connections between these ends, the last that began before.
        let known = by_ends.get(&(ordered(*id), *proto)).into_iter().flatten();
        let began = known.filter_map(|(shard, position)| {
            let (lists, at) = (shards.get(*shard)?, *position as usize);
            let listed = lists.lists.get(at).filter(|listed| !listed.place.is_none())?;
            Some((first(lists.records.at(listed.place)), listed.key, (*shard, *position)))
        });
        let about = began.filter(|(first, ..)| first < number).max();
        if let Some((.., at)) = about {
            more.entry(at).or_default().push(*number);
        }
    }
    for ((shard, position), numbers) in more {
        if let Some(lists) = shards.get_mut(shard) {
            lists.extend(position, numbers);
        }
    }
}

/// The same for both directions.
fn ordered(id: ConnId) -> ConnId {
    let flipped = id.flipped();
    if (id.orig_h, id.orig_p) <= (flipped.orig_h, flipped.orig_p) { id } else { flipped }
}
