//! Events of ONC RPC and of the portmapper.

use gannet_base::Time;
use gannet_event::Connection;
use gannet_event::Port;
use gannet_event::TableOf;

use super::message::Status;
use super::portmap::types::CallIt;
use super::portmap::types::Mapping;
use super::portmap::types::PortRequest;

gannet_event::events! {
    crate::events::module_of(crate::Tag::Portmapper);

    /// A call of any program. It is raised again if the call is repeated.
    pub struct RpcCall = "rpc_call", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Transaction identifier.
        xid: u32 = "xid",
        /// Program.
        prog: u32 = "prog",
        /// Version of the program.
        ver: u32 = "ver",
        /// Procedure.
        proc: u32 = "proc",
        /// Number of bytes after transaction identifier and message type.
        call_len: u64 = "call_len",
    }

    /// A reply of any program.
    pub struct RpcReply = "rpc_reply", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Transaction identifier.
        xid: u32 = "xid",
        /// Outcome of the call.
        status: Status = "status",
        /// Number of bytes of the results.
        reply_len: u64 = "reply_len",
    }

    /// A call and its reply, or a call without a reply at the end of the connection.
    pub struct RpcDialogue = "rpc_dialogue", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Program.
        prog: u32 = "prog",
        /// Version of the program.
        ver: u32 = "ver",
        /// Procedure.
        proc: u32 = "proc",
        /// Outcome of the call.
        status: Status = "status",
        /// Time of the call.
        start_time: Time = "start_time",
        /// Number of bytes of the call after transaction identifier and message type.
        call_len: u64 = "call_len",
        /// Number of bytes of the results that were not parsed.
        reply_len: u64 = "reply_len",
    }

    /// Too many calls waited for a reply, and were dropped.
    pub struct RpcDiscardedPendingCalls = "rpc_discarded_pending_calls", opt_in {
        /// The connection.
        c: Connection = "c",
    }

    /// The portmapper answered a call without arguments.
    pub struct PmRequestNull = "pm_request_null", opt_in {
        /// The connection.
        r: Connection = "r",
    }

    /// The portmapper received a call to add a mapping.
    pub struct PmRequestSet = "pm_request_set", opt_in {
        /// The connection.
        r: Connection = "r",
        /// The mapping.
        m: Mapping = "m",
        /// Whether it was added.
        success: bool = "success",
    }

    /// The portmapper received a call to remove a mapping.
    pub struct PmRequestUnset = "pm_request_unset", opt_in {
        /// The connection.
        r: Connection = "r",
        /// The mapping.
        m: Mapping = "m",
        /// Whether it was removed.
        success: bool = "success",
    }

    /// The portmapper returned the port of a program.
    pub struct PmRequestGetport = "pm_request_getport", opt_in {
        /// The connection.
        r: Connection = "r",
        /// The program.
        pr: PortRequest = "pr",
        /// Its port; 0 if it has none.
        p: Port = "p",
    }

    /// The portmapper listed its mappings.
    pub struct PmRequestDump = "pm_request_dump", opt_in {
        /// The connection.
        r: Connection = "r",
        /// The mappings, numbered from 1.
        m: TableOf<u64, Mapping> = "m",
    }

    /// The portmapper called a program for a client.
    pub struct PmRequestCallit = "pm_request_callit", opt_in {
        /// The connection.
        r: Connection = "r",
        /// The call.
        call: CallIt = "call",
        /// Port of the program.
        p: Port = "p",
    }

    /// A call without arguments that the portmapper did not execute.
    pub struct PmAttemptNull = "pm_attempt_null", opt_in {
        /// The connection.
        r: Connection = "r",
        /// Reason.
        status: Status = "status",
    }

    /// A call to add a mapping that the portmapper did not execute.
    pub struct PmAttemptSet = "pm_attempt_set", opt_in {
        /// The connection.
        r: Connection = "r",
        /// Reason.
        status: Status = "status",
        /// The mapping.
        m: Mapping = "m",
    }

    /// A call to remove a mapping that the portmapper did not execute.
    pub struct PmAttemptUnset = "pm_attempt_unset", opt_in {
        /// The connection.
        r: Connection = "r",
        /// Reason.
        status: Status = "status",
        /// The mapping.
        m: Mapping = "m",
    }

    /// A query for the port of a program that the portmapper did not answer.
    pub struct PmAttemptGetport = "pm_attempt_getport", opt_in {
        /// The connection.
        r: Connection = "r",
        /// Reason.
        status: Status = "status",
        /// The program.
        pr: PortRequest = "pr",
    }

    /// A query for all mappings that the portmapper did not answer.
    pub struct PmAttemptDump = "pm_attempt_dump", opt_in {
        /// The connection.
        r: Connection = "r",
        /// Reason.
        status: Status = "status",
    }

    /// A call for another program that the portmapper did not execute.
    pub struct PmAttemptCallit = "pm_attempt_callit", opt_in {
        /// The connection.
        r: Connection = "r",
        /// Reason.
        status: Status = "status",
        /// The call.
        call: CallIt = "call",
    }

    /// A port exceeds the range of ports. It counts as 0.
    pub struct PmBadPort = "pm_bad_port", opt_in {
        /// The connection.
        r: Connection = "r",
        /// The port.
        bad_p: u32 = "bad_p",
    }
}
