//! Handshakes and messages of peers.

use std::fmt;

/// Length of a handshake, in bytes.
pub(super) const HANDSHAKE_LEN: usize = 68;

/// Size of the length field before a message, in bytes.
pub(super) const LENGTH_PREFIX: usize = 4;

/// Maximum length of a message without its length field, in bytes.
pub(super) const MAX_MESSAGE_LEN: u32 = 0x4_0000;

/// The handshake that begins each direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handshake<'a> {
    /// The reserved bytes, whose bits announce extensions.
    pub reserved: &'a [u8],
    /// SHA-1 hash of the info dictionary, which identifies the torrent.
    pub info_hash: &'a [u8],
    /// Identifier of the peer.
    pub peer_id: &'a [u8],
}

impl<'a> Handshake<'a> {
    /// Whether the data is a prefix of a handshake or begins with one.
    pub fn may_begin(data: &[u8]) -> bool {
        let begin = b"\x13BitTorrent protocol";
        let len = begin.len().min(data.len());
        data[..len] == begin[..len]
    }

    /// Parses a handshake; `None` if it is incomplete or another protocol.
    pub fn parse(data: &'a [u8]) -> Option<Self> {
        if !Self::may_begin(data) {
            return None;
        }
        let (reserved, rest) = data.get(20..HANDSHAKE_LEN)?.split_at(8);
        let (info_hash, peer_id) = rest.split_at(20);
        Some(Self { reserved, info_hash, peer_id })
    }
}

/// A block: a part of a piece of the torrent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Index of the piece.
    pub index: u32,
    /// Offset of the block within the piece, in bytes.
    pub begin: u32,
    /// Length of the block, in bytes.
    pub length: u32,
}

/// A message between peers (BEP 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// Empty message that keeps the connection open.
    KeepAlive,
    /// The sender does not answer requests for blocks.
    Choke,
    /// The sender answers requests for blocks.
    Unchoke,
    /// The sender is interested in blocks.
    Interested,
    /// The sender is not interested in blocks.
    NotInterested,
    /// The sender has the piece with this index.
    Have(u32),
    /// The pieces that the sender has: a bit for each.
    Bitfield(&'a [u8]),
    /// The sender requests a block.
    Request(Block),
    /// The header of a block whose bytes follow.
    Piece(Block),
    /// The sender cancels its request for a block.
    Cancel(Block),
    /// The port of the sender's DHT (BEP 5).
    Port(u16),
    /// A message of an unknown type.
    Unknown {
        /// Type of the message.
        id: u8,
        /// Payload after the type.
        data: &'a [u8],
    },
}

/// The error of a message that is too short for its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooShort {
    /// Name of the missing fields in Zeek's error messages.
    pub fields: &'static str,
    /// Length of these fields, in bytes.
    pub needed: usize,
    /// Length of the message after its type, in bytes.
    pub len: usize,
}

impl fmt::Display for TooShort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "out_of_bound: {}: {} > {}", self.fields, self.needed, self.len)
    }
}

/// Parses the length field before a message; `None` if it is incomplete.
pub fn length(data: &[u8]) -> Option<u32> {
    data.first_chunk().map(|length| u32::from_be_bytes(*length))
}

/// Number of leading bytes of a message that its event needs: all, except for the bytes of a block.
pub(super) fn header_len(id: u8, length: u32) -> u32 {
    length.min(match id {
        0..=3 => 1,
        4 => 5,
        6 | 8 => 13,
        7 => 9,
        9 => 3,
        _ => length,
    })
}

impl<'a> Message<'a> {
    /// Parses a message of `length` bytes from its leading [`header_len`] bytes, both without the length field.
    pub fn parse(data: &'a [u8], length: u32) -> Result<Self, TooShort> {
        let Some((id, data)) = data.split_first() else { return Ok(Self::KeepAlive) };
        Ok(match id {
            0 => Self::Choke,
            1 => Self::Unchoke,
            2 => Self::Interested,
            3 => Self::NotInterested,
            4 => Self::Have(u32::from_be_bytes(fields(data, "BitTorrent_Have")?)),
            5 => Self::Bitfield(data),
            6 => Self::Request(block(data, "BitTorrent_Request")?),
            7 => {
                let fields: [u8; 8] = fields(data, "BitTorrent_Piece:header")?;
                let [index, begin] = numbers(&fields);
                Self::Piece(Block { index, begin, length: length.saturating_sub(9) })
            }
            8 => Self::Cancel(block(data, "BitTorrent_Cancel")?),
            9 => Self::Port(u16::from_be_bytes(fields(data, "BitTorrent_Port")?)),
            _ => Self::Unknown { id: *id, data },
        })
    }
}

