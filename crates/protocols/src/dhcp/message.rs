//! DHCP datagrams (RFC 2131 §2).

use gannet_base::Addr;
use gannet_base::Interval;
use gannet_event::Arg;
use gannet_event::Packer;
use gannet_event::Type;

use super::fields::Addrs;
use super::fields::Hardware;
use super::fields::Numbers;
use super::fields::Unpadded;
use super::fields::unpadded;
use crate::support::Bytes;
use crate::support::OutOfBound;
use crate::support::Record;

/// A datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// The fixed part, and the type of the message.
    pub msg: Msg<'a>,
    /// The word before the options: [`COOKIE`] for DHCP, any other for plain BOOTP.
    pub cookie: u32,
    /// The options; the last one counts if a code is repeated.
    pub options: Options<'a>,
}

/// Magic cookie before the options (RFC 2131 §3).
pub const COOKIE: u32 = 0x6382_5363;

/// Length of the fixed part including the cookie, in bytes.
const FIXED_LEN: usize = 240;

impl<'a> Message<'a> {
    /// Parses a datagram. `relay_bytes` is the size of the relay options in all earlier messages of this side in
    /// bytes, modulo 256: Zeek ends such an option when this sum, instead of the size of the option, reaches its length.
    pub fn parse(data: &'a [u8], relay_bytes: &mut u8) -> Result<Self, OutOfBound> {
        let Some((head, options)) = data.split_first_chunk::<FIXED_LEN>() else {
            return Err(too_short(data));
        };
        let word = |at: usize| [head[at], head[at + 1], head[at + 2], head[at + 3]];
        let half = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
        let (kind, options) = parse_options(options, relay_bytes, &mut |_| {})?;
        let msg = Msg {
            op: head[0].into(),
            m_type: kind.into(),
            xid: u32::from_be_bytes(word(4)),
            secs: Interval::from_secs(half(8).into()),
            flags: half(10),
            ciaddr: Addr::v4(word(12)),
            yiaddr: Addr::v4(word(16)),
            siaddr: Addr::v4(word(20)),
            giaddr: Addr::v4(word(24)),
            chaddr: Hardware { bytes: &head[28..44], is_text: false },
            sname: Unpadded(&head[44..108]),
            file_n: Unpadded(&head[108..236]),
        };
        Ok(Self { msg, cookie: u32::from_be_bytes(word(236)), options })
    }
}

gannet_event::record! {
    /// The fixed part of a message (RFC 2131 §2).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Msg<'a> = "DHCP::Msg" {
        /// 1 for a client's message, 2 for a server's.
        op: u64 = "op",
        /// Type of the message, from its first option 53.
        m_type: u64 = "m_type",
        /// Transaction ID.
        xid: u32 = "xid",
        /// Time since the client began to acquire or renew an address.
        secs: Interval = "secs",
        /// Flags.
        flags: u16 = "flags",
        /// The client's address.
        ciaddr: Addr = "ciaddr",
        /// The address that the server assigns.
        yiaddr: Addr = "yiaddr",
        /// The next server to use.
        siaddr: Addr = "siaddr",
        /// The relay agent.
        giaddr: Addr = "giaddr",
        /// The client's hardware address.
        chaddr: Hardware<'a> = "chaddr",
        /// Host name of the server.
        sname: Unpadded<'a> = "sname",
        /// Name of the boot file.
        file_n: Unpadded<'a> = "file_n",
    }
}

gannet_event::record! {
    /// Client identifier (option 61).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct ClientId<'a> = "DHCP::ClientID" {
        /// Type of the hardware.
        hwtype: u64 = "hwtype",
        /// Hardware address.
        hwaddr: Hardware<'a> = "hwaddr",
    }
}

gannet_event::record! {
    /// Fully qualified name of the client (option 81).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct ClientFqdn<'a> = "DHCP::ClientFQDN" {
        /// Flags.
        flags: u64 = "flags",
        /// Deprecated.
        rcode1: u64 = "rcode1",
        /// Deprecated.
        rcode2: u64 = "rcode2",
        /// The name.
        domain_name: &'a [u8] = "domain_name",
    }
}

gannet_event::record! {
    /// A suboption of a relay agent (option 82).
    pub struct SubOpt<'a> = "DHCP::SubOpt" {
        /// Option code.
        code: u64 = "code",
        /// Value of the suboption.
        value: &'a [u8] = "value",
    }
}

