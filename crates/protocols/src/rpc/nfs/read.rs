//! Decodes arguments and results.
//!
//! If a message is truncated, missing values are 0 or unset, and callers discard the whole
//! structure. Weirds for numbers without a name are reported nevertheless, as in Zeek.

use std::borrow::Cow;

use gannet_base::Time;

use super::types::*;
use crate::Context;
use crate::Tag;
use crate::rpc::xdr::Xdr;

/// Maximum length of a file handle, in bytes.
const MAX_HANDLE: u32 = 64;

/// Maximum number of data bytes in events, if scripts request data and set no limit.
const MAX_DATA: u64 = 512;

/// A file handle or name, owned so that it outlives the message.
pub(super) type Text = Cow<'static, [u8]>;

fn owned(text: Option<&[u8]>) -> Text {
    Cow::Owned(text.unwrap_or_default().to_vec())
}

/// Reports a number without a name.
pub(super) fn report(cx: &mut Context<'_>, name: &'static str, number: u32) {
    cx.weird(name, &number.to_string(), Some(Tag::Nfs.name()));
}

/// Decoder of a message of a connection.
pub(super) struct Reader<'r, 'c, 'a> {
    pub(super) cx: &'r mut Context<'c>,
    pub(super) x: &'r mut Xdr<'a>,
}

/// Types that occur in several messages.
impl<'a> Reader<'_, '_, 'a> {
    fn handle(&mut self) -> Option<&'a [u8]> {
        self.x.opaque(MAX_HANDLE)
    }

    fn time(&mut self) -> Time {
        Time::from_nanos(self.x.nanos())
    }

    /// Decodes a named number; reports a weird if it has no name.
    fn enumerator<T>(&mut self, of: fn(u32) -> Option<T>, weird: &'static str) -> Option<T> {
        let number = self.x.u32();
        let value = of(number);
        if value.is_none() {
            report(self.cx, weird, number);
        }
        value
    }

    /// Decodes an optional value.
    fn optional<T>(&mut self, read: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.x.bool().then(|| read(self))
    }

    fn time_how(&mut self) -> Option<TimeHow> {
        self.enumerator(TimeHow::from_number, "unhandled_nfs3_time_how")
    }

    fn stable_how(&mut self) -> Option<StableHow> {
        self.enumerator(StableHow::from_number, "unhandled_nfs3_stable_how")
    }

    /// Decodes the attributes of a file.
    pub(super) fn fattr(&mut self) -> Fattr {
        Fattr {
            ftype: self.enumerator(FileType::from_number, "unhandled_nfs3_file_type"),
            mode: self.x.u32(),
            nlink: self.x.u32(),
            uid: self.x.u32(),
            gid: self.x.u32(),
            size: self.x.u64(),
            used: self.x.u64(),
            rdev1: self.x.u32(),
            rdev2: self.x.u32(),
            fsid: self.x.u64(),
            fileid: self.x.u64(),
            atime: self.time(),
            mtime: self.time(),
            ctime: self.time(),
        }
    }

    fn after(&mut self) -> Option<Fattr> {
        self.optional(Self::fattr)
    }

    fn before(&mut self) -> Option<WccAttr> {
        self.optional(|r| WccAttr { size: r.x.u64(), atime: r.time(), mtime: r.time() })
    }

    fn new_handle(&mut self) -> Option<&'a [u8]> {
        self.optional(Self::handle).flatten()
    }

    /// Decodes data of a file, up to the number of bytes that scripts request. The message may
    /// contain fewer than the `size` bytes that it announces.
    fn data(&mut self, offset: u64, size: u32) -> Option<&'a [u8]> {
        let data = self.x.truncated_opaque()?;
        let is_wanted = self.cx.env.setting("NFS3::return_data", 0) != 0;
        let is_first_only = self.cx.env.setting("NFS3::return_data_first_only", 1) != 0;
        if !is_wanted || is_first_only && offset != 0 {
            return None;
        }
        let max = self.cx.env.setting("NFS3::return_data_max", MAX_DATA);
        // As in Zeek, sizes from 2^31 on are negative.
        let max = max.min(i32::try_from(size).map_or(0, |size| size as u64));
        let data = &data[..data.len().min(usize::try_from(max).unwrap_or(usize::MAX))];
        (!data.is_empty()).then_some(data)
    }
}

/// Decoders of arguments.
impl Reader<'_, '_, '_> {
    /// A file handle.
    pub(super) fn file(&mut self) -> Text {
        owned(self.handle())
    }

    fn text(&mut self) -> Text {
        owned(self.x.string())
    }

    /// A directory handle and a name in the directory.
    pub(super) fn name_in(&mut self) -> DirOpArgs<'static> {
        DirOpArgs { dirfh: self.file(), fname: self.text() }
    }

    /// Attributes to set. As in Zeek, a client-supplied time is not decoded, and the size is the
    /// bit pattern of a floating-point number: Zeek reads it as seconds and nanoseconds.
    fn sattr(&mut self) -> Sattr {
        Sattr {
            mode: self.optional(|r| r.x.u32()),
            uid: self.optional(|r| r.x.u32()),
            gid: self.optional(|r| r.x.u32()),
            size: self.optional(|r| r.x.seconds().to_bits()),
            atime: self.time_how(),
            mtime: self.time_how(),
        }
    }

    /// A file and the attributes to set.
    pub(super) fn sattr_args(&mut self) -> SattrArgs<'static> {
        SattrArgs { fh: self.file(), new_attributes: self.sattr() }
    }

    /// A range of a file to read.
    pub(super) fn read_args(&mut self) -> ReadArgs<'static> {
        ReadArgs { fh: self.file(), offset: self.x.u64(), size: self.x.u32() }
    }

    /// A range of a file to write.
    pub(super) fn write_args(&mut self) -> WriteArgs<'static> {
        let (fh, offset, size) = (self.file(), self.x.u64(), self.x.u32());
        let stable = self.stable_how();
        let data = self.data(offset, size).map(|data| owned(Some(data)));
        WriteArgs { fh, offset, size, stable, data }
    }

    /// A symbolic link to create.
    pub(super) fn symlink_args(&mut self) -> SymlinkArgs<'static> {
        let link = self.name_in();
        let symlink_attributes = self.sattr();
        let nfspath = self.x.string().map(|path| owned(Some(path)));
        SymlinkArgs { link, symlinkdata: SymlinkData { symlink_attributes, nfspath } }
    }

    /// A file to rename.
    pub(super) fn rename_args(&mut self) -> RenameArgs<'static> {
        RenameArgs {
            src_dirfh: self.file(),
            src_fname: self.text(),
            dst_dirfh: self.file(),
            dst_fname: self.text(),
        }
    }

    /// A directory whose entries to read.
    pub(super) fn readdir_args(&mut self, isplus: bool) -> ReaddirArgs<'static> {
        ReaddirArgs {
            isplus,
            dirfh: self.file(),
            cookie: self.x.u64(),
            cookieverf: self.x.u64(),
            dircount: self.x.u32(),
            maxcount: isplus.then(|| self.x.u32()),
        }
    }
}

