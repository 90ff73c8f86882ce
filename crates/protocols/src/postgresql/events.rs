//! Events of PostgreSQL.

use gannet_event::Arg;
use gannet_event::Connection;
use gannet_event::Packer;
use gannet_event::Type;

use super::message::Backend;
use super::message::Frontend;

/// A message of a client: packed as its kind.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a>(pub(super) &'a Frontend<'a>);

impl Arg for Ask<'_> {
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

/// A message of a server: packed as its kind.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a>(pub(super) &'a Backend<'a>);

impl Arg for Answer<'_> {
    const TYPE: Type = Type::String;

    fn pack(&self, to: &mut Packer<'_>) {
        let kind = match self.0 {
            Backend::AuthenticationOk => "auth_ok",
            Backend::Authentication(_) => "auth_request",
            Backend::Error(_) => "error",
            Backend::Notice(_) => "notice",
            Backend::Row => "data_row",
            Backend::Ready(_) => "ready_for_query",
            Backend::Unfinished | Backend::Other(_) => "other",
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
        /// A client asks for TLS.
        pub struct SslRequest = "PostgreSQL::ssl_request" {}

        /// A server answers whether TLS is used.
        pub struct SslReply = "PostgreSQL::ssl_reply" {
            /// `S`: it is, `N`: it is not.
            data: [u8; 1] = "data",
        }

        /// A server asks the client to authenticate.
        pub struct AuthenticationRequest<'a> = "PostgreSQL::authentication_request" {
            /// Kind of authentication.
            identifier: u32 = "identifier",
            /// Data for it.
            data: &'a [u8] = "data",
        }

        /// The client is authenticated.
        pub struct AuthenticationOk = "PostgreSQL::authentication_ok" {}

        /// A client authenticates.
        pub struct AuthenticationResponse<'a> = "PostgreSQL::authentication_response", opt_in {
            /// Data: a password or an answer, by the kind of authentication.
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
            /// Letter of the field.
            code: [u8; 1] = "code",
            /// Value.
            value: &'a [u8] = "value",
        }

        /// A server reports an error.
        pub struct ErrorResponse = "PostgreSQL::error_response" {}

        /// A field of a notice.
        pub struct NoticeField<'a> = "PostgreSQL::notice_response_identified_field" {
            /// Letter of the field.
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

        /// A server expects the next query.
        pub struct ReadyForQuery = "PostgreSQL::ready_for_query" {
            /// `I`: idle, `T`: in a transaction, `E`: in a transaction that failed.
            transaction_status: [u8; 1] = "transaction_status",
        }

        /// A client ends the session.
        pub struct Terminate = "PostgreSQL::terminate" {}

        /// A server sends a row.
        pub struct RowSent = "PostgreSQL::data_row" {
            /// Number of its columns.
            column_values: u16 = "column_values",
        }

        /// A server states the value of a parameter.
        pub struct ParameterStatus<'a> = "PostgreSQL::parameter_status", opt_in {
            /// Name.
            name: &'a [u8] = "name",
            /// Value.
            value: &'a [u8] = "value",
        }

        /// A server states what it takes to cancel a query.
        pub struct BackendKeyData = "PostgreSQL::backend_key_data", opt_in {
            /// Process of the server.
            process_id: u32 = "process_id",
            /// Secret.
            secret_key: u32 = "secret_key",
        }

        /// A message of another type.
        pub struct NotImplemented<'a> = "PostgreSQL::not_implemented", opt_in {
            /// Whether the client sent it.
            is_orig: bool = "is_orig",
            /// Letter of its type.
            typ: [u8; 1] = "typ",
            /// Its body.
            chunk: &'a [u8] = "chunk",
        }
    }

    with {
        /// The connection.
        c: Connection = "c",
    } {
        /// A message of a client was read, or its beginning.
        pub struct FrontendSeen<'a> = "gannet::postgresql_frontend", opt_in {
            /// The message.
            message: Ask<'a> = "message",
        }

        /// A message of a server was read, or its beginning.
        pub struct BackendSeen<'a> = "gannet::postgresql_backend", opt_in {
            /// The message.
            message: Answer<'a> = "message",
        }
    }
}
