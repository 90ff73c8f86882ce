//! State that sessions and the transfers that they announced share.

mod rows;

pub use self::rows::IrcRow;

use std::collections::HashMap;

use gannet_base::Addr;
use gannet_base::ConnId;
use gannet_base::Interval;
use gannet_base::Time;
use gannet_base::Uid;
use gannet_dict::ExpireOn;
use gannet_dict::ExpiringDict;
use gannet_dict::KeyedHash;

/// Time after which an unused offer expires.
const LIFETIME: Interval = Interval::from_secs(300);

/// Maximum number of expected transfers.
const MAX_EXPECTED: usize = 5000;

/// An announced endpoint: address, port, and whether it was announced on the global shard.
pub(crate) type Endpoint = (Addr, u16, bool);

/// State that connections to servers share with those that carry files.
///
/// The row of a transfer belongs to the session, which is kept until its transfers have ended or expired.
pub struct Shared {
    sessions: Sessions,
    /// Expected transfers: the session, and the time of the last use of the entry.
    expected: ExpiringDict<Endpoint, (Uid, Time)>,
}

impl Default for Shared {
    fn default() -> Self {
        let lifetime = LIFETIME.as_nanos().unsigned_abs();
        let expected = ExpiringDict::new(ExpireOn::Write, lifetime);
        Self { sessions: HashMap::default(), expected }
    }
}

/// A session.
#[derive(Debug)]
pub(super) struct Session {
    /// The row of the session.
    pub(super) row: IrcRow,
    /// The connection to the server is open.
    open: bool,
    /// Number of expected transfers of this session.
    expected: u32,
}

impl Shared {
    /// Returns the session of a connection with its time set to `now`; creates it if necessary.
    pub(super) fn session(&mut self, now: Time, uid: Uid, id: ConnId) -> &mut Session {
        let new = || Session { row: IrcRow::new(now, uid, id), open: true, expected: 0 };
        let session = self.sessions.entry(uid).or_insert_with(new);
        session.row.ts = now;
        session
    }

    /// Closes the session at the end of its connection.
    pub(super) fn close(&mut self, uid: Uid) {
        if let Some(session) = self.sessions.get_mut(&uid) {
            session.open = false;
            drop_unused(&mut self.sessions, uid);
        }
    }

    /// Whether the number of expected transfers is at the limit.
    pub(super) fn is_full(&mut self, now: Time) -> bool {
        let sessions = &mut self.sessions;
        self.expected.expire(nanos(now), usize::MAX, |_, (uid, _)| transfer_removed(sessions, uid));
        self.expected.len() >= MAX_EXPECTED
    }

    /// Registers a transfer from this endpoint that a session announced.
    pub(super) fn announce(&mut self, to: Endpoint, session: Uid, now: Time) {
        self.forget(to);
        if let Some(s) = self.sessions.get_mut(&session) {
            s.expected += 1;
            self.expected.insert(nanos(now), to, (session, now));
        }
    }

    /// Returns the row of the session that announced a transfer from this endpoint.
    pub(crate) fn announced(&mut self, to: Endpoint, now: Time) -> Option<&mut IrcRow> {
        self.expected.peek(&to).filter(|e| e.1 + LIFETIME > now)?;
        let entry = self.expected.get_mut(nanos(now), &to)?;
        entry.1 = now;
        self.sessions.get_mut(&entry.0).map(|s| &mut s.row)
    }

    /// Returns the name of the file that was offered from this endpoint.
    pub(super) fn file_name(&mut self, to: Endpoint, now: Time) -> Option<Vec<u8>> {
        self.announced(to, now)?.dcc_file_name.clone()
    }

    /// Removes the transfer from this endpoint.
    pub(super) fn forget(&mut self, to: Endpoint) {
        if let Some((uid, _)) = self.expected.remove(&to) {
            transfer_removed(&mut self.sessions, uid);
        }
    }
}

type Sessions = HashMap<Uid, Session, KeyedHash>;

/// Decrements the number of expected transfers of a session.
fn transfer_removed(sessions: &mut Sessions, uid: Uid) {
    if let Some(session) = sessions.get_mut(&uid) {
        session.expected = session.expected.saturating_sub(1);
        drop_unused(sessions, uid);
    }
}

fn drop_unused(sessions: &mut Sessions, uid: Uid) {
    if sessions.get(&uid).is_some_and(|s| !s.open && s.expected == 0) {
        sessions.remove(&uid);
    }
}

fn nanos(t: Time) -> u64 {
    t.as_nanos().max(0).unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use gannet_base::UidSource;

    #[test]
    fn sessions_live_as_long_as_transfers_are_expected() {
        let mut shared = Shared::default();
        let uid = UidSource::new(0).connection(1, 0);
        let host = Addr::v4([192, 0, 2, 1]);
        let id = ConnId { orig_h: host, resp_h: host, orig_p: 1, resp_p: 2 };
        let now = Time::from_secs(1000);
        shared.session(now, uid, id).row.nick = Some(b"me".to_vec());
        assert!(!shared.is_full(now));
        shared.announce((host, 99, true), uid, now);
        shared.close(uid);
        assert_eq!(
            shared.announced((host, 99, true), now).and_then(|r| r.nick.clone()),
            Some(b"me".to_vec())
        );
        shared.forget((host, 99, true));
        assert!(shared.sessions.is_empty() && shared.expected.is_empty());
    }

    #[test]
    fn offers_expire() {
        let mut shared = Shared::default();
        let uid = UidSource::new(0).connection(1, 0);
        let host = Addr::v4([192, 0, 2, 1]);
        let id = ConnId { orig_h: host, resp_h: host, orig_p: 1, resp_p: 2 };
        shared.session(Time::from_secs(1000), uid, id);
        shared.announce((host, 99, true), uid, Time::from_secs(1000));
        assert!(shared.announced((host, 99, true), Time::from_secs(1300)).is_none());
        assert!(!shared.is_full(Time::from_secs(1301)));
        assert!(shared.expected.is_empty());
    }
    /// An offer beyond the limit must not search all others.
    #[test]
    fn a_full_table_is_not_searched() {
        let mut shared = Shared::default();
        let uid = UidSource::new(0).connection(1, 0);
        let host = Addr::v4([192, 0, 2, 1]);
        let id = ConnId { orig_h: host, resp_h: host, orig_p: 1, resp_p: 2 };
        let now = Time::from_secs(1000);
        shared.session(now, uid, id);
        for n in 0..MAX_EXPECTED {
            assert!(!shared.is_full(now));
            shared.announce((host, n as u16, true), uid, now);
        }
        for _ in 0..200_000 {
            assert!(shared.is_full(now));
        }
        assert!(shared.is_full(now + LIFETIME - Interval::from_nanos(1)));
        shared.close(uid);
        assert!(!shared.is_full(now + LIFETIME));
        assert!(shared.sessions.is_empty() && shared.expected.is_empty());
    }
}
