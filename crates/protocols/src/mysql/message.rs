//! Pieces of packets. Numbers are little-endian.

use crate::support::Bytes;

/// Bytes of a packet's header: length in three bytes, sequence number.
pub const HEADER: usize = 4;

/// Client's and server's abilities (Capabilities Flags).
pub mod capability {
    /// The login names a database.
    pub const CONNECT_WITH_DB: u32 = 1 << 3;
    /// TLS is asked for.
    pub const SSL: u32 = 1 << 11;
    /// The login names its method.
    pub const PLUGIN_AUTH: u32 = 1 << 19;
    /// The login tells of the client.
    pub const CONNECT_ATTRS: u32 = 1 << 20;
    /// Results end with OK in place of EOF.
    pub const DEPRECATE_EOF: u32 = 1 << 24;
    /// The login tells a level of compression.
    pub const ZSTD: u32 = 1 << 26;
    /// Queries carry attributes.
    pub const QUERY_ATTRIBUTES: u32 = 1 << 27;
}

/// How long the packet is that begins here; how much is needed to tell it.
pub fn length(d: &[u8]) -> usize {
    match d {
        [a, b, c, _, ..] => HEADER + u32::from_le_bytes([*a, *b, *c, 0]) as usize,
        _ => HEADER,
    }
}

/// A number of one, three, four or nine bytes (Length-Encoded Integer).
pub fn number(b: &mut Bytes<'_>) -> Option<u64> {
    let first = b.u8()?;
    number_after(first, b)
}

/// The same when its first byte was read.
pub fn number_after(first: u8, b: &mut Bytes<'_>) -> Option<u64> {
    Some(match first {
        0xfb | 0xff => 0,
        0xfc => u64::from(b.u16_le()?),
        0xfd => {
            let [x, y, z] = b.array()?;
            u64::from(u32::from_le_bytes([x, y, z, 0]))
        }
        0xfe => u64::from_le_bytes(b.array()?),
        n => u64::from(n),
    })
}

/// A length and as many bytes (Length-Encoded String).
pub fn string<'a>(b: &mut Bytes<'a>) -> Option<&'a [u8]> {
    let first = b.u8()?;
    string_after(first, b)
}

fn string_after<'a>(first: u8, b: &mut Bytes<'a>) -> Option<&'a [u8]> {
    let n = number_after(first, b)?;
    b.take(usize::try_from(n).ok()?)
}

/// Text up to a zero, which is taken off.
pub fn text<'a>(b: &mut Bytes<'a>) -> Option<&'a [u8]> {
    let n = memchr::memchr(0, b.0)?;
    let text = b.take(n)?;
    b.u8()?;
    Some(text)
}

/// The server's greeting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Greeting<'a> {
    /// Version 9 or 10.
    Version {
        /// The version.
        version: u8,
        /// The server's own version, in words.
        server: &'a [u8],
        /// Whether queries may carry attributes.
        query_attributes: bool,
    },
    /// No greeting: an error.
    Error(&'a [u8]),
}

impl<'a> Greeting<'a> {
    /// Parses a packet after its header.
    pub fn parse(data: &'a [u8]) -> Option<Self> {
        let mut b = Bytes(data);
        let version = b.u8()?;
        match version {
            10 => {
                let server = text(&mut b)?;
                b.take(4 + 8 + 1 + 2 + 1 + 2)?; // connection, part of the scramble, flags
                let high = u32::from(b.u16_le()?) << 16;
                let scramble = usize::from(b.u8()?);
                if scramble != 0 && scramble < 21 {
                    return None;
                }
                b.take(10)?;
                b.take(if scramble > 21 { scramble - 8 } else { 13 })?;
                if high & capability::PLUGIN_AUTH != 0 {
                    text(&mut b)?;
                }
                let query_attributes = high & capability::QUERY_ATTRIBUTES != 0;
                Some(Self::Version { version, server, query_attributes })
            }
            9 => {
                let server = text(&mut b)?;
                b.take(4)?;
                text(&mut b)?;
                Some(Self::Version { version, server, query_attributes: false })
            }
            _ => error(&mut b).map(Self::Error),
        }
    }
}

/// A client's login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Login<'a> {
    /// What the client can do.
    pub capabilities: u32,
    /// Who logs in. `None` when TLS is asked for first.
    pub user: Option<&'a [u8]>,
}

