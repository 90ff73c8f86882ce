use gannet_base::Addr;

use crate::text::LineBuffer;
use crate::text::Sink;

/// Numbers below this are converted by multiplications of all digits in parallel.
const EIGHT_DIGITS: u64 = 100_000_000;

/// Eight decimal digits of a number below 10^8, most significant in the lowest byte, each 0 to 9.
///
/// Splits halves, quarters and eighths by multiplications with reciprocals, in all lanes in parallel.
#[inline]
fn eight_digits(v: u32) -> u64 {
    let (high, low) = (u64::from(v / 10_000), u64::from(v % 10_000));
    let halves = high | low << 32;
    let hundreds = (halves * 10_486) >> 20 & 0x0000_007f_0000_007f;
    let pairs = hundreds | (halves - 100 * hundreds) << 16;
    let tens = (pairs * 103) >> 10 & 0x000f_000f_000f_000f;
    tens | (pairs - 10 * tens) << 8
}

/// Converts numbers 0 to 9 in eight bytes to ASCII digits.
const ASCII: u64 = 0x3030_3030_3030_3030;

/// The text of each number below a thousand, with its length in the last byte.
static THREE_DIGITS: [[u8; 4]; 1_000] = {
    let mut all = [[0; 4]; 1_000];
    let mut i = 0;
    while i < all.len() {
        let (a, b, c) = (b'0' + (i / 100) as u8, b'0' + (i / 10 % 10) as u8, b'0' + (i % 10) as u8);
        all[i] = match i {
            0..10 => [c, 0, 0, 1],
            10..100 => [b, c, 0, 2],
            _ => [a, b, c, 3],
        };
        i += 1;
    }
    all
};

/// Three digits of each number below a thousand, followed by a tab.
static PADDED: [[u8; 4]; 1_000] = {
    let mut all = [[b'\t'; 4]; 1_000];
    let mut i = 0;
    while i < all.len() {
        (all[i][0], all[i][1]) = (b'0' + (i / 100) as u8, b'0' + (i / 10 % 10) as u8);
        all[i][2] = b'0' + (i % 10) as u8;
        i += 1;
    }
    all
};

/// The lowest three digits of a number, followed by a tab.
#[inline(always)]
fn padded(v: u64) -> [u8; 4] {
    PADDED[(v % 1_000) as usize]
}

/// The decimal point and six digits of a number below a million, followed by a tab.
#[inline(always)]
fn fraction(v: u64) -> u64 {
    let four = |v| u64::from(u32::from_le_bytes(padded(v)));
    u64::from(b'.') | (four(v / 1_000) & 0x00ff_ffff) << 8 | four(v) << 32
}

/// Appends microseconds as seconds, without trailing zeros except for one after the decimal point if there is no other
/// digit.
#[inline(always)]
pub(crate) fn write_shortest6<S: Sink>(out: &mut S, us: u64) {
    let decimals = fraction(us % 1_000_000);
    let digits = (decimals >> 8 ^ ASCII) & 0xffff_ffff_ffff;
    let len = (8 - digits.leading_zeros() as usize / 8).max(1);
    if (1_000_000_000_000_000..10_000_000_000_000_000).contains(&us) {
        // Times from 2001 on.
        return out.put(date(us), 11 + len);
    }
    write_count(out, us / 1_000_000);
    out.put(decimals.to_le_bytes(), 1 + len);
}

/// Appends a decimal number.
#[inline(always)]
pub fn write_count<S: Sink>(out: &mut S, v: u64) {
    write_digits::<false, S>(out, v);
}

/// Like [`write_count`], followed by a tab.
#[inline(always)]
pub(crate) fn write_count_tab<S: Sink>(out: &mut S, v: u64) {
    write_digits::<true, S>(out, v);
}

