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
            /// What is known of it.
            response: CloseResponse = "response",
        }

        /// A file is opened or made.
        pub struct Smb2CreateRequest<'a> = "smb2_create_request" {
            /// Which one and how.
            request: CreateRequest<'a> = "request",
        }

        /// A file was opened or made.
        pub struct Smb2CreateResponse = "smb2_create_response" {
            /// What is known of it.
            response: CreateResponse = "response",
        }

        /// A client offers dialects.
        pub struct Smb2NegotiateRequest = "smb2_negotiate_request" {
            /// Numbers of dialects.
            dialects: Vec<u16> = "dialects",
        }

        /// A server chose a dialect.
        pub struct Smb2NegotiateResponse<'a> = "smb2_negotiate_response" {
            /// What it answers.
            response: Negotiated2<'a> = "response",
        }

        /// A user logs in.
        pub struct Smb2SessionSetupRequest = "smb2_session_setup_request", opt_in {
            /// The login.
            request: SetupRequest2 = "request",
        }

        /// A login is answered.
        pub struct Smb2SessionSetupResponse = "smb2_session_setup_response", opt_in {
            /// What the server answers.
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
            /// What more is known.
            extended_info: &'a [u8] = "extended_info",
        }

        /// A share is connected to.
        pub struct Smb2TreeConnectRequest<'a> = "smb2_tree_connect_request" {
            /// Its path.
            path: &'a [u8] = "path",
        }

        /// A share was connected to.
        pub struct Smb2TreeConnectResponse = "smb2_tree_connect_response" {
            /// What it is.
            response: TreeResponse = "response",
        }

        /// A share is disconnected from.
        pub struct Smb2TreeDisconnectRequest = "smb2_tree_disconnect_request" {}

        /// A share was disconnected from.
        pub struct Smb2TreeDisconnectResponse = "smb2_tree_disconnect_response", opt_in {}

        /// A file was written.
        pub struct Smb2WriteResponse = "smb2_write_response", opt_in {
            /// Bytes that were written.
            length: u32 = "length",
        }
    }

    with {
        /// The connection.
        c: Connection = "c",
    } {
        /// Too many requests wait for answers: they are discarded.
        pub struct Smb2DiscardedMessagesState = "smb2_discarded_messages_state" {
            /// Which ones.
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
            /// Where reading begins.
            offset: u64 = "offset",
            /// Bytes to read.
            length: u32 = "length",
        }

        /// A file is renamed.
        pub struct Smb2FileRename<'a> = "smb2_file_rename" {
            /// Its new name.
            dst_filename: &'a [u8] = "dst_filename",
        }

        /// A file is to be deleted when it is closed, or not to be.
        pub struct Smb2FileDelete = "smb2_file_delete" {
            /// Whether it is to be deleted.
            delete_pending: bool = "delete_pending",
        }

        /// Times and attributes of a file are set.
        pub struct Smb2FileSattr = "smb2_file_sattr" {
            /// Its times.
            times: MacTimes = "times",
            /// Its attributes.
            attrs: FileAttrs = "attrs",
        }

        /// Room for a file is set aside.
        pub struct Smb2FileAllocation = "smb2_file_allocation", opt_in {
            /// Bytes.
            alloc_size: i64 = "alloc_size",
        }

        /// The size of a file is set.
        pub struct Smb2FileEndoffile = "smb2_file_endoffile", opt_in {
            /// The size.
            end_of_file: i64 = "end_of_file",
        }

        /// The mode of a file is set.
        pub struct Smb2FileMode = "smb2_file_mode", opt_in {
            /// The mode.
            mode: u32 = "mode",
        }

        /// The mode of a pipe is set.
        pub struct Smb2FilePipe = "smb2_file_pipe", opt_in {
            /// Whether it is read by message.
            read_mode: u32 = "read_mode",
            /// Whether reading and writing wait.
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

        /// A link to a file is made.
        pub struct Smb2FileLink<'a> = "smb2_file_link", opt_in {
            /// The directory of the link.
            root_directory: u64 = "root_directory",
            /// Its name.
            file_name: &'a [u8] = "file_name",
        }

        /// A file is written.
        pub struct Smb2WriteRequest = "smb2_write_request" {
            /// Where writing begins.
            offset: u64 = "offset",
            /// Bytes to write.
            length: u32 = "length",
        }
    }
}
