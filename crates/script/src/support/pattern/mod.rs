//! Zeek's regular expressions.
//!
//! [`Pattern`] is a value of the type `pattern`, [`PatternSet`] the keys of a `table[pattern]`. Patterns match
//! bytes; `^` and `$` are separate symbols before the first and after the last byte. A deterministic automaton
//! does the matching; its states are built on demand.
//!
//! ```
//! use gannet_script::support::pattern::{Modes, Pattern, PatternSet};
//!
//! let p = Pattern::new(b"fo+", Modes { ignore_case: true, single_line: false });
//! assert!(p.errors().is_empty());
//! assert_eq!(p.text(), b"(?i:^?(fo+)$?)"); // printed between slashes
//! assert!(p.matches(b"FOO")); // p == "FOO"
//! assert!(p.is_in(b"a fool")); // p in "a fool"
//! assert_eq!(p.longest_prefix(b"fooo!", true, true), Some(4));
//!
//! let comma = Pattern::new(b",", Modes::default());
//! assert_eq!(comma.split(b"a,b", false, 0), [b"a", b"b"]); // split_string
//! assert_eq!(comma.replace(b"a,b", b"; ", true, 100).unwrap(), b"a; b"); // gsub, at most 100 bytes
//!
//! let both = p.or(&comma); // p | comma
//! assert_eq!(both.text(), b"^?(((?i:^?(fo+)$?))|(^?(,)$?))$?");
//!
//! let set = PatternSet::new([p.text(), comma.text()]);
//! assert_eq!(set.matching(b","), [1]); // t[","] of a table[pattern]
//! ```

mod dfa;
mod nfa;
mod parse;
mod search;
mod set;

use std::cell::OnceCell;
use std::fmt;

use dfa::Dfa;
use parse::Parser;

pub use search::escape;
pub use set::{PatternSet, Stream};

/// The flags after a pattern: `/…/i`, `/…/s`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Modes {
    /// `i`: letters match in both cases.
    pub ignore_case: bool,
    /// `s`: `.` also matches newlines.
    pub single_line: bool,
}

/// A value of the type `pattern`.
pub struct Pattern {
    exact_text: Box<[u8]>,
    anywhere_text: Box<[u8]>,
    /// The matchers; `None` for an invalid pattern. For text that is known to be valid they are built on first
    /// use.
    matchers: OnceCell<Option<Box<Matchers>>>,
    errors: Vec<Vec<u8>>,
}

struct Matchers {
    exact: Dfa,
    anywhere: Dfa,
}

impl Pattern {
    /// A pattern from the text between slashes.
    ///
    /// If `body` is invalid, [`errors`](Self::errors) returns Zeek's messages, and the pattern behaves like an
    /// invalid pattern in Zeek: it matches the empty string, and is in every string.
    #[must_use]
    pub fn new(body: &[u8], modes: Modes) -> Self {
        let [exact, anywhere] = texts(body, modes);
        Self::from_texts(&exact, &anywhere)
    }

    /// The errors that [`new`](Self::new) would report.
    #[must_use]
    pub fn check(body: &[u8], modes: Modes) -> Vec<Vec<u8>> {
        let [exact, anywhere] = texts(body, modes);
        let mut errors = Vec::new();
        if automaton(&anywhere, &mut errors).is_some() {
            automaton(&exact, &mut errors);
        }
        errors
    }

    /// A pattern from text that [`check`](Self::check) accepted.
    #[must_use]
    pub fn checked(body: &[u8], modes: Modes) -> Self {
        let [exact, anywhere] = texts(body, modes);
        Self::valid(&exact, &anywhere)
    }

    /// A pattern from the two texts of another, as stored in a table key.
    #[must_use]
    pub fn from_texts(exact: &[u8], anywhere: &[u8]) -> Self {
        let (exact_text, anywhere_text) = (until_nul(exact), until_nul(anywhere));
        let mut errors = Vec::new();
        let matchers = matchers(exact_text, anywhere_text, &mut errors);
        Pattern {
            exact_text: exact_text.into(),
            anywhere_text: anywhere_text.into(),
            matchers: OnceCell::from(matchers),
            errors,
        }
    }

    /// A pattern from the two texts of a valid one.
    #[must_use]
    pub fn valid(exact: &[u8], anywhere: &[u8]) -> Self {
        Pattern {
            exact_text: exact.into(),
            anywhere_text: anywhere.into(),
            matchers: OnceCell::new(),
            errors: Vec::new(),
        }
    }

    fn matchers(&self) -> Option<&Matchers> {
        let made = || matchers(&self.exact_text, &self.anywhere_text, &mut Vec::new());
        self.matchers.get_or_init(made).as_deref()
    }

