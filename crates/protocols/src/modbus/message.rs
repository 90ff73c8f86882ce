//! Headers, and checks of bodies.

use gannet_base::Dir;

use crate::support::Bytes;
use crate::support::OutOfBound;
use crate::support::Record;

/// Length of a header including the function code, in bytes.
pub const HEADER: usize = 8;

/// The header of a message (MBAP), with the function code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Transaction identifier, which a reply repeats.
    pub transaction: u16,
    /// Number of bytes after the length field, at least 2.
    pub length: u16,
    /// Unit identifier.
    pub unit: u8,
    /// Function code; the high bit marks an exception.
    pub function: u8,
}

impl Header {
    /// Parses the first [`HEADER`] bytes. `None` if there are fewer, or if they are not Modbus.
    pub fn parse(data: &[u8]) -> Option<Self> {
        let mut b = Bytes(data);
        let transaction = b.u16()?;
        if b.u16()? != 0 {
            return None;
        }
        let length = b.u16()?;
        let header = Self { transaction, length, unit: b.u8()?, function: b.u8()? };
        (length >= 2).then_some(header)
    }
}

/// Length of the message that `data` begins with, or the number of bytes needed to determine it.
pub fn length(data: &[u8]) -> usize {
    Bytes(data.get(4..).unwrap_or_default()).u16().map_or(6, |n| usize::from(n) + 6).max(HEADER)
}

/// The fault of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// The body is shorter than its function or its own counts require.
    Short(OutOfBound),
    /// A value that the function does not allow; the message is complete but has no event.
    Value(&'static str, u16),
}

/// Checks the body of a message, which follows the header.
pub fn check(from: Dir, function: u8, body: &[u8]) -> Result<(), Malformed> {
    let ok = match from {
        Dir::Orig => request(function, body),
        Dir::Resp if function & 0x80 != 0 => check_len("ModbusTCP_ExceptResponse", body, 1),
        Dir::Resp => reply(function, body),
    };
    ok.map_err(Malformed::Short)?;
    value(from, function, body).map_or(Ok(()), |(field, n)| Err(Malformed::Value(field, n)))
}

type Checked = Result<(), OutOfBound>;

fn request(function: u8, body: &[u8]) -> Checked {
    match function {
        1 => check_len("ReadCoilsRequest", body, 4),
        2 => check_len("ReadDiscreteInputsRequest", body, 4),
        3 => check_len("ReadHoldingRegistersRequest", body, 4),
        4 => check_len("ReadInputRegistersRequest", body, 4),
        5 => check_len("WriteSingleCoilRequest", body, 4),
        6 => check_len("WriteSingleRegisterRequest", body, 4),
        8 => Record::new("DiagnosticsRequest", body).upto("subfunction", 2).map(drop),
        0x0f => {
            let mut r = Record::new("WriteMultipleCoilsRequest", body);
            let n = r.upto("byte_count", 5)?[4];
            r.string("coils", n.into())
        }
        0x10 => {
            let mut r = Record::new("WriteMultipleRegistersRequest", body);
            r.upto("byte_count", 5)?;
            registers(&mut r, "registers")
        }
        0x14 => records(Record::new("ReadFileRecordRequest", body), |r| {
            r.record = "FileRecordRequest";
            r.all(7).map(drop)
        }),
        0x15 => records(Record::new("WriteFileRecordRequest", body), reference),
        0x16 => check_len("MaskWriteRegisterRequest", body, 6),
        0x17 => {
            let mut r = Record::new("ReadWriteMultipleRegistersRequest", body);
            r.upto("write_byte_count", 9)?;
            registers(&mut r, "write_register_values")
        }
        0x18 => check_len("ReadFIFOQueueRequest", body, 2),
        0x2b => Record::new("EncapInterfaceTransportRequest", body).upto("mei_type", 1).map(drop),
        _ => Ok(()),
    }
}

