//! Types of NFS calls and replies (RFC 1813 section 2), with Zeek's names.

use std::borrow::Cow;

use gannet_base::Time;

use crate::rpc::names::named;

named! {
    /// A procedure.
    pub struct Proc = "NFS3::proc_t" {
        0 => "NFS3::PROC_NULL",
        1 => "NFS3::PROC_GETATTR",
        2 => "NFS3::PROC_SETATTR",
        3 => "NFS3::PROC_LOOKUP",
        4 => "NFS3::PROC_ACCESS",
        5 => "NFS3::PROC_READLINK",
        6 => "NFS3::PROC_READ",
        7 => "NFS3::PROC_WRITE",
        8 => "NFS3::PROC_CREATE",
        9 => "NFS3::PROC_MKDIR",
        10 => "NFS3::PROC_SYMLINK",
        11 => "NFS3::PROC_MKNOD",
        12 => "NFS3::PROC_REMOVE",
        13 => "NFS3::PROC_RMDIR",
        14 => "NFS3::PROC_RENAME",
        15 => "NFS3::PROC_LINK",
        16 => "NFS3::PROC_READDIR",
        17 => "NFS3::PROC_READDIRPLUS",
        18 => "NFS3::PROC_FSSTAT",
        19 => "NFS3::PROC_FSINFO",
        20 => "NFS3::PROC_PATHCONF",
        21 => "NFS3::PROC_COMMIT",
        22 => "NFS3::PROC_END_OF_PROCS",
    }
}

named! {
    /// NFS status of a reply.
    pub struct NfsStatus = "NFS3::status_t" {
        0 => "NFS3::NFS3ERR_OK",
        1 => "NFS3::NFS3ERR_PERM",
        2 => "NFS3::NFS3ERR_NOENT",
        5 => "NFS3::NFS3ERR_IO",
        6 => "NFS3::NFS3ERR_NXIO",
        13 => "NFS3::NFS3ERR_ACCES",
        17 => "NFS3::NFS3ERR_EXIST",
        18 => "NFS3::NFS3ERR_XDEV",
        19 => "NFS3::NFS3ERR_NODEV",
        20 => "NFS3::NFS3ERR_NOTDIR",
        21 => "NFS3::NFS3ERR_ISDIR",
        22 => "NFS3::NFS3ERR_INVAL",
        27 => "NFS3::NFS3ERR_FBIG",
        28 => "NFS3::NFS3ERR_NOSPC",
        30 => "NFS3::NFS3ERR_ROFS",
        31 => "NFS3::NFS3ERR_MLINK",
        63 => "NFS3::NFS3ERR_NAMETOOLONG",
        66 => "NFS3::NFS3ERR_NOTEMPTY",
        69 => "NFS3::NFS3ERR_DQUOT",
        70 => "NFS3::NFS3ERR_STALE",
        71 => "NFS3::NFS3ERR_REMOTE",
        10001 => "NFS3::NFS3ERR_BADHANDLE",
        10002 => "NFS3::NFS3ERR_NOT_SYNC",
        10003 => "NFS3::NFS3ERR_BAD_COOKIE",
        10004 => "NFS3::NFS3ERR_NOTSUPP",
        10005 => "NFS3::NFS3ERR_TOOSMALL",
        10006 => "NFS3::NFS3ERR_SERVERFAULT",
        10007 => "NFS3::NFS3ERR_BADTYPE",
        10008 => "NFS3::NFS3ERR_JUKEBOX",
        0xffff_ffff => "NFS3::NFS3ERR_UNKNOWN",
    }
}

impl NfsStatus {
    pub(super) const OK: Self = Self(0);
    pub(super) const UNKNOWN: Self = Self(u32::MAX);
}

named! {
    /// How a time is set.
    pub struct TimeHow = "NFS3::time_how_t" {
        0 => "NFS3::DONT_CHANGE",
        1 => "NFS3::SET_TO_SERVER_TIME",
        2 => "NFS3::SET_TO_CLIENT_TIME",
    }
}

named! {
    /// The type of a file.
    pub struct FileType = "NFS3::file_type_t" {
        1 => "NFS3::FTYPE_REG",
        2 => "NFS3::FTYPE_DIR",
        3 => "NFS3::FTYPE_BLK",
        4 => "NFS3::FTYPE_CHR",
        5 => "NFS3::FTYPE_LNK",
        6 => "NFS3::FTYPE_SOCK",
        7 => "NFS3::FTYPE_FIFO",
    }
}

named! {
    /// When written data must be on stable storage.
    pub struct StableHow = "NFS3::stable_how_t" {
        0 => "NFS3::UNSTABLE",
        1 => "NFS3::DATA_SYNC",
        2 => "NFS3::FILE_SYNC",
    }
}

gannet_event::record! {
    /// Attributes to set.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Sattr = "NFS3::sattr_t" {
        /// Permissions.
        mode: Option<u32> = "mode",
        /// Owner.
        uid: Option<u32> = "uid",
        /// Group.
        gid: Option<u32> = "gid",
        /// Size in bytes.
        size: Option<u64> = "size",
        /// How the time of the last access is set.
        atime: Option<TimeHow> = "atime",
        /// How the time of the last modification is set.
        mtime: Option<TimeHow> = "mtime",
    }
}

