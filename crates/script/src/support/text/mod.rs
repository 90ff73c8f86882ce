//! String functions of the language: comparison, substrings, padding, encodings.
//!
//! ```
//! use gannet_script::support::text;
//!
//! assert_eq!(text::levenshtein(b"kitten", b"sitting"), 3);
//! assert_eq!(text::edit(b"hello there", b'e'), b"llo t");
//! assert_eq!(text::base64::encode(b"zeek", None), b"emVlaw==");
//! assert_eq!(text::base64::decode(b"emVlaw==", None).0, Some(b"zeek".to_vec()));
//! assert_eq!(text::unescape_uri(b"a%20b"), b"a b");
//! ```

mod align;
pub mod base64;
pub mod convert;

pub use align::{Substring, smith_waterman};

use std::io::Write;

/// The Levenshtein distance: the number of bytes to insert, remove or replace to turn `a` into `b`.
#[must_use]
pub fn levenshtein(a: &[u8], b: &[u8]) -> u64 {
    let mut row: Vec<u64> = (0..=b.len() as u64).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = i as u64;
        if let Some(first) = row.first_mut() {
            *first = i as u64 + 1;
        }
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + u64::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row.last().copied().unwrap_or(0)
}

/// `string` with each `erase` byte removed together with the byte before it.
#[must_use]
pub fn edit(string: &[u8], erase: u8) -> Vec<u8> {
    let mut edited = Vec::with_capacity(string.len());
    for byte in string {
        if *byte == erase {
            edited.pop();
        } else {
            edited.push(*byte);
        }
    }
    edited
}

/// `sub_bytes(string, start, len)`: the first byte has number 1 (or 0); a negative length extends to the end.
#[must_use]
pub fn sub_bytes(string: &[u8], start: u64, len: i64) -> &[u8] {
    // As in Zeek, both are truncated to 32 bits.
    let start = usize::try_from(start.saturating_sub(1) as i32).unwrap_or(usize::MAX);
    let Some(rest) = string.get(start..) else { return b"" };
    match usize::try_from(len as i32) {
        Ok(len) if len < rest.len() => &rest[..len],
        _ => rest,
    }
}

/// The offset of the first occurrence of `part` in `string`.
#[must_use]
pub fn find(string: &[u8], part: &[u8]) -> Option<usize> {
    match part {
        [] => Some(0),
        _ => string.windows(part.len()).position(|window| window == part),
    }
}

/// Maximum length of strings that are scanned without building a searcher.
const MAX_SCANNED: usize = 128;

/// Whether `part` is in `string`.
#[must_use]
pub fn contains(string: &[u8], part: &[u8]) -> bool {
    let [first, rest @ ..] = part else { return true };
    if string.len() > MAX_SCANNED {
        return memchr::memmem::find(string, part).is_some();
    }
    let mut left = string;
    while left.len() > rest.len() {
        let last = left.len() - rest.len();
        let candidates = left.get(..last).unwrap_or(&[]);
        let Some(at) = memchr::memchr(*first, candidates) else { return false };
        left = left.get(at + 1..).unwrap_or(&[]);
        if left.starts_with(rest) {
            return true;
        }
    }
    false
}

/// The offset of the last occurrence of `part` in `string`.
#[must_use]
pub fn rfind(string: &[u8], part: &[u8]) -> Option<usize> {
    match part {
        [] => Some(string.len()),
        _ => string.windows(part.len()).rposition(|window| window == part),
    }
}

/// The error of `find_str` and `rfind_str` for an invalid range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadRange;

/// `find_str`, or with `last` `rfind_str`: the offset of `part` in the range from `start` of length `end`; -1
/// if not found.
///
/// # Errors
///
/// If `end` precedes `start`: Zeek reports "find_str: end position must be greater than start position" and
/// returns -1.
pub fn find_str(
    string: &[u8],
    part: &[u8],
    start: u64,
    end: i64,
    last: bool,
    case_sensitive: bool,
) -> Result<i64, BadRange> {
    let len = string.len() as i64;
    let start = i64::try_from(start).unwrap_or(i64::MAX);
    if start > len {
        return Ok(-1);
    }
    if end != -1 && end < start {
        return Err(BadRange);
    }
    let end = if (0..len).contains(&end) { end } else { len };
    if end - start + 1 < part.len() as i64 {
        return Ok(-1);
    }
    // As in Zeek, the end is relative to the start.
    let rest = &string[start as usize..];
    let searched = &rest[..rest.len().min(end as usize)];
    let search = if last { rfind } else { find };
    let found = if case_sensitive {
        search(searched, part)
    } else {
        search(&searched.to_ascii_lowercase(), &part.to_ascii_lowercase())
    };
    Ok(found.map_or(-1, |at| at as i64 + start))
}

