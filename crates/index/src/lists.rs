//! Packet lists of the connections of a shard.

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

/// The packet lists of one shard.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    lists: Blocks<Listed>,
    records: Records,
    /// Lists with a packet that may complete a datagram, and the last packet of each.
    completing: Vec<(u32, u64)>,
    /// ICMP errors by packet number, with the endpoints of the quoted packet.
    pub(crate) errors: Vec<(u64, ConnId, Proto)>,
    /// Pairs of a packet that completes a datagram and an earlier fragment of it.
    pub(crate) fragments: Vec<(u64, u64)>,
    /// Number of fragments that may be missing from their connections.
    pub(crate) forgotten: u64,
}

/// The list of a connection, or of a tunnel without a connection.
#[derive(Debug)]
struct Listed {
    /// Hash of the uid.
    key: u64,
    /// Position of its record; set when the list has ended.
    record_position: RecordPosition,
    endpoints: Endpoints,
}

/// The endpoints of a connection.
#[derive(Debug)]
pub(crate) enum Endpoints {
    /// A tunnel without a connection.
    None,
    V4 {
        hosts: [[u8; 4]; 2],
        ports: [u16; 2],
        proto: Proto,
    },
    V6(Box<(ConnId, Proto)>),
}

// Each connection of a capture has one, so it must be small.
const _: () = assert!(size_of::<Listed>() == 32);

impl Endpoints {
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
            Self::V6(endpoints) => Some(**endpoints),
        }
    }

    fn ports(&self) -> Option<[u16; 2]> {
        match self {
            Self::None => None,
            Self::V4 { ports, .. } => Some(*ports),
            Self::V6(endpoints) => Some([endpoints.0.orig_p, endpoints.0.resp_p]),
        }
    }
}

/// A vector in blocks of fixed length: values do not move when it grows.
#[derive(Debug)]
struct Blocks<T>(Vec<Vec<T>>);

/// Number of values in a block.
const BLOCK_LEN: usize = 1 << 10;

impl<T> Default for Blocks<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Blocks<T> {
    fn len(&self) -> usize {
        self.0.last().map_or(0, |last| (self.0.len() - 1) * BLOCK_LEN + last.len())
    }

    fn get(&self, at: usize) -> Option<&T> {
        self.0.get(at / BLOCK_LEN)?.get(at % BLOCK_LEN)
    }

    fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        self.0.get_mut(at / BLOCK_LEN)?.get_mut(at % BLOCK_LEN)
    }

    fn push(&mut self, value: T) {
        match self.0.last_mut() {
            Some(last) if last.len() < BLOCK_LEN => last.push(value),
            _ => {
                let mut block = Vec::with_capacity(BLOCK_LEN);
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
    /// Memory of a connection with few packets, in bytes.
    pub(crate) const BYTES: usize = size_of::<List>() + size_of::<Listed>();

    /// Begins the list of a connection or tunnel and returns its position. The memory limit allows fewer than 2³²
    /// lists.
    pub(crate) fn begin(&mut self, key: u64, endpoints: Endpoints) -> u32 {
        let position = self.lists.len() as u32;
        self.lists.push(Listed { key, record_position: RecordPosition::default(), endpoints });
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
            listed.record_position = self.records.add(list);
        }
    }

    fn record(&self, position: u32) -> &[u8] {
        let listed = self.lists.get(position as usize);
        listed.map(|listed| self.records.at(listed.record_position)).unwrap_or_default()
    }

    /// The uid hashes of lists with packets, and the positions of their records.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, RecordPosition)> + Clone {
        let lists = self.lists.iter().filter(|listed| !listed.record_position.is_none());
        lists.map(|listed| (listed.key, listed.record_position))
    }

    /// Number of lists; [`iter`](Self::iter) returns at most that many.
    pub(crate) fn len(&self) -> usize {
        self.lists.len()
    }

    pub(crate) fn chunks(&self) -> impl Iterator<Item = &[u8]> {
        self.records.chunks()
    }

    /// Adds more packets to a list that has ended, in any order.
    fn extend(&mut self, position: u32, more: impl IntoIterator<Item = u64>) {
        let mut all: Vec<_> = numbers(self.record(position)).chain(more).collect();
        // A stable sort merges two sorted parts in linear time.
        all.sort();
        let mut list = List::new(position);
        all.into_iter().for_each(|number| list.add(number));
        self.set(position, &list);
    }

    /// The packet numbers of each list.
    #[cfg(test)]
    pub(crate) fn packets(&self) -> Vec<Vec<u64>> {
        self.iter()
            .map(|(_, record_position)| numbers(self.records.at(record_position)).collect())
            .collect()
    }
}

