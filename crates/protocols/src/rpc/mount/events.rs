//! Events of MOUNT.

use std::borrow::Cow;

use gannet_base::Interval;
use gannet_base::Time;
use gannet_event::Connection;

use crate::rpc::analyzer::ReplyInfo;
use crate::rpc::message::Call;
use crate::rpc::message::Status;
use crate::rpc::names::named;

named! {
    /// A procedure.
    pub struct Proc = "MOUNT3::proc_t" {
        0 => "MOUNT3::PROC_NULL",
        1 => "MOUNT3::PROC_MNT",
        2 => "MOUNT3::PROC_DUMP",
        3 => "MOUNT3::PROC_UMNT",
        4 => "MOUNT3::PROC_UMNT_ALL",
        5 => "MOUNT3::PROC_EXPORT",
        6 => "MOUNT3::PROC_END_OF_PROCS",
    }
}

named! {
    /// MOUNT status of a reply.
    pub struct MountStatus = "MOUNT3::status_t" {
        0 => "MOUNT3::MNT3_OK",
        1 => "MOUNT3::MNT3ERR_PERM",
        2 => "MOUNT3::MNT3ERR_NOENT",
        5 => "MOUNT3::MNT3ERR_IO",
        13 => "MOUNT3::MNT3ERR_ACCES",
        20 => "MOUNT3::MNT3ERR_NOTDIR",
        22 => "MOUNT3::MNT3ERR_INVAL",
        63 => "MOUNT3::MNT3ERR_NAMETOOLONG",
        10004 => "MOUNT3::MNT3ERR_NOTSUPP",
        10006 => "MOUNT3::MNT3ERR_SERVERFAULT",
        0xffff_ffff => "MOUNT3::MOUNT3ERR_UNKNOWN",
    }
}

impl MountStatus {
    pub(super) const OK: Self = Self(0);
    pub(super) const UNKNOWN: Self = Self(u32::MAX);
}

named! {
    /// Authentication flavor that a client may use.
    pub struct AuthFlavor = "MOUNT3::auth_flavor_t" {
        0 => "MOUNT3::AUTH_NULL",
        1 => "MOUNT3::AUTH_UNIX",
        2 => "MOUNT3::AUTH_SHORT",
        3 => "MOUNT3::AUTH_DES",
    }
}

gannet_event::record! {
    /// A call and its reply.
    pub struct Info<'a> = "MOUNT3::info_t" {
        /// RPC status of the call.
        rpc_stat: Status = "rpc_stat",
        /// MOUNT status of the call.
        mnt_stat: MountStatus = "mnt_stat",
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
    pub(super) fn new(call: &'a Call, reply: &ReplyInfo, mnt_stat: MountStatus) -> Self {
        Self {
            rpc_stat: reply.status,
            mnt_stat,
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

gannet_event::record! {
    /// Arguments of a call about a directory.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Dir<'a> = "MOUNT3::dirmntargs_t" {
        /// Name of the directory.
        dirname: Cow<'a, [u8]> = "dirname",
    }
}

gannet_event::record! {
    /// Results of mounting a directory.
    pub struct Mounted<'a> = "MOUNT3::mnt_reply_t" {
        /// Handle of the directory.
        dirfh: Option<&'a [u8]> = "dirfh",
        /// Authentication flavors that a client may use.
        auth_flavors: Option<Vec<AuthFlavor>> = "auth_flavors",
    }
}

gannet_event::events! {
    crate::events::module_of(crate::Tag::Mount);

    /// A MOUNT server answered a call without arguments.
    pub struct MountProcNull<'a> = "mount_proc_null", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Call and reply.
        info: Info<'a> = "info",
    }

    /// A server replied to a request to mount a directory.
    pub struct MountProcMnt<'a> = "mount_proc_mnt", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Call and reply.
        info: Info<'a> = "info",
        /// Arguments of the call.
        req: Dir<'a> = "req",
        /// Results.
        rep: Mounted<'a> = "rep",
    }

    /// A directory, or all of them, was unmounted.
    pub struct MountProcUmnt<'a> = "mount_proc_umnt", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Call and reply.
        info: Info<'a> = "info",
        /// Arguments of the call.
        req: Dir<'a> = "req",
    }

    /// A MOUNT call whose arguments are not parsed.
    pub struct MountProcNotImplemented<'a> = "mount_proc_not_implemented", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Call and reply.
        info: Info<'a> = "info",
        /// The procedure.
        proc: Proc = "proc",
    }

    /// A MOUNT reply, or a call without a reply at the end of the connection.
    pub struct MountReplyStatus<'a> = "mount_reply_status", opt_in {
        /// The connection.
        n: Connection = "n",
        /// Call and reply.
        info: Info<'a> = "info",
    }
}
