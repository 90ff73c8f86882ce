//! State that control connections and data connections share: announcements and transferred files.

use std::collections::HashMap;

use gannet_base::Addr;
use gannet_base::Interval;
use gannet_base::Time;
use gannet_base::Uid;
use gannet_dict::ExpireOn;
use gannet_dict::ExpiringDict;
use gannet_dict::KeyedHash;

/// Time after which an unused announcement expires.
const LIFETIME: Interval = Interval::from_secs(300);

/// Maximum number of expected data connections.
const MAX_EXPECTED: usize = 100_000;

/// An announced endpoint: address, port, and whether it was announced on the global shard.
pub(crate) type Endpoint = (Addr, u16, bool);

/// State that control connections and their data connections share.
pub struct Shared {
    /// Expected data connections: the control connection, and the time of the last use of the entry.
    expected: ExpiringDict<Endpoint, (Uid, Time)>,
    /// The last transferred file, by open control connection that announced a data connection.
    files: HashMap<Uid, Transfer, KeyedHash>,
}

impl Default for Shared {
    fn default() -> Self {
        let lifetime = LIFETIME.as_nanos().unsigned_abs();
        Self { expected: ExpiringDict::new(ExpireOn::Write, lifetime), files: HashMap::default() }
    }
}

/// A transferred file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transfer {
    /// Identifier of the file in the logs.
    pub fuid: Option<Uid>,
    /// MIME type of the file.
    pub mime_type: Option<&'static str>,
}

impl Shared {
    /// Registers a data connection to this endpoint that a control connection announced.
    ///
    /// # Errors
    /// The number of expected data connections, if it is at the limit.
    pub fn announce(&mut self, to: Endpoint, control: Uid, now: Time) -> Result<(), usize> {
        // Expired entries are at the front, so that a full table is not searched.
        self.expected.expire(nanos(now), usize::MAX, |_, _| ());
        let expected = self.expected.len();
        if expected >= MAX_EXPECTED && self.expected.peek(&to).is_none() {
            return Err(expected);
        }
        self.expected.insert(nanos(now), to, (control, now));
        self.files.entry(control).or_default();
        Ok(())
    }

    /// Returns the control connection that announced a data connection to this endpoint.
    pub fn control(&mut self, to: Endpoint, now: Time) -> Option<Uid> {
        self.expected.peek(&to).filter(|e| e.1 + LIFETIME > now)?;
        let entry = self.expected.get_mut(nanos(now), &to)?;
        entry.1 = now;
        Some(entry.0)
    }

    /// Removes the announcement of this endpoint when its data connection ends.
    pub fn forget(&mut self, to: Endpoint) {
        self.expected.remove(&to);
    }

    /// Returns the transfer of a control connection, to set the file that a data connection carries; `None` if the control
    /// connection has ended.
    pub fn transfer(&mut self, control: Uid) -> Option<&mut Transfer> {
        self.files.get_mut(&control)
    }

    /// Takes the last transferred file of a control connection, for the row of one command.
    pub fn take_transfer(&mut self, control: Uid) -> Transfer {
        if self.files.is_empty() {
            return Transfer::default();
        }
        self.files.get_mut(&control).map(std::mem::take).unwrap_or_default()
    }

    /// Removes a control connection that has ended.
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
    fn announcements_are_found_and_removed() {
        let mut shared = Shared::default();
        let uid = UidSource::new(0).connection(1, 0);
        let to = (Addr::v4([192, 0, 2, 1]), 2000, true);
        assert_eq!(shared.announce(to, uid, Time::from_secs(1000)), Ok(()));
        assert_eq!(shared.control(to, Time::from_secs(1299)), Some(uid));
        // A look-up extends its lifetime.
        assert_eq!(shared.control(to, Time::from_secs(1500)), Some(uid));
        assert_eq!(shared.control(to, Time::from_secs(1801)), None);
        shared.forget(to);
        assert_eq!(shared.control(to, Time::from_secs(1500)), None);
    }

    /// An announcement beyond the limit must not search all others.
    #[test]
    fn a_full_table_is_not_searched() {
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
    fn a_file_counts_once_and_only_for_an_open_control_connection() {
        let mut shared = Shared::default();
        let uid = UidSource::new(0).connection(1, 0);
        let to = (Addr::v4([192, 0, 2, 1]), 2000, true);
        assert_eq!(shared.announce(to, uid, Time::from_secs(1000)), Ok(()));
        let found = |shared: &mut Shared| {
            shared.transfer(uid).map(|t| t.mime_type = Some("text/plain")).is_some()
        };
        assert!(found(&mut shared));
        assert_eq!(shared.take_transfer(uid).mime_type, Some("text/plain"));
        assert_eq!(shared.take_transfer(uid), Transfer::default());
        // A closed control connection gets no further reports of its data connections.
        shared.close(uid);
        assert!(!found(&mut shared) && shared.files.is_empty());
    }
}
