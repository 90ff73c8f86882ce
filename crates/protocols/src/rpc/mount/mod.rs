//! MOUNT, version 3 (RFC 1813 section 5): file systems that NFS clients may use.

pub mod events;

use std::borrow::Cow;

use events::*;

use super::analyzer::Program;
use super::analyzer::ReplyInfo;
use super::message::Call;
use super::message::Status;
use super::xdr::Xdr;
use crate::Context;
use crate::Tag;

/// Program number of MOUNT.
const PROGRAM: u32 = 100_005;

/// Maximum length of a file handle, in bytes.
const MAX_HANDLE: u32 = 64;

/// Maximum number of authentication flavors of a reply that are parsed.
const MAX_FLAVORS: u32 = 32;

/// Procedure numbers.
mod proc {
    pub(super) const NULL: u32 = 0;
    pub(super) const MNT: u32 = 1;
    pub(super) const UMNT: u32 = 3;
    pub(super) const UMNT_ALL: u32 = 4;
    /// The first number without a procedure.
    pub(super) const END: u32 = 6;
}

/// The MOUNT program.
#[derive(Debug)]
pub enum Mount {}

/// Arguments of the calls that have a directory and are decoded.
pub type Args = Option<Dir<'static>>;

impl Mount {
    fn weird(cx: &mut Context<'_>, name: &'static str, number: u32) {
        cx.weird(name, &number.to_string(), Some(Self::TAG.name()));
    }
}

impl Program for Mount {
    const TAG: Tag = Tag::Mount;
    type Args = Args;

    fn call(cx: &mut Context<'_>, call: &Call, x: &mut Xdr<'_>) -> Option<Args> {
        if call.prog != PROGRAM {
            // As in Zeek, values from 2^31 on are negative.
            let number = (call.prog as i32).to_string();
            cx.weird("bad_RPC_program", &number, Some(Self::TAG.name()));
        }
        match call.proc {
            proc::NULL => Some(None),
            proc::MNT | proc::UMNT | proc::UMNT_ALL => {
                let dirname = Cow::Owned(x.string()?.to_vec());
                Some(Some(Dir { dirname }))
            }
            other => {
                if other < proc::END {
                    x.skip_rest();
                } else {
                    Self::weird(cx, "unknown_MOUNT_request", other);
                }
                Some(None)
            }
        }
    }

    fn reply(
        cx: &mut Context<'_>,
        call: &Call,
        args: Args,
        reply: &ReplyInfo,
        x: &mut Xdr<'_>,
    ) -> bool {
        let mut status = MountStatus::OK;
        if reply.status == Status::Success {
            status = MountStatus::UNKNOWN;
            if x.left() >= 4 {
                let number = x.u32();
                match MountStatus::from_number(number) {
                    Some(known) => status = known,
                    None => Self::weird(cx, "invalid_mount_status", number),
                }
            }
        } else {
            *x = Xdr::empty();
        }
        let is_whole = |x: &Xdr<'_>| reply.status != Status::Success || x.is_whole();
        let info = |status| Info::new(call, reply, status);
        cx.raise(|n| MountReplyStatus { n, info: info(status) });
        match (call.proc, args) {
            (proc::NULL, _) if is_whole(x) => {
                cx.raise(|c| MountProcNull { c, info: info(status) });
            }
            (proc::MNT, Some(req)) => {
                let rep = mounted(cx, x, status);
                if is_whole(x) {
                    cx.raise(|c| MountProcMnt { c, info: info(status), req, rep });
                }
            }
            (proc::UMNT | proc::UMNT_ALL, Some(req)) => {
                x.skip_rest();
                if is_whole(x) {
                    cx.raise(|c| MountProcUmnt { c, info: info(MountStatus::OK), req });
                }
            }
            (number, _) => {
                let Some(proc) = Proc::from_number(number).filter(|_| number < proc::END) else {
                    return false;
                };
                x.skip_rest();
                if is_whole(x) {
                    cx.raise(|c| MountProcNotImplemented { c, info: info(status), proc });
                }
            }
        }
        is_whole(x)
    }
}

/// Decodes the results of MNT.
fn mounted<'a>(cx: &mut Context<'_>, x: &mut Xdr<'a>, status: MountStatus) -> Mounted<'a> {
    if status != MountStatus::OK {
        return Mounted { dirfh: None, auth_flavors: None };
    }
    let dirfh = x.opaque(MAX_HANDLE);
    let count = x.u32();
    let is_long = count > MAX_FLAVORS;
    if is_long {
        cx.weird("excessive_MNT_auth_flavors", "", Some(Mount::TAG.name()));
    }
    let mut flavors = Vec::new();
    for _ in 0..count.min(MAX_FLAVORS) {
        let number = x.u32();
        match AuthFlavor::from_number(number) {
            Some(flavor) => flavors.push(flavor),
            None => Mount::weird(cx, "unhandled_mount3_auth_flavor", number),
        }
    }
    if is_long {
        x.skip_rest();
    }
    Mounted { dirfh, auth_flavors: Some(flavors) }
}
