//! Events of SMB: those of both versions here, the others in a module for each version, with their records.

mod records1;
mod records2;
pub mod v1;
pub mod v2;

use gannet_base::Time;
use gannet_event::Arg;
use gannet_event::Connection;
use gannet_event::Packer;
use gannet_event::Type;
use gannet_files::FileId;

pub use records1::*;
pub use records2::*;
pub use v1::*;
pub use v2::*;

use super::info::File;
use super::info::Share;

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

impl Arg for Share {
    const TYPE: Type = Type::String;

    fn pack(&self, to: &mut Packer<'_>) {
        match self.name() {
            Some(name) => name.pack(to),
            None => self.unknown().pack(to),
        }
    }
}

/// Contents of a file, by their number in file analysis.
#[derive(Clone, Copy, Debug)]
pub struct Carried(pub(super) FileId);

impl Arg for Carried {
    const TYPE: Type = Type::Count;

    fn pack(&self, to: &mut Packer<'_>) {
        self.0.number().pack(to);
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

    /// Bytes of a connection came.
    pub struct SmbData = "gannet::smb_data", opt_in {
        /// The connection.
        c: Connection = "c",
    }

    /// A tree is given to a client.
    pub struct SmbMapping<'a> = "gannet::smb_mapping", opt_in {
        /// The connection.
        c: Connection = "c",
        /// When it was asked for.
        ts: Time = "ts",
        /// Its name.
        path: Option<&'a [u8]> = "path",
        /// Kind of service (SMB 1).
        service: Option<&'a [u8]> = "service",
        /// File system (SMB 1).
        native_file_system: Option<&'a [u8]> = "native_file_system",
        /// Kind of share.
        share: Share = "share",
    }

    /// A file is in another state, by an action that is logged.
    pub struct SmbFileAction<'a> = "gannet::smb_file_action", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The file.
        file: &'a File = "file",
    }

    /// What was done last, where contents began that may time out.
    pub struct SmbLastAction<'a> = "gannet::smb_last_action", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The file.
        file: Option<&'a File> = "file",
        /// The contents.
        carried: Carried = "carried",
    }
}
