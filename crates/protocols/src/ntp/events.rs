//! Events of NTP.

use gannet_base::Addr;
use gannet_event::Connection;

use super::message::NtpInterval;
use super::message::NtpTime;

gannet_event::record! {
    /// A message of modes 1 to 5 (RFC 5905 §7.3).
    pub struct StandardMessage<'a> = "NTP::StandardMessage" {
        /// Stratum: distance from a reference clock.
        stratum: u64 = "stratum",
        /// Maximum interval between messages.
        poll: NtpInterval = "poll",
        /// Precision of the clock.
        precision: NtpInterval = "precision",
        /// Round-trip delay to the reference clock.
        root_delay: NtpInterval = "root_delay",
        /// Dispersion to the reference clock.
        root_disp: NtpInterval = "root_disp",
        /// Kiss code, if the stratum is 0.
        kiss_code: Option<[u8; 4]> = "kiss_code",
        /// Name of the reference clock, if the stratum is 1.
        ref_id: Option<[u8; 4]> = "ref_id",
        /// Address of the reference clock, if the stratum is above 1.
        ref_addr: Option<Addr> = "ref_addr",
        /// Time at which the clock was last set.
        ref_time: NtpTime = "ref_time",
        /// Time at which the request left the client.
        org_time: NtpTime = "org_time",
        /// Time at which the request reached the server.
        rec_time: NtpTime = "rec_time",
        /// Time at which the reply left the server.
        xmt_time: NtpTime = "xmt_time",
        /// Key identifier of the digest.
        key_id: Option<u32> = "key_id",
        /// Message digest over message and key.
        digest: Option<&'a [u8]> = "digest",
        /// Number of extension fields.
        num_exts: u32 = "num_exts",
    }
}

gannet_event::record! {
    /// A message of mode 6 (RFC 1119).
    pub struct ControlMessage<'a> = "NTP::ControlMessage" {
        /// Operation code.
        op_code: u64 = "op_code",
        /// Whether it is a response.
        resp_bit: bool = "resp_bit",
        /// Whether it reports an error.
        err_bit: bool = "err_bit",
        /// Whether more fragments follow.
        more_bit: bool = "more_bit",
        /// Sequence number, which matches a response to its command.
        sequence: u16 = "sequence",
        /// Status of the system, a peer or a clock.
        status: u16 = "status",
        /// Identifier of the association that the message is about.
        association_id: u16 = "association_id",
        /// Contents.
        data: Option<&'a [u8]> = "data",
        /// Key identifier of the checksum.
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
        /// Sequence number within a response of several packets.
        sequence: u64 = "sequence",
        /// Implementation that defines the request codes.
        implementation: u64 = "implementation",
        /// Error code; 0 is success.
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
        /// Contents of modes 1 to 5.
        std_msg: Option<StandardMessage<'a>> = "std_msg",
        /// Contents of mode 6.
        control_msg: Option<ControlMessage<'a>> = "control_msg",
        /// Contents of mode 7.
        mode7_msg: Option<Mode7Message<'a>> = "mode7_msg",
    }
}

gannet_event::events! {
    crate::events::module_of(crate::Tag::Ntp);

    /// An NTP message.
    pub struct NtpMessage<'a> = "ntp_message" {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// The message.
        msg: Message<'a> = "msg",
    }
}
