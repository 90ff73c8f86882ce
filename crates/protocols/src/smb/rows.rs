//! smb_files.log and smb_mapping.log: actions on files, where equal states are logged only once in
//! an interval, and tree connects.

use std::collections::HashMap;
use std::hash::BuildHasher;

use gannet_base::ConnId;
use gannet_base::Interval;
use gannet_base::Time;
use gannet_base::Uid;
use gannet_dict::KeyedHash;

use super::events::SmbData;
use super::events::SmbFileAction;
use super::events::SmbLastAction;
use super::events::SmbMapping;
use super::info::File;
use super::shared::rows::LastAction;
use super::shared::rows::MAX_LAST_NAMES;
use super::shared::rows::QUIET;
use super::shared::rows::row;
use crate::Context;
use crate::OnEvent;
use crate::support::limit_reached;

gannet_log::row! {
    /// One row for each share that a client is connected to.
    pub struct MappingRow<'a> = "smb_mapping" {
        /// Time of the request.
        ts: Time = "ts",
        /// Its connection.
        uid: Uid = "uid",
        /// Originator and responder of the connection.
        id: ConnId = "id",
        /// Path of the share.
        path: Option<&'a [u8]> = "path",
        /// Service type (SMB 1).
        service: Option<&'a [u8]> = "service",
        /// File system (SMB 1).
        native_file_system: Option<&'a [u8]> = "native_file_system",
        /// `DISK`, `PIPE` or `PRINT`.
        share_type: &'a str = "share_type",
    }
}

/// Minimum interval between scans for states that may be logged again; data triggers the scans.
const SWEEP: Interval = Interval::from_secs(10);
/// Maximum number of states kept per connection. When it is reached, all are dropped, so that a
/// state may be logged twice: `SMB_discarded_file_states` reports it.
const MAX_RECENT: usize = 1 << 16;

/// The rows of one connection.
#[derive(Debug, Default)]
pub(super) struct Rows {
    recent: HashMap<u64, Time, KeyedHash>,
    /// Time of the next scan for expired states; `None` before any data.
    sweep: Option<Time>,
    /// Whether the last action is stored, to be logged when contents that began on the connection
    /// time out.
    is_stored: bool,
    /// Whether it was reported that the names of a last action were too long to be stored; reported
    /// once per connection.
    is_limited: bool,
    /// Whether it was reported that there were too many states; reported once per connection.
    is_full: bool,
}

impl Rows {
    /// Ends the rows with the connection.
    pub(super) fn finish(&mut self, cx: &mut Context<'_>) {
        if self.is_stored {
            cx.env.smb.rows.connection_ended(cx.conn.uid);
        }
    }
}

impl OnEvent<SmbData> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, _event: &SmbData) {
        let now = cx.now;
        match self.sweep {
            None => self.sweep = Some(now),
            Some(due) if now >= due => {
                self.recent.retain(|_, seen| *seen + QUIET >= now);
                self.sweep = Some(now + SWEEP);
            }
            Some(_) => {}
        }
    }
}

impl OnEvent<SmbFileAction<'_>> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &SmbFileAction<'_>) {
        let Some(row) = row(cx.conn.uid, cx.conn.id, event.file) else { return };
        if let Some(key) = state_hash(self.recent.hasher(), event.file) {
            if self.recent.len() >= MAX_RECENT && !self.recent.contains_key(&key) {
                self.recent.clear();
                if !std::mem::replace(&mut self.is_full, true) {
                    let limit = MAX_RECENT.to_string();
                    limit_reached(cx, "SMB_discarded_file_states", &limit, Some("SMB"));
                }
            }
            if self.recent.insert(key, cx.now).is_some() {
                return;
            }
        }
        cx.log(&row);
    }
}

/// When contents that began on a connection time out, Zeek logs its last action again, even if that
/// was on another file: this stores the action for that case.
impl OnEvent<SmbLastAction<'_>> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &SmbLastAction<'_>) {
        let (uid, kept) = (cx.conn.uid, &mut cx.env.smb.rows);
        if let Some(file) = event.file {
            let key = state_hash(self.recent.hasher(), file);
            let logged = key.and_then(|key| self.recent.get(&key).copied());
            let (file, transferred) = (file.clone(), event.transferred.0);
            let last = LastAction { id: cx.conn.id, file, transferred, logged, is_over: false };
            self.is_stored = kept.store_last(uid, last);
            if !self.is_stored && !std::mem::replace(&mut self.is_limited, true) {
                let limit = MAX_LAST_NAMES.to_string();
                limit_reached(cx, "SMB_discarded_last_action", &limit, Some("SMB"));
            }
        } else if std::mem::take(&mut self.is_stored) {
            kept.forget(uid);
        }
    }
}