gannet_event::record! {
    /// The options of a message (RFC 2132); the last one counts if a code is repeated.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Options<'a> = "DHCP::Options" {
        /// Codes of all options, in order.
        options: Option<Codes<'a>> = "options",
        /// Subnet mask (1).
        subnet_mask: Option<Addr> = "subnet_mask",
        /// Routers (3).
        routers: Option<Addrs<'a>> = "routers",
        /// DNS servers (6).
        dns_servers: Option<Addrs<'a>> = "dns_servers",
        /// Host name of the client (12).
        host_name: Option<&'a [u8]> = "host_name",
        /// The client's domain (15).
        domain_name: Option<&'a [u8]> = "domain_name",
        /// Whether the client is to enable IP forwarding (19).
        forwarding: Option<bool> = "forwarding",
        /// Broadcast address (28).
        broadcast: Option<Addr> = "broadcast",
        /// Vendor-specific information (43).
        vendor: Option<&'a [u8]> = "vendor",
        /// NetBIOS name servers (44).
        nbns: Option<Addrs<'a>> = "nbns",
        /// Requested address (50).
        addr_request: Option<Addr> = "addr_request",
        /// Lease time (51).
        lease: Option<Interval> = "lease",
        /// Server identifier: the address of the server (54).
        serv_addr: Option<Addr> = "serv_addr",
        /// Requested options (55).
        param_list: Option<Numbers<'a>> = "param_list",
        /// Error message (56).
        message: Option<&'a [u8]> = "message",
        /// Maximum message size, in bytes (57).
        max_msg_size: Option<u16> = "max_msg_size",
        /// Time until the client renews the lease with its server (58).
        renewal_time: Option<Interval> = "renewal_time",
        /// Time until the client renews the lease with any server (59).
        rebinding_time: Option<Interval> = "rebinding_time",
        /// Vendor class of the sender (60).
        vendor_class: Option<&'a [u8]> = "vendor_class",
        /// Client identifier (61).
        client_id: Option<ClientId<'a>> = "client_id",
        /// User class (77).
        user_class: Option<&'a [u8]> = "user_class",
        /// Fully qualified name of the client (81).
        client_fqdn: Option<ClientFqdn<'a>> = "client_fqdn",
        /// Suboptions of a relay agent (82).
        sub_opt: Option<SubOpts<'a>> = "sub_opt",
        /// Whether the client may configure a link-local address by itself (116).
        auto_config: Option<bool> = "auto_config",
        /// URL of the proxy configuration (252).
        auto_proxy_config: Option<&'a [u8]> = "auto_proxy_config",
        /// Offset from UTC, in seconds (2).
        time_offset: Option<i32> = "time_offset",
        /// Time servers (4).
        time_servers: Option<Addrs<'a>> = "time_servers",
        /// Name servers of IEN 116 (5).
        name_servers: Option<Addrs<'a>> = "name_servers",
        /// NTP servers (42).
        ntp_servers: Option<Addrs<'a>> = "ntp_servers",
    }
}

/// Suboptions of relay agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubOpts<'a>(&'a [u8]);

impl<'a> SubOpts<'a> {
    fn iter(&self) -> impl Iterator<Item = SubOpt<'a>> + use<'a> {
        let mut b = Bytes(self.0);
        std::iter::from_fn(move || {
            let (code, size) = (b.u8()?, b.u8()?);
            Some(SubOpt { code: code.into(), value: b.take(size.into())? })
        })
    }
}

impl Arg for SubOpts<'_> {
    const TYPE: Type = Type::Vector(&SubOpt::TYPE);

    fn pack(&self, to: &mut Packer<'_>) {
        to.list(self.iter().count());
        self.iter().for_each(|one| one.pack(to));
    }
}

/// The codes of all options, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Codes<'a> {
    options: &'a [u8],
    /// Value of `relay_bytes` before [parsing](Message::parse).
    relay_bytes: u8,
}

impl Arg for Codes<'_> {
    const TYPE: Type = Type::Vector(&Type::Count);

    fn pack(&self, to: &mut Packer<'_>) {
        let (mut codes, mut relay_bytes) = (Vec::<u64>::new(), self.relay_bytes);
        // The options were parsed successfully before.
        let _ = parse_options(self.options, &mut relay_bytes, &mut |code| codes.push(code.into()));
        codes.pack(to);
    }
}

