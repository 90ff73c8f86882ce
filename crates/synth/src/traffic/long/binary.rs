//! Exchanges of protocols with fields of fixed widths.

use crate::Tcp;

/// Seconds since 1970 of the first NTP message.
pub(super) const NTP_FIRST: u64 = 1_700_000_000;

/// Seconds from 1900 to 1970.
const NTP_EPOCH: u64 = 2_208_988_800;

pub(super) fn modbus(n: usize) -> (Vec<u8>, Vec<u8>) {
    let [high, low] = (n as u16).to_be_bytes();
    let ask = vec![high, low, 0, 0, 0, 6, 17, 3, 0, 107, 0, 1];
    (ask, vec![high, low, 0, 0, 0, 5, 17, 3, 2, 0, 9])
}

/// A text with a length prefix.
fn counted(text: &str) -> Vec<u8> {
    [&(text.len() as u16).to_be_bytes()[..], text.as_bytes()].concat()
}

pub(super) fn mqtt_begin(tcp: &mut Tcp<'_>) {
    let body = [&counted("MQTT")[..], &[4, 2, 0, 60], &counted("sensor")].concat();
    tcp.send(&[&[0x10, body.len() as u8], &body[..]].concat());
    tcp.reply(&[0x20, 2, 0, 0]);
}

pub(super) fn mqtt(n: usize) -> Vec<u8> {
    let body = [&counted(&format!("t/{n}"))[..], b"20.5"].concat();
    [&[0x30, body.len() as u8], &body[..]].concat()
}

pub(super) fn ntp(n: usize) -> (Vec<u8>, Vec<u8>) {
    let sent = ((NTP_FIRST + n as u64 + NTP_EPOCH) as u32).to_be_bytes();
    let mut ask = vec![0; 48];
    ask[..4].copy_from_slice(&[0x23, 0, 6, 0xec]);
    ask[40..44].copy_from_slice(&sent);
    let mut answer = vec![0; 48];
    answer[..4].copy_from_slice(&[0x24, 2, 6, 0xec]);
    for at in [24, 32, 40] {
        answer[at..at + 4].copy_from_slice(&sent);
    }
    (ask, answer)
}

pub(super) fn dhcp(n: usize) -> (Vec<u8>, Vec<u8>) {
    let name = format!("h{n}");
    let message = |op: u8, kind: u8, yours: [u8; 4]| {
        let mut b = vec![op, 1, 6, 0];
        b.extend_from_slice(&(n as u32 + 1).to_be_bytes());
        b.extend_from_slice(&[0; 8]);
        b.extend_from_slice(&yours);
        b.extend_from_slice(&[0; 8]);
        b.extend_from_slice(&[2, 0, 0, 0, 0, 1]);
        b.resize(236, 0);
        b.extend_from_slice(&[99, 130, 83, 99, 53, 1, kind, 12, name.len() as u8]);
        b.extend_from_slice(name.as_bytes());
        b.extend_from_slice(&[54, 4, 10, 0, 0, 1, 51, 4, 0, 0, 14, 16, 255]);
        b
    };
    (message(1, 3, [0; 4]), message(2, 5, [10, 0, 0, 9]))
}

pub(super) fn radius(n: usize) -> (Vec<u8>, Vec<u8>) {
    let packet = |code: u8, attributes: &[u8]| {
        let length = (20 + attributes.len() as u16).to_be_bytes();
        [&[code, n as u8], &length[..], &[7; 16], attributes].concat()
    };
    let user = format!("u{n}");
    let name = [&[1, user.len() as u8 + 2], user.as_bytes()].concat();
    (packet(1, &name), packet(2, &[]))
}

/// The checksum of DNP3's blocks.
fn dnp3_checksum(data: &[u8]) -> [u8; 2] {
    let mut crc = 0u16;
    for byte in data {
        crc ^= u16::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 0 { crc >> 1 } else { crc >> 1 ^ 0xa6bc };
        }
    }
    (!crc).to_le_bytes()
}

/// A frame of DNP3 around less than a block.
fn dnp3_frame(control: u8, user: &[u8]) -> Vec<u8> {
    let mut b = vec![5, 0x64, user.len() as u8 + 5, control, 1, 0, 2, 0];
    b.extend_from_slice(&dnp3_checksum(&b));
    b.extend_from_slice(user);
    b.extend_from_slice(&dnp3_checksum(user));
    b
}

pub(super) fn dnp3(n: usize) -> (Vec<u8>, Vec<u8>) {
    let [high, low] = (n as u16).to_be_bytes();
    // Read class 1; a response without objects.
    let ask = dnp3_frame(0xc4, &[0xc0, 0xc1, 1, 0x3c, 2, 6]);
    (ask, dnp3_frame(0x44, &[0xc0, 0xc1, 0x81, high, low]))
}

