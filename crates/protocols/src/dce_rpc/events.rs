//! Events of DCE/RPC.

use gannet_event::Connection;

use super::message::PacketType;
use super::message::Uuid;

gannet_event::enumeration!(PacketType = "DCE_RPC::PType", PacketType::name);
gannet_event::events! {
    crate::events::module_of(crate::Tag::DceRpc);

    /// A packet is received.
    pub struct DceRpcMessage = "dce_rpc_message", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// Identifier of the SMB pipe; 0 without a pipe.
        fid: u64 = "fid",
        /// Number of the packet type.
        ptype_id: u64 = "ptype_id",
        /// Packet type.
        ptype: PacketType = "ptype",
    }

    /// A packet has an authentication verifier.
    pub struct DceRpcAuth = "dce_rpc_auth", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// Identifier of the SMB pipe; 0 without a pipe.
        fid: u64 = "fid",
        /// Authentication protocol.
        auth_type: u64 = "auth_type",
        /// Authentication level: the protection of packets.
        auth_level: u64 = "auth_level",
        /// Identifier of the security context.
        auth_context_id: u32 = "auth_context_id",
    }

    /// A client requests to bind a context to an interface.
    pub struct DceRpcBind = "dce_rpc_bind" {
        /// The connection.
        c: Connection = "c",
        /// Identifier of the SMB pipe; 0 without a pipe.
        fid: u64 = "fid",
        /// Number of the context.
        ctx_id: u16 = "ctx_id",
        /// UUID of the interface, in the byte order of the packet.
        uuid: Uuid = "uuid",
        /// Major version of the interface.
        ver_major: u16 = "ver_major",
        /// Minor version of the interface.
        ver_minor: u16 = "ver_minor",
    }

    /// A client requests to bind another context to an interface.
    pub struct DceRpcAlterContext = "dce_rpc_alter_context" {
        /// The connection.
        c: Connection = "c",
        /// Identifier of the SMB pipe; 0 without a pipe.
        fid: u64 = "fid",
        /// Number of the context.
        ctx_id: u16 = "ctx_id",
        /// UUID of the interface, in the byte order of the packet.
        uuid: Uuid = "uuid",
        /// Major version of the interface.
        ver_major: u16 = "ver_major",
        /// Minor version of the interface.
        ver_minor: u16 = "ver_minor",
    }

    /// A server accepts a binding.
    pub struct DceRpcBindAck<'a> = "dce_rpc_bind_ack" {
        /// The connection.
        c: Connection = "c",
        /// Identifier of the SMB pipe; 0 without a pipe.
        fid: u64 = "fid",
        /// Secondary address: port or pipe of the server.
        sec_addr: &'a [u8] = "sec_addr",
    }

    /// A server responds to the binding of another context.
    pub struct DceRpcAlterContextResp = "dce_rpc_alter_context_resp" {
        /// The connection.
        c: Connection = "c",
        /// Identifier of the SMB pipe; 0 without a pipe.
        fid: u64 = "fid",
    }

    /// A client calls an operation.
    pub struct DceRpcRequest = "dce_rpc_request" {
        /// The connection.
        c: Connection = "c",
        /// Identifier of the SMB pipe; 0 without a pipe.
        fid: u64 = "fid",
        /// Number of the context.
        ctx_id: u16 = "ctx_id",
        /// Number of the operation.
        opnum: u16 = "opnum",
        /// Length of the arguments, in bytes.
        stub_len: u64 = "stub_len",
    }

    /// A server responds to a call.
    pub struct DceRpcResponse = "dce_rpc_response" {
        /// The connection.
        c: Connection = "c",
        /// Identifier of the SMB pipe; 0 without a pipe.
        fid: u64 = "fid",
        /// Number of the context.
        ctx_id: u16 = "ctx_id",
        /// Number of the operation.
        opnum: u16 = "opnum",
        /// Length of the results, in bytes.
        stub_len: u64 = "stub_len",
    }

    /// The arguments of a call.
    pub struct DceRpcRequestStub<'a> = "dce_rpc_request_stub", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Identifier of the SMB pipe; 0 without a pipe.
        fid: u64 = "fid",
        /// Number of the context.
        ctx_id: u16 = "ctx_id",
        /// Number of the operation.
        opnum: u16 = "opnum",
        /// The arguments.
        stub: &'a [u8] = "stub",
    }

    /// The results of a call.
    pub struct DceRpcResponseStub<'a> = "dce_rpc_response_stub", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Identifier of the SMB pipe; 0 without a pipe.
        fid: u64 = "fid",
        /// Number of the context.
        ctx_id: u16 = "ctx_id",
        /// Number of the operation.
        opnum: u16 = "opnum",
        /// The results.
        stub: &'a [u8] = "stub",
    }
}
