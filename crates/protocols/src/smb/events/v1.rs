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

        /// A share is disconnected from.
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

        /// Whether a directory exists is asked for.
        pub struct Smb1CheckDirectoryRequest = "smb1_check_directory_request", opt_in {
            /// Its name.
            directory_name: Cow<'static, [u8]> = "directory_name",
        }

        /// The directory asked for exists.
        pub struct Smb1CheckDirectoryResponse = "smb1_check_directory_response", opt_in {}

        /// A client offers dialects of version 1.
        pub struct Smb1NegotiateRequest<'a> = "smb1_negotiate_request" {
            /// Names of dialects.
            dialects: Vec<&'a [u8]> = "dialects",
        }

        /// A server chose a dialect of version 1.
        pub struct Smb1NegotiateResponse<'a> = "smb1_negotiate_response" {
            /// What it answers.
            response: Negotiated1<'a> = "response",
        }

        /// A request is withdrawn.
        pub struct Smb1NtCancelRequest = "smb1_nt_cancel_request", opt_in {}

        /// A file is opened or made.
        pub struct Smb1NtCreateAndxRequest<'a> = "smb1_nt_create_andx_request" {
            /// Its name.
            file_name: &'a [u8] = "file_name",
        }

        /// Attributes of a file are asked for.
        pub struct Smb1QueryInformationRequest = "smb1_query_information_request", opt_in {
            /// Its name.
            filename: Cow<'static, [u8]> = "filename",
        }

        /// A file was read.
        pub struct Smb1ReadAndxResponse = "smb1_read_andx_response", opt_in {
            /// Bytes that were read.
            data_len: u32 = "data_len",
        }

        /// A user logs in.
        pub struct Smb1SessionSetupAndxRequest<'a> = "smb1_session_setup_andx_request" {
            /// The login.
            request: SetupRequest1<'a> = "request",
        }

        /// A user logged in.
        pub struct Smb1SessionSetupAndxResponse<'a> = "smb1_session_setup_andx_response" {
            /// What the server answers.
            response: SetupResponse1<'a> = "response",
        }

        /// A transaction, as on a pipe.
        pub struct Smb1TransactionRequest<'a> = "smb1_transaction_request" {
            /// Its name.
            name: &'a [u8] = "name",
            /// The subcommand.
            sub_cmd: u16 = "sub_cmd",
            /// Parameters.
            parameters: &'a [u8] = "parameters",
            /// Data.
            data: &'a [u8] = "data",
        }

        /// A transaction is answered.
        pub struct Smb1TransactionResponse<'a> = "smb1_transaction_response", opt_in {
            /// Parameters.
            parameters: &'a [u8] = "parameters",
            /// Data.
            data: &'a [u8] = "data",
        }

        /// A transaction on the file system.
        pub struct Smb1Transaction2Request = "smb1_transaction2_request" {
            /// Its parameters.
            args: Trans2Args = "args",
            /// The subcommand.
            sub_cmd: u16 = "sub_cmd",
        }

        /// A search for files.
        pub struct Smb1Trans2FindFirst2Request<'a> = "smb1_trans2_find_first2_request" {
            /// What is searched for.
            args: FindFirst2<'a> = "args",
        }

        /// What is known of a path is asked for.
        pub struct Smb1Trans2QueryPathInfoRequest<'a> = "smb1_trans2_query_path_info_request" {
            /// The path.
            file_name: &'a [u8] = "file_name",
        }

        /// The server of a path is asked for.
        pub struct Smb1Trans2GetDfsReferralRequest<'a> = "smb1_trans2_get_dfs_referral_request" {
            /// The path.
            file_name: &'a [u8] = "file_name",
        }

        /// More of a transaction on the file system.
        pub struct Smb1Transaction2SecondaryRequest<'a> = "smb1_transaction2_secondary_request", opt_in {
            /// Its parameters.
            args: Trans2SecArgs = "args",
            /// Parameters.
            parameters: &'a [u8] = "parameters",
            /// Data.
            data: &'a [u8] = "data",
        }

        /// More of a transaction.
        pub struct Smb1TransactionSecondaryRequest<'a> = "smb1_transaction_secondary_request", opt_in {
            /// Its parameters.
            args: TransSecArgs = "args",
            /// Parameters.
            parameters: &'a [u8] = "parameters",
            /// Data.
            data: &'a [u8] = "data",
        }

        /// A share is connected to.
        pub struct Smb1TreeConnectAndxRequest<'a> = "smb1_tree_connect_andx_request" {
            /// Its path.
            path: &'a [u8] = "path",
            /// What kind of share the client expects.
            service: &'a [u8] = "service",
        }

        /// A share was connected to.
        pub struct Smb1TreeConnectAndxResponse<'a> = "smb1_tree_connect_andx_response" {
            /// What kind of share it is.
            service: &'a [u8] = "service",
            /// Its file system.
            native_file_system: &'a [u8] = "native_file_system",
        }

        /// A file was written.
        pub struct Smb1WriteAndxResponse = "smb1_write_andx_response", opt_in {
            /// Bytes that were written.
            written_bytes: u32 = "written_bytes",
        }
    }

    with {
        /// The connection.
        c: Connection = "c",
        /// The header of the message.
        hdr: Header1 = "hdr",
        /// The file.
        file_id: u16 = "file_id",
    } {
        /// A file is closed.
        pub struct Smb1CloseRequest = "smb1_close_request" {}

        /// A file was opened or made.
        pub struct Smb1NtCreateAndxResponse = "smb1_nt_create_andx_response" {
            /// Its size.
            file_size: u64 = "file_size",
            /// Its times.
            times: MacTimes = "times",
        }

        /// A file is read.
        pub struct Smb1ReadAndxRequest = "smb1_read_andx_request" {
            /// Where reading begins.
            offset: u64 = "offset",
            /// Bytes to read.
            length: u64 = "length",
        }

        /// A file is written.
        pub struct Smb1WriteAndxRequest = "smb1_write_andx_request" {
            /// Where writing begins.
            offset: u64 = "offset",
            /// Bytes to write.
            data_len: u32 = "data_len",
        }
    }

    with {
        /// The connection.
        c: Connection = "c",
    } {
        /// The server is asked to answer.
        pub struct Smb1EchoRequest<'a> = "smb1_echo_request", opt_in {
            /// How often.
            echo_count: u16 = "echo_count",
            /// What to answer.
            data: &'a [u8] = "data",
        }

        /// The server answers.
        pub struct Smb1EchoResponse<'a> = "smb1_echo_response", opt_in {
            /// Number of the answer.
            seq_num: u16 = "seq_num",
            /// What was asked for.
            data: &'a [u8] = "data",
        }

        /// A user logs off.
        pub struct Smb1LogoffAndx = "smb1_logoff_andx", opt_in {
            /// Whether the originator sent it.
            is_orig: bool = "is_orig",
        }
    }
}
