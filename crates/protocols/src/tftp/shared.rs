//! Transfers: what joins a request and the connection of its contents.

use std::collections::HashMap;

use gannet_base::Addr;
use gannet_base::ConnId;
use gannet_base::Time;
use gannet_base::Uid;
use gannet_dict::KeyedHash;
use gannet_log::Vector;

use super::message::Pair;
use super::message::Request;
use super::rows::TftpRow;
use crate::Context;

/// Transfers at the most. At more, the older half is written as it is.
pub(super) const MAX_TRANSFERS: usize = 10_000;
/// Bytes of a name, an error or an option that are kept.
const MAX_KEPT: usize = 1024;
/// Options that are kept.
const MAX_OPTIONS: usize = 16;
/// Bytes of a part, unless an option says otherwise.
const BLOCK: usize = 512;

/// A transfer by its ends: address and port of the client, address of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
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

/// The transfers that are under way.
#[derive(Debug, Default)]
pub(super) struct Transfers {
    all: HashMap<Key, Transfer, KeyedHash>,
}

/// A transfer.
#[derive(Debug)]
pub(super) struct Transfer {
    ts: Time,
    uid: Uid,
    id: ConnId,
    writes: bool,
    filename: Vec<u8>,
    mode: Vec<u8>,
    options: Vec<Vec<u8>>,
    block: usize,
    uid_data: Option<Uid>,
    size: u64,
    sent: u64,
    acked: u64,
    /// The last part was sent.
    is_whole: bool,
    error: Option<(u16, Vec<u8>)>,
}

impl Transfers {
    /// Adds a transfer; returns another of the same ends, which is over.
    pub(super) fn add(&mut self, key: Key, transfer: Transfer) -> Option<Transfer> {
        self.all.insert(key, transfer)
    }

    /// Takes the older half, oldest first, if there are too many.
    pub(super) fn evict(&mut self) -> Vec<Transfer> {
        if self.all.len() <= MAX_TRANSFERS {
            return Vec::new();
        }
        let mut ages: Vec<_> = self.all.iter().map(|(key, t)| (t.ts, *key)).collect();
        ages.sort_unstable();
        let oldest = ages.iter().take(ages.len() / 2);
        oldest.filter_map(|(_, key)| self.all.remove(key)).collect()
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
    pub(super) fn new(ts: Time, uid: Uid, id: ConnId, request: &Request<'_>) -> Self {
        Self {
            ts,
            uid,
            id,
            writes: request.writes,
            filename: kept(request.filename),
            mode: kept(request.mode),
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

    /// A part of the file; one that is repeated counts once.
    pub(super) fn data(&mut self, block: u16, data: &[u8]) {
        if block == (self.sent as u16).wrapping_add(1) {
            self.sent += 1;
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

    /// Options that the server accepts. Returns whether all are kept.
    pub(super) fn accept(&mut self, options: &[Pair<'_>]) -> bool {
        let room = MAX_OPTIONS.saturating_sub(self.options.len());
        for (name, value) in options.iter().take(room) {
            self.options.push(kept(&[name, &b"="[..], value].concat()));
            let number = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
            if name.eq_ignore_ascii_case(b"blksize")
                && let Some(block) = number
            {
                self.block = block;
            }
        }
        options.len() <= room
            && options.iter().all(|(name, value)| name.len() + value.len() < MAX_KEPT)
    }

    /// The transfer failed.
    pub(super) fn fail(&mut self, code: u16, message: &[u8]) {
        self.error = Some((code, kept(message)));
    }

    /// Writes its row.
    pub(super) fn write(&self, cx: &mut Context<'_>) {
        let error = self.error.as_ref();
        let options = self.options.iter().map(Vec::as_slice).collect::<Vec<_>>();
        cx.log(&TftpRow {
            ts: self.ts,
            uid: self.uid,
            id: self.id,
            wrq: self.writes,
            fname: &self.filename,
            mode: &self.mode,
            uid_data: self.uid_data,
            size: self.size,
            block_sent: self.sent,
            block_acked: self.acked,
            error_code: error.map(|(code, _)| u64::from(*code)),
            error_msg: error.map(|(_, message)| &message[..]),
            options: (!options.is_empty()).then_some(Vector(options)),
        });
    }
}

/// Whether all of a text is kept.
pub(super) fn is_kept(text: &[u8]) -> bool {
    text.len() <= MAX_KEPT
}

fn kept(text: &[u8]) -> Vec<u8> {
    text[..text.len().min(MAX_KEPT)].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use gannet_base::Interval;
    use gannet_base::UidSource;

    #[test]
    fn the_older_half_makes_room() {
        let request = Request { writes: false, filename: b"f", mode: b"octet", options: vec![] };
        let mut transfers = Transfers::default();
        let server = Addr::v4([192, 0, 2, 1]);
        for n in 0..=MAX_TRANSFERS as u32 {
            let orig_h = Addr::v4((0x0a00_0000 + n).to_be_bytes());
            let id = ConnId { orig_h, orig_p: 2000, resp_h: server, resp_p: 69 };
            let ts = Time::from_secs(1_000) + Interval::from_secs(n.into());
            let uid = UidSource::new(0).connection(n.into(), 0);
            let [key, _] = Key::of(&id);
            assert!(transfers.evict().is_empty());
            assert!(transfers.add(key, Transfer::new(ts, uid, id, &request)).is_none());
        }
        let times: Vec<_> = transfers.evict().iter().map(|t| t.ts).collect();
        assert_eq!((times.len(), transfers.all.len()), (MAX_TRANSFERS / 2, MAX_TRANSFERS / 2 + 1));
        assert!(times.is_sorted() && transfers.all.values().all(|t| t.ts > times[times.len() - 1]));
    }
}
