//! NFS, version 3 (RFC 1813): files of a server.
//!
//! The arguments of a call are decoded (`read.rs`) when it is seen, those of `CREATE` and `MKDIR`
//! up to the attributes. Calls of other programs on the connection are reported and decoded like
//! those of NFS, except NFS_ACL, which is skipped.

pub mod events;
mod read;
mod types;

use events::*;
use read::*;
pub use types::*;

use super::analyzer::Program;
use super::analyzer::ReplyInfo;
use super::message::Call;
use super::message::Status;
use super::xdr::Xdr;
use crate::Context;
use crate::Tag;

/// Program number of NFS.
const PROGRAM: u32 = 100_003;
/// Program number of NFS_ACL.
const ACL: u32 = 100_227;

/// Procedure numbers.
mod proc {
    pub(super) const NULL: u32 = 0;
    pub(super) const GETATTR: u32 = 1;
    pub(super) const SETATTR: u32 = 2;
    pub(super) const LOOKUP: u32 = 3;
    pub(super) const READLINK: u32 = 5;
    pub(super) const READ: u32 = 6;
    pub(super) const WRITE: u32 = 7;
    pub(super) const CREATE: u32 = 8;
    pub(super) const MKDIR: u32 = 9;
    pub(super) const SYMLINK: u32 = 10;
    pub(super) const REMOVE: u32 = 12;
    pub(super) const RMDIR: u32 = 13;
    pub(super) const RENAME: u32 = 14;
    pub(super) const LINK: u32 = 15;
    pub(super) const READDIR: u32 = 16;
    pub(super) const READDIRPLUS: u32 = 17;
    /// The first number without a procedure.
    pub(super) const END: u32 = 22;
}

/// The NFS program.
#[derive(Debug)]
pub enum Nfs {}