/// Decoders of results, which depend on the status.
impl<'a> Reader<'_, '_, 'a> {
    /// Results of SETATTR.
    pub(super) fn sattr_reply(&mut self, status: NfsStatus) -> SattrReply {
        if status != NfsStatus::OK {
            return SattrReply { dir_pre_attr: None, dir_post_attr: None };
        }
        SattrReply { dir_pre_attr: self.before(), dir_post_attr: self.after() }
    }

    /// Results of LOOKUP.
    pub(super) fn lookup_reply(&mut self, status: NfsStatus) -> LookupReply<'a> {
        let (fh, obj_attr) = match status {
            NfsStatus::OK => (self.handle(), self.after()),
            _ => (None, None),
        };
        LookupReply { fh, obj_attr, dir_attr: self.after() }
    }

    /// Results of READ from `offset` on.
    pub(super) fn read_reply(&mut self, status: NfsStatus, offset: u64) -> ReadReply<'a> {
        let attr = self.after();
        if status != NfsStatus::OK {
            return ReadReply { attr, size: None, eof: None, data: None };
        }
        let (size, eof) = (self.x.u32(), self.x.bool());
        ReadReply { attr, size: Some(size), eof: Some(eof), data: self.data(offset, size) }
    }

    /// Results of READLINK.
    pub(super) fn readlink_reply(&mut self, status: NfsStatus) -> ReadlinkReply<'a> {
        let attr = self.after();
        let nfspath = if status == NfsStatus::OK { self.x.string() } else { None };
        ReadlinkReply { attr, nfspath }
    }

    /// Results of LINK.
    pub(super) fn link_reply(&mut self, status: NfsStatus) -> LinkReply {
        if status != NfsStatus::OK {
            return LinkReply { post_attr: None, preattr: None, postattr: None };
        }
        LinkReply { post_attr: self.after(), preattr: self.before(), postattr: self.after() }
    }

    /// Results of WRITE. As in Zeek, the attributes of a failed call are read as those after it and
    /// those before it, in this order.
    pub(super) fn write_reply(&mut self, status: NfsStatus) -> WriteReply {
        if status != NfsStatus::OK {
            let (postattr, preattr) = (self.after(), self.before());
            return WriteReply { preattr, postattr, size: None, commited: None, verf: None };
        }
        WriteReply {
            preattr: self.before(),
            postattr: self.after(),
            size: Some(self.x.u32()),
            commited: self.stable_how(),
            verf: Some(self.x.u64()),
        }
    }

    /// Results of CREATE, MKDIR and SYMLINK.
    pub(super) fn new_obj_reply(&mut self, status: NfsStatus) -> NewObjReply<'a> {
        let (fh, obj_attr) = match status {
            NfsStatus::OK => (self.new_handle(), self.after()),
            _ => (None, None),
        };
        NewObjReply { fh, obj_attr, dir_pre_attr: self.before(), dir_post_attr: self.after() }
    }

    /// Results of REMOVE and RMDIR.
    pub(super) fn del_obj_reply(&mut self) -> DelObjReply {
        DelObjReply { dir_pre_attr: self.before(), dir_post_attr: self.after() }
    }

    /// Results of RENAME.
    pub(super) fn rename_reply(&mut self) -> RenameReply {
        RenameReply {
            src_dir_pre_attr: self.before(),
            src_dir_post_attr: self.after(),
            dst_dir_pre_attr: self.before(),
            dst_dir_post_attr: self.after(),
        }
    }

    /// Results of READDIR and READDIRPLUS.
    pub(super) fn readdir_reply(&mut self, status: NfsStatus, isplus: bool) -> ReaddirReply<'a> {
        let dir_attr = self.after();
        if status != NfsStatus::OK {
            return ReaddirReply { isplus, dir_attr, cookieverf: None, entries: None, eof: None };
        }
        let cookieverf = Some(self.x.u64());
        let mut entries = Vec::new();
        while self.x.bool() {
            let fileid = self.x.u64();
            let fname = self.x.string().unwrap_or_default();
            let cookie = self.x.u64();
            let attr = if isplus { self.after() } else { None };
            let fh = if isplus { self.new_handle() } else { None };
            entries.push(DirEntry { fileid, fname, cookie, attr, fh });
        }
        let eof = Some(self.x.bool());
        let entries = Some(gannet_event::FromOne(entries));
        ReaddirReply { isplus, dir_attr, cookieverf, entries, eof }
    }
}
