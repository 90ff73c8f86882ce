//! Dictionaries in bencode (BEP 3).

use gannet_base::Addr;
use gannet_base::Proto;
use gannet_event::Port;

use crate::support::Bytes;

gannet_event::record! {
    /// A peer.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Peer = "bittorrent_peer" {
        /// Its address.
        h: Addr = "h",
        /// Its port.
        p: Port = "p",
    }
}

gannet_event::record! {
    /// A value: exactly one of the fields is set.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Entry<'a> = "bittorrent_benc_value" {
        /// A number.
        i: Option<i64> = "i",
        /// A string.
        s: Option<&'a [u8]> = "s",
        /// A dictionary, in bencode.
        d: Option<&'a [u8]> = "d",
        /// A list, in bencode.
        l: Option<&'a [u8]> = "l",
    }
}

/// Result of parsing the beginning of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parsed<'a> {
    /// A complete dictionary.
    Whole(Dictionary<'a>),
    /// An incomplete dictionary: more bytes are needed.
    Incomplete,
    /// Not a dictionary, with the reason in Zeek's words.
    Malformed(&'static str),
}

/// A dictionary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dictionary<'a> {
    /// The peers in the value of the key `peers`, in the compact form of BEP 23.
    pub peers: Vec<Peer>,
    /// All other entries in order of first appearance, without duplicate keys; the last value counts.
    pub entries: Vec<(&'a [u8], Entry<'a>)>,
    /// Length of the dictionary, in bytes.
    pub len: usize,
}

const INVALID: &str = "BitTorrentTracker: no valid bencoding";

/// A dictionary or list that has not ended yet: its kind (`d` or `l`), and the number of its items so far.
struct Open {
    kind: u8,
    count: usize,
}

impl Open {
    /// Whether the next value is a key.
    fn expects_key(&self) -> bool {
        self.kind == b'd' && self.count.is_multiple_of(2)
    }
}

/// Parses the dictionary at the start of a text. A truncated text is incomplete unless its part is malformed.
pub fn parse(text: &[u8]) -> Parsed<'_> {
    let mut open: Vec<Open> = Vec::new();
    let mut found = Dictionary::default();
    // The last key of the outer dictionary, and the offset of the nested value that has begun.
    let (mut key, mut begin) = (None, 0);
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        let expects_key = open.last().map(Open::expects_key);
        // A complete value, of the outer dictionary or of a nested one.
        let mut value = None;
        match byte {
            b'd' | b'l' => {
                match (byte, expects_key) {
                    (b'l', None) => return invalid_first("l"),
                    (b'd', Some(true)) => return invalid_key("a directory"),
                    (_, Some(true)) => return invalid_key("a list"),
                    _ => {}
                }
                if open.len() == 1 {
                    begin = at;
                }
                open.push(Open { kind: *byte, count: 0 });
                at += 1;
                continue;
            }
            b'i' => {
                match expects_key {
                    None => return invalid_first("i"),
                    Some(true) => return invalid_key("an int"),
                    Some(false) => {}
                }
                let rest = &text[at + 1..];
                let sign = usize::from(rest.starts_with(b"-"));
                let digits = rest[sign..].iter().take_while(|b| b.is_ascii_digit()).count();
                match rest.get(sign + digits) {
                    None => return Parsed::Incomplete,
                    Some(b'e') if digits > 0 => {}
                    Some(_) => return Parsed::Malformed(INVALID),
                }
                // As in Zeek, numbers are truncated to 32 bits.
                value = Some(Entry {
                    i: Some(i64::from(number(&rest[..sign + digits]) as i32)),
                    ..Entry::default()
                });
                at += sign + digits + 2;
            }
            b'0'..=b'9' => {
                let Some(expects_key) = expects_key else { return invalid_first("[0-9]") };
                let digits = text[at..].iter().take_while(|b| b.is_ascii_digit()).count();
                match text.get(at + digits) {
                    None => return Parsed::Incomplete,
                    Some(b':') => {}
                    Some(_) => return Parsed::Malformed(INVALID),
                }
                // As in Zeek, lengths are truncated to 32 bits.
                let len = number(&text[at..at + digits]) as u32 as usize;
                let rest = &text[at + digits + 1..];
                let Some(string) = rest.get(..len) else { return Parsed::Incomplete };
                at += digits + 1 + len;
                if open.len() == 1 && expects_key {
                    key = Some(string);
                } else {
                    value = Some(Entry { s: Some(string), ..Entry::default() });
                }
            }
            b'e' => {
                let Some(last) = open.pop() else { return invalid_first("e") };
                if last.kind == b'd' && !last.count.is_multiple_of(2) {
                    let odd = "BitTorrentTracker: directory has an odd count of members";
                    return Parsed::Malformed(odd);
                }
                at += 1;
                if open.is_empty() {
                    found.len = at;
                    return Parsed::Whole(found);
                }
                let raw = Some(&text[begin..at]);
                value = Some(match last.kind {
                    b'd' => Entry { d: raw, ..Entry::default() },
                    _ => Entry { l: raw, ..Entry::default() },
                });
            }
            _ => return Parsed::Malformed(INVALID),
        }
        if let ([_], Some(value)) = (&open[..], value)
            && let Some(key) = key.take()
        {
            found.add(key, value);
        }
        if let Some(last) = open.last_mut() {
            last.count += 1;
        }
    }
    Parsed::Incomplete
}

