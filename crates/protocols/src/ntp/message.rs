//! NTP datagrams (RFC 5905 §7.3).

use gannet_base::Addr;
use gannet_base::Time;
use gannet_event::Arg;
use gannet_event::Packer;
use gannet_event::Seconds;
use gannet_event::Type;

use crate::support::OutOfBound;
use crate::support::Record;
use crate::support::RecordFault;

/// A datagram: the fields of its first byte, and the body according to its mode.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Message<'a> {
    /// Protocol version.
    pub version: u8,
    /// Association mode; see [`mode`].
    pub mode: u8,
    /// The rest of the datagram.
    pub body: Body<'a>,
}

/// Association modes that determine the direction.
pub mod mode {
    /// Client: requests the time.
    pub const CLIENT: u8 = 3;
    /// Server: replies to a client.
    pub const SERVER: u8 = 4;
}

/// The kinds of messages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Body<'a> {
    /// Modes 1 to 5: time.
    Standard(Standard),
    /// Mode 6: monitoring and control.
    Control(Control<'a>),
    /// Mode 7: private to an implementation.
    Private(Private<'a>),
    /// Mode 0 is reserved.
    Reserved,
}

/// A time message. Intervals and times are in seconds, as doubles; times are relative to 1970.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Standard {
    /// Stratum: distance from a reference clock.
    pub stratum: u8,
    /// Maximum interval between messages, as log2 of seconds.
    pub poll: i8,
    /// Precision of the clock, as log2 of seconds.
    pub precision: i8,
    /// Round-trip delay to the reference clock.
    pub root_delay: f64,
    /// Dispersion to the reference clock.
    pub root_dispersion: f64,
    /// Kiss code (stratum 0), name of the reference clock (stratum 1), otherwise its address.
    pub reference_id: [u8; 4],
    /// Time at which the clock was last set.
    pub reference: f64,
    /// Time at which the request left the client.
    pub origin: f64,
    /// Time at which the request reached the server.
    pub receive: f64,
    /// Time at which the reply left the server.
    pub transmit: f64,
    /// Number of extension fields.
    pub extensions: u32,
}

impl Standard {
    /// The reference clock's address, if the stratum is above 1.
    pub fn reference_addr(&self) -> Option<Addr> {
        (self.stratum > 1).then_some(Addr::v4(self.reference_id))
    }
}

/// An interval in seconds, as any double.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NtpInterval(pub f64);

impl NtpInterval {
    /// Microseconds, rounded half to even; `None` if the interval is beyond [`MAX_EXACT`] and
    /// written as a double.
    pub fn micros(self) -> Option<i64> {
        micros(self.0)
    }
}

impl Arg for NtpInterval {
    const TYPE: Type = Type::Interval;

    fn pack(&self, to: &mut Packer<'_>) {
        Seconds(self.0).pack(to);
    }
}

/// A time in seconds since 1970, as any double.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NtpTime(pub f64);

impl NtpTime {
    /// Microseconds, rounded half to even; `None` if the time is beyond [`MAX_EXACT`] and written
    /// as a double.
    pub fn micros(self) -> Option<i64> {
        micros(self.0)
    }
}

impl Arg for NtpTime {
    const TYPE: Type = Type::Time;

    fn pack(&self, to: &mut Packer<'_>) {
        Time::from_nanos(nanos(self.0)).pack(to);
    }
}

/// Limit in seconds beyond which a value is written as a double.
const MAX_EXACT: f64 = 9e9;

/// Microseconds, rounded half to even; `None` beyond [`MAX_EXACT`].
fn micros(seconds: f64) -> Option<i64> {
    if seconds.abs() > MAX_EXACT {
        return None;
    }
    let whole = seconds.trunc();
    let rest = ((seconds - whole) * 1e6).round_ties_even();
    Some(whole as i64 * 1_000_000 + rest as i64)
}

/// Nanoseconds that convert to the same double in scripts, clamped to the range of `i64`.
fn nanos(seconds: f64) -> i64 {
    let whole = seconds.trunc();
    let rest = ((seconds - whole) * 1e9).round_ties_even();
    (whole as i64).saturating_mul(1_000_000_000).saturating_add(rest as i64)
}

/// A control message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Control<'a> {
    /// R, E, M and the operation, from the highest bit down.
    pub flags: u8,
    /// Sequence number, which matches a response to its command.
    pub sequence: u16,
    /// Status of the system, a peer or a clock.
    pub status: u16,
    /// Identifier of the association that the message is about.
    pub association_id: u16,
    /// Data, mostly text.
    pub data: &'a [u8],
    /// Key identifier and checksum.
    pub mac: Option<(u32, [u8; 8])>,
}