    /// The text that Zeek prints between slashes, compares with `==`, and stores as the first part of a key.
    #[must_use]
    pub fn text(&self) -> &[u8] {
        &self.exact_text
    }

    /// The text for searching, the second part of a key.
    #[must_use]
    pub fn anywhere_text(&self) -> &[u8] {
        &self.anywhere_text
    }

    /// The errors of the text: Zeek's messages, in order. Some of them do not invalidate the pattern.
    #[must_use]
    pub fn errors(&self) -> &[Vec<u8>] {
        &self.errors
    }

    /// Whether the pattern is valid.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.matchers().is_some()
    }

    /// `self & other`: a match of `self` followed by one of `other`.
    #[must_use]
    pub fn then(&self, other: &Pattern) -> Pattern {
        self.merge(b"", other)
    }

    /// `self | other`.
    #[must_use]
    pub fn or(&self, other: &Pattern) -> Pattern {
        self.merge(b"|", other)
    }

    fn merge(&self, operator: &[u8], other: &Pattern) -> Pattern {
        let body = [b"(", self.text(), b")", operator, b"(", other.text(), b")"].concat();
        Pattern::new(&body, Modes::default())
    }

    /// The value of a pattern variable after `self += added`.
    #[must_use]
    pub fn plus(&self, added: &Pattern) -> Pattern {
        // Zeek puts the added pattern first.
        let two = |first: [&[u8]; 3], second: [&[u8]; 3]| {
            [b"(", first.concat().as_slice(), b")|(", second.concat().as_slice(), b")"].concat()
        };
        let (first, second) = (added.text(), self.text());
        let exact = two([b"^?(", first, b")$?"], [b"^?(", second, b")$?"]);
        let anywhere = two([b"^?(.|\\n)*(", first, b")"], [b"^?(.|\\n)*(", second, b")"]);
        Pattern::from_texts(&exact, &anywhere)
    }

    /// Size of the automata: states built so far, and approximate memory.
    #[must_use]
    pub fn stats(&self) -> PatternStats {
        let mut stats = PatternStats::default();
        for dfa in self.matchers().into_iter().flat_map(|m| [&m.exact, &m.anywhere]) {
            let (states, nfa_states, bytes) = dfa.stats();
            stats.dfa_states += states;
            stats.nfa_states += nfa_states;
            stats.bytes += bytes;
        }
        stats
    }
}

/// Size of automata.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PatternStats {
    /// Number of deterministic states built so far.
    pub dfa_states: usize,
    /// Number of states of the underlying nondeterministic automaton.
    pub nfa_states: usize,
    /// Approximate memory, in bytes.
    pub bytes: usize,
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/{}/", self.text().escape_ascii())
    }
}

/// Texts end at the first NUL byte.
fn until_nul(text: &[u8]) -> &[u8] {
    text.split(|b| *b == 0).next().unwrap_or_default()
}

fn matchers(exact: &[u8], anywhere: &[u8], errors: &mut Vec<Vec<u8>>) -> Option<Box<Matchers>> {
    let anywhere = compile(anywhere, errors)?;
    let exact = compile(exact, errors)?;
    Some(Box::new(Matchers { exact, anywhere }))
}

/// The two texts of a pattern from the text between slashes.
fn texts(body: &[u8], modes: Modes) -> [Vec<u8>; 2] {
    let body = until_nul(body);
    let mut exact = [b"^?(", body, b")$?"].concat();
    let mut anywhere = [b"^?(.|\\n)*(", body, b")"].concat();
    if modes.ignore_case {
        exact = [b"(?i:", exact.as_slice(), b")"].concat();
        anywhere = [b"(?i:", anywhere.as_slice(), b")"].concat();
    }
    if modes.single_line {
        exact = [b"(?s:", exact.as_slice(), b")"].concat();
        anywhere = [b"(?s:", anywhere.as_slice(), b")"].concat();
    }
    [exact, anywhere]
}

fn compile(text: &[u8], errors: &mut Vec<Vec<u8>>) -> Option<Dfa> {
    automaton(text, errors).map(|(nfa, start)| Dfa::new(nfa, start))
}

/// The nondeterministic automaton and its first state.
fn automaton(text: &[u8], errors: &mut Vec<Vec<u8>>) -> Option<(nfa::Nfa, u32)> {
    let mut parser = Parser::default();
    let parsed = parser.parse(text);
    errors.append(&mut parser.errors);
    let accepted = parsed.ok().and_then(|whole| parser.nfa.accept(whole, 0).ok());
    if accepted.is_none() {
        errors.push([b"error compiling pattern /", text, b"/"].concat());
    }
    accepted.map(|whole| (parser.nfa, whole.start()))
}

#[cfg(test)]
mod tests;
