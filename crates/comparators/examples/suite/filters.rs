//! The filters: those of the published studies, real ones, and lists.

/// Names and expressions.
pub(crate) fn all() -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = FIXED
        .iter()
        .map(|(name, expression)| ((*name).to_owned(), (*expression).to_owned()))
        .collect();
    let host = |i: usize| format!("10.{}.{}.{}", i / 200 % 250, i % 200, 7 * i % 251);
    let list = |n, f: &dyn Fn(usize) -> String| (0..n).map(f).collect::<Vec<_>>().join(" or ");
    for n in [10, 100, 1_000, 10_000] {
        all.push((format!("L1-{n}"), list(n, &|i| format!("host {}", host(i)))));
    }
    for n in [16, 256, 4_096] {
        all.push((format!("L2-{n}"), list(n, &|i| format!("tcp port {}", 13 * i + 80))));
    }
    all.push(("L3".into(), format!("not ({})", list(300, &|i| format!("host {}", host(i))))));
    for n in [100, 600] {
        let pair = |i| format!("(host {} and port {})", host(i), 1024 + i);
        all.push((format!("L4-{n}"), list(n, &pair)));
    }
    all.push(("L5".into(), list(1_000, &|i| format!("src net 10.{}.{}.0/24", i / 250, i % 250))));
    all.push(("L6".into(), list(200, &|i| format!("host 2001:db8::{:x}:{:x}", i, 7 * i))));
    all
}

const FIXED: [(&str, &str); 27] = [
    ("S1", "src net 10.0.0.0/8 or (dst net 127.0.0.1 and port 22) or src net 2001:470::/28"),
    ("S2", "(tcp and portrange 0-1024) or (udp and portrange 1025-2048)"),
    ("S3", "tcp[20:1] > 65 and tcp[20:1] < 90"),
    ("S4", "net 10.0.0.0/8 or net 2001:470::/28 or port 22 or tcp or udp or portrange 0-1024"),
    (
        "S5",
        "((ether[0:4] & 0xFFFFFF00) = 0x00505600 or (ether[6:4] & 0xFFFFFF00) = 0x00505600) and \
         ((ether[0:4] & 0xFFFFFF00) = 0x001B0D00 or (ether[6:4] & 0xFFFFFF00) = 0x001B0D00)",
    ),
    ("P1", ""),
    ("P2", "ip"),
    ("P3", "tcp"),
    ("P4", "icmp"),
    ("P5", "tcp port 5555"),
    ("P6", "tcp src port 80"),
    ("P7", "portrange 0-6000"),
    ("P8", "portrange 0-5"),
    ("P9", "src net 178.79.150.0/24"),
    ("P10", "host 178.79.150.233"),
    ("P11", "host 178.79.150.234"),
    ("P12", "net 178.79.150.0/24"),
    ("P13", "net 178.79.151.0/24"),
    ("M1", "tcp port 80 and (((ip[2:2] - ((ip[0]&0xf)<<2)) - ((tcp[12]&0xf0)>>2)) != 0)"),
    ("M2", "tcp[tcpflags] & (tcp-syn|tcp-fin) != 0 and not src and dst net 192.168.0.0/16"),
    (
        "M3",
        "tcp dst port 443 and (tcp[((tcp[12:1] & 0xf0) >> 2)+5:1] = 0x01) and \
         (tcp[((tcp[12:1] & 0xf0) >> 2):1] = 0x16)",
    ),
    ("M4", "ip6 protochain 6"),
    ("M5", "vlan 100 and tcp port 80"),
    ("M6v", "vxlan 7 and ip and tcp port 80"),
    ("M6g", "geneve and udp port 53"),
    (
        "M7",
        "icmp or (udp and not (port 4500 or (host 10.0.0.1 and port (514 or 1900 or 161)) or \
         (dst host 10.0.0.2 and port 53))) or not (arp or ip)",
    ),
    ("H3", "tcp port 80"),
];