/// The number of occurrences of `part` in `string` without overlap; 0 for an empty part.
#[must_use]
pub fn count_substr(string: &[u8], part: &[u8]) -> u64 {
    let mut count = 0;
    let mut rest = string;
    while !part.is_empty()
        && let Some(at) = find(rest, part)
    {
        count += 1;
        rest = &rest[at + part.len()..];
    }
    count
}

/// `string` with each occurrence of `from` replaced by `to`.
///
/// # Errors
/// The length of the result if it exceeds `max`.
pub fn replace_all(string: &[u8], from: &[u8], to: &[u8], max: usize) -> Result<Vec<u8>, usize> {
    let mut result = Vec::with_capacity(string.len());
    let mut rest = string;
    while !from.is_empty()
        && let Some(at) = find(rest, from)
    {
        let length = result.len() + at + to.len();
        if length > max {
            return Err(length);
        }
        result.extend_from_slice(&rest[..at]);
        result.extend_from_slice(to);
        rest = &rest[at + from.len()..];
    }
    result.extend_from_slice(rest);
    Ok(result)
}

/// `strip`: removes blanks at both ends. A single blank yields an empty string.
#[must_use]
pub fn strip(string: &[u8]) -> &[u8] {
    let blank = |byte: &u8| matches!(byte, b' ' | 0x09..=0x0d);
    lstrip_with(rstrip_with(string, blank), blank)
}

/// `lstrip`: removes leading bytes in `chars`.
#[must_use]
pub fn lstrip<'s>(string: &'s [u8], chars: &[u8]) -> &'s [u8] {
    lstrip_with(string, |byte| chars.contains(byte))
}

/// `rstrip`: removes trailing bytes in `chars`.
#[must_use]
pub fn rstrip<'s>(string: &'s [u8], chars: &[u8]) -> &'s [u8] {
    rstrip_with(string, |byte| chars.contains(byte))
}

fn lstrip_with(string: &[u8], strips: impl Fn(&u8) -> bool) -> &[u8] {
    let from = string.iter().position(|byte| !strips(byte)).unwrap_or(string.len());
    &string[from..]
}

fn rstrip_with(string: &[u8], strips: impl Fn(&u8) -> bool) -> &[u8] {
    let to = string.iter().rposition(|byte| !strips(byte)).map_or(0, |at| at + 1);
    &string[..to]
}

/// `string_fill(len, source)`: `source` repeated, with a NUL as the last byte.
#[must_use]
pub fn string_fill(len: usize, source: &[u8]) -> Vec<u8> {
    let mut filled: Vec<u8> = source.iter().copied().cycle().take(len).collect();
    filled.resize(len, 0);
    if let Some(last) = filled.last_mut() {
        *last = 0;
    }
    filled
}

/// `string` in double quotes, escaped for a shell.
#[must_use]
pub fn safe_shell_quote(string: &[u8]) -> Vec<u8> {
    let mut quoted = vec![b'"'];
    for byte in string {
        if matches!(byte, b'`' | b'"' | b'\\' | b'$') {
            quoted.push(b'\\');
        }
        quoted.push(*byte);
    }
    quoted.push(b'"');
    quoted
}

/// Converts the first letter of each word to upper case; words are separated by blanks.
#[must_use]
pub fn to_title(string: &[u8]) -> Vec<u8> {
    let mut title = string.to_vec();
    let mut begins = true;
    for byte in &mut title {
        if begins && *byte != b' ' {
            byte.make_ascii_uppercase();
        }
        begins = *byte == b' ';
    }
    title
}

/// Swaps upper and lower case of each letter.
#[must_use]
pub fn swap_case(string: &[u8]) -> Vec<u8> {
    string.iter().map(|byte| if byte.is_ascii_alphabetic() { byte ^ 0x20 } else { *byte }).collect()
}

/// `string` without leading repetitions of `prefix`.
#[must_use]
pub fn remove_prefix<'s>(mut string: &'s [u8], prefix: &[u8]) -> &'s [u8] {
    while !prefix.is_empty()
        && let Some(rest) = string.strip_prefix(prefix)
    {
        string = rest;
    }
    string
}

