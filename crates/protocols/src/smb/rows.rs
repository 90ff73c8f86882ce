use gannet_base::ConnId;
use gannet_base::Time;
use gannet_base::Uid;
use gannet_log::Enum;
use gannet_log::Seconds;

use super::info::File;
use super::info::Tree;
use crate::Context;

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

/// The row of smb_files.log for a file on a connection; `None` if its action is not logged.
pub(super) fn file(uid: Uid, id: ConnId, f: &File) -> Option<FilesRow<'_>> {
    let (name, (_, action)) = (f.name.as_deref()?, f.action?);
    let times = f.times.as_ref();
    Some(FilesRow {
        ts: f.ts,
        uid,
        id,
        fuid: f.fuid,
        action: action?,
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

/// Writes a row of smb_mapping.log.
pub(super) fn write_mapping(cx: &mut Context<'_>, t: &Tree) {
    let unknown;
    let share_type = match t.share.name() {
        Some(name) => name,
        None => {
            unknown = t.share.unknown();
            &unknown
        }
    };
    cx.log(&MappingRow {
        ts: t.ts,
        uid: cx.conn.uid,
        id: cx.conn.id,
        path: t.path.as_deref(),
        service: t.service.as_deref(),
        native_file_system: t.file_system.as_deref(),
        share_type,
    });
}

/// A time in tenths of microseconds since 1601 ([MS-DTYP] §2.3.3), with the precision that
/// floating-point seconds since then have.
///
/// [MS-DTYP]: https://learn.microsoft.com/en-us/openspecs/windows_protocols/ms-dtyp
pub(super) fn time(filetime: u64) -> Seconds {
    Seconds(filetime as f64 / 10_000_000.0 - 11_644_473_600.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_since_1601() {
        assert_eq!(time(116_444_736_000_000_000), Seconds(0.0));
        assert_eq!(time(116_444_736_015_000_000), Seconds(1.5));
        assert_eq!(time(0), Seconds(-11_644_473_600.0));
    }
}
