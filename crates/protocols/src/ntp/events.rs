//! Events of NTP.

use gannet_base::Addr;
use gannet_event::Connection;

use super::message::NtpTime;
use super::message::Span;

gannet_event::record! {
    /// A message of modes 1 to 5 (RFC 5905 §7.3).
    pub struct StandardMessage<'a> = "NTP::StandardMessage" {
        /// Distance from a reference clock.
        stratum: u64 = "stratum",
        /// Longest interval between messages.
        poll: Span = "poll",
        /// Precision of the clock.
        precision: Span = "precision",
        /// Round trip to the reference clock.
        root_delay: Span = "root_delay",
        /// Dispersion to the reference clock.
        root_disp: Span = "root_disp",
        /// Why the server does not serve, where the stratum is 0.
        kiss_code: Option<[u8; 4]> = "kiss_code",
        /// Name of the reference clock, where the stratum is 1.
        ref_id: Option<[u8; 4]> = "ref_id",
        /// Its address otherwise.
        ref_addr: Option<Addr> = "ref_addr",
        /// When the clock was last set.
        ref_time: NtpTime = "ref_time",
        /// When the request left the client.
        org_time: NtpTime = "org_time",
        /// When the request reached the server.
        rec_time: NtpTime = "rec_time",
        /// When the reply left the server.
        xmt_time: NtpTime = "xmt_time",
        /// The key of the checksum.
        key_id: Option<u32> = "key_id",
        /// A checksum over message and key.
        digest: Option<&'a [u8]> = "digest",
        /// Number of extension fields.
        num_exts: u32 = "num_exts",
    }
}

gannet_event::record! {
    /// A message of mode 6 (RFC 1119).
    pub struct ControlMessage<'a> = "NTP::ControlMessage" {
        /// The operation.
        op_code: u64 = "op_code",
        /// Whether it is a response.
        resp_bit: bool = "resp_bit",
        /// Whether it reports an error.
        err_bit: bool = "err_bit",
        /// Whether more fragments follow.
        more_bit: bool = "more_bit",
        /// Joins a response to its command.
        sequence: u16 = "sequence",
        /// Status of the system, a peer or a clock.
        status: u16 = "status",
        /// The association that is meant.
        association_id: u16 = "association_id",
        /// Contents.
        data: Option<&'a [u8]> = "data",
        /// The key of the checksum.
        key_id: Option<u32> = "key_id",
        /// A checksum.
        crypto_checksum: Option<[u8; 8]> = "crypto_checksum",
    }
}

gannet_event::record! {
    /// A message of mode 7, private to an implementation.
    pub struct Mode7Message<'a> = "NTP::Mode7Message" {
        /// Request code.
        req_code: u64 = "req_code",
        /// Whether the message is authenticated.
        auth_bit: bool = "auth_bit",
        /// Number within a response of several packets.
        sequence: u64 = "sequence",
        /// Implementation that defines the request codes.
        implementation: u64 = "implementation",
        /// Why it was not done; 0 if it was.
        err: u64 = "err",
        /// The data.
        data: Option<&'a [u8]> = "data",
    }
}

gannet_event::record! {
    /// A message.
    pub struct Message<'a> = "NTP::Message" {
        /// Protocol version.
        version: u64 = "version",
        /// Association mode.
        mode: u64 = "mode",
        /// Modes 1 to 5.
        std_msg: Option<StandardMessage<'a>> = "std_msg",
        /// Mode 6.
        control_msg: Option<ControlMessage<'a>> = "control_msg",
        /// Mode 7.
        mode7_msg: Option<Mode7Message<'a>> = "mode7_msg",
    }
}

gannet_event::events! {
    crate::events::module_of(crate::Tag::Ntp);

    /// A message of NTP.
    pub struct NtpMessage<'a> = "ntp_message" {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// The message.
        msg: Message<'a> = "msg",
    }
}