gannet_event::record! {
    /// Attributes of a file.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Fattr = "NFS3::fattr_t" {
        /// File type, if known.
        ftype: Option<FileType> = "ftype",
        /// Permissions.
        mode: u32 = "mode",
        /// Number of hard links.
        nlink: u32 = "nlink",
        /// Owner.
        uid: u32 = "uid",
        /// Group.
        gid: u32 = "gid",
        /// Size in bytes.
        size: u64 = "size",
        /// Number of bytes of storage used.
        used: u64 = "used",
        /// Major device number.
        rdev1: u32 = "rdev1",
        /// Minor device number.
        rdev2: u32 = "rdev2",
        /// File system identifier.
        fsid: u64 = "fsid",
        /// File identifier within the file system.
        fileid: u64 = "fileid",
        /// Time of the last access.
        atime: Time = "atime",
        /// Time of the last modification.
        mtime: Time = "mtime",
        /// Time of the last change of attributes.
        ctime: Time = "ctime",
    }
}

gannet_event::record! {
    /// Weak cache consistency attributes: those before a call.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct WccAttr = "NFS3::wcc_attr_t" {
        /// Size in bytes.
        size: u64 = "size",
        /// Time of the last modification.
        atime: Time = "atime",
        /// Time of the last change of attributes.
        mtime: Time = "mtime",
    }
}

gannet_event::record! {
    /// A name in a directory.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct DirOpArgs<'a> = "NFS3::diropargs_t" {
        /// The directory.
        dirfh: Cow<'a, [u8]> = "dirfh",
        /// The name.
        fname: Cow<'a, [u8]> = "fname",
    }
}

gannet_event::record! {
    /// Contents of a symbolic link.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct SymlinkData<'a> = "NFS3::symlinkdata_t" {
        /// Attributes.
        symlink_attributes: Sattr = "symlink_attributes",
        /// Target path.
        nfspath: Option<Cow<'a, [u8]>> = "nfspath",
    }
}

gannet_event::record! {
    /// A symbolic link to create.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct SymlinkArgs<'a> = "NFS3::symlinkargs_t" {
        /// Directory and name of the link.
        link: DirOpArgs<'a> = "link",
        /// Contents of the link.
        symlinkdata: SymlinkData<'a> = "symlinkdata",
    }
}

gannet_event::record! {
    /// A hard link to create.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct LinkArgs<'a> = "NFS3::linkargs_t" {
        /// The file.
        fh: Cow<'a, [u8]> = "fh",
        /// Directory and name of the link.
        link: DirOpArgs<'a> = "link",
    }
}

gannet_event::record! {
    /// Attributes of a file to set.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct SattrArgs<'a> = "NFS3::sattrargs_t" {
        /// The file.
        fh: Cow<'a, [u8]> = "fh",
        /// The attributes.
        new_attributes: Sattr = "new_attributes",
    }
}

gannet_event::record! {
    /// A file to rename.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct RenameArgs<'a> = "NFS3::renameopargs_t" {
        /// Source directory.
        src_dirfh: Cow<'a, [u8]> = "src_dirfh",
        /// Source name.
        src_fname: Cow<'a, [u8]> = "src_fname",
        /// Target directory.
        dst_dirfh: Cow<'a, [u8]> = "dst_dirfh",
        /// Target name.
        dst_fname: Cow<'a, [u8]> = "dst_fname",
    }
}

gannet_event::record! {
    /// A range of a file to read.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ReadArgs<'a> = "NFS3::readargs_t" {
        /// The file.
        fh: Cow<'a, [u8]> = "fh",
        /// Offset of the range, in bytes.
        offset: u64 = "offset",
        /// Number of bytes to read.
        size: u32 = "size",
    }
}

gannet_event::record! {
    /// A range of a file to write.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct WriteArgs<'a> = "NFS3::writeargs_t" {
        /// The file.
        fh: Cow<'a, [u8]> = "fh",
        /// Offset of the range, in bytes.
        offset: u64 = "offset",
        /// Number of bytes to write.
        size: u32 = "size",
        /// When the data must be on stable storage, if known.
        stable: Option<StableHow> = "stable",
        /// The data, if scripts request it.
        data: Option<Cow<'a, [u8]>> = "data",
    }
}

gannet_event::record! {
    /// A directory whose entries to read.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ReaddirArgs<'a> = "NFS3::readdirargs_t" {
        /// Whether attributes are requested, too.
        isplus: bool = "isplus",
        /// The directory.
        dirfh: Cow<'a, [u8]> = "dirfh",
        /// Cookie of the entry to start after.
        cookie: u64 = "cookie",
        /// Cookie verifier: identifies the version of the directory that the cookie refers to.
        cookieverf: u64 = "cookieverf",
        /// Maximum number of bytes of directory information.
        dircount: u32 = "dircount",
        /// Maximum length of the reply in bytes, if attributes are requested.
        maxcount: Option<u32> = "maxcount",
    }
}