impl<'a> Login<'a> {
    /// Parses a packet after its header, given the server's version.
    pub fn parse(data: &'a [u8], version: u8) -> Option<Self> {
        let mut b = Bytes(data);
        match version {
            10 => {
                let capabilities = b.u32_le()?;
                b.take(4 + 1 + 23)?;
                if capabilities & capability::SSL != 0 {
                    return Some(Self { capabilities, user: None });
                }
                let user = text(&mut b)?;
                string(&mut b)?;
                if capabilities & capability::CONNECT_WITH_DB != 0 {
                    text(&mut b)?;
                }
                if capabilities & capability::PLUGIN_AUTH != 0 {
                    // May be left out, zero and all.
                    text(&mut b);
                }
                if capabilities & capability::CONNECT_ATTRS != 0 {
                    attributes(&mut b)?;
                }
                if capabilities & capability::ZSTD != 0 {
                    b.u8()?;
                }
                Some(Self { capabilities, user: Some(user) })
            }
            9 => {
                let capabilities = u32::from(b.u16_le()?);
                b.take(3)?;
                let user = text(&mut b)?;
                text(&mut b)?;
                if capabilities & capability::CONNECT_WITH_DB != 0 {
                    text(&mut b)?;
                }
                Some(Self { capabilities: 0, user: Some(user) })
            }
            _ => None,
        }
    }
}

/// What a client tells of itself: names and values.
fn attributes(b: &mut Bytes<'_>) -> Option<()> {
    let n = usize::from(b.u8()?);
    let mut list = Bytes(b.take(n)?);
    while !list.is_empty() {
        string(&mut list)?;
        string(&mut list)?;
    }
    Some(())
}

/// A command to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command<'a> {
    /// Which.
    pub code: u8,
    /// What it is told; for a change of user who that is.
    pub arg: &'a [u8],
}

/// `COM_QUERY`.
pub const QUERY: u8 = 3;
/// `COM_CHANGE_USER`.
pub const CHANGE_USER: u8 = 0x11;

impl<'a> Command<'a> {
    /// Parses a packet after its header, given whether queries carry attributes, and what the
    /// client can do.
    pub fn parse(data: &'a [u8], query_attributes: bool, capabilities: u32) -> Option<Self> {
        let mut b = Bytes(data);
        let code = b.u8()?;
        if code == QUERY && query_attributes {
            skip_query_attributes(&mut b)?;
        }
        if code == CHANGE_USER {
            let user = text(&mut b)?;
            let n = usize::from(b.u8()?);
            b.take(n)?;
            text(&mut b)?;
            b.take(2)?;
            if capabilities & capability::PLUGIN_AUTH != 0 {
                text(&mut b)?;
            }
            if capabilities & capability::CONNECT_ATTRS != 0 {
                attributes(&mut b)?;
            }
            return Some(Self { code, arg: user });
        }
        Some(Self { code, arg: b.rest() })
    }
}

fn skip_query_attributes(b: &mut Bytes<'_>) -> Option<()> {
    let count = usize::try_from(number(b)?).ok()?;
    number(b)?;
    if count == 0 {
        return Some(());
    }
    let nulls = b.take(count.div_ceil(8))?;
    if b.u8()? != 1 {
        return None;
    }
    let mut types = Vec::new();
    for _ in 0..count {
        // Each takes three bytes at least, so this ends with the packet.
        types.push(b.u8()?);
        b.u8()?;
        string(b)?;
    }
    for (i, ty) in types.iter().enumerate() {
        if nulls.get(i / 8).is_some_and(|n| n >> (i % 8) & 1 != 0) {
            continue;
        }
        skip_value(*ty, b)?;
    }
    Some(())
}

/// A value in binary form (Binary Protocol Value).
fn skip_value(ty: u8, b: &mut Bytes<'_>) -> Option<()> {
    match ty {
        0x00 => {
            number(b)?;
        }
        0x01 => {
            b.take(1)?;
        }
        0x02 | 0x0d => {
            b.take(2)?;
        }
        0x03 | 0x04 | 0x09 => {
            b.take(4)?;
        }
        0x05 | 0x08 => {
            b.take(8)?;
        }
        0x06 => {}
        0x07 | 0x0a | 0x0c | 0x11 => {
            let n = b.u8().filter(|n| matches!(n, 0 | 4 | 7 | 11))?;
            b.take(usize::from(n))?;
        }
        0x0b => {
            let n = b.u8().filter(|n| matches!(n, 0 | 8 | 12))?;
            // The sign comes first.
            let time = b.take(usize::from(n))?;
            if time.first().is_some_and(|sign| *sign > 1) {
                return None;
            }
        }
        0x0f | 0x10 | 0xf5..=0xff => {
            string(b)?;
        }
        _ => return None,
    }
    Some(())
}