fn reply(function: u8, body: &[u8]) -> Checked {
    match function {
        1 => counted("ReadCoilsResponse", body, "bits"),
        2 => counted("ReadDiscreteInputsResponse", body, "bits"),
        3 => counted("ReadHoldingRegistersResponse", body, "registers"),
        4 => counted("ReadInputRegistersResponse", body, "registers"),
        5 => check_len("WriteSingleCoilResponse", body, 4),
        6 => check_len("WriteSingleRegisterResponse", body, 4),
        8 => Record::new("DiagnosticsResponse", body).upto("subfunction", 2).map(drop),
        0x0f => check_len("WriteMultipleCoilsResponse", body, 4),
        0x10 => check_len("WriteMultipleRegistersResponse", body, 4),
        0x14 => records(Record::new("ReadFileRecordResponse", body), |r| {
            r.record = "FileRecordResponse";
            let n = r.upto("ref_type", 2)?[0];
            r.string("record_data", n.into())
        }),
        0x15 => records(Record::new("WriteFileRecordResponse", body), reference),
        0x16 => check_len("MaskWriteRegisterResponse", body, 6),
        0x17 => counted("ReadWriteMultipleRegistersResponse", body, "registers"),
        0x18 => {
            let mut r = Record::new("ReadFIFOQueueResponse", body);
            let n = r.upto("fifo_count", 4).map(|d| u16::from_be_bytes([d[2], d[3]]))?;
            r.string("register_data", 2 * i64::from(n))
        }
        0x2b => Record::new("EncapInterfaceTransportResponse", body).upto("mei_type", 1).map(drop),
        _ => Ok(()),
    }
}

/// Checks that a body has `n` bytes.
fn check_len(record: &'static str, body: &[u8], n: usize) -> Checked {
    Record::new(record, body).all(n).map(drop)
}

/// Checks a byte count and the bytes that it counts.
fn counted(record: &'static str, body: &[u8], field: &'static str) -> Checked {
    let mut r = Record::new(record, body);
    let n = r.upto("byte_count", 1)?[0];
    r.string(field, n.into())
}

/// Checks registers, which follow their number and their byte count: the bytes must hold them.
fn registers(r: &mut Record<'_>, field: &'static str) -> Checked {
    let at = r.at - 3;
    let (n, bytes) = (u16::from_be_bytes([r.data[at], r.data[at + 1]]), r.data[at + 2]);
    r.string(field, bytes.into())?;
    if n > u16::from(bytes) / 2 {
        return Err(OutOfBound::new(r.record, field, n.into(), bytes.into()));
    }
    Ok(())
}

/// Checks file records (functions 20 and 21): a byte count, and the records within these bytes.
fn records(mut r: Record<'_>, one: impl Fn(&mut Record<'_>) -> Checked) -> Checked {
    let n = r.upto("byte_count", 1)?[0];
    r.string("references", n.into())?;
    let mut rest = &r.data[1..r.at];
    while !rest.is_empty() {
        let mut inner = Record::new("", rest);
        one(&mut inner)?;
        rest = inner.rest();
    }
    Ok(())
}

/// Checks a file record with its data.
fn reference(r: &mut Record<'_>) -> Checked {
    r.record = "ReferenceWithData";
    let n = r.upto("record_length", 7).map(|d| u16::from_be_bytes([d[5], d[6]]))?;
    r.string("record_data", 2 * i64::from(n))
}

