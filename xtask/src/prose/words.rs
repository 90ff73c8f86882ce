//! The words to avoid.

/// Words to avoid, for one reason.
#[derive(Debug, PartialEq)]
pub(super) struct Word {
    /// Lower-case words with one space between them.
    pub(super) patterns: &'static [&'static str],
    /// What to write instead.
    pub(super) replacement: &'static str,
    /// Why the words are unclear.
    pub(super) reason: &'static str,
    /// Words after a match that make it acceptable.
    unless: &'static [&'static str],
}

const fn word(
    patterns: &'static [&'static str],
    replacement: &'static str,
    reason: &'static str,
) -> Word {
    Word { patterns, replacement, reason, unless: &[] }
}

/// All words to avoid.
pub(super) const WORDS: &[Word] = &[
    word(
        &["told", "tells", "tell of"],
        "report, emit, return, show, say",
        "software reports, returns or emits; the verb names what happens",
    ),
    word(
        &["nobody", "somebody", "anybody", "everybody", "whoever"],
        "the component's name: no thread, a listener, the caller, the sender",
        "a component is no person, and the reader must guess which one is meant",
    ),
    word(
        &["so many", "so few"],
        "a count, that many, a number of",
        "it stands for a number that is never named",
    ),
    word(&["how manieth"], "n-th, index, position", "no English word"),
    Word {
        patterns: &["is there", "are there", "were there", "was there"],
        replacement: "exists, is present, is available, has arrived",
        reason: "it leaves open where 'there' is",
        // Questions.
        unless: &["a", "an", "any", "no", "more"],
    },
    word(
        &["what is left", "all that is left"],
        "the rest, the remaining bytes",
        "a clause in place of a noun",
    ),
    word(
        &["thereof", "therein", "thereby", "wherein", "hence", "whence"],
        "of it, in it, so",
        "out of use",
    ),
    word(&["goes on as", "go on as"], "becomes, continues as", "an idiom that means two things"),
    word(
        &["stand beside", "stands beside", "lie beside", "lies beside", "beside"],
        "next to, with; in addition to, besides",
        "it means 'next to' and was used for 'in addition to' and 'concurrently'",
    ),
    word(&["oddity", "oddities"], "weird, weirds", "Zeek's word for it is 'weird'"),
    word(&["nothing else than", "nothing but"], "only", "a double negative"),
    word(&["anew"], "again; from scratch", "out of use"),
    word(&["at hand"], "current", "an idiom; 'current' is the usual word"),
    word(&["lest"], "so that ... not", "out of use"),
    word(
        &["save where", "save that", "save in", "save for", "save by", "save when", "save what"],
        "except",
        "'save' reads as 'store'",
    ),
    word(
        &["held against", "holds against", "hold against", "holding against"],
        "compared with, compare with",
        "the idiom means 'blamed for'",
    ),
    word(&["mend", "mends", "mended"], "fix, correct", "software is fixed"),
    word(
        &["speak of", "speaks of"],
        "contain, describe, refer to",
        "data does not speak; the verb hides whether it names, contains or announces",
    ),
    word(
        &["takes apart", "take apart", "taken apart", "takes it apart", "taking apart"],
        "parse, parsed",
        "'parse' is the word for it",
    ),
    word(&["told apart", "tell apart", "tells apart"], "distinguish", "an idiom"),
    word(
        &["stand in", "stands in", "stood in"],
        "is in, is at",
        "data does not stand; 'stand in' means 'replace'",
    ),
    word(
        &["comes of it", "come of it", "makes of it", "made of it"],
        "the result",
        "an idiom in place of a noun",
    ),
    word(
        &["goes along", "go along"],
        "is passed with, is sent with",
        "an idiom that means 'agree'",
    ),
    word(&["asks after", "ask after", "asked after"], "query, look up", "it asks how a person is"),
    word(&["in vain"], "without result, fails", "literary"),
];

/// Finds all words to avoid in a text: offset, length and the word, in order. If two begin at the
/// same offset, the longer one counts; matches do not overlap.
pub(super) fn find(text: &str) -> Vec<(usize, usize, &'static Word)> {
    let lower = text.to_ascii_lowercase();
    let mut found = Vec::new();
    for word in WORDS {
        for pattern in word.patterns {
            for (at, _) in lower.match_indices(pattern) {
                let (before, behind) = (&lower[..at], &lower[at + pattern.len()..]);
                let whole = !before.ends_with(is_part) && !behind.starts_with(is_part);
                let next = behind.split_whitespace().next().unwrap_or_default();
                if whole && !word.unless.contains(&next) {
                    found.push((at, pattern.len(), word));
                }
            }
        }
    }
    found.sort_by_key(|&(at, length, _)| (at, usize::MAX - length));
    let mut end = 0;
    found.retain(|&(at, length, _)| {
        let apart = at >= end;
        if apart {
            end = at + length;
        }
        apart
    });
    found
}

/// Whether a character belongs to a word or identifier.
fn is_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<&str> {
        find(text).iter().map(|&(at, length, _)| &text[at..at + length]).collect()
    }

    #[test]
    fn whole_words_are_found_in_any_case() {
        assert_eq!(
            found("Nobody is told; toldest, told_of and besides are not."),
            ["Nobody", "told"]
        );
    }

    #[test]
    fn the_longer_of_two_counts_once() {
        assert_eq!(
            found("It stands beside the cell, told apart by hash."),
            ["stands beside", "told apart"]
        );
    }

    #[test]
    fn a_question_may_ask_whether_something_exists() {
        assert_eq!(found("Is there a row? The bytes that are there."), ["are there"]);
    }

    #[test]
    fn letters_beyond_ascii_do_not_move_matches() {
        assert_eq!(found("größer – Größe, told"), ["told"]);
    }

    #[test]
    fn every_pattern_finds_itself() {
        for word in WORDS {
            for pattern in word.patterns {
                assert_eq!(found(pattern), [*pattern], "{pattern}");
                assert!(!word.replacement.is_empty() && !word.reason.is_empty());
            }
        }
    }
}