#[inline(always)]
fn write_digits<const TAB: bool, S: Sink>(out: &mut S, v: u64) {
    if let Some(text) = LAST_SMALL.get(v as usize) {
        out.put(*text, usize::from(THREE_DIGITS[v as usize][3]) + usize::from(TAB));
    } else if let Some(text) = THREE_DIGITS.get((v / 1_000) as usize) {
        out.put(*text, usize::from(text[3]));
        out.put(padded(v), 3 + usize::from(TAB));
    } else {
        if v < EIGHT_DIGITS {
            let digits = eight_digits(v as u32);
            let zeros = digits.trailing_zeros() / 8;
            out.put(((digits | ASCII) >> (8 * zeros)).to_le_bytes(), 8 - zeros as usize);
        } else {
            let (text, len) = long(v);
            out.put(text, len);
        }
        if TAB {
            out.put([b'\t'], 1);
        }
    }
}

/// The text of a number with more than eight digits, and its length.
#[inline(never)]
fn long(v: u64) -> ([u8; 24], usize) {
    let mut all = [0; 24];
    let groups =
        [v / EIGHT_DIGITS / EIGHT_DIGITS, v / EIGHT_DIGITS % EIGHT_DIGITS, v % EIGHT_DIGITS];
    for (text, group) in all.as_chunks_mut::<8>().0.iter_mut().zip(groups) {
        *text = (eight_digits(group as u32) | ASCII).to_le_bytes();
    }
    let zeros = all.iter().take_while(|c| **c == b'0').count();
    all.copy_within(zeros.., 0);
    (all, 24 - zeros)
}

/// Appends nanoseconds as seconds with six decimals, truncated (not rounded) to the microsecond.
#[inline(always)]
pub fn write_fixed6<S: Sink>(out: &mut S, ns: i64) {
    write_seconds::<false, S>(out, ns);
}

/// Like [`write_fixed6`], followed by a tab.
#[inline(always)]
pub(crate) fn write_fixed6_tab<S: Sink>(out: &mut S, ns: i64) {
    write_seconds::<true, S>(out, ns);
}

#[inline(always)]
fn write_seconds<const TAB: bool, S: Sink>(out: &mut S, ns: i64) {
    let tab = usize::from(TAB);
    match ns {
        // Most intervals.
        0..1_000_000_000 => {
            let text = u128::from(fraction(ns as u64 / 1_000)) << 8 | u128::from(b'0');
            out.put(text.to_le_bytes(), 8 + tab);
        }
        // Times from 2001 on.
        1_000_000_000_000_000_000.. => {
            let us = ns as u64 / 1_000;
            out.put(date(us), 17 + tab);
        }
        // Longer intervals, such as times to live.
        1_000_000_000.. => {
            let us = ns as u64 / 1_000;
            write_count(out, us / 1_000_000);
            out.put(fraction(us % 1_000_000).to_le_bytes(), 7 + tab);
        }
        _ => {
            let (text, len) = any_fixed6(ns);
            out.put(text, len);
            if TAB {
                out.put([b'\t'], 1);
            }
        }
    }
}

/// Microseconds of sixteen digits as seconds: ten digits, the decimal point, six digits, and a tab.
#[inline(always)]
fn date(us: u64) -> [u8; 24] {
    let (seconds, us) = (us / 1_000_000, us % 1_000_000);
    let mut text = [0; 24];
    text[0] = b'0' + (seconds / 1_000_000_000) as u8;
    text[1..5].copy_from_slice(&padded(seconds / 1_000_000));
    text[4..8].copy_from_slice(&padded(seconds / 1_000));
    text[7..11].copy_from_slice(&padded(seconds));
    text[10..18].copy_from_slice(&fraction(us).to_le_bytes());
    text
}

/// The text of any nanoseconds as seconds with six decimals, and its length.
#[inline(never)]
fn any_fixed6(ns: i64) -> ([u8; 48], usize) {
    let us = ns / 1_000;
    let mut bytes = [0; 48];
    let mut text = LineBuffer::new(&mut bytes);
    if us < 0 {
        text.put([b'-'], 1);
    }
    let us = us.unsigned_abs();
    write_count(&mut text, us / 1_000_000);
    text.put(fraction(us % 1_000_000).to_le_bytes(), 7);
    let len = text.written().unwrap_or_default();
    (bytes, len)
}

