//! The sample capture of the manual.

use std::net::IpAddr;
use std::net::Ipv4Addr;
use std::net::Ipv6Addr;
use std::net::SocketAddr;

use gannet_base::Interval;
use gannet_base::Time;

use crate::Trace;
use crate::dns;
use crate::dns::Data;

const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 17));
const CLIENT_6: IpAddr = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 1, 0, 0, 0, 0x17));
const RESOLVER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
const WEB: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 51, 100, 80));
const WEB_6: IpAddr = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 2, 0, 0, 0, 0x80));
const MAIL: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 51, 100, 25));
const CLOCK: IpAddr = IpAddr::V4(Ipv4Addr::new(203, 0, 113, 123));

/// Some seconds of one host's traffic, always the same: DNS lookups (with an alias, IPv6 addresses
/// and a name that does not exist), two HTTP exchanges, one of them over IPv6, a mail by SMTP, an
/// NTP exchange, a connection that is refused, and a ping.
pub fn sample() -> Trace {
    let mut trace = Trace::new(Time::from_secs(1_700_000_000), 0x6761_6e6e_6574);
    lookups(&mut trace);
    page(&mut trace);
    form(&mut trace);
    clock(&mut trace);
    mail(&mut trace);
    trace.wait(Interval::from_millis(400));
    trace.refuse(at(CLIENT, 49_160), at(WEB, 8_443));
    trace.wait(Interval::from_millis(900));
    trace.ping(CLIENT, WEB, 0x1d2c, 1);
    trace
}

fn at(host: IpAddr, port: u16) -> SocketAddr {
    SocketAddr::new(host, port)
}

fn lookups(trace: &mut Trace) {
    let resolver = at(RESOLVER, 53);
    let mut lookup = |port, name, kind, code, answers: &[_]| {
        trace.lookup(at(CLIENT, port), resolver, (name, kind), code, answers);
    };
    let alias = Data::Alias("web.example.com");
    let web = [(alias, 300), (Data::Address(WEB), 60)];
    lookup(51_001, "www.example.com", dns::A, dns::NOERROR, &web);
    let web = [(alias, 300), (Data::Address(WEB_6), 60)];
    lookup(51_002, "www.example.com", dns::AAAA, dns::NOERROR, &web);
    lookup(51_003, "printer.example.com", dns::A, dns::NXDOMAIN, &[]);
    let mail = [(Data::Address(MAIL), 3_600)];
    lookup(51_004, "mail.example.org", dns::A, dns::NOERROR, &mail);
}

fn page(trace: &mut Trace) {
    trace.wait(Interval::from_millis(20));
    let body = format!(
        "<!DOCTYPE html>\n<title>Gannets</title>\n<p>{}</p>\n",
        "A gannet folds its wings and dives. ".repeat(60)
    );
    let head = format!(
        "HTTP/1.1 200 OK\r\nServer: perch\r\nContent-Type: text/html\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    trace.exchange(
        at(CLIENT, 49_152),
        at(WEB, 80),
        b"GET /birds/gannet.html HTTP/1.1\r\nHost: www.example.com\r\n\
          User-Agent: sample/1.0\r\nAccept: text/html\r\n\r\n",
        &[head.as_bytes(), body.as_bytes()].concat(),
    );
}

fn form(trace: &mut Trace) {
    trace.wait(Interval::from_millis(750));
    let body = "species=Morus+bassanus&count=12";
    let head = format!(
        "POST /sightings HTTP/1.1\r\nHost: www.example.com\r\nUser-Agent: sample/1.0\r\n\
         Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    trace.exchange(
        at(CLIENT_6, 49_153),
        at(WEB_6, 80),
        &[head, body.into()].concat().into_bytes(),
        b"HTTP/1.1 303 See Other\r\nServer: perch\r\nLocation: /sightings/12\r\n\
          Content-Length: 0\r\n\r\n",
    );
}

/// An exchange of NTP version 4 (RFC 5905, section 7.3).
fn clock(trace: &mut Trace) {
    trace.wait(Interval::from_millis(300));
    // NTP counts from 1900: 70 years with 17 leap days before 1970.
    let now = |trace: &Trace| {
        let nanos = trace.now().as_nanos();
        let secs = (nanos / 1_000_000_000 + 2_208_988_800) as u64;
        let fraction = ((nanos % 1_000_000_000) as u64) * (1 << 32) / 1_000_000_000;
        (secs << 32 | fraction).to_be_bytes()
    };
    let (client, server) = (at(CLIENT, 123), at(CLOCK, 123));
    let sent = now(trace);
    // Leap 0, version 4, mode 3 (client), then mode 4 (server) of stratum 2.
    let mut request = [0; 48];
    request[0] = 0x23;
    request[2] = 6;
    request[40..].copy_from_slice(&sent);
    trace.udp(client, server, &request);
    let received = now(trace);
    let mut reply = [0; 48];
    reply[..4].copy_from_slice(&[0x24, 2, 6, 0xec]);
    reply[4..8].copy_from_slice(&[0, 0, 1, 0]);
    reply[8..12].copy_from_slice(&[0, 0, 2, 0]);
    reply[12..16].copy_from_slice(&[203, 0, 113, 9]);
    reply[16..24].copy_from_slice(&received);
    reply[24..32].copy_from_slice(&sent);
    reply[32..40].copy_from_slice(&received);
    reply[40..].copy_from_slice(&received);
    trace.udp_reply(client, server, &reply);
}

fn mail(trace: &mut Trace) {
    trace.wait(Interval::from_millis(1_200));
    let mut tcp = trace.connect(at(CLIENT, 49_154), at(MAIL, 25));
    tcp.reply(b"220 mail.example.org ESMTP\r\n");
    for (line, answer) in [
        ("EHLO host.example.com", "250-mail.example.org\r\n250 8BITMIME"),
        ("MAIL FROM:<ada@example.com>", "250 2.1.0 Sender ok"),
        ("RCPT TO:<ben@example.org>", "250 2.1.5 Recipient ok"),
        ("DATA", "354 End with a dot"),
        (
            "Date: Tue, 14 Nov 2023 22:13:23 +0000\r\nFrom: Ada <ada@example.com>\r\n\
             To: Ben <ben@example.org>\r\nSubject: Gannets on the rock\r\n\
             Message-ID: <1@host.example.com>\r\nUser-Agent: sample/1.0\r\n\r\n\
             Twelve of them, diving.\r\n.",
            "250 2.0.0 Accepted",
        ),
        ("QUIT", "221 2.0.0 Bye"),
    ] {
        tcp.send(format!("{line}\r\n").as_bytes());
        tcp.reply(format!("{answer}\r\n").as_bytes());
    }
    tcp.close();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sample_is_small_ordered_and_always_the_same() {
        let trace = sample();
        assert_eq!(trace.frames(), sample().frames());
        assert_eq!(trace.frames().len(), 68);
        assert!(trace.frames().is_sorted_by_key(|f| f.time));
    }
}
