//! Events of SMB: those of both versions here, the others in a module for each version, with their records.

mod records1;
mod records2;
pub mod v1;
pub mod v2;

use gannet_base::Time;
use gannet_event::Connection;

pub use records1::*;
pub use records2::*;
pub use v1::*;
pub use v2::*;

gannet_event::record! {
    /// Times of a file; the raw ones count 100 ns since 1601.
    #[derive(Clone, Copy, Debug)]
    pub struct MacTimes = "SMB::MACTimes" {
        /// When its contents changed last.
        modified: Time = "modified",
        /// The same, raw.
        modified_raw: u64 = "modified_raw",
        /// When it was read last.
        accessed: Time = "accessed",
        /// The same, raw.
        accessed_raw: u64 = "accessed_raw",
        /// When it was made.
        created: Time = "created",
        /// The same, raw.
        created_raw: u64 = "created_raw",
        /// When its attributes changed last.
        changed: Time = "changed",
        /// The same, raw.
        changed_raw: u64 = "changed_raw",
    }
}

gannet_event::events! {
    crate::events::module_of(crate::Tag::Smb);

    /// A tree is taken for one of pipes because of a file's name.
    pub struct SmbPipeConnectHeuristic = "smb_pipe_connect_heuristic" {
        /// The connection.
        c: Connection = "c",
    }

    /// A connection has too many pipes: they are not followed any more.
    pub struct SmbDiscardedDceRpcAnalyzers = "smb_discarded_dce_rpc_analyzers" {
        /// The connection.
        c: Connection = "c",
    }
}
