//! Headers and bodies.

use gannet_base::Dir;

use crate::support::Bytes;

/// Bytes of a header, with the function.
pub const HEADER: usize = 8;

/// What every message begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Transaction: a reply repeats its request's.
    pub transaction: u16,
    /// Bytes after the length field, at least 2.
    pub length: u16,
    /// Unit behind the address.
    pub unit: u8,
    /// Function; the high bit marks an exception.
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

/// How long the message is that begins here; how much is needed to tell it.
pub fn length(data: &[u8]) -> usize {
    Bytes(data.get(4..).unwrap_or_default()).u16().map_or(6, |n| usize::from(n) + 6).max(HEADER)
}

/// What is wrong with a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// It is shorter than its function, or its own counts, say.
    Short,
    /// A value that the function does not allow; the message is complete all the same.
    Value(&'static str, u16),
}

/// Checks the body of a message (what follows the header).
pub fn check(from: Dir, function: u8, body: &[u8]) -> Result<(), Malformed> {
    let mut b = Bytes(body);
    let ok = match from {
        Dir::Orig => request(function, &mut b),
        Dir::Resp if function & 0x80 != 0 => b.u8().map(|_| ()),
        Dir::Resp => reply(function, &mut b),
    };
    ok.ok_or(Malformed::Short)?;
    value(from, function, body).map_or(Ok(()), |(what, n)| Err(Malformed::Value(what, n)))
}

fn request(function: u8, b: &mut Bytes<'_>) -> Option<()> {
    match function {
        1..=6 => b.take(4)?,
        8 | 0x18 => b.take(2)?,
        0x0f => {
            b.take(4)?;
            counted(b)?
        }
        0x10 => {
            b.take(2)?;
            registers(b)?
        }
        0x14 => counted(b).filter(|r| r.len().is_multiple_of(7))?,
        0x15 => counted(b).filter(|r| references(r))?,
        0x16 => b.take(6)?,
        0x17 => {
            b.take(6)?;
            registers(b)?
        }
        0x2b => b.take(1)?,
        _ => &[],
    };
    Some(())
}

fn reply(function: u8, b: &mut Bytes<'_>) -> Option<()> {
    match function {
        1..=4 | 0x17 => counted(b)?,
        5 | 6 | 0x0f | 0x10 => b.take(4)?,
        8 => b.take(2)?,
        0x14 => counted(b).filter(|r| records(r))?,
        0x15 => counted(b).filter(|r| references(r))?,
        0x16 => b.take(6)?,
        0x18 => {
            b.u16()?;
            let n = usize::from(b.u16()?);
            b.take(2 * n)?
        }
        0x2b => b.take(1)?,
        _ => &[],
    };
    Some(())
}

/// A count of bytes, then as many.
fn counted<'a>(b: &mut Bytes<'a>) -> Option<&'a [u8]> {
    let n = usize::from(b.u8()?);
    b.take(n)
}

/// A number of registers, a count of bytes, then as many, which must hold the registers.
fn registers<'a>(b: &mut Bytes<'a>) -> Option<&'a [u8]> {
    let n = usize::from(b.u16()?);
    counted(b).filter(|r| 2 * n <= r.len())
}

/// Parts of files with their data (functions 20 and 21).
fn references(data: &[u8]) -> bool {
    let mut b = Bytes(data);
    while !b.is_empty() {
        let one = b.take(5).and_then(|_| b.u16()).and_then(|n| b.take(2 * usize::from(n)));
        if one.is_none() {
            return false;
        }
    }
    true
}

/// Parts of files as a reply gives them.
fn records(data: &[u8]) -> bool {
    let mut b = Bytes(data);
    while !b.is_empty() {
        let one = b.u8().and_then(|n| b.take(usize::from(n) + 1));
        if one.is_none() {
            return false;
        }
    }
    true
}

/// A value that the function does not allow.
fn value(from: Dir, function: u8, body: &[u8]) -> Option<(&'static str, u16)> {
    let byte = |at: usize, what| {
        body.get(at).filter(|n| !n.is_multiple_of(2)).map(|n| (what, u16::from(*n)))
    };
    match (function, from) {
        (3, Dir::Resp) => byte(0, "read holding register response byte count"),
        (4, Dir::Resp) => byte(0, "read input register response byte count"),
        (5, _) => {
            let n = Bytes(body.get(2..)?).u16().filter(|n| *n != 0 && *n != 0xff00)?;
            let what = match from {
                Dir::Orig => "write single coil request",
                Dir::Resp => "write single coil response",
            };
            Some((what, n))
        }
        (0x10, Dir::Orig) => byte(4, "write multiple registers request byte count"),
        (0x17, Dir::Orig) => byte(8, "read write multiple registers request write byte count"),
        (0x17, Dir::Resp) => byte(0, "read write multiple registers response byte count"),
        (0x18, Dir::Resp) => byte(1, "read FIFO queue response byte count"),
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

    #[test]
    fn bodies() {
        let (o, r) = (Dir::Orig, Dir::Resp);
        assert_eq!(check(o, 3, b"\x00\x6b\x00\x03"), Ok(()));
        assert_eq!(check(o, 3, b"\x00\x6b\x00"), Err(Malformed::Short));
        assert_eq!(check(r, 3, b"\x02\x00\x01"), Ok(()));
        assert_eq!(check(r, 3, b"\x03\x00\x01\x02"), {
            Err(Malformed::Value("read holding register response byte count", 3))
        });
        assert_eq!(check(r, 0x83, b"\x02"), Ok(()));
        assert_eq!(check(r, 0x83, b""), Err(Malformed::Short));
        assert_eq!(check(o, 0x10, b"\x00\x01\x00\x01\x02\xab\xcd"), Ok(()));
        assert_eq!(check(o, 0x10, b"\x00\x01\x00\x02\x02\xab\xcd"), Err(Malformed::Short));
        assert_eq!(check(o, 5, b"\x00\x01\x00\x05"), {
            Err(Malformed::Value("write single coil request", 5))
        });
        assert_eq!(check(o, 0x15, b"\x09\x06\x00\x04\x00\x07\x00\x01\xab\xcd"), Ok(()));
        assert_eq!(check(r, 0x14, b"\x04\x02\x06\x0d\xfe"), Ok(()));
        assert_eq!(check(r, 0x14, b"\x04\x03\x06\x0d\xfe"), Err(Malformed::Short));
        assert_eq!(check(o, 0x63, b""), Ok(()));
    }
}