/// The error of a message that ends before its options.
fn too_short(data: &[u8]) -> OutOfBound {
    let fields = [("giaddr", 28), ("chaddr", 44), ("sname", 108), ("file_n", 236)];
    let missing = fields.iter().find(|(_, end)| data.len() < *end);
    let (field, end) = missing.copied().unwrap_or(("cookie", FIXED_LEN));
    OutOfBound::new("DHCP_Message", field, end as i64, data.len())
}

/// Removes a record of a single field from the data and returns its bytes.
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

/// Removes the value of an option that is an address or a number.
fn word(
    rest: &mut &[u8],
    record: &'static str,
    field: &'static str,
) -> Result<[u8; 4], OutOfBound> {
    let bytes = take(rest, (record, field), 4)?;
    Ok(bytes.first_chunk().copied().unwrap_or_default())
}

/// Removes a list of addresses or numbers from the data.
fn list<'a>(
    rest: &mut &'a [u8],
    (record, field): (&'static str, &'static str),
    n: usize,
    size: usize,
) -> Result<&'a [u8], OutOfBound> {
    let mut r = Record::new(record, rest);
    r.list(field, n as u16, size)?;
    let items = &rest[..r.at];
    *rest = r.rest();
    Ok(items)
}

/// Names of the record and the field in Zeek's parser for an option whose value is text_field.
fn text_field(code: u8) -> (&'static str, &'static str) {
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

/// Parses options up to the end option or the end of the datagram, and passes each code to `visit`. Returns the message
/// type, which is the value of the first option 53, and the options. As in Zeek, an option of a type with a fixed size
/// takes that size, regardless of its length field.
fn parse_options<'a>(
    mut data: &'a [u8],
    relay_bytes: &mut u8,
    visit: &mut impl FnMut(u8),
) -> Result<(u8, Options<'a>), OutOfBound> {
    let codes = Some(Codes { options: data, relay_bytes: *relay_bytes });
    let rest = &mut data;
    let mut options = Options { options: codes, ..Options::default() };
    let mut kind = None;
    while let Some((&code, after_code)) = rest.split_first() {
        *rest = after_code;
        if code == 255 {
            break;
        }
        visit(code);
        if code == 0 {
            continue;
        }
        let len = usize::from(take(rest, ("OptionValueWrapper", "length"), 1)?[0]);
        match code {
            53 => {
                let msg_type = take(rest, ("OptionValue", "msg_type"), 1)?[0];
                kind.get_or_insert(msg_type);
            }
            12 => options.host_name = Some(take(rest, text_field(code), len)?),
            15 => options.domain_name = Some(unpadded(take(rest, text_field(code), len)?)),
            43 => options.vendor = Some(take(rest, text_field(code), len)?),
            56 => options.message = Some(take(rest, text_field(code), len)?),
            60 => options.vendor_class = Some(take(rest, text_field(code), len)?),
            77 => options.user_class = Some(take(rest, text_field(code), len)?),
            252 => {
                let location = take(rest, text_field(code), len)?;
                let end = location.strip_suffix(b"\n").unwrap_or(location);
                options.auto_proxy_config = Some(end);
            }
            1 => options.subnet_mask = Some(addr(rest, "SUBNET_OPTION", "subnet")?),
            28 => {
                let addr = addr(rest, "BROADCAST_ADDRESS_OPTION", "broadcast_address")?;
                options.broadcast = Some(addr);
            }
            50 => options.addr_request = Some(addr(rest, "ADDR_REQUEST_OPTION", "addr_request")?),
            54 => options.serv_addr = Some(addr(rest, "SERV_ID_OPTION", "serv_addr")?),
            2 => {
                let offset = word(rest, "TIME_OFFSET_OPTION", "time_offset")?;
                options.time_offset = Some(i32::from_be_bytes(offset));
            }
            51 => options.lease = Some(seconds(rest, "LEASE_OPTION", "lease")?),
            58 => {
                options.renewal_time = Some(seconds(rest, "RENEWAL_TIME_OPTION", "renewal_time")?);
            }
            59 => {
                let time = seconds(rest, "REBINDING_TIME_OPTION", "rebinding_time")?;
                options.rebinding_time = Some(time);
            }
            3 => options.routers = Some(addrs(rest, ("ROUTER_OPTION", "router_list"), len)?),
            4 => {
                let field = ("TIME_SERVER_OPTION", "timeserver_list");
                options.time_servers = Some(addrs(rest, field, len)?);
            }
            5 => {
                let field = ("NAME_SERVER_OPTION", "nameserver_list");
                options.name_servers = Some(addrs(rest, field, len)?);
            }
            6 => {
                let field = ("DNS_SERVER_OPTION", "dns_server_list");
                options.dns_servers = Some(addrs(rest, field, len)?);
            }
            42 => {
                let field = ("NTP_SERVER_OPTION", "ntpserver_list");
                options.ntp_servers = Some(addrs(rest, field, len)?);
            }
            44 => options.nbns = Some(addrs(rest, ("NBNS_OPTION", "nbns"), len)?),
            55 => {
                let numbers = list(rest, ("PAR_REQ_LIST_OPTION", "par_req_list"), len, 1)?;
                options.param_list = Some(Numbers(numbers));
            }
            19 => {
                let flag = take(rest, ("FORWARDING_OPTION", "forwarding"), 1)?[0];
                options.forwarding = Some(flag != 0);
            }
            57 => {
                let size = take(rest, ("MAX_MESSAGE_SIZE_OPTION", "max_msg_size"), 2)?;
                options.max_msg_size = Some(u16::from_be_bytes([size[0], size[1]]));
            }
            116 => {
                let flag = take(rest, ("AUTO_CONFIG_OPTION", "auto_config"), 1)?[0];
                options.auto_config = Some(flag != 0);
            }
            61 => options.client_id = Some(client_id(rest, len)?),
            81 => options.client_fqdn = Some(client_fqdn(rest, len)?),
            82 => options.sub_opt = Some(SubOpts(relay_agent(rest, len, relay_bytes)?)),
            _ => drop(take(rest, text_field(code), len)?),
        }
    }
    Ok((kind.unwrap_or_default(), options))
}

