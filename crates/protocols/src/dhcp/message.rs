//! DHCP datagrams (RFC 2131 §2).

use gannet_base::Addr;

use crate::support::OutOfBound;
use crate::support::Record;

/// A datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Transaction id.
    pub xid: u32,
    /// The address the server hands out (`yiaddr`).
    pub assigned: Addr,
    /// The client's hardware address (`chaddr`), all sixteen bytes.
    pub hardware: &'a [u8; 16],
    /// The word before the options: [`COOKIE`], otherwise this is plain BOOTP.
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
    /// Vendor class of the sender (60).
    pub vendor_class: Option<&'a [u8]>,
    /// Client identifier (61): hardware type and address.
    pub client_id: Option<(u8, &'a [u8])>,
    /// Fully qualified name of the client (81).
    pub client_fqdn: Option<&'a [u8]>,
}

/// First bytes of the options (RFC 2131 §3).
pub const COOKIE: u32 = 0x6382_5363;

/// Bytes before the options, the cookie included.
const FIXED_LEN: usize = 240;

impl<'a> Message<'a> {
    /// Reads a datagram. `relayed` is how many bytes the relay options of this side's earlier
    /// messages had, modulo 256: Zeek takes the end of such an option by the sum over all.
    pub fn parse(data: &'a [u8], relayed: &mut u8) -> Result<Self, OutOfBound> {
        let Some((head, options)) = data.split_first_chunk::<FIXED_LEN>() else {
            return Err(short(data));
        };
        let word = |at: usize| [head[at], head[at + 1], head[at + 2], head[at + 3]];
        Ok(Self {
            xid: u32::from_be_bytes(word(4)),
            assigned: Addr::v4(word(16)),
            hardware: hardware(head),
            cookie: u32::from_be_bytes(word(236)),
            options: Options::parse(options, relayed)?,
        })
    }
}

/// The client's hardware address.
fn hardware(head: &[u8; FIXED_LEN]) -> &[u8; 16] {
    match head[28..].first_chunk() {
        Some(hardware) => hardware,
        None => &[0; 16],
    }
}

/// The missing bytes of a message that ends before its options.
fn short(data: &[u8]) -> OutOfBound {
    let fields = [("giaddr", 28), ("chaddr", 44), ("sname", 108), ("file_n", 236)];
    let missing = fields.iter().find(|(_, end)| data.len() < *end);
    let (field, end) = missing.copied().unwrap_or(("cookie", FIXED_LEN));
    OutOfBound::new("DHCP_Message", field, end as i64, data.len())
}

/// Takes the only field of a record off.
fn take<'a>(
    rest: &mut &'a [u8],
    (record, field): (&'static str, &'static str),
    n: usize,
) -> Result<&'a [u8], OutOfBound> {
    let mut r = Record::new(record, rest);
    let bytes = r.upto(field, n)?;
    *rest = r.rest();
    Ok(bytes)
}

/// Takes the address or number that is an option's value.
fn word(
    rest: &mut &[u8],
    record: &'static str,
    field: &'static str,
) -> Result<[u8; 4], OutOfBound> {
    let bytes = take(rest, (record, field), 4)?;
    Ok(bytes.first_chunk().copied().unwrap_or_default())
}

/// Takes a list of addresses or numbers off.
fn list(
    rest: &mut &[u8],
    (record, field): (&'static str, &'static str),
    n: usize,
    size: usize,
) -> Result<(), OutOfBound> {
    let mut r = Record::new(record, rest);
    r.list(field, n as u16, size)?;
    *rest = r.rest();
    Ok(())
}

/// The record that Zeek's parser has for an option whose value is text, and its field.
fn text(code: u8) -> (&'static str, &'static str) {
    match code {
        12 => ("HOST_NAME_OPTION", "host_name"),
        15 => ("DOMAIN_NAME_OPTION", "domain_name"),
        43 => ("VENDOR_SPECIFIC_OPTION", "vendor_specific"),
        56 => ("MESSAGE_OPTION", "message"),
        60 => ("VENDOR_CLASS_OPTION", "vendor_class"),
        77 => ("USER_CLASS_OPTION", "user_class"),
        252 => ("AUTO_PROXY_CONFIG_OPTION", "auto_proxy_config"),
        _ => ("OptionValue", "other"),
    }
}

