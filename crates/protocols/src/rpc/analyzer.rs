use std::collections::BTreeMap;

use gannet_base::Dir;
use gannet_base::Proto;
use gannet_base::Time;
use gannet_flow::tcp::State;

use super::events::*;
use super::message;
use super::message::Call;
use super::message::Reply;
use super::message::Status;
use super::records::Item;
use super::records::Records;
use super::xdr::Xdr;
use crate::Analyze;
use crate::Context;
use crate::Tag;

/// Lifetime of a datagram connection in seconds, as in Zeek: a later datagram begins another
/// connection.
const UDP_SECONDS: u16 = 24;

/// Maximum number of calls without a reply, unless scripts set another limit.
const MAX_CALLS: u64 = 1_000;

/// A program of RPC: parses the arguments of its calls and the results of its replies.
pub trait Program {
    /// Tag of its analyzer.
    const TAG: Tag;

    /// Parsed arguments of a call.
    type Args;

    /// Parses the arguments of a call; `None` if they are malformed. Trailing bytes are reported.
    fn call(cx: &mut Context<'_>, call: &Call, x: &mut Xdr<'_>) -> Option<Self::Args>;

    /// Parses the results of a call, if the reply has any, and raises the events of both. Returns
    /// whether the results were complete.
    fn reply(
        cx: &mut Context<'_>,
        call: &Call,
        args: Self::Args,
        reply: &ReplyInfo,
        x: &mut Xdr<'_>,
    ) -> bool;
}

/// A reply, or its absence ([`Status::Timeout`]).
#[derive(Clone, Copy, Debug)]
pub struct ReplyInfo {
    /// Outcome of the call.
    pub status: Status,
    /// Time of its first byte.
    pub start: Time,
    /// Time of its last byte.
    pub last: Time,
    /// Number of bytes after transaction identifier and message type.
    pub len: usize,
}

/// A call without a reply. `args` is `None` if the arguments were malformed.
struct PendingCall<A> {
    call: Call,
    args: Option<A>,
}

/// The analyzer of one connection.
pub struct Analyzer<P: Program> {
    calls: BTreeMap<u32, PendingCall<P::Args>>,
    sides: [Records; 2],
    /// Padding was missing: as in Zeek, nothing more is read.
    is_over: bool,
}

/// A message that is not parsed to its end, because it is truncated or malformed.
struct Partial;

impl<P: Program> Analyzer<P> {
    /// Creates the analyzer of a new connection.
    pub fn new(cx: &mut Context<'_>) -> Self {
        if cx.conn.proto == Proto::Udp {
            let seconds = cx.env.setting("rpc_timeout", UDP_SECONDS.into());
            // The connection ends at its first idle check.
            cx.conn.set_timeout(0);
            cx.conn.check_every = u16::try_from(seconds).unwrap_or(u16::MAX).max(1);
        }
        Self { calls: BTreeMap::new(), sides: Default::default(), is_over: false }
    }

    fn weird(cx: &mut Context<'_>, name: &'static str) {
        cx.weird(name, "", Some(P::TAG.name()));
    }

    /// Parses a message whose first byte was seen at `start`.
    fn message(
        &mut self,
        cx: &mut Context<'_>,
        from: Dir,
        data: &[u8],
        start: Time,
    ) -> Result<(), Partial> {
        let mut x = Xdr::new(data);
        let (xid, kind) = (x.u32(), x.u32());
        if !x.is_whole() {
            return Err(Partial);
        }
        match kind {
            message::CALL => self.call(cx, from, (xid, start), &mut x)?,
            message::REPLY => self.reply(cx, from, (xid, start), &mut x)?,
            _ => Self::weird(cx, "bad_RPC"),
        }
        if x.left() < 0 {
            self.is_over = true;
            return Err(Partial);
        }
        if x.is_whole() && x.rest().iter().any(|b| *b != 0) {
            Self::weird(cx, "excess_RPC");
        }
        Ok(())
    }

    fn call(
        &mut self,
        cx: &mut Context<'_>,
        from: Dir,
        (xid, start): (u32, Time),
        x: &mut Xdr<'_>,
    ) -> Result<(), Partial> {
        if !from.is_orig() {
            Self::weird(cx, "responder_RPC_call");
        }
        if let Some(PendingCall { call, .. }) = self.calls.get_mut(&xid) {
            // The call is a retransmission.
            if !call.has_bytes(x.rest()) {
                Self::weird(cx, "RPC_rexmit_inconsistency");
            }
            (call.start, call.last) = (start, cx.now);
            let behind = usize::try_from(call.header).ok().and_then(|n| x.rest().get(n..));
            let Some(behind) = behind else {
                Self::weird(cx, "RPC_underflow");
                return Err(Partial);
            };
            *x = Xdr::new(behind);
        } else {
            let Some(call) = Call::parse(xid, (start, cx.now), x) else {
                Self::weird(cx, "bad_RPC");
                return Err(Partial);
            };
            let limit = cx.env.setting("rpc_max_pending_calls", MAX_CALLS);
            if limit > 0 && self.calls.len() as u64 >= limit {
                Self::weird(cx, "RPC_pending_calls_discarded");
                cx.raise(|c| RpcDiscardedPendingCalls { c });
                self.calls.clear();
            }
            self.calls.insert(xid, PendingCall { call, args: None });
            cx.conn.note_table(self.calls.len());
        }
        let Some(PendingCall { call, args }) = self.calls.get_mut(&xid) else { return Ok(()) };
        let (prog, ver, proc, call_len) = (call.prog, call.vers, call.proc, call.len as u64);
        cx.raise(|c| RpcCall { c, xid, prog, ver, proc, call_len });
        match P::call(cx, call, x) {
            Some(read) => {
                *args = Some(read);
                Ok(())
            }
            None => {
                Self::weird(cx, "bad_RPC");
                Err(Partial)
            }
        }
    }