/// Adds earlier fragments of a datagram to all lists with the packet that completes it.
pub(crate) fn add_fragments(shards: &mut [Lists]) {
    // The completing packet may be in lists of several shards.
    let mut fragments: Vec<_> =
        shards.iter_mut().flat_map(|shard| std::mem::take(&mut shard.fragments)).collect();
    if fragments.is_empty() {
        return;
    }
    fragments.sort_unstable();
    for shard in shards {
        for (position, last) in std::mem::take(&mut shard.completing) {
            let record = shard.record(position);
            let first = first(record);
            let from = fragments.partition_point(|(completing, _)| *completing < first);
            let mut rest = fragments.get(from..).unwrap_or_default().iter().peekable();
            if rest.peek().is_none_or(|(completing, _)| *completing > last) {
                continue;
            }
            let mut more = Vec::new();
            for number in numbers(record) {
                while let Some((completing, fragment)) =
                    rest.next_if(|(completing, _)| *completing <= number)
                {
                    more.extend((*completing == number).then_some(*fragment));
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
    // Collect only connections that an error quotes. A hash of the ports rules out most others.
    let port_hash = |[a, b]: [u16; 2]| usize::from(a ^ b);
    let mut has_error = vec![false; 1 << 16];
    let mut by_endpoints: HashMap<(ConnId, Proto), Vec<(usize, u32)>, FixedState> =
        HashMap::default();
    for (_, id, proto) in &errors {
        has_error[port_hash([id.orig_p, id.resp_p])] = true;
        by_endpoints.entry((direction_independent(*id), *proto)).or_default();
    }
    for (shard, lists) in shards.iter().enumerate() {
        for (position, listed) in lists.lists.iter().enumerate() {
            if listed.endpoints.ports().is_some_and(|ports| has_error[port_hash(ports)])
                && let Some((id, proto)) = listed.endpoints.get()
                && let Some(known) = by_endpoints.get_mut(&(direction_independent(id), proto))
            {
                known.push((shard, position as u32));
            }
        }
    }
    let mut more: HashMap<(usize, u32), Vec<u64>> = HashMap::new();
    for (number, id, proto) in &errors {
        // The quoted connection is the last one between these endpoints that began before the error.
        let known = by_endpoints.get(&(direction_independent(*id), *proto)).into_iter().flatten();
        let began = known.filter_map(|(shard, position)| {
            let (lists, at) = (shards.get(*shard)?, *position as usize);
            let listed = lists.lists.get(at).filter(|listed| !listed.record_position.is_none())?;
            Some((first(lists.records.at(listed.record_position)), listed.key, (*shard, *position)))
        });
        let quoted = began.filter(|(first, ..)| first < number).max();
        if let Some((.., at)) = quoted {
            more.entry(at).or_default().push(*number);
        }
    }
    for ((shard, position), numbers) in more {
        if let Some(lists) = shards.get_mut(shard) {
            lists.extend(position, numbers);
        }
    }
}

/// Returns the same id for both directions of a connection.
fn direction_independent(id: ConnId) -> ConnId {
    let flipped = id.flipped();
    if (id.orig_h, id.orig_p) <= (flipped.orig_h, flipped.orig_p) { id } else { flipped }
}