/// The count of rows in an OK packet, after its first byte. It counts as 32 bits.
pub fn ok(b: &mut Bytes<'_>) -> Option<u64> {
    number(b).map(|n| u64::from(n as u32))
}

/// The text of an error packet, after its first byte.
pub fn error<'a>(b: &mut Bytes<'a>) -> Option<&'a [u8]> {
    b.take(2 + 6)?;
    Some(b.rest())
}

/// An end of results, after its first byte.
pub fn end(b: &mut Bytes<'_>) -> Option<()> {
    b.take(4).map(|_| ())
}

/// The description of a column whose first byte was read.
pub fn column(first: u8, b: &mut Bytes<'_>) -> Option<()> {
    string_after(first, b)?;
    for _ in 0..5 {
        string(b)?;
    }
    number(b)?;
    b.take(10).map(|_| ())
}

/// A row of results of so many columns, whose first byte was read.
pub fn row(first: u8, columns: u32, b: &mut Bytes<'_>) -> Option<()> {
    string_after(first, b)?;
    for _ in 1..columns {
        // Each takes a byte at least, so this ends with the packet.
        string(b)?;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_strings() {
        let n = |d| number(&mut Bytes(d));
        assert_eq!(n(b"\xfa"), Some(250));
        assert_eq!(n(b"\xfc\x01\x02"), Some(0x0201));
        assert_eq!(n(b"\xfd\x01\x02\x03"), Some(0x03_0201));
        assert_eq!(n(b"\xfe\x01\0\0\0\0\0\0\0"), Some(1));
        assert_eq!(n(b"\xfc\x01"), None);
        assert_eq!(string(&mut Bytes(b"\x02abc")), Some(&b"ab"[..]));
        assert_eq!(string(&mut Bytes(b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff")), None);
        assert_eq!(length(b"\x05\0\0\0"), 9);
    }

    #[test]
    fn greetings() {
        let mut g = b"\x0a8.0\0".to_vec();
        g.extend_from_slice(&[1; 18]);
        g.extend_from_slice(b"\x08\x08\x15"); // attributes and plugins, scramble of 21
        g.extend_from_slice(&[0; 23]);
        assert_eq!(Greeting::parse(&g), None, "plugin's name is missing");
        g.extend_from_slice(b"native\0");
        let v = Greeting::Version { version: 10, server: b"8.0", query_attributes: true };
        assert_eq!(Greeting::parse(&g), Some(v));
        let e = b"\xff\x69\x04#08004Too many";
        assert_eq!(Greeting::parse(e), Some(Greeting::Error(b"Too many")));
    }

    #[test]
    fn logins() {
        let mut l = vec![0x08, 0, 0x10, 0]; // database, attributes
        l.extend_from_slice(&[0; 28]);
        l.extend_from_slice(b"root\0\x01xdb\0\x04\x01a\x01b");
        let login = Login::parse(&l, 10).unwrap();
        assert_eq!(login.user, Some(&b"root"[..]));
        assert_eq!(Login::parse(&l[..l.len() - 1], 10), None);
        let mut tls = vec![0, 0x08, 0, 0];
        tls.extend_from_slice(&[0; 28]);
        assert_eq!(Login::parse(&tls, 10).unwrap().user, None);
        assert_eq!(Login::parse(&l, 8), None);
    }

    #[test]
    fn commands() {
        let c = Command::parse(b"\x03select 1", false, 0);
        assert_eq!(c, Some(Command { code: QUERY, arg: b"select 1" }));
        let with = b"\x03\x02\x01\x02\x01\x01\0\x01a\xfe\0\x01b\x07select 1";
        let c = Command::parse(with, true, 0);
        assert_eq!(c, Some(Command { code: QUERY, arg: b"select 1" }));
        let time = b"\x03\x01\x01\0\x01\x0b\0\x01t\x08\x01\0\0\0\0\x01\x02\x03select 1";
        let mut odd = time.to_vec();
        assert_eq!(Command::parse(time, true, 0).map(|c| c.arg), Some(&b"select 1"[..]));
        odd[10] = 2; // a sign that is none
        assert_eq!(Command::parse(&odd, true, 0), None);
        let c = Command::parse(b"\x11root\0\x01xdb\0\x21\0", false, 0);
        assert_eq!(c, Some(Command { code: CHANGE_USER, arg: b"root" }));
    }
}
