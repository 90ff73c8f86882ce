//! Connections that a task owns.

use std::ops::Range;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;

use foldhash::fast::RandomState;
use gannet_base::UID_TEXT_MAX;
use gannet_base::Uid;
use gannet_engine::ConnectionObserver;
use hashbrown::HashSet;

/// The text of a uid, padded with zeros.
type UidText = [u8; UID_TEXT_MAX];

/// Connections whose first packet number is in a range. Each takes 18 bytes until the task ends, because rows of a
/// connection may follow its row in conn.log.
#[derive(Debug)]
pub(crate) struct OwnedConnections {
    packets: Range<u64>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    uids: HashSet<UidText, RandomState>,
    /// Number of connections whose row in conn.log was written.
    ended: u64,
}

impl OwnedConnections {
    pub(crate) fn new(packets: Range<u64>) -> Self {
        Self { packets, state: Mutex::default() }
    }

    /// Whether the task owns a connection.
    pub(crate) fn has(&self, uid: &[u8]) -> bool {
        uid_text(uid).is_some_and(|uid| self.lock().uids.contains(&uid))
    }

    /// Counts an owned connection that has ended.
    pub(crate) fn end(&self) {
        self.lock().ended += 1;
    }

    /// Number of owned connections that have not ended.
    pub(crate) fn live(&self) -> u64 {
        let state = self.lock();
        (state.uids.len() as u64).saturating_sub(state.ended)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectionObserver for OwnedConnections {
    fn connection_began(&self, packet: u64, uid: Uid) {
        if self.packets.contains(&packet) {
            let (bytes, len) = uid.text();
            if let Some(uid) = bytes.get(..len).and_then(uid_text) {
                self.lock().uids.insert(uid);
            }
        }
    }
}

fn uid_text(uid: &[u8]) -> Option<UidText> {
    let mut uid_text = [0; UID_TEXT_MAX];
    uid_text.get_mut(..uid.len())?.copy_from_slice(uid);
    Some(uid_text)
}
