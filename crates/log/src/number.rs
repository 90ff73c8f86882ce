use gannet_base::Addr;

const PAIRS: &[u8; 200] = b"0001020304050607080910111213141516171819\
2021222324252627282930313233343536373839\
4041424344454647484950515253545556575859\
6061626364656667686970717273747576777879\
8081828384858687888990919293949596979899";

/// Appends a decimal number.
#[inline]
pub fn write_count(out: &mut Vec<u8>, mut v: u64) {
    if v < 10 {
        out.push(b'0' + v as u8);
        return;
    }
    let mut text = [0u8; 20];
    let mut at = 20;
    while v >= 100 {
        let pair = (v % 100) as usize * 2;
        v /= 100;
        at -= 2;
        text[at..at + 2].copy_from_slice(&PAIRS[pair..pair + 2]);
    }
    if v >= 10 {
        let pair = v as usize * 2;
        at -= 2;
        text[at..at + 2].copy_from_slice(&PAIRS[pair..pair + 2]);
    } else {
        at -= 1;
        text[at] = b'0' + v as u8;
    }
    out.extend_from_slice(&text[at..]);
}

/// Appends nanoseconds as seconds with six decimals, cut (not rounded) to the microsecond.
#[inline]
pub fn write_fixed6(out: &mut Vec<u8>, ns: i64) {
    let us = ns / 1_000;
    if us < 0 {
        out.push(b'-');
    }
    let us = us.unsigned_abs();
    write_count(out, us / 1_000_000);
    let rest = (us % 1_000_000) as usize;
    let (a, b, c) = (rest / 10_000 * 2, rest / 100 % 100 * 2, rest % 100 * 2);
    out.extend_from_slice(&[
        b'.',
        PAIRS[a],
        PAIRS[a + 1],
        PAIRS[b],
        PAIRS[b + 1],
        PAIRS[c],
        PAIRS[c + 1],
    ]);
}

/// Appends an address as `inet_ntop` prints it.
#[inline]
pub fn write_addr(out: &mut Vec<u8>, a: Addr) {
    match a.as_v4() {
        Some(b) => {
            write_count(out, u64::from(b[0]));
            for part in &b[1..] {
                out.push(b'.');
                write_count(out, u64::from(*part));
            }
        }
        None => write_v6(out, a.octets()),
    }
}

fn write_v6(out: &mut Vec<u8>, b: [u8; 16]) {
    let group = |i: usize| u16::from_be_bytes([b[2 * i], b[2 * i + 1]]);
    // The longest run of two or more zero groups, the first of equals, becomes "::".
    let (mut start, mut len, mut i) = (8, 1, 0);
    while i < 8 {
        let run = (i..8).take_while(|&j| group(j) == 0).count();
        if run > len {
            (start, len) = (i, run);
        }
        i += run.max(1);
    }
    // inet_ntop shows IPv4-compatible addresses with a dotted tail.
    let dotted = start == 0 && len == 6;
    let mut i = 0;
    while i < 8 {
        if i == start {
            out.extend_from_slice(b"::");
            i += len;
            continue;
        }
        if i > 0 && i != start + len {
            out.push(b':');
        }
        if dotted && i == 6 {
            write_addr(out, Addr::v4([b[12], b[13], b[14], b[15]]));
            return;
        }
        let g = group(i);
        let digits = (16 - g.leading_zeros()).div_ceil(4).max(1);
        for d in (0..digits).rev() {
            out.push(b"0123456789abcdef"[usize::from(g >> (4 * d)) & 15]);
        }
        i += 1;
    }
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
    fn fixed_notation() {
        assert_eq!(text(|o| write_fixed6(o, 1_300_475_167_096_535_999)), "1300475167.096535");
        assert_eq!(text(|o| write_fixed6(o, -1_500_000_000)), "-1.500000");
        assert_eq!(text(|o| write_fixed6(o, 0)), "0.000000");
    }

    #[test]
    fn v4_compatible_has_a_dotted_tail() {
        assert_eq!(text(|o| write_addr(o, "::1.2.3.4".parse().unwrap())), "::1.2.3.4");
        assert_eq!(text(|o| write_addr(o, "::1".parse().unwrap())), "::1");
        assert_eq!(text(|o| write_addr(o, "::".parse().unwrap())), "::");
    }

    proptest! {
        #[test]
        fn counts(v: u64) {
            prop_assert_eq!(text(|o| write_count(o, v)), v.to_string());
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
