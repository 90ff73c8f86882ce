//! Record marking (RFC 5531 section 11): each record of a stream consists of fragments that begin
//! with their length.

use gannet_base::Time;

/// Maximum number of bytes of a message that are parsed; the rest of a longer one is skipped.
pub(super) const MAX_MESSAGE: usize = 65_536;

/// Bit of a fragment's length that marks the last fragment.
const LAST: u32 = 1 << 31;

/// Length of a fragment header, in bytes.
const MARK: usize = 4;
/// Number of bytes needed to recognize a fragment: length, transaction identifier and message type.
const BEGIN: usize = 12;
/// Minimum length of a message's first fragment, in bytes.
const MIN_FRAGMENT: usize = 16;

/// One direction of a stream.
#[derive(Debug, Default)]
pub(super) struct Records {
    sync: Sync,
    mark: Vec<u8>,
    message: Vec<u8>,
    /// Number of bytes of the message so far, including skipped ones.
    seen: u64,
    /// Total length of its fragments so far, in bytes.
    expected: u64,
    fragment: Fragment,
    start: Time,
}

/// Whether the boundaries of messages are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Sync {
    /// No data was seen.
    #[default]
    New,
    Yes,
    /// A segment must begin with a fragment.
    No,
    /// This many bytes of the rest of a message are skipped.
    Rest(u64),
    /// This many bytes of a complete message are skipped.
    Whole(u64),
    /// A complete message was found; the next one begins after this many bytes.
    Found(u64),
}

/// The next part of the stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Fragment {
    /// The first fragment header of a message.
    #[default]
    First,
    /// The header of another fragment.
    More,
    /// Bytes of a fragment.
    Data,
    /// Bytes of the last fragment.
    Last,
}

/// A parsed item.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Item<'a> {
    /// A message, up to [`MAX_MESSAGE`] bytes, and the time of its first byte.
    Message(&'a [u8], Time),
    /// A message exceeds [`MAX_MESSAGE`] bytes; its length.
    TooLong(u64),
}

impl Records {
    /// Loses synchronization: a part of the stream is missing.
    pub(super) fn gap(&mut self) {
        self.sync = Sync::No;
        self.fragment = Fragment::First;
    }

    /// Begins with the first segment: on an established connection, messages begin there.
    pub(super) fn begin(&mut self, is_established: impl FnOnce() -> bool) {
        if self.sync == Sync::New {
            self.sync = if is_established() { Sync::Yes } else { Sync::No };
        }
    }

    /// The next message or weird of a segment, whose bytes are removed from `data`; `None` at its
    /// end. The messages of a side have the same type, `kind`.
    pub(super) fn next(&mut self, data: &mut &[u8], kind: u32, now: Time) -> Option<Item<'_>> {
        if self.sync != Sync::Yes && !self.resynchronize(data, kind) {
            *data = &[];
            return None;
        }
        while !data.is_empty() {
            match self.fragment {
                Fragment::First | Fragment::More => {
                    if self.fragment == Fragment::First && self.mark.is_empty() {
                        self.message.clear();
                        (self.seen, self.expected, self.start) = (0, 0, now);
                    }
                    let take = (MARK - self.mark.len()).min(data.len());
                    self.mark.extend_from_slice(&data[..take]);
                    *data = &data[take..];
                    let mark = u32::from_be_bytes(*self.mark.first_chunk()?);
                    self.mark.clear();
                    self.fragment = if mark & LAST != 0 { Fragment::Last } else { Fragment::Data };
                    self.expected += u64::from(mark & !LAST);
                    if self.expected > MAX_MESSAGE as u64 {
                        return Some(Item::TooLong(self.expected));
                    }
                }
                Fragment::Data | Fragment::Last => {
                    let take = upto(self.expected - self.seen, data.len());
                    let (taken, rest) = data.split_at(take);
                    let available = MAX_MESSAGE - self.message.len();
                    self.message.extend_from_slice(&taken[..take.min(available)]);
                    self.seen += take as u64;
                    *data = rest;
                    if self.seen < self.expected {
                        return None;
                    }
                    if self.fragment == Fragment::Last {
                        self.fragment = Fragment::First;
                        return Some(Item::Message(&self.message, self.start));
                    }
                    self.fragment = Fragment::More;
                }
            }
        }
        None
    }

    /// Searches for the beginning of a message: a segment begins with a fragment of plausible
    /// length and type, is followed by another such fragment, and that by a third, at the end of a
    /// message each.
    fn resynchronize(&mut self, data: &mut &[u8], kind: u32) -> bool {
        while !data.is_empty() {
            if let Sync::Rest(skip) | Sync::Whole(skip) | Sync::Found(skip) = &mut self.sync {
                let take = upto(*skip, data.len());
                *data = &data[take..];
                *skip -= take as u64;
                if data.is_empty() {
                    return false;
                }
            }
            let begin = data.first_chunk::<BEGIN>().map(|begin| {
                let number = |at: usize| {
                    let four = begin[at..].first_chunk().copied().unwrap_or_default();
                    u32::from_be_bytes(four)
                };
                (number(0), number(8))
            });
            let is_plausible = |(mark, its): &(u32, u32)| {
                *its == kind && (MIN_FRAGMENT..=MAX_MESSAGE).contains(&((mark & !LAST) as usize))
            };
            let Some((mark, _)) = begin.filter(is_plausible) else {
                self.gap();
                return false;
            };
            let (skip, is_last) = (u64::from(mark & !LAST) + MARK as u64, mark & LAST != 0);
            self.sync = match self.sync {
                Sync::Found(_) => {
                    self.sync = Sync::Yes;
                    return true;
                }
                Sync::Whole(_) if is_last => Sync::Found(skip),
                Sync::Whole(_) => Sync::Whole(skip),
                _ if is_last => Sync::Whole(skip),
                _ => Sync::Rest(skip),
            };
        }
        false
    }
}

