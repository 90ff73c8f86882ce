//! Parses the user agents of browsers, which contain the names of other browsers.

use super::version::Software;
use super::version::Version;
use super::version::count;
use super::version::find;

impl Software {
    /// Parses the text with which software identifies itself: `Apache/2.4.7 (Ubuntu)`,
    /// `OpenSSH_8.9p1`, a browser's user agent.
    pub fn parse(text: &[u8]) -> Self {
        if is_browser(text) { parse(text) } else { Self::parse_plain(text) }
    }
}

/// Whether a user agent begins like those of browsers: `Mozilla/5.`, `Opera/9.`
fn is_browser(text: &[u8]) -> bool {
    let rest = text.strip_prefix(b"Mozilla/").or_else(|| text.strip_prefix(b"Opera/"));
    rest.is_some_and(|r| {
        let digits = count(r, u8::is_ascii_digit);
        digits > 0 && r.get(digits) == Some(&b'.')
    })
}

/// The browser that a user agent belongs to: rare marks are searched first, common ones last.
fn parse(text: &[u8]) -> Software {
    let is_dotted = |c: &u8| c.is_ascii_digit() || *c == b'.';
    // The name, and the version number after its first occurrence.
    let versioned = |mark: &[u8]| {
        let at = find(text, mark)?;
        let end = at + mark.len() + count(&text[at + mark.len()..], is_dotted);
        Some(Software::parse_plain(&text[at..end]))
    };
    let version = |mark: &[u8]| versioned(mark).map(|s| s.version).unwrap_or_default();
    let named = |name: &str, version| Software { name: name.into(), version };
    let follows = |first: &[u8], then: &[u8]| {
        find(text, first).is_some_and(|at| find(&text[at + first.len()..], then).is_some())
    };
    if let Some(opera) = opera_at_end(text) {
        return named("Opera", opera);
    }
    if find(text, b" MSIE ").or_else(|| find(text, b"Trident/")).is_some() {
        return named("MSIE", explorer(text));
    }
    if find(text, b"Edge/").is_some() {
        return named("Edge", version(b"Edge/"));
    }
    if follows(b"Version/", b"Safari/") {
        let mut version = version(b"Version/");
        if follows(b" Mobile", b" Safari") {
            version.addl = Some(b"Mobile".to_vec());
        }
        return named("Safari", version);
    }
    let families = [&b"Firefox/"[..], b"Netscape/", b"Thunderbird/"];
    if let Some(family) =
        families.iter().filter(|f| find(text, f).is_some()).min_by_key(|f| find(text, f))
    {
        return versioned(family).unwrap_or_default();
    }
    if follows(b"Chrome/", b"Safari/") {
        return named("Chrome", version(b"Chrome/"));
    }
    if text.starts_with(b"Opera/") {
        return opera(text, version);
    }
    if find(text, b"Flash%20Player").is_some() {
        let word = text.split(|c| matches!(c, b'/' | b' ')).nth(1).unwrap_or_default();
        return named("Flash", Software::parse_plain(word).version);
    }
    if find(text, b"AdobeAIR/").is_some() {
        return named("AdobeAIR", version(b"AdobeAIR/"));
    }
    if find(text, b"AppleWebKit/").is_some() {
        return named("Unspecified WebKit", version(b"AppleWebKit/"));
    }
    if let Some(java) = java(text) {
        return named("Java", java);
    }
    named("<unknown browser>", Version::default())
}

/// The version in `Opera 11.00` at the end of the text.
fn opera_at_end(text: &[u8]) -> Option<Version> {
    let tail = text.iter().rev().take_while(|c| c.is_ascii_digit() || **c == b'.').count();
    let (head, _) = text.split_at(text.len() - tail);
    let from = head.strip_suffix(b"Opera ")?.len();
    Some(Software::parse_plain(&text[from..]).version)
}

/// Internet Explorer: its engine's version is more reliable than the compatibility version.
fn explorer(text: &[u8]) -> Version {
    for (engine, major) in [(4, 8), (5, 9), (6, 10), (7, 11)] {
        if find(text, format!("Trident/{engine}.0").as_bytes()).is_some() {
            return Version { major: Some(major), minor: Some(0), ..Version::default() };
        }
    }
    let Some(at) = find(text, b"MSIE ") else { return Version::default() };
    let rest = &text[at + 5..];
    let digits = |from: usize| count(&rest[from..], u8::is_ascii_digit);
    let mut end = digits(0).min(2);
    if end == 0 {
        return Version::default();
    }
    end += count(&rest[end..], |c| *c == b'.');
    end += digits(end);
    end += usize::from(rest.get(end) == Some(&b'b'));
    end += digits(end);
    Software::parse_plain(&text[at..at + 5 + end]).version
}

fn opera(text: &[u8], version: impl Fn(&[u8]) -> Version) -> Software {
    let marks = [&b"Opera Mini/"[..], b"Opera Mobi/"];
    let small = marks.iter().filter_map(|m| find(text, m)).min();
    // The first of these names, with or without a slash.
    let names = [&b"Opera Mini"[..], b"Opera Mobi"];
    let name = names.iter().filter(|n| find(text, n).is_some()).min_by_key(|n| find(text, n));
    let has_version = find(text, b"Version/").is_some();
    match name {
        Some(name) if small.is_some() => {
            let mark: &[u8] = if has_version { b"Version/" } else { b"Opera Mini/" };
            Software { name: name.to_vec(), version: version(mark) }
        }
        _ => Software { name: b"Opera".to_vec(), version: version(b"Version/") },
    }
}

