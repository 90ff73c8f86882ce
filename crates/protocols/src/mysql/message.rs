//! Parts of packets. Integers are little-endian.

use crate::support::Bytes;
use crate::support::OutOfBound;
use crate::support::RecordBounds;
use crate::support::RecordFault;

type Result<T> = std::result::Result<T, RecordFault>;

/// Length of a packet's header, in bytes: payload length in three bytes, sequence number.
pub const HEADER: usize = 4;

/// Capability flags of client and server (Capabilities Flags).
pub mod capability {
    /// The handshake response names a database.
    pub const CONNECT_WITH_DB: u32 = 1 << 3;
    /// The client requests TLS.
    pub const SSL: u32 = 1 << 11;
    /// The handshake response names its authentication plugin.
    pub const PLUGIN_AUTH: u32 = 1 << 19;
    /// The handshake response contains connection attributes.
    pub const CONNECT_ATTRS: u32 = 1 << 20;
    /// Result sets end with OK instead of EOF.
    pub const DEPRECATE_EOF: u32 = 1 << 24;
    /// The handshake response contains a zstd compression level.
    pub const ZSTD: u32 = 1 << 26;
    /// Queries carry attributes.
    pub const QUERY_ATTRIBUTES: u32 = 1 << 27;
}

/// Length of the packet that `d` begins with, or the number of bytes needed to determine it.
pub fn length(d: &[u8]) -> usize {
    match d {
        [a, b, c, _, ..] => HEADER + u32::from_le_bytes([*a, *b, *c, 0]) as usize,
        _ => HEADER,
    }
}

/// Reads the only byte of a record's first field.
pub fn first(b: &mut Bytes<'_>, record: &'static str, field: &'static str) -> Result<u8> {
    Ok(RecordBounds::new(record, b).part(b, field, 1)?[0])
}

/// Reads an integer of one, three, four or nine bytes (Length-Encoded Integer).
pub fn number(b: &mut Bytes<'_>) -> Result<u64> {
    let first = first(b, "LengthEncodedInteger", "length")?;
    number_after(first, b)
}

/// Like [`number`], after its first byte was read.
pub fn number_after(first: u8, b: &mut Bytes<'_>) -> Result<u64> {
    let within = RecordBounds::new("LengthEncodedIntegerLookahead", b);
    let bytes = match first {
        0xfb | 0xff => return Ok(0),
        0xfc => within.part(b, "i2", 2)?,
        0xfd => RecordBounds::new("uint24le", b).part(b, "", 3)?,
        0xfe => within.part(b, "i4", 8)?,
        n => return Ok(u64::from(n)),
    };
    Ok(bytes.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b)))
}

/// Reads a length and as many bytes (Length-Encoded String).
pub fn string<'a>(b: &mut Bytes<'a>) -> Result<&'a [u8]> {
    let within = RecordBounds::new("LengthEncodedString", b);
    let n = number(b)?;
    Ok(within.part(b, "val", n)?)
}

fn string_after<'a>(first: u8, b: &mut Bytes<'a>) -> Result<&'a [u8]> {
    let within = RecordBounds::new("LengthEncodedStringArg", b);
    let n = number_after(first, b)?;
    Ok(within.part(b, "val", n)?)
}

/// Reads text up to a zero byte, which is consumed and not returned.
pub fn text<'a>(b: &mut Bytes<'a>) -> Result<&'a [u8]> {
    let n = memchr::memchr(0, b.0).ok_or(RecordFault::Syntax)?;
    let (text, rest) = b.0.split_at(n);
    b.0 = rest.get(1..).unwrap_or_default();
    Ok(text)
}

