//! Mail and network addresses in commands and header fields.
//!
//! These are searches, not grammars: commands and headers of real mail rarely comply with RFC 5321
//! and RFC 5322, so any text in the form of an address is accepted. All of them are linear in their
//! input.

use gannet_base::Addr;

use crate::support::text::integer;
use crate::support::text::trim;

/// Mail addresses in a command's argument, in order: `local@domain` after a bracket, comma, colon
/// or space, without any of these characters.
pub fn mail_addresses(text: &[u8]) -> Vec<Vec<u8>> {
    let blank = |b: u8| matches!(b, b' ' | b'\t');
    let before = |b: u8| blank(b) || matches!(b, b'<' | b',' | b':');
    let after = |b: u8| blank(b) || matches!(b, b'>' | b',' | b';');
    let mut out = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let local = if before(text[at]) { at + 1 } else { at };
        let len = text[local..].iter().take_while(|&&b| !before(b) && b != b'@').count();
        let sign = local + len;
        if len == 0 || text.get(sign) != Some(&b'@') {
            // A match must begin after `sign`.
            at = sign.max(at + 1);
            continue;
        }
        let domain = text[sign + 1..].iter().take_while(|&&b| !after(b)).count();
        if domain == 0 {
            at = sign + 1;
            continue;
        }
        let end = sign + 1 + domain;
        let whole = &text[local..end];
        out.push(whole.iter().copied().filter(|&b| !before(b) && !after(b)).collect());
        at = (end + 1).min(text.len());
    }
    out
}

/// The entries of an address list in a header field: display name and address, without surrounding
/// spaces. Commas within a leading quoted name do not separate entries.
pub fn address_list(text: &[u8]) -> Vec<&[u8]> {
    let mut out = Vec::new();
    let mut runs = Runs { text, last: None };
    let mut at = 0;
    // Entries without a quoted name begin at or after this offset.
    let mut next_plain = 0;
    while at < text.len() {
        let mut end = None;
        if text[at] == b'"'
            && let Some(len) = memchr::memchr(b'"', &text[at + 1..])
        {
            end = runs.entry(at + len + 2);
        }
        if end.is_none() && at >= next_plain {
            let run = memchr::memchr(b',', &text[at..]).map_or(text.len(), |n| at + n);
            let inner = text.get(at + 1..run.saturating_sub(1)).unwrap_or_default();
            if inner.contains(&b'@') {
                end = Some(run);
            } else {
                next_plain = run + 1;
            }
        }
        at = match end {
            Some(end) => {
                out.push(trim(&text[at..end]));
                end
            }
            // In a run without an entry, only a quoted name can begin one.
            None => {
                let skipped = text.get(at + 1..next_plain.min(text.len())).unwrap_or_default();
                memchr::memchr(b'"', skipped).map_or(next_plain.max(at + 1), |n| at + 1 + n)
            }
        };
    }
    out
}

/// Finds runs without commas. Queries are at increasing positions, so that each run is searched
/// once.
struct Runs<'a> {
    text: &'a [u8],
    /// End of the last run, and offset of its last `@` that is not the last character.
    last: Option<(usize, Option<usize>)>,
}

impl Runs<'_> {
    /// End of the run at `from`, if it has the form of something, `@` and something.
    fn entry(&mut self, from: usize) -> Option<usize> {
        let rest = self.text.get(from..)?;
        let (end, sign) = match self.last {
            Some(last) if from <= last.0 => last,
            _ => {
                let len = memchr::memchr(b',', rest).unwrap_or(rest.len());
                let sign = memchr::memrchr(b'@', &rest[..len.saturating_sub(1)]);
                (from + len, sign.map(|n| from + n))
            }
        };
        self.last = Some((end, sign));
        (sign? > from).then_some(end)
    }
}

/// The address of the peer in a Received field: of the addresses between matching brackets or
/// spaces, the second if there is more than one.
pub fn received_from(text: &[u8]) -> Option<Addr> {
    let mut found = None;
    for (wrapped, addr) in network_addresses(text) {
        match (wrapped, addr, found) {
            (true, Some(addr), None) => found = Some(addr),
            (true, Some(addr), Some(_)) => return Some(addr),
            _ => {}
        }
    }
    found
}

/// The first network address in a text, regardless of the surrounding characters.
pub fn first_network_address(text: &[u8]) -> Option<Addr> {
    network_addresses(text).into_iter().find_map(|(_, addr)| addr)
}

