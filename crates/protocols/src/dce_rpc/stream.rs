use std::collections::HashMap;
use std::collections::HashSet;

use gannet_base::Dir;
use gannet_dict::KeyedHash;

use super::events::DceRpcAlterContext;
use super::events::DceRpcAlterContextResp;
use super::events::DceRpcAuth;
use super::events::DceRpcBind;
use super::events::DceRpcBindAck;
use super::events::DceRpcMessage;
use super::events::DceRpcRequest;
use super::events::DceRpcRequestStub;
use super::events::DceRpcResponse;
use super::events::DceRpcResponseStub;
use super::message::Auth;
use super::message::Body;
use super::message::HEADER_LENGTH;
use super::message::Header;
use super::message::Packet;
use super::message::PacketType;
use super::message::body;
use super::rows::Calls;
use crate::Context;
use crate::Tag;
use crate::gssapi;
use crate::gssapi::Logins;
use crate::nested::Instance;
use crate::nested::Violations;
use crate::ntlm;
use crate::support::Frames;
use crate::support::OutOfBound;
use crate::support::RecordFault;
use crate::support::limit_reached;

/// Maximum length of a packet, which has 16 bits, in bytes.
const MAX_PACKET: usize = 1 << 16;
/// Default maximum length of a fragment in bytes; the script option `DCE_RPC::max_frag_data` sets it.
const MAX_FRAGMENT: usize = 30_000;
/// Maximum number of contexts whose last operation is stored.
const MAX_CONTEXTS: usize = 4096;

/// One side of a stream.
struct Side {
    frames: Frames,
    /// The header of the incomplete packet was reported.
    header_reported: bool,
    /// Identifiers of calls whose last fragment has not arrived.
    incomplete: HashSet<u32, KeyedHash>,
}

impl Side {
    fn new() -> Self {
        Self {
            frames: Frames::new(MAX_PACKET),
            header_reported: false,
            incomplete: HashSet::default(),
        }
    }
}

/// The packets of one TCP connection or pipe.
pub struct Stream {
    pipe: u64,
    sides: [Side; 2],
    state: State,
}

/// State that packets of both sides share.
#[derive(Default)]
struct State {
    /// The last called operation, by context.
    operations: HashMap<u16, u16, KeyedHash>,
    gssapi: gssapi::Inner,
    ntlm: ntlm::Inner,
    /// The stream has Kerberos tokens, which are not parsed.
    has_kerberos: bool,
    /// The analyzer instance of a pipe; `None` for a TCP connection.
    instance: Option<Instance>,
    confirmed: bool,
    violations: Violations,
    /// A limit was exceeded: further data is ignored.
    skip: bool,
}

impl Stream {
    /// A new stream of the pipe with this identifier.
    pub fn new(pipe: u64) -> Self {
        Self { pipe, sides: [Side::new(), Side::new()], state: State::default() }
    }

    /// Like [`new`](Self::new), for a pipe whose data another analyzer passes on.
    pub fn nested(cx: &mut Context<'_>, pipe: u64) -> Self {
        let mut instance = Instance::default();
        instance.start(cx, Tag::DceRpc);
        let mut stream = Self::new(pipe);
        stream.state.instance = Some(instance);
        stream
    }

    /// Processes bytes in order. Malformed packets are skipped: they are reported and counted, but do not end the
    /// analysis.
    pub fn deliver(
        &mut self,
        cx: &mut Context<'_>,
        calls: &mut Calls,
        logins: &mut Logins,
        from: Dir,
        mut data: &[u8],
    ) {
        if self.state.skip {
            return;
        }
        let Side { frames, header_reported, incomplete } = &mut self.sides[from.index()];
        let (state, pipe) = (&mut self.state, self.pipe);
        while let Some(frame) = frames.next(&mut data, packet_len) {
            if !std::mem::take(header_reported) {
                report_header(cx, pipe, from, frame);
            }
            let read = Packet::parse(frame)
                .and_then(|p| state.packet(cx, calls, logins, (pipe, from), incomplete, &p));
            if let Err(fault) = read {
                state.violation(cx, fault);
                frames.reset();
                return;
            }
        }
        *header_reported = *header_reported || report_header(cx, pipe, from, frames.partial());
    }
}

/// Reports the header of a packet, which may be incomplete. Returns whether the header is complete.
fn report_header(cx: &mut Context<'_>, pipe: u64, from: Dir, data: &[u8]) -> bool {
    let Some(Header { kind, .. }) = Header::parse(data) else { return false };
    let (is_orig, ptype) = (from.is_orig(), PacketType(kind));
    cx.raise(|c| DceRpcMessage { c, is_orig, fid: pipe, ptype_id: kind.into(), ptype });
    true
}

/// Length of a packet by its header in bytes; at least the length of a header.
fn packet_len(data: &[u8]) -> usize {
    let length = Header::parse(data).map_or(0, |h| usize::from(h.length));
    length.max(HEADER_LENGTH)
}

impl State {
    fn packet(
        &mut self,
        cx: &mut Context<'_>,
        calls: &mut Calls,
        logins: &mut Logins,
        (pipe, from): (u64, Dir),
        incomplete: &mut HashSet<u32, KeyedHash>,
        packet: &Packet<'_>,
    ) -> Result<(), RecordFault> {
        let is_orig = from.is_orig();
        if let Some(auth) = &packet.auth {
            cx.raise(|c| DceRpcAuth {
                c,
                is_orig,
                fid: pipe,
                auth_type: auth.kind.into(),
                auth_level: auth.level.into(),
                auth_context_id: auth.context,
            });
            self.auth(cx, logins, from, auth);
        }
        let header = packet.header;
        if self.is_complete(cx, incomplete, packet) {
            self.body(cx, calls, pipe, header, packet.fragment)?;
        }
        match &mut self.instance {
            Some(instance) => instance.confirm(cx, Tag::DceRpc),
            None if !self.confirmed => {
                self.confirmed = true;
                cx.confirm(Tag::DceRpc);
            }
            None => {}
        }
        Ok(())
    }

