//! Events of DHCP.

use gannet_base::Addr;
use gannet_base::Interval;
use gannet_base::Time;
use gannet_base::Uid;
use gannet_event::Connection;
use gannet_event::Id4;

use super::message::Addrs;
use super::message::Codes;
use super::message::Hardware;
use super::message::Numbers;
use super::message::SubOpts;
use super::message::Unpadded;

gannet_event::record! {
    /// The fixed part of a message (RFC 2131 §2).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Msg<'a> = "DHCP::Msg" {
        /// 1 for a client's message, 2 for a server's.
        op: u64 = "op",
        /// Type of the message, of its first option 53.
        m_type: u64 = "m_type",
        /// Transaction id.
        xid: u32 = "xid",
        /// Time since the client began.
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
        /// Name of the server's host.
        sname: Unpadded<'a> = "sname",
        /// Name of the boot file.
        file_n: Unpadded<'a> = "file_n",
    }
}

gannet_event::record! {
    /// Client identifier (option 61).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct ClientId<'a> = "DHCP::ClientID" {
        /// Kind of hardware.
        hwtype: u64 = "hwtype",
        /// Its address.
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
        /// Its value.
        value: &'a [u8] = "value",
    }
}

gannet_event::record! {
    /// The options of a message (RFC 2132); of several of a kind the last.
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
        /// Name of the client's host (12).
        host_name: Option<&'a [u8]> = "host_name",
        /// The client's domain (15).
        domain_name: Option<&'a [u8]> = "domain_name",
        /// Whether to forward packets (19).
        forwarding: Option<bool> = "forwarding",
        /// Broadcast address (28).
        broadcast: Option<Addr> = "broadcast",
        /// Data of a vendor's own (43).
        vendor: Option<&'a [u8]> = "vendor",
        /// NetBIOS name servers (44).
        nbns: Option<Addrs<'a>> = "nbns",
        /// The address asked for (50).
        addr_request: Option<Addr> = "addr_request",
        /// Time that the address is lent for (51).
        lease: Option<Interval> = "lease",
        /// The server that is meant (54).
        serv_addr: Option<Addr> = "serv_addr",
        /// Options asked for (55).
        param_list: Option<Numbers<'a>> = "param_list",
        /// Why something was refused (56).
        message: Option<&'a [u8]> = "message",
        /// Longest message (57).
        max_msg_size: Option<u16> = "max_msg_size",
        /// Time until the lease is renewed (58).
        renewal_time: Option<Interval> = "renewal_time",
        /// Time until any server may renew it (59).
        rebinding_time: Option<Interval> = "rebinding_time",
        /// Vendor class of the sender (60).
        vendor_class: Option<&'a [u8]> = "vendor_class",
        /// Client identifier (61).
        client_id: Option<ClientId<'a>> = "client_id",
        /// Kind of user (77).
        user_class: Option<&'a [u8]> = "user_class",
        /// Fully qualified name of the client (81).
        client_fqdn: Option<ClientFqdn<'a>> = "client_fqdn",
        /// Suboptions of a relay agent (82).
        sub_opt: Option<SubOpts<'a>> = "sub_opt",
        /// Whether the client may choose its address (116).
        auto_config: Option<bool> = "auto_config",
        /// Where the configuration of proxies is (252).
        auto_proxy_config: Option<&'a [u8]> = "auto_proxy_config",
        /// Seconds from UTC (2).
        time_offset: Option<i32> = "time_offset",
        /// Time servers (4).
        time_servers: Option<Addrs<'a>> = "time_servers",
        /// Name servers of IEN 116 (5).
        name_servers: Option<Addrs<'a>> = "name_servers",
        /// NTP servers (42).
        ntp_servers: Option<Addrs<'a>> = "ntp_servers",
    }
}

gannet_event::events! {
    crate::events::module_of(crate::Tag::Dhcp);

    /// A message of DHCP.
    pub struct DhcpMessage<'a> = "dhcp_message" {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// Its fixed part.
        msg: Msg<'a> = "msg",
        /// Its options.
        options: Options<'a> = "options",
    }

    /// A message of DHCP, for those who combine the messages of one exchange.
    pub struct AggregateMsgs<'a> = "DHCP::aggregate_msgs", scripted {
        /// Time of the message.
        ts: Time = "ts",
        /// Ends of the connection.
        id: Id4 = "id",
        /// Identifier of the connection.
        uid: Uid = "uid",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// Its fixed part.
        msg: Msg<'a> = "msg",
        /// Its options.
        options: Options<'a> = "options",
    }
}
