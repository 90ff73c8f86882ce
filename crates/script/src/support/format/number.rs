//! Numbers, durations, addresses.

use std::io::Write;

use gannet_base::Addr;

/// A double or a time, as `print`, `cat` and `%s` write it: six decimals without trailing zeros; an exponent
/// for very large and very small numbers; `.0` if it would look like an integer.
pub fn double(out: &mut Vec<u8>, value: f64) {
    let from = out.len();
    digits(out, value, 6, true);
    let integral = (value - value.round_ties_even()).abs() < 1e-9 && value.is_finite();
    if integral && !out[from..].contains(&b'e') {
        out.extend_from_slice(b".0");
    }
}

/// Like [`double`] without an exponent, as text logs write a `double`.
pub fn double_of_log(out: &mut Vec<u8>, value: f64) {
    digits(out, value, 6, false);
    if (value - value.round_ties_even()).abs() < 1e-9 && value.is_finite() {
        out.extend_from_slice(b".0");
    }
}

/// A time or an interval, as text logs write it: six decimals.
pub fn seconds_of_log(out: &mut Vec<u8>, value: f64) {
    if value.is_nan() {
        out.extend_from_slice(if value.is_sign_negative() { b"-nan" } else { b"nan" });
    } else if let Some(micros) = micros(value.abs()) {
        if value.is_sign_negative() {
            out.push(b'-');
        }
        gannet_log::write_count(out, micros / 1_000_000);
        let mut digits = *b".000000";
        let mut rest = micros % 1_000_000;
        for digit in digits.iter_mut().skip(1).rev() {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        out.extend_from_slice(&digits);
    } else {
        let _ = write!(out, "{value:.6}");
    }
}

/// A nonnegative number in millionths, rounded like `{:.6}`: half to even. `None` if the result is too large.
fn micros(value: f64) -> Option<u64> {
    const FRACTION: u32 = f64::MANTISSA_DIGITS - 1;
    // Below 2^43, so that the result has less than 63 bits.
    if !(0.0..8.7e12).contains(&value) {
        return None;
    }
    let bits = value.to_bits();
    let exponent = (bits >> FRACTION) as u32;
    if exponent < 1_000 {
        // Below 2^-23, the value is less than half a millionth.
        return Some(0);
    }
    let mantissa = bits & ((1 << FRACTION) - 1) | 1 << FRACTION;
    let scaled = u128::from(mantissa) * 1_000_000;
    // The value is its mantissa / 2^shift: 2^42 has exponent 1,065, so that the shift is from 10 to 75.
    let shift = 1_075 - exponent;
    let (whole, rest) = (scaled >> shift, scaled & ((1 << shift) - 1));
    let half = 1_u128 << (shift - 1);
    let up = rest > half || rest == half && whole & 1 == 1;
    u64::try_from(whole + u128::from(up)).ok()
}

fn digits(out: &mut Vec<u8>, value: f64, precision: usize, exponents: bool) {
    if value.is_nan() {
        return out.extend_from_slice(b"nan");
    }
    if value < 0.0 {
        out.push(b'-');
    }
    let value = value.abs();
    if value.is_infinite() {
        return out.extend_from_slice(b"inf");
    }
    if exponents && value > f64::from(i32::MAX) {
        return scientific(out, &shortest(value));
    }
    if exponents && value < 10_f64.powi(-(precision as i32)) {
        return general(out, value, precision);
    }
    let _ = write!(out, "{value:.precision$}");
    while out.last() == Some(&b'0') {
        out.pop();
    }
    if out.last() == Some(&b'.') {
        out.pop();
    }
}

/// The fewest digits that round-trip, with an exponent. Of two equally close candidates, the one with even
/// digits; Rust would choose the greater one.
fn shortest(value: f64) -> String {
    let text = format!("{value:e}");
    let digits = text.bytes().take_while(|byte| *byte != b'e').filter(u8::is_ascii_digit).count();
    let even = format!("{value:.*e}", digits.saturating_sub(1));
    if even.parse() == Ok(value) { even } else { text }
}

/// Rust's mantissa and exponent, with the exponent's sign and at least two exponent digits as in C.
fn scientific(out: &mut Vec<u8>, text: &str) {
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ('-', exponent),
        None => ('+', exponent),
    };
    let _ = write!(out, "{mantissa}e{sign}{exponent:0>2}");
}

