//! Parses names and versions in the text with which software identifies itself.
//!
//! There is no grammar: a name, then usually a separator and numbers, then anything. The results
//! equal those of Zeek's software framework.

use crate::http::message::unescape;

/// The parts of a version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Version {
    /// The first number of the version.
    pub major: Option<u64>,
    /// The second number.
    pub minor: Option<u64>,
    /// The third number.
    pub minor2: Option<u64>,
    /// The fourth number.
    pub minor3: Option<u64>,
    /// The text after the numbers, like `beta42` or a platform.
    pub addl: Option<Vec<u8>>,
}

/// Name and version of a piece of software.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Software {
    /// Its name.
    pub name: Vec<u8>,
    /// Its version, as far as the text states one.
    pub version: Version,
}

impl Software {
    /// Parses the identification of software other than a browser: `Apache/2.4.7 (Ubuntu)`,
    /// `OpenSSH_8.9p1`.
    pub(super) fn parse_plain(text: &[u8]) -> Self {
        if let Some(pixel) = android_pixel(text) {
            return pixel;
        }
        let text = unescape(&percent(text), None);
        let mut software = match split(&text) {
            Some((before, numbers, after)) => {
                Self { name: name(before), version: version(numbers, after) }
            }
            None => Self { name: name(&text), version: Version::default() },
        };
        if software.name == b"Flash Player" {
            software.name = b"Flash".to_vec();
        }
        software
    }
}

/// Rewrites `\xE6` to `%E6`: some log writers escape bytes as the former.
fn percent(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = find(rest, b"\\x") {
        out.extend_from_slice(&rest[..at]);
        out.push(b'%');
        rest = &rest[at + 2..];
    }
    out.extend_from_slice(rest);
    out
}

/// `A/9/Google/Pixel…`: the version is the second word.
fn android_pixel(text: &[u8]) -> Option<Software> {
    let is_number = |c: &u8| c.is_ascii_digit() || *c == b'.';
    let starts = (0..text.len()).filter(|at| text[*at..].starts_with(b"A/"));
    let mut ends = starts.map(|at| at + 2 + count(&text[at + 2..], is_number));
    ends.find(|end| text[*end..].starts_with(b"/Google/Pixel"))?;
    let word = text.split(|c| *c == b'/').nth(1)?;
    let version = if word.contains(&b'.') {
        Software::parse_plain(word).version
    } else {
        Version { major: Some(first_number(word)), ..Version::default() }
    };
    Some(Software { name: b"Android (Google Pixel)".to_vec(), version })
}

/// Splits a text at the first run of at least two version characters with the separator before it:
/// into the text before, the version, and the text after.
fn split(text: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    (0..text.len()).find_map(|at| {
        let len = version_len(&text[at..]);
        (len > 0).then(|| (&text[..at], &text[at..at + len], &text[at + len..]))
    })
}

/// Length of the longest separator and version at the start of `text`; 0 if there is none.
fn version_len(text: &[u8]) -> usize {
    let run = |from: usize| {
        let within = |c: &u8| c.is_ascii_digit() || b"-._, ".contains(c);
        let len = count(&text[from..], within);
        if len >= 2 { from + len } else { 0 }
    };
    let separator = separator_len(text);
    run(0).max(if separator > 0 { run(separator) } else { 0 })
}

/// Length of `/`, `-`, `_`, or of a space and `(` or `v`s, at the start of `text`.
fn separator_len(text: &[u8]) -> usize {
    match text {
        [b'/' | b'-' | b'_', ..] => 1,
        [b' ', rest @ ..] => match count(rest, |c| matches!(c, b'(' | b'v')) {
            0 => 0,
            n => 1 + n,
        },
        _ => 0,
    }
}

fn name(before: &[u8]) -> Vec<u8> {
    let ends_so = |at: usize| {
        let len = separator_len(&before[at..]);
        len > 0 && at + len == before.len()
    };
    let mut name = before.to_vec();
    // If the name ends in such junk, the first occurrence of the same junk is removed, as in Zeek.
    if (0..before.len()).any(ends_so)
        && let Some(at) = (0..before.len()).find(|at| separator_len(&before[*at..]) > 0)
    {
        name.drain(at..at + separator_len(&before[at..]));
        name = name.trim_ascii().to_vec();
    }
    let name = name.strip_prefix(b"(").unwrap_or(&name);
    name.trim_ascii().to_vec()
}

fn version(numbers: &[u8], after: &[u8]) -> Version {
    let mut numbers = numbers.trim_ascii();
    if let [b'/' | b'-' | b'.' | b'_' | b'v' | b'(', rest @ ..] = numbers {
        numbers = rest.trim_ascii();
    }
    let mut parts = numbers.splitn(4, |c| b"-._,[({ ".contains(c));
    let mut number = || parts.next().filter(|p| !p.is_empty()).map(first_number);
    let [major, minor, minor2, minor3] = [number(), number(), number(), number()];
    Version { major, minor, minor2, minor3, addl: addl(after) }
}

/// The text after a version: the one in parentheses, otherwise the first word.
fn addl(after: &[u8]) -> Option<Vec<u8>> {
    if after.is_empty() || after == b")" {
        return None;
    }
    let blank = |c: &u8| matches!(c, b' ' | b'\t');
    let inner = after[count(after, blank)..].strip_prefix(b"(");
    let plain = |c: &u8| c.is_ascii_alphanumeric() || blank(c) || b"-._".contains(c);
    if let Some(inner) = inner
        && let len = count(inner, plain)
        && inner.get(len) == Some(&b')')
    {
        return Some(inner[..len].to_vec());
    }
    let words = after.splitn(4, |c| b"-._,;[](){} ".contains(c));
    let word = words.take(3).find(|w| !w.is_empty()).unwrap_or(after);
    Some(word.trim_ascii().to_vec())
}

