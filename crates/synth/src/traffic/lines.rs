//! Protocols of lines: SMTP (RFC 5321) and FTP (RFC 959).

use std::net::IpAddr;
use std::net::SocketAddr;

use gannet_base::Interval;

use super::Ends;
use super::host;
use super::prose;
use super::word;
use crate::Rng;
use crate::Trace;

pub(super) fn smtp(trace: &mut Trace, ends: Ends) {
    let mut rng = Rng::new(trace.rng().next_u64());
    let (from, to) = (host(&mut rng), host(&mut rng));
    let (sender, receiver) = (word(&mut rng, 6), word(&mut rng, 7));
    let mut tcp = trace.connect(ends.client(), ends.server(25));
    tcp.reply(format!("220 {to} ESMTP\r\n").as_bytes());
    let mut say = |line: &str, answer: &str| {
        tcp.send(format!("{line}\r\n").as_bytes());
        tcp.reply(format!("{answer}\r\n").as_bytes());
    };
    say(&format!("EHLO {from}"), &format!("250-{to}\r\n250-SIZE 10485760\r\n250 8BITMIME"));
    for _ in 0..=rng.below(3) {
        say(&format!("MAIL FROM:<{sender}@{from}>"), "250 2.1.0 Ok");
        say(&format!("RCPT TO:<{receiver}@{to}>"), "250 2.1.5 Ok");
        say("DATA", "354 End data with <CR><LF>.<CR><LF>");
        let size = 300 + rng.below(6_000) as usize;
        let mail = format!(
            "Received: from {from} by {to}; Tue, 14 Nov 2023 22:13:20 +0000\r\n\
             Date: Tue, 14 Nov 2023 22:13:20 +0000\r\nFrom: {sender} <{sender}@{from}>\r\n\
             To: {receiver}@{to}\r\nSubject: {} {}\r\nMessage-ID: <{}@{from}>\r\n\
             MIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n\
             X-Mailer: synth 1.0\r\n\r\n{}\r\n.",
            word(&mut rng, 6),
            word(&mut rng, 9),
            word(&mut rng, 20),
            prose(&mut rng, size),
        );
        say(&mail, &format!("250 2.0.0 Ok: queued as {}", word(&mut rng, 10)));
    }
    say("QUIT", "221 2.0.0 Bye");
    tcp.close();
}

pub(super) fn ftp(trace: &mut Trace, ends: Ends) {
    let mut rng = Rng::new(trace.rng().next_u64());
    let data = SocketAddr::new(ends.server, 20_000 + rng.below(9_000) as u16);
    let name = format!("{}.bin", word(&mut rng, 8));
    let size = 2_000 + rng.below(30_000) as usize;
    let passive = match ends.server {
        IpAddr::V4(a) => {
            let [a, b, c, d] = a.octets();
            let [high, low] = data.port().to_be_bytes();
            ("PASV", format!("227 Entering Passive Mode ({a},{b},{c},{d},{high},{low})"))
        }
        IpAddr::V6(_) => {
            ("EPSV", format!("229 Entering Extended Passive Mode (|||{}|)", data.port()))
        }
    };
    let mut control = trace.connect(ends.client(), ends.server(21));
    control.reply(b"220 synth FTP\r\n");
    let user = format!("USER {}", word(&mut rng, 6));
    for (line, answer) in [
        (user.as_str(), "331 Password required"),
        ("PASS synth@example.com", "230 Logged in"),
        ("TYPE I", "200 Type set to I"),
        (passive.0, &passive.1),
    ] {
        control.send(format!("{line}\r\n").as_bytes());
        control.reply(format!("{answer}\r\n").as_bytes());
    }
    control.send(format!("RETR {name}\r\n").as_bytes());
    control.reply(b"150 Opening data connection\r\n");
    // The control connection is idle during the data connection, and then continues.
    let rest = control.pause();
    let from = SocketAddr::new(ends.client, ends.port.wrapping_add(1).max(1_024));
    let mut channel = trace.connect(from, data);
    channel.reply(&rng.bytes(size));
    channel.close();
    trace.wait(Interval::from_millis(2));
    let mut control = trace.resume(rest);
    control.reply(b"226 Transfer complete\r\n");
    control.send(b"QUIT\r\n");
    control.reply(b"221 Bye\r\n");
    control.close();
}