/// Removes the value of an option that is an address.
fn addr(rest: &mut &[u8], record: &'static str, field: &'static str) -> Result<Addr, OutOfBound> {
    word(rest, record, field).map(Addr::v4)
}

/// Removes the value of an option that is a time in seconds.
fn seconds(
    rest: &mut &[u8],
    record: &'static str,
    field: &'static str,
) -> Result<Interval, OutOfBound> {
    Ok(Interval::from_secs(u32::from_be_bytes(word(rest, record, field)?).into()))
}

/// Removes the value of an option that is a list of addresses, `len` bytes long.
fn addrs<'a>(
    rest: &mut &'a [u8],
    field: (&'static str, &'static str),
    len: usize,
) -> Result<Addrs<'a>, OutOfBound> {
    list(rest, field, len / 4, 4).map(Addrs)
}

/// Parses a client identifier: hardware type and address.
fn client_id<'a>(rest: &mut &'a [u8], len: usize) -> Result<ClientId<'a>, OutOfBound> {
    let mut r = Record::new("Client_Identifier", rest);
    let hwtype = r.upto("hwtype", 1)?[0];
    r.string("hwaddr", len as i64 - 1)?;
    let bytes = &rest[1..r.at];
    *rest = r.rest();
    let hwaddr = Hardware { bytes, is_text: hwtype == 0 };
    Ok(ClientId { hwtype: hwtype.into(), hwaddr })
}

/// Parses the client's name, after flags and two response codes.
fn client_fqdn<'a>(rest: &mut &'a [u8], len: usize) -> Result<ClientFqdn<'a>, OutOfBound> {
    let mut r = Record::new("Client_FQDN", rest);
    let head = r.upto("rcode2", 3)?;
    let [flags, rcode1, rcode2] = [head[0], head[1], head[2]].map(u64::from);
    r.string("domain_name", len as i64 - 3)?;
    let domain_name = &rest[3..r.at];
    *rest = r.rest();
    Ok(ClientFqdn { flags, rcode1, rcode2, domain_name })
}