    /// Reports and counts a malformed packet.
    fn violation(&mut self, cx: &mut Context<'_>, fault: RecordFault) {
        let (tag, reason) = (Tag::DceRpc, fault.to_string());
        match &mut self.instance {
            Some(instance) => {
                instance.report_violation(cx, tag, &reason);
            }
            None if self.violations.count(cx, tag) => cx.report_violation(tag, &reason),
            None => {}
        }
    }

    fn auth(&mut self, cx: &mut Context<'_>, logins: &mut Logins, from: Dir, auth: &Auth<'_>) {
        let weird = match auth.kind {
            0x09 => return self.gssapi.deliver(cx, logins, from, auth.value),
            0x0a => return self.ntlm.deliver(cx, &mut logins.ntlm, auth.value),
            // Kerberos without GSSAPI: Zeek starts an analyzer that reads nothing, but takes an analyzer ID.
            0x10 => {
                if !std::mem::replace(&mut self.has_kerberos, true) {
                    cx.skip_aids(1);
                }
                return;
            }
            0x0e => "tls_dce_rpc_auth_type",
            0x44 => "netlogon_dce_rpc_auth_type",
            _ => "unknown_dce_rpc_auth_type",
        };
        cx.weird(weird, &auth.kind.to_string(), Some("DCE_RPC"));
    }

    /// Whether a packet is the last fragment of its call, and all earlier ones were seen. As in Zeek,
    /// only the last fragment is parsed, because each fragment has the context and the operation.
    fn is_complete(
        &mut self,
        cx: &mut Context<'_>,
        incomplete: &mut HashSet<u32, KeyedHash>,
        packet: &Packet<'_>,
    ) -> bool {
        let header = packet.header;
        let mut give_up = |cx: &mut Context<'_>, name| {
            self.skip = true;
            cx.weird(name, "", Some("DCE_RPC"));
        };
        match (header.is_first(), incomplete.contains(&header.call)) {
            (true, true) => {
                give_up(cx, "multiple_first_fragments_in_dce_rpc_reassembly");
                return false;
            }
            (true, false) if header.is_last() => return true,
            (true, false) => {
                incomplete.insert(header.call);
                cx.conn.note_table(incomplete.len());
                if incomplete.len() > cx.env.pending.of(Tag::DceRpc) {
                    give_up(cx, "too_many_dce_rpc_msgs_in_reassembly");
                }
            }
            (false, true) => {}
            (false, false) => return false,
        }
        let max = cx.env.setting("DCE_RPC::max_frag_data", MAX_FRAGMENT as u64);
        if packet.fragment.len() as u64 > max {
            give_up(cx, "too_much_dce_rpc_fragment_data");
        }
        !header.is_first() && header.is_last() && incomplete.remove(&header.call)
    }

    fn body(
        &mut self,
        cx: &mut Context<'_>,
        calls: &mut Calls,
        pipe: u64,
        header: Header,
        data: &[u8],
    ) -> Result<(), OutOfBound> {
        let operations = &mut self.operations;
        body(header, data, |part| {
            let mut called = 0;
            match part {
                Body::Request { context, operation, .. } => {
                    if operations.len() >= MAX_CONTEXTS {
                        operations.clear();
                        let max = MAX_CONTEXTS.to_string();
                        limit_reached(cx, "too_many_dce_rpc_contexts", &max, Some("DCE_RPC"));
                    }
                    operations.insert(context, operation);
                }
                Body::Response { context, .. } => {
                    called = operations.get(&context).copied().unwrap_or(0);
                }
                _ => {}
            }
            raise(cx, calls, pipe, &part, called);
        })
    }
}

/// Raises the events of a part of a packet; `called` is the operation to which a response belongs.
fn raise(cx: &mut Context<'_>, rows: &mut Calls, fid: u64, part: &Body<'_>, called: u16) {
    match *part {
        Body::Bind { context: ctx_id, uuid, version, is_further, .. } => {
            let (ver_major, ver_minor) = version;
            if is_further {
                cx.report(rows, |c| DceRpcAlterContext {
                    c,
                    fid,
                    ctx_id,
                    uuid,
                    ver_major,
                    ver_minor,
                });
            } else {
                cx.report(rows, |c| DceRpcBind { c, fid, ctx_id, uuid, ver_major, ver_minor });
            }
        }
        Body::BindAck(sec_addr) => cx.report(rows, |c| DceRpcBindAck { c, fid, sec_addr }),
        Body::AlterAck => cx.report(rows, |c| DceRpcAlterContextResp { c, fid }),
        Body::Request { context: ctx_id, operation: opnum, stub } => {
            let stub_len = stub.len() as u64;
            cx.report(rows, |c| DceRpcRequest { c, fid, ctx_id, opnum, stub_len });
            cx.raise(|c| DceRpcRequestStub { c, fid, ctx_id, opnum, stub });
        }
        Body::Response { context: ctx_id, stub } => {
            let (opnum, stub_len) = (called, stub.len() as u64);
            cx.report(rows, |c| DceRpcResponse { c, fid, ctx_id, opnum, stub_len });
            cx.raise(|c| DceRpcResponseStub { c, fid, ctx_id, opnum, stub });
        }
    }
}