/// The text of each byte, followed by a point.
static PARTS: [[u8; 4]; 256] = {
    let mut all = [[b'.'; 4]; 256];
    let mut i = 0;
    while i < all.len() {
        let text = THREE_DIGITS[i];
        let mut at = 0;
        while at < text[3] as usize {
            all[i][at] = text[at];
            at += 1;
        }
        i += 1;
    }
    all
};

/// The text of each byte, followed by a tab.
static LAST_PARTS: [[u8; 4]; 256] = {
    let mut all = PARTS;
    let mut i = 0;
    while i < all.len() {
        all[i][THREE_DIGITS[i][3] as usize] = b'\t';
        i += 1;
    }
    all
};

/// The text of each number below a thousand, followed by a tab.
static LAST_SMALL: [[u8; 4]; 1_000] = {
    let mut all = THREE_DIGITS;
    let mut i = 0;
    while i < all.len() {
        all[i][THREE_DIGITS[i][3] as usize] = b'\t';
        i += 1;
    }
    all
};

/// Length of each text in [`PARTS`], including the point.
static PART_LENGTHS: [u8; 256] = {
    let mut all = [0; 256];
    let mut i = 0;
    while i < all.len() {
        all[i] = THREE_DIGITS[i][3] + 1;
        i += 1;
    }
    all
};

/// Appends an address as `inet_ntop` prints it.
#[inline(always)]
pub fn write_addr<S: Sink>(out: &mut S, a: Addr) {
    let Some(parts) = a.as_v4() else {
        let (text, len) = v6(a.octets());
        return out.put(text, len);
    };
    let last = usize::from(parts[3]);
    write_v4(out, parts, PARTS[last], PART_LENGTHS[last] - 1);
}

/// Like [`write_addr`], followed by a tab.
#[inline(always)]
pub(crate) fn write_addr_tab<S: Sink>(out: &mut S, a: Addr) {
    let Some(parts) = a.as_v4() else {
        write_addr(out, a);
        return out.put([b'\t'], 1);
    };
    let last = usize::from(parts[3]);
    write_v4(out, parts, LAST_PARTS[last], PART_LENGTHS[last]);
}

/// Appends three parts, each followed by a point, and `len` bytes of the text of the last part.
#[inline(always)]
fn write_v4<S: Sink>(out: &mut S, parts: [u8; 4], last: [u8; 4], len: u8) {
    for part in [parts[0], parts[1], parts[2]].map(usize::from) {
        out.put(PARTS[part], usize::from(PART_LENGTHS[part]));
    }
    out.put(last, usize::from(len));
}

/// Appends a port, followed by a tab.
#[inline(always)]
pub(crate) fn write_port_tab<S: Sink>(out: &mut S, port: u16) {
    let port = usize::from(port);
    if port < 1_000 {
        out.put(LAST_SMALL[port], usize::from(THREE_DIGITS[port][3]) + 1);
    } else {
        let high = THREE_DIGITS[port / 1_000];
        out.put(high, usize::from(high[3]));
        out.put(PADDED[port % 1_000], 4);
    }
}

/// Writes an IPv4 address and a port, each followed by a tab, at offset `at` of a buffer for both endpoints of a
/// connection; returns the end offset, at most 22 bytes further.
#[inline(always)]
pub(crate) fn write_v4_endpoint(
    buffer: &mut [u8; 68],
    at: usize,
    host: [u8; 4],
    port: u16,
) -> usize {
    let mut at = at;
    let mut put = |text: [u8; 4], len: u8| {
        // Always below 44, which the compiler cannot prove.
        let from = at & 63;
        buffer[from..from + 4].copy_from_slice(&text);
        at += usize::from(len);
    };
    let [a, b, c, last] = host.map(usize::from);
    put(PARTS[a], PART_LENGTHS[a]);
    put(PARTS[b], PART_LENGTHS[b]);
    put(PARTS[c], PART_LENGTHS[c]);
    put(LAST_PARTS[last], PART_LENGTHS[last]);
    let port = usize::from(port);
    if port < 1_000 {
        put(LAST_SMALL[port], THREE_DIGITS[port][3] + 1);
    } else {
        let high = THREE_DIGITS[port / 1_000];
        put(high, high[3]);
        put(PADDED[port % 1_000], 4);
    }
    at
}