impl<'a> Options<'a> {
    /// Reads options up to the one that ends them, or the end of the datagram. Where a type's size is fixed, it is that size
    /// that is read, whatever the option's length says, as in Zeek.
    fn parse(mut data: &'a [u8], relayed: &mut u8) -> Result<Self, OutOfBound> {
        let rest = &mut data;
        let mut options = Self::default();
        let mut kind = None;
        while let Some((&code, behind)) = rest.split_first() {
            *rest = behind;
            match code {
                0 => continue,
                255 => break,
                _ => {}
            }
            let len = usize::from(take(rest, ("OptionValueWrapper", "length"), 1)?[0]);
            match code {
                53 => {
                    let told = take(rest, ("OptionValue", "msg_type"), 1)?[0];
                    options.kind = *kind.get_or_insert(told);
                }
                12 => options.host_name = Some(take(rest, text(code), len)?),
                15 => options.domain_name = Some(unpadded(take(rest, text(code), len)?)),
                50 => {
                    let addr = word(rest, "ADDR_REQUEST_OPTION", "addr_request")?;
                    options.requested = Some(Addr::v4(addr));
                }
                51 => {
                    let seconds = word(rest, "LEASE_OPTION", "lease")?;
                    options.lease = Some(u32::from_be_bytes(seconds));
                }
                56 => options.message = Some(take(rest, text(code), len)?),
                60 => options.vendor_class = Some(take(rest, text(code), len)?),
                61 => options.client_id = Some(client_id(rest, len)?),
                81 => options.client_fqdn = Some(client_fqdn(rest, len)?),
                82 => relay_agent(rest, len, relayed)?,
                1 => drop(word(rest, "SUBNET_OPTION", "subnet")?),
                2 => drop(word(rest, "TIME_OFFSET_OPTION", "time_offset")?),
                28 => drop(word(rest, "BROADCAST_ADDRESS_OPTION", "broadcast_address")?),
                54 => drop(word(rest, "SERV_ID_OPTION", "serv_addr")?),
                58 => drop(word(rest, "RENEWAL_TIME_OPTION", "renewal_time")?),
                59 => drop(word(rest, "REBINDING_TIME_OPTION", "rebinding_time")?),
                3 => list(rest, ("ROUTER_OPTION", "router_list"), len / 4, 4)?,
                4 => list(rest, ("TIME_SERVER_OPTION", "timeserver_list"), len / 4, 4)?,
                5 => list(rest, ("NAME_SERVER_OPTION", "nameserver_list"), len / 4, 4)?,
                6 => list(rest, ("DNS_SERVER_OPTION", "dns_server_list"), len / 4, 4)?,
                42 => list(rest, ("NTP_SERVER_OPTION", "ntpserver_list"), len / 4, 4)?,
                44 => list(rest, ("NBNS_OPTION", "nbns"), len / 4, 4)?,
                55 => list(rest, ("PAR_REQ_LIST_OPTION", "par_req_list"), len, 1)?,
                19 => drop(take(rest, ("FORWARDING_OPTION", "forwarding"), 1)?),
                57 => drop(take(rest, ("MAX_MESSAGE_SIZE_OPTION", "max_msg_size"), 2)?),
                116 => drop(take(rest, ("AUTO_CONFIG_OPTION", "auto_config"), 1)?),
                _ => drop(take(rest, text(code), len)?),
            }
        }
        Ok(options)
    }
}

/// Type and address of the client's hardware.
fn client_id<'a>(rest: &mut &'a [u8], len: usize) -> Result<(u8, &'a [u8]), OutOfBound> {
    let mut r = Record::new("Client_Identifier", rest);
    let kind = r.upto("hwtype", 1)?[0];
    r.string("hwaddr", len as i64 - 1)?;
    let address = &rest[1..r.at];
    *rest = r.rest();
    Ok((kind, address))
}

