//! `fmt`.

use std::io::Write;

use super::{addr_hex, double_fixed, general, time};

/// An argument of `fmt`.
#[derive(Clone, Copy, Debug)]
pub enum Arg<'a> {
    /// A bool, an int or the number of an enum, with the text for `%s` if that is not the number.
    Int(i64, &'a [u8]),
    /// A count or a port number, with the text for `%s` if that is not the number.
    Count(u64, &'a [u8]),
    /// A double.
    Double(f64),
    /// A time.
    Time(f64),
    /// An interval.
    Interval(f64),
    /// An address.
    Addr([u8; 16]),
    /// The text of any other value.
    Text(&'a [u8]),
}

/// The result of `fmt`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Formatted {
    /// The text.
    pub text: Vec<u8>,
    /// The errors, in order.
    pub errors: Vec<Error>,
}

/// An error of a format or an argument. Only the last two produce no text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// A width or precision above 128.
    Excessive,
    /// A precision for a directive that has none.
    Precision,
    /// The argument of `%D` or `%T` at this index is not a time.
    NoTime(usize),
    /// The argument of `%d` or `%x` at this index is not an integer.
    NoInteger(usize),
    /// The argument of `%e`, `%f` or `%g` at this index is not a floating-point number.
    NoDouble(usize),
    /// An unknown directive.
    BadFormat,
    /// More arguments than directives.
    TooMany,
    /// More directives than arguments.
    TooFew,
}

impl Error {
    /// Zeek's message, and the index of the argument that it shows, not counting the format.
    #[must_use]
    pub fn message(self) -> (&'static str, Option<usize>) {
        match self {
            Error::Excessive => ("excessive field width or precision", None),
            Error::Precision => ("precision specified for non-floating point", None),
            Error::NoTime(arg) => ("bad type for Date/Time format", Some(arg)),
            Error::NoInteger(arg) => ("bad type for %d/%x format", Some(arg)),
            Error::NoDouble(arg) => ("bad type for floating-point format", Some(arg)),
            Error::BadFormat => ("bad format", None),
            Error::TooMany => ("too many arguments for format", None),
            Error::TooFew => ("too few arguments for format", None),
        }
    }

    /// Whether the message shows the format.
    #[must_use]
    pub fn shows_format(self) -> bool {
        matches!(self, Error::TooMany | Error::TooFew)
    }
}

