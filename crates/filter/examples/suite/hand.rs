//! Filters written by hand, as somebody would who has no filter language.

type Hand = fn(&[u8], usize) -> bool;

/// The function for a filter, where there is one.
pub(crate) fn of(name: &str) -> Option<Hand> {
    match name {
        "S1" => Some(post_1),
        "S2" => Some(post_2),
        "H3" => Some(tcp_port_80),
        _ => None,
    }
}

fn half(p: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([p[at], p[at + 1]])
}

fn word(p: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([p[at], p[at + 1], p[at + 2], p[at + 3]])
}

/// The ports of TCP, UDP or SCTP in a first fragment of IPv4.
#[inline(always)]
fn ports_v4(p: &[u8]) -> Option<(u16, u16)> {
    if half(p, 20) & 0x1fff != 0 {
        return None;
    }
    let at = 14 + usize::from(p[14] & 15) * 4;
    let ports = p.get(at..at + 4)?;
    Some((half(ports, 0), half(ports, 2)))
}

#[inline(never)]
fn tcp_port_80(p: &[u8], len: usize) -> bool {
    if len < 34 {
        return false;
    }
    match half(p, 12) {
        0x0800 => {
            p[23] == 6
                && matches!(ports_v4(p), Some((source, target)) if source == 80 || target == 80)
        }
        0x86dd => len >= 58 && p[20] == 6 && (half(p, 54) == 80 || half(p, 56) == 80),
        _ => false,
    }
}

#[inline(never)]
fn post_1(p: &[u8], len: usize) -> bool {
    if len < 30 {
        return false;
    }
    match half(p, 12) {
        0x0800 => {
            if p[26] == 10 {
                return true;
            }
            len >= 34
                && word(p, 30) == 0x7f00_0001
                && matches!(p[23], 6 | 17 | 132)
                && matches!(ports_v4(p), Some((source, target)) if source == 22 || target == 22)
        }
        0x0806 | 0x8035 => len >= 32 && p[28] == 10,
        0x86dd => word(p, 22) & 0xffff_fff0 == 0x2001_0470,
        _ => false,
    }
}

#[inline(never)]
fn post_2(p: &[u8], len: usize) -> bool {
    if len < 34 {
        return false;
    }
    let (proto, source, target) = match half(p, 12) {
        0x0800 => match (p[23], ports_v4(p)) {
            (proto @ (6 | 17), Some((source, target))) => (proto, source, target),
            _ => return false,
        },
        0x86dd if len >= 58 => (p[20], half(p, 54), half(p, 56)),
        _ => return false,
    };
    let wanted = if proto == 6 { 0..=1024 } else { 1025..=2048 };
    matches!(proto, 6 | 17) && (wanted.contains(&source) || wanted.contains(&target))
}
