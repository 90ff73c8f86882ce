use std::collections::BTreeMap;

use gannet_base::ConnId;
use gannet_base::Interval;
use gannet_base::Time;
use gannet_base::Uid;

use super::events::*;
use super::tables::ENDPOINTS;
use super::tables::OPERATIONS;
use crate::Context;
use crate::OnEvent;

gannet_log::row! {
    /// One row for each call with a response.
    pub struct DceRpcRow<'a> = "dce_rpc" {
        /// Time of the request.
        ts: Time = "ts",
        /// Identifier of the connection.
        uid: Uid = "uid",
        /// Endpoints of the connection.
        id: ConnId = "id",
        /// Time from the request to the response.
        rtt: Option<Interval> = "rtt",
        /// Pipe or port of the server.
        named_pipe: Option<&'a [u8]> = "named_pipe",
        /// Name of the interface.
        endpoint: &'a str = "endpoint",
        /// Name of the operation.
        operation: &'a str = "operation",
    }
}

/// Operations that are not logged.
const IGNORED: &[(&str, &[&str])] = &[
    (
        "winreg",
        &[
            "BaseRegCloseKey",
            "BaseRegDeleteKeyEx",
            "BaseRegEnumKey",
            "BaseRegGetVersion",
            "BaseRegOpenKey",
            "BaseRegQueryValue",
            "OpenClassesRoot",
            "OpenLocalMachine",
        ],
    ),
    ("spoolss", &["RpcSplOpenPrinter", "RpcClosePrinter"]),
    ("wkssvc", &["NetrWkstaGetInfo"]),
];

/// Interfaces of pipes by name, used if no binding was captured.
const PIPE_INTERFACES: &[(&[u8], u128)] = &[
    (b"winreg", 0x338c_d001_2244_31f1_aaaa_9000_3800_1003),
    (b"spoolss", 0x1234_5678_1234_abcd_ef00_0123_4567_89ab),
    (b"srvsvc", 0x4b32_4fc8_1670_01d3_1278_5a47_bf6e_e188),
];

/// Maximum number of stored contexts of one pipe.
const MAX_CONTEXTS: usize = 1024;

/// The state of one pipe.
#[derive(Debug)]
struct Binding {
    /// Time of the latest request.
    ts: Time,
    rtt: Option<Interval>,
    pipe: Option<Vec<u8>>,
    /// The interface of the last binding.
    uuid: Option<u128>,
    contexts: BTreeMap<u16, u128>,
    /// Interface of the next row.
    endpoint: Option<u128>,
    operation: Option<(u128, u16)>,
}

/// The calls of one connection, by pipe.
#[derive(Debug, Default)]
pub struct Calls {
    pipes: BTreeMap<u64, Binding>,
    /// An event has arrived since the last response.
    has_pending: bool,
}

impl Calls {
    /// Returns the state of the pipe of an event.
    fn binding(&mut self, now: Time, pipe: u64) -> &mut Binding {
        self.has_pending = true;
        let binding = self.pipes.entry(pipe).or_insert_with(|| Binding {
            ts: now,
            rtt: None,
            pipe: None,
            uuid: None,
            contexts: BTreeMap::new(),
            endpoint: None,
            operation: None,
        });
        binding.endpoint = binding.uuid.or(binding.endpoint);
        binding
    }

    /// Stores the binding of a context to an interface.
    fn bind(&mut self, cx: &mut Context<'_>, pipe: u64, context: u16, uuid: u128) {
        let binding = self.binding(cx.now, pipe);
        let (contexts, name) = (&mut binding.contexts, "too_many_dce_rpc_contexts");
        if contexts.len() < MAX_CONTEXTS || contexts.contains_key(&context) {
            contexts.insert(context, uuid);
        } else {
            cx.weird(name, &contexts.len().to_string(), Some("DCE_RPC"));
        }
        binding.uuid = Some(uuid);
        binding.endpoint = Some(uuid);
    }

    /// Removes a pipe when it is closed.
    pub fn close(&mut self, pipe: u64) {
        self.pipes.remove(&pipe);
    }

    /// Removes all pipes.
    pub fn clear(&mut self) {
        self.pipes.clear();
    }

    /// Writes the pending rows at the end of the connection.
    pub fn finish(&mut self, cx: &mut Context<'_>) {
        let pipes = std::mem::take(&mut self.pipes);
        if std::mem::take(&mut self.has_pending) {
            for mut binding in pipes.into_values() {
                binding.endpoint = binding.uuid.or(binding.endpoint);
                binding.write(cx);
            }
        }
    }
}

impl OnEvent<DceRpcBind> for Calls {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &DceRpcBind) {
        self.bind(cx, event.fid, event.ctx_id, event.uuid.number);
    }
}

impl OnEvent<DceRpcAlterContext> for Calls {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &DceRpcAlterContext) {
        self.bind(cx, event.fid, event.ctx_id, event.uuid.number);
    }
}

impl OnEvent<DceRpcBindAck<'_>> for Calls {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &DceRpcBindAck<'_>) {
        let binding = self.binding(cx.now, event.fid);
        if !event.sec_addr.is_empty() {
            binding.pipe = Some(event.sec_addr.to_vec());
        }
    }
}