/// The error of a text whose first character is not that of a dictionary.
fn invalid_first(what: &str) -> Parsed<'static> {
    Parsed::Malformed(match what {
        "l" => "BitTorrentTracker: not a bencoded directory (first char: l)",
        "i" => "BitTorrentTracker: not a bencoded directory (first char: i)",
        "e" => "BitTorrentTracker: not a bencoded directory (first char: e)",
        _ => "BitTorrentTracker: not a bencoded directory (first char: [0-9])",
    })
}

/// The error of a dictionary key that is not a string.
fn invalid_key(what: &str) -> Parsed<'static> {
    Parsed::Malformed(match what {
        "a directory" => "BitTorrentTracker: directory key is not a string but a directory",
        "a list" => "BitTorrentTracker: directory key is not a string but a list",
        _ => "BitTorrentTracker: directory key is not a string but an int",
    })
}

/// Parses digits with an optional minus sign.
fn number(text: &[u8]) -> i64 {
    let (sign, digits) = match text {
        [b'-', digits @ ..] => (-1, digits),
        digits => (1, digits),
    };
    let digit =
        |sum: i64, b: &u8| sum.saturating_mul(10).saturating_add(sign * i64::from(b - b'0'));
    digits.iter().fold(0, digit)
}

impl<'a> Dictionary<'a> {
    fn add(&mut self, key: &'a [u8], value: Entry<'a>) {
        if let (b"peers", Some(peers)) = (key, value.s) {
            let mut peers = Bytes(peers);
            while let Some([a, b, c, d, high, low]) = peers.array() {
                let p = Port(u16::from_be_bytes([high, low]), Proto::Tcp);
                let peer = Peer { h: Addr::v4([a, b, c, d]), p };
                if !self.peers.contains(&peer) {
                    self.peers.push(peer);
                }
            }
            return;
        }
        match self.entries.iter_mut().find(|(known, _)| *known == key) {
            Some((_, known)) => *known = value,
            None => self.entries.push((key, value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &[u8] =
        b"d8:completei-5e1:dd1:ai1ee0:le4:listl1:xi2ee5:peers13:\x0a\0\0\x01\x1a\xe1\x0a\0\0\x02\0\x50x1:s0:e";

    #[test]
    fn numbers_have_32_bits() {
        let Parsed::Whole(found) = parse(b"d1:ai99999999999e1:bi-5ee") else { panic!() };
        let numbers: Vec<_> = found.entries.iter().map(|(_, value)| value.i).collect();
        assert_eq!(numbers, [Some(1_215_752_191), Some(-5)]);
    }

    #[test]
    fn dictionaries_have_entries_and_peers() {
        let text = [TEXT, b"rest"].concat();
        let Parsed::Whole(found) = parse(&text) else { panic!() };
        assert_eq!(found.len, TEXT.len());
        let peer = |last, port| Peer { h: Addr::v4([10, 0, 0, last]), p: Port(port, Proto::Tcp) };
        assert_eq!(found.peers, [peer(1, 6881), peer(2, 80)]);
        let none = Entry::default();
        assert_eq!(
            found.entries,
            [
                (&b"complete"[..], Entry { i: Some(-5), ..none }),
                (b"d", Entry { d: Some(b"d1:ai1ee"), ..none }),
                (b"", Entry { l: Some(b"le"), ..none }),
                (b"list", Entry { l: Some(b"l1:xi2ee"), ..none }),
                (b"s", Entry { s: Some(b""), ..none }),
            ]
        );
    }

    #[test]
    fn truncated_dictionaries_are_incomplete() {
        for n in 0..TEXT.len() {
            assert_eq!(parse(&TEXT[..n]), Parsed::Incomplete, "{n}");
        }
    }

    #[test]
    fn errors_have_reasons() {
        for (text, end) in [
            (&b"le"[..], "(first char: l)"),
            (b"i1e", "(first char: i)"),
            (b"e", "(first char: e)"),
            (b"1:a", "(first char: [0-9])"),
            (b"dd", "not a string but a directory"),
            (b"dl", "not a string but a list"),
            (b"di", "not a string but an int"),
            (b"d1:ae", "an odd count of members"),
            (b"d1:ai-e", "no valid bencoding"),
            (b"d1x", "no valid bencoding"),
            (b"dx", "no valid bencoding"),
        ] {
            let Parsed::Malformed(why) = parse(text) else { panic!("{text:?}") };
            assert!(why.ends_with(end), "{why}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_parsed(data: Vec<u8>) {
            parse(&data);
        }

        #[test]
        fn any_tokens_are_parsed(words in proptest::collection::vec("d|l|e|i-?[0-9]*e|[0-9]:|[0-9]{12}:|a", 0..30)) {
            parse(words.concat().as_bytes());
        }
    }
}
