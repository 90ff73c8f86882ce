//! Events of TFTP. Those that a Zeek package also has use its names and parameters.

use gannet_event::Connection;

use super::message::Options;
use crate::Tag;

gannet_event::events! {
    crate::events::module_of(Tag::Tftp);

    with {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
    } {
        /// A client requests to read a file.
        pub struct ReadRequest<'a> = "tftp::read_request", opt_in {
            /// Name of the file.
            filename: &'a [u8] = "filename",
            /// Mode: `netascii`, `octet` or `mail`.
            mode: &'a [u8] = "mode",
        }

        /// A client requests to write a file.
        pub struct WriteRequest<'a> = "tftp::write_request", opt_in {
            /// Name of the file.
            filename: &'a [u8] = "filename",
            /// Mode: `netascii`, `octet` or `mail`.
            mode: &'a [u8] = "mode",
        }

        /// A block of a file.
        pub struct Data<'a> = "tftp::data", opt_in {
            /// Block number.
            block_num: u16 = "block_num",
            /// Contents of the block.
            data: &'a [u8] = "data",
        }

        /// A block was acknowledged.
        pub struct Ack = "tftp::ack", opt_in {
            /// Block number.
            block_num: u16 = "block_num",
        }

        /// The transfer failed.
        pub struct Error<'a> = "tftp::error", opt_in {
            /// Error code.
            code: u16 = "code",
            /// Error message.
            msg: &'a [u8] = "msg",
        }

        /// A server accepts options of a request (RFC 2347).
        pub struct OptionAck<'a> = "tftp::option_ack", opt_in {
            /// Options, by name.
            options: Options<'a> = "options",
        }

        /// A message has an opcode that RFC 1350 and RFC 2347 do not define.
        pub struct UnknownOpcode = "tftp::unknown_opcode", opt_in {
            /// The opcode.
            code: u64 = "code",
        }
    }
}