impl Control<'_> {
    /// R: a response.
    pub fn response(&self) -> bool {
        self.flags & 0x80 != 0
    }

    /// E: an error response.
    pub fn error(&self) -> bool {
        self.flags & 0x40 != 0
    }

    /// M: more fragments follow.
    pub fn more(&self) -> bool {
        self.flags & 0x20 != 0
    }

    /// The operation.
    pub fn operation(&self) -> u8 {
        self.flags & 0x1f
    }
}

/// A private message of ntpd (`ntp_request.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Private<'a> {
    /// A: the message is authenticated.
    pub authenticated: bool,
    /// Sequence number within a response of several packets.
    pub sequence: u8,
    /// Number of the implementation that defines the request codes.
    pub implementation: u8,
    /// Request code.
    pub request: u8,
    /// Error code; 0 is success.
    pub error: u8,
    /// The first bytes of the data, one per item: Zeek's interpretation, which ignores the size of
    /// the items.
    pub data: &'a [u8],
}

/// Length in bytes of a time message without extension fields and authenticator.
const STANDARD_LEN: usize = 48;

/// Maximum length of an authenticator: longer data after the fixed part is extension fields (RFC
/// 7822).
const MAC_MAX: usize = 24;

impl<'a> Message<'a> {
    /// Parses a datagram.
    pub fn parse(data: &'a [u8]) -> Result<Self, RecordFault> {
        let mut r = Record::new("NTP_PDU", data);
        let first = r.upto("first_byte", 1)?[0];
        let rest = r.rest();
        let mode = first & 7;
        let body = match mode {
            0 => Body::Reserved,
            6 => Body::Control(control(rest)?),
            7 => Body::Private(private(rest)?),
            _ => Body::Standard(standard(data)?),
        };
        Ok(Self { version: first >> 3 & 7, mode, body })
    }
}

fn standard(data: &[u8]) -> Result<Standard, RecordFault> {
    let Some((head, mut rest)) = data.split_first_chunk::<STANDARD_LEN>() else {
        return Err(short(data.len() - 1).into());
    };
    let mut extensions = 0;
    if rest.len() > MAC_MAX {
        // Up to the end: Zeek does not recognize an authenticator after extension fields, which is
        // mostly a violation.
        while !rest.is_empty() {
            rest = skip_extension(rest)?;
            extensions += 1;
        }
    }
    Ok(Standard {
        stratum: head[1],
        poll: head[2] as i8,
        precision: head[3] as i8,
        root_delay: short_time(head, 4),
        root_dispersion: short_time(head, 8),
        reference_id: [head[12], head[13], head[14], head[15]],
        reference: timestamp(head, 16),
        origin: timestamp(head, 24),
        receive: timestamp(head, 32),
        transmit: timestamp(head, 40),
        extensions,
    })
}

/// A short-format time in seconds: 16 bits of seconds and 16 of their fraction, both signed, as
/// Zeek reads them.
fn short_time(head: &[u8; STANDARD_LEN], at: usize) -> f64 {
    let half = |i: usize| f64::from(i16::from_be_bytes([head[i], head[i + 1]]));
    half(at) + half(at + 2) / 65_536.0
}

/// Seconds between the epochs of NTP (1900) and Unix (1970).
const EPOCH: f64 = 2_208_988_800.0;

/// A timestamp in seconds since 1970: 32 bits of seconds and 32 of their fraction since 1900;
/// all-zero bits give 0.
fn timestamp(head: &[u8; STANDARD_LEN], at: usize) -> f64 {
    let word =
        |i: usize| f64::from(u32::from_be_bytes([head[i], head[i + 1], head[i + 2], head[i + 3]]));
    let (seconds, fraction) = (word(at), word(at + 4));
    if seconds == 0.0 && fraction == 0.0 {
        return 0.0;
    }
    // This order of the sum gives the double that Zeek logs.
    -EPOCH + seconds + fraction / 4_294_967_296.0
}

/// The error of a time message with `have` bytes after the first one.
fn short(have: usize) -> OutOfBound {
    let fields = [("root_dispersion", 11), ("reference_id", 15), ("transmit_ts", 47)];
    let (field, end) = fields.into_iter().find(|(_, end)| have < *end).unwrap_or(fields[2]);
    OutOfBound::new("NTP_std_msg", field, end as i64, have)
}