/// `string` without trailing repetitions of `suffix`.
#[must_use]
pub fn remove_suffix<'s>(mut string: &'s [u8], suffix: &[u8]) -> &'s [u8] {
    while !suffix.is_empty()
        && let Some(rest) = string.strip_suffix(suffix)
    {
        string = rest;
    }
    string
}

/// `str_split_indices(string, indices)`. Indices out of range count as 0; with a single index, the part after
/// it is empty.
#[must_use]
pub fn split_indices<'s>(string: &'s [u8], indices: &[u64]) -> Vec<&'s [u8]> {
    if indices.is_empty() {
        return Vec::new();
    }
    let valid = |at: &u64| usize::try_from(*at).ok().filter(|at| *at < string.len()).unwrap_or(0);
    let mut all: Vec<usize> = vec![0; indices.len() + 1];
    all.extend(indices.iter().map(valid));
    all.sort_unstable();
    let mut starts = all.clone();
    starts.dedup();
    // The last part ends at the sorted index after those of the starts, unless that precedes it.
    let behind = all.get(starts.len()).copied();
    let ends = starts.iter().skip(1).copied().map(Some).chain([behind]);
    let part = |(start, end): (&usize, Option<usize>)| match end {
        Some(end) if end >= *start => &string[*start..end],
        _ => &string[*start..],
    };
    starts.iter().zip(ends).map(part).collect()
}