/// The first number in a text; 0 if there is none or it is too large.
pub(super) fn first_number(text: &[u8]) -> u64 {
    let from = count(text, |c| !c.is_ascii_digit());
    let digits = &text[from..][..count(&text[from..], u8::is_ascii_digit)];
    std::str::from_utf8(digits).ok().and_then(|d| d.parse().ok()).unwrap_or(0)
}

/// Number of bytes at the start of `text` that satisfy `predicate`.
pub(super) fn count(text: &[u8], predicate: impl Fn(&u8) -> bool) -> usize {
    text.iter().take_while(|c| predicate(c)).count()
}

/// Offset of the first occurrence of `needle` in `text`.
pub(super) fn find(text: &[u8], needle: &[u8]) -> Option<usize> {
    memchr::memmem::find(text, needle)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, name: &str, numbers: &[u64], addl: Option<&str>) {
        let software = Software::parse(text.as_bytes());
        let v = &software.version;
        let all = [v.major, v.minor, v.minor2, v.minor3];
        assert_eq!(String::from_utf8_lossy(&software.name), name, "{text}");
        assert_eq!(all.iter().copied().flatten().collect::<Vec<_>>(), numbers, "{text}");
        let is = v.addl.as_deref().map(String::from_utf8_lossy);
        assert_eq!(is.as_deref(), addl, "{text}");
    }

    #[test]
    fn servers_and_tools() {
        check("OpenSSH_4.4", "OpenSSH", &[4, 4], None);
        check("OpenSSH_8.9p1 Ubuntu-3", "OpenSSH", &[8, 9], Some("p1"));
        check("Apache/1.3.19 (Unix)", "Apache", &[1, 3, 19], Some("Unix"));
        check("Apache/2.0.63 (Unix) mod_ssl/2.0.63", "Apache", &[2, 0, 63], Some("Unix"));
        check("ProFTPD 1.2.5rc1 Server (Debian)", "ProFTPD", &[1, 2, 5], Some("rc1"));
        check("wu-2.4.2-academ[BETA-18](1)", "wu", &[2, 4, 2], Some("academ"));
        check("wu-2.6.2(1)", "wu", &[2, 6, 2], Some("1"));
        check("Java1.2.2-JDeveloper", "Java", &[1, 2, 2], Some("JDeveloper"));
        check("Java/1.6.0_13", "Java", &[1, 6, 0, 13], None);
        check("Python-urllib/3.1", "Python-urllib", &[3, 1], None);
        check("libwww-perl/5.820", "libwww-perl", &[5, 820], None);
        check("Wget/1.9+cvs-stable (Red Hat modified)", "Wget", &[1, 9], Some("+cvs"));
        check("Wget/1.11.4 (Red Hat modified)", "Wget", &[1, 11, 4], Some("Red Hat modified"));
        check("Apache", "Apache", &[], None);
        check("Zope/(Zope 2.7.8-final, python 2.3.5)", "Zope/(Zope", &[2, 7, 8], Some("final"));
        check("The Bat! (v2.00.9) Personal", "The Bat!", &[2, 0, 9], Some("Personal"));
        check("The Bat! (3.0.1 RC3) Professional", "The Bat!", &[3, 0, 1], Some("RC3"));
        check("Flash/10,2,153,1", "Flash", &[10, 2, 153, 1], None);
        check("mt2/1.2.3.967 Oct 13 2010-13:40:24", "mt2", &[1, 2, 3, 967], Some("Oct"));
        check("CacheFlyServe v26b", "CacheFlyServe", &[26], Some("b"));
        check("Apple iPhone v4.3.1 Weather v1.0", "Apple iPhone", &[4, 3, 1], Some("Weather"));
        check("Total Commander", "Total Commander", &[], None);
        check("(vsFTPd 2.0.5)", "vsFTPd", &[2, 0, 5], None);
        check("Apple Mail (2.1084)", "Apple Mail", &[2, 1084], None);
        check("", "", &[], None);
    }

    #[test]
    fn escapes_of_either_kind() {
        let flash = "Flash%20Player/26.0.0.137 CFNetwork/811.5.4 Darwin/16.6.0 (x86_64)";
        check(flash, "Flash", &[26, 0, 0, 137], Some("CFNetwork/811"));
        let qq = "QQ%E9%82%AE%E7%AE%B1/5.3.2.8 CFNetwork/811.5.4";
        check(qq, "QQ\u{90ae}\u{7bb1}", &[5, 3, 2, 8], Some("CFNetwork/811"));
        check("\\xe6\\xbc\\xab 2.6.2 rv:1.2", "\u{6f2b}", &[2, 6, 2], Some("rv:1"));
    }

    #[test]
    fn phones() {
        let name = "Android (Google Pixel)";
        check("A/8.1.0/Google/Pixel#2/walleye/unknown", name, &[8, 1, 0], None);
        check("A/9/Google/Pixel#2#XL/taimen/unknown", name, &[9], None);
    }

    #[test]
    fn numbers_too_large_are_none() {
        check("x/99999999999999999999.1", "x", &[0, 1], None);
    }

    proptest::proptest! {
        #[test]
        fn anything_can_be_read(text: Vec<u8>) {
            Software::parse(&text);
        }
    }
}