/// Removes relay agent information (RFC 3046) and returns its suboptions.
fn relay_agent<'a>(
    rest: &mut &'a [u8],
    len: usize,
    relay_bytes: &mut u8,
) -> Result<&'a [u8], OutOfBound> {
    let all = *rest;
    while !rest.is_empty() {
        let mut r = Record::new("Relay_Agent_SubOption", rest);
        let sub = r.upto("length", 2)?[1];
        r.upto("value", usize::from(sub))?;
        *rest = r.rest();
        *relay_bytes = relay_bytes.wrapping_add(sub).wrapping_add(2);
        if usize::from(*relay_bytes) == len {
            break;
        }
    }
    Ok(&all[..all.len() - rest.len()])
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::fields::mac;
    use super::*;
    use proptest::prelude::*;

    /// A message with the given options and an end option.
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

    fn options(bytes: &[u8]) -> Result<(u8, Options<'_>), OutOfBound> {
        parse_options(bytes, &mut 0, &mut |_| {})
    }

    #[test]
    fn hardware_addresses() {
        assert_eq!(mac(&[2, 0, 0x5e, 0x10, 0, 0xff]), b"02:00:5e:10:00:ff");
        assert_eq!(mac(&[2, 0, 0, 0, 0, 1, 0, 0, 9]), b"02:00:00:00:00:01");
        assert_eq!(mac(&[2, 0, 0, 0, 0, 1, 0, 3]), b"02:00:00:00:00:01:00:03");
        assert_eq!(mac(&[1, 2, 3]), b"");
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
        assert_eq!((m.msg.xid, m.cookie, m.msg.yiaddr), (7, COOKIE, Addr::v4([0; 4])));
        assert_eq!(m.msg.chaddr.bytes[..6], [2, 0, 0x5e, 0x10, 0, 1]);
        let o = m.options;
        assert_eq!(
            (m.msg.m_type, o.host_name, o.client_fqdn.map(|fqdn| fqdn.domain_name)),
            (3, Some(&b"host"[..]), Some(&b"full"[..]))
        );
        assert_eq!(o.addr_request, Some(Addr::v4([192, 0, 2, 5])));
        let id = o.client_id.map(|id| (id.hwtype, id.hwaddr.bytes));
        assert_eq!(id, Some((1, &[2, 0, 0x5e, 0x10, 0, 1][..])));
        assert!(Message::parse(&b[..b.len() - 1], &mut 0).is_ok());
        let short = OutOfBound::new("OptionValueWrapper", "length", 1, 0);
        assert_eq!(Message::parse(&b[..b.len() - 4], &mut 0), Err(short));
    }

    #[test]
    fn fixed_sizes_override_lengths() {
        // A message type with a length of two: the second byte is parsed as an option without a value.
        let (kind, o) = options(b"\x35\x02\x05\x00\x33\x00\x00\x00\x0e\x10\xff").unwrap();
        assert_eq!((kind, o.lease), (5, Some(Interval::from_secs(3600))));
    }

    #[test]
    fn the_first_type_counts() {
        for (bytes, kind) in [(b"\x35\x01\x02\x35\x01\x05", 2), (b"\x35\x01\0\x35\x01\x05", 0)] {
            assert_eq!(options(bytes).unwrap().0, kind);
        }
    }

    #[test]
    fn wrong_lengths() {
        let error = |d: &[u8]| crate::support::error_text(options(d).unwrap_err());
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
    fn padding_of_domains_is_removed() {
        assert_eq!(options(b"\x0f\x04ab\0\0\xff").unwrap().1.domain_name, Some(&b"ab"[..]));
        assert_eq!(options(b"\x0f\x01a\xff").unwrap().1.domain_name, Some(&b""[..]));
    }

    #[test]
    fn relay_options_are_summed() {
        let bytes = b"\x52\x06\x01\x01a\x02\x01b\xff";
        let mut sum = 0;
        assert!(parse_options(bytes, &mut sum, &mut |_| {}).is_ok());
        assert_eq!(sum, 6);
        // The next option of the same side claims more bytes than available.
        assert!(parse_options(bytes, &mut sum, &mut |_| {}).is_err());
    }

    proptest! {
        #[test]
        fn any_options_are_parsed(bytes: Vec<u8>) {
            let mut b = message(1, [0; 4], &bytes);
            b.pop();
            if let Ok(m) = Message::parse(&b, &mut 0) {
                prop_assert_eq!(m.msg.xid, 1);
            }
        }
    }
}
