//! Simultaneous matching of several patterns.

use super::dfa::{Dfa, DfaWalk, Position};
use super::nfa::{BEGIN, Fragment};
use super::parse::Parser;
use super::{PatternStats, until_nul};

/// The patterns of a `table[pattern]` or of a group of signatures, in one automaton.
#[derive(Debug)]
pub struct PatternSet {
    dfa: Option<Dfa>,
    errors: Vec<(u32, Vec<u8>)>,
}

impl PatternSet {
    /// A set of pattern texts ([`Pattern::text`](super::Pattern::text)), numbered from 0.
    ///
    /// Invalid patterns are omitted and reported in [`errors`](Self::errors).
    #[must_use]
    pub fn new<T: AsRef<[u8]>>(texts: impl IntoIterator<Item = T>) -> Self {
        let mut parser = Parser::default();
        let mut whole: Option<Fragment> = None;
        let mut errors = Vec::new();
        for (number, text) in (0..).zip(texts) {
            let text = until_nul(text.as_ref());
            let parsed = parser.parse(text).ok();
            let parsed = parsed.and_then(|one| parser.nfa.accept(one, number).ok());
            let joined = match (whole, parsed) {
                (Some(whole), Some(one)) => parser.nfa.alternate(whole, one).ok(),
                (None, one) => one,
                (whole, None) => whole,
            };
            errors.extend(parser.errors.drain(..).map(|error| (number, error)));
            if parsed.is_none() || joined.is_none() {
                errors.push((number, [b"error compiling pattern /", text, b"/"].concat()));
            }
            whole = joined.or(whole);
        }
        // The beginning of a string is optional.
        let begin = parser.nfa.symbol(BEGIN).and_then(|begin| parser.nfa.optional(begin)).ok();
        let dfa = whole.zip(begin).map(|(whole, begin)| {
            let start = parser.nfa.concatenate(begin, whole).start();
            Dfa::new(parser.nfa, start)
        });
        PatternSet { dfa, errors }
    }

    /// Zeek's messages about invalid patterns, each with the number of its text.
    #[must_use]
    pub fn errors(&self) -> &[(u32, Vec<u8>)] {
        &self.errors
    }

    /// The numbers of the patterns that match the whole `string`, ascending.
    #[must_use]
    pub fn matching(&self, string: &[u8]) -> Vec<u32> {
        self.on_match(string, |walk| walk.accepted().to_vec()).unwrap_or_default()
    }

    /// Whether any pattern matches the whole `string`: `string in t`.
    #[must_use]
    pub fn matches(&self, string: &[u8]) -> bool {
        self.on_match(string, |walk| walk.accepts()).unwrap_or(false)
    }

    fn on_match<R>(&self, string: &[u8], f: impl FnOnce(&mut DfaWalk<'_>) -> R) -> Option<R> {
        self.dfa.as_ref()?.walk(|walk| {
            walk.begin();
            walk.run(string);
            walk.end();
            Some(f(walk))
        })
    }

    /// Begins matching of a stream that arrives in pieces, as for signatures.
    #[must_use]
    pub fn stream(&self) -> Stream {
        Stream { position: None, consumed: 0, restarted: false, matches: Vec::new() }
    }

    /// Matches a piece of a stream; `begin` marks the first, `end` the last. Returns whether a pattern matched
    /// that had not matched before. As in Zeek, a pattern that matches the empty string matches at the first
    /// piece, which alone is no new match, and not after a [`restart`](Stream::restart).
    pub fn feed(&self, stream: &mut Stream, piece: &[u8], begin: bool, end: bool) -> bool {
        let Some(dfa) = &self.dfa else { return false };
        let is_first = stream.position.is_none() && !stream.restarted;
        let mut position = stream.position.take().unwrap_or_else(|| dfa.begin());
        let Stream { consumed, matches, .. } = stream;
        let before = matches.len();
        let mut begun = 0;
        dfa.resume(&mut position, |walk| {
            let mut note = |walk: &DfaWalk<'_>, at: u64| {
                for number in walk.accepted() {
                    if !matches.iter().any(|(known, _)| known == number) {
                        matches.push((*number, at));
                    }
                }
            };
            if is_first && walk.accepts() {
                note(walk, 0);
                begun = walk.accepted().len();
            }
            if begin {
                walk.begin();
                note(walk, *consumed);
                *consumed += 1;
            }
            for byte in piece {
                if walk.is_dead() {
                    break;
                }
                walk.byte(*byte);
                if walk.accepts() {
                    note(walk, *consumed);
                }
                *consumed += 1;
            }
            if end && !walk.is_dead() {
                walk.end();
                note(walk, *consumed);
                *consumed += 1;
            }
        });
        stream.position = Some(position);
        stream.matches.len() > before + begun
    }

    /// The size of the automaton.
    #[must_use]
    pub fn stats(&self) -> PatternStats {
        let (dfa_states, nfa_states, bytes) = self.dfa.as_ref().map(Dfa::stats).unwrap_or_default();
        PatternStats { dfa_states, nfa_states, bytes }
    }
}

/// Matching state of a stream.
#[derive(Clone, Debug)]
pub struct Stream {
    position: Option<Position>,
    consumed: u64,
    restarted: bool,
    matches: Vec<(u32, u64)>,
}

impl Stream {
    /// The patterns that matched, in order, each with the position of the symbol that completed its first
    /// match. Symbols are the bytes and the beginning and end of the data; if the beginning was consumed, the
    /// position is the number of bytes.
    #[must_use]
    pub fn matches(&self) -> &[(u32, u64)] {
        &self.matches
    }

    /// Restarts matching and keeps earlier matches.
    pub fn restart(&mut self) {
        self.restarted |= self.position.is_some();
        self.position = None;
        self.consumed = 0;
    }
}