/// The value in a body that the function does not allow.
fn value(from: Dir, function: u8, body: &[u8]) -> Option<(&'static str, u16)> {
    let byte = |at: usize, field| {
        body.get(at).filter(|n| !n.is_multiple_of(2)).map(|n| (field, u16::from(*n)))
    };
    match (function, from) {
        (3, Dir::Resp) => byte(0, "read holding register response byte count"),
        (4, Dir::Resp) => byte(0, "read input register response byte count"),
        (5, _) => {
            let n = Bytes(body.get(2..)?).u16().filter(|n| *n != 0 && *n != 0xff00)?;
            let field = match from {
                Dir::Orig => "write single coil request",
                Dir::Resp => "write single coil response",
            };
            Some((field, n))
        }
        (0x10, Dir::Orig) => byte(4, "write multiple registers request byte count"),
        (0x17, Dir::Orig) => byte(8, "read write multiple registers request write byte count"),
        (0x17, Dir::Resp) => byte(0, "read write multiple registers response byte count"),
        (0x18, Dir::Resp) => {
            let n = Bytes(body).u16().filter(|n| !n.is_multiple_of(2))?;
            Some(("read FIFO queue response byte count", n))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers() {
        let h = b"\x00\x01\x00\x00\x00\x06\x11\x03\x00\x6b\x00\x03";
        assert_eq!(
            Header::parse(h),
            Some(Header { transaction: 1, length: 6, unit: 0x11, function: 3 })
        );
        assert_eq!(length(h), 12);
        assert_eq!(length(&h[..5]), HEADER);
        assert_eq!(Header::parse(b"\x00\x01\x00\x01\x00\x06\x11\x03"), None);
        assert_eq!(Header::parse(b"\x00\x01\x00\x00\x00\x01\x11\x03"), None);
    }

    /// Describes the missing bytes of a body.
    fn short(from: Dir, function: u8, body: &[u8]) -> String {
        match check(from, function, body) {
            Err(Malformed::Short(e)) => e.to_string().replace(crate::support::BINPAC, ""),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn bodies() {
        let (o, r) = (Dir::Orig, Dir::Resp);
        assert_eq!(check(o, 3, b"\x00\x6b\x00\x03"), Ok(()));
        let e = "out_of_bound: ReadHoldingRegistersRequest: 4 > 3";
        assert_eq!(short(o, 3, b"\x00\x6b\x00"), e);
        assert_eq!(check(r, 3, b"\x02\x00\x01"), Ok(()));
        assert_eq!(check(r, 3, b"\x03\x00\x01\x02"), {
            Err(Malformed::Value("read holding register response byte count", 3))
        });
        let e = "out_of_bound: ReadHoldingRegistersResponse:registers: 5 > 3";
        assert_eq!(short(r, 3, b"\x04\x00\x01"), e);
        assert_eq!(check(r, 0x83, b"\x02"), Ok(()));
        assert_eq!(short(r, 0x83, b""), "out_of_bound: ModbusTCP_ExceptResponse: 1 > 0");
        assert_eq!(check(o, 0x10, b"\x00\x01\x00\x01\x02\xab\xcd"), Ok(()));
        let e = "out_of_bound: WriteMultipleRegistersRequest:registers: 2 > 2";
        assert_eq!(short(o, 0x10, b"\x00\x01\x00\x02\x02\xab\xcd"), e);
        let e = "out_of_bound: WriteMultipleRegistersRequest:registers: 7 > 6";
        assert_eq!(short(o, 0x10, b"\x00\x01\x00\x01\x02\xab"), e);
        assert_eq!(check(o, 5, b"\x00\x01\x00\x05"), {
            Err(Malformed::Value("write single coil request", 5))
        });
        assert_eq!(check(r, 0x18, b"\x01\x03\0\0"), {
            Err(Malformed::Value("read FIFO queue response byte count", 0x103))
        });
        assert_eq!(check(o, 0x15, b"\x09\x06\x00\x04\x00\x07\x00\x01\xab\xcd"), Ok(()));
        let e = "out_of_bound: ReferenceWithData:record_data: 11 > 9";
        assert_eq!(short(o, 0x15, b"\x09\x06\x00\x04\x00\x07\x00\x02\xab\xcd"), e);
        assert_eq!(check(r, 0x14, b"\x04\x02\x06\x0d\xfe"), Ok(()));
        let e = "out_of_bound: FileRecordResponse:record_data: 5 > 4";
        assert_eq!(short(r, 0x14, b"\x04\x03\x06\x0d\xfe"), e);
        assert_eq!(short(o, 8, b"\x00"), "out_of_bound: DiagnosticsRequest:subfunction: 2 > 1");
        assert_eq!(check(o, 0x63, b""), Ok(()));
    }
}
