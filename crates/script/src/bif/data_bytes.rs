//! Serializes Broker data for databases: a byte for the kind, then numbers of fixed size in little-endian order; texts are prefixed
//! with their length, containers with the number of their elements.

use super::data::Data;

/// Maximum nesting depth of containers.
const MAX_DEPTH: usize = 200;

mod kind {
    pub(super) const NIL: u8 = 0;
    pub(super) const BOOL: u8 = 1;
    pub(super) const COUNT: u8 = 2;
    pub(super) const INT: u8 = 3;
    pub(super) const REAL: u8 = 4;
    pub(super) const STRING: u8 = 5;
    pub(super) const ADDR: u8 = 6;
    pub(super) const SUBNET: u8 = 7;
    pub(super) const PORT: u8 = 8;
    pub(super) const TIME: u8 = 9;
    pub(super) const INTERVAL: u8 = 10;
    pub(super) const ENUM: u8 = 11;
    pub(super) const SET: u8 = 12;
    pub(super) const TABLE: u8 = 13;
    pub(super) const VECTOR: u8 = 14;
}

impl Data {
    /// Appends the serialized data; returns false if it is nested too deep.
    pub(super) fn write(&self, out: &mut Vec<u8>) -> bool {
        self.write_at(out, 0)
    }

    fn write_at(&self, out: &mut Vec<u8>, depth: usize) -> bool {
        if depth > MAX_DEPTH {
            return false;
        }
        let number = |out: &mut Vec<u8>, kind, bytes: [u8; 8]| {
            out.push(kind);
            out.extend(bytes);
        };
        match self {
            Self::Nil => out.push(kind::NIL),
            Self::Bool(value) => out.extend([kind::BOOL, u8::from(*value)]),
            Self::Count(value) => number(out, kind::COUNT, value.to_le_bytes()),
            Self::Int(value) => number(out, kind::INT, value.to_le_bytes()),
            Self::Real(value) => number(out, kind::REAL, value.get().to_le_bytes()),
            Self::Time(value) => number(out, kind::TIME, value.get().to_le_bytes()),
            Self::Interval(value) => number(out, kind::INTERVAL, value.get().to_le_bytes()),
            Self::String(text) => write_text(out, kind::STRING, text),
            Self::Enum(name) => write_text(out, kind::ENUM, name.as_bytes()),
            Self::Addr(bytes) => {
                out.push(kind::ADDR);
                out.extend(bytes);
            }
            Self::Subnet(prefix, width) => {
                out.push(kind::SUBNET);
                out.extend(prefix);
                out.push(*width);
            }
            Self::Port(port, protocol) => {
                out.push(kind::PORT);
                out.extend(port.to_le_bytes());
                out.push(*protocol);
            }
            Self::Opaque(_) => return false,
            Self::Set(elements) => {
                write_len(out, kind::SET, elements.len());
                return elements.iter().all(|element| element.write_at(out, depth + 1));
            }
            Self::Table(entries) => {
                write_len(out, kind::TABLE, entries.len());
                return entries.iter().all(|(key, value)| {
                    key.write_at(out, depth + 1) && value.write_at(out, depth + 1)
                });
            }
            Self::Vector(items) => {
                write_len(out, kind::VECTOR, items.len());
                return items.iter().all(|item| item.write_at(out, depth + 1));
            }
        }
        true
    }

    /// Deserializes data; `None` if the bytes are invalid or have trailing bytes.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes;
        let data = read_at(&mut rest, 0)?;
        rest.is_empty().then_some(data)
    }
}

fn write_len(out: &mut Vec<u8>, kind: u8, len: usize) {
    out.push(kind);
    out.extend((len as u64).to_le_bytes());
}

fn write_text(out: &mut Vec<u8>, kind: u8, text: &[u8]) {
    write_len(out, kind, text.len());
    out.extend(text);
}

