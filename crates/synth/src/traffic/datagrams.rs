//! Conversations of small messages: DNS, NTP, DHCP, SNMP, SIP, and MQTT, which puts them on TCP.

use std::net::IpAddr;
use std::net::Ipv4Addr;
use std::net::Ipv6Addr;
use std::net::SocketAddr;

use gannet_base::Interval;

use super::Ends;
use super::der::integer;
use super::der::tlv;
use super::host;
use super::word;
use crate::Trace;
use crate::dns;
use crate::dns::Data;

pub(super) fn dns(trace: &mut Trace, ends: Ends) {
    let name = host(trace.rng());
    let (alias, draw) = (host(trace.rng()), trace.rng().next_u64());
    let v4 = |n: u64| IpAddr::V4(Ipv4Addr::from(0xcb00_7100 | (n as u32 & 0xff)));
    let v6 = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 3, 0, 0, 0, draw as u16));
    let ttl = (draw >> 16) as u32 % 86_400;
    let few = [(Data::Address(v4(draw)), ttl)];
    let some = [
        (Data::Alias(&alias), ttl),
        (Data::Address(v4(draw)), 60),
        (Data::Address(v4(draw >> 8)), 60),
    ];
    let wide = [(Data::Address(v6), ttl)];
    let (kind, code, answers): (_, _, &[_]) = match draw % 16 {
        0..=6 => (dns::A, dns::NOERROR, &few),
        7..=9 => (dns::A, dns::NOERROR, &some),
        10..=12 => (dns::AAAA, dns::NOERROR, &wide),
        13 => (dns::AAAA, dns::NOERROR, &[]),
        // A TXT query for a name that does not exist.
        14 => (16, dns::NXDOMAIN, &[]),
        _ => (dns::A, dns::NXDOMAIN, &[]),
    };
    trace.lookup(ends.client(), ends.server(53), (&name, kind), code, answers);
}

pub(super) fn ntp(trace: &mut Trace, ends: Ends) {
    let mut ask = trace.rng().bytes(48);
    ask[..4].copy_from_slice(&[0x23, 0, 6, 0xec]);
    let mut answer = trace.rng().bytes(48);
    answer[..4].copy_from_slice(&[0x24, 2, 6, 0xec]);
    answer[24..32].copy_from_slice(&ask[40..48]);
    trace.udp(ends.client(), ends.server(123), &ask);
    trace.udp_reply(ends.client(), ends.server(123), &answer);
}

pub(super) fn dhcp(trace: &mut Trace, ends: Ends) {
    let id = trace.rng().bytes(4);
    let mac = [&[2, 0][..], &trace.rng().bytes(4)].concat();
    let name = word(trace.rng(), 8);
    let given = Ipv4Addr::from(0x0a00_0000 | trace.rng().next_u32() >> 12);
    let message = |op: u8, kind: u8, yours: Ipv4Addr| {
        let mut b = vec![op, 1, 6, 0];
        b.extend_from_slice(&id);
        b.extend_from_slice(&[0; 8]);
        b.extend_from_slice(&yours.octets());
        b.extend_from_slice(&[0; 8]);
        b.extend_from_slice(&mac);
        b.resize(236, 0);
        b.extend_from_slice(&[99, 130, 83, 99, 53, 1, kind, 12, name.len() as u8]);
        b.extend_from_slice(name.as_bytes());
        if op == 2 {
            b.extend_from_slice(&[54, 4, 10, 0, 0, 1, 51, 4, 0, 0, 14, 16, 1, 4, 255, 0, 0, 0]);
            b.extend_from_slice(&[3, 4, 10, 0, 0, 1, 6, 4, 10, 0, 0, 1]);
        } else {
            b.extend_from_slice(&[55, 4, 1, 3, 6, 15]);
        }
        b.push(255);
        b
    };
    let (client, server) = match ends.client {
        // The messages are those of IPv4.
        IpAddr::V6(_) => (Ipv4Addr::new(10, 0, 0, 9).into(), Ipv4Addr::new(10, 0, 0, 1).into()),
        client @ IpAddr::V4(_) => (client, IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1))),
    };
    let (client, server) = (SocketAddr::new(client, 68), SocketAddr::new(server, 67));
    let none = Ipv4Addr::UNSPECIFIED;
    for (ask, answer) in [(1, 2), (3, 5)] {
        trace.udp(client, server, &message(1, ask, none));
        trace.udp_reply(client, server, &message(2, answer, given));
    }
}

