//! Matching and searching.

use super::Pattern;

impl Pattern {
    /// `pattern == string`: whether all of `string` matches.
    #[must_use]
    pub fn matches(&self, string: &[u8]) -> bool {
        let Some(matchers) = self.matchers() else { return string.is_empty() };
        matchers.exact.walk(|walk| {
            walk.begin();
            walk.run(string);
            walk.end();
            walk.accepts()
        })
    }

    /// `pattern in string`: whether a substring matches.
    ///
    /// An empty string matches only if the pattern requires its end: `/$/`, but not `/a*/`.
    #[must_use]
    pub fn is_in(&self, string: &[u8]) -> bool {
        let Some(matchers) = self.matchers() else { return true };
        matchers.anywhere.walk(|walk| {
            walk.begin();
            if string.is_empty() {
                walk.end();
                return walk.accepts();
            }
            walk.run_to_match(string);
            if !walk.accepts() {
                walk.end();
            }
            walk.accepts()
        })
    }

    /// The length of the longest match at the beginning of `string`; `begin` and `end` are whether `^` and `$`
    /// match at its ends.
    #[must_use]
    pub fn longest_prefix(&self, string: &[u8], begin: bool, end: bool) -> Option<usize> {
        let Some(matchers) = self.matchers() else { return Some(0) };
        matchers.exact.walk(|walk| {
            if begin {
                walk.begin();
            }
            let mut longest = walk.accepts().then_some(0);
            for (at, byte) in string.iter().enumerate() {
                walk.byte(*byte);
                if walk.is_dead() {
                    return longest;
                }
                if walk.accepts() {
                    longest = Some(at + 1);
                }
            }
            if end {
                walk.end();
                if walk.accepts() {
                    return Some(string.len());
                }
            }
            longest
        })
    }

    /// Longest matches from left to right, without overlap (`find_all`, `find_all_ordered`); `^` matches before
    /// each byte.
    #[must_use]
    pub fn find_all<'s>(&self, string: &'s [u8]) -> Vec<&'s [u8]> {
        let mut found = Vec::new();
        let mut at = 0;
        while at < string.len() {
            at += self.skippable(&string[at..], true, true);
            if at >= string.len() {
                break;
            }
            match self.longest_prefix(&string[at..], true, true) {
                Some(len) => {
                    found.push(&string[at..at + len]);
                    // After an empty match the search continues with the next byte.
                    at += len.max(1);
                }
                None => at += 1,
            }
        }
        found
    }

    /// The first match at or after `offset` (`find_first`).
    #[must_use]
    pub fn find_first<'s>(&self, string: &'s [u8], offset: u64) -> Option<&'s [u8]> {
        let offset = usize::try_from(offset).ok()?;
        (offset..string.len()).find_map(|at| self.match_at(string, at))
    }

    /// The match with the largest beginning at or after `offset` (`find_last`).
    #[must_use]
    pub fn find_last<'s>(&self, string: &'s [u8], offset: u64) -> Option<&'s [u8]> {
        let offset = usize::try_from(offset).ok()?;
        (offset..string.len()).rev().find_map(|at| self.match_at(string, at))
    }

    fn match_at<'s>(&self, string: &'s [u8], at: usize) -> Option<&'s [u8]> {
        let len = self.longest_prefix(&string[at..], true, true)?;
        Some(&string[at..at + len])
    }

    /// The parts between nonempty matches, and with `separators` also the matches: `split_string` (`max` 0, no
    /// limit), `split_string1` (1), `split_string_all` (`separators`), `split_string_n`.
    #[must_use]
    pub fn split<'s>(&self, string: &'s [u8], separators: bool, max: u64) -> Vec<&'s [u8]> {
        let mut parts = Vec::new();
        self.split_each(string, separators, max, |part| parts.push(part));
        parts
    }

    /// Like [`split`](Self::split), but passes each part to `each`.
    pub fn split_each<'s>(
        &self,
        string: &'s [u8],
        separators: bool,
        max: u64,
        mut each: impl FnMut(&'s [u8]),
    ) {
        let mut rest = string;
        let (mut begin, mut count) = (true, 0);
        loop {
            let found =
                if max != 0 && count >= max { None } else { self.next_match(rest, &mut begin) };
            let Some((at, len)) = found else {
                return each(rest);
            };
            each(&rest[..at]);
            if separators {
                each(&rest[at..at + len]);
            }
            count += 1;
            rest = &rest[at + len..];
        }
    }

    /// Replaces the first nonempty match (`sub`), or with `all` every one (`gsub`).
    ///
    /// # Errors
    /// The length of the result if it exceeds `max`.
    pub fn replace(
        &self,
        string: &[u8],
        by: &[u8],
        all: bool,
        max: usize,
    ) -> Result<Vec<u8>, usize> {
        let mut result = Vec::with_capacity(string.len());
        let mut rest = string;
        let mut begin = true;
        while let Some((at, len)) = self.next_match(rest, &mut begin) {
            let length = result.len() + at + by.len();
            if length > max {
                return Err(length);
            }
            result.extend_from_slice(&rest[..at]);
            result.extend_from_slice(by);
            rest = &rest[at + len..];
            if !all {
                break;
            }
        }
        result.extend_from_slice(rest);
        Ok(result)
    }

    /// Offset and length of the next nonempty match. `^` matches until a byte is skipped (`begin`).
    fn next_match(&self, string: &[u8], begin: &mut bool) -> Option<(usize, usize)> {
        let mut at = 0;
        while at < string.len() {
            match self.longest_prefix(&string[at..], *begin, true) {
                Some(len) if len > 0 => return Some((at, len)),
                _ => {
                    *begin = false;
                    at += 1;
                    at += self.skippable(string.get(at..).unwrap_or_default(), false, false);
                }
            }
        }
        None
    }

    /// The number of bytes at the beginning of `string` at which no match begins; with `empty`, empty matches
    /// count as matches.
    fn skippable(&self, string: &[u8], begin: bool, empty: bool) -> usize {
        let Some(matchers) = self.matchers() else { return 0 };
        if empty && matchers.exact.matches_empty(begin) {
            return 0;
        }
        let skipped = matchers.exact.with_first_bytes(begin, |first| {
            string.iter().position(|byte| first[usize::from(*byte)]).unwrap_or(string.len())
        });
        skipped.unwrap_or(0)
    }
}

/// `convert_for_pattern`: `string` with a backslash before each character that is special in
/// patterns.
#[must_use]
pub fn escape(string: &[u8]) -> Vec<u8> {
    let mut escaped = Vec::with_capacity(string.len());
    for byte in string {
        // The search includes the NUL at the end of a C string.
        if b"^$-:\"\\/|*+?.(){}[]\0".contains(byte) {
            escaped.push(b'\\');
        }
        if *byte == 0 {
            break;
        }
        escaped.push(*byte);
    }
    escaped
}
