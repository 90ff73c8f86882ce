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

/// Seconds that a connection of datagrams has, as in Zeek: a further datagram begins another one.
const UDP_SECONDS: u16 = 24;

/// Calls without a reply, where scripts do not say how many.
const MAX_CALLS: u64 = 1_000;

/// A program of RPC: what it reads of its calls and replies.
pub trait Program {
    /// Its analyzer.
    const TAG: Tag;

    /// Arguments of a call.
    type Args;

    /// Reads the arguments of a call; `None` if they are malformed. Bytes behind them are reported.
    fn call(cx: &mut Context<'_>, call: &Call, x: &mut Xdr<'_>) -> Option<Self::Args>;

    /// Reads the results of a call, where a reply has them, and raises the events of both. Returns whether they were whole.
    fn reply(
        cx: &mut Context<'_>,
        call: &Call,
        args: Self::Args,
        reply: &Replied,
        x: &mut Xdr<'_>,
    ) -> bool;
}

/// A reply, or that there is none.
#[derive(Clone, Copy, Debug)]
pub struct Replied {
    /// What it says of the call.
    pub status: Status,
    /// When its first byte was seen.
    pub start: Time,
    /// When its last byte was seen.
    pub last: Time,
    /// Bytes behind transaction and kind.
    pub len: usize,
}

/// A call without a reply; without arguments if they were malformed.
struct Waiting<A> {
    call: Call,
    args: Option<A>,
}

/// The analyzer of one connection.
pub struct Analyzer<P: Program> {
    calls: BTreeMap<u32, Waiting<P::Args>>,
    sides: [Records; 2],
    /// Padding was missing: as in Zeek, nothing more is read.
    is_over: bool,
}

/// A message that is not read to its end, because it is cut or malformed.
struct Partial;

impl<P: Program> Analyzer<P> {
    /// For a new connection.
    pub fn new(cx: &mut Context<'_>) -> Self {
        if cx.conn.proto == Proto::Udp {
            let seconds = cx.env.setting("rpc_timeout", UDP_SECONDS.into());
            // The connection ends when it is looked at for the first time.
            cx.conn.set_timeout(0);
            cx.conn.check_every = u16::try_from(seconds).unwrap_or(u16::MAX).max(1);
        }
        Self { calls: BTreeMap::new(), sides: Default::default(), is_over: false }
    }

    fn weird(cx: &mut Context<'_>, name: &'static str) {
        cx.weird(name, "", Some(P::TAG.name()));
    }

    /// A message whose first byte was seen at `start`.
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
        if let Some(Waiting { call, .. }) = self.calls.get_mut(&xid) {
            // It is repeated.
            if !call.is(x.rest()) {
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
            let most = cx.env.setting("rpc_max_pending_calls", MAX_CALLS);
            if most > 0 && self.calls.len() as u64 >= most {
                Self::weird(cx, "RPC_pending_calls_discarded");
                cx.raise(|c| RpcDiscardedPendingCalls { c });
                self.calls.clear();
            }
            self.calls.insert(xid, Waiting { call, args: None });
            cx.conn.note_table(self.calls.len());
        }
        let Some(Waiting { call, args }) = self.calls.get_mut(&xid) else { return Ok(()) };
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
        let Reply { status, is_strange } = Reply::parse(x).ok_or(Partial)?;
        if is_strange {
            Self::weird(cx, "bad_RPC");
        }
        let reply_len = length(x);
        cx.raise(|c| RpcReply { c, xid, status, reply_len });
        let Some(Waiting { call, args }) = self.calls.remove(&xid) else {
            Self::weird(cx, "unpaired_RPC_response");
            x.skip_rest();
            return Ok(());
        };
        match args {
            Some(args) => {
                let reply = Replied { status, start, last: cx.now, len };
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
        // Messages of a connection whose begin was not seen may begin anywhere.
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

/// The remaining bytes of a message, for an event.
fn length(x: &Xdr<'_>) -> u64 {
    u64::try_from(x.left()).unwrap_or_default()
}

/// A call and how it went.
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
        // The time of the packet whose timers end the connection, as in Zeek.
        let (status, now) = (Status::Timeout, cx.now.max(cx.env.logs.time()));
        for (_, Waiting { call, args }) in std::mem::take(&mut self.calls) {
            dialogue(cx, &call, status, 0);
            let Some(args) = args else { continue };
            let none = Replied { status, start: now, last: now, len: 0 };
            if !P::reply(cx, &call, args, &none, &mut Xdr::nothing()) {
                Self::weird(cx, "bad_RPC");
            }
        }
    }
}

#[cfg(test)]
mod tests;
