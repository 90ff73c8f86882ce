//! Counting of packets and messages by fields.
//!
//! A row's key is a sequence of words: the value of each field, and a first word that marks absent
//! fields. It is converted to text once, after counting.

use std::cmp::Reverse;
use std::io::Write;
use std::ops::Range;

use gannet_base::Addr;
use gannet_capture::Packet;
use gannet_pipeline::extract::Message;
use gannet_pipeline::extract::Transport;
use gannet_pipeline::question;
use gannet_pipeline::question::Question;
use gannet_pipeline::tally::Rows;
use gannet_pipeline::tally::Tally;
use gannet_wire::protocol;

use super::dns;
use super::record::Record;
use super::record::of_packet;

/// The fields of the fastest case: messages are counted only by name.
const NAME_ALONE: [u8; 1] = [field::QNAME];
/// Stands for the name of a message without a question; no name begins with a label of this length.
const NO_NAME: u64 = u64::MAX;

/// Fields as numbered in `lua/gannet.lua`.
mod field {
    pub(super) const SRC: u8 = 1;
    pub(super) const DST: u8 = 2;
    pub(super) const SPORT: u8 = 3;
    pub(super) const DPORT: u8 = 4;
    pub(super) const PROTO: u8 = 5;
    pub(super) const LEN: u8 = 6;
    pub(super) const QNAME: u8 = 7;
    pub(super) const QTYPE: u8 = 8;
    pub(super) const QCLASS: u8 = 9;
    pub(super) const RCODE: u8 = 10;
    pub(super) const OPCODE: u8 = 11;
    pub(super) const ID: u8 = 12;
}

/// Sums by key.
#[derive(Clone, Debug, Default)]
pub(crate) struct Groups {
    /// The field to add up; 0 counts.
    value: u8,
    fields: Vec<u8>,
    tally: Tally,
    /// The total, if there is nothing to group by.
    total: u64,
}

impl Groups {
    pub(crate) fn new(value: u8, fields: &[u8]) -> Self {
        Self { value, fields: fields.to_vec(), ..Self::default() }
    }

    /// Counts a packet.
    pub(crate) fn packet(&mut self, packet: &Packet<'_>) {
        if self.fields.is_empty() && self.value == 0 {
            self.total += 1;
        } else {
            self.record(&of_packet(packet), &[]);
        }
    }

    /// Whether messages are counted only by name, so that [`Self::name`] suffices.
    pub(crate) fn are_names(&self) -> bool {
        self.fields == NAME_ALONE
    }

    /// Counts a message only by its name, which needs only the bytes of the message.
    #[inline]
    pub(crate) fn name(&mut self, message: &[u8]) {
        let amount = match self.value {
            0 => 1,
            _ => message.len() as u64,
        };
        push_name(Question::of(message), message, self.tally.key());
        self.tally.add(amount);
    }

    /// Counts a message.
    #[inline]
    pub(crate) fn message(&mut self, m: &Message<'_>) {
        let amount = match self.value {
            0 => 1,
            _ => m.bytes.len() as u64,
        };
        if self.fields.is_empty() {
            self.total = self.total.wrapping_add(amount);
            return;
        }
        if self.are_names() {
            return self.name(m.bytes);
        }
        let asked = Question::of(m.bytes);
        let words = self.tally.key();
        let header = |at| u64::from(dns::u16_at(m.bytes, at).unwrap_or(0));
        let ends = (m.source, m.destination);
        let transport = match m.transport {
            Transport::Udp => protocol::UDP,
            Transport::Tcp => protocol::TCP,
        };
        let first = words.len();
        words.push(0);
        for (index, field) in self.fields.iter().enumerate() {
            let value = match *field {
                field::SRC => push_address(&ends.0.0.octets(), words),
                field::DST => push_address(&ends.1.0.octets(), words),
                field::QNAME => {
                    push_name(asked, m.bytes, words);
                    continue;
                }
                field::SPORT => Some(u64::from(ends.0.1)),
                field::DPORT => Some(u64::from(ends.1.1)),
                field::PROTO => Some(u64::from(transport)),
                field::LEN => Some(m.bytes.len() as u64),
                field::QTYPE => asked.map(|q| u64::from(q.qtype)),
                field::QCLASS => asked.map(|q| u64::from(q.qclass)),
                field::ID => Some(header(0)),
                field => Some(flag_field(field, header(2))),
            };
            push(value, index, first, words);
        }
        self.tally.add(amount);
    }

