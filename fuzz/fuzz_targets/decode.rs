//! Packets of any link type (the first two bytes), decoded as a whole: at once, by layers, and as an outline.
#![no_main]

use gannet_base::Addr;
use gannet_wire::Outline;
use gannet_wire::Outline6;
use gannet_wire::Transport;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some((link_type, data)) = data.split_first_chunk() else { return };
    let (link_type, len) = (u16::from_be_bytes(*link_type), data.len() as u32);
    let Ok(decoded) = gannet_wire::decode(link_type, data, len) else { return };
    if let Some(datagram) = decoded.datagram()
        && let Some(ports) = datagram.transport.ports()
    {
        let (ip, hosts) = (datagram.ip, (datagram.ip.src, datagram.ip.dst));
        if let Some(outline) = Outline::of(link_type, data) {
            let (src, dst) = outline.hosts();
            assert_eq!((Addr::v4(src), Addr::v4(dst)), hosts);
            assert_eq!((outline.protocol(), outline.ports()), (ip.protocol, ports));
        }
        if let Some(outline) = Outline6::of(link_type, data) {
            assert_eq!(outline.hosts(), hosts);
            assert_eq!((outline.protocol(), outline.ports()), (ip.protocol, ports));
        }
    }
    let plain = gannet_wire::plain_ipv4(data, len, false).or(gannet_wire::plain_ipv6(data, len));
    if link_type == gannet_wire::link_type::ETHERNET
        && let Some((ip, _)) = plain
    {
        assert_eq!(decoded.datagram().map(|datagram| datagram.ip), Some(ip));
    }
    if let Some(datagram) = decoded.datagram()
        && let Transport::Tcp(tcp) = datagram.transport
    {
        gannet_wire::tcp_options(tcp.options).for_each(drop);
    }
});
