//! Data connections that control connections announced, and their results.

use std::collections::HashMap;

use gannet_base::Addr;
use gannet_base::Interval;
use gannet_base::Time;
use gannet_base::Uid;
use gannet_dict::ExpireOn;
use gannet_dict::ExpiringDict;
use gannet_dict::KeyedHash;

/// An announcement without a connection expires after this time.
const LIFETIME: Interval = Interval::from_secs(300);

/// Data connections that are awaited at a time.
const MAX_EXPECTED: usize = 100_000;

/// An announced endpoint, and whether it was announced within the global shard.
pub(crate) type Endpoint = (Addr, u16, bool);

/// What control connections and their data connections share.
pub struct Shared {
    /// Awaited data connections: the control connection, and when the entry was last used.
    expected: ExpiringDict<Endpoint, (Uid, Time)>,
    /// The last file of a data connection, by open control connection that announced one.
    files: HashMap<Uid, Transfer, KeyedHash>,
}

impl Default for Shared {
    fn default() -> Self {
        let lifetime = LIFETIME.as_nanos().unsigned_abs();
        Self { expected: ExpiringDict::new(ExpireOn::Write, lifetime), files: HashMap::default() }
    }
}

/// The facts of a transferred file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transfer {
    /// Its name in the logs.
    pub fuid: Option<Uid>,
    /// Its type.
    pub mime_type: Option<&'static str>,
}

impl Shared {
    /// A control connection announced a data connection to this endpoint.
    ///
    /// # Errors
    /// How many are awaited, when that is too many for one more.
    pub fn announce(&mut self, to: Endpoint, control: Uid, now: Time) -> Result<(), usize> {
        // A full table costs no search for expired entries: they are all at the front.
        self.expected.expire(nanos(now), usize::MAX, |_, _| ());
        let awaited = self.expected.len();
        if awaited >= MAX_EXPECTED && self.expected.peek(&to).is_none() {
            return Err(awaited);
        }
        self.expected.insert(nanos(now), to, (control, now));
        self.files.entry(control).or_default();
        Ok(())
    }

    /// The control connection that announced a data connection to this endpoint.
    pub fn control(&mut self, to: Endpoint, now: Time) -> Option<Uid> {
        self.expected.peek(&to).filter(|e| e.1 + LIFETIME > now)?;
        let entry = self.expected.get_mut(nanos(now), &to)?;
        entry.1 = now;
        Some(entry.0)
    }

    /// The data connection to this endpoint is over.
    pub fn forget(&mut self, to: Endpoint) {
        self.expected.remove(&to);
    }

    /// A data connection of `control` carries a file: nothing if that one is gone.
    pub fn found(&mut self, control: Uid) -> Option<&mut Transfer> {
        self.files.get_mut(&control)
    }

    /// The last file of a control connection; it counts for one command.
    pub fn take(&mut self, control: Uid) -> Transfer {
        if self.files.is_empty() {
            return Transfer::default();
        }
        self.files.get_mut(&control).map(std::mem::take).unwrap_or_default()
    }

    /// A control connection is gone.
    pub fn close(&mut self, control: Uid) {
        self.files.remove(&control);
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
    fn announcements_are_found_and_forgotten() {
        let mut shared = Shared::default();
        let uid = UidSource::new(0).connection(1, 0);
        let to = (Addr::v4([192, 0, 2, 1]), 2000, true);
        assert_eq!(shared.announce(to, uid, Time::from_secs(1000)), Ok(()));
        assert_eq!(shared.control(to, Time::from_secs(1299)), Some(uid));
        // Asking for it keeps it alive.
        assert_eq!(shared.control(to, Time::from_secs(1500)), Some(uid));
        assert_eq!(shared.control(to, Time::from_secs(1801)), None);
        shared.forget(to);
        assert_eq!(shared.control(to, Time::from_secs(1500)), None);
    }

    /// Each announcement beyond the limit had all others looked through: ten megabytes took minutes.
    #[test]
    fn what_is_full_is_not_searched() {
        let mut shared = Shared::default();
        let uid = UidSource::new(0).connection(1, 0);
        let to = |n: usize| (Addr::v4((n as u32).to_be_bytes()), 2000, true);
        let at = |ms: usize| Time::from_secs(1000) + Interval::from_millis(2 * ms as i64);
        for n in 0..MAX_EXPECTED {
            assert_eq!(shared.announce(to(n), uid, at(n)), Ok(()));
        }
        for n in MAX_EXPECTED..150_000 {
            assert_eq!(shared.announce(to(n), uid, at(n)), Err(MAX_EXPECTED));
        }
        assert_eq!(shared.announce(to(5), uid, at(149_999)), Ok(()), "one that is there already");
        for n in 150_000..200_000 {
            let there = n != 150_005;
            assert_eq!(shared.announce(to(n), uid, at(n)).is_ok(), there, "the oldest left");
        }
    }

    #[test]
    fn a_file_counts_once_and_for_who_is_there() {
        let mut shared = Shared::default();
        let uid = UidSource::new(0).connection(1, 0);
        let to = (Addr::v4([192, 0, 2, 1]), 2000, true);
        assert_eq!(shared.announce(to, uid, Time::from_secs(1000)), Ok(()));
        let found = |shared: &mut Shared| {
            shared.found(uid).map(|t| t.mime_type = Some("text/plain")).is_some()
        };
        assert!(found(&mut shared));
        assert_eq!(shared.take(uid).mime_type, Some("text/plain"));
        assert_eq!(shared.take(uid), Transfer::default());
        // A closed control connection gets no further reports of its data connections.
        shared.close(uid);
        assert!(!found(&mut shared) && shared.files.is_empty());
    }
}