/// C's `%.{precision}g`: significant digits, with an exponent if that is shorter.
pub fn general(out: &mut Vec<u8>, value: f64, precision: usize) {
    if value.is_nan() {
        return out.extend_from_slice(if value.is_sign_negative() { b"-nan" } else { b"nan" });
    }
    if value.is_infinite() {
        return out.extend_from_slice(if value < 0.0 { b"-inf" } else { b"inf" });
    }
    let precision = precision.max(1);
    let text = format!("{value:.*e}", precision - 1);
    let exponent = text.split_once('e').and_then(|(_, e)| e.parse::<i32>().ok()).unwrap_or(0);
    let shorten = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if exponent < -4 || exponent >= precision as i32 {
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        return scientific(out, &format!("{}e{exponent}", shorten(mantissa)));
    }
    let decimals = (precision as i32 - 1 - exponent).max(0) as usize;
    out.extend_from_slice(shorten(&format!("{value:.decimals$}")).as_bytes());
}

/// C's `%.{decimals}f`.
pub fn double_fixed(out: &mut Vec<u8>, value: f64, decimals: usize) {
    if value.is_finite() {
        let _ = write!(out, "{value:.decimals$}");
    } else {
        general(out, value, 6);
    }
}

/// A number in JSON: digits that round-trip, nearly always the shortest; `null` if not finite.
pub fn double_of_json(out: &mut Vec<u8>, value: f64) {
    if !value.is_finite() {
        return out.extend_from_slice(b"null");
    }
    if value.is_sign_negative() {
        out.push(b'-');
    }
    if value == 0.0 {
        return out.extend_from_slice(b"0.0");
    }
    let (digits, point) = super::grisu::digits(value.abs());
    let count = digits.len() as i32;
    let zeros = |n: i32| std::iter::repeat_n(b'0', n.max(0) as usize);
    match point {
        1..=21 if point >= count => {
            out.extend_from_slice(&digits);
            out.extend(zeros(point - count));
            out.extend_from_slice(b".0");
        }
        1..=21 => {
            out.extend_from_slice(&digits[..point as usize]);
            out.push(b'.');
            out.extend_from_slice(&digits[point as usize..]);
        }
        -5..=0 => {
            out.extend_from_slice(b"0.");
            out.extend(zeros(-point));
            out.extend_from_slice(&digits);
        }
        _ => {
            let (first, others) = digits.split_at(1.min(digits.len()));
            out.extend_from_slice(first);
            if !others.is_empty() {
                out.push(b'.');
                out.extend_from_slice(others);
            }
            let _ = write!(out, "e{}", point - 1);
        }
    }
}

/// An interval: its days, hours, minutes, seconds, milliseconds and microseconds, without zero parts.
pub fn interval(out: &mut Vec<u8>, value: f64) {
    const UNITS: [(f64, &[u8]); 6] = [
        (86_400.0, b"day"),
        (3_600.0, b"hr"),
        (60.0, b"min"),
        (1.0, b"sec"),
        (0.001, b"msec"),
        (1e-6, b"usec"),
    ];
    if value == 0.0 {
        return out.extend_from_slice(b"0 secs");
    }
    let mut rest = value;
    let mut written = false;
    for (index, (unit, name)) in UNITS.into_iter().enumerate() {
        let count = if index == UNITS.len() - 1 {
            let count = rest / unit;
            if count.abs() < 1e-6 {
                if !written {
                    out.extend_from_slice(b"0 secs");
                }
                return;
            }
            count
        } else {
            // A last part below one unit is omitted.
            if !(rest >= unit || rest <= -unit) {
                continue;
            }
            let count = (rest / unit).trunc();
            rest -= count * unit;
            count
        };
        if written {
            out.push(b' ');
        }
        written = true;
        double(out, count);
        out.push(b' ');
        out.extend_from_slice(name);
        let is_one = (count.abs() - 1.0).abs() < 1e-6;
        if !is_one {
            out.push(b's');
        }
    }
}

/// A port: `80/tcp`.
pub fn port(out: &mut Vec<u8>, number: u16, protocol: &str) {
    let _ = write!(out, "{number}/{protocol}");
}

/// An address of sixteen bytes, IPv4 mapped.
pub fn addr(out: &mut Vec<u8>, address: [u8; 16]) {
    gannet_log::write_addr(out, Addr::v6(address));
}

/// A subnet: an address and the prefix length as written (for IPv4 at most 32).
pub fn subnet(out: &mut Vec<u8>, address: [u8; 16], width: u32) {
    addr(out, address);
    let _ = write!(out, "/{width}");
}

/// The address in hexadecimal digits, as `%x` writes it.
pub fn addr_hex(out: &mut Vec<u8>, address: [u8; 16]) {
    let bytes = if Addr::v6(address).is_v4() { &address[12..] } else { &address[..] };
    for byte in bytes {
        let _ = write!(out, "{byte:02x}");
    }
}
