//! Events of PostgreSQL.

use gannet_event::Arg;
use gannet_event::Connection;
use gannet_event::Packer;
use gannet_event::Type;

use super::message::Backend;
use super::message::Frontend;

/// A message of a client, encoded as the name of its kind.
#[derive(Clone, Copy, Debug)]
pub struct FrontendKind<'a>(pub(super) &'a Frontend<'a>);

impl Arg for FrontendKind<'_> {
    const TYPE: Type = Type::String;

    fn pack(&self, to: &mut Packer<'_>) {
        let kind = match self.0 {
            Frontend::Query(_) => "simple_query",
            Frontend::Terminate => "terminate",
            Frontend::Other(_) => "other",
        };
        kind.pack(to);
    }
}

/// A message of a server, encoded as the name of its kind.
#[derive(Clone, Copy, Debug)]
pub struct BackendKind<'a>(pub(super) &'a Backend<'a>);

impl Arg for BackendKind<'_> {
    const TYPE: Type = Type::String;

    fn pack(&self, to: &mut Packer<'_>) {
        let kind = match self.0 {
            Backend::AuthenticationOk => "auth_ok",
            Backend::Authentication(_) => "auth_request",
            Backend::Error(_) => "error",
            Backend::Notice(_) => "notice",
            Backend::Row => "data_row",
            Backend::Ready(_) => "ready_for_query",
            Backend::UnterminatedError | Backend::Other(_) => "other",
        };
        kind.pack(to);
    }
}

gannet_event::events! {
    crate::events::module_of(crate::Tag::Postgresql);

    with {
        /// The connection.
        c: Connection = "c",
    } {
        /// A client requests TLS.
        pub struct SslRequest = "PostgreSQL::ssl_request" {}

        /// A server replies whether TLS is used.
        pub struct SslReply = "PostgreSQL::ssl_reply" {
            /// `S`: TLS is used, `N`: it is not.
            data: [u8; 1] = "data",
        }

        /// A server requests authentication from the client.
        pub struct AuthenticationRequest<'a> = "PostgreSQL::authentication_request" {
            /// Authentication type.
            identifier: u32 = "identifier",
            /// Data of the authentication type.
            data: &'a [u8] = "data",
        }

        /// The client is authenticated.
        pub struct AuthenticationOk = "PostgreSQL::authentication_ok" {}

        /// A client authenticates.
        pub struct AuthenticationResponse<'a> = "PostgreSQL::authentication_response", opt_in {
            /// Data: a password or a response, depending on the authentication type.
            data: &'a [u8] = "data",
        }

        /// A parameter of a client's first message.
        pub struct StartupParameter<'a> = "PostgreSQL::startup_parameter" {
            /// Name.
            name: &'a [u8] = "name",
            /// Value.
            value: &'a [u8] = "value",
        }

        /// A client begins a session.
        pub struct StartupMessage = "PostgreSQL::startup_message" {
            /// Major version of the protocol.
            major: u64 = "major",
            /// Minor version of the protocol.
            minor: u64 = "minor",
        }

        /// A field of an error.
        pub struct ErrorField<'a> = "PostgreSQL::error_response_identified_field" {
            /// Type of the field, a letter.
            code: [u8; 1] = "code",
            /// Value.
            value: &'a [u8] = "value",
        }

        /// A server reports an error.
        pub struct ErrorResponse = "PostgreSQL::error_response" {}

        /// A field of a notice.
        pub struct NoticeField<'a> = "PostgreSQL::notice_response_identified_field" {
            /// Type of the field, a letter.
            code: [u8; 1] = "code",
            /// Value.
            value: &'a [u8] = "value",
        }

        /// A server sends a notice.
        pub struct NoticeResponse = "PostgreSQL::notice_response", opt_in {}

        /// A client sends a query.
        pub struct SimpleQuery<'a> = "PostgreSQL::simple_query" {
            /// The query.
            query: &'a [u8] = "query",
        }

        /// A server is ready for the next query.
        pub struct ReadyForQuery = "PostgreSQL::ready_for_query" {
            /// `I`: idle, `T`: in a transaction, `E`: in a failed transaction.
            transaction_status: [u8; 1] = "transaction_status",
        }

        /// A client ends the session.
        pub struct Terminate = "PostgreSQL::terminate" {}

        /// A server sends a data row.
        pub struct RowSent = "PostgreSQL::data_row" {
            /// Number of columns.
            column_values: u16 = "column_values",
        }

        /// A server reports the value of a parameter.
        pub struct ParameterStatus<'a> = "PostgreSQL::parameter_status", opt_in {
            /// Name.
            name: &'a [u8] = "name",
            /// Value.
            value: &'a [u8] = "value",
        }

        /// A server sends the key data with which a client can cancel a query.
        pub struct BackendKeyData = "PostgreSQL::backend_key_data", opt_in {
            /// Process ID of the server.
            process_id: u32 = "process_id",
            /// Secret key.
            secret_key: u32 = "secret_key",
        }

        /// A message of another type.
        pub struct NotImplemented<'a> = "PostgreSQL::not_implemented", opt_in {
            /// Whether the client sent it.
            is_orig: bool = "is_orig",
            /// Type of the message, a letter.
            typ: [u8; 1] = "typ",
            /// Its body.
            chunk: &'a [u8] = "chunk",
        }
    }

    with {
        /// The connection.
        c: Connection = "c",
    } {
        /// A message of a client was parsed, completely or up to a fault.
        pub struct FrontendSeen<'a> = "gannet::postgresql_frontend", opt_in {
            /// The message.
            message: FrontendKind<'a> = "message",
        }

        /// A message of a server was parsed, completely or up to a fault.
        pub struct BackendSeen<'a> = "gannet::postgresql_backend", opt_in {
            /// The message.
            message: BackendKind<'a> = "message",
        }
    }
}
