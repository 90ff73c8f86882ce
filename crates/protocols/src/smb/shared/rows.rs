//! Rows of smb_files.log, and the actions that are logged again when file contents time out.

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
        /// Time of the request that began the action.
        ts: Time = "ts",
        /// Its connection.
        uid: Uid = "uid",
        /// Originator and responder of the connection.
        id: ConnId = "id",
        /// Identifier of its contents in files.log.
        fuid: Option<Uid> = "fuid",
        /// Action.
        action: Enum = "action",
        /// Path of the share.
        path: Option<&'a [u8]> = "path",
        /// Name of the file.
        name: &'a [u8] = "name",
        /// Size of the file, in bytes.
        size: u64 = "size",
        /// Previous name of the file.
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

/// Interval in which a file is not logged again in the same state.
pub(in crate::smb) const QUIET: Interval = Interval::from_secs(180);

/// Maximum length of the names of a connection's last action, in bytes. An action with longer names
/// is not logged again, and `SMB_discarded_last_action` reports that.
pub(in crate::smb) const MAX_LAST_NAMES: usize = 1024;

/// The last logged action on connections that started files.
#[derive(Debug, Default)]
pub(crate) struct LastActions {
    pub(in crate::smb) last: HashMap<Uid, LastAction, KeyedHash>,
}

/// The last action on a connection.
#[derive(Debug)]
pub(in crate::smb) struct LastAction {
    pub(in crate::smb) id: ConnId,
    pub(in crate::smb) file: File,
    /// File whose contents began on the connection.
    pub(in crate::smb) transferred: FileId,
    /// Time at which it was last logged; `None` if it may be logged again at any time.
    pub(in crate::smb) logged: Option<Time>,
    /// Whether the connection has ended.
    pub(in crate::smb) is_over: bool,
}

impl LastActions {
    /// Replaces the stored action of a connection, unless the names are too long. Returns whether
    /// it was stored.
    pub(in crate::smb) fn store_last(&mut self, uid: Uid, last: LastAction) -> bool {
        let File { path, name, previous, .. } = &last.file;
        let names = [path, name, previous].into_iter().flatten();
        let fits = names.map(|n| n.len()).sum::<usize>() <= MAX_LAST_NAMES;
        if fits {
            // Bounded by the numbers of live connections and of files in transit.
            self.last.insert(uid, last);
        } else {
            self.last.remove(&uid);
        }
        fits
    }

    pub(in crate::smb) fn forget(&mut self, uid: Uid) {
        self.last.remove(&uid);
    }

    /// Notes the end of a connection: its last action is kept while its files may time out.
    pub(in crate::smb) fn connection_ended(&mut self, uid: Uid) {
        if let Some(last) = self.last.get_mut(&uid) {
            last.is_over = true;
        }
    }

    /// Logs a connection's last action again, because one of its files timed out.
    pub(crate) fn on_file_timeout(&mut self, logs: &mut Sinks, now: Time, uid: Uid) {
        let Some(last) = self.last.get_mut(&uid) else { return };
        let is_recent = last.logged.is_some_and(|logged| logged + QUIET >= now);
        last.logged = last.file.times.map(|_| now);
        if let Some(row) = row(uid, last.id, &last.file).filter(|_| !is_recent) {
            logs.write(&row);
        }
    }

    /// Removes the actions of ended connections whose contents will not time out.
    pub(in crate::smb) fn sweep(&mut self, files: &Files) {
        self.last.retain(|uid, last| !last.is_over || files.is_carried_by(last.transferred, *uid));
    }
}

/// The row of smb_files.log for a file on a connection; `None` if its action is not logged.
pub(in crate::smb) fn row(uid: Uid, id: ConnId, f: &File) -> Option<FilesRow<'_>> {
    let (action, name) = f.logged_action()?;
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