/// The minimum of both.
fn upto(count: u64, len: usize) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX).min(len)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW: Time = Time::from_secs(5);

    fn synced() -> Records {
        let mut records = Records::default();
        records.begin(|| true);
        records
    }

    fn all(records: &mut Records, chunks: &[&[u8]]) -> Vec<Result<Vec<u8>, u64>> {
        let mut found = Vec::new();
        for chunk in chunks {
            let mut data = *chunk;
            while let Some(item) = records.next(&mut data, 0, NOW) {
                found.push(match item {
                    Item::Message(message, _) => Ok(message.to_vec()),
                    Item::TooLong(n) => Err(n),
                });
            }
            assert!(data.is_empty());
        }
        found
    }

    /// A call of 16 bytes, as a record.
    fn call(xid: u8) -> Vec<u8> {
        let mut out = b"\x80\0\0\x10\0\0\0".to_vec();
        out.push(xid);
        out.extend_from_slice(&[0; 12]);
        out
    }

    #[test]
    fn messages_come_in_fragments_and_segments() {
        let stream = b"\x80\0\0\x02ab\0\0\0\x01c\0\0\0\0\x80\0\0\x01d\x80\0\0\x01e";
        let whole = vec![Ok(b"ab".to_vec()), Ok(b"cd".to_vec()), Ok(b"e".to_vec())];
        assert_eq!(all(&mut synced(), &[stream]), whole);
        let bytes: Vec<_> = stream.chunks(1).collect();
        assert_eq!(all(&mut synced(), &bytes), whole);
    }

    #[test]
    fn an_empty_message_ends_with_the_next_byte() {
        let mut records = synced();
        assert!(all(&mut records, &[b"\x80\0\0\0"]).is_empty());
        assert_eq!(all(&mut records, &[b"\x80"]), [Ok(Vec::new())]);
    }

    #[test]
    fn of_a_long_message_the_begin_is_read() {
        let mut records = synced();
        assert_eq!(all(&mut records, &[b"\0\x01\0\0"]), []);
        assert_eq!(all(&mut records, &[&vec![1; 65_536], b"\x80\0\0\x01"]), [Err(65_537)]);
        assert_eq!(all(&mut records, &[b"x"]), [Ok(vec![1; 65_536])]);
        assert_eq!(all(&mut records, &[b"\x80\0\0\x01y"]), [Ok(b"y".to_vec())]);
    }

    #[test]
    fn behind_a_gap_two_whole_messages_show_where_a_third_begins() {
        let mut records = synced();
        records.gap();
        let (a, b, c, d) = (call(1), call(2), call(3), call(4));
        assert!(all(&mut records, &[b"junk that is no message", &a, &b]).is_empty());
        assert_eq!(all(&mut records, &[&c, &d]), [Ok(c[4..].to_vec()), Ok(d[4..].to_vec())]);
        // A segment without a valid fragment restarts the search.
        records.gap();
        assert!(all(&mut records, &[&a, b"short", &b, &c, &[&a[..], &b].concat()[..3]]).is_empty());
        let all_at_once = [a, b, c, d.clone()].concat();
        let mut records = Records::default();
        records.begin(|| false);
        assert_eq!(all(&mut records, &[&all_at_once]).len(), 2);
    }

    #[test]
    fn replies_are_no_begin_of_calls() {
        let mut records = Records::default();
        records.begin(|| false);
        let mut reply = call(1);
        reply[11] = 1;
        assert!(all(&mut records, &[&reply, &reply, &reply]).is_empty());
    }

    proptest! {
        #[test]
        fn any_bytes_in_any_pieces(data: Vec<u8>, is_established: bool, size in 1usize..40) {
            let mut records = Records::default();
            records.begin(|| is_established);
            all(&mut records, &data.chunks(size).collect::<Vec<_>>());
        }
    }
}