fn read_at(rest: &mut &[u8], depth: usize) -> Option<Data> {
    if depth > MAX_DEPTH {
        return None;
    }
    let [kind] = read_array(rest)?;
    Some(match kind {
        kind::NIL => Data::Nil,
        kind::BOOL => Data::Bool(read_array(rest)? != [0]),
        kind::COUNT => Data::Count(u64::from_le_bytes(read_array(rest)?)),
        kind::INT => Data::Int(i64::from_le_bytes(read_array(rest)?)),
        kind::REAL => Data::Real(f64::from_le_bytes(read_array(rest)?).into()),
        kind::TIME => Data::Time(f64::from_le_bytes(read_array(rest)?).into()),
        kind::INTERVAL => Data::Interval(f64::from_le_bytes(read_array(rest)?).into()),
        kind::STRING => Data::String(text(rest)?.to_vec()),
        kind::ENUM => Data::Enum(std::str::from_utf8(text(rest)?).ok()?.into()),
        kind::ADDR => Data::Addr(read_array(rest)?),
        kind::SUBNET => {
            let (prefix, [width]) = (read_array(rest)?, read_array(rest)?);
            Data::Subnet(prefix, width)
        }
        kind::PORT => {
            let (port, [protocol]) = (u16::from_le_bytes(read_array(rest)?), read_array(rest)?);
            Data::Port(port, protocol)
        }
        // Each element takes at least one byte, so the input length bounds the number of elements.
        kind::SET => {
            let elements = 0..u64::from_le_bytes(read_array(rest)?);
            Data::Set(elements.map(|_| read_at(rest, depth + 1)).collect::<Option<_>>()?)
        }
        kind::TABLE => {
            let entries = 0..u64::from_le_bytes(read_array(rest)?);
            let mut entry = |_| Some((read_at(rest, depth + 1)?, read_at(rest, depth + 1)?));
            Data::Table(entries.map(&mut entry).collect::<Option<_>>()?)
        }
        kind::VECTOR => {
            let items = 0..u64::from_le_bytes(read_array(rest)?);
            Data::Vector(items.map(|_| read_at(rest, depth + 1)).collect::<Option<_>>()?)
        }
        _ => return None,
    })
}

fn read_array<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (array, remaining) = rest.split_first_chunk()?;
    *rest = remaining;
    Some(*array)
}

fn text<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = usize::try_from(u64::from_le_bytes(read_array(rest)?)).ok()?;
    let (text, remaining) = rest.split_at_checked(len)?;
    *rest = remaining;
    Some(text)
}

/// Deserializes data and serializes it again; `None` if the bytes are invalid.
#[must_use]
pub fn read_and_write(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    Data::read(bytes)?.write(&mut out).then_some(out)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    fn round_trip(data: &Data) -> Option<Data> {
        let mut bytes = Vec::new();
        assert!(data.write(&mut bytes));
        for end in 0..bytes.len() {
            assert_eq!(Data::read(&bytes[..end]), None, "{end} of {bytes:?}");
        }
        let read = Data::read(&bytes);
        bytes.push(0);
        assert_eq!(Data::read(&bytes), None);
        read
    }

    #[test]
    fn data_survives_a_round_trip() {
        let plain = [
            Data::Nil,
            Data::Bool(true),
            Data::Count(u64::MAX),
            Data::Int(-2),
            Data::Real((-0.0).into()),
            Data::Real(f64::NAN.into()),
            Data::Time(1.5.into()),
            Data::Interval((-3.25).into()),
            Data::String(b"\0\xff".to_vec()),
            Data::Enum("Notice::LOG".into()),
            Data::Addr([7; 16]),
            Data::Subnet([8; 16], 120),
            Data::Port(443, 1),
        ];
        for data in &plain {
            assert_eq!(round_trip(data).as_ref(), Some(data));
        }
        let set = Data::Set(BTreeSet::from(plain.clone()));
        let table = Data::Table(BTreeMap::from([(set.clone(), Data::Nil), (Data::Nil, set)]));
        let all = Data::Vector(vec![table, Data::Vector(Vec::new())]);
        assert_eq!(round_trip(&all), Some(all));
    }

    #[test]
    fn data_nested_too_deep_is_refused() {
        let nested = |depth| {
            let mut data = Data::Nil;
            for _ in 0..depth {
                data = Data::Vector(vec![data]);
            }
            data
        };
        let (fits, beyond) = (nested(MAX_DEPTH), nested(MAX_DEPTH + 1));
        let mut bytes = Vec::new();
        assert!(fits.write(&mut bytes) && Data::read(&bytes) == Some(fits));
        assert!(!beyond.write(&mut Vec::new()));
        let mut bytes = Vec::new();
        (0..=MAX_DEPTH).for_each(|_| write_len(&mut bytes, kind::VECTOR, 1));
        bytes.push(kind::NIL);
        assert_eq!(Data::read(&bytes), None);
    }

    #[test]
    fn invalid_lengths_and_counts_are_refused() {
        for kind in [kind::STRING, kind::ENUM, kind::SET, kind::TABLE, kind::VECTOR] {
            let mut bytes = Vec::new();
            write_len(&mut bytes, kind, usize::MAX);
            bytes.extend([0; 100]);
            assert_eq!(Data::read(&bytes), None);
        }
        assert_eq!(Data::read(&[15]), None);
        assert_eq!(Data::read(&[kind::ENUM, 1, 0, 0, 0, 0, 0, 0, 0, 0xff]), None);
    }
}
