//! Sessions, and the transfers that they announced.

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

/// An offer without a connection expires after this time.
const LIFETIME: Interval = Interval::from_secs(300);

/// Transfers that are awaited at a time.
const MAX_EXPECTED: usize = 5000;

/// An announced endpoint, and whether it was announced within the global shard.
pub(crate) type Endpoint = (Addr, u16, bool);

/// What connections to servers share with those that carry files.
///
/// A transfer's row is the session's, whether or not that is still open when the file comes.
pub struct Shared {
    sessions: Sessions,
    /// Awaited transfers: the session, and when the entry was last used.
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
    /// Its row.
    pub(super) row: IrcRow,
    open: bool,
    /// Transfers that point here.
    awaited: u32,
}

impl Shared {
    /// A session at its newest message.
    pub(super) fn session(&mut self, now: Time, uid: Uid, id: ConnId) -> &mut Session {
        let new = || Session { row: IrcRow::new(now, uid, id), open: true, awaited: 0 };
        let session = self.sessions.entry(uid).or_insert_with(new);
        session.row.ts = now;
        session
    }

    /// The connection to the server is over.
    pub(super) fn close(&mut self, uid: Uid) {
        if let Some(session) = self.sessions.get_mut(&uid) {
            session.open = false;
            drop_unused(&mut self.sessions, uid);
        }
    }

    /// Whether no more transfers can be awaited.
    pub(super) fn is_full(&mut self, now: Time) -> bool {
        let sessions = &mut self.sessions;
        self.expected.expire(nanos(now), usize::MAX, |_, (uid, _)| left(sessions, uid));
        self.expected.len() >= MAX_EXPECTED
    }

    /// A session announced a transfer from this endpoint.
    pub(super) fn announce(&mut self, to: Endpoint, session: Uid, now: Time) {
        self.forget(to);
        if let Some(s) = self.sessions.get_mut(&session) {
            s.awaited += 1;
            self.expected.insert(nanos(now), to, (session, now));
        }
    }

    /// The row of the session that announced a transfer from this endpoint.
    pub(crate) fn announced(&mut self, to: Endpoint, now: Time) -> Option<&mut IrcRow> {
        self.expected.peek(&to).filter(|e| e.1 + LIFETIME > now)?;
        let entry = self.expected.get_mut(nanos(now), &to)?;
        entry.1 = now;
        self.sessions.get_mut(&entry.0).map(|s| &mut s.row)
    }

    /// Name of the file that was offered from this endpoint.
    pub(super) fn file_name(&mut self, to: Endpoint, now: Time) -> Option<Vec<u8>> {
        self.announced(to, now)?.dcc_file_name.clone()
    }

    /// The transfer from this endpoint is not awaited any longer.
    pub(super) fn forget(&mut self, to: Endpoint) {
        if let Some((uid, _)) = self.expected.remove(&to) {
            left(&mut self.sessions, uid);
        }
    }
}

type Sessions = HashMap<Uid, Session, KeyedHash>;

/// A transfer of this session is not awaited any longer.
fn left(sessions: &mut Sessions, uid: Uid) {
    if let Some(session) = sessions.get_mut(&uid) {
        session.awaited = session.awaited.saturating_sub(1);
        drop_unused(sessions, uid);
    }
}

fn drop_unused(sessions: &mut Sessions, uid: Uid) {
    if sessions.get(&uid).is_some_and(|s| !s.open && s.awaited == 0) {
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
    fn sessions_live_as_long_as_they_are_awaited() {
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
    /// Each offer beyond the limit had all others looked through.
    #[test]
    fn what_is_full_is_not_searched() {
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