/// `bytestring_to_hexstr`, `string_to_ascii_hex`.
#[must_use]
pub fn to_hex(bytes: &[u8]) -> Vec<u8> {
    let mut hex = Vec::with_capacity(bytes.len() * 2);
    for byte in bytes {
        hex.extend([byte >> 4, byte & 0xf].map(|digit| DIGITS[usize::from(digit)]));
    }
    hex
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Decodes hexadecimal digits. A pair of which only the first is a digit has the value of that digit.
///
/// # Errors
///
/// Zeek's message.
pub fn from_hex(hex: &[u8]) -> Result<Vec<u8>, String> {
    let shown = || String::from_utf8_lossy(hex).into_owned();
    if !hex.len().is_multiple_of(2) {
        return Err(format!("Hex string '{}' has invalid length (not divisible by 2)", shown()));
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let pair = |pair: &[u8]| match pair {
        [a, b] => match (digit(*a), digit(*b)) {
            (Some(a), Some(b)) => Some(a << 4 | b),
            (a, _) => a,
        },
        _ => None,
    };
    let bytes: Option<Vec<u8>> = hex.chunks(2).map(pair).collect();
    bytes.ok_or_else(|| format!("Could not read hex element from input {}", shown()))
}

/// A dump with sixteen bytes per line, in hexadecimal and as printable characters.
#[must_use]
pub fn hexdump(data: &[u8]) -> Vec<u8> {
    let mut dump = Vec::with_capacity(data.len().div_ceil(16) * 74);
    for (number, line) in data.chunks(16).enumerate() {
        let offset = format!("{:04x}", number * 16);
        dump.extend_from_slice(&offset.as_bytes()[..4]);
        dump.extend_from_slice(b"  ");
        let (mut hex, mut ascii) = (String::new(), Vec::new());
        for (at, byte) in line.iter().enumerate() {
            hex.push_str(&format!("{byte:02x} "));
            ascii.push(if (0x20..0x7f).contains(byte) { *byte } else { b'.' });
            if at == 7 {
                hex.push(' ');
                ascii.push(b' ');
            }
        }
        let _ = write!(dump, "{hex:<50}");
        dump.extend_from_slice(&ascii);
        dump.push(b'\n');
    }
    if dump.is_empty() {
        // As in Zeek, blanks fill the column of the digits.
        dump.extend_from_slice(&[b' '; 50]);
        dump.push(b'\n');
    }
    dump
}

/// Decodes the escapes of a URI (`%20`, `%u0020`).
#[must_use]
pub fn unescape_uri(uri: &[u8]) -> Vec<u8> {
    let hex = |byte: &u8| char::from(*byte).to_digit(16).map(|digit| digit as u8);
    let pair = |a: &u8, b: &u8| Some(hex(a)? << 4 | hex(b)?);
    let mut plain = Vec::with_capacity(uri.len());
    let mut rest = uri;
    loop {
        rest = match rest {
            [] => return plain,
            [b'%'] | [b'%', _] => {
                plain.extend_from_slice(rest);
                return plain;
            }
            // The first of two `%` is ignored.
            [b'%', b'%', ..] => &rest[1..],
            [b'%', a, b, after @ ..] if pair(a, b).is_some() => {
                plain.extend(pair(a, b));
                after
            }
            [b'%', b'u', a, b, c, d, after @ ..]
                if pair(a, b).is_some() && pair(c, d).is_some() =>
            {
                if (*a, *b) != (b'0', b'0') {
                    plain.extend(pair(a, b));
                }
                plain.extend(pair(c, d));
                after
            }
            [b'%', byte, after @ ..] => {
                plain.extend_from_slice(&[b'%', *byte]);
                after
            }
            [byte, after @ ..] => {
                plain.push(*byte);
                after
            }
        };
    }
}

/// `decode_netbios_name`: decodes 32 letters from A to P, without trailing blanks; empty if invalid.
#[must_use]
pub fn decode_netbios_name(name: &[u8]) -> Vec<u8> {
    let Ok(name) = <&[u8; 32]>::try_from(name) else { return Vec::new() };
    let mut decoded = Vec::new();
    for pair in name.as_chunks::<2>().0 {
        let [high, low] = pair.map(|byte| byte.to_ascii_uppercase());
        if !(b'A'..=b'P').contains(&high) || !(b'A'..=b'P').contains(&low) {
            return Vec::new();
        }
        let byte = (high - b'A') << 4 | (low - b'A');
        if !(byte.is_ascii_graphic() || byte == b' ' || byte < 3) {
            break;
        }
        decoded.push(byte);
    }
    // The sixteenth byte is the type of the name.
    decoded.truncate(15);
    while matches!(decoded.last(), Some(b' ' | 0)) {
        decoded.pop();
    }
    decoded
}

/// `decode_netbios_name_type`: 256 if the name is invalid.
#[must_use]
pub fn netbios_name_type(name: &[u8]) -> u64 {
    let letters = |byte: &u8| (b'A'..=b'P').contains(&byte.to_ascii_uppercase());
    match name {
        [.., high, low] if name.len() == 32 && name.iter().all(letters) => {
            let value = |byte: &u8| u64::from(byte.to_ascii_uppercase() - b'A');
            value(high) << 4 | value(low)
        }
        _ => 256,
    }
}

/// `uuid_to_string` of sixteen bytes; the first three fields are little-endian.
#[must_use]
pub fn uuid(bytes: &[u8]) -> String {
    let Ok(b) = <&[u8; 16]>::try_from(bytes) else { return "<Invalid UUID>".to_owned() };
    let mut text = format!(
        "{:08x}-{:04x}-{:04x}-{:02x}{:02x}-",
        u32::from_le_bytes([b[0], b[1], b[2], b[3]]),
        u16::from_le_bytes([b[4], b[5]]),
        u16::from_le_bytes([b[6], b[7]]),
        b[8],
        b[9]
    );
    for byte in &b[10..] {
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

/// `file_mode`: permissions in the notation of `ls`.
#[must_use]
pub fn file_mode(mode: u64) -> String {
    let mut text = String::with_capacity(9);
    for (shift, special, set, unset) in
        [(6, 0o4000, 's', 'S'), (3, 0o2000, 's', 'S'), (0, 0o1000, 't', 'T')]
    {
        let bits = mode >> shift;
        text.push(if bits & 4 == 0 { '-' } else { 'r' });
        text.push(if bits & 2 == 0 { '-' } else { 'w' });
        text.push(match (bits & 1 != 0, mode & special != 0) {
            (true, true) => set,
            (false, true) => unset,
            (true, false) => 'x',
            (false, false) => '-',
        });
    }
    text
}

/// `compress_path`: removes `.`, `..` and empty components where possible.
#[must_use]
pub fn compress_path(path: &[u8]) -> Vec<u8> {
    if find(path, b"/.").is_none() && find(path, b"//").is_none() {
        return if path.len() > 1 { path.strip_suffix(b"/").unwrap_or(path) } else { path }
            .to_vec();
    }
    let mut parts: Vec<&[u8]> = Vec::new();
    for (index, part) in path.split(|byte| *byte == b'/').enumerate() {
        if part.is_empty() || (part == b"." && index > 0) {
            continue;
        }
        match parts.last().copied() {
            Some(b"~" | b"..") | None => parts.push(part),
            Some(b".") if part == b".." => {
                parts.pop();
                parts.push(part);
            }
            Some(_) if part == b".." => drop(parts.pop()),
            Some(_) => parts.push(part),
        }
    }
    let mut compressed = if path.starts_with(b"/") { b"/".to_vec() } else { Vec::new() };
    compressed.extend_from_slice(&parts.join(&b'/'));
    compressed
}

#[cfg(test)]
mod tests;