/// Texts in the form of a network address, longest first at each position: whether it is between
/// matching brackets or spaces (or fills the text), and the address if it is valid.
fn network_addresses(text: &[u8]) -> Vec<(bool, Option<Addr>)> {
    let mut out = Vec::new();
    let mut found = Vec::new();
    let mut at = 0;
    while at < text.len() {
        match network_address(&text[at..]) {
            0 => at += 1,
            len => {
                found.push((at, at + len));
                at += len;
            }
        }
    }
    for (i, &(from, to)) in found.iter().enumerate() {
        // There is no text between adjacent addresses.
        let before = if i > 0 && found[i - 1].1 == from { None } else { text[..from].last() };
        let after = match found.get(i + 1) {
            Some(&(next, _)) if next == to => None,
            _ => text.get(to),
        };
        let wrapped = match (before, after) {
            (None, None) => true,
            (Some(a), Some(b)) => {
                [(b'[', b']'), (b'(', b')'), (b'{', b'}'), (b' ', b' ')].contains(&(*a, *b))
            }
            _ => false,
        };
        out.push((wrapped, read_address(&text[from..to])));
    }
    out
}

/// Parses an address; leading zeros are accepted.
fn read_address(text: &[u8]) -> Option<Addr> {
    if text.contains(&b':') {
        return std::str::from_utf8(text).ok()?.parse().ok();
    }
    let mut octets = [0; 4];
    let mut rest = text;
    for (i, octet) in octets.iter_mut().enumerate() {
        if i > 0 {
            rest = rest.strip_prefix(b".")?;
        }
        let (n, after) = integer(rest);
        *octet = u8::try_from(n).ok()?;
        rest = after;
    }
    rest.is_empty().then_some(Addr::v4(octets))
}

/// Length of the longest prefix in the form of an IPv4 or IPv6 address; 0 if there is none.
fn network_address(text: &[u8]) -> usize {
    let Some(first) = text.first() else { return 0 };
    if !first.is_ascii_hexdigit() && *first != b':' {
        return 0;
    }
    let mut best = dotted_quad_len(text);
    // Groups followed by a colon, from the beginning.
    let mut at = 0;
    for groups in 0..8usize {
        let run = hex_digits(&text[at..]);
        if groups == 7 && run > 0 {
            best = best.max(at + run.min(4));
        }
        if groups == 6 {
            match dotted_quad_len(&text[at..]) {
                0 => {}
                len => best = best.max(at + len),
            }
        }
        let gap = if groups == 0 { text.starts_with(b"::") } else { text.get(at) == Some(&b':') };
        if gap {
            let tail = if groups == 0 { 2 } else { at + 1 };
            best = best.max(after_gap(text, tail, 7 - groups, 5usize.saturating_sub(groups)));
        }
        if run == 0 || run > 4 || text.get(at + run) != Some(&b':') {
            break;
        }
        at += run + 1;
    }
    best
}

/// End of the groups after a `::` that ends at `at`: up to `max` groups, or up to `before` groups
/// followed by a dotted quad.
fn after_gap(text: &[u8], at: usize, max: usize, before: usize) -> usize {
    let mut best = at;
    if before > 0 || max == 2 {
        best = best.max(dotted_quad_end(text, at));
    }
    let mut from = at;
    for group in 1..=max {
        let run = hex_digits(&text[from..]);
        if run == 0 {
            break;
        }
        best = best.max(from + run.min(4));
        if group <= before {
            for len in 1..=run.min(4) {
                best = best.max(dotted_quad_end(text, from + len));
            }
        }
        if run > 4 || text.get(from + run) != Some(&b':') {
            break;
        }
        from += run + 1;
    }
    best
}

fn dotted_quad_end(text: &[u8], at: usize) -> usize {
    match dotted_quad_len(&text[at..]) {
        0 => 0,
        len => at + len,
    }
}

fn hex_digits(text: &[u8]) -> usize {
    // Five digits suffice to notice that the group is too long.
    text.iter().take(5).take_while(|b| b.is_ascii_hexdigit()).count()
}

/// Length of the longest dotted quad at the start; 0 if there is none.
fn dotted_quad_len(text: &[u8]) -> usize {
    let mut at = 0;
    for _ in 0..3 {
        let run = text[at..].iter().take(4).take_while(|b| b.is_ascii_digit()).count();
        if !is_octet(&text[at..at + run]) || text.get(at + run) != Some(&b'.') {
            return 0;
        }
        at += run + 1;
    }
    let run = text[at..].iter().take(3).take_while(|b| b.is_ascii_digit()).count();
    (1..=run).rev().find(|&len| is_octet(&text[at..at + len])).map_or(0, |len| at + len)
}

