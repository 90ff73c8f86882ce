//! Encrypted protocols: TLS 1.2 (RFC 5246), TLS 1.3 (RFC 8446) and SSH (RFC 4253).

use super::Ends;
use super::der::certificate;
use super::host;
use crate::Rng;
use crate::Trace;
use crate::trace::Tcp;

const HANDSHAKE: u8 = 22;
const DATA: u8 = 23;

/// A record of version 1.2.
fn record(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind, 3, 3][..], &(body.len() as u16).to_be_bytes(), body].concat()
}

/// A handshake message.
fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let [_, a, b, c] = (body.len() as u32).to_be_bytes();
    [&[kind, a, b, c][..], body].concat()
}

/// Bytes with a length prefix of two bytes.
fn sized(body: &[u8]) -> Vec<u8> {
    [&(body.len() as u16).to_be_bytes()[..], body].concat()
}

/// An extension of a hello.
fn extension(kind: u16, body: &[u8]) -> Vec<u8> {
    [&kind.to_be_bytes()[..], &sized(body)].concat()
}

fn client_hello(rng: &mut Rng, name: &str) -> Vec<u8> {
    let suites = [
        0x13, 1, 0x13, 2, 0x13, 3, 0xc0, 0x2b, 0xc0, 0x2f, 0xc0, 0x2c, 0xc0, 0x30, 0xcc, 0xa9,
        0xcc, 0xa8, 0xc0, 0x13, 0xc0, 0x14, 0, 0x9c, 0, 0x9d, 0, 0x2f, 0, 0x35,
    ];
    let share = [&[0, 29][..], &sized(&rng.bytes(32))].concat();
    let extensions = [
        extension(0, &sized(&[&[0][..], &sized(name.as_bytes())].concat())),
        extension(23, &[]),
        extension(10, &sized(&[0, 29, 0, 23, 0, 24])),
        extension(11, &[1, 0]),
        extension(16, &sized(b"\x02h2\x08http/1.1")),
        extension(13, &sized(&[4, 3, 8, 4, 4, 1, 5, 3, 8, 5, 5, 1, 8, 6, 6, 1])),
        extension(51, &sized(&share)),
        extension(43, &[4, 3, 4, 3, 3]),
    ]
    .concat();
    let body = [
        &[3, 3][..],
        &rng.bytes(32),
        &[32],
        &rng.bytes(32),
        &sized(&suites),
        &[1, 0],
        &sized(&extensions),
    ]
    .concat();
    record(HANDSHAKE, &message(1, &body))
}

fn server_hello(rng: &mut Rng, suite: [u8; 2], extensions: &[u8]) -> Vec<u8> {
    let body =
        [&[3, 3][..], &rng.bytes(32), &[32], &rng.bytes(32), &suite, &[0], &sized(extensions)]
            .concat();
    message(2, &body)
}

pub(super) fn tls(trace: &mut Trace, ends: Ends) {
    let mut rng = Rng::new(trace.rng().next_u64());
    let name = host(&mut rng);
    let port = [443, 443, 443, 443, 8_443, 993][rng.below(6) as usize];
    let mut tcp = trace.connect(ends.client(), ends.server(port));
    tcp.send(&client_hello(&mut rng, &name));
    if rng.below(5) < 2 {
        version_1_2(&mut rng, &mut tcp, &name);
    } else {
        version_1_3(&mut rng, &mut tcp);
    }
    for _ in 0..rng.below(8) {
        let asked = 80 + rng.below(500) as usize;
        let given = 200 + (rng.below(100) * rng.below(120)) as usize;
        tcp.send(&record(DATA, &rng.bytes(asked)));
        tcp.reply(&record(DATA, &rng.bytes(given)));
    }
    // An encrypted alert.
    tcp.send(&record(21, &rng.bytes(26)));
    tcp.close();
}

