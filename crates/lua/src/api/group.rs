//! Counting by fields.

use std::collections::HashMap;
use std::io::Write;

use foldhash::fast::RandomState;
use gannet_base::Addr;

use super::stream::Record;

/// Keys that are told apart; what comes after them is counted under `(others)`.
const MAX_KEYS: usize = 16 << 20;

/// Counts by key.
#[derive(Default)]
pub(crate) struct Groups {
    counts: HashMap<Box<[u8]>, u64, RandomState>,
    others: u64,
    key: Vec<u8>,
    rows: Vec<(Box<[u8]>, u64)>,
}

impl Groups {
    /// Counts one record under the fields' values, as numbered in `lua/gannet.lua`.
    pub(crate) fn count(&mut self, fields: &[u8], record: &Record, name: &[u8]) {
        if let [7] = fields {
            // The most common wish needs no copy of the key.
            return self.add(&[], Some(name));
        }
        let mut key = std::mem::take(&mut self.key);
        key.clear();
        for (index, field) in fields.iter().enumerate() {
            if index > 0 {
                key.push(b'\t');
            }
            write_field(*field, record, name, &mut key);
        }
        self.add(&key, None);
        self.key = key;
    }

    fn add(&mut self, key: &[u8], borrowed: Option<&[u8]>) {
        let key = borrowed.unwrap_or(key);
        if let Some(count) = self.counts.get_mut(key) {
            *count += 1;
        } else if self.counts.len() < MAX_KEYS {
            self.counts.insert(key.into(), 1);
        } else {
            self.others += 1;
        }
    }

    /// Ends counting; how many rows there are.
    pub(crate) fn finish(&mut self) -> usize {
        self.rows = std::mem::take(&mut self.counts).into_iter().collect();
        if self.others > 0 {
            self.rows.push((b"(others)".as_slice().into(), self.others));
        }
        self.rows.len()
    }

    /// How many were counted under all keys.
    pub(crate) fn total(&self) -> u64 {
        self.rows.iter().map(|(_, count)| count).sum()
    }

    /// Brings the rows that were counted most to the front, in order, so many of them.
    pub(crate) fn sort(&mut self, first: usize) {
        type Row = (Box<[u8]>, u64);
        let order = |a: &Row, b: &Row| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0));
        if first < self.rows.len() {
            self.rows.select_nth_unstable_by(first, order);
        }
        let first = first.min(self.rows.len());
        self.rows[..first].sort_unstable_by(order);
    }

    /// Key and count of a row.
    pub(crate) fn row(&self, row: usize) -> (&[u8], u64) {
        self.rows.get(row).map_or((&[], 0), |(key, count)| (key, *count))
    }
}

fn write_field(field: u8, r: &Record, name: &[u8], out: &mut Vec<u8>) {
    let number = match field {
        1 => return write_address(r, &r.src, out),
        2 => return write_address(r, &r.dst, out),
        5 => {
            let protocol = match r.proto {
                1 => "icmp",
                6 => "tcp",
                17 => "udp",
                58 => "icmp6",
                _ if r.has_ip == 0 => "",
                _ => return write_number(u32::from(r.proto), out),
            };
            return out.extend_from_slice(protocol.as_bytes());
        }
        7 => return out.extend_from_slice(name),
        3 => u32::from(r.sport),
        4 => u32::from(r.dport),
        6 => r.wire_len,
        8 => u32::from(r.qtype),
        9 => u32::from(r.qclass),
        10 => u32::from(r.flags & 15),
        11 => u32::from(r.flags >> 11 & 15),
        12 => u32::from(r.id),
        _ => u32::from(r.flags >> 15),
    };
    let absent = match field {
        3 | 4 => r.has_ports == 0,
        8 | 9 => r.has_question == 0,
        _ => false,
    };
    if !absent {
        write_number(number, out);
    }
}

fn write_number(number: u32, out: &mut Vec<u8>) {
    // Writing to a vector cannot fail.
    write!(out, "{number}").unwrap_or_default();
}

fn write_address(r: &Record, bytes: &[u8; 16], out: &mut Vec<u8>) {
    if r.has_ip != 0 {
        write!(out, "{}", Addr::v6(*bytes)).unwrap_or_default();
    }
}
