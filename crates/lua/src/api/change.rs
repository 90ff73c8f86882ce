//! Packets with other addresses, ports or payload.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::ffi::c_char;

use gannet_base::Addr;
use gannet_wire::Datagram;
use gannet_wire::Decoded;
use gannet_wire::Ip;
use gannet_wire::Transport;
use gannet_wire::checksum::Sum;
use gannet_wire::protocol;

use super::fail;
use super::record::Record;
use super::text;

/// The C declarations of [`ChangeRequest`]; a value that is null or below 0 is not changed.
pub(crate) const DECLARATIONS: &str = "
typedef struct {
    const char *src, *dst;
    int32_t sport, dport;
    const char *payload;
    uint32_t payload_len;
} gannet_change;
";

/// A change, as Lua passes it.
#[repr(C)]
pub(crate) struct ChangeRequest {
    src: *const c_char,
    dst: *const c_char,
    sport: i32,
    dport: i32,
    payload: *const u8,
    payload_len: u32,
}

/// The requested values of a packet; `None` keeps the value.
#[derive(Clone, Copy, Debug, Default)]
struct Change<'a> {
    src: Option<Addr>,
    dst: Option<Addr>,
    sport: Option<u16>,
    dport: Option<u16>,
    payload: Option<&'a [u8]>,
}

/// Offsets of addresses in the IP headers, and their length.
const V4: (usize, usize, usize) = (12, 16, 4);
const V6: (usize, usize, usize) = (8, 24, 16);
/// Bytes of the IPv6 header, which its length does not include.
const IPV6_HEADER: usize = 40;