    /// Counts a record; `message` is empty for records of packets.
    pub(crate) fn record(&mut self, r: &Record, message: &[u8]) {
        let amount = match self.value {
            0 => 1,
            _ => u64::from(r.wire_len),
        };
        if self.fields.is_empty() {
            self.total = self.total.wrapping_add(amount);
            return;
        }
        let words = self.tally.key();
        let first = words.len();
        if self.fields != NAME_ALONE {
            words.push(0);
        }
        for (index, field) in self.fields.iter().enumerate() {
            let has = |is: u8, value: u64| (is != 0).then_some(value);
            let value = match *field {
                field::SRC if r.has_ip != 0 => push_address(&r.src, words),
                field::DST if r.has_ip != 0 => push_address(&r.dst, words),
                field::SRC | field::DST => None,
                field::QNAME => {
                    push_name(Question::of(message), message, words);
                    continue;
                }
                field::SPORT => has(r.has_ports, u64::from(r.sport)),
                field::DPORT => has(r.has_ports, u64::from(r.dport)),
                field::PROTO => has(r.has_ip, u64::from(r.proto)),
                field::LEN => Some(u64::from(r.wire_len)),
                field::QTYPE => has(r.has_question, u64::from(r.qtype)),
                field::QCLASS => has(r.has_question, u64::from(r.qclass)),
                field::ID => Some(u64::from(r.id)),
                field => Some(flag_field(field, u64::from(r.flags))),
            };
            push(value, index, first, words);
        }
        self.tally.add(amount);
    }

    /// Adds the counts of `other`, which has the same fields.
    pub(crate) fn merge(&mut self, other: &mut Self) {
        self.tally.merge(&mut other.tally);
        self.total = self.total.wrapping_add(other.total);
    }

    /// Finishes counting and returns the counts.
    pub(crate) fn finish(&mut self) -> Counts {
        let Self { fields, tally, total, .. } = std::mem::take(self);
        if fields.is_empty() {
            return Counts::of(std::iter::once(total));
        }
        Counts { fields, rows: tally.finish(), ..Counts::default() }
    }
}

#[inline]
fn push_name(asked: Option<Question>, message: &[u8], words: &mut Vec<u64>) {
    match asked {
        Some(question) => question.push_name(message, words),
        None => words.push(NO_NAME),
    }
}

/// Appends an address except its last word, which it returns.
#[inline]
fn push_address(octets: &[u8; 16], words: &mut Vec<u64>) -> Option<u64> {
    let all = u128::from_be_bytes(*octets);
    words.push((all >> 64) as u64);
    Some(all as u64)
}

/// Appends a value, or marks in the word at `first` that the field at `index` is absent.
#[inline]
fn push(value: Option<u64>, index: usize, first: usize, words: &mut Vec<u64>) {
    match value {
        Some(value) => words.push(value),
        None => words[first] |= 1 << index,
    }
}

fn flag_field(field: u8, flags: u64) -> u64 {
    match field {
        field::RCODE => flags & 15,
        field::OPCODE => flags >> 11 & 15,
        _ => flags >> 15,
    }
}

/// Writes a key as text, with tabs between the fields.
fn write_key(fields: &[u8], mut key: &[u64], out: &mut Vec<u8>) {
    let mut absent = 0;
    if fields != NAME_ALONE {
        absent = key.split_off_first().copied().unwrap_or(0);
    }
    for (index, field) in fields.iter().enumerate() {
        if index > 0 {
            out.push(b'\t');
        }
        if absent >> index & 1 != 0 {
            continue;
        }
        if *field == field::QNAME {
            let len = question::name_of(key).map_or(1, |(name, len)| {
                // The name was valid when it was read.
                dns::write_name(&name, 0, out).unwrap_or_default();
                len
            });
            key = key.get(len..).unwrap_or_default();
            continue;
        }
        let value = key.split_off_first().copied().unwrap_or(0);
        let written = match *field {
            field::SRC | field::DST => {
                let low = key.split_off_first().copied().unwrap_or(0);
                let octets = u128::from(value) << 64 | u128::from(low);
                write!(out, "{}", Addr::v6(octets.to_be_bytes()))
            }
            field::PROTO => match protocol_name(value) {
                Some(name) => out.write_all(name.as_bytes()),
                None => write!(out, "{value}"),
            },
            _ => write!(out, "{value}"),
        };
        // Writing to a vector cannot fail.
        written.unwrap_or_default();
    }
}

