//! Transfers, which relate a request to the connection of its contents.

use std::collections::HashMap;

use gannet_base::Addr;
use gannet_base::ConnId;
use gannet_base::Time;
use gannet_base::Uid;
use gannet_dict::KeyedHash;

use super::message::Pair;

/// Maximum stored length of a name, an error message or an option, in bytes.
const MAX_KEPT: usize = 1024;
/// Maximum number of options that are stored.
const MAX_OPTIONS: usize = 16;
/// Default block size, in bytes.
const DEFAULT_BLOCK_SIZE: usize = 512;
/// Valid values of the block size option (RFC 2348).
const BLOCK_SIZES: std::ops::RangeInclusive<usize> = 8..=65_464;

/// Identifies a transfer: address and port of the client, address of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) client: (Addr, u16),
    pub(super) server: Addr,
}

impl Key {
    /// The keys of the transfers to which a connection may belong: as its request, and as its
    /// contents.
    pub(super) fn for_connection(id: &ConnId) -> [Self; 2] {
        [
            Self { client: (id.orig_h, id.orig_p), server: id.resp_h },
            Self { client: (id.resp_h, id.resp_p), server: id.orig_h },
        ]
    }
}

/// The current transfers: at most one for each connection with requests. A transfer ends with the
/// connection of its contents, or with that of its request if there is no other.
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
    /// Whether the last block was sent.
    is_complete: bool,
    pub(super) error: Option<(u16, Vec<u8>)>,
}

impl Transfers {
    /// Adds a transfer; returns a previous one with the same key, which is complete.
    pub(super) fn add(&mut self, key: Key, transfer: Transfer) -> Option<Transfer> {
        self.all.insert(key, transfer)
    }

    /// The transfer that a connection belongs to. If several connections have the client's port,
    /// the first one with contents belongs to the transfer.
    pub(super) fn find(&mut self, id: &ConnId, uid: Uid) -> Option<(Key, &mut Transfer)> {
        let key = Key::for_connection(id).into_iter().find(|key| self.all.contains_key(key))?;
        let transfer = self.all.get_mut(&key)?;
        transfer.uid_data.is_none_or(|data| data == uid).then_some((key, transfer))
    }

    /// Removes a transfer that ended.
    pub(super) fn take(&mut self, key: &Key) -> Option<Transfer> {
        self.all.remove(key)
    }
}

impl Transfer {
    /// Creates the transfer of a request.
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
            filename: truncate(filename),
            mode: truncate(mode),
            options: Vec::new(),
            block: DEFAULT_BLOCK_SIZE,
            uid_data: None,
            size: 0,
            sent: 0,
            acked: 0,
            is_complete: false,
            error: None,
        }
    }

    /// Sets the connection of the contents.
    pub(super) fn begin(&mut self, uid: Uid) {
        self.uid_data.get_or_insert(uid);
    }

    /// Handles a block of the file; a repeated block counts once. Blocks that the capture lacks are
    /// skipped.
    pub(super) fn data(&mut self, block: u16, data: &[u8]) {
        // Block numbers wrap around: this is the nearest block with the number, either one that was
        // sent before or a new one.
        let ahead = block.wrapping_sub(self.sent as u16);
        if ahead != 0 && ahead <= u16::MAX / 2 {
            self.sent += u64::from(ahead);
            self.size += data.len() as u64;
            self.is_complete = data.len() < self.block;
        }
    }

    /// Handles an acknowledgement. Returns whether it was for the last block.
    pub(super) fn ack(&mut self, block: u16) -> bool {
        // Block numbers wrap around: this is the latest block that was sent with the number.
        let behind = u64::from((self.sent as u16).wrapping_sub(block));
        if let Some(acked) = self.sent.checked_sub(behind) {
            self.acked = self.acked.max(acked);
        }
        self.is_complete && self.acked == self.sent
    }

    /// Handles the options that the server accepts. Returns the name of a weird if one is invalid.
    pub(super) fn accept(&mut self, options: &[Pair<'_>]) -> Option<&'static str> {
        let mut weird = None;
        let available = MAX_OPTIONS.saturating_sub(self.options.len());
        for (name, value) in options.iter().take(available) {
            self.options.push(truncate(&[name, &b"="[..], value].concat()));
            if name.eq_ignore_ascii_case(b"blksize") {
                let number = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
                // The agreed value is used, even if it is invalid.
                if !number.is_some_and(|bytes| BLOCK_SIZES.contains(&bytes)) {
                    weird = Some("tftp_invalid_block_size");
                }
                self.block = number.filter(|bytes| *bytes > 0).unwrap_or(self.block);
            }
        }
        let is_cut = options.len() > available
            || options.iter().any(|(name, value)| name.len() + value.len() >= MAX_KEPT);
        weird.or(is_cut.then_some("tftp_long_options"))
    }

    /// Handles a failure of the transfer.
    pub(super) fn fail(&mut self, code: u16, message: &[u8]) {
        self.error = Some((code, truncate(message)));
    }
}

/// Whether a text is stored completely.
pub(super) fn fits(text: &[u8]) -> bool {
    text.len() <= MAX_KEPT
}

fn truncate(text: &[u8]) -> Vec<u8> {
    text[..text.len().min(MAX_KEPT)].to_vec()
}