/// Skips an extension field (RFC 5906 §10).
fn skip_extension(field: &[u8]) -> Result<&[u8], RecordFault> {
    let mut r = Record::new("Extension_Field", field);
    let head = r.upto("value_len", 18)?;
    let len = u32::from(u16::from_be_bytes([head[2], head[3]]));
    if len < 16 {
        return Err(RecordFault::Value("Extension_Field:len"));
    }
    let value = be32(&head[14..]);
    if len < 18 || value > len - 18 {
        return Err(RecordFault::Value("Extension_Field:value_len"));
    }
    r.string("value", value.into())?;
    let signature = be32(r.upto("sig_len", 4)?);
    if len < 22 || value > len - 22 {
        return Err(RecordFault::Value("Extension_Field:sig_len"));
    }
    // Zeek reads sizes as signed 32-bit integers.
    r.string("signature", (signature as i32).into())?;
    let used = r.at.max(len as usize);
    let short = || {
        // The number of missing bytes, where other errors have the number of available ones.
        let missing = (used - field.len()) as i64;
        RecordFault::Short(OutOfBound::short_of("Extension_Field", "pad", len.into(), -missing))
    };
    field.get(used..).ok_or_else(short)
}

fn be32(data: &[u8]) -> u32 {
    data.first_chunk().map_or(0, |b| u32::from_be_bytes(*b))
}

fn control(rest: &[u8]) -> Result<Control<'_>, RecordFault> {
    let mut r = Record::new("NTP_control_msg", rest);
    let head = r.upto("c", 11)?;
    let half = |i: usize| u16::from_be_bytes([head[i], head[i + 1]]);
    let data = r.upto("data", usize::from(half(9)))?;
    let mac = match r.rest() {
        [a, b, c, d, sum @ ..] => {
            sum.try_into().ok().map(|sum| (u32::from_be_bytes([*a, *b, *c, *d]), sum))
        }
        _ => None,
    };
    Ok(Control {
        flags: head[0],
        sequence: half(1),
        status: half(3),
        association_id: half(5),
        data,
        mac,
    })
}

