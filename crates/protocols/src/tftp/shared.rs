//! Transfers: what joins a request and the connection of its contents.

use std::collections::HashMap;

use gannet_base::Addr;
use gannet_base::ConnId;
use gannet_base::Time;
use gannet_base::Uid;
use gannet_dict::KeyedHash;

use super::message::Pair;

/// Bytes of a name, an error or an option that are kept.
const MAX_KEPT: usize = 1024;
/// Options that are kept.
const MAX_OPTIONS: usize = 16;
/// Bytes of a part, unless an option says otherwise.
const BLOCK: usize = 512;
/// What that option may say (RFC 2348).
const BLOCKS: std::ops::RangeInclusive<usize> = 8..=65_464;

/// A transfer by its ends: address and port of the client, address of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) client: (Addr, u16),
    pub(super) server: Addr,
}

impl Key {
    /// The keys of the transfers that a connection may belong to: as its request, and as its contents.
    pub(super) fn of(id: &ConnId) -> [Self; 2] {
        [
            Self { client: (id.orig_h, id.orig_p), server: id.resp_h },
            Self { client: (id.resp_h, id.resp_p), server: id.orig_h },
        ]
    }
}

/// The transfers that are under way: at most one for each connection with requests, which end with the connection
/// of their contents, or with that of the request where there is no other.
#[derive(Debug, Default)]
pub(super) struct Transfers {
    all: HashMap<Key, Transfer, KeyedHash>,
}

/// A transfer.
#[derive(Debug)]
pub(super) struct Transfer {
    pub(super) ts: Time,
    pub(super) uid: Uid,
    pub(super) id: ConnId,
    pub(super) writes: bool,
    pub(super) filename: Vec<u8>,
    pub(super) mode: Vec<u8>,
    pub(super) options: Vec<Vec<u8>>,
    block: usize,
    pub(super) uid_data: Option<Uid>,
    pub(super) size: u64,
    pub(super) sent: u64,
    pub(super) acked: u64,
    /// The last part was sent.
    is_whole: bool,
    pub(super) error: Option<(u16, Vec<u8>)>,
}

impl Transfers {
    /// Adds a transfer; returns another of the same ends, which is over.
    pub(super) fn add(&mut self, key: Key, transfer: Transfer) -> Option<Transfer> {
        self.all.insert(key, transfer)
    }

    /// The transfer that a connection belongs to. Of several connections with a client's port, the first that
    /// has contents is the transfer's.
    pub(super) fn find(&mut self, id: &ConnId, uid: Uid) -> Option<(Key, &mut Transfer)> {
        let key = Key::of(id).into_iter().find(|key| self.all.contains_key(key))?;
        let transfer = self.all.get_mut(&key)?;
        transfer.uid_data.is_none_or(|data| data == uid).then_some((key, transfer))
    }

    /// Takes a transfer that is over.
    pub(super) fn take(&mut self, key: &Key) -> Option<Transfer> {
        self.all.remove(key)
    }
}

impl Transfer {
    /// The transfer that a request begins.
    pub(super) fn new(
        (ts, uid, id): (Time, Uid, ConnId),
        writes: bool,
        filename: &[u8],
        mode: &[u8],
    ) -> Self {
        Self {
            ts,
            uid,
            id,
            writes,
            filename: kept(filename),
            mode: kept(mode),
            options: Vec::new(),
            block: BLOCK,
            uid_data: None,
            size: 0,
            sent: 0,
            acked: 0,
            is_whole: false,
            error: None,
        }
    }

    /// The contents are in this connection.
    pub(super) fn begin(&mut self, uid: Uid) {
        self.uid_data.get_or_insert(uid);
    }

    /// A part of the file; one that is repeated counts once. Parts that are missing in the capture are skipped.
    pub(super) fn data(&mut self, block: u16, data: &[u8]) {
        // Numbers wrap: the nearest part of this number is meant, which is one that was sent before, or a new one.
        let ahead = block.wrapping_sub(self.sent as u16);
        if ahead != 0 && ahead <= u16::MAX / 2 {
            self.sent += u64::from(ahead);
            self.size += data.len() as u64;
            self.is_whole = data.len() < self.block;
        }
    }

    /// A part arrived. Returns whether that was the last one.
    pub(super) fn ack(&mut self, block: u16) -> bool {
        // Numbers wrap: of the parts that were sent, the latest of this number is meant.
        let behind = u64::from((self.sent as u16).wrapping_sub(block));
        if let Some(acked) = self.sent.checked_sub(behind) {
            self.acked = self.acked.max(acked);
        }
        self.is_whole && self.acked == self.sent
    }

    /// Options that the server accepts. Returns what is wrong with them, as a weird.
    pub(super) fn accept(&mut self, options: &[Pair<'_>]) -> Option<&'static str> {
        let mut weird = None;
        let room = MAX_OPTIONS.saturating_sub(self.options.len());
        for (name, value) in options.iter().take(room) {
            self.options.push(kept(&[name, &b"="[..], value].concat()));
            if name.eq_ignore_ascii_case(b"blksize") {
                let number = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
                // What both sides agree on holds, even where it is wrong.
                if !number.is_some_and(|bytes| BLOCKS.contains(&bytes)) {
                    weird = Some("tftp_invalid_block_size");
                }
                self.block = number.filter(|bytes| *bytes > 0).unwrap_or(self.block);
            }
        }
        let is_cut = options.len() > room
            || options.iter().any(|(name, value)| name.len() + value.len() >= MAX_KEPT);
        weird.or(is_cut.then_some("tftp_long_options"))
    }

    /// The transfer failed.
    pub(super) fn fail(&mut self, code: u16, message: &[u8]) {
        self.error = Some((code, kept(message)));
    }
}

/// Whether all of a text is kept.
pub(super) fn is_kept(text: &[u8]) -> bool {
    text.len() <= MAX_KEPT
}

fn kept(text: &[u8]) -> Vec<u8> {
    text[..text.len().min(MAX_KEPT)].to_vec()
}
