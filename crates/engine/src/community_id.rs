//! Community ID, version 1: a flow identifier shared by several network analysis tools.
//!
//! The base64 encoding of the SHA-1 of seed, addresses, protocol and ports, lower endpoint first,
//! as specified for the Community ID flow hash (Corelight, version 1).

use gannet_base::Addr;
use gannet_base::ConnId;
use gannet_base::Proto;
use gannet_flow::Conn;
use sha1::Digest;
use sha1::Sha1;

/// The IP protocol number of SCTP.
const SCTP: u8 = 132;

/// The Community ID of a connection.
///
/// The specification hashes SCTP's ports. Connections do not record them: zeros are hashed, as in
/// Zeek.
pub(crate) fn community_id(conn: &Conn, seed: u16) -> String {
    compute(&conn.id, conn.proto, conn.ip_proto, seed)
}

/// The Community ID of a connection, computed from the columns of its row in conn.log; `None` if
/// `proto` is unknown.
pub fn community_id_of(id: &ConnId, proto: &str, seed: u16) -> Option<String> {
    let (proto, number) = match proto {
        "tcp" => (Proto::Tcp, gannet_wire::protocol::TCP),
        "udp" => (Proto::Udp, gannet_wire::protocol::UDP),
        "icmp" if is_v4(id.orig_h) => (Proto::Icmp, gannet_wire::protocol::ICMP),
        "icmp" => (Proto::Icmp, gannet_wire::protocol::ICMP6),
        _ => return None,
    };
    Some(compute(id, proto, number, seed))
}

fn compute(id: &ConnId, proto: Proto, ip_proto: u8, seed: u16) -> String {
    let (mut from, mut to) = ((id.orig_h, id.orig_p), (id.resp_h, id.resp_p));
    if from > to && !is_one_way(id, proto) {
        (from, to) = (to, from);
    }
    let mut hash = Sha1::new();
    hash.update(seed.to_be_bytes());
    for addr in [from.0, to.0] {
        match addr.as_v4() {
            Some(v4) => hash.update(v4),
            None => hash.update(addr.octets()),
        }
    }
    hash.update([ip_proto, 0]);
    if proto != Proto::Unknown || ip_proto == SCTP {
        hash.update(from.1.to_be_bytes());
        hash.update(to.1.to_be_bytes());
    }
    let mut out = String::from("1:");
    base64(&hash.finalize(), &mut out);
    out
}

/// Whether the connection consists of ICMP messages without a reply. Then type and code keep the
/// order of the packet; for messages with a reply, the two ports are the types of request and
/// reply.
fn is_one_way(id: &ConnId, proto: Proto) -> bool {
    const V4: [(u16, u16); 5] = [(8, 0), (13, 14), (15, 16), (10, 9), (17, 18)];
    const V6: [(u16, u16); 7] =
        [(128, 129), (133, 134), (135, 136), (130, 131), (139, 140), (144, 145), (146, 147)];
    let pairs: &[_] = if is_v4(id.orig_h) { &V4 } else { &V6 };
    let (a, b) = (id.orig_p, id.resp_p);
    proto == Proto::Icmp && !pairs.iter().any(|p| *p == (a, b) || *p == (b, a))
}

fn is_v4(addr: Addr) -> bool {
    addr.as_v4().is_some()
}

fn base64(bytes: &[u8], out: &mut String) {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for part in bytes.chunks(3) {
        let word = part.iter().fold(0u32, |w, b| w << 8 | u32::from(*b)) << (8 * (3 - part.len()));
        for i in 0..4 {
            let digit = DIGITS[(word >> (18 - 6 * i) & 63) as usize];
            out.push(if i > part.len() { '=' } else { char::from(digit) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gannet_base::Time;
    use gannet_base::UidSource;

    fn conn(proto: (Proto, u8), from: (Addr, u16), to: (Addr, u16)) -> Conn {
        let id = ConnId { orig_h: from.0, orig_p: from.1, resp_h: to.0, resp_p: to.1 };
        let uid = UidSource::new(0).connection(1, 0);
        Conn::new(uid, id, proto.0, proto.1, Time::from_secs(1))
    }

    #[test]
    fn published_examples() {
        let (a, b) = ((Addr::v4([128, 232, 110, 120]), 34855), (Addr::v4([66, 35, 250, 204]), 80));
        for conn in [conn((Proto::Tcp, 6), a, b), conn((Proto::Tcp, 6), b, a)] {
            assert_eq!(community_id(&conn, 0), "1:LQU9qZlK+B5F3KDmev6m5PMibrg=");
            assert_eq!(community_id_of(&conn.id, "tcp", 0), Some(community_id(&conn, 0)));
            assert_eq!(community_id(&conn, 1), "1:3V71V58M3Ksw/yuFALMcW0LAHvc=");
        }
        let (a, b) = ((Addr::v4([192, 168, 1, 52]), 54585), (Addr::v4([8, 8, 8, 8]), 53));
        let dns = conn((Proto::Udp, 17), a, b);
        assert_eq!(community_id(&dns, 0), "1:d/FP5EW3wiY1vCndhwleRRKHowQ=");
        let (a, b) = (Addr::v4([10, 1, 12, 1]), Addr::v4([10, 1, 12, 2]));
        for (a, b) in [(a, b), (b, a)] {
            let rsvp = conn((Proto::Unknown, 46), (a, 0), (b, 0));
            assert_eq!(community_id(&rsvp, 0), "1:KHlLkgoJW7ifUTyTSgyVfkFHzKw=");
        }
    }

    #[test]
    fn published_examples_of_icmp() {
        let (a, b) = (Addr::v4([192, 168, 0, 89]), Addr::v4([192, 168, 0, 1]));
        for echo in [conn((Proto::Icmp, 1), (a, 8), (b, 0)), conn((Proto::Icmp, 1), (b, 0), (a, 8))]
        {
            assert_eq!(community_id(&echo, 0), "1:X0snYXpgwiv9TZtqg64sgzUn6Dk=");
        }
        let (a, b) = (Addr::v4([10, 0, 0, 1]), Addr::v4([10, 0, 0, 2]));
        let late = conn((Proto::Icmp, 1), (a, 11), (b, 0));
        assert_eq!(community_id(&late, 0), "1:YHxtAirCG//0OzkcVAukqKQN9xM=");
        let v6 = |a: [u16; 8]| Addr::v6(std::net::Ipv6Addr::from(a).octets());
        let a = v6([0x3ffe, 0x507, 0, 1, 0x200, 0x86ff, 0xfe05, 0x80da]);
        let b = v6([0x3ffe, 0x501, 0x410, 0, 0x2c0, 0xdfff, 0xfe47, 0x33e]);
        let unreachable = conn((Proto::Icmp, 58), (b, 1), (a, 4));
        assert_eq!(community_id(&unreachable, 0), "1:hLZd0XGWojozrvxqE0dWB1iM6R0=");
        let b = v6([0x3ffe, 0x501, 0, 0x1001, 0, 0, 0, 2]);
        let echo = conn((Proto::Icmp, 58), (a, 128), (b, 129));
        assert_eq!(community_id(&echo, 0), "1:+TW+HtLHvV1xnGhV1lv7XoJrqQg=");
    }

    #[test]
    fn sctp_has_ports_of_zero() {
        let (a, b) = (Addr::v4([192, 168, 170, 8]), Addr::v4([192, 168, 170, 56]));
        let sctp = conn((Proto::Unknown, 132), (a, 0), (b, 0));
        assert_eq!(community_id(&sctp, 0), "1:U5cVwrVgLshgANPmc8hKzEcqp1M=");
    }
}