pub(super) fn snmp(trace: &mut Trace, ends: Ends) {
    let id = u64::from(trace.rng().next_u32() >> 1);
    let uptime = u64::from(trace.rng().next_u32() >> 1);
    let community = word(trace.rng(), 6);
    // 1.3.6.1.2.1.1.3.0: sysUpTime.
    let object = tlv(0x06, &[&[0x2b, 6, 1, 2, 1, 1, 3, 0]]);
    let message = |kind: u8, value: &[u8]| {
        let bound = tlv(0x30, &[&tlv(0x30, &[&object, value])]);
        let pdu = tlv(kind, &[&integer(id), &integer(0), &integer(0), &bound]);
        tlv(0x30, &[&integer(1), &tlv(0x04, &[community.as_bytes()]), &pdu])
    };
    for _ in 0..3 {
        trace.udp(ends.client(), ends.server(161), &message(0xa0, &[5, 0]));
        let ticks = tlv(0x43, &[&(uptime as u32).to_be_bytes()]);
        trace.udp_reply(ends.client(), ends.server(161), &message(0xa2, &ticks));
    }
}

pub(super) fn sip(trace: &mut Trace, ends: Ends) {
    let (caller, called) = (word(trace.rng(), 6), word(trace.rng(), 6));
    let (domain, id) = (host(trace.rng()), word(trace.rng(), 20));
    let common = |method: &str, seq: u32| {
        format!(
            "Via: SIP/2.0/UDP {}:5060;branch=z9hG4bK{id}\r\nMax-Forwards: 70\r\n\
             From: \"{caller}\" <sip:{caller}@{domain}>;tag={}\r\n\
             To: <sip:{called}@{domain}>\r\nCall-ID: {id}@{domain}\r\nCSeq: {seq} {method}\r\n",
            ends.client,
            &id[..8],
        )
    };
    let sdp = format!(
        "v=0\r\no={caller} 1 1 IN IP4 192.0.2.1\r\ns=-\r\nc=IN IP4 192.0.2.1\r\nt=0 0\r\n\
         m=audio 49170 RTP/AVP 0\r\na=rtpmap:0 PCMU/8000\r\n"
    );
    let request = |method: &str, seq: u32, body: &str| {
        format!(
            "{method} sip:{called}@{domain} SIP/2.0\r\n{}Contact: <sip:{caller}@{domain}>\r\n\
             User-Agent: synth/1.0\r\nContent-Length: {}\r\n\r\n{body}",
            common(method, seq),
            body.len()
        )
    };
    let answer = |code: &str, method: &str, seq: u32| {
        format!("SIP/2.0 {code}\r\n{}Content-Length: 0\r\n\r\n", common(method, seq))
    };
    let (client, server) =
        (SocketAddr::new(ends.client, 5_060), SocketAddr::new(ends.server, 5_060));
    trace.udp(client, server, request("INVITE", 1, &sdp).as_bytes());
    trace.udp_reply(client, server, answer("180 Ringing", "INVITE", 1).as_bytes());
    trace.udp_reply(client, server, answer("200 OK", "INVITE", 1).as_bytes());
    trace.udp(client, server, request("ACK", 1, "").as_bytes());
    trace.wait(Interval::from_millis(800));
    trace.udp(client, server, request("BYE", 2, "").as_bytes());
    trace.udp_reply(client, server, answer("200 OK", "BYE", 2).as_bytes());
}

pub(super) fn mqtt(trace: &mut Trace, ends: Ends) {
    let (id, topic) = (word(trace.rng(), 12), host(trace.rng()).replace('.', "/"));
    let count = 2 + trace.rng().below(12);
    let text = |t: &str| [&(t.len() as u16).to_be_bytes()[..], t.as_bytes()].concat();
    // Shorter than 128 bytes: the remaining length is one byte.
    let packet = |kind: u8, parts: &[&[u8]]| {
        let rest = parts.concat();
        [&[kind, rest.len() as u8 & 0x7f][..], &rest].concat()
    };
    let mut tcp = trace.connect(ends.client(), ends.server(1_883));
    tcp.send(&packet(0x10, &[&text("MQTT"), &[4, 2, 0, 60], &text(&id)]));
    tcp.reply(&packet(0x20, &[&[0, 0]]));
    for n in 0..count {
        let value = format!("{{\"n\":{n},\"celsius\":{}.5}}", n % 30);
        tcp.send(&packet(0x30, &[&text(&topic), value.as_bytes()]));
    }
    tcp.send(&[0xe0, 0]);
    tcp.close();
}
