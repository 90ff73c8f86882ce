//! The connections that a task owns.

use std::ops::Range;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;

use foldhash::fast::RandomState;
use gannet_base::UID_TEXT_MAX;
use gannet_base::Uid;
use gannet_engine::ConnectionObserver;
use hashbrown::HashSet;

/// The text of a uid, zeros behind it.
type Text = [u8; UID_TEXT_MAX];

/// Connections whose first packet has one of these numbers. 18 bytes each, for as long as the task runs: rows
/// of a connection may come after its row in conn.log.
#[derive(Debug)]
pub(crate) struct Owned {
    packets: Range<u64>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    uids: HashSet<Text, RandomState>,
    /// Those whose row in conn.log was written.
    ended: u64,
}

impl Owned {
    pub(crate) fn new(packets: Range<u64>) -> Self {
        Self { packets, state: Mutex::default() }
    }

    /// Whether a connection is owned.
    pub(crate) fn has(&self, uid: &[u8]) -> bool {
        text(uid).is_some_and(|uid| self.lock().uids.contains(&uid))
    }

    /// A connection that is owned has ended.
    pub(crate) fn end(&self) {
        self.lock().ended += 1;
    }

    /// Owned connections that have not ended.
    pub(crate) fn live(&self) -> u64 {
        let state = self.lock();
        (state.uids.len() as u64).saturating_sub(state.ended)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectionObserver for Owned {
    fn connection_began(&self, packet: u64, uid: Uid) {
        if self.packets.contains(&packet) {
            let (bytes, len) = uid.text();
            if let Some(uid) = bytes.get(..len).and_then(text) {
                self.lock().uids.insert(uid);
            }
        }
    }
}

fn text(uid: &[u8]) -> Option<Text> {
    let mut text = [0; UID_TEXT_MAX];
    text.get_mut(..uid.len())?.copy_from_slice(uid);
    Some(text)
}
