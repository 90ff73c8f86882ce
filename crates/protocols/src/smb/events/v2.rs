//! Events of SMB 2 and 3.

use gannet_event::Connection;

use super::*;

gannet_event::events! {
    crate::events::module::SMB2;

    with {
        /// The connection.
        c: Connection = "c",
        /// The header of the message.
        hdr: Header2 = "hdr",
    } {
        /// A message of version 2 or 3.
        pub struct Smb2Message = "smb2_message" {
            /// Whether the originator sent it.
            is_orig: bool = "is_orig",
        }

        /// A file was closed.
        pub struct Smb2CloseResponse = "smb2_close_response", opt_in {
            /// Contents of the response.
            response: CloseResponse = "response",
        }

        /// A file is opened or created.
        pub struct Smb2CreateRequest<'a> = "smb2_create_request" {
            /// Contents of the request.
            request: CreateRequest<'a> = "request",
        }

        /// A file was opened or created.
        pub struct Smb2CreateResponse = "smb2_create_response" {
            /// Contents of the response.
            response: CreateResponse = "response",
        }

        /// A client offers dialects.
        pub struct Smb2NegotiateRequest = "smb2_negotiate_request" {
            /// Dialect numbers.
            dialects: Vec<u16> = "dialects",
        }

        /// A server selected a dialect.
        pub struct Smb2NegotiateResponse<'a> = "smb2_negotiate_response" {
            /// Contents of the response.
            response: Negotiated2<'a> = "response",
        }

        /// A user logs in.
        pub struct Smb2SessionSetupRequest = "smb2_session_setup_request", opt_in {
            /// The login.
            request: SetupRequest2 = "request",
        }

        /// A server responds to a login.
        pub struct Smb2SessionSetupResponse = "smb2_session_setup_response", opt_in {
            /// Contents of the response.
            response: SetupResponse2 = "response",
        }

        /// Quotas of a file system are set.
        pub struct Smb2FileFscontrol = "smb2_file_fscontrol", opt_in {
            /// The file system.
            file_id: Guid = "file_id",
            /// Quotas.
            fs_control: FsControl = "fs_control",
        }

        /// The identifier of a file system is set.
        pub struct Smb2FileFsobjectid<'a> = "smb2_file_fsobjectid", opt_in {
            /// The file system.
            file_id: Guid = "file_id",
            /// The identifier.
            object_id: Guid = "object_id",
            /// Extended information.
            extended_info: &'a [u8] = "extended_info",
        }

        /// A client connects to a share.
        pub struct Smb2TreeConnectRequest<'a> = "smb2_tree_connect_request" {
            /// Its path.
            path: &'a [u8] = "path",
        }

        /// A client was connected to a share.
        pub struct Smb2TreeConnectResponse = "smb2_tree_connect_response" {
            /// Contents of the response.
            response: TreeResponse = "response",
        }

        /// A client disconnects from a share.
        pub struct Smb2TreeDisconnectRequest = "smb2_tree_disconnect_request" {}

        /// A client was disconnected from a share.
        pub struct Smb2TreeDisconnectResponse = "smb2_tree_disconnect_response", opt_in {}

        /// A file was written.
        pub struct Smb2WriteResponse = "smb2_write_response", opt_in {
            /// Number of bytes written.
            length: u32 = "length",
        }
    }

    with {
        /// The connection.
        c: Connection = "c",
    } {
        /// Too many requests wait for responses: they are dropped.
        pub struct Smb2DiscardedMessagesState = "smb2_discarded_messages_state" {
            /// Kind of the dropped requests.
            state: &'static str = "state",
        }

        /// A message is encrypted.
        pub struct Smb2TransformHeader = "smb2_transform_header", opt_in {
            /// The header of the message.
            hdr: TransformHeader = "hdr",
        }
    }

    with {
        /// The connection.
        c: Connection = "c",
        /// The header of the message.
        hdr: Header2 = "hdr",
        /// The file.
        file_id: Guid = "file_id",
    } {
        /// A file is closed.
        pub struct Smb2CloseRequest = "smb2_close_request" {}

        /// A file is read.
        pub struct Smb2ReadRequest = "smb2_read_request" {
            /// Offset in bytes.
            offset: u64 = "offset",
            /// Number of bytes to read.
            length: u32 = "length",
        }

        /// A file is renamed.
        pub struct Smb2FileRename<'a> = "smb2_file_rename" {
            /// Its new name.
            dst_filename: &'a [u8] = "dst_filename",
        }

        /// A file is marked for deletion when it is closed, or the mark is removed.
        pub struct Smb2FileDelete = "smb2_file_delete" {
            /// Whether it is marked.
            delete_pending: bool = "delete_pending",
        }

        /// Times and attributes of a file are set.
        pub struct Smb2FileSattr = "smb2_file_sattr" {
            /// Its times.
            times: MacTimes = "times",
            /// Its attributes.
            attrs: FileAttrs = "attrs",
        }

        /// Storage for a file is allocated.
        pub struct Smb2FileAllocation = "smb2_file_allocation", opt_in {
            /// Allocation size, in bytes.
            alloc_size: i64 = "alloc_size",
        }

        /// The end-of-file position of a file is set.
        pub struct Smb2FileEndoffile = "smb2_file_endoffile", opt_in {
            /// The position, in bytes.
            end_of_file: i64 = "end_of_file",
        }

        /// The mode of a file is set.
        pub struct Smb2FileMode = "smb2_file_mode", opt_in {
            /// The mode.
            mode: u32 = "mode",
        }

        /// The mode of a pipe is set.
        pub struct Smb2FilePipe = "smb2_file_pipe", opt_in {
            /// Read mode: 0 byte stream, 1 message.
            read_mode: u32 = "read_mode",
            /// Completion mode: 0 blocking, 1 non-blocking.
            completion_mode: u32 = "completion_mode",
        }

        /// The position in a file is set.
        pub struct Smb2FilePosition = "smb2_file_position", opt_in {
            /// The position.
            current_byte_offset: i64 = "current_byte_offset",
        }

        /// The short name of a file is set.
        pub struct Smb2FileShortname<'a> = "smb2_file_shortname", opt_in {
            /// The name.
            file_name: &'a [u8] = "file_name",
        }

        /// The length of a file's valid data is set.
        pub struct Smb2FileValiddatalength = "smb2_file_validdatalength", opt_in {
            /// The length.
            valid_data_length: i64 = "valid_data_length",
        }

        /// Extended attributes of a file are set.
        pub struct Smb2FileFullea = "smb2_file_fullea", opt_in {
            /// Names and values.
            file_eas: Vec<FileEa> = "file_eas",
        }

        /// A hard link to a file is created.
        pub struct Smb2FileLink<'a> = "smb2_file_link", opt_in {
            /// The directory of the link.
            root_directory: u64 = "root_directory",
            /// Name of the link.
            file_name: &'a [u8] = "file_name",
        }

        /// A file is written.
        pub struct Smb2WriteRequest = "smb2_write_request" {
            /// Offset in bytes.
            offset: u64 = "offset",
            /// Number of bytes to write.
            length: u32 = "length",
        }
    }
}
