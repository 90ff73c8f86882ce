//! Events of SMB 1.

use std::borrow::Cow;

use gannet_event::Connection;

use super::*;

gannet_event::events! {
    crate::events::module::SMB1;

    with {
        /// The connection.
        c: Connection = "c",
        /// The header of the message.
        hdr: Header1 = "hdr",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
    } {
        /// A message of version 1.
        pub struct Smb1Message = "smb1_message" {}

        /// A response of version 1 that only reports an error.
        pub struct Smb1Error = "smb1_error", opt_in {}

        /// A client disconnects from a share.
        pub struct Smb1TreeDisconnect = "smb1_tree_disconnect", opt_in {}
    }

    with {
        /// The connection.
        c: Connection = "c",
        /// The header of the message.
        hdr: Header1 = "hdr",
    } {
        /// A response of version 1 that only reports success.
        pub struct Smb1EmptyResponse = "smb1_empty_response", opt_in {}

        /// A client checks whether a directory exists.
        pub struct Smb1CheckDirectoryRequest = "smb1_check_directory_request", opt_in {
            /// Name of the directory.
            directory_name: Cow<'static, [u8]> = "directory_name",
        }

        /// The checked directory exists.
        pub struct Smb1CheckDirectoryResponse = "smb1_check_directory_response", opt_in {}

        /// A client offers dialects of version 1.
        pub struct Smb1NegotiateRequest<'a> = "smb1_negotiate_request" {
            /// Dialect names.
            dialects: Vec<&'a [u8]> = "dialects",
        }

        /// A server selected a dialect of version 1.
        pub struct Smb1NegotiateResponse<'a> = "smb1_negotiate_response" {
            /// Contents of the response.
            response: Negotiated1<'a> = "response",
        }

        /// A request is canceled.
        pub struct Smb1NtCancelRequest = "smb1_nt_cancel_request", opt_in {}

        /// A file is opened or created.
        pub struct Smb1NtCreateAndxRequest<'a> = "smb1_nt_create_andx_request" {
            /// Name of the file.
            file_name: &'a [u8] = "file_name",
        }

        /// A client queries the attributes of a file.
        pub struct Smb1QueryInformationRequest = "smb1_query_information_request", opt_in {
            /// Name of the file.
            filename: Cow<'static, [u8]> = "filename",
        }

        /// A file was read.
        pub struct Smb1ReadAndxResponse = "smb1_read_andx_response", opt_in {
            /// Number of bytes read.
            data_len: u32 = "data_len",
        }

        /// A user logs in.
        pub struct Smb1SessionSetupAndxRequest<'a> = "smb1_session_setup_andx_request" {
            /// Contents of the request.
            request: SetupRequest1<'a> = "request",
        }

        /// A user logged in.
        pub struct Smb1SessionSetupAndxResponse<'a> = "smb1_session_setup_andx_response" {
            /// Contents of the response.
            response: SetupResponse1<'a> = "response",
        }

        /// A transaction, for example on a pipe.
        pub struct Smb1TransactionRequest<'a> = "smb1_transaction_request" {
            /// Name of the transaction.
            name: &'a [u8] = "name",
            /// Subcommand code.
            sub_cmd: u16 = "sub_cmd",
            /// Parameters.
            parameters: &'a [u8] = "parameters",
            /// Data.
            data: &'a [u8] = "data",
        }

        /// A server responds to a transaction.
        pub struct Smb1TransactionResponse<'a> = "smb1_transaction_response", opt_in {
            /// Parameters.
            parameters: &'a [u8] = "parameters",
            /// Data.
            data: &'a [u8] = "data",
        }

        /// A transaction on the file system.
        pub struct Smb1Transaction2Request = "smb1_transaction2_request" {
            /// Arguments of the request.
            args: Trans2Args = "args",
            /// Subcommand code.
            sub_cmd: u16 = "sub_cmd",
        }

        /// A search for files.
        pub struct Smb1Trans2FindFirst2Request<'a> = "smb1_trans2_find_first2_request" {
            /// Arguments of the search.
            args: FindFirst2<'a> = "args",
        }

        /// A client queries information on a path.
        pub struct Smb1Trans2QueryPathInfoRequest<'a> = "smb1_trans2_query_path_info_request" {
            /// The path.
            file_name: &'a [u8] = "file_name",
        }

        /// A client queries the DFS referral of a path.
        pub struct Smb1Trans2GetDfsReferralRequest<'a> = "smb1_trans2_get_dfs_referral_request" {
            /// The path.
            file_name: &'a [u8] = "file_name",
        }

        /// A secondary message of a transaction on the file system.
        pub struct Smb1Transaction2SecondaryRequest<'a> = "smb1_transaction2_secondary_request", opt_in {
            /// Arguments of the request.
            args: Trans2SecArgs = "args",
            /// Parameters.
            parameters: &'a [u8] = "parameters",
            /// Data.
            data: &'a [u8] = "data",
        }

        /// A secondary message of a transaction.
        pub struct Smb1TransactionSecondaryRequest<'a> = "smb1_transaction_secondary_request", opt_in {
            /// Arguments of the request.
            args: TransSecArgs = "args",
            /// Parameters.
            parameters: &'a [u8] = "parameters",
            /// Data.
            data: &'a [u8] = "data",
        }

        /// A client connects to a share.
        pub struct Smb1TreeConnectAndxRequest<'a> = "smb1_tree_connect_andx_request" {
            /// Path of the share.
            path: &'a [u8] = "path",
            /// Service type that the client expects.
            service: &'a [u8] = "service",
        }

        /// A client was connected to a share.
        pub struct Smb1TreeConnectAndxResponse<'a> = "smb1_tree_connect_andx_response" {
            /// Service type of the share.
            service: &'a [u8] = "service",
            /// File system of the share.
            native_file_system: &'a [u8] = "native_file_system",
        }

        /// A file was written.
        pub struct Smb1WriteAndxResponse = "smb1_write_andx_response", opt_in {
            /// Number of bytes written.
            written_bytes: u32 = "written_bytes",
        }
    }

    with {
        /// The connection.
        c: Connection = "c",
        /// The header of the message.
        hdr: Header1 = "hdr",
        /// File identifier.
        file_id: u16 = "file_id",
    } {
        /// A file is closed.
        pub struct Smb1CloseRequest = "smb1_close_request" {}

        /// A file was opened or created.
        pub struct Smb1NtCreateAndxResponse = "smb1_nt_create_andx_response" {
            /// Size of the file in bytes.
            file_size: u64 = "file_size",
            /// Times of the file.
            times: MacTimes = "times",
        }

        /// A file is read.
        pub struct Smb1ReadAndxRequest = "smb1_read_andx_request" {
            /// Offset in bytes.
            offset: u64 = "offset",
            /// Number of bytes to read.
            length: u64 = "length",
        }

        /// A file is written.
        pub struct Smb1WriteAndxRequest = "smb1_write_andx_request" {
            /// Offset in bytes.
            offset: u64 = "offset",
            /// Number of bytes to write.
            data_len: u32 = "data_len",
        }
    }

    with {
        /// The connection.
        c: Connection = "c",
    } {
        /// A client sends an echo request.
        pub struct Smb1EchoRequest<'a> = "smb1_echo_request", opt_in {
            /// Number of requested responses.
            echo_count: u16 = "echo_count",
            /// Data to return.
            data: &'a [u8] = "data",
        }

        /// A server sends an echo response.
        pub struct Smb1EchoResponse<'a> = "smb1_echo_response", opt_in {
            /// Sequence number of the response.
            seq_num: u16 = "seq_num",
            /// Returned data.
            data: &'a [u8] = "data",
        }

        /// A user logs off.
        pub struct Smb1LogoffAndx = "smb1_logoff_andx", opt_in {
            /// Whether the originator sent it.
            is_orig: bool = "is_orig",
        }
    }
}
