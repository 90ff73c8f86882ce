//! Events of both SMB versions; those of a single version are in a module for each, with their
//! records.

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
    /// Times of a file; the raw ones are in units of 100 ns since 1601.
    #[derive(Clone, Copy, Debug)]
    pub struct MacTimes = "SMB::MACTimes" {
        /// Time of the last write.
        modified: Time = "modified",
        /// Raw value of `modified`.
        modified_raw: u64 = "modified_raw",
        /// Time of the last access.
        accessed: Time = "accessed",
        /// Raw value of `accessed`.
        accessed_raw: u64 = "accessed_raw",
        /// Creation time.
        created: Time = "created",
        /// Raw value of `created`.
        created_raw: u64 = "created_raw",
        /// Time of the last change of attributes.
        changed: Time = "changed",
        /// Raw value of `changed`.
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

/// A file in transit, encoded as its number in file analysis.
#[derive(Clone, Copy, Debug)]
pub struct TransferredFile(pub(super) FileId);

impl Arg for TransferredFile {
    const TYPE: Type = Type::Count;

    fn pack(&self, to: &mut Packer<'_>) {
        self.0.number().pack(to);
    }
}

gannet_event::events! {
    crate::events::module_of(crate::Tag::Smb);

    /// A tree is treated as a pipe share because of a file's name.
    pub struct SmbPipeConnectHeuristic = "smb_pipe_connect_heuristic" {
        /// The connection.
        c: Connection = "c",
    }

    /// A connection has too many pipes: their data is not analyzed any more.
    pub struct SmbDiscardedDceRpcAnalyzers = "smb_discarded_dce_rpc_analyzers" {
        /// The connection.
        c: Connection = "c",
    }

    /// Data of a connection arrived.
    pub struct SmbData = "gannet::smb_data", opt_in {
        /// The connection.
        c: Connection = "c",
    }

    /// A client was connected to a share.
    pub struct SmbMapping<'a> = "gannet::smb_mapping", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Time of the request.
        ts: Time = "ts",
        /// Path of the share.
        path: Option<&'a [u8]> = "path",
        /// Service type (SMB 1).
        service: Option<&'a [u8]> = "service",
        /// File system (SMB 1).
        native_file_system: Option<&'a [u8]> = "native_file_system",
        /// Type of the share.
        share: Share = "share",
    }

    /// A logged action changed the state of a file.
    pub struct SmbFileAction<'a> = "gannet::smb_file_action", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The file.
        file: &'a File = "file",
    }

    /// The last action on a connection, if contents that may time out began there.
    pub struct SmbLastAction<'a> = "gannet::smb_last_action", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The file.
        file: Option<&'a File> = "file",
        /// The file whose contents began there.
        transferred: TransferredFile = "carried",
    }
}
