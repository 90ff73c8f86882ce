//! The portmapper (RFC 1833 section 3): the ports of programs.

pub(super) mod types;

use gannet_base::Proto;
use gannet_event::Port;
use gannet_event::TableOf;
pub use types::*;

use super::analyzer::Program;
use super::analyzer::ReplyInfo;
use super::events::*;
use super::message::Call;
use super::message::Status;
use super::xdr::Xdr;
use crate::Context;
use crate::Tag;

/// Program number of the portmapper.
const PROGRAM: u32 = 100_000;

/// Procedure numbers.
mod proc {
    pub(super) const NULL: u32 = 0;
    pub(super) const SET: u32 = 1;
    pub(super) const UNSET: u32 = 2;
    pub(super) const GETPORT: u32 = 3;
    pub(super) const DUMP: u32 = 4;
    pub(super) const CALLIT: u32 = 5;
}

/// Protocol number of TCP; all others stand for UDP.
const TCP: u32 = 6;

/// The portmapper program.
#[derive(Debug)]
pub enum Portmapper {}

/// Decoded arguments of a call.
#[derive(Clone, Copy, Debug)]
pub enum Args {
    /// No arguments.
    Null,
    /// A mapping to add.
    Set(Mapping),
    /// A mapping to remove.
    Unset(Mapping),
    /// A program whose port is requested.
    Getport(PortRequest),
    /// No arguments: all mappings are requested.
    Dump,
    /// A call for another program.
    CallIt(CallIt),
}

impl Program for Portmapper {
    const TAG: Tag = Tag::Portmapper;
    type Args = Args;

    fn call(cx: &mut Context<'_>, call: &Call, x: &mut Xdr<'_>) -> Option<Args> {
        if call.prog != PROGRAM {
            cx.weird("bad_RPC_program", "", Some(Self::TAG.name()));
        }
        let args = match call.proc {
            proc::NULL => return Some(Args::Null),
            proc::DUMP => return Some(Args::Dump),
            proc::SET => Args::Set(mapping(cx, x)),
            proc::UNSET => Args::Unset(mapping(cx, x)),
            proc::GETPORT => {
                let (program, version, is_tcp) = (x.u32(), x.u32(), x.u32() == TCP);
                // The port in a query has no meaning.
                x.u32();
                Args::Getport(PortRequest { program, version, is_tcp })
            }
            proc::CALLIT => {
                let [program, version, proc] = std::array::from_fn(|_| x.u32());
                let arg_size = x.string().map_or(0, |args| args.len() as u64);
                Args::CallIt(CallIt { program, version, proc, arg_size })
            }
            _ => return None,
        };
        x.is_whole().then_some(args)
    }

    fn reply(
        cx: &mut Context<'_>,
        _call: &Call,
        args: Args,
        reply: &ReplyInfo,
        x: &mut Xdr<'_>,
    ) -> bool {
        if reply.status != Status::Success {
            failed(cx, args, reply.status);
            return true;
        }
        match args {
            Args::Null => cx.raise(|r| PmRequestNull { r }),
            Args::Set(m) | Args::Unset(m) => {
                let is_set = matches!(args, Args::Set(_));
                let success = x.bool();
                if x.is_whole() && is_set {
                    cx.raise(|r| PmRequestSet { r, m, success });
                } else if x.is_whole() {
                    cx.raise(|r| PmRequestUnset { r, m, success });
                }
            }
            Args::Getport(pr) => {
                let port = x.u32();
                if x.is_whole() {
                    let p = checked_port(cx, port, pr.is_tcp);
                    cx.raise(|r| PmRequestGetport { r, pr, p });
                }
            }
            Args::Dump => {
                let mut all = Vec::new();
                while x.bool() {
                    let next = mapping(cx, x);
                    all.push((all.len() as u64 + 1, next));
                }
                if x.is_whole() {
                    cx.raise(|r| PmRequestDump { r, m: TableOf(all) });
                }
            }
            Args::CallIt(call) => {
                let port = x.u32();
                if x.string().is_some() {
                    let p = checked_port(cx, port, false);
                    cx.raise(|r| PmRequestCallit { r, call, p });
                }
            }
        }
        x.is_whole()
    }
}

/// Raises the event of a call that was not executed.
fn failed(cx: &mut Context<'_>, args: Args, status: Status) {
    match args {
        Args::Null => cx.raise(|r| PmAttemptNull { r, status }),
        Args::Set(m) => cx.raise(|r| PmAttemptSet { r, status, m }),
        Args::Unset(m) => cx.raise(|r| PmAttemptUnset { r, status, m }),
        Args::Getport(pr) => cx.raise(|r| PmAttemptGetport { r, status, pr }),
        Args::Dump => cx.raise(|r| PmAttemptDump { r, status }),
        Args::CallIt(call) => cx.raise(|r| PmAttemptCallit { r, status, call }),
    }
}

fn mapping(cx: &mut Context<'_>, x: &mut Xdr<'_>) -> Mapping {
    let (program, version, is_tcp) = (x.u32(), x.u32(), x.u32() == TCP);
    let port = x.u32();
    Mapping { program, version, p: checked_port(cx, port, is_tcp) }
}

/// A port; reports an invalid one, which counts as 0.
fn checked_port(cx: &mut Context<'_>, port: u32, is_tcp: bool) -> Port {
    let proto = if is_tcp { Proto::Tcp } else { Proto::Udp };
    match u16::try_from(port) {
        Ok(port) => Port(port, proto),
        Err(_) => {
            cx.raise(|r| PmBadPort { r, bad_p: port });
            Port(0, proto)
        }
    }
}