fn java(text: &[u8]) -> Option<Version> {
    let digit_dot = |at: usize| matches!(text[at..], [c, b'.', ..] if c.is_ascii_digit());
    memchr::memmem::find_iter(text, b" Java/").find(|at| digit_dot(at + 6))?;
    let at = find(text, b"Java/")?;
    let within = |c: &u8| c.is_ascii_digit() || b"._".contains(c);
    let end = at + 5 + count(&text[at + 5..], within);
    Some(Software::parse_plain(&text[at..end]).version)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, name: &str, numbers: &[u64], addl: Option<&str>) {
        assert!(is_browser(text.as_bytes()), "{text}");
        let software = parse(text.as_bytes());
        let v = &software.version;
        let all = [v.major, v.minor, v.minor2, v.minor3];
        assert_eq!(String::from_utf8_lossy(&software.name), name, "{text}");
        assert_eq!(all.iter().copied().flatten().collect::<Vec<_>>(), numbers, "{text}");
        assert_eq!(v.addl.as_deref().map(String::from_utf8_lossy).as_deref(), addl, "{text}");
    }

    #[test]
    fn safari_chrome_and_edge() {
        let phone = "Mozilla/5.0 (iPhone; U; CPU iPhone OS 4_3_2 like Mac OS X; en-us) \
            AppleWebKit/533.17.9 (KHTML, like Gecko) Version/5.0.2 Mobile/8H7 Safari/6533.18.5";
        check(phone, "Safari", &[5, 0, 2], Some("Mobile"));
        let desk =
            "Mozilla/5.0 (Macintosh; U) AppleWebKit/533.20.25 Version/5.0.4 Safari/533.20.27";
        check(desk, "Safari", &[5, 0, 4], None);
        let chrome = "Mozilla/5.0 (Macintosh; U; Intel Mac OS X 10_6_7; en-US) AppleWebKit/534.16 \
            (KHTML, like Gecko) Chrome/10.0.648.205 Safari/534.16";
        check(chrome, "Chrome", &[10, 0, 648, 205], None);
        let edge = "Mozilla/5.0 (Windows Phone 10.0) Chrome/52.0.2743.116 Mobile Safari/537.36 \
            Edge/15.15063";
        check(edge, "Edge", &[15, 15063], None);
        check("Mozilla/5.0 (X) AppleWebKit/420+", "Unspecified WebKit", &[420], None);
        check("Mozilla/5.0 AppleWebKit/420+ AdobeAIR/1.0", "AdobeAIR", &[1, 0], None);
    }

    #[test]
    fn gecko() {
        let bird = "Mozilla/5.0 (Windows; U; rv:1.9.2.11) Gecko/20101013 Lightning/1.0b2 \
            Thunderbird/3.1.5";
        check(bird, "Thunderbird", &[3, 1, 5], None);
        let netscape = "Mozilla/5.0 (Windows; rv:1.7.2) Gecko/20040804 Netscape/7.2 (ax)";
        check(netscape, "Netscape", &[7, 2], None);
    }

    #[test]
    fn opera_in_all_sizes() {
        let plain = "Opera/9.80 (Windows NT 6.1; U; sv) Presto/2.7.62 Version/11.01";
        check(plain, "Opera", &[11, 1], None);
        let mini = "Opera/9.80 (J2ME/MIDP; Opera Mini/5.0.18741/18.794; U; en) Presto/2.4.15";
        check(mini, "Opera Mini", &[5, 0, 18741], None);
        let mobi = "Opera/9.80 (Windows NT 5.1; Opera Mobi/49; U; en) Presto/2.4.18 Version/10.00";
        check(mobi, "Opera Mobi", &[10, 0], None);
        let last = "Mozilla/4.0 (compatible; MSIE 8.0; Opera Mobi/ADR-1; en) Opera 11.00";
        check(last, "Opera", &[11, 0], None);
    }

    #[test]
    fn explorers() {
        check("Mozilla/4.0 (compatible; MSIE 7.0; Windows NT 6.0)", "MSIE", &[7, 0], None);
        check("Mozilla/4.0 (compatible; MSIE 7.0b; Windows)", "MSIE", &[7, 0], Some("b"));
        let compatible = "Mozilla/4.0 (compatible; MSIE 7.0; Windows NT 6.3; Trident/7.0)";
        check(compatible, "MSIE", &[11, 0], None);
        check(
            "Mozilla/5.0 (Windows NT 6.3; Trident/7.0; rv:11.0) like Gecko",
            "MSIE",
            &[11, 0],
            None,
        );
    }

    #[test]
    fn others() {
        check("Mozilla/4.0 (Windows XP 5.1) Java/1.6.0_13", "Java", &[1, 6, 0, 13], None);
        check("Mozilla/5.0 (whatever)", "<unknown browser>", &[], None);
        assert!(!is_browser(b"Mozilla/ 5.0") && !is_browser(b"Opera"));
    }
}