/// Decoded arguments of a call.
#[derive(Debug)]
pub enum Args {
    /// No arguments, or arguments that are not decoded.
    None,
    /// A file handle.
    File(Text),
    /// Attributes to set.
    Sattr(SattrArgs<'static>),
    /// A name in a directory.
    Name(DirOpArgs<'static>),
    /// A range of a file to read.
    Read(ReadArgs<'static>),
    /// A range of a file to write.
    Write(WriteArgs<'static>),
    /// A symbolic link.
    Symlink(SymlinkArgs<'static>),
    /// A hard link.
    Link(LinkArgs<'static>),
    /// A file to rename.
    Rename(RenameArgs<'static>),
    /// Entries of a directory.
    Readdir(ReaddirArgs<'static>),
}

impl Program for Nfs {
    const TAG: Tag = Tag::Nfs;
    type Args = Args;

    fn call(cx: &mut Context<'_>, call: &Call, x: &mut Xdr<'_>) -> Option<Args> {
        if call.prog == ACL {
            x.skip_rest();
            return Some(Args::None);
        }
        if call.prog != PROGRAM {
            // As in Zeek, values from 2^31 on are negative.
            let number = (call.prog as i32).to_string();
            cx.weird("bad_RPC_program", &number, Some(Self::TAG.name()));
        }
        let mut r = Reader { cx, x };
        let args = match call.proc {
            proc::NULL => Args::None,
            proc::GETATTR | proc::READLINK => Args::File(r.file()),
            proc::SETATTR => Args::Sattr(r.sattr_args()),
            proc::LOOKUP | proc::REMOVE | proc::RMDIR => Args::Name(r.name_in()),
            proc::CREATE | proc::MKDIR => {
                let name = r.name_in();
                r.x.skip_rest();
                Args::Name(name)
            }
            proc::READ => Args::Read(r.read_args()),
            proc::WRITE => Args::Write(r.write_args()),
            proc::SYMLINK => Args::Symlink(r.symlink_args()),
            proc::LINK => Args::Link(LinkArgs { fh: r.file(), link: r.name_in() }),
            proc::RENAME => Args::Rename(r.rename_args()),
            proc::READDIR => Args::Readdir(r.readdir_args(false)),
            proc::READDIRPLUS => Args::Readdir(r.readdir_args(true)),
            other => {
                if other < proc::END {
                    x.skip_rest();
                } else {
                    report(cx, "unknown_NFS_request", other);
                }
                return Some(Args::None);
            }
        };
        x.is_whole().then_some(args)
    }

    fn reply(
        cx: &mut Context<'_>,
        call: &Call,
        args: Args,
        reply: &ReplyInfo,
        x: &mut Xdr<'_>,
    ) -> bool {
        if call.prog == ACL {
            x.skip_rest();
            return true;
        }
        let mut status = NfsStatus::OK;
        if reply.status == Status::Success {
            status = NfsStatus::UNKNOWN;
            if x.left() >= 4 {
                let number = x.u32();
                match NfsStatus::from_number(number) {
                    Some(known) => status = known,
                    None => report(cx, "invalid_nfs_status", number),
                }
            }
        } else {
            *x = Xdr::empty();
        }
        cx.raise(|n| NfsReplyStatus { n, info: Info::new(call, reply, status) });
        CompletedCall { call, reply, status, is_failed: reply.status != Status::Success }
            .raise(cx, args, x)
    }
}

/// A call with its reply.
struct CompletedCall<'a> {
    call: &'a Call,
    reply: &'a ReplyInfo,
    status: NfsStatus,
    /// The RPC call failed, so there are no results.
    is_failed: bool,
}

impl CompletedCall<'_> {
    /// Decodes the results and raises the event of the procedure. Returns whether the results were
    /// complete.
    fn raise(&self, cx: &mut Context<'_>, args: Args, x: &mut Xdr<'_>) -> bool {
        /// Decodes the results, and raises the event if they are complete.
        macro_rules! raise_if_complete {
            ($event:ident, $req:ident = $arg:expr, |$r:ident| $rep:ident = $read:expr) => {{
                let $rep = {
                    let mut $r = Reader { cx, x };
                    $read
                };
                if self.is_whole(x) {
                    let ($req, info) = ($arg, self.info());
                    cx.raise(|c| $event { c, info, $req, $rep });
                }
            }};
        }
        let (call, status) = (self.call.proc, self.status);
        match (call, args) {
            (proc::NULL, _) => {
                if self.is_whole(x) {
                    cx.raise(|c| NfsProcNull { c, info: self.info() });
                }
            }
            (proc::GETATTR, Args::File(fh)) => {
                raise_if_complete!(NfsProcGetattr, fh = fh, |r| attrs = r.fattr());
            }
            (proc::READLINK, Args::File(fh)) => {
                raise_if_complete!(NfsProcReadlink, fh = fh, |r| rep = r.readlink_reply(status));
            }
            (proc::SETATTR, Args::Sattr(req)) => {
                raise_if_complete!(NfsProcSattr, req = req, |r| rep = r.sattr_reply(status));
            }
            (proc::LOOKUP, Args::Name(req)) => {
                raise_if_complete!(NfsProcLookup, req = req, |r| rep = r.lookup_reply(status));
            }
            (proc::READ, Args::Read(req)) => {
                let offset = req.offset;
                raise_if_complete!(NfsProcRead, req = req, |r| rep = r.read_reply(status, offset));
            }
            (proc::WRITE, Args::Write(req)) => {
                raise_if_complete!(NfsProcWrite, req = req, |r| rep = r.write_reply(status));
            }
            (proc::SYMLINK, Args::Symlink(req)) => {
                raise_if_complete!(NfsProcSymlink, req = req, |r| rep = r.new_obj_reply(status));
            }
            (proc::CREATE, Args::Name(req)) => {
                raise_if_complete!(NfsProcCreate, req = req, |r| rep = r.new_obj_reply(status));
            }
            (proc::MKDIR, Args::Name(req)) => {
                raise_if_complete!(NfsProcMkdir, req = req, |r| rep = r.new_obj_reply(status));
            }
            (proc::LINK, Args::Link(req)) => {
                raise_if_complete!(NfsProcLink, req = req, |r| rep = r.link_reply(status));
            }
            (proc::REMOVE, Args::Name(req)) => {
                raise_if_complete!(NfsProcRemove, req = req, |r| rep = r.del_obj_reply());
            }
            (proc::RMDIR, Args::Name(req)) => {
                raise_if_complete!(NfsProcRmdir, req = req, |r| rep = r.del_obj_reply());
            }
            (proc::RENAME, Args::Rename(req)) => {
                raise_if_complete!(NfsProcRename, req = req, |r| rep = r.rename_reply());
            }
            (proc::READDIR | proc::READDIRPLUS, Args::Readdir(req)) => {
                let is_plus = req.isplus;
                raise_if_complete!(NfsProcReaddir, req = req, |r| rep =
                    r.readdir_reply(status, is_plus));
            }
            (number, _) => {
                let Some(proc) = Proc::from_number(number).filter(|_| number < proc::END) else {
                    return false;
                };
                x.skip_rest();
                if self.is_whole(x) {
                    cx.raise(|c| NfsProcNotImplemented { c, info: self.info(), proc });
                }
            }
        }
        self.is_whole(x)
    }

    fn info(&self) -> Info<'_> {
        Info::new(self.call, self.reply, self.status)
    }

    fn is_whole(&self, x: &Xdr<'_>) -> bool {
        self.is_failed || x.is_whole()
    }
}

#[cfg(test)]
mod tests;