/// `fmt(format, args…)`. The format ends at its first NUL byte.
#[must_use]
pub fn fmt(format: &[u8], args: &[Arg<'_>]) -> Formatted {
    fmt_to(Vec::new(), format, args)
}

/// Like [`fmt`], reusing the buffer `text`.
#[must_use]
pub fn fmt_to(mut text: Vec<u8>, format: &[u8], args: &[Arg<'_>]) -> Formatted {
    text.clear();
    text.reserve(format.len() + 16 * args.len());
    let mut result = Formatted { text, errors: Vec::new() };
    let end = memchr::memchr(0, format).unwrap_or(format.len());
    let mut rest = format.get(..end).unwrap_or_default();
    let mut used = 0;
    loop {
        let percent = memchr::memchr(b'%', rest).unwrap_or(rest.len());
        result.text.extend_from_slice(&rest[..percent]);
        let Some(directive) = rest.get(percent + 1..) else { break };
        rest = directive;
        if let Some(after) = rest.strip_prefix(b"%") {
            result.text.push(b'%');
            rest = after;
            continue;
        }
        let Some(arg) = args.get(used) else {
            used += 1;
            break;
        };
        rest = one(rest, *arg, used, &mut result);
        used += 1;
        if rest.is_empty() {
            break;
        }
    }
    let error = match used.cmp(&args.len()) {
        std::cmp::Ordering::Less => Error::TooMany,
        std::cmp::Ordering::Greater => Error::TooFew,
        std::cmp::Ordering::Equal => return result,
    };
    result.text.clear();
    result.errors.push(error);
    result
}

fn number(text: &mut &[u8]) -> u32 {
    let mut value = 0_u32;
    while let [digit @ b'0'..=b'9', rest @ ..] = text {
        value = value.saturating_mul(10).saturating_add(u32::from(digit - b'0'));
        *text = rest;
    }
    value
}

/// Writes one argument; returns the format after the directive.
fn one<'f>(mut format: &'f [u8], arg: Arg<'_>, index: usize, to: &mut Formatted) -> &'f [u8] {
    let left = format.first() == Some(&b'-');
    if left {
        format = &format[1..];
    }
    let (mut zeros, mut width) = (false, None);
    if matches!(format.first(), Some(b'0'..=b'9')) {
        zeros = format.first() == Some(&b'0') && !left;
        width = Some(number(&mut format));
    }
    let mut precision = None;
    if let Some(rest) = format.strip_prefix(b".") {
        format = rest;
        precision = Some(number(&mut format));
    }
    if width.is_some_and(|w| w > 128) || precision.is_some_and(|p| p > 128) {
        to.errors.push(Error::Excessive);
        return format;
    }
    let (width, decimals) = (width.unwrap_or(0) as usize, precision.map(|p| p as usize));
    let (directive, after) = match format {
        [directive, after @ ..] => (*directive, after),
        [] => (0, format),
    };
    if precision.is_some() && !matches!(directive, b'e' | b'f' | b'g') {
        to.errors.push(Error::Precision);
    }
    // Without a width, the text is written directly to the result.
    if width == 0 {
        match (directive, arg) {
            (b's', Arg::Text(value)) => {
                to.text.extend_from_slice(value);
                return after;
            }
            (b's', Arg::Count(..) | Arg::Int(..)) => {
                describe(&mut to.text, arg);
                return after;
            }
            (b'd', Arg::Count(..) | Arg::Int(..)) if decimals.is_none() => {
                integer(&mut to.text, directive, arg, decimals, index, &mut to.errors);
                return after;
            }
            _ => (),
        }
    }
    let mut text = Vec::new();
    match directive {
        b'D' | b'T' => match arg {
            Arg::Time(seconds) => time::date(&mut text, seconds, directive == b'T'),
            _ => to.errors.push(Error::NoTime(index)),
        },
        b'd' | b'x' => integer(&mut text, directive, arg, decimals, index, &mut to.errors),
        b's' => describe(&mut text, arg),
        b'e' | b'f' | b'g' => match arg {
            Arg::Double(value) | Arg::Time(value) | Arg::Interval(value) => {
                float(&mut text, directive, value, decimals.unwrap_or(6));
            }
            _ => to.errors.push(Error::NoDouble(index)),
        },
        _ => to.errors.push(Error::BadFormat),
    }
    let is_number = matches!(directive, b'd' | b'x' | b'e' | b'f' | b'g') && !text.is_empty();
    let fill = width.saturating_sub(text.len());
    // A precision disables zero padding of integers; floating-point values that are not finite have none.
    let has_digits = text.last().is_some_and(u8::is_ascii_hexdigit) && !text.ends_with(b"inf");
    if is_number
        && zeros
        && has_digits
        && (matches!(directive, b'e' | b'f' | b'g') || decimals.is_none())
    {
        let sign = usize::from(text.first() == Some(&b'-'));
        let at = text.len().min(sign);
        if !matches!(arg, Arg::Addr(_)) {
            text.splice(at..at, std::iter::repeat_n(b'0', fill));
        }
    }
    // As in Zeek, right-aligned text ends at its first NUL.
    let shown = if left { None } else { text.iter().position(|byte| *byte == 0) };
    let fill = width.saturating_sub(shown.unwrap_or(text.len()));
    let blanks = std::iter::repeat_n(b' ', fill);
    if left {
        to.text.extend_from_slice(&text);
        to.text.extend(blanks);
    } else {
        to.text.extend(blanks);
        to.text.extend_from_slice(&text);
    }
    after
}

fn integer(
    text: &mut Vec<u8>,
    directive: u8,
    arg: Arg<'_>,
    digits: Option<usize>,
    index: usize,
    errors: &mut Vec<Error>,
) {
    let (negative, magnitude) = match arg {
        Arg::Addr(address) if directive == b'x' => return addr_hex(text, address),
        Arg::Int(value, _) if directive == b'd' => (value < 0, value.unsigned_abs()),
        Arg::Int(value, _) => (false, value as u64),
        Arg::Count(value, _) => (false, value),
        _ => return errors.push(Error::NoInteger(index)),
    };
    if negative {
        text.push(b'-');
    }
    let digits = digits.unwrap_or(1);
    // With precision 0, zero has no digits.
    if digits == 0 && magnitude == 0 {
        return;
    }
    let _ = match directive {
        b'd' if digits <= 1 => {
            decimal(text, magnitude);
            Ok(())
        }
        b'd' => write!(text, "{magnitude:0digits$}"),
        _ => write!(text, "{magnitude:0digits$x}"),
    };
}

/// The decimal digits of a number.
fn decimal(text: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        if let Some(digit) = digits.get_mut(at) {
            *digit = b'0' + (number % 10) as u8;
        }
        number /= 10;
        if number == 0 {
            break;
        }
    }
    text.extend_from_slice(digits.get(at..).unwrap_or(&[]));
}

fn float(text: &mut Vec<u8>, directive: u8, value: f64, decimals: usize) {
    match directive {
        b'f' => double_fixed(text, value, decimals),
        b'e' if value.is_finite() => {
            let plain = format!("{value:.decimals$e}");
            let (mantissa, exponent) = plain.split_once('e').unwrap_or((&plain, "0"));
            let number: i32 = exponent.parse().unwrap_or(0);
            let sign = if number < 0 { '-' } else { '+' };
            let _ = write!(text, "{mantissa}e{sign}{:02}", number.unsigned_abs());
        }
        _ => general(text, value, decimals),
    }
}

fn describe(text: &mut Vec<u8>, arg: Arg<'_>) {
    match arg {
        Arg::Int(value, []) => {
            if value < 0 {
                text.push(b'-');
            }
            decimal(text, value.unsigned_abs());
        }
        Arg::Count(value, []) => decimal(text, value),
        Arg::Int(_, described) | Arg::Count(_, described) | Arg::Text(described) => {
            text.extend_from_slice(described);
        }
        Arg::Double(value) | Arg::Time(value) => super::double(text, value),
        Arg::Interval(value) => super::interval(text, value),
        Arg::Addr(address) => super::addr(text, address),
    }
}
