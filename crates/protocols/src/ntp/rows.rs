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
        version: u8 = "version",
        /// Association mode.
        mode: u8 = "mode",
        /// Distance from a reference clock.
        stratum: u8 = "stratum",
        /// Longest interval between messages.
        poll: Span = "poll",
        /// Precision of the clock.
        precision: Span = "precision",
        /// Round trip to the reference clock.
        root_delay: Span = "root_delay",
        /// Dispersion to the reference clock.
        root_disp: Span = "root_disp",
        /// Kiss code, name or address of the reference clock, by the stratum.
        ref_id: Reference = "ref_id",
        /// When the clock was last set.
        ref_time: Stamp = "ref_time",
        /// When the request left the client.
        org_time: Stamp = "org_time",
        /// When the request reached the server.
        rec_time: Stamp = "rec_time",
        /// When the reply left the server.
        xmt_time: Stamp = "xmt_time",
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
        version: u8 = "version",
        /// Association mode.
        mode: u8 = "mode",
        /// Operation.
        op_code: u8 = "op_code",
        /// Joins a response to its command.
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
        /// Key of the checksum.
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
        version: u8 = "version",
        /// Association mode.
        mode: u8 = "mode",
        /// Request code.
        req_code: u8 = "req_code",
        /// Number within a response of several packets.
        sequence: u8 = "sequence",
        /// Implementation that defines the request codes.
        implementation: u8 = "implementation",
        /// Whether the message is authenticated.
        auth_bit: bool = "auth_bit",
        /// Error code.
        err: u8 = "err",
        /// Contents.
        data: Option<Vec<u8>> = "data",
    }
}

/// A span in seconds, which may be any double.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span(pub f64);

/// The reference of a clock: a name of four bytes, or a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reference {
    /// A kind of clock, or a code.
    Name([u8; 4]),
    /// Its address.
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

/// A time in seconds since 1970 that may be any double.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stamp(pub f64);

/// Seconds beyond which a number is written as the double it is.
const FAR: f64 = 9e9;

impl Value for Span {
    const TYPE: Type = Type::Scalar("interval");

    fn put<E: Encoder>(&self, e: &mut E) {
        match micros(self.0) {
            Some(us) => e.interval(Interval::from_micros(us)),
            None => e.plain(format!("{:.6}", self.0).as_bytes()),
        }
    }
}

impl Value for Stamp {
    const TYPE: Type = Type::Scalar("time");

    fn put<E: Encoder>(&self, e: &mut E) {
        match micros(self.0) {
            Some(us) => e.time(Time::from_nanos(us.saturating_mul(1_000))),
            None => e.plain(format!("{:.6}", self.0).as_bytes()),
        }
    }
}

/// Microseconds, rounded (halves to even); `None` beyond [`FAR`].
pub(super) fn micros(seconds: f64) -> Option<i64> {
    if seconds.abs() > FAR {
        return None;
    }
    let whole = seconds.trunc();
    let rest = ((seconds - whole) * 1e6).round_ties_even();
    Some(whole as i64 * 1_000_000 + rest as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_as_printf_does() {
        assert_eq!(micros(9.5367431640625e-7), Some(1)); // 2^-20
        assert_eq!(micros(4.76837158203125e-7), Some(0)); // 2^-21
        assert_eq!(micros(-0.0359954833984375), Some(-35_995));
        assert_eq!(micros(0.0078125), Some(7_812)); // a half: to even
        assert_eq!(micros(1_470_103_567.239_241), Some(1_470_103_567_239_241));
    }

    #[test]
    fn far_numbers() {
        assert_eq!(micros(-2_208_988_799.0), Some(-2_208_988_799_000_000));
        assert_eq!(micros(2f64.powi(127)), None);
    }
}
