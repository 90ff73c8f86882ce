//! Events of DCE/RPC.

use gannet_event::Connection;

use super::message::PacketType;
use super::message::Uuid;

gannet_event::enumeration!(PacketType = "DCE_RPC::PType", PacketType::name);
gannet_event::events! {
    crate::events::module_of(crate::Tag::DceRpc);

    /// A packet.
    pub struct DceRpcMessage = "dce_rpc_message", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// The pipe, 0 if there is none.
        fid: u64 = "fid",
        /// Number of its kind.
        ptype_id: u64 = "ptype_id",
        /// Its kind.
        ptype: PacketType = "ptype",
    }

    /// A packet carries a part of a login.
    pub struct DceRpcAuth = "dce_rpc_auth", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// The pipe, 0 if there is none.
        fid: u64 = "fid",
        /// The protocol of the login.
        auth_type: u64 = "auth_type",
        /// How packets are protected.
        auth_level: u64 = "auth_level",
        /// Number of the login.
        auth_context_id: u32 = "auth_context_id",
    }

    /// A context is bound to an interface.
    pub struct DceRpcBind = "dce_rpc_bind" {
        /// The connection.
        c: Connection = "c",
        /// The pipe, 0 if there is none.
        fid: u64 = "fid",
        /// Number of the context.
        ctx_id: u16 = "ctx_id",
        /// The interface, as it lies in the packet.
        uuid: Uuid = "uuid",
        /// Version of the interface.
        ver_major: u16 = "ver_major",
        /// Lower part of the version.
        ver_minor: u16 = "ver_minor",
    }

    /// A further context is bound to an interface.
    pub struct DceRpcAlterContext = "dce_rpc_alter_context" {
        /// The connection.
        c: Connection = "c",
        /// The pipe, 0 if there is none.
        fid: u64 = "fid",
        /// Number of the context.
        ctx_id: u16 = "ctx_id",
        /// The interface, as it lies in the packet.
        uuid: Uuid = "uuid",
        /// Version of the interface.
        ver_major: u16 = "ver_major",
        /// Lower part of the version.
        ver_minor: u16 = "ver_minor",
    }

    /// A binding is answered.
    pub struct DceRpcBindAck<'a> = "dce_rpc_bind_ack" {
        /// The connection.
        c: Connection = "c",
        /// The pipe, 0 if there is none.
        fid: u64 = "fid",
        /// Port or pipe of the server.
        sec_addr: &'a [u8] = "sec_addr",
    }

    /// A further binding is answered.
    pub struct DceRpcAlterContextResp = "dce_rpc_alter_context_resp" {
        /// The connection.
        c: Connection = "c",
        /// The pipe, 0 if there is none.
        fid: u64 = "fid",
    }

    /// An operation is called.
    pub struct DceRpcRequest = "dce_rpc_request" {
        /// The connection.
        c: Connection = "c",
        /// The pipe, 0 if there is none.
        fid: u64 = "fid",
        /// Number of the context.
        ctx_id: u16 = "ctx_id",
        /// Number of the operation.
        opnum: u16 = "opnum",
        /// Bytes of its arguments.
        stub_len: u64 = "stub_len",
    }

    /// A call is answered.
    pub struct DceRpcResponse = "dce_rpc_response" {
        /// The connection.
        c: Connection = "c",
        /// The pipe, 0 if there is none.
        fid: u64 = "fid",
        /// Number of the context.
        ctx_id: u16 = "ctx_id",
        /// Number of the operation.
        opnum: u16 = "opnum",
        /// Bytes of its results.
        stub_len: u64 = "stub_len",
    }

    /// Arguments of a call.
    pub struct DceRpcRequestStub<'a> = "dce_rpc_request_stub", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The pipe, 0 if there is none.
        fid: u64 = "fid",
        /// Number of the context.
        ctx_id: u16 = "ctx_id",
        /// Number of the operation.
        opnum: u16 = "opnum",
        /// The arguments.
        stub: &'a [u8] = "stub",
    }

    /// Results of a call.
    pub struct DceRpcResponseStub<'a> = "dce_rpc_response_stub", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The pipe, 0 if there is none.
        fid: u64 = "fid",
        /// Number of the context.
        ctx_id: u16 = "ctx_id",
        /// Number of the operation.
        opnum: u16 = "opnum",
        /// The results.
        stub: &'a [u8] = "stub",
    }
}
