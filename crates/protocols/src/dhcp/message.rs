//! DHCP datagrams (RFC 2131 §2).

use gannet_base::Addr;

/// A datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Transaction id.
    pub xid: u32,
    /// The address the server hands out (`yiaddr`).
    pub assigned: Addr,
    /// The client's hardware address (`chaddr`), all sixteen bytes.
    pub hardware: &'a [u8; 16],
    /// What stands before the options: [`COOKIE`], or this is plain BOOTP.
    pub cookie: u32,
    /// The options.
    pub options: Options<'a>,
}

/// The options that are used; of several of a kind the last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options<'a> {
    /// Type of the message (53), of the first such option.
    pub kind: u8,
    /// Name of the client's host (12).
    pub host_name: Option<&'a [u8]>,
    /// The client's domain (15).
    pub domain_name: Option<&'a [u8]>,
    /// The address asked for (50).
    pub requested: Option<Addr>,
    /// Seconds the address is lent for (51).
    pub lease: Option<u32>,
    /// Why something was refused (56).
    pub message: Option<&'a [u8]>,
    /// What the sender is (60).
    pub vendor_class: Option<&'a [u8]>,
    /// Client identifier (61): hardware type and address.
    pub client_id: Option<(u8, &'a [u8])>,
    /// Fully qualified name of the client (81).
    pub client_fqdn: Option<&'a [u8]>,
}

/// First bytes of the options (RFC 2131 §3).
pub const COOKIE: u32 = 0x6382_5363;

/// Why bytes are no DHCP message; a text for analyzer.log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The datagram ends within the part named.
    Short(&'static str),
    /// An option is shorter than its fixed part.
    Length(&'static str),
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (kind, part) = match self {
            Self::Short(part) => ("out_of_bound", part),
            Self::Length(part) => ("invalid string length", part),
        };
        write!(f, "Binpac exception: binpac exception: {kind}: {part}")
    }
}

/// Bytes before the options, the cookie included.
const FIXED_LEN: usize = 240;

impl<'a> Message<'a> {
    /// Reads a datagram. `relayed` is how many bytes the relay options of this side's earlier
    /// messages had, modulo 256: Zeek takes the end of such an option by the sum over all.
    pub fn parse(data: &'a [u8], relayed: &mut u8) -> Result<Self, Error> {
        let (head, options) =
            data.split_first_chunk::<FIXED_LEN>().ok_or(Error::Short("DHCP_Message"))?;
        let word = |at: usize| [head[at], head[at + 1], head[at + 2], head[at + 3]];
        let (_, hardware) = head.split_at(28);
        Ok(Self {
            xid: u32::from_be_bytes(word(4)),
            assigned: Addr::v4(word(16)),
            hardware: hardware.first_chunk().ok_or(Error::Short("DHCP_Message:chaddr"))?,
            cookie: u32::from_be_bytes(word(236)),
            options: Options::parse(options, relayed)?,
        })
    }
}

/// The rest of an option list.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn u8(&mut self, part: &'static str) -> Result<u8, Error> {
        Ok(self.bytes(1, part)?[0])
    }

    fn u32(&mut self, part: &'static str) -> Result<[u8; 4], Error> {
        let (word, rest) = self.0.split_first_chunk().ok_or(Error::Short(part))?;
        self.0 = rest;
        Ok(*word)
    }

    fn bytes(&mut self, n: usize, part: &'static str) -> Result<&'a [u8], Error> {
        let (bytes, rest) = self.0.split_at_checked(n).ok_or(Error::Short(part))?;
        self.0 = rest;
        Ok(bytes)
    }
}

impl<'a> Options<'a> {
    /// Reads options up to the one that ends them, or the end of the datagram. Where a type's size is fixed, it is that size
    /// that is read, whatever the option's length says, as in Zeek.
    fn parse(data: &'a [u8], relayed: &mut u8) -> Result<Self, Error> {
        const VALUE: &str = "OptionValue";
        let mut rest = Reader(data);
        let mut options = Self::default();
        while !rest.0.is_empty() {
            let code = rest.u8("Option:code")?;
            match code {
                0 => continue,
                255 => break,
                _ => {}
            }
            let len = usize::from(rest.u8("OptionValueWrapper:length")?);
            match code {
                53 => {
                    let kind = rest.u8(VALUE)?;
                    if options.kind == 0 {
                        options.kind = kind;
                    }
                }
                12 => options.host_name = Some(rest.bytes(len, VALUE)?),
                15 => options.domain_name = Some(unpadded(rest.bytes(len, VALUE)?)),
                50 => options.requested = Some(Addr::v4(rest.u32(VALUE)?)),
                51 => options.lease = Some(u32::from_be_bytes(rest.u32(VALUE)?)),
                56 => options.message = Some(rest.bytes(len, VALUE)?),
                60 => options.vendor_class = Some(rest.bytes(len, VALUE)?),
                61 => {
                    let kind = rest.u8("Client_Identifier:hwtype")?;
                    let len = len.checked_sub(1).ok_or(Error::Length("Client_Identifier"))?;
                    options.client_id = Some((kind, rest.bytes(len, "Client_Identifier:hwaddr")?));
                }
                81 => {
                    rest.bytes(3, "Client_FQDN")?; // flags, two response codes
                    let len = len.checked_sub(3).ok_or(Error::Length("Client_FQDN"))?;
                    options.client_fqdn = Some(rest.bytes(len, "Client_FQDN:domain_name")?);
                }
                // Relay agent information (RFC 3046).
                82 => {
                    while !rest.0.is_empty() {
                        rest.u8("Relay_Agent_SubOption:code")?;
                        let sub = rest.u8("Relay_Agent_SubOption:length")?;
                        rest.bytes(usize::from(sub), "Relay_Agent_SubOption:value")?;
                        *relayed = relayed.wrapping_add(sub).wrapping_add(2);
                        if usize::from(*relayed) == len {
                            break;
                        }
                    }
                }
                // Addresses: mask, broadcast, server; times: offset, renewal, rebinding.
                1 | 2 | 28 | 54 | 58 | 59 => {
                    rest.u32(VALUE)?;
                }
                // Lists of addresses: routers, servers.
                3..=6 | 42 | 44 => {
                    rest.bytes(len / 4 * 4, VALUE)?;
                }
                // Forwarding, autoconfiguration.
                19 | 116 => {
                    rest.u8(VALUE)?;
                }
                // Maximum message size.
                57 => {
                    rest.bytes(2, VALUE)?;
                }
                _ => {
                    rest.bytes(len, VALUE)?;
                }
            }
        }
        Ok(options)
    }
}