/// Two hexadecimal digits of a byte.
static HEX: [[u8; 2]; 256] = {
    let digits = b"0123456789abcdef";
    let mut all = [[0; 2]; 256];
    let mut i = 0;
    while i < all.len() {
        all[i] = [digits[i >> 4], digits[i & 15]];
        i += 1;
    }
    all
};

/// Start and length of the longest run of two or more zero groups, the first of equal runs. The index has a bit for
/// each of the eight groups that is zero; the start is 8 if there is no such run.
static RUNS: [(u8, u8); 256] = {
    let mut all = [(8, 1); 256];
    let mut zeros = 0;
    while zeros < all.len() {
        let mut start = 0;
        while start < 8 {
            let len = (zeros >> start).trailing_ones();
            if len > all[zeros].1 as u32 {
                all[zeros] = (start as u8, len as u8);
            }
            start += 1;
        }
        zeros += 1;
    }
    all
};

/// The text of an IPv6 address, and its length.
#[inline(never)]
fn v6(b: [u8; 16]) -> ([u8; 64], usize) {
    let groups = b.as_chunks::<2>().0;
    let mut zeros = 0;
    for (i, group) in groups.iter().enumerate() {
        zeros |= usize::from(*group == [0; 2]) << i;
    }
    let (start, len) = RUNS[zeros];
    let (start, len) = (usize::from(start), usize::from(len));
    let mut bytes = [0; 64];
    let mut at = 0;
    let mut put = |text: u64, len: usize| {
        // Always below 48, which the compiler cannot prove.
        let from = at.min(56);
        bytes[from..from + 8].copy_from_slice(&text.to_le_bytes());
        at += len;
    };
    let mut i = 0;
    while i < groups.len() {
        if i == start {
            // The group before has written the first of the two colons.
            let colons = if i == 0 { 2 } else { 1 };
            put(u64::from_le_bytes([b':'; 8]), colons);
            i += len;
            continue;
        }
        let [high, low] = groups[i].map(|byte| HEX[usize::from(byte)]);
        let digits = u32::from_le_bytes([high[0], high[1], low[0], low[1]]);
        let leading_zeros = (u16::from_be_bytes(groups[i]) | 1).leading_zeros() / 4;
        let count = 4 - leading_zeros;
        let text = u64::from(digits) >> (8 * leading_zeros) | u64::from(b':') << (8 * count);
        put(text, count as usize + 1);
        i += 1;
    }
    if start + len != groups.len() {
        // No colon follows the last group.
        at -= 1;
    }
    if (start, len) == (0, 6) {
        // inet_ntop shows IPv4-compatible addresses with a dotted tail.
        let mut text = LineBuffer::new(&mut bytes);
        text.put(*b"::", 2);
        write_addr(&mut text, Addr::v4([b[12], b[13], b[14], b[15]]));
        at = text.written().unwrap_or_default();
    }
    (bytes, at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(f: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        f(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn counts_at_every_border() {
        let mut v = 1_u64;
        loop {
            for n in [v - 1, v, v + 1] {
                assert_eq!(text(|o| write_count(o, n)), n.to_string());
                assert_eq!(text(|o| write_count_tab(o, n)), format!("{n}\t"));
            }
            match v.checked_mul(10) {
                Some(next) => v = next,
                None => break,
            }
        }
        for n in 0..100_000 {
            assert_eq!(text(|o| write_count(o, n)), n.to_string());
            assert_eq!(text(|o| write_count_tab(o, n)), format!("{n}\t"));
        }
    }

    #[test]
    fn fixed_notation() {
        assert_eq!(text(|o| write_fixed6(o, 1_300_475_167_096_535_999)), "1300475167.096535");
        assert_eq!(text(|o| write_fixed6(o, -1_500_000_000)), "-1.500000");
        assert_eq!(text(|o| write_fixed6(o, 0)), "0.000000");
        for (us, expected) in [
            (999_999_999_999_999, "999999999.999999"),
            (1_000_000_000_000_000, "1000000000.000000"),
            (9_223_372_036_854_775, "9223372036.854775"),
        ] {
            assert_eq!(text(|o| write_fixed6(o, us * 1_000 + 807)), expected);
        }
    }

    #[test]
    fn ports_and_addresses_with_tabs() {
        for port in 0..=u16::MAX {
            assert_eq!(text(|o| write_port_tab(o, port)), format!("{port}\t"));
        }
        for a in ["0.0.0.0", "1.2.3.4", "255.255.255.255", "10.20.130.4", "fe80::1"] {
            assert_eq!(text(|o| write_addr_tab(o, a.parse().unwrap())), format!("{a}\t"));
        }
    }

    #[test]
    fn both_endpoints_are_written() {
        let addresses = [[0, 0, 0, 0], [1, 20, 130, 4], [255; 4]];
        for (a, b) in addresses.into_iter().flat_map(|a| addresses.map(|b| (a, b))) {
            for (p, q) in [(0, 9), (53, 999), (1_000, 10_001), (65_535, 65_535)] {
                let mut buffer = [0; 68];
                let n = write_v4_endpoint(&mut buffer, 0, a, p);
                let n = write_v4_endpoint(&mut buffer, n, b, q);
                let [a, b] = [a, b].map(std::net::Ipv4Addr::from);
                assert_eq!(buffer[..n], *format!("{a}\t{p}\t{b}\t{q}\t").as_bytes());
            }
        }
    }

    #[test]
    fn v4_compatible_has_a_dotted_tail() {
        assert_eq!(text(|o| write_addr(o, "::1.2.3.4".parse().unwrap())), "::1.2.3.4");
        assert_eq!(text(|o| write_addr(o, "::1".parse().unwrap())), "::1");
        assert_eq!(text(|o| write_addr(o, "::".parse().unwrap())), "::");
    }

    proptest! {
        #[test]
        fn counts(v: u64, shift in 0..64) {
            for v in [v, v >> shift] {
                prop_assert_eq!(text(|o| write_count(o, v)), v.to_string());
            }
        }

        #[test]
        fn times(ns: i64) {
            let us = (ns / 1_000).unsigned_abs();
            let sign = if ns <= -1_000 { "-" } else { "" };
            let expected = format!("{sign}{}.{:06}", us / 1_000_000, us % 1_000_000);
            prop_assert_eq!(text(|o| write_fixed6(o, ns)), &expected[..]);
            prop_assert_eq!(text(|o| write_fixed6_tab(o, ns)), expected + "\t");
        }

        /// The shift makes small intervals as likely as large ones.
        #[test]
        fn intervals(ns: i64, shift in 0..63) {
            let ns = ns >> shift;
            let mut expected = text(|o| write_fixed6(o, ns));
            expected.push('\t');
            prop_assert_eq!(text(|o| write_fixed6_tab(o, ns)), expected);
        }

        #[test]
        fn v4_as_std(b: [u8; 4]) {
            prop_assert_eq!(
                text(|o| write_addr(o, Addr::v4(b))),
                std::net::Ipv4Addr::from(b).to_string()
            );
        }

        #[test]
        fn v6_as_std(mut b: [u8; 16], zero in 0u16..=u16::MAX) {
            for (i, byte) in b.iter_mut().enumerate() {
                if zero >> i & 1 == 1 { *byte = 0; }
            }
            b[0] |= 0x20; // no IPv4-compatible ones: std prints those as plain groups
            let a = Addr::v6(b);
            prop_assert_eq!(text(|o| write_addr(o, a)), std::net::Ipv6Addr::from(b).to_string());
        }
    }
}