fn private(rest: &[u8]) -> Result<Private<'_>, RecordFault> {
    let mut r = Record::new("NTP_mode7_msg", rest);
    let head = r.upto("err_and_data_len", 5)?;
    let items = u16::from_be_bytes([head[3], head[4]]);
    let authenticated = head[0] & 0x80 != 0;
    let data = r.upto("data", usize::from(items & 0xfff))?;
    if authenticated {
        Record::new("NTP_MAC", r.rest()).all(20)?;
    }
    Ok(Private {
        authenticated,
        sequence: head[0] & 0x7f,
        implementation: head[1],
        request: head[2],
        error: (items >> 12) as u8,
        data,
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A server's reply.
    pub(in super::super) fn reply() -> Vec<u8> {
        let mut b = vec![0x24, 2, 6, 0xec, 0, 0, 0x26, 0x20, 0, 0, 0xf6, 0xc9, 17, 253, 26, 125];
        b.extend_from_slice(&[0xdb, 0x49, 0x11, 0x4f, 0x3d, 0x3e, 0xd7, 0x33]);
        b.extend_from_slice(&[0; 8]);
        b.extend_from_slice(&[0xdb, 0x49, 0x14, 0x44, 0x80, 0, 0, 0]);
        b.extend_from_slice(&[0xdb, 0x49, 0x14, 0x44, 0x80, 0, 0, 1]);
        b
    }

    fn parsed(data: &[u8]) -> Standard {
        match Message::parse(data).unwrap() {
            Message { version: 4, mode: 4, body: Body::Standard(s) } => s,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_time_message() {
        let s = parsed(&reply());
        assert_eq!((s.stratum, s.poll, s.precision, s.extensions), (2, 6, -20, 0));
        assert_eq!(s.root_delay, f64::from(0x2620) / 65536.0);
        // The fraction is signed.
        assert_eq!(s.root_dispersion, f64::from(0xf6c9 - 0x10000) / 65536.0);
        assert_eq!(s.reference_addr(), Some(Addr::v4([17, 253, 26, 125])));
        assert_eq!(s.origin, 0.0);
        assert_eq!(s.receive, f64::from(0xdb49_1444_u32) - EPOCH + 0.5);
    }

    /// The text of the error for bytes out of bounds.
    fn error(data: &[u8]) -> String {
        crate::support::error_text(Message::parse(data).unwrap_err())
    }

    #[test]
    fn messages_that_are_cut() {
        assert_eq!(error(b""), "out_of_bound: NTP_PDU:first_byte: 1 > 0");
        let cut = |n| error(&reply()[..n]);
        assert_eq!(cut(11), "out_of_bound: NTP_std_msg:root_dispersion: 11 > 10");
        assert_eq!(cut(15), "out_of_bound: NTP_std_msg:reference_id: 15 > 14");
        assert_eq!(cut(47), "out_of_bound: NTP_std_msg:transmit_ts: 47 > 46");
        assert_eq!(error(b"\x16abc"), "out_of_bound: NTP_control_msg:c: 11 > 3");
        assert_eq!(error(b"\x17abc"), "out_of_bound: NTP_mode7_msg:err_and_data_len: 5 > 3");
    }

    #[test]
    fn extensions_and_authenticators() {
        let mut with_mac = reply();
        with_mac.extend_from_slice(&[0; 20]);
        assert_eq!(parsed(&with_mac).extensions, 0);
        let mut extended = reply();
        let mut field = vec![2, 1, 0, 32, 0, 7, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 4];
        field.extend_from_slice(b"valu");
        field.extend_from_slice(&[0, 0, 0, 2, b's', b'g', 0, 0, 0, 0]);
        extended.extend_from_slice(&field);
        assert_eq!(parsed(&extended).extensions, 1);
        extended.extend_from_slice(&field);
        assert_eq!(parsed(&extended).extensions, 2);
        extended.extend_from_slice(&with_mac[48..]);
        assert_eq!(error(&extended), "&enforce violation : Extension_Field:len");
        extended.truncate(112);
        let with_len = |len| {
            let mut cut = extended.clone();
            cut[51] = len;
            error(&cut)
        };
        assert_eq!(with_len(15), "&enforce violation : Extension_Field:len");
        assert_eq!(with_len(20), "&enforce violation : Extension_Field:value_len");
        assert_eq!(with_len(24), "&enforce violation : Extension_Field:sig_len");
        assert_eq!(with_len(200), "out_of_bound: Extension_Field:pad: 200 > -136");
        extended.truncate(112 - 5);
        assert_eq!(error(&extended), "out_of_bound: Extension_Field:signature: 28 > 27");
    }

    #[test]
    fn control_messages() {
        let mut b = vec![0x16, 0xe2, 0, 68, 6, 0x18, 0, 9, 0, 0, 0, 3, b'a', b'=', b'1'];
        let Body::Control(c) = Message::parse(&b).unwrap().body else { panic!() };
        assert!(c.response() && c.error() && c.more());
        assert_eq!((c.operation(), c.sequence, c.status, c.association_id), (2, 68, 0x618, 9));
        assert_eq!((c.data, c.mac), (&b"a=1"[..], None));
        b.extend_from_slice(&[0, 0, 0, 5, 1, 2, 3, 4, 5, 6, 7, 8]);
        let Body::Control(c) = Message::parse(&b).unwrap().body else { panic!() };
        assert_eq!(c.mac, Some((5, [1, 2, 3, 4, 5, 6, 7, 8])));
        b[11] = 100;
        assert_eq!(error(&b), "out_of_bound: NTP_control_msg:data: 111 > 26");
    }

    #[test]
    fn private_messages() {
        let b = [0x97, 0x81, 3, 42, 0x40, 2, b'x', b'y', b'z'];
        assert_eq!(error(&b), "out_of_bound: NTP_MAC: 20 > 1");
        let mut b = b.to_vec();
        b[1] = 1;
        let Body::Private(p) = Message::parse(&b).unwrap().body else { panic!() };
        assert_eq!((p.sequence, p.implementation, p.request, p.error), (1, 3, 42, 4));
        assert_eq!((p.data, p.authenticated), (&b"xy"[..], false));
    }

    proptest! {
        #[test]
        fn any_bytes_end(mut data: Vec<u8>, mode in 0u8..8) {
            if let Some(first) = data.first_mut() {
                *first = *first & 0xf8 | mode;
            }
            let _ = Message::parse(&data);
            data.resize(200, 0);
            prop_assert!(Message::parse(&data).is_ok_and(|m| m.mode == data[0] & 7)
                || matches!(data[0] & 7, 1..=7));
        }
    }

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

    #[test]
    fn times_keep_their_doubles() {
        assert_eq!(nanos(1_497_882_174.945_927_4), 1_497_882_174_945_927_382);
        assert_eq!(nanos(1_497_882_174.372_165_4), 1_497_882_174_372_165_442);
        assert_eq!(nanos(0.0078125), 7_812_500);
        // The interval of the largest poll exponent.
        assert_eq!(nanos(2f64.powi(127)), i64::MAX);
        assert_eq!(nanos(-(2f64.powi(127))), i64::MIN);
    }
}