    fn reply(
        &mut self,
        cx: &mut Context<'_>,
        from: Dir,
        (xid, start): (u32, Time),
        x: &mut Xdr<'_>,
    ) -> Result<(), Partial> {
        if from.is_orig() {
            Self::weird(cx, "originator_RPC_reply");
        }
        let len = x.rest().len();
        let Reply { status, is_unknown } = Reply::parse(x).ok_or(Partial)?;
        if is_unknown {
            Self::weird(cx, "bad_RPC");
        }
        let reply_len = length(x);
        cx.raise(|c| RpcReply { c, xid, status, reply_len });
        let Some(PendingCall { call, args }) = self.calls.remove(&xid) else {
            Self::weird(cx, "unpaired_RPC_response");
            x.skip_rest();
            return Ok(());
        };
        match args {
            Some(args) => {
                let reply = ReplyInfo { status, start, last: cx.now, len };
                if !P::reply(cx, &call, args, &reply, x) {
                    Self::weird(cx, "bad_RPC");
                }
            }
            None if status == Status::Success => {
                Self::weird(cx, "successful_RPC_reply_to_invalid_request");
            }
            None => {}
        }
        dialogue(cx, &call, status, length(x));
        Ok(())
    }

    fn packet(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) {
        let now = cx.now;
        if self.message(cx, from, data, now).is_err() {
            Self::weird(cx, "bad_RPC");
        }
    }

    fn segment(&mut self, cx: &mut Context<'_>, from: Dir, mut data: &[u8]) {
        // On a connection whose beginning was not seen, messages may begin anywhere.
        let is_established =
            || cx.env.logs.events.transport().states[from.index()] == State::Established as u8;
        let mut records = std::mem::take(&mut self.sides[from.index()]);
        records.begin(is_established);
        let kind = if from.is_orig() { message::CALL } else { message::REPLY };
        while !self.is_over
            && let Some(item) = records.next(&mut data, kind, cx.now)
        {
            match item {
                Item::Message(message, start) => {
                    if self.message(cx, from, message, start).is_err() {
                        cx.weird("partial_RPC", "", None);
                    }
                }
                Item::TooLong(n) => cx.weird("RPC_message_too_long", &n.to_string(), None),
            }
        }
        self.sides[from.index()] = records;
    }
}

/// Number of remaining bytes of a message.
fn length(x: &Xdr<'_>) -> u64 {
    u64::try_from(x.left()).unwrap_or_default()
}

/// Raises the event of a call and its outcome.
fn dialogue(cx: &mut Context<'_>, call: &Call, status: Status, reply_len: u64) {
    let (prog, ver, proc) = (call.prog, call.vers, call.proc);
    let (start_time, call_len) = (call.start, call.len as u64);
    cx.raise(|c| RpcDialogue { c, prog, ver, proc, status, start_time, call_len, reply_len });
}

impl<P: Program> Analyze for Analyzer<P> {
    fn stream(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) {
        if !self.is_over {
            self.segment(cx, from, data);
        }
    }

    fn gap(&mut self, _cx: &mut Context<'_>, from: Dir, _len: u64) {
        self.sides[from.index()].gap();
    }

    fn datagram(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8], _len: u32) {
        if !self.is_over {
            self.packet(cx, from, data);
        }
    }

    fn flip(&mut self, _cx: &mut Context<'_>) {
        self.sides.swap(0, 1);
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        // Time of the packet that advanced the timers to the end of the connection, as in Zeek.
        let (status, now) = (Status::Timeout, cx.now.max(cx.env.logs.time()));
        for (_, PendingCall { call, args }) in std::mem::take(&mut self.calls) {
            dialogue(cx, &call, status, 0);
            let Some(args) = args else { continue };
            let none = ReplyInfo { status, start: now, last: now, len: 0 };
            if !P::reply(cx, &call, args, &none, &mut Xdr::empty()) {
                Self::weird(cx, "bad_RPC");
            }
        }
    }
}

#[cfg(test)]
mod tests;