impl OnEvent<SmbMapping<'_>> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &SmbMapping<'_>) {
        let unknown;
        let share_type = match event.share.name() {
            Some(name) => name,
            None => {
                unknown = event.share.unknown();
                &unknown
            }
        };
        cx.log(&MappingRow {
            ts: event.ts,
            uid: cx.conn.uid,
            id: cx.conn.id,
            path: event.path,
            service: event.service,
            native_file_system: event.native_file_system,
            share_type,
        });
    }
}

/// A keyed hash of the columns that identify equal states of a file. `None` for files without
/// times, whose states are all logged.
fn state_hash(hash: &KeyedHash, file: &File) -> Option<u64> {
    let (action, times) = (file.action?.1?, file.times?);
    let names = (file.name.as_deref()?, file.path.as_deref());
    let changes = [file.size, times.modified, times.created, times.changed];
    Some(hash.hash_one((action, file.fuid.map(Uid::bits), names, changes)))
}

#[cfg(test)]
mod tests {
    use gannet_base::Dir;
    use gannet_base::Proto;

    use super::super::events::TransferredFile;
    use super::super::files::data;
    use super::super::info::Action;
    use super::super::info::Times;
    use super::*;
    use crate::testing::Harness;

    #[test]
    fn long_names_are_not_stored_for_a_second_report() {
        let mut h = Harness::new(Proto::Tcp, 445);
        let some = File { name: Some(vec![b'a'].into()), ..File::default() };
        let transferred =
            data(&mut h.cx(), &some, Dir::Orig, 0, b"x").and_then(|(_, id)| id).unwrap();
        let mut rows = Rows::default();
        let mut kept = |len: usize| {
            let file = File { name: Some(vec![b'a'; len].into()), ..File::default() };
            let mut cx = h.cx();
            let (c, transferred) =
                (gannet_event::Connection::CURRENT, TransferredFile(transferred));
            rows.on_event(&mut cx, &SmbLastAction { c, file: Some(&file), transferred });
            cx.env.smb.rows.last.len()
        };
        let lens = [MAX_LAST_NAMES, MAX_LAST_NAMES + 1, MAX_LAST_NAMES + 2, 1];
        assert_eq!(lens.map(&mut kept), [1, 0, 0, 1]);
        // Reported once per connection.
        let weirds = h.rows("weird");
        let names: Vec<&str> = weirds.iter().map(|row| &*row["name"]).collect();
        assert_eq!(names, ["SMB_discarded_last_action"]);
    }
    #[test]
    fn states_of_files_are_remembered_up_to_a_limit() {
        let mut h = Harness::new(Proto::Tcp, 445);
        let mut rows = Rows::default();
        let mut after = |h: &mut Harness, numbers: std::ops::Range<usize>| {
            for number in numbers {
                let file = File {
                    action: Some((Action::Open, Some("SMB::FILE_OPEN"))),
                    name: Some(number.to_string().into_bytes().into()),
                    times: Some(Times { created: 1, accessed: 1, modified: 1, changed: 1 }),
                    ..File::default()
                };
                let c = gannet_event::Connection::CURRENT;
                rows.on_event(&mut h.cx(), &SmbFileAction { c, file: &file });
            }
            (rows.recent.len(), h.rows("weird").len())
        };
        assert_eq!(after(&mut h, 0..MAX_RECENT), (MAX_RECENT, 0));
        // A known state does not count again.
        assert_eq!(after(&mut h, 0..1), (MAX_RECENT, 0));
        // One more state drops all others: they are logged again.
        assert_eq!(after(&mut h, MAX_RECENT..MAX_RECENT + 1), (1, 1));
        let logged = h.rows("smb_files").len();
        assert_eq!(after(&mut h, 0..1), (2, 1));
        assert_eq!(h.rows("smb_files").len(), logged + 1);
        // The limit is reported once per connection.
        assert_eq!(after(&mut h, 1..MAX_RECENT), (1, 1));
        let weirds = h.rows("weird");
        let weirds: Vec<_> = weirds.iter().map(|row| (&*row["name"], &*row["addl"])).collect();
        assert_eq!(weirds, [("SMB_discarded_file_states", "65536")]);
    }
}
