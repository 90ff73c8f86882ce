//! The rows of ntp.log, ntp_control.log and ntp_private.log.

use gannet_base::Addr;
use gannet_base::ConnId;
use gannet_base::Interval;
use gannet_base::Time;
use gannet_base::Uid;
use gannet_log::Encoder;
use gannet_log::Type;
use gannet_log::Value;
use gannet_log::row;

use super::events::NtpMessage;
use super::message::NtpInterval;
use super::message::NtpTime;
use crate::Context;
use crate::OnEvent;

row! {
    /// One row for each time message.
    #[derive(Clone, Debug)]
    pub struct Ntp = "ntp" {
        /// Time of the message.
        ts: Time = "ts",
        /// The connection.
        uid: Uid = "uid",
        /// Its endpoints.
        id: ConnId = "id",
        /// Protocol version.
        version: u64 = "version",
        /// Association mode.
        mode: u64 = "mode",
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
        /// Kiss code, name or address of the reference clock, depending on the stratum.
        ref_id: Reference = "ref_id",
        /// Time at which the clock was last set.
        ref_time: NtpTime = "ref_time",
        /// Time at which the request left the client.
        org_time: NtpTime = "org_time",
        /// Time at which the request reached the server.
        rec_time: NtpTime = "rec_time",
        /// Time at which the reply left the server.
        xmt_time: NtpTime = "xmt_time",
        /// Number of extension fields.
        num_exts: u32 = "num_exts",
    }
}

row! {
    /// One row for each control message.
    #[derive(Clone, Debug)]
    pub struct Control = "ntp_control" {
        /// Time of the message.
        ts: Time = "ts",
        /// The connection.
        uid: Uid = "uid",
        /// Its endpoints.
        id: ConnId = "id",
        /// Protocol version.
        version: u64 = "version",
        /// Association mode.
        mode: u64 = "mode",
        /// Operation code.
        op_code: u64 = "op_code",
        /// Sequence number, which matches a response to its command.
        sequence: u16 = "sequence",
        /// Status of the system, a peer or a clock.
        status: u16 = "status",
        /// Id of the association.
        association_id: u16 = "association_id",
        /// Whether it is a response.
        resp_bit: bool = "resp_bit",
        /// Whether it is an error.
        err_bit: bool = "err_bit",
        /// Whether more fragments follow.
        more_bit: bool = "more_bit",
        /// Contents.
        data: Option<Vec<u8>> = "data",
        /// Key identifier of the checksum.
        key_id: Option<u32> = "key_id",
        /// Checksum.
        crypto_checksum: Option<Vec<u8>> = "crypto_checksum",
    }
}

row! {
    /// One row for each private message.
    #[derive(Clone, Debug)]
    pub struct Private = "ntp_private" {
        /// Time of the message.
        ts: Time = "ts",
        /// The connection.
        uid: Uid = "uid",
        /// Its endpoints.
        id: ConnId = "id",
        /// Protocol version.
        version: u64 = "version",
        /// Association mode.
        mode: u64 = "mode",
        /// Request code.
        req_code: u64 = "req_code",
        /// Sequence number within a response of several packets.
        sequence: u64 = "sequence",
        /// Implementation that defines the request codes.
        implementation: u64 = "implementation",
        /// Whether the message is authenticated.
        auth_bit: bool = "auth_bit",
        /// Error code; 0 is success.
        err: u64 = "err",
        /// Contents.
        data: Option<Vec<u8>> = "data",
    }
}

/// A reference identifier: a name of four bytes, or the address of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reference {
    /// Name of a reference clock, or a kiss code.
    Name([u8; 4]),
    /// Address of the server.
    Server(Addr),
}

impl Value for Reference {
    const TYPE: Type = Type::Scalar("string");

    fn put<E: Encoder>(&self, e: &mut E) {
        match self {
            Self::Name(name) => e.string(name),
            Self::Server(addr) => e.addr(*addr),
        }
    }
}

impl Value for NtpInterval {
    const TYPE: Type = Type::Scalar("interval");

    fn put<E: Encoder>(&self, e: &mut E) {
        match self.micros() {
            Some(us) => e.interval(Interval::from_micros(us)),
            None => e.plain(format!("{:.6}", self.0).as_bytes()),
        }
    }
}

impl Value for NtpTime {
    const TYPE: Type = Type::Scalar("time");

    fn put<E: Encoder>(&self, e: &mut E) {
        match self.micros() {
            Some(us) => e.time(Time::from_nanos(us.saturating_mul(1_000))),
            None => e.plain(format!("{:.6}", self.0).as_bytes()),
        }
    }
}

/// Writes a row for each message. As in Zeek, each message also repeats the latest rows of the
/// other kinds.
#[derive(Debug, Default)]
pub(super) struct Rows(Option<Box<Last>>);

/// The latest row of each kind.
#[derive(Debug, Default)]
struct Last {
    standard: Option<Ntp>,
    control: Option<Control>,
    private: Option<Private>,
}

impl OnEvent<NtpMessage<'_>> for Rows {
    #[inline]
    fn on_event(&mut self, cx: &mut Context<'_>, event: &NtpMessage<'_>) {
        let (ts, uid, id) = (cx.now, cx.conn.uid, cx.conn.id);
        let (version, mode) = (event.msg.version, event.msg.mode);
        let last = self.0.get_or_insert_default();
        if let Some(m) = &event.msg.std_msg {
            let name = || m.kiss_code.or(m.ref_id).unwrap_or_default();
            last.standard = Some(Ntp {
                ts,
                uid,
                id,
                version,
                mode,
                stratum: m.stratum,
                poll: m.poll,
                precision: m.precision,
                root_delay: m.root_delay,
                root_disp: m.root_disp,
                ref_id: m.ref_addr.map_or_else(|| Reference::Name(name()), Reference::Server),
                ref_time: m.ref_time,
                org_time: m.org_time,
                rec_time: m.rec_time,
                xmt_time: m.xmt_time,
                num_exts: m.num_exts,
            });
        }
        if let Some(m) = &event.msg.control_msg {
            last.control = Some(Control {
                ts,
                uid,
                id,
                version,
                mode,
                op_code: m.op_code,
                sequence: m.sequence,
                status: m.status,
                association_id: m.association_id,
                resp_bit: m.resp_bit,
                err_bit: m.err_bit,
                more_bit: m.more_bit,
                data: m.data.map(<[u8]>::to_vec),
                key_id: m.key_id,
                crypto_checksum: m.crypto_checksum.map(|sum| sum.to_vec()),
            });
        }
        if let Some(m) = &event.msg.mode7_msg {
            last.private = Some(Private {
                ts,
                uid,
                id,
                version,
                mode,
                req_code: m.req_code,
                sequence: m.sequence,
                implementation: m.implementation,
                auth_bit: m.auth_bit,
                err: m.err,
                data: m.data.map(<[u8]>::to_vec),
            });
        }
        // Repeated rows have the current roles of the connection.
        if let Some(row) = &mut last.standard {
            row.id = id;
            cx.log(row);
        }
        if let Some(row) = &mut last.control {
            row.id = id;
            cx.log(row);
        }
        if let Some(row) = &mut last.private {
            row.id = id;
            cx.log(row);
        }
    }
}