/// The number of the `n`-th call's operation, which the endpoint mapper does not have.
pub(super) fn operation(n: usize) -> u16 {
    (1_000 + n % 10_000) as u16
}

/// A packet of DCE-RPC.
fn dce_rpc_packet(kind: u8, call: u32, body: &[u8]) -> Vec<u8> {
    let length = (16 + body.len() as u16).to_le_bytes();
    [&[5, 0, kind, 3, 16, 0, 0, 0], &length[..], &[0, 0], &call.to_le_bytes(), body].concat()
}

/// The endpoint mapper, version 3.
const EPMAPPER: [u8; 20] = [
    0x08, 0x83, 0xaf, 0xe1, 0x1f, 0x5d, 0xc9, 0x11, 0x91, 0xa4, 0x08, 0x00, 0x2b, 0x14, 0xa0, 0xfa,
    3, 0, 0, 0,
];
/// NDR, version 2.
const NDR: [u8; 20] = [
    0x04, 0x5d, 0x88, 0x8a, 0xeb, 0x1c, 0xc9, 0x11, 0x9f, 0xe8, 0x08, 0x00, 0x2b, 0x10, 0x48, 0x60,
    2, 0, 0, 0,
];

pub(super) fn dce_rpc_begin(tcp: &mut Tcp<'_>) {
    let sizes = [0xb8, 0x10, 0xb8, 0x10, 0, 0, 0, 0];
    let bind = [&sizes[..], &[1, 0, 0, 0, 0, 0, 1, 0], &EPMAPPER, &NDR].concat();
    tcp.send(&dce_rpc_packet(11, 1, &bind));
    let ack = [&sizes[..], &[4, 0], b"135\0", &[0, 0], &[1, 0, 0, 0, 0, 0, 0, 0], &NDR].concat();
    tcp.reply(&dce_rpc_packet(12, 1, &ack));
}

pub(super) fn dce_rpc(n: usize) -> (Vec<u8>, Vec<u8>) {
    let call = n as u32 + 2;
    let ask = [&[4, 0, 0, 0, 0, 0], &operation(n).to_le_bytes()[..], &[0; 4]].concat();
    (dce_rpc_packet(0, call, &ask), dce_rpc_packet(2, call, &[4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]))
}

fn wide(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// A message of SMB 2 in its session message.
fn smb2(command: u16, id: u64, tree: u32, is_response: bool, body: &[u8]) -> Vec<u8> {
    let mut m = b"\xfeSMB\x40\0\0\0\0\0\0\0".to_vec();
    m.extend_from_slice(&command.to_le_bytes());
    m.extend_from_slice(&[1, 0, u8::from(is_response), 0, 0, 0, 0, 0, 0, 0]);
    m.extend_from_slice(&id.to_le_bytes());
    m.extend_from_slice(&[0; 4]);
    m.extend_from_slice(&tree.to_le_bytes());
    m.resize(64, 0);
    m.extend_from_slice(body);
    [&(m.len() as u32).to_be_bytes()[..], &m].concat()
}

pub(super) fn smb_begin(tcp: &mut Tcp<'_>) {
    let path = wide("\\\\srv\\share");
    let ask = [&[9, 0, 0, 0, 72, 0, path.len() as u8, 0][..], &path].concat();
    tcp.send(&smb2(3, 1, 0, false, &ask));
    tcp.reply(&smb2(3, 1, 7, true, &[16, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]));
}

pub(super) fn smb(tcp: &mut Tcp<'_>, n: usize) {
    let name = wide(&format!("f{n}.txt"));
    let mut create = vec![57, 0];
    create.resize(44, 0);
    create.extend_from_slice(&[120, 0, name.len() as u8, 0]);
    create.resize(56, 0);
    create.extend_from_slice(&name);
    let file = (n as u64 + 1).to_le_bytes();
    let mut created = vec![89, 0, 0, 0, 1, 0, 0, 0];
    for _ in 0..4 {
        created.extend_from_slice(&131_940_000_000_000_000_u64.to_le_bytes());
    }
    created.resize(48, 0);
    created.push(5);
    created.resize(64, 0);
    created.extend_from_slice(&file);
    created.resize(88, 0);
    let mut close = vec![24, 0, 0, 0, 0, 0, 0, 0];
    close.extend_from_slice(&file);
    close.resize(24, 0);
    let mut closed = vec![60, 0];
    closed.resize(60, 0);
    let id = 2 * n as u64 + 2;
    tcp.send(&smb2(5, id, 7, false, &create));
    tcp.reply(&smb2(5, id, 7, true, &created));
    tcp.send(&smb2(6, id + 1, 7, false, &close));
    tcp.reply(&smb2(6, id + 1, 7, true, &closed));
}