/// A name without trailing zeros. One byte alone counts as padding too, as in Zeek.
fn unpadded(name: &[u8]) -> &[u8] {
    match name.iter().rposition(|b| *b != 0) {
        None | Some(0) => b"",
        Some(last) => &name[..=last],
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A message with some options and their end.
    pub(in super::super) fn message(xid: u32, assigned: [u8; 4], options: &[u8]) -> Vec<u8> {
        let mut b = vec![0; 236];
        b[..4].copy_from_slice(&[1, 1, 6, 0]);
        b[4..8].copy_from_slice(&xid.to_be_bytes());
        b[16..20].copy_from_slice(&assigned);
        b[28..34].copy_from_slice(&[2, 0, 0x5e, 0x10, 0, 1]);
        b.extend_from_slice(&COOKIE.to_be_bytes());
        b.extend_from_slice(options);
        b.push(255);
        b
    }

    fn options(bytes: &[u8]) -> Result<Options<'_>, Error> {
        Options::parse(bytes, &mut 0)
    }

    #[test]
    fn a_request() {
        let b = message(
            7,
            [0; 4],
            b"\x35\x01\x03\x3d\x07\x01\x02\x00\x5e\x10\x00\x01\x32\x04\xc0\x00\x02\x05\x0c\x04host\
              \x51\x07\x00\x00\x00full\x00\x00\x37\x02\x01\x03",
        );
        let m = Message::parse(&b, &mut 0).unwrap();
        assert_eq!((m.xid, m.cookie, m.assigned), (7, COOKIE, Addr::v4([0; 4])));
        assert_eq!(m.hardware[..6], [2, 0, 0x5e, 0x10, 0, 1]);
        let o = m.options;
        assert_eq!(
            (o.kind, o.host_name, o.client_fqdn),
            (3, Some(&b"host"[..]), Some(&b"full"[..]))
        );
        assert_eq!(o.requested, Some(Addr::v4([192, 0, 2, 5])));
        assert_eq!(o.client_id, Some((1, &[2, 0, 0x5e, 0x10, 0, 1][..])));
        assert_eq!(Message::parse(&b[..239], &mut 0), Err(Error::Short("DHCP_Message")));
        assert!(Message::parse(&b[..b.len() - 1], &mut 0).is_ok());
        let short = Error::Short("OptionValueWrapper:length");
        assert_eq!(Message::parse(&b[..b.len() - 4], &mut 0), Err(short));
    }

    #[test]
    fn fixed_sizes_win_over_lengths() {
        // A type of "two bytes": the second is read as an option without a value.
        let o = options(b"\x35\x02\x05\x00\x33\x00\x00\x00\x0e\x10\xff").unwrap();
        assert_eq!((o.kind, o.lease), (5, Some(3600)));
        assert_eq!(options(b"\x3d\x00\x01\xff"), Err(Error::Length("Client_Identifier")));
        assert_eq!(options(b"\x51\x02\x01\x02\x03\xff"), Err(Error::Length("Client_FQDN")));
    }

    #[test]
    fn domains_lose_their_padding() {
        assert_eq!(options(b"\x0f\x04ab\0\0\xff").unwrap().domain_name, Some(&b"ab"[..]));
        assert_eq!(options(b"\x0f\x01a\xff").unwrap().domain_name, Some(&b""[..]));
    }

    #[test]
    fn relay_options_are_summed() {
        let bytes = b"\x52\x06\x01\x01a\x02\x01b\xff";
        let mut sum = 0;
        assert!(Options::parse(bytes, &mut sum).is_ok());
        assert_eq!(sum, 6);
        // The next one of the same side is taken to be longer than it is.
        assert!(Options::parse(bytes, &mut sum).is_err());
    }

    proptest! {
        #[test]
        fn any_options_end(bytes: Vec<u8>) {
            let mut b = message(1, [0; 4], &bytes);
            b.pop();
            if let Ok(m) = Message::parse(&b, &mut 0) {
                prop_assert_eq!(m.xid, 1);
            }
        }
    }
}