gannet_event::record! {
    /// Results of a lookup.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct LookupReply<'a> = "NFS3::lookup_reply_t" {
        /// The file.
        fh: Option<&'a [u8]> = "fh",
        /// Its attributes.
        obj_attr: Option<Fattr> = "obj_attr",
        /// Attributes of the directory.
        dir_attr: Option<Fattr> = "dir_attr",
    }
}

gannet_event::record! {
    /// Results of reading a file.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ReadReply<'a> = "NFS3::read_reply_t" {
        /// Attributes of the file.
        attr: Option<Fattr> = "attr",
        /// Number of bytes read.
        size: Option<u32> = "size",
        /// Whether the end of the file was reached.
        eof: Option<bool> = "eof",
        /// The data, if scripts request it.
        data: Option<&'a [u8]> = "data",
    }
}

gannet_event::record! {
    /// Results of reading a symbolic link.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ReadlinkReply<'a> = "NFS3::readlink_reply_t" {
        /// Attributes of the link.
        attr: Option<Fattr> = "attr",
        /// Target path.
        nfspath: Option<&'a [u8]> = "nfspath",
    }
}

gannet_event::record! {
    /// Results of creating a hard link.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct LinkReply = "NFS3::link_reply_t" {
        /// Attributes of the file.
        post_attr: Option<Fattr> = "post_attr",
        /// Attributes of the directory before.
        preattr: Option<WccAttr> = "preattr",
        /// Attributes of the directory afterwards.
        postattr: Option<Fattr> = "postattr",
    }
}

gannet_event::record! {
    /// Results of setting attributes.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct SattrReply = "NFS3::sattr_reply_t" {
        /// Attributes before.
        dir_pre_attr: Option<WccAttr> = "dir_pre_attr",
        /// Attributes afterwards.
        dir_post_attr: Option<Fattr> = "dir_post_attr",
    }
}

gannet_event::record! {
    /// Results of writing a file.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct WriteReply = "NFS3::write_reply_t" {
        /// Attributes before.
        preattr: Option<WccAttr> = "preattr",
        /// Attributes afterwards.
        postattr: Option<Fattr> = "postattr",
        /// Number of bytes written.
        size: Option<u32> = "size",
        /// Whether the data is on stable storage.
        commited: Option<StableHow> = "commited",
        /// Write verifier: identifies the server's instance that stores the data.
        verf: Option<u64> = "verf",
    }
}

gannet_event::record! {
    /// Results of creating a file.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct NewObjReply<'a> = "NFS3::newobj_reply_t" {
        /// The file.
        fh: Option<&'a [u8]> = "fh",
        /// Its attributes.
        obj_attr: Option<Fattr> = "obj_attr",
        /// Attributes of the directory before.
        dir_pre_attr: Option<WccAttr> = "dir_pre_attr",
        /// Attributes of the directory afterwards.
        dir_post_attr: Option<Fattr> = "dir_post_attr",
    }
}

gannet_event::record! {
    /// Results of removing a file.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct DelObjReply = "NFS3::delobj_reply_t" {
        /// Attributes of the directory before.
        dir_pre_attr: Option<WccAttr> = "dir_pre_attr",
        /// Attributes of the directory afterwards.
        dir_post_attr: Option<Fattr> = "dir_post_attr",
    }
}

gannet_event::record! {
    /// Results of renaming a file.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct RenameReply = "NFS3::renameobj_reply_t" {
        /// Attributes of the source directory before.
        src_dir_pre_attr: Option<WccAttr> = "src_dir_pre_attr",
        /// Attributes of the source directory afterwards.
        src_dir_post_attr: Option<Fattr> = "src_dir_post_attr",
        /// Attributes of the target directory before.
        dst_dir_pre_attr: Option<WccAttr> = "dst_dir_pre_attr",
        /// Attributes of the target directory afterwards.
        dst_dir_post_attr: Option<Fattr> = "dst_dir_post_attr",
    }
}

gannet_event::record! {
    /// An entry of a directory.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct DirEntry<'a> = "NFS3::direntry_t" {
        /// File identifier.
        fileid: u64 = "fileid",
        /// Its name.
        fname: &'a [u8] = "fname",
        /// Cookie with which to read the following entries.
        cookie: u64 = "cookie",
        /// Attributes of the file, if requested.
        attr: Option<Fattr> = "attr",
        /// File handle, if attributes are requested.
        fh: Option<&'a [u8]> = "fh",
    }
}

gannet_event::record! {
    /// Results of reading a directory.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ReaddirReply<'a> = "NFS3::readdir_reply_t" {
        /// Whether attributes were requested, too.
        isplus: bool = "isplus",
        /// Attributes of the directory.
        dir_attr: Option<Fattr> = "dir_attr",
        /// Cookie verifier: identifies the version of the directory.
        cookieverf: Option<u64> = "cookieverf",
        /// Its entries.
        entries: Option<gannet_event::FromOne<DirEntry<'a>>> = "entries",
        /// Whether the end of the directory was reached.
        eof: Option<bool> = "eof",
    }
}
