//! Events of NFS.

use std::borrow::Cow;

use gannet_base::Interval;
use gannet_base::Time;
use gannet_event::Connection;

use super::types::*;
use crate::rpc::analyzer::ReplyInfo;
use crate::rpc::message::Call;
use crate::rpc::message::Status;

gannet_event::record! {
    /// A call and its reply.
    pub struct Info<'a> = "NFS3::info_t" {
        /// RPC status of the call.
        rpc_stat: Status = "rpc_stat",
        /// NFS status of the call.
        nfs_stat: NfsStatus = "nfs_stat",
        /// Time of the first byte of the call.
        req_start: Time = "req_start",
        /// Time from the first to the last byte of the call.
        req_dur: Interval = "req_dur",
        /// Number of bytes of the call after transaction identifier and message type.
        req_len: u64 = "req_len",
        /// Time of the first byte of the reply.
        rep_start: Time = "rep_start",
        /// Time from the first to the last byte of the reply.
        rep_dur: Interval = "rep_dur",
        /// Number of bytes of the reply after transaction identifier and message type.
        rep_len: u64 = "rep_len",
        /// User ID of the caller.
        rpc_uid: u32 = "rpc_uid",
        /// Group ID of the caller.
        rpc_gid: u32 = "rpc_gid",
        /// An arbitrary identifier that the client chose.
        rpc_stamp: u32 = "rpc_stamp",
        /// Name of the client's machine.
        rpc_machine_name: &'a [u8] = "rpc_machine_name",
        /// Further group IDs of the caller.
        rpc_auxgids: Vec<u64> = "rpc_auxgids",
    }
}

impl<'a> Info<'a> {
    pub(super) fn new(call: &'a Call, reply: &ReplyInfo, nfs_stat: NfsStatus) -> Self {
        Self {
            rpc_stat: reply.status,
            nfs_stat,
            req_start: call.start,
            req_dur: call.last - call.start,
            req_len: call.len as u64,
            rep_start: reply.start,
            rep_dur: reply.last - reply.start,
            rep_len: reply.len as u64,
            rpc_uid: call.cred.uid,
            rpc_gid: call.cred.gid,
            rpc_stamp: call.cred.stamp,
            rpc_machine_name: &call.cred.machine,
            rpc_auxgids: call.cred.signed_groups(),
        }
    }
}

gannet_event::events! {
    crate::events::module_of(crate::Tag::Nfs);

    with { /// The connection.
        c: Connection = "c",
        /// Call and reply.
        info: Info<'a> = "info",
    } {
        /// An NFS server answered a call without arguments.
        pub struct NfsProcNull<'a> = "nfs_proc_null", opt_in {}

        /// Attributes of a file were read.
        pub struct NfsProcGetattr<'a> = "nfs_proc_getattr", opt_in {
            /// The file.
            fh: Cow<'a, [u8]> = "fh",
            /// Its attributes.
            attrs: Fattr = "attrs",
        }

        /// Attributes of a file were set.
        pub struct NfsProcSattr<'a> = "nfs_proc_sattr", opt_in {
            /// Arguments of the call.
            req: SattrArgs<'a> = "req",
            /// Results.
            rep: SattrReply = "rep",
        }

        /// A name was looked up in a directory.
        pub struct NfsProcLookup<'a> = "nfs_proc_lookup", opt_in {
            /// Arguments of the call.
            req: DirOpArgs<'a> = "req",
            /// Results.
            rep: LookupReply<'a> = "rep",
        }

        /// A file was read.
        pub struct NfsProcRead<'a> = "nfs_proc_read", opt_in {
            /// Arguments of the call.
            req: ReadArgs<'a> = "req",
            /// Results.
            rep: ReadReply<'a> = "rep",
        }

        /// A symbolic link was read.
        pub struct NfsProcReadlink<'a> = "nfs_proc_readlink", opt_in {
            /// The link.
            fh: Cow<'a, [u8]> = "fh",
            /// Results.
            rep: ReadlinkReply<'a> = "rep",
        }

        /// A symbolic link was created.
        pub struct NfsProcSymlink<'a> = "nfs_proc_symlink", opt_in {
            /// Arguments of the call.
            req: SymlinkArgs<'a> = "req",
            /// Results.
            rep: NewObjReply<'a> = "rep",
        }

        /// A hard link to a file was created.
        pub struct NfsProcLink<'a> = "nfs_proc_link", opt_in {
            /// Arguments of the call.
            req: LinkArgs<'a> = "req",
            /// Results.
            rep: LinkReply = "rep",
        }

        /// A file was written.
        pub struct NfsProcWrite<'a> = "nfs_proc_write", opt_in {
            /// Arguments of the call.
            req: WriteArgs<'a> = "req",
            /// Results.
            rep: WriteReply = "rep",
        }

        /// A file was created.
        pub struct NfsProcCreate<'a> = "nfs_proc_create", opt_in {
            /// Arguments of the call; attributes are not parsed.
            req: DirOpArgs<'a> = "req",
            /// Results.
            rep: NewObjReply<'a> = "rep",
        }

        /// A directory was created.
        pub struct NfsProcMkdir<'a> = "nfs_proc_mkdir", opt_in {
            /// Arguments of the call; attributes are not parsed.
            req: DirOpArgs<'a> = "req",
            /// Results.
            rep: NewObjReply<'a> = "rep",
        }

        /// A file was removed.
        pub struct NfsProcRemove<'a> = "nfs_proc_remove", opt_in {
            /// Arguments of the call.
            req: DirOpArgs<'a> = "req",
            /// Results.
            rep: DelObjReply = "rep",
        }

        /// A directory was removed.
        pub struct NfsProcRmdir<'a> = "nfs_proc_rmdir", opt_in {
            /// Arguments of the call.
            req: DirOpArgs<'a> = "req",
            /// Results.
            rep: DelObjReply = "rep",
        }

        /// A file was renamed or moved.
        pub struct NfsProcRename<'a> = "nfs_proc_rename", opt_in {
            /// Arguments of the call.
            req: RenameArgs<'a> = "req",
            /// Results.
            rep: RenameReply = "rep",
        }

        /// Entries of a directory were read.
        pub struct NfsProcReaddir<'a> = "nfs_proc_readdir", opt_in {
            /// Arguments of the call.
            req: ReaddirArgs<'a> = "req",
            /// Results.
            rep: ReaddirReply<'a> = "rep",
        }

        /// An NFS call whose arguments are not parsed.
        pub struct NfsProcNotImplemented<'a> = "nfs_proc_not_implemented", opt_in {
            /// The procedure.
            proc: Proc = "proc",
        }
    }

    with {} {
        /// An NFS reply, or a call without a reply at the end of the connection.
        pub struct NfsReplyStatus<'a> = "nfs_reply_status", opt_in {
            /// The connection.
            n: Connection = "n",
            /// Call and reply.
            info: Info<'a> = "info",
        }
    }
}