/// An authentication plugin: its name and its data.
pub type Plugin<'a, const PARTS: usize> = (&'a [u8], [&'a [u8]; PARTS]);

/// The server's greeting (initial handshake packet).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Greeting<'a> {
    /// Version 9 or 10.
    Version {
        /// The version.
        version: u8,
        /// The server's version string.
        server: &'a [u8],
        /// Whether queries may carry attributes.
        query_attributes: bool,
        /// Authentication plugin with both parts of its data, if named.
        plugin: Option<Plugin<'a, 2>>,
    },
    /// An error packet instead of a greeting.
    Error(Error<'a>),
}

impl<'a> Greeting<'a> {
    /// Parses a packet after its header.
    pub fn parse(data: &'a [u8]) -> Result<Self> {
        let mut b = Bytes(data);
        let b = &mut b;
        let version = first(b, "Initial_Handshake_Packet", "version")?;
        match version {
            10 => {
                let within = RecordBounds::new("Handshake_v10", b);
                let server = text(b)?;
                within.part(b, "connection_id", 4)?;
                let part_1 = within.part(b, "auth_plugin_data_part_1", 8)?;
                let flags = within.part(b, "reserved", 19)?;
                let high = u32::from(u16::from_le_bytes([flags[6], flags[7]])) << 16;
                let scramble = u64::from(flags[8]);
                if scramble != 0 && scramble < 21 {
                    return Err(RecordFault::Value("Handshake_v10:auth_plugin_data_len"));
                }
                let more = if scramble > 21 { scramble - 8 } else { 13 };
                let part_2 = within.part(b, "auth_plugin_data_part_2", more)?;
                let plugin = match high & capability::PLUGIN_AUTH {
                    0 => None,
                    _ => Some((text(b)?, [part_1, part_2])),
                };
                let query_attributes = high & capability::QUERY_ATTRIBUTES != 0;
                Ok(Self::Version { version, server, query_attributes, plugin })
            }
            9 => {
                let within = RecordBounds::new("Handshake_v9", b);
                let server = text(b)?;
                within.part(b, "connection_id", 4)?;
                text(b)?;
                Ok(Self::Version { version, server, query_attributes: false, plugin: None })
            }
            _ => error(b).map(Self::Error),
        }
    }
}

/// A client's login (handshake response packet).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Login<'a> {
    /// The client's capabilities.
    pub capabilities: u32,
    /// User name. `None` if TLS is requested first.
    pub user: Option<&'a [u8]>,
    /// Authentication plugin, whose name may be missing, if the client supports plugins.
    pub plugin: Option<Plugin<'a, 1>>,
}

impl<'a> Login<'a> {
    /// Parses a packet after its header, given the server's version.
    pub fn parse(data: &'a [u8], version: u8) -> Result<Self> {
        let mut b = Bytes(data);
        let b = &mut b;
        match version {
            10 => {
                let flags =
                    RecordBounds::new("Handshake_Response_Packet_v10", b).part(b, "pad", 32)?;
                let capabilities = flags.first_chunk().map_or(0, |f| u32::from_le_bytes(*f));
                if capabilities & capability::SSL != 0 {
                    return Ok(Self { capabilities, user: None, plugin: None });
                }
                let within = RecordBounds::new("Handshake_Plain_v10", b);
                let user = text(b)?;
                let password = string(b)?;
                if capabilities & capability::CONNECT_WITH_DB != 0 {
                    text(b)?;
                }
                let mut plugin = None;
                if capabilities & capability::PLUGIN_AUTH != 0 {
                    // The name may be missing, including its zero byte.
                    plugin = Some((text(b).unwrap_or_default(), [password]));
                }
                if capabilities & capability::CONNECT_ATTRS != 0 {
                    attributes(b)?;
                }
                if capabilities & capability::ZSTD != 0 {
                    within.part(b, "zstd_compression_level", 1)?;
                }
                Ok(Self { capabilities, user: Some(user), plugin })
            }
            9 => {
                let within = RecordBounds::new("Handshake_Response_Packet_v9", b);
                let flags = within.part(b, "max_pkt_size", 5)?;
                let user = text(b)?;
                text(b)?;
                if u32::from(flags[0]) & capability::CONNECT_WITH_DB != 0 {
                    text(b)?;
                }
                Ok(Self { capabilities: 0, user: Some(user), plugin: None })
            }
            index => {
                Err(RecordFault::Case { record: "Handshake_Response_Packet", index: index.into() })
            }
        }
    }
}

/// Skips the connection attributes of a client: names and values.
fn attributes(b: &mut Bytes<'_>) -> Result<()> {
    const RECORD: &str = "Handshake_Connection_Attributes";
    let have = b.0.len();
    let n = usize::from(first(b, RECORD, "length")?);
    let short = || OutOfBound::new(RECORD, "", n as i64 + 1, have);
    let mut list = Bytes(b.take(n).ok_or_else(short)?);
    while !list.is_empty() {
        string(&mut list)?;
        string(&mut list)?;
    }
    Ok(())
}

/// A command to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command<'a> {
    /// Command code.
    pub code: u8,
    /// The argument; for COM_CHANGE_USER, the user name.
    pub arg: &'a [u8],
    /// Authentication plugin of COM_CHANGE_USER.
    pub plugin: Option<Plugin<'a, 1>>,
}

/// Code of `COM_QUERY`.
pub const QUERY: u8 = 3;
/// Code of `COM_CHANGE_USER`.
pub const CHANGE_USER: u8 = 0x11;