fn fields<const N: usize>(data: &[u8], fields: &'static str) -> Result<[u8; N], TooShort> {
    data.first_chunk().copied().ok_or(TooShort { fields, needed: N, len: data.len() })
}

fn block(data: &[u8], name: &'static str) -> Result<Block, TooShort> {
    let fields: [u8; 12] = fields(data, name)?;
    let [index, begin, length] = numbers(&fields);
    Ok(Block { index, begin, length })
}

fn numbers<const N: usize>(fields: &[u8]) -> [u32; N] {
    let (numbers, _) = fields.as_chunks();
    std::array::from_fn(|n| numbers.get(n).map_or(0, |number| u32::from_be_bytes(*number)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handshakes() {
        let mut data = b"\x13BitTorrent protocol".to_vec();
        data.extend_from_slice(b"rrrrrrrr");
        data.extend_from_slice(b"hhhhhhhhhhhhhhhhhhhh");
        data.extend_from_slice(b"pppppppppppppppppppp");
        let handshake =
            Handshake { reserved: &[b'r'; 8], info_hash: &[b'h'; 20], peer_id: &[b'p'; 20] };
        assert_eq!(Handshake::parse(&data), Some(handshake));
        for len in 0..HANDSHAKE_LEN {
            assert!(Handshake::may_begin(&data[..len]));
            assert_eq!(Handshake::parse(&data[..len]), None);
        }
        for at in 0..20 {
            let mut other = data.clone();
            other[at] ^= 1;
            assert!(!Handshake::may_begin(&other));
            assert_eq!(Handshake::parse(&other), None);
        }
    }

    #[test]
    fn messages() {
        let block = Block { index: 1, begin: 0x4000, length: 0x10 };
        let numbers = b"\0\0\0\x01\0\0\x40\0\0\0\0\x10";
        let of = |id: u8, data: &[u8]| [&[id], data].concat();
        for (data, message) in [
            (vec![], Message::KeepAlive),
            (of(0, b""), Message::Choke),
            (of(1, b""), Message::Unchoke),
            (of(2, b""), Message::Interested),
            (of(3, b"more"), Message::NotInterested),
            (of(4, b"\0\0\x02\x03"), Message::Have(0x203)),
            (of(5, b"\xff\x80"), Message::Bitfield(b"\xff\x80")),
            (of(6, numbers), Message::Request(block)),
            (of(7, &[&numbers[..8], &[0; 16]].concat()), Message::Piece(block)),
            (of(8, numbers), Message::Cancel(block)),
            (of(9, b"\x1a\xe1"), Message::Port(6881)),
            (of(20, b"\0d"), Message::Unknown { id: 20, data: b"\0d" }),
        ] {
            assert_eq!(Message::parse(&data, data.len() as u32), Ok(message));
        }
    }

    #[test]
    fn short_messages() {
        for (data, error) in [
            (&b"\x04\0\0\0"[..], "BitTorrent_Have: 4 > 3"),
            (b"\x06", "BitTorrent_Request: 12 > 0"),
            (b"\x08\0\0\0\0\0\0\0\0\0", "BitTorrent_Cancel: 12 > 9"),
            (b"\x07\0\0\0\0\0\0\0", "BitTorrent_Piece:header: 8 > 7"),
            (b"\x09\0", "BitTorrent_Port: 2 > 1"),
        ] {
            let short = Message::parse(data, data.len() as u32).map_err(|short| short.to_string());
            assert_eq!(short, Err(format!("out_of_bound: {error}")));
        }
    }

    #[test]
    fn a_length_comes_first() {
        assert_eq!(length(b"\0\x04\0\x01rest"), Some(MAX_MESSAGE_LEN + 1));
        assert_eq!(length(b"\0\x04\0"), None);
    }
}
