use std::collections::HashMap;
use std::collections::HashSet;

use gannet_base::Dir;
use gannet_dict::KeyedHash;

use super::message::Body;
use super::message::HEADER_LENGTH;
use super::message::Header;
use super::message::Packet;
use super::message::body;
use super::rows::Calls;
use crate::Context;
use crate::Tag;
use crate::gssapi;
use crate::gssapi::Logins;
use crate::nested::Violations;
use crate::ntlm;
use crate::support::Frames;
use crate::support::limit_reached;

/// Longest packet: its length has 16 bits.
const MAX_PACKET: usize = 1 << 16;
/// Bytes of one fragment of several.
const MAX_FRAGMENT: usize = 30_000;
/// Contexts whose operation is remembered.
const MAX_CONTEXTS: usize = 4096;

/// One side of a stream.
struct Side {
    frames: Frames,
    /// Calls that wait for further fragments.
    waiting: HashSet<u32, KeyedHash>,
}

impl Side {
    fn new() -> Self {
        Self { frames: Frames::new(MAX_PACKET), waiting: HashSet::default() }
    }
}

/// The packets of one TCP connection or pipe.
pub struct Stream {
    pipe: u64,
    sides: [Side; 2],
    state: State,
}

/// What packets of both sides change.
#[derive(Default)]
struct State {
    /// Operation called last, by context.
    operations: HashMap<u16, u16, KeyedHash>,
    gssapi: gssapi::Inner,
    ntlm: ntlm::Inner,
    confirmed: bool,
    violations: Violations,
    /// A limit was reached: nothing more is read than what came with it.
    skip: bool,
}

impl Stream {
    /// Nothing yet, of the pipe with this number.
    pub fn new(pipe: u64) -> Self {
        Self { pipe, sides: [Side::new(), Side::new()], state: State::default() }
    }

    /// Bytes, in order. Bytes that are no packet are passed over: they do not speak against the
    /// protocol, but are counted.
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
        let Side { frames, waiting } = &mut self.sides[from.index()];
        while let Some(frame) = frames.next(&mut data, need) {
            let (state, pipe) = (&mut self.state, self.pipe);
            let packet = Packet::parse(frame);
            let read = packet.and_then(|p| state.packet(cx, calls, logins, pipe, waiting, &p));
            if read.is_none() {
                state.violations.count(cx, Tag::DceRpc);
                frames.reset();
                return;
            }
        }
    }
}

/// Bytes of the packet that begins so; of a broken one its header.
fn need(data: &[u8]) -> usize {
    let length = Header::parse(data).map_or(0, |h| usize::from(h.length));
    length.max(HEADER_LENGTH)
}

impl State {
    fn packet(
        &mut self,
        cx: &mut Context<'_>,
        calls: &mut Calls,
        logins: &mut Logins,
        pipe: u64,
        waiting: &mut HashSet<u32, KeyedHash>,
        packet: &Packet<'_>,
    ) -> Option<()> {
        if let Some((kind, value)) = packet.auth {
            self.auth(cx, logins, kind, value);
        }
        let header = packet.header;
        if self.is_complete(cx, waiting, packet) {
            self.body(cx, calls, pipe, header, packet.fragment)?;
        }
        if !self.confirmed {
            self.confirmed = true;
            cx.confirm(Tag::DceRpc);
        }
        Some(())
    }

    fn auth(&mut self, cx: &mut Context<'_>, logins: &mut Logins, kind: u8, value: &[u8]) {
        let odd = match kind {
            0x09 => return self.gssapi.deliver(cx, logins, value),
            0x0a => return self.ntlm.deliver(cx, &mut logins.ntlm, value),
            // Bare Kerberos.
            0x10 => return,
            0x0e => "tls_dce_rpc_auth_type",
            0x44 => "netlogon_dce_rpc_auth_type",
            _ => "unknown_dce_rpc_auth_type",
        };
        cx.weird(odd, &kind.to_string(), Some("DCE_RPC"));
    }

    /// Whether a packet is the last fragment of its call, with all earlier ones seen. Like Zeek,
    /// this uses only the packet's own header: each fragment has context and operation.
    fn is_complete(
        &mut self,
        cx: &mut Context<'_>,
        waiting: &mut HashSet<u32, KeyedHash>,
        packet: &Packet<'_>,
    ) -> bool {
        let header = packet.header;
        let mut odd = |cx: &mut Context<'_>, name| {
            self.skip = true;
            cx.weird(name, "", Some("DCE_RPC"));
        };
        match (header.is_first(), waiting.contains(&header.call)) {
            (true, true) => {
                odd(cx, "multiple_first_fragments_in_dce_rpc_reassembly");
                return false;
            }
            (true, false) if header.is_last() => return true,
            (true, false) => {
                waiting.insert(header.call);
                cx.conn.note_table(waiting.len());
                if waiting.len() > cx.env.pending.dce_rpc {
                    odd(cx, "too_many_dce_rpc_msgs_in_reassembly");
                }
            }
            (false, true) => {}
            (false, false) => return false,
        }
        if packet.fragment.len() > MAX_FRAGMENT {
            odd(cx, "too_much_dce_rpc_fragment_data");
        }
        !header.is_first() && header.is_last() && waiting.remove(&header.call)
    }

    fn body(
        &mut self,
        cx: &mut Context<'_>,
        calls: &mut Calls,
        pipe: u64,
        header: Header,
        data: &[u8],
    ) -> Option<()> {
        let operations = &mut self.operations;
        body(header, data, |part| {
            let mut called = 0;
            match part {
                Body::Request { context, operation } => {
                    if operations.len() >= MAX_CONTEXTS {
                        operations.clear();
                        let most = MAX_CONTEXTS.to_string();
                        limit_reached(cx, "too_many_dce_rpc_contexts", &most, Some("DCE_RPC"));
                    }
                    operations.insert(context, operation);
                }
                Body::Response { context } => {
                    called = operations.get(&context).copied().unwrap_or(0);
                }
                _ => {}
            }
            calls.body(cx, pipe, part, called);
        })
    }
}