impl<'a> Command<'a> {
    /// Parses a packet after its header, given whether queries have attributes, and the client's
    /// capabilities.
    pub fn parse(data: &'a [u8], query_attributes: bool, capabilities: u32) -> Result<Self> {
        let mut b = Bytes(data);
        let b = &mut b;
        let code = first(b, "Command_Request_Packet", "command")?;
        if code == QUERY && query_attributes {
            skip_query_attributes(b)?;
        }
        if code == CHANGE_USER {
            let within = RecordBounds::new("Change_User_Packet", b);
            let user = text(b)?;
            let n = within.part(b, "auth_plugin_data_len", 1)?[0];
            let data = within.part(b, "auth_plugin_data", n.into())?;
            text(b)?;
            within.part(b, "charset", 2)?;
            let mut name: &[u8] = &[];
            if capabilities & capability::PLUGIN_AUTH != 0 {
                name = text(b)?;
            }
            if capabilities & capability::CONNECT_ATTRS != 0 {
                attributes(b)?;
            }
            return Ok(Self { code, arg: user, plugin: Some((name, [data])) });
        }
        Ok(Self { code, arg: b.rest(), plugin: None })
    }
}

fn skip_query_attributes(b: &mut Bytes<'_>) -> Result<()> {
    // Zeek reads it as a signed 32-bit integer.
    let count = number(b)? as i32;
    number(b)?;
    let Ok(count @ 1..) = u32::try_from(count) else { return Ok(()) };
    let within = RecordBounds::new("Attributes", b);
    let nulls = within.part(b, "null_bitmap", u64::from(count).div_ceil(8))?;
    if within.part(b, "send_types_to_server", 1)?[0] != 1 {
        return Err(RecordFault::Value("Attributes:send_types_to_server"));
    }
    if count as usize > b.0.len() {
        return Err(OutOfBound::new("Attributes", "names", count.into(), b.0.len()).into());
    }
    let mut types = Vec::new();
    for _ in 0..count {
        // Each type takes at least three bytes, so the loop ends with the packet.
        types.push(RecordBounds::new("AttributeTypeAndName", b).part(b, "unsigned_flag", 2)?[0]);
        string(b)?;
    }
    for (i, ty) in types.iter().enumerate() {
        // Missing values are not an error.
        if b.is_empty() {
            break;
        }
        if nulls.get(i / 8).is_some_and(|n| n >> (i % 8) & 1 != 0) {
            continue;
        }
        skip_value(*ty, b)?;
    }
    Ok(())
}

/// Skips a value in binary form (Binary Protocol Value).
fn skip_value(ty: u8, b: &mut Bytes<'_>) -> Result<()> {
    let (field, size) = match ty {
        0x00 => return number(b).map(drop),
        0x01 => ("tiny_val", 1),
        0x02 => ("short_val", 2),
        0x03 => ("long_val", 4),
        0x04 => ("float_val", 4),
        0x05 => ("double_val", 8),
        0x06 => return Ok(()),
        0x07 | 0x0a | 0x0c | 0x11 => return skip_date(b),
        0x08 => ("longlong_val", 8),
        0x09 => ("int24_val", 4),
        0x0b => return skip_time(b),
        0x0d => ("year_val", 2),
        0x0f | 0x10 | 0xf5..=0xff => return string(b).map(drop),
        index => return Err(RecordFault::Case { record: "BinaryValue", index: index.into() }),
    };
    RecordBounds::new("BinaryValue", b).part(b, field, size)?;
    Ok(())
}

fn skip_date(b: &mut Bytes<'_>) -> Result<()> {
    let within = RecordBounds::new("BinaryDate", b);
    let n = within.part(b, "len", 1)?[0];
    if !matches!(n, 0 | 4 | 7 | 11) {
        return Err(RecordFault::Value("BinaryDate:len"));
    }
    if n > 0 {
        RecordBounds::new("Date", b).part(b, "", 4)?;
    }
    if n > 4 {
        RecordBounds::new("Time", b).part(b, "", 3)?;
    }
    if n > 7 {
        within.part(b, "micros", 4)?;
    }
    Ok(())
}

fn skip_time(b: &mut Bytes<'_>) -> Result<()> {
    let within = RecordBounds::new("BinaryTime", b);
    let n = within.part(b, "len", 1)?[0];
    if !matches!(n, 0 | 8 | 12) {
        return Err(RecordFault::Value("BinaryTime:len"));
    }
    if n > 0 {
        // The sign is the first byte.
        let time = RecordBounds::new("DurationTime", b).part(b, "", 8)?;
        if time[0] > 1 {
            return Err(RecordFault::Value("DurationTime:is_negative"));
        }
    }
    if n > 8 {
        within.part(b, "micros", 4)?;
    }
    Ok(())
}

