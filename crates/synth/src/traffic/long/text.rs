//! Exchanges of protocols of lines and of text.

use std::net::IpAddr;
use std::net::Ipv4Addr;

use crate::Tcp;
use crate::dns;

pub(super) fn dns_name(n: usize) -> String {
    format!("n{n}.example.com")
}

pub(super) fn dns(n: usize) -> (Vec<u8>, Vec<u8>) {
    let (id, name) = (n as u16, dns_name(n));
    let address = IpAddr::V4(Ipv4Addr::new(203, 0, 113, n as u8));
    let answer =
        dns::response(id, &name, dns::A, dns::NOERROR, &[(dns::Data::Address(address), 60)]);
    (dns::query(id, &name, dns::A), answer)
}

/// Bytes of the body of the `n`-th response.
pub(super) fn body_length(n: usize) -> usize {
    1 + n % 1_000
}

pub(super) fn http(n: usize) -> (Vec<u8>, Vec<u8>) {
    let body = "x".repeat(body_length(n));
    let answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let ask =
        format!("GET /{n} HTTP/1.1\r\nHost: www.example.com\r\nUser-Agent: synth/1.0\r\n\r\n");
    (ask.into_bytes(), answer.into_bytes())
}

fn say(tcp: &mut Tcp<'_>, line: &str, answer: &str) {
    tcp.send(format!("{line}\r\n").as_bytes());
    tcp.reply(format!("{answer}\r\n").as_bytes());
}

pub(super) fn smtp_begin(tcp: &mut Tcp<'_>) {
    tcp.reply(b"220 mx.example.com ESMTP\r\n");
    say(tcp, "EHLO client.example.com", "250 mx.example.com");
}

pub(super) fn smtp(tcp: &mut Tcp<'_>, n: usize) {
    say(tcp, &format!("MAIL FROM:<a{n}@example.com>"), "250 2.1.0 Ok");
    say(tcp, &format!("RCPT TO:<b{n}@example.net>"), "250 2.1.5 Ok");
    say(tcp, "DATA", "354 End data with <CR><LF>.<CR><LF>");
    say(
        tcp,
        &format!("Subject: mail {n}\r\nMessage-ID: <{n}@example.com>\r\n\r\nText {n}\r\n."),
        "250 2.0.0 Ok",
    );
}

pub(super) fn ftp_begin(tcp: &mut Tcp<'_>) {
    tcp.reply(b"220 synth FTP\r\n");
    say(tcp, "USER anonymous", "331 Password required");
    say(tcp, "PASS synth@example.com", "230 Logged in");
}

pub(super) fn irc_begin(tcp: &mut Tcp<'_>) {
    tcp.reply(b":srv NOTICE AUTH :hello\r\n");
}

pub(super) fn redis(n: usize) -> (Vec<u8>, Vec<u8>) {
    let key = format!("k{n}");
    let ask = format!("*3\r\n$3\r\nSET\r\n${}\r\n{key}\r\n$1\r\nv\r\n", key.len());
    (ask.into_bytes(), b"+OK\r\n".to_vec())
}

pub(super) fn sip(n: usize) -> (Vec<u8>, Vec<u8>) {
    let common = format!(
        "Via: SIP/2.0/UDP 192.0.2.1:5060;branch=z9hG4bK{n}\r\nMax-Forwards: 70\r\n\
         From: <sip:a@example.com>;tag={n}\r\nTo: <sip:u{n}@example.com>\r\n\
         Call-ID: {n}@example.com\r\nCSeq: {} OPTIONS\r\nContent-Length: 0\r\n\r\n",
        n + 1
    );
    let ask = format!("OPTIONS sip:u{n}@example.com SIP/2.0\r\n{common}");
    (ask.into_bytes(), format!("SIP/2.0 200 OK\r\n{common}").into_bytes())
}

/// A message of PostgreSQL.
fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind], &(body.len() as u32 + 4).to_be_bytes()[..], body].concat()
}

pub(super) fn postgresql_begin(tcp: &mut Tcp<'_>) {
    let body = b"\0\x03\0\0user\0bob\0database\0db\0\0";
    tcp.send(&[&(body.len() as u32 + 4).to_be_bytes()[..], body].concat());
    tcp.reply(&[message(b'R', &[0; 4]), message(b'Z', b"I")].concat());
}

pub(super) fn postgresql(n: usize) -> (Vec<u8>, Vec<u8>) {
    let ask = message(b'Q', format!("select {n}\0").as_bytes());
    let answer = [
        message(b'T', &[0, 1, b'c', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 25, 255, 255, 0, 0, 0, 0, 0, 0]),
        message(b'D', &[0, 1, 0, 0, 0, 1, b'1']),
        message(b'C', b"SELECT 1\0"),
        message(b'Z', b"I"),
    ];
    (ask, answer.concat())
}

/// A packet of MySQL.
fn packet(sequence: u8, body: &[u8]) -> Vec<u8> {
    [&(body.len() as u32).to_le_bytes()[..3], &[sequence], body].concat()
}

const MYSQL_OK: &[u8] = b"\0\x02\0\x02\0\0\0";

pub(super) fn mysql_begin(tcp: &mut Tcp<'_>) {
    let greeting = [&b"\x0a8.0\0"[..], &[1; 18], &[0; 26]].concat();
    tcp.reply(&packet(0, &greeting));
    tcp.send(&packet(1, &[&[0; 32][..], b"root\0\x01x"].concat()));
    tcp.reply(&packet(2, MYSQL_OK));
}

pub(super) fn mysql(n: usize) -> (Vec<u8>, Vec<u8>) {
    let ask = packet(0, &[&[3], format!("select {n}").as_bytes()].concat());
    (ask, packet(1, MYSQL_OK))
}