fn version_1_2(rng: &mut Rng, tcp: &mut Tcp<'_>, name: &str) {
    let extensions = [extension(0xff01, &[0]), extension(16, &sized(b"\x02h2"))].concat();
    let hello = server_hello(rng, [0xc0, 0x2f], &extensions);
    let chain: Vec<u8> = [certificate(rng, name, "Synthetic CA"), certificate(rng, "ca", "root")]
        .iter()
        .flat_map(|cert| [&(cert.len() as u32).to_be_bytes()[1..], cert].concat())
        .collect();
    let chain = [&(chain.len() as u32).to_be_bytes()[1..], &chain].concat();
    let exchange = [&[3, 0, 29, 32][..], &rng.bytes(32), &[4, 1], &sized(&rng.bytes(256))].concat();
    let flight = [
        record(HANDSHAKE, &hello),
        record(HANDSHAKE, &message(11, &chain)),
        record(HANDSHAKE, &message(12, &exchange)),
        record(HANDSHAKE, &message(14, &[])),
    ]
    .concat();
    tcp.reply(&flight);
    let key = [&[32][..], &rng.bytes(32)].concat();
    let finished = |rng: &mut Rng| [record(20, &[1]), record(HANDSHAKE, &rng.bytes(40))].concat();
    tcp.send(&[record(HANDSHAKE, &message(16, &key)), finished(rng)].concat());
    tcp.reply(&finished(rng));
}

fn version_1_3(rng: &mut Rng, tcp: &mut Tcp<'_>) {
    let share = [&[0, 29][..], &sized(&rng.bytes(32))].concat();
    let extensions = [extension(43, &[3, 4]), extension(51, &share)].concat();
    let hello = server_hello(rng, [0x13, 1], &extensions);
    let flight = [
        record(HANDSHAKE, &hello),
        record(20, &[1]),
        record(DATA, &rng.bytes(36)),
        record(DATA, &rng.bytes(2_900)),
        record(DATA, &rng.bytes(280)),
        record(DATA, &rng.bytes(53)),
    ]
    .concat();
    tcp.reply(&flight);
    tcp.send(&[record(20, &[1]), record(DATA, &rng.bytes(53))].concat());
}

/// Algorithms of each kind, in the order a key exchange lists them.
const ALGORITHMS: [&str; 10] = [
    "curve25519-sha256,ecdh-sha2-nistp256,diffie-hellman-group14-sha256",
    "ssh-ed25519,rsa-sha2-512,rsa-sha2-256",
    "chacha20-poly1305@openssh.com,aes128-ctr,aes256-gcm@openssh.com",
    "chacha20-poly1305@openssh.com,aes128-ctr,aes256-gcm@openssh.com",
    "umac-64-etm@openssh.com,hmac-sha2-256,hmac-sha1",
    "umac-64-etm@openssh.com,hmac-sha2-256,hmac-sha1",
    "none,zlib@openssh.com",
    "none,zlib@openssh.com",
    "",
    "",
];

/// A packet before encryption (RFC 4253, section 6).
fn packet(kind: u8, body: &[u8]) -> Vec<u8> {
    // Padded to a multiple of eight, by at least four bytes.
    let pad = 12 - (body.len() + 6) % 8 % 8;
    let len = (2 + body.len() + pad) as u32;
    [&len.to_be_bytes()[..], &[pad as u8, kind], body, &vec![0; pad]].concat()
}

pub(super) fn ssh(trace: &mut Trace, ends: Ends) {
    let mut rng = Rng::new(trace.rng().next_u64());
    let text = |t: &[u8]| [&(t.len() as u32).to_be_bytes()[..], t].concat();
    let init = |rng: &mut Rng| {
        let lists: Vec<u8> = ALGORITHMS.iter().flat_map(|a| text(a.as_bytes())).collect();
        packet(20, &[&rng.bytes(16)[..], &lists, &[0; 5]].concat())
    };
    let mut tcp = trace.connect(ends.client(), ends.server(22));
    tcp.send(b"SSH-2.0-OpenSSH_9.6\r\n");
    tcp.reply(b"SSH-2.0-OpenSSH_8.4p1 Debian-5\r\n");
    tcp.send(&init(&mut rng));
    tcp.reply(&init(&mut rng));
    tcp.send(&packet(30, &text(&rng.bytes(32))));
    let host_key = [text(b"ssh-ed25519"), text(&rng.bytes(32))].concat();
    let reply = [text(&host_key), text(&rng.bytes(32)), text(&rng.bytes(83))].concat();
    tcp.reply(&[packet(31, &reply), packet(21, &[])].concat());
    tcp.send(&packet(21, &[]));
    for _ in 0..6 + rng.below(30) {
        tcp.send(&rng.bytes(36));
        let len = 36 + rng.below(600) as usize;
        tcp.reply(&rng.bytes(len));
    }
    tcp.close();
}