impl OnEvent<DceRpcAlterContextResp> for Calls {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &DceRpcAlterContextResp) {
        self.binding(cx.now, event.fid);
    }
}

impl OnEvent<DceRpcRequest> for Calls {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &DceRpcRequest) {
        self.binding(cx.now, event.fid).ts = cx.now;
    }
}

impl OnEvent<DceRpcResponse> for Calls {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &DceRpcResponse) {
        let binding = self.binding(cx.now, event.fid);
        binding.response(cx.now, event.ctx_id, event.opnum);
        binding.write(cx);
        self.has_pending = false;
    }
}

impl Binding {
    fn response(&mut self, now: Time, context: u16, operation: u16) {
        if self.endpoint.is_none()
            && let Some(name) = &self.pipe
        {
            let name = pipe_name(name);
            if let Some((_, uuid)) = PIPE_INTERFACES.iter().find(|(n, _)| *n == name) {
                // As in Zeek, the interface is known from the next call on.
                self.uuid = Some(*uuid);
            }
        }
        if let (Some(_), Some(uuid)) = (self.endpoint, self.uuid) {
            self.operation = Some((uuid, operation));
            if self.ts != now {
                self.rtt = Some(now - self.ts);
            }
        }
        if let Some(uuid) = self.contexts.get(&context) {
            self.endpoint = Some(*uuid);
            self.operation = Some((*uuid, operation));
        }
    }

    fn write(&self, cx: &mut Context<'_>) {
        let (Some(endpoint), Some((uuid, number))) = (self.endpoint, self.operation) else {
            return;
        };
        let (unknown_endpoint, unknown_operation);
        let endpoint = match endpoint_name(endpoint) {
            Some(name) => name,
            None => {
                unknown_endpoint = format!("unknown-{}", uuid_text(endpoint));
                &unknown_endpoint
            }
        };
        let operation = match operation_name(uuid, number) {
            Some(name) => name,
            None => {
                unknown_operation = format!("unknown-{number}");
                &unknown_operation
            }
        };
        if IGNORED.iter().any(|(e, ops)| *e == endpoint && ops.contains(&operation)) {
            return;
        }
        cx.log(&DceRpcRow {
            ts: self.ts,
            uid: cx.conn.uid,
            id: cx.conn.id,
            rtt: self.rtt,
            named_pipe: self.pipe.as_deref(),
            endpoint,
            operation,
        });
    }
}

/// Returns the name in `\pipe\name`, in lower case.
fn pipe_name(name: &[u8]) -> Vec<u8> {
    let lower = name.to_ascii_lowercase();
    match memchr::memmem::find(&lower, b"\\pipe\\") {
        Some(at) => {
            let rest = &lower[at + 6..];
            let end = memchr::memmem::find(rest, b"\\pipe\\").unwrap_or(rest.len());
            rest[..end].to_vec()
        }
        None => lower,
    }
}

fn find<T: Copy>(table: &[(u128, T)], uuid: u128) -> Option<T> {
    table.binary_search_by_key(&uuid, |(u, _)| *u).ok().map(|at| table[at].1)
}

fn endpoint_name(uuid: u128) -> Option<&'static str> {
    find(ENDPOINTS, uuid)
}

fn operation_name(uuid: u128, number: u16) -> Option<&'static str> {
    let names = find(OPERATIONS, uuid)?;
    let mut blanks = memchr::memchr_iter(b' ', names.as_bytes());
    let from = match usize::from(number).checked_sub(1) {
        None => 0,
        Some(n) => blanks.nth(n)? + 1,
    };
    let to = blanks.next().unwrap_or(names.len());
    names.get(from..to).filter(|n| *n != "-")
}

fn uuid_text(uuid: u128) -> String {
    let field = |shift: u32, bits: u32| uuid >> shift & ((1 << bits) - 1);
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        field(96, 32),
        field(80, 16),
        field(64, 16),
        field(48, 16),
        field(0, 48)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables() {
        assert!(ENDPOINTS.is_sorted_by_key(|(u, _)| *u));
        assert!(OPERATIONS.is_sorted_by_key(|(u, _)| *u));
        for (uuid, names) in OPERATIONS {
            // Names are separated by one blank.
            let names: Vec<_> = names.split(' ').collect();
            assert!(names.iter().all(|n| !n.is_empty() && !n.contains(char::is_whitespace)));
            for (i, name) in (0..).zip(&names) {
                assert_eq!(operation_name(*uuid, i), Some(*name).filter(|n| *n != "-"));
            }
            assert_eq!(operation_name(*uuid, names.len() as u16), None);
        }
        let samr = 0x1234_5778_1234_abcd_ef00_0123_4567_89ac;
        assert_eq!(endpoint_name(samr), Some("samr"));
        assert_eq!(operation_name(samr, 64), Some("SamrConnect5"));
        assert_eq!(operation_name(samr, 6000), None);
        assert_eq!(uuid_text(samr), "12345778-1234-abcd-ef00-0123456789ac");
    }

    #[test]
    fn names_of_pipes() {
        assert_eq!(pipe_name(b"\\PIPE\\SrvSvc"), b"srvsvc");
        assert_eq!(pipe_name(b"135"), b"135");
    }
}