/// The number of affected rows in an OK packet, after its first byte, truncated to 32 bits.
pub fn ok(b: &mut Bytes<'_>) -> Result<u64> {
    number(b).map(|n| u64::from(n as u32))
}

/// Contents of an error packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error<'a> {
    /// Error code.
    pub code: u16,
    /// Error message.
    pub message: &'a [u8],
}

/// Parses an error packet, after its first byte.
pub fn error<'a>(b: &mut Bytes<'a>) -> Result<Error<'a>> {
    let within = RecordBounds::new("ERR_Packet", b);
    let code = within.part(b, "code", 2)?;
    let code = u16::from_le_bytes([code[0], code[1]]);
    within.part(b, "state", 6)?;
    Ok(Error { code, message: b.rest() })
}

/// Skips an EOF packet, after its first byte.
pub fn end(b: &mut Bytes<'_>) -> Result<()> {
    RecordBounds::new("EOF_Packet", b).part(b, "", 4)?;
    Ok(())
}

/// Skips the EOF packet after column definitions.
pub fn end_of_columns(b: &mut Bytes<'_>) -> Result<()> {
    RecordBounds::new("EOF_Packet_With_Marker", b).part(b, "", 5)?;
    Ok(())
}

/// Skips a column definition whose first byte was read.
pub fn column(first: u8, b: &mut Bytes<'_>) -> Result<()> {
    let within = RecordBounds::new("ColumnDefinition41", b);
    string_after(first, b)?;
    for _ in 0..5 {
        string(b)?;
    }
    number(b)?;
    within.part(b, "filler", 12)?;
    Ok(())
}