thread_local! {
    static CHANGED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Creates a changed copy of a packet; returns its length in bytes, or -1.
///
/// # Safety
/// `record` is the record of a packet whose bytes are valid. Texts and payload of `request` are
/// valid for the call; `out` and `wire_len` are valid for writes. The bytes are valid until the
/// next call in the same thread.
pub(crate) unsafe extern "C" fn packet_with(
    record: *const Record,
    request: *const ChangeRequest,
    out: *mut *const u8,
    wire_len: *mut u32,
) -> i64 {
    // SAFETY: by this function's contract.
    let (record, request) = unsafe { (&*record, &*request) };
    let data = std::ptr::with_exposed_provenance::<u8>(record.bytes);
    // SAFETY: by this function's contract.
    let data = unsafe { std::slice::from_raw_parts(data, record.len as usize) };
    let address = |at: *const c_char| {
        // SAFETY: by this function's contract.
        let Some(text) = (unsafe { text(at) }) else { return Ok(None) };
        text.parse().map(Some).map_err(|_| format!("'{text}' is not an address"))
    };
    let port = |port: i32| u16::try_from(port).ok();
    let payload = (!request.payload.is_null()).then(|| {
        // SAFETY: by this function's contract.
        unsafe { std::slice::from_raw_parts(request.payload, request.payload_len as usize) }
    });
    let made = || {
        let change = Change {
            src: address(request.src)?,
            dst: address(request.dst)?,
            sport: port(request.sport),
            dport: port(request.dport),
            payload,
        };
        changed(record.link_type, data, record.wire_len, &change)
    };
    match made() {
        Ok((bytes, len)) => CHANGED.with(|changed| {
            let mut changed = changed.borrow_mut();
            *changed = bytes;
            // SAFETY: by this function's contract.
            unsafe {
                out.write(changed.as_ptr());
                wire_len.write(len);
            }
            changed.len() as i64
        }),
        Err(why) => {
            fail(&why);
            -1
        }
    }
}

/// The bytes of a changed packet, with its length on the wire.
fn changed(
    link_type: u16,
    data: &[u8],
    wire_len: u32,
    change: &Change<'_>,
) -> Result<(Vec<u8>, u32), String> {
    let decoded = gannet_wire::decode(link_type, data, wire_len);
    let Some(Datagram { ip, transport }) = decoded.as_ref().ok().and_then(Decoded::datagram) else {
        return Err("the packet has no IP header".to_owned());
    };
    let (src_at, dst_at, len) = if ip.version == 4 { V4 } else { V6 };
    let at = offset(data, ip.header).ok_or("the IP header is not in the packet")?;
    let upper = at + ip.header.len();
    let mut out = data.to_vec();
    // The old and the new words of the checksum's input.
    let mut old = Vec::new();
    let mut new = Vec::new();
    for (address, present, place) in [(change.src, ip.src, src_at), (change.dst, ip.dst, dst_at)] {
        let Some(address) = address else { continue };
        if address.is_v4() != (ip.version == 4) {
            return Err(format!("the packet is IPv{}, {address} is not", ip.version));
        }
        let bytes = |address: Addr| match address.as_v4() {
            Some(bytes) => bytes.to_vec(),
            None => address.octets().to_vec(),
        };
        let field =
            out.get_mut(at + place..at + place + len).ok_or("the IP header is truncated")?;
        if field != bytes(present) {
            return Err("the address is in an extension header".to_owned());
        }
        old.extend_from_slice(field);
        field.copy_from_slice(&bytes(address));
        new.extend_from_slice(field);
    }
    let (src, dst) = (change.src.unwrap_or(ip.src), change.dst.unwrap_or(ip.dst));
    for (port, place) in [(change.sport, upper), (change.dport, upper + 2)] {
        let Some(port) = port else { continue };
        if transport.ports().is_none() {
            return Err("the packet has no ports".to_owned());
        }
        let field = out.get_mut(place..place + 2).ok_or("the transport header is truncated")?;
        old.extend_from_slice(field);
        field.copy_from_slice(&port.to_be_bytes());
        new.extend_from_slice(field);
    }
    let mut wire = wire_len;
    // Length of transport header and payload, which the checksum covers, if the packet has all of
    // them.
    let mut whole =
        (ip.fragment.is_none() && ip.is_complete()).then(|| ip.transport_len() as usize);
    if let Some(payload) = change.payload {
        whole = Some(replace_payload(&mut out, (at, upper), ip, transport, payload)?);
        wire = out.len() as u32;
    }
    if ip.version == 4
        && let Some(header) = out.get_mut(at..upper)
    {
        header[10..12].fill(0);
        let mut sum = Sum::default();
        sum.add(header);
        header[10..12].copy_from_slice(&sum.checksum());
    }
    let place = match transport {
        Transport::Tcp(_) => upper + 16,
        Transport::Udp(_) => upper + 6,
        Transport::Icmp(_) if ip.protocol == protocol::ICMP6 => upper + 2,
        _ => return Ok((out, wire)),
    };
    let Some(field) = out.get(place..place + 2) else { return Ok((out, wire)) };
    let present = [field[0], field[1]];
    // The checksum is optional for UDP over IPv4.
    let is_udp = matches!(transport, Transport::Udp(_));
    if is_udp && present == [0, 0] && ip.version == 4 {
        return Ok((out, wire));
    }
    let mut sum = Sum::default();
    match whole.filter(|len| out.len() >= upper + len) {
        Some(len) => {
            out[place..place + 2].fill(0);
            sum.add_pseudo(src, dst, ip.protocol, len as u32);
            sum.add(&out[upper..upper + len]);
        }
        // RFC 1624: HC' = ~(~HC + ~m + m').
        None => {
            sum.add(&present.map(|byte| !byte));
            sum.add(&old.iter().map(|byte| !byte).collect::<Vec<_>>());
            sum.add(&new);
        }
    }
    let checksum = match sum.checksum() {
        [0, 0] if is_udp => [0xff, 0xff],
        checksum => checksum,
    };
    out[place..place + 2].copy_from_slice(&checksum);
    Ok((out, wire))
}

/// Replaces the payload of TCP or UDP, with the lengths in the headers before it. Returns the
/// length of transport header and payload. Bytes after the datagram, such as padding, are dropped.
fn replace_payload(
    out: &mut Vec<u8>,
    (at, upper): (usize, usize),
    ip: &Ip<'_>,
    transport: &Transport<'_>,
    payload: &[u8],
) -> Result<usize, String> {
    let Some(present) = transport.payload().filter(|_| ip.fragment.is_none()) else {
        return Err("the payload can be changed only in complete TCP and UDP packets".to_owned());
    };
    let header = offset(ip.payload, present).unwrap_or(ip.payload.len());
    let len = header + payload.len();
    let is_same = ip.is_complete() && len == ip.transport_len() as usize;
    // The EtherType of Ethernet and of Linux cooked headers, or no header: then no length field
    // precedes IP.
    let kind = at.checked_sub(2).and_then(|kind| out.get(kind..at));
    if !is_same && !matches!(kind, None | Some([0x08, 0x00] | [0x86, 0xdd])) {
        return Err(
            "the link layer may contain a length, so the payload must keep its length".to_owned()
        );
    }
    let total = upper - at + len;
    let field = if ip.version == 4 { total } else { total - IPV6_HEADER };
    let too_long = |_| format!("a payload of {} bytes is too long", payload.len());
    let field = u16::try_from(field).map_err(too_long)?.to_be_bytes();
    out.truncate(upper + header);
    out.extend_from_slice(payload);
    let place = if ip.version == 4 { at + 2 } else { at + 4 };
    out[place..place + 2].copy_from_slice(&field);
    if matches!(transport, Transport::Udp(_)) {
        let field = u16::try_from(len).map_err(too_long)?.to_be_bytes();
        out[upper + 4..upper + 6].copy_from_slice(&field);
    }
    Ok(len)
}

/// Offset of `part` in `whole`; `None` if it is not a part of it.
fn offset(whole: &[u8], part: &[u8]) -> Option<usize> {
    let at = (part.as_ptr() as usize).checked_sub(whole.as_ptr() as usize)?;
    (at + part.len() <= whole.len()).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gannet_wire::Checksum;
    use gannet_wire::checksum;
    use std::net::SocketAddr;

    const RAW: u16 = 101;
    const ETHERNET: u16 = 1;

    fn udp(src: &str, dst: &str, payload: &[u8]) -> Vec<u8> {
        let (src, dst): (SocketAddr, SocketAddr) = (src.parse().unwrap(), dst.parse().unwrap());
        gannet_synth::frame::udp(src, dst, 7, payload)
    }

    /// Source, destination, ports, payload; all checksums must be correct.
    fn parts(data: &[u8]) -> (String, String, (u16, u16), Vec<u8>) {
        let decoded = gannet_wire::decode(ETHERNET, data, data.len() as u32).unwrap();
        let Datagram { ip, transport } = decoded.datagram().unwrap();
        assert!(ip.version == 6 || checksum::fits(ip.header));
        let sum = match transport {
            Transport::Tcp(_) => checksum::tcp(ip),
            _ => checksum::udp(ip),
        };
        assert_eq!(sum, Checksum::Valid);
        let (src, dst) = (ip.src.to_string(), ip.dst.to_string());
        (src, dst, transport.ports().unwrap(), transport.payload().unwrap().to_vec())
    }

    fn with(data: &[u8], change: Change<'_>) -> Result<Vec<u8>, String> {
        let (bytes, wire_len) = changed(ETHERNET, data, data.len() as u32, &change)?;
        assert_eq!(wire_len as usize, bytes.len());
        Ok(bytes)
    }

    #[test]
    fn addresses_and_ports_change_with_their_checksums() {
        let src = Some("10.9.8.7".parse().unwrap());
        let dst = Some("10.1.1.1".parse().unwrap());
        let change = Change { src, dst, sport: Some(1), dport: Some(65_535), payload: None };
        let made = with(&udp("192.0.2.1:4000", "192.0.2.2:53", b"odd"), change).unwrap();
        let expected = ("10.9.8.7".to_owned(), "10.1.1.1".to_owned(), (1, 65_535), b"odd".to_vec());
        assert_eq!(parts(&made), expected);
        let src = Some("fd00::1".parse().unwrap());
        let made = with(
            &udp("[2001:db8::1]:4000", "[2001:db8::2]:53", b"odd"),
            Change { src, ..Change::default() },
        )
        .unwrap();
        assert_eq!(parts(&made).0, "fd00::1");
    }

    #[test]
    fn a_payload_changes_with_all_lengths() {
        for (src, dst) in
            [("192.0.2.1:4000", "192.0.2.2:53"), ("[2001:db8::1]:4000", "[2001:db8::2]:53")]
        {
            // Ethernet padding is dropped.
            let data = [&udp(src, dst, b"payload")[..], &[0; 9]].concat();
            for payload in [&b""[..], b"x", b"much longer than it was"] {
                let made =
                    with(&data, Change { payload: Some(payload), ..Change::default() }).unwrap();
                assert_eq!(parts(&made).3, payload);
            }
            let long = vec![0; 65_536];
            let error = with(&data, Change { payload: Some(&long), ..Change::default() });
            assert_eq!(error.unwrap_err(), "a payload of 65536 bytes is too long");
        }
    }

    #[test]
    fn a_truncated_packet_keeps_a_correct_checksum() {
        let data = udp("192.0.2.1:4000", "192.0.2.2:53", b"some payload");
        let src = Some("203.0.113.9".parse().unwrap());
        let change = Change { src, dport: Some(5300), ..Change::default() };
        let whole = with(&data, change).unwrap();
        let cut = data.len() - 5;
        let (made, wire_len) = changed(ETHERNET, &data[..cut], data.len() as u32, &change).unwrap();
        assert_eq!((&made[..], wire_len as usize), (&whole[..cut], data.len()));
    }

    #[test]
    fn a_wrong_checksum_is_corrected_and_none_stays_none() {
        let mut data = udp("192.0.2.1:4000", "192.0.2.2:53", b"x");
        data[40] ^= 1;
        parts(&with(&data, Change::default()).unwrap());
        data[40..42].fill(0);
        let made = with(&data, Change { sport: Some(1), ..Change::default() }).unwrap();
        assert_eq!(made[40..42], [0, 0]);
    }

    #[test]
    fn impossible_changes_are_errors() {
        let data = udp("192.0.2.1:4000", "192.0.2.2:53", b"x");
        let src = Some("fd00::1".parse().unwrap());
        let error = with(&data, Change { src, ..Change::default() }).unwrap_err();
        assert_eq!(error, "the packet is IPv4, fd00::1 is not");
        let arp = [&[2; 12][..], b"\x08\x06", &[0; 28]].concat();
        assert_eq!(with(&arp, Change::default()).unwrap_err(), "the packet has no IP header");
        // The second fragment of a datagram has an address, and neither ports nor payload.
        let mut fragment = data.clone();
        fragment[21] = 1;
        let src = Some("10.0.0.1".parse().unwrap());
        let made = with(&fragment, Change { src, ..Change::default() }).unwrap();
        assert!(checksum::fits(&made[14..34]) && made[34..] == fragment[34..]);
        for change in [
            Change { sport: Some(1), ..Change::default() },
            Change { payload: Some(b""), ..Change::default() },
        ] {
            assert!(with(&fragment, change).is_err());
        }
        let raw = changed(RAW, &data[14..], 31, &Change { sport: Some(2), ..Change::default() });
        assert_eq!(raw.unwrap().0[20..22], [0, 2]);
    }
}
