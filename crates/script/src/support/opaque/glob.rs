//! Sets of globs: finds the patterns with `*`, `?` and `[…]` that match a string.

use std::collections::HashMap;

use aho_corasick::AhoCorasick;

/// A set of globs. An automaton searches for one literal word of each glob; globs whose word is found are then
/// matched individually.
#[derive(Clone, Debug)]
pub struct Globs {
    words: Vec<Vec<u8>>,
    /// For each word, the globs that contain it.
    of_word: Vec<Vec<Vec<u8>>>,
    /// Globs without literal words.
    wild: Vec<Vec<u8>>,
    search: Option<AhoCorasick>,
}

impl PartialEq for Globs {
    fn eq(&self, other: &Self) -> bool {
        let sorted = |globs: &Self| {
            let mut words = globs.words.clone();
            words.sort_unstable();
            words
        };
        sorted(self) == sorted(other)
    }
}

impl Globs {
    /// Builds a set of globs.
    #[must_use]
    pub fn new<G: AsRef<[u8]>>(globs: impl IntoIterator<Item = G>) -> Self {
        let mut ids: HashMap<Vec<u8>, usize> = HashMap::new();
        let mut set =
            Globs { words: Vec::new(), of_word: Vec::new(), wild: Vec::new(), search: None };
        for glob in globs {
            let glob = glob.as_ref();
            let words = words_of(glob);
            if words.is_empty() && !glob.is_empty() && !set.wild.iter().any(|wild| wild == glob) {
                set.wild.push(glob.to_vec());
            }
            for word in words {
                let id = *ids.entry(word.to_vec()).or_insert_with(|| {
                    set.words.push(word.to_vec());
                    set.of_word.push(Vec::new());
                    set.words.len() - 1
                });
                // Duplicates are omitted: results contain a glob only once.
                let globs = &mut set.of_word[id];
                if globs.last().is_none_or(|last| last != glob) {
                    globs.push(glob.to_vec());
                }
            }
        }
        set.search = AhoCorasick::new(&set.words).ok().filter(|_| !set.words.is_empty());
        set
    }

    /// The globs that match `string`, each once, in byte order.
    #[must_use]
    pub fn matching(&self, string: &[u8]) -> Vec<&[u8]> {
        let mut found = vec![false; self.words.len()];
        if let Some(search) = &self.search {
            for word in search.find_overlapping_iter(string) {
                if let Some(found) = found.get_mut(word.pattern().as_usize()) {
                    *found = true;
                }
            }
        }
        let mut matching: Vec<&[u8]> = Vec::new();
        for (globs, _) in self.of_word.iter().zip(&found).filter(|(_, found)| **found) {
            matching.extend(globs.iter().map(Vec::as_slice).filter(|glob| fnmatch(glob, string)));
        }
        matching.extend(self.wild.iter().map(Vec::as_slice));
        matching.sort_unstable();
        matching.dedup();
        matching
    }
}

/// The literal texts between wildcards and brackets.
fn words_of(glob: &[u8]) -> Vec<&[u8]> {
    let mut words = Vec::new();
    let mut rest = glob;
    loop {
        let open = rest.iter().position(|byte| *byte == b'[');
        let bracket = open.and_then(|open| {
            let close = rest[open..].iter().position(|byte| *byte == b']')?;
            Some((open, open + close + 1))
        });
        let (part, after) = match bracket {
            Some((open, end)) => (&rest[..open], Some(&rest[end..])),
            None => (rest, None),
        };
        words
            .extend(part.split(|byte| matches!(byte, b'*' | b'?')).filter(|word| !word.is_empty()));
        match after {
            Some(after) => rest = after,
            None => return words,
        }
    }
}

/// C's `fnmatch` without flags: whether a glob matches a string; both end at their first NUL byte.
#[must_use]
pub fn fnmatch(glob: &[u8], string: &[u8]) -> bool {
    let until_nul = |text: &'_ [u8]| text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
    let (glob, string) = (&glob[..until_nul(glob)], &string[..until_nul(string)]);
    let (mut g, mut s) = (0, 0);
    // The position to resume from if the text after the last star does not match.
    let mut again: Option<(usize, usize)> = None;
    loop {
        let matched = match glob.get(g) {
            None => s == string.len(),
            Some(b'*') => {
                again = Some((g + 1, s));
                g += 1;
                continue;
            }
            Some(_) => match string.get(s).and_then(|byte| one(&glob[g..], *byte)) {
                Some(len) => {
                    g += len;
                    s += 1;
                    continue;
                }
                None => false,
            },
        };
        if matched {
            return true;
        }
        match &mut again {
            Some((behind, from)) if *from < string.len() => {
                *from += 1;
                (g, s) = (*behind, *from);
            }
            _ => return false,
        }
    }
}

/// The length of the part of the glob that matches one byte.
fn one(glob: &[u8], byte: u8) -> Option<usize> {
    match glob {
        [b'?', ..] => Some(1),
        [b'[', ..] => match class(glob, byte) {
            Some((len, matches)) => matches.then_some(len),
            None => (byte == b'[').then_some(1),
        },
        [b'\\', escaped, ..] => (byte == *escaped).then_some(2),
        [plain, ..] => (byte == *plain).then_some(1),
        [] => None,
    }
}

/// The length of a bracket expression, and whether it matches a byte; `None` if it is not closed.
fn class(glob: &[u8], byte: u8) -> Option<(usize, bool)> {
    let negated = matches!(glob.get(1), Some(b'!' | b'^'));
    let mut at = 1 + usize::from(negated);
    let first = at;
    let mut matches = false;
    loop {
        let rest = glob.get(at..)?;
        if let Some(named) = rest.strip_prefix(b"[:")
            && let Some(end) = named.windows(2).position(|pair| pair == b":]")
        {
            matches |= is_of(&named[..end], byte);
            at += end + 4;
            continue;
        }
        let (low, len) = match rest {
            [b']', ..] if at > first => return Some((at + 1, matches != negated)),
            [b'\\', escaped, ..] => (*escaped, 2),
            [plain, ..] => (*plain, 1),
            [] => return None,
        };
        at += len;
        let high = match glob.get(at..)? {
            [b'-', b'\\', high, ..] => Some((*high, 3)),
            [b'-', high, ..] if *high != b']' => Some((*high, 2)),
            _ => None,
        };
        match high {
            Some((high, len)) => {
                matches |= (low..=high).contains(&byte);
                at += len;
            }
            None => matches |= byte == low,
        }
    }
}

fn is_of(name: &[u8], byte: u8) -> bool {
    match name {
        b"alnum" => byte.is_ascii_alphanumeric(),
        b"alpha" => byte.is_ascii_alphabetic(),
        b"blank" => matches!(byte, b' ' | b'\t'),
        b"cntrl" => byte.is_ascii_control(),
        b"digit" => byte.is_ascii_digit(),
        b"graph" => byte.is_ascii_graphic(),
        b"lower" => byte.is_ascii_lowercase(),
        b"print" => byte == b' ' || byte.is_ascii_graphic(),
        b"punct" => byte.is_ascii_punctuation(),
        b"space" => matches!(byte, b' ' | 0x09..=0x0d),
        b"upper" => byte.is_ascii_uppercase(),
        b"xdigit" => byte.is_ascii_hexdigit(),
        _ => false,
    }
}