/// Parses a result row with this many columns, whose first byte was read, and passes its fields to
/// `on_field`.
pub fn row<'a>(
    first: u8,
    columns: u32,
    b: &mut Bytes<'a>,
    mut on_field: impl FnMut(&'a [u8]),
) -> Result<()> {
    let whole = b.0.len();
    on_field(string_after(first, b)?);
    let short = |n, have| OutOfBound::new("ResultsetRow", "fields", n, have);
    let others = i64::from(columns.wrapping_sub(1) as i32);
    if others < 0 {
        return Err(short(others, whole).into());
    }
    if others > b.0.len() as i64 {
        return Err(short(others, b.0.len()).into());
    }
    for _ in 0..others {
        on_field(string(b)?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text of the error for invalid bytes.
    fn error_text<T>(r: Result<T>) -> String {
        let e = r.err().map(|e| e.to_string()).unwrap_or_default();
        e.strip_prefix(crate::support::BINPAC).unwrap_or_default().to_owned()
    }

    #[test]
    fn what_is_wrong() {
        let greeting = |d| error_text(Greeting::parse(d));
        assert_eq!(greeting(b""), "out_of_bound: Initial_Handshake_Packet:version: 1 > 0");
        assert_eq!(greeting(b"\x0a8.0"), "string mismatch at -");
        assert_eq!(
            greeting(b"\x0a8.0\0abcdef"),
            "out_of_bound: Handshake_v10:auth_plugin_data_part_1: 16 > 10"
        );
        assert_eq!(greeting(b"\xff\x69\x04#08"), "out_of_bound: ERR_Packet:state: 8 > 5");
        assert_eq!(
            error_text(Login::parse(&[0; 31], 10)),
            "out_of_bound: Handshake_Response_Packet_v10:pad: 32 > 31"
        );
        assert_eq!(
            error_text(Login::parse(b"", 0)),
            "invalid index for case: Handshake_Response_Packet: 0"
        );
        let row = |columns| error_text(row(1, columns, &mut Bytes(b"a\x01b"), |_| ()));
        assert_eq!(row(2), "");
        assert_eq!(row(4), "out_of_bound: ResultsetRow:fields: 3 > 2");
        assert_eq!(row(3), "out_of_bound: LengthEncodedInteger:length: 1 > 0");
        assert_eq!(row(0), "out_of_bound: ResultsetRow:fields: -1 > 3");
        let column = b"ef\x01s\x01t\x01t\x01c\x01c\x0c\x3f\0\x04\0\0\0\x03\0\0\0\0";
        let short = error_text(super::column(2, &mut Bytes(column)));
        assert_eq!(short, "out_of_bound: ColumnDefinition41:filler: 25 > 24");
        assert_eq!(
            error_text(end_of_columns(&mut Bytes(b"\xfe"))),
            "out_of_bound: EOF_Packet_With_Marker: 5 > 1"
        );
    }

    #[test]
    fn numbers_and_strings() {
        let n = |d| number(&mut Bytes(d));
        assert_eq!(n(b"\xfa"), Ok(250));
        assert_eq!(n(b"\xfc\x01\x02"), Ok(0x0201));
        assert_eq!(n(b"\xfd\x01\x02\x03"), Ok(0x03_0201));
        assert_eq!(n(b"\xfe\x01\0\0\0\0\0\0\0"), Ok(1));
        assert_eq!(
            error_text(n(b"\xfc\x01")),
            "out_of_bound: LengthEncodedIntegerLookahead:i2: 2 > 1"
        );
        assert_eq!(error_text(n(b"\xfd\x01")), "out_of_bound: uint24le: 3 > 1");
        assert_eq!(string(&mut Bytes(b"\x02abc")), Ok(&b"ab"[..]));
        let long = string(&mut Bytes(b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff"));
        assert_eq!(error_text(long), "out_of_bound: LengthEncodedString:val: 8 > 9");
        assert_eq!(length(b"\x05\0\0\0"), 9);
    }

    #[test]
    fn greetings() {
        let mut g = b"\x0a8.0\0".to_vec();
        g.extend_from_slice(&[1; 18]);
        g.extend_from_slice(b"\x08\x08\x15"); // attributes and plugins, scramble of 21
        g.extend_from_slice(&[0; 23]);
        assert_eq!(Greeting::parse(&g), Err(RecordFault::Syntax), "plugin's name is missing");
        g.extend_from_slice(b"native\0");
        let v = Greeting::Version {
            version: 10,
            server: b"8.0",
            query_attributes: true,
            plugin: Some((b"native", [&[1; 8], &[0; 13]])),
        };
        assert_eq!(Greeting::parse(&g), Ok(v));
        let e = b"\xff\x69\x04#08004Too many";
        let error = Error { code: 1129, message: b"Too many" };
        assert_eq!(Greeting::parse(e), Ok(Greeting::Error(error)));
    }

    #[test]
    fn logins() {
        let mut l = vec![0x08, 0, 0x10, 0]; // database, attributes
        l.extend_from_slice(&[0; 28]);
        l.extend_from_slice(b"root\0\x01xdb\0\x04\x01a\x01b");
        let login = Login::parse(&l, 10).unwrap();
        assert_eq!(login.user, Some(&b"root"[..]));
        let cut = error_text(Login::parse(&l[..l.len() - 1], 10));
        assert_eq!(cut, "out_of_bound: Handshake_Connection_Attributes: 5 > 4");
        let mut tls = vec![0, 0x08, 0, 0];
        tls.extend_from_slice(&[0; 28]);
        assert_eq!(Login::parse(&tls, 10).unwrap().user, None);
        assert!(Login::parse(&l, 8).is_err());
    }

    #[test]
    fn commands() {
        let c = Command::parse(b"\x03select 1", false, 0);
        assert_eq!(c, Ok(Command { code: QUERY, arg: b"select 1", plugin: None }));
        let with = b"\x03\x02\x01\x02\x01\x01\0\x01a\xfe\0\x01b\x07select 1";
        let c = Command::parse(with, true, 0);
        assert_eq!(c, Ok(Command { code: QUERY, arg: b"select 1", plugin: None }));
        let time = b"\x03\x01\x01\0\x01\x0b\0\x01t\x08\x01\0\0\0\0\x01\x02\x03select 1";
        let mut odd = time.to_vec();
        assert_eq!(Command::parse(time, true, 0).map(|c| c.arg), Ok(&b"select 1"[..]));
        odd[10] = 2; // An invalid sign.
        let sign = error_text(Command::parse(&odd, true, 0));
        assert_eq!(sign, "&enforce violation : DurationTime:is_negative");
        // The attribute values and the query are missing.
        let c = Command::parse(&with[..13], true, 0);
        assert_eq!(c, Ok(Command { code: QUERY, arg: b"", plugin: None }));
        let c = Command::parse(b"\x11root\0\x01xdb\0\x21\0", false, 0);
        let plugin = Some((&b""[..], [&b"x"[..]]));
        assert_eq!(c, Ok(Command { code: CHANGE_USER, arg: b"root", plugin }));
    }
}