fn protocol_name(number: u64) -> Option<&'static str> {
    Some(match number {
        1 => "icmp",
        6 => "tcp",
        17 => "udp",
        58 => "icmp6",
        _ => return None,
    })
}

/// A row that may be among the first: its sum, the range of its key in the text, and its index.
type Candidate = (Reverse<u64>, Range<usize>, usize);

/// The counts. Keys are converted to text only when their rows are requested.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    fields: Vec<u8>,
    rows: Rows,
    /// Sums without keys, used instead of rows.
    sums: Vec<u64>,
    text: Vec<u8>,
    /// The sorted first rows: index of the row, and range of its key in the text.
    order: Vec<(usize, Range<usize>)>,
}

impl Counts {
    /// Counts with only sums, without keys, in this order.
    pub(crate) fn of(sums: impl Iterator<Item = u64>) -> Self {
        Self { sums: sums.collect(), ..Self::default() }
    }

    /// Number of keys.
    pub(crate) fn len(&self) -> usize {
        self.rows.len() + self.sums.len()
    }

    /// Sum over all keys.
    pub(crate) fn total(&self) -> u64 {
        self.rows.sums().chain(self.sums.iter().copied()).fold(0, u64::wrapping_add)
    }

    /// Sorts the `first` rows with the highest counts to the front.
    pub(crate) fn sort(&mut self, first: usize) {
        let first = first.min(self.rows.len());
        if first <= self.order.len() {
            return;
        }
        let brought = self.rows.select_largest(first);
        self.text.clear();
        let mut order: Vec<Candidate> = Vec::with_capacity(brought);
        for (row, (key, sum)) in (0..brought).filter_map(|n| Some((n, self.rows.get(n)?))) {
            let start = self.text.len();
            match key {
                Some(key) => write_key(&self.fields, key, &mut self.text),
                None => self.text.extend_from_slice(b"(others)"),
            }
            order.push((Reverse(sum), start..self.text.len(), row));
        }
        let key = |span: &Range<usize>| self.text.get(span.clone());
        let by_count = |(a, x, _): &Candidate, (b, y, _): &Candidate| {
            a.cmp(b).then_with(|| key(x).cmp(&key(y)))
        };
        // If many rows have the same count, only the first of them must be sorted.
        if first < order.len() {
            order.select_nth_unstable_by(first - 1, by_count);
            order.truncate(first);
        }
        order.sort_unstable_by(by_count);
        self.order = order.into_iter().map(|(_, span, row)| (row, span)).collect();
    }

    /// Key and count of a sorted row; the key of a sum without keys is empty.
    pub(crate) fn row(&self, row: usize) -> (&[u8], u64) {
        let ordered = || {
            let (row, span) = self.order.get(row)?;
            Some((self.text.get(span.clone())?, self.rows.get(*row)?.1))
        };
        let alone = || self.sums.get(row).map(|sum| (&[][..], *sum));
        ordered().or_else(alone).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(all: &[(u64, u64)]) -> Counts {
        let mut groups = Groups::new(0, &[field::SPORT]);
        for &(port, count) in all {
            groups.tally.key().extend_from_slice(&[0, port]);
            groups.tally.add(count);
        }
        groups.finish()
    }

    fn rows(counts: &Counts, first: usize) -> Vec<(&str, u64)> {
        let row = |n| counts.row(n);
        (0..first).map(row).map(|(key, count)| (str::from_utf8(key).unwrap(), count)).collect()
    }

    #[test]
    fn rows_are_sorted_by_count_and_then_by_key() {
        let all = [(9, 3), (80, 5), (53, 3), (8, 3), (443, 9), (1, 1), (10, 3)];
        let expected = [("443", 9), ("80", 5), ("10", 3), ("53", 3), ("8", 3), ("9", 3), ("1", 1)];
        for first in 0..=all.len() {
            let mut counts = counts(&all);
            counts.sort(first);
            assert_eq!(rows(&counts, first), expected[..first]);
            // Fewer rows are sorted already; more are sorted on demand.
            counts.sort(first / 2);
            assert_eq!(rows(&counts, first), expected[..first]);
            counts.sort(100);
            assert_eq!(rows(&counts, all.len()), expected);
            assert_eq!((counts.len(), counts.total()), (all.len(), 27));
        }
    }

    #[test]
    fn sums_without_keys_stay_in_their_order() {
        let counts = Counts::of([3, 7].into_iter());
        assert_eq!(rows(&counts, 3), [("", 3), ("", 7), ("", 0)]);
    }
}