/// The client's name, behind flags and two codes of responses.
fn client_fqdn<'a>(rest: &mut &'a [u8], len: usize) -> Result<&'a [u8], OutOfBound> {
    let mut r = Record::new("Client_FQDN", rest);
    r.upto("rcode2", 3)?;
    r.string("domain_name", len as i64 - 3)?;
    let name = &rest[3..r.at];
    *rest = r.rest();
    Ok(name)
}

/// Relay agent information (RFC 3046).
fn relay_agent(rest: &mut &[u8], len: usize, relayed: &mut u8) -> Result<(), OutOfBound> {
    while !rest.is_empty() {
        let mut r = Record::new("Relay_Agent_SubOption", rest);
        let sub = r.upto("length", 2)?[1];
        r.upto("value", usize::from(sub))?;
        *rest = r.rest();
        *relayed = relayed.wrapping_add(sub).wrapping_add(2);
        if usize::from(*relayed) == len {
            break;
        }
    }
    Ok(())
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

    fn options(bytes: &[u8]) -> Result<Options<'_>, OutOfBound> {
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
        assert!(Message::parse(&b[..b.len() - 1], &mut 0).is_ok());
        let short = OutOfBound::new("OptionValueWrapper", "length", 1, 0);
        assert_eq!(Message::parse(&b[..b.len() - 4], &mut 0), Err(short));
    }

    #[test]
    fn fixed_sizes_win_over_lengths() {
        // A type of "two bytes": the second is read as an option without a value.
        let o = options(b"\x35\x02\x05\x00\x33\x00\x00\x00\x0e\x10\xff").unwrap();
        assert_eq!((o.kind, o.lease), (5, Some(3600)));
    }

    #[test]
    fn the_first_type_counts() {
        for (bytes, kind) in [(b"\x35\x01\x02\x35\x01\x05", 2), (b"\x35\x01\0\x35\x01\x05", 0)] {
            assert_eq!(options(bytes).unwrap().kind, kind);
        }
    }

    #[test]
    fn lengths_that_lie() {
        let error = |d: &[u8]| crate::support::said(options(d).unwrap_err());
        let is = |d: &[u8], end: &str| {
            assert_eq!(error(d), format!("out_of_bound: {end}"));
        };
        is(b"\x3d\x00\x01\xff", "Client_Identifier:hwaddr: 0 > 2");
        is(b"\x51\x02\x01\x02\x03\xff", "Client_FQDN:domain_name: 2 > 4");
        is(b"\x51\x02\x01", "Client_FQDN:rcode2: 3 > 1");
        is(b"\x35", "OptionValueWrapper:length: 1 > 0");
        is(b"\x35\x01", "OptionValue:msg_type: 1 > 0");
        is(b"\x0c\x09host", "HOST_NAME_OPTION:host_name: 9 > 4");
        is(b"\x36\x04\x01\x02", "SERV_ID_OPTION:serv_addr: 4 > 2");
        is(b"\x03\x08\x01\x02\x03\x04\x05", "ROUTER_OPTION:router_list: 2 > 5");
        is(b"\x37\x03\x01\x02", "PAR_REQ_LIST_OPTION:par_req_list: 3 > 2");
        is(b"\x52\x06\x01\x09a", "Relay_Agent_SubOption:value: 11 > 3");
        is(b"\xd0\x03\x01\x02", "OptionValue:other: 3 > 2");
        for (len, end) in [
            (27, "giaddr: 28 > 27"),
            (28, "chaddr: 44 > 28"),
            (107, "sname: 108 > 107"),
            (235, "file_n: 236 > 235"),
            (239, "cookie: 240 > 239"),
        ] {
            let e = Message::parse(&vec![0; len], &mut 0).unwrap_err().to_string();
            assert!(e.ends_with(&format!("out_of_bound: DHCP_Message:{end}")), "{e}");
        }
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
        // The next option of the same side claims more bytes than available.
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