fn is_octet(digits: &[u8]) -> bool {
    match *digits {
        [_] | [_, _] | [b'0' | b'1', _, _] | [b'2', b'0'..=b'4', _] => true,
        [b'2', b'5', last] => last <= b'5',
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn mails(text: &str) -> Vec<String> {
        let words = mail_addresses(text.as_bytes()).into_iter();
        words.map(|a| String::from_utf8_lossy(&a).into_owned()).collect()
    }

    fn list(text: &str) -> Vec<String> {
        let entries = address_list(text.as_bytes()).into_iter();
        entries.map(|a| String::from_utf8_lossy(a).into_owned()).collect()
    }

    #[test]
    fn addresses_in_commands() {
        assert_eq!(mails("FROM:<a@b.c> SIZE=10"), ["a@b.c"]);
        assert_eq!(mails("TO:a@b,c@d <e@f>;x"), ["a@b", "c@d", "e@f"]);
        assert_eq!(mails("FROM:<>"), [""; 0]);
        assert_eq!(mails("@ a@ @b aa@@b"), ["aa@@b"]);
        assert_eq!(mails("<@relay:a@b>"), ["a@b"]);
    }

    #[test]
    fn address_lists() {
        assert_eq!(list("a@b, \"C, D\" <c@d>,none , <e@f>"), ["a@b", "\"C, D\" <c@d>", "<e@f>"]);
        assert_eq!(list("\"\" <x@y.z>"), ["\"\" <x@y.z>"]);
        assert_eq!(list("@b, a@, \"x\", y"), [""; 0]);
        assert_eq!(list("\"a\" b, \"c@d"), ["\" b, \"c@d"]);
        assert_eq!(list("b \"a, b\" c@d"), ["\"a, b\" c@d"]);
    }

    fn peer(text: &str) -> Option<String> {
        received_from(text.as_bytes()).map(|a| a.to_string())
    }

    #[test]
    fn peers_in_received() {
        let text = "from a (b [216.58.97.33]) by c with esmtp; 2004 12:55:34";
        assert_eq!(peer(text).as_deref(), Some("216.58.97.33"));
        assert_eq!(peer("from [10.0.0.1] (helo=[10.0.0.2]) by x").as_deref(), Some("10.0.0.2"));
        assert_eq!(peer("from x (1.2.3.4.5) 8.14.7/8.14.7"), None);
        assert_eq!(peer("1.2.3.4").as_deref(), Some("1.2.3.4"));
        assert_eq!(peer("by [2001:db8::1]").as_deref(), Some("2001:db8::1"));
        let first = |text: &[u8]| first_network_address(text).map(|a| a.to_string());
        assert_eq!(first(b"[7.8.9.01]").as_deref(), Some("7.8.9.1"));
        assert_eq!(first(b"none"), None);
    }

    #[test]
    fn written_forms() {
        let len = |text: &str| network_address(text.as_bytes());
        assert_eq!(len("1.2.3.256"), 8);
        assert_eq!(len("300.2.3.4"), 0);
        assert_eq!(len("1:2:3:4:5:6:7:8:9"), 15);
        assert_eq!(len("1:2:3:4:5:6:1.2.3.4"), 19);
        assert_eq!(len("::"), 2);
        assert_eq!(len("::ffff:1.2.3.4"), 8);
        assert_eq!(len("::1.2.3.4"), 9);
        assert_eq!(len("fe80::1%eth0"), 7);
        assert_eq!(len("1:2:3:4:5:6:7::"), 15);
        assert_eq!(len("12:55:34"), 0);
        assert_eq!(len("12345::"), 0);
    }

    proptest! {
        #[test]
        fn written_addresses_are_found(v: [u8; 16], v4: [u8; 4]) {
            for addr in [Addr::v6(v), Addr::v4(v4)] {
                let text = format!("x [{addr}] y");
                prop_assert_eq!(received_from(text.as_bytes()), Some(addr));
            }
        }

        #[test]
        fn any_text_does(text in "[a@,\"<>: .0-9()\\[\\]]{0,60}") {
            for entry in address_list(text.as_bytes()) {
                prop_assert!(entry.contains(&b'@'));
            }
            for mail in mail_addresses(text.as_bytes()) {
                prop_assert!(mail.contains(&b'@'));
            }
            let _ = received_from(text.as_bytes());
        }
    }
}
