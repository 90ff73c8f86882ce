//! Rows of smb_files.log, and the actions that are logged again when contents time out.

use std::collections::HashMap;

use gannet_base::ConnId;
use gannet_base::Interval;
use gannet_base::Time;
use gannet_base::Uid;
use gannet_dict::KeyedHash;
use gannet_event::Sinks;
use gannet_files::FileId;
use gannet_files::Files;
use gannet_log::Enum;
use gannet_log::Seconds;

use crate::smb::info::File;
use crate::smb::info::seconds;

gannet_log::row! {
    /// One row for each file that is opened, renamed or deleted.
    pub struct FilesRow<'a> = "smb_files" {
        /// When the request was seen that began with it.
        ts: Time = "ts",
        /// Its connection.
        uid: Uid = "uid",
        /// The connection's ends.
        id: ConnId = "id",
        /// Its contents as a file.
        fuid: Option<Uid> = "fuid",
        /// Action.
        action: Enum = "action",
        /// Path of the share.
        path: Option<&'a [u8]> = "path",
        /// Its name.
        name: &'a [u8] = "name",
        /// Its size.
        size: u64 = "size",
        /// Its previous name.
        prev_name: Option<&'a [u8]> = "prev_name",
        /// Time of the last write.
        modified: Option<Seconds> = "times.modified",
        /// Time of the last access.
        accessed: Option<Seconds> = "times.accessed",
        /// Creation time.
        created: Option<Seconds> = "times.created",
        /// Time of the last change of the file or its attributes.
        changed: Option<Seconds> = "times.changed",
    }
}

/// How long a file is not logged again in the same state.
pub(in crate::smb) const QUIET: Interval = Interval::from_secs(180);

/// Most bytes of names of a connection's last action. An action with longer names is not logged again, and
/// `SMB_discarded_last_action` says so.
pub(in crate::smb) const MAX_LAST_NAMES: usize = 1024;

/// The last logged action on connections that started files.
#[derive(Debug, Default)]
pub(crate) struct LastActions {
    pub(in crate::smb) last: HashMap<Uid, Last, KeyedHash>,
}

/// The last action on a connection.
#[derive(Debug)]
pub(in crate::smb) struct Last {
    pub(in crate::smb) id: ConnId,
    pub(in crate::smb) file: File,
    /// Contents that began there.
    pub(in crate::smb) carried: FileId,
    /// When it was last logged, if it must not be logged again soon.
    pub(in crate::smb) logged: Option<Time>,
    /// The connection is over.
    pub(in crate::smb) is_over: bool,
}

impl LastActions {
    /// Keeps an action in place of the one before, unless its names are too long: whether it is kept.
    pub(in crate::smb) fn keep(&mut self, uid: Uid, last: Last) -> bool {
        let File { path, name, previous, .. } = &last.file;
        let names = [path, name, previous].into_iter().flatten();
        let fits = names.map(|n| n.len()).sum::<usize>() <= MAX_LAST_NAMES;
        if fits {
            // No more than there are live connections and files in transit.
            self.last.insert(uid, last);
        } else {
            self.last.remove(&uid);
        }
        fits
    }

    pub(in crate::smb) fn forget(&mut self, uid: Uid) {
        self.last.remove(&uid);
    }

    /// The connection is over: its last action is kept while its files may time out.
    pub(in crate::smb) fn leave(&mut self, uid: Uid) {
        if let Some(last) = self.last.get_mut(&uid) {
            last.is_over = true;
        }
    }

    /// A file of a connection timed out: logs the connection's last action again.
    pub(crate) fn given_up(&mut self, logs: &mut Sinks, now: Time, uid: Uid) {
        let Some(last) = self.last.get_mut(&uid) else { return };
        let is_recent = last.logged.is_some_and(|logged| logged + QUIET >= now);
        last.logged = last.file.times.map(|_| now);
        if let Some(row) = row(uid, last.id, &last.file).filter(|_| !is_recent) {
            logs.write(&row);
        }
    }

    /// Forgets those of connections that are over, whose contents will not time out.
    pub(in crate::smb) fn sweep(&mut self, files: &Files) {
        self.last.retain(|uid, last| !last.is_over || files.is_carried_by(last.carried, *uid));
    }
}

/// The row of smb_files.log for a file on a connection; `None` if its action is not logged.
pub(in crate::smb) fn row(uid: Uid, id: ConnId, f: &File) -> Option<FilesRow<'_>> {
    let (action, name) = f.acted_on()?;
    let time = |filetime| Seconds(seconds(filetime));
    let times = f.times.as_ref();
    Some(FilesRow {
        ts: f.ts,
        uid,
        id,
        fuid: f.fuid,
        action: Enum(action),
        path: f.path.as_deref(),
        name,
        size: f.size,
        prev_name: f.previous.as_deref(),
        modified: times.map(|t| time(t.modified)),
        accessed: times.map(|t| time(t.accessed)),
        created: times.map(|t| time(t.created)),
        changed: times.map(|t| time(t.changed)),
    })
}
