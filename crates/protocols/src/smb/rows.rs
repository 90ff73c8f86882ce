//! smb_files.log and smb_mapping.log: files by their last actions, each state once in a while, and trees.

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
use super::shared::rows::Last;
use super::shared::rows::MAX_LAST_NAMES;
use super::shared::rows::QUIET;
use super::shared::rows::row;
use crate::Context;
use crate::OnEvent;
use crate::support::limit_reached;

gannet_log::row! {
    /// One row for each share that is connected to.
    pub struct MappingRow<'a> = "smb_mapping" {
        /// When it was asked for.
        ts: Time = "ts",
        /// Its connection.
        uid: Uid = "uid",
        /// The connection's ends.
        id: ConnId = "id",
        /// Its name.
        path: Option<&'a [u8]> = "path",
        /// Kind of service (SMB 1).
        service: Option<&'a [u8]> = "service",
        /// File system (SMB 1).
        native_file_system: Option<&'a [u8]> = "native_file_system",
        /// `DISK`, `PIPE` or `PRINT`.
        share_type: &'a str = "share_type",
    }
}

/// Time between two scans for states that may be logged again, which data triggers.
const SWEEP: Interval = Interval::from_secs(10);
/// States that a connection remembers. At this number all are forgotten, so that a state may be logged twice:
/// `SMB_discarded_file_states` reports it.
const MAX_RECENT: usize = 1 << 16;

/// The rows of one connection.
#[derive(Debug, Default)]
pub(super) struct Rows {
    recent: HashMap<u64, Time, KeyedHash>,
    /// When those that are not recent any more are forgotten next; nothing before any data.
    sweep: Option<Time>,
    /// Whether the last action is kept to be logged when contents that began here time out.
    is_kept: bool,
    /// The names of a last action were too long to be kept, which is reported once a connection.
    is_limited: bool,
    /// More states than are remembered, which is reported once a connection.
    is_full: bool,
}

impl Rows {
    /// The connection is over.
    pub(super) fn finish(&mut self, cx: &mut Context<'_>) {
        if self.is_kept {
            cx.env.smb.rows.leave(cx.conn.uid);
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
        if let Some(key) = identity(self.recent.hasher(), event.file) {
            if self.recent.len() >= MAX_RECENT && !self.recent.contains_key(&key) {
                self.recent.clear();
                if !std::mem::replace(&mut self.is_full, true) {
                    let most = MAX_RECENT.to_string();
                    limit_reached(cx, "SMB_discarded_file_states", &most, Some("SMB"));
                }
            }
            if self.recent.insert(key, cx.now).is_some() {
                return;
            }
        }
        cx.log(&row);
    }
}

/// When contents that began here time out, Zeek logs the last action again, even if it was about another file: this
/// keeps the action for that case.
impl OnEvent<SmbLastAction<'_>> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &SmbLastAction<'_>) {
        let (uid, kept) = (cx.conn.uid, &mut cx.env.smb.rows);
        if let Some(file) = event.file {
            let key = identity(self.recent.hasher(), file);
            let logged = key.and_then(|key| self.recent.get(&key).copied());
            let (file, carried) = (file.clone(), event.carried.0);
            let last = Last { id: cx.conn.id, file, carried, logged, is_over: false };
            self.is_kept = kept.keep(uid, last);
            if !self.is_kept && !std::mem::replace(&mut self.is_limited, true) {
                let most = MAX_LAST_NAMES.to_string();
                limit_reached(cx, "SMB_discarded_last_action", &most, Some("SMB"));
            }
        } else if std::mem::take(&mut self.is_kept) {
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

/// A keyed hash of the columns that make rows of a file equal. `None`: rows of files without times
/// are all logged.
fn identity(hash: &KeyedHash, file: &File) -> Option<u64> {
    let (action, times) = (file.action?.1?, file.times?);
    let names = (file.name.as_deref()?, file.path.as_deref());
    let changes = [file.size, times.modified, times.created, times.changed];
    Some(hash.hash_one((action, file.fuid.map(Uid::bits), names, changes)))
}

#[cfg(test)]
mod tests {
    use gannet_base::Dir;
    use gannet_base::Proto;

    use super::super::events::Carried;
    use super::super::files::data;
    use super::super::info::Action;
    use super::super::info::Times;
    use super::*;
    use crate::testing::Harness;

    #[test]
    fn long_names_are_not_stored_for_a_second_report() {
        let mut h = Harness::new(Proto::Tcp, 445);
        let some = File { name: Some(vec![b'a'].into()), ..File::default() };
        let carried = data(&mut h.cx(), &some, Dir::Orig, 0, b"x").and_then(|(_, id)| id).unwrap();
        let mut rows = Rows::default();
        let mut kept = |len: usize| {
            let file = File { name: Some(vec![b'a'; len].into()), ..File::default() };
            let mut cx = h.cx();
            let (c, carried) = (gannet_event::Connection::CURRENT, Carried(carried));
            rows.on_event(&mut cx, &SmbLastAction { c, file: Some(&file), carried });
            cx.env.smb.rows.last.len()
        };
        let lens = [MAX_LAST_NAMES, MAX_LAST_NAMES + 1, MAX_LAST_NAMES + 2, 1];
        assert_eq!(lens.map(&mut kept), [1, 0, 0, 1]);
        // Once a connection.
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
        // A known state is not a further one.
        assert_eq!(after(&mut h, 0..1), (MAX_RECENT, 0));
        // A further one makes all others unknown: they are logged again.
        assert_eq!(after(&mut h, MAX_RECENT..MAX_RECENT + 1), (1, 1));
        let logged = h.rows("smb_files").len();
        assert_eq!(after(&mut h, 0..1), (2, 1));
        assert_eq!(h.rows("smb_files").len(), logged + 1);
        // The limit is reported once a connection.
        assert_eq!(after(&mut h, 1..MAX_RECENT), (1, 1));
        let weirds = h.rows("weird");
        let weirds: Vec<_> = weirds.iter().map(|row| (&*row["name"], &*row["addl"])).collect();
        assert_eq!(weirds, [("SMB_discarded_file_states", "65536")]);
    }
}
