use proptest::prelude::*;

use super::search::escape;
use super::*;

fn p(body: &str) -> Pattern {
    let p = Pattern::new(body.as_bytes(), Modes::default());
    assert!(p.is_valid(), "{body}: {:?}", p.errors());
    p
}

fn i(body: &str) -> Pattern {
    let p = Pattern::new(body.as_bytes(), Modes { ignore_case: true, single_line: false });
    assert!(p.is_valid(), "{body}: {:?}", p.errors());
    p
}

fn errors(body: &[u8]) -> Vec<String> {
    let p = Pattern::new(body, Modes::default());
    p.errors().iter().map(|e| String::from_utf8_lossy(e).into_owned()).collect()
}

#[test]
fn all_of_a_string_or_a_part_of_it() {
    assert!(p("foo|bar").matches(b"foo"));
    assert!(!p("foo|bar").matches(b"foobar"));
    assert!(p("foo|bar").is_in(b"foobar"));
    assert!(p("oob").is_in(b"foobar"));
    assert!(!p("^oob").is_in(b"foobar"));
    assert!(p("^foo").is_in(b"foobar"));
    assert!(!p("foo$").is_in(b"foobar"));
    assert!(p("bar$").is_in(b"foobar"));
    assert!(p("").matches(b""));
    assert!(!p("").matches(b"x"));
    assert!(p("a.c").matches(b"abc"));
    assert!(!p("a.c").matches(b"a\nc"));
    assert!(p("a.c").matches(b"a\xffc"));
}

#[test]
fn an_empty_match_needs_a_byte_or_an_anchor() {
    assert!(!p("a*").is_in(b""));
    assert!(p("a*").is_in(b"b"));
    assert!(p("$").is_in(b""));
    assert!(p("^$").matches(b""));
    assert!(!p("^$").is_in(b"x"));
}

#[test]
fn texts_are_printed() {
    assert_eq!(p("a/").text(), b"^?(a/)$?");
    assert_eq!(p("a").anywhere_text(), b"^?(.|\\n)*(a)");
    assert_eq!(i("a").text(), b"(?i:^?(a)$?)");
    let both = Pattern::new(b"a", Modes { ignore_case: true, single_line: true });
    assert_eq!(both.text(), b"(?s:(?i:^?(a)$?))");
    assert_eq!(both.anywhere_text(), b"(?s:(?i:^?(.|\\n)*(a)))");
    assert_eq!(p("a").or(&p("b")).text(), b"^?((^?(a)$?)|(^?(b)$?))$?");
    assert_eq!(p("a").then(&p("b")).text(), b"^?((^?(a)$?)(^?(b)$?))$?");
    assert_eq!(p("a").plus(&p("b")).text(), b"(^?(^?(b)$?)$?)|(^?(^?(a)$?)$?)");
    assert_eq!(
        p("a").plus(&p("b")).anywhere_text(),
        b"(^?(.|\\n)*(^?(b)$?))|(^?(.|\\n)*(^?(a)$?))"
    );
}

#[test]
fn combinations_match() {
    assert!(p("foo|bar").then(&p("oob")).is_in(b"baroob"));
    assert!(!p("oob").then(&p("foo|bar")).is_in(b"baroob"));
    assert!(p("foo|bar").or(&p("oob")).is_in(b"lazybarlazy"));
    assert!(!p("^oob").or(&p("foo")).is_in(b"xoob"));
    let sum = p("a").plus(&p("b"));
    assert!(sum.matches(b"a") && sum.matches(b"b") && !sum.matches(b"ab"));
    assert!(sum.is_in(b"xbx"));
    assert!(i("BAR").then(&p("bez")).matches(b"bArbez"));
    assert!(!i("BAR").then(&p("bez")).matches(b"bArbEz"));
}

#[test]
fn case_is_ignored_but_in_quotes_and_escapes() {
    assert!(i("fOO").matches(b"Foo"));
    assert!(i("\"fOO\"").matches(b"fOO"));
    assert!(!i("\"fOO\"").matches(b"foo"));
    assert!(!i(r"\x66").matches(b"F"));
    assert!(p("foo|(?i:bar)").is_in(b"xBAry"));
    assert!(!p("foo|(?i:bar)").is_in(b"xFOoy"));
    // The flag ends with the innermost group that has it.
    let nested = p("(?i:a(?i:b)c)");
    assert!(nested.matches(b"ABc") && !nested.matches(b"abC"));
    assert!(i("ba[0a-c99S-Z0]").matches(b"bAB"));
    assert!(i("[[:upper:]]").matches(b"a"));
    assert!(p("(?s:a.)b").matches(b"a\nb"));
    assert!(!p("(?s:a).b").matches(b"a\nb"));
}

#[test]
fn a_class_keeps_the_meaning_that_it_had_first() {
    let sensitive_first = p("[a](?i:a)");
    assert!(sensitive_first.matches(b"aa") && !sensitive_first.matches(b"aA"));
    let insensitive_first = p("(?i:[ab])[ab]");
    assert!(insensitive_first.matches(b"aB"));
}

#[test]
fn classes() {
    for (body, yes, no) in [
        ("[abc]+", "cab", "cad"),
        ("[^abc]", "d", "a"),
        ("[]a]+", "]a", "b"),
        ("[^]a]", "b", "]"),
        ("[a-]+", "-a", "b"),
        ("[-a]+", "a-", "b"),
        ("[^-a]", "b", "-"),
        ("[a^]+", "^a", "b"),
        ("[[:digit:]x]+", "1x2", "y"),
        ("[[:DIGIT:]]+", "12", "x"),
        (r"[\]\\]+", r"]\", "["),
        (r"[\x41-\x43]", "B", "D"),
        ("[--/]+", "-./", "0"),
        ("[[a]", "[", "b"),
        ("[[:blank:][:punct:]]+", " \t!", "a"),
    ] {
        assert!(p(body).matches(yes.as_bytes()), "{body} {yes}");
        assert!(!p(body).matches(no.as_bytes()), "{body} {no}");
    }
    assert!(!p("[^a]").matches(b""));
    assert!(p("[^a]").matches(b"\n"));
    assert!(p("[\u{e9}]").matches(b"\xc3"));
}

#[test]
fn repetitions() {
    for (body, yes, no) in [
        ("a{2}", vec!["aa"], vec!["a", "aaa"]),
        ("(ab){1,2}", vec!["ab", "abab"], vec!["", "ababab"]),
        ("a{0,2}", vec!["", "a", "aa"], vec!["aaa"]),
        ("a{2,}", vec!["aa", "aaaaa"], vec!["a"]),
        ("a{0,}b", vec!["b", "aab"], vec!["a"]),
        ("xa{0}y", vec!["xy"], vec!["xay"]),
        ("xa{0,0}y", vec!["xy"], vec!["xay"]),
        ("(a|b+){2,3}c", vec!["abc", "bbbbc", "aabc"], vec!["ac", "aaaac"]),
        ("(a*)*b", vec!["b", "aab"], vec!["a"]),
        ("a+?b", vec!["b", "ab", "aab"], vec!["a"]),
        ("(|a)b", vec!["b", "ab"], vec!["a"]),
        ("()a", vec!["a"], vec![""]),
        ("(ab?){2}{2}", vec!["aaaa", "abaaba", "abababab"], vec!["aaa"]),
    ] {
        for s in yes {
            assert!(p(body).matches(s.as_bytes()), "{body} {s}");
        }
        for s in no {
            assert!(!p(body).matches(s.as_bytes()), "{body} {s}");
        }
    }
}

#[test]
fn escapes() {
    for (body, string) in [
        (r"\.\*\/", &b".*/"[..]),
        (r"\n\t\r\a\b\f\v", b"\n\t\r\x07\x08\x0c\x0b"),
        (r"\x41\102\0", b"AB\0"),
        // Octal digits beyond three belong to the escape.
        (r"\1019x", b"A9x"),
        (r"\10112", b"A"),
        // Letters with a meaning in other dialects are literal.
        (r"\s\d\w", b"sdw"),
        (r"\X41", b"X"),
        ("\"a.b\\\"\"", b"a.b\""),
        ("a-b:,;'", b"a-b:,;'"),
    ] {
        assert!(p(body).matches(string), "{body}");
    }
    // The numbers of the symbols for the ends of a string.
    assert!(p(r"\400ab\401").matches(b"ab"));
    let odd = Pattern::new(br"a\xgb", Modes::default());
    assert!(odd.is_valid());
    assert_eq!(odd.errors()[0], b"bad hexadecimal escape: ");
}

#[test]
fn invalid_patterns_are_reported() {
    assert_eq!(
        errors(b"a{6,5}"),
        [
            r"bad iteration values (compiling pattern /^?(.|\n)*(a{6,5})/)",
            r"error compiling pattern /^?(.|\n)*(a{6,5})/",
        ]
    );
    assert_eq!(errors(b"(a"), [r"error compiling pattern /^?(.|\n)*((a)/"]);
    assert_eq!(
        errors(b"[1234"),
        [
            r"unterminated character class (compiling pattern /^?(.|\n)*([1234)/)",
            r"error compiling pattern /^?(.|\n)*([1234)/",
        ]
    );
    assert_eq!(errors(b"a\"b")[0], r#"missing quote (compiling pattern /^?(.|\n)*(a"b)/)"#);
    assert_eq!(
        errors(b"a{1,a}")[0],
        r"bad character inside {}'s (compiling pattern /^?(.|\n)*(a{1,a})/)"
    );
    assert_eq!(
        errors(b"[[:print:]]{-}[[:alnum:]]foo"),
        [r"error compiling pattern /^?(.|\n)*([[:print:]]{-}[[:alnum:]]foo)/"]
    );
    assert_eq!(errors(b"{x}")[0], r"undefined definition (compiling pattern /^?(.|\n)*({x})/)");
    assert_eq!(errors(b"\xc3\xa9")[0], "bad symbol -61 (compiling pattern /^?(.|\\n)*(\u{e9})/)");
    assert_eq!(
        errors(b"[[:foo:]]")[0],
        r"bad character class expression (compiling pattern /^?(.|\n)*([[:foo:]])/)"
    );
    assert_eq!(
        errors(b"[z-a]")[0],
        r"negative range in character class (compiling pattern /^?(.|\n)*([z-a])/)"
    );
    let mixed = Pattern::new(b"[a-Z]", Modes { ignore_case: true, single_line: false });
    assert!(!mixed.is_valid());
    for body in [
        "a)(b*",
        "*",
        "a||b",
        "(a|)",
        "a|",
        "+",
        "a}",
        "{1}",
        "[a-b-c]",
        "[a-[:digit:]]",
        "a{1",
        ")",
    ] {
        assert!(!errors(body.as_bytes()).is_empty() || body == "a)(b*", "{body}");
    }
    // An invalid pattern matches only the empty string, and is in every string.
    let broken = Pattern::new(b"(", Modes::default());
    assert!(
        !broken.is_valid() && broken.matches(b"") && !broken.matches(b"x") && broken.is_in(b"x")
    );
    assert_eq!(
        errors(b"a{1000000}")[0],
        r"pattern too large (compiling pattern /^?(.|\n)*(a{1000000})/)"
    );
    assert!(!errors(&b"(".repeat(100_000)).is_empty());
}

#[test]
fn longest_matches() {
    assert_eq!(p("fo+").longest_prefix(b"fooo!", true, true), Some(4));
    assert_eq!(p("a*").longest_prefix(b"b", true, true), Some(0));
    assert_eq!(p("ab$").longest_prefix(b"ab", true, true), Some(2));
    assert_eq!(p("ab$").longest_prefix(b"ab", true, false), None);
    assert_eq!(p("^ab").longest_prefix(b"ab", false, true), None);
    assert_eq!(p("x").longest_prefix(b"ab", true, true), None);
}

#[test]
fn searches() {
    let es = p("es");
    assert_eq!(es.find_all(b"this is a test of bees"), [b"es", b"es"]);
    assert_eq!(p("a*").find_all(b"baa"), [&b""[..], b"aa"]);
    assert_eq!(p("^.").find_all(b"ab"), [b"a", b"b"]);
    assert_eq!(p("t.").find_first(b"test ta", 0), Some(&b"te"[..]));
    assert_eq!(p("t.").find_first(b"test ta", 1), Some(&b"t "[..]));
    assert_eq!(p("t.").find_last(b"test ta", 0), Some(&b"ta"[..]));
    assert_eq!(p("t.").find_last(b"test ta", 7), None);
    assert_eq!(p("t.").find_first(b"", u64::MAX), None);
}

#[test]
fn splits_and_replacements() {
    assert_eq!(p(",").split(b"a,b,", false, 0), [&b"a"[..], b"b", b""]);
    assert_eq!(p(",").split(b"a,b,c", false, 1), [&b"a"[..], b"b,c"]);
    assert_eq!(p("-+").split(b"ab--cd", true, 0), [&b"ab"[..], b"--", b"cd"]);
    assert_eq!(p("^a").split(b"abab", false, 0), [&b""[..], b"bab"]);
    assert_eq!(p(",").split(b"", false, 0), [b""]);
    assert_eq!(p("x*").split(b"ab", false, 0), [b"ab"]);
    assert_eq!(
        p("is|at").replace(b"this cat is at", b"XX", true, usize::MAX).unwrap(),
        b"thXX cXX XX XX"
    );
    assert_eq!(p("is|at").replace(b"this cat", b"", false, usize::MAX).unwrap(), b"th cat");
    assert_eq!(p("^a").replace(b"aab", b"-", true, usize::MAX).unwrap(), b"--b");
    assert_eq!(p("a").replace(b"aaa", b"xx", true, 6).unwrap(), b"xxxxxx");
    assert_eq!(p("a").replace(b"aaa", b"xx", true, 5), Err(6));
    assert_eq!(p("b$").replace(b"bb", b"-", true, usize::MAX).unwrap(), b"b-");
}

#[test]
fn sets_report_all_that_match() {
    let keys = [p("foo"), p("bletch"), p("(foo|bletch)$?"), i("fOo"), p("a.c")];
    let set = PatternSet::new(keys.iter().map(Pattern::text));
    assert_eq!(set.matching(b"foo"), [0, 2, 3]);
    assert_eq!(set.matching(b"FOO"), [3]);
    assert_eq!(set.matching(b"foox"), []);
    assert!(set.matches(b"abc") && !set.matches(b"ab"));
    assert!(!PatternSet::new::<&[u8]>([]).matches(b""));
    let wrong = PatternSet::new([&b"(a"[..], b"^?(b)$?"]);
    assert_eq!(wrong.errors(), [(0, b"error compiling pattern /(a/".to_vec())]);
    assert_eq!(wrong.matching(b"b"), [1]);
}

#[test]
fn streams_match_in_pieces() {
    let set = PatternSet::new(["^GET ", ".*needle", "end$"]);
    let mut stream = set.stream();
    assert!(!set.feed(&mut stream, b"GE", true, false));
    assert!(set.feed(&mut stream, b"T /", false, false));
    assert!(!set.feed(&mut stream, b"nee", false, false));
    assert!(set.feed(&mut stream, b"dle", false, false));
    assert_eq!(stream.matches(), [(0, 4), (1, 11)]);
    let mut other = set.stream();
    assert!(!set.feed(&mut other, b"end", true, false));
    assert!(set.feed(&mut other, b"", false, true));
    assert_eq!(other.matches(), [(2, 4)]);
    // The empty string is no new match, and a restart does not match it again.
    let set = PatternSet::new(["x*", "^y*"]);
    let mut stream = set.stream();
    assert!(!set.feed(&mut stream, b"", false, false));
    assert_eq!(stream.matches(), [(0, 0)]);
    assert!(set.feed(&mut stream, b"", true, false));
    assert_eq!(stream.matches(), [(0, 0), (1, 0)]);
    stream.restart();
    assert!(!set.feed(&mut stream, b"x", false, false));
}

#[test]
fn states_are_dropped_beyond_the_limit() {
    // An automaton of about 2^17 states.
    let many = p("(a|b)*a(a|b){16}");
    let mut x = 1_u32;
    let mut string = vec![0; 300_000];
    for byte in &mut string {
        x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        *byte = if x >> 31 == 0 { b'a' } else { b'b' };
    }
    let expected = string[string.len() - 17] == b'a';
    assert_eq!(many.matches(&string), expected);
    assert!(many.stats().bytes < 64 << 20);
}

fn body() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        "[abc]",
        Just(".".to_owned()),
        Just("[ab]".to_owned()),
        Just("[^a]".to_owned()),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a}{b}")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a}|{b})")),
            (inner.clone(), "[*+?]").prop_map(|(a, op)| format!("({a}){op}")),
            (inner, 0_u32..3, 0_u32..3).prop_map(|(a, n, m)| format!("({a}){{{n},{}}}", n + m)),
        ]
    })
}

proptest! {
    #[test]
    fn agrees_with_another_engine(body in body(), string in "[abc\n]{0,8}") {
        let ours = Pattern::new(body.as_bytes(), Modes::default());
        prop_assert!(ours.is_valid());
        let theirs = regex::bytes::Regex::new(&format!(r"(?-u)\A(?:{body})\z")).unwrap();
        prop_assert_eq!(ours.matches(string.as_bytes()), theirs.is_match(string.as_bytes()));
    }

    #[test]
    fn searches_agree_with_another_engine(body in body(), strings in proptest::collection::vec("[abc\n]{1,40}", 1..40)) {
        let ours = Pattern::new(body.as_bytes(), Modes::default());
        let theirs = regex::bytes::Regex::new(&format!("(?-u)(?:{body})")).unwrap();
        let from_begin = regex::bytes::Regex::new(&format!(r"(?-u)\A(?:{body})")).unwrap();
        // Search accelerators are computed only after several searches.
        for string in &strings {
            let string = string.as_bytes();
            prop_assert_eq!(ours.is_in(string), theirs.is_match(string), "{:?}", string);
            // The longest match, by trying all ends.
            let longest = |from: usize| (from..=string.len()).rev().find(|to| {
                let whole = regex::bytes::Regex::new(&format!(r"(?-u)\A(?:{body})\z"));
                whole.is_ok_and(|whole| whole.is_match(&string[from..*to]))
            });
            if string.len() < 8 {
                let mut at = 0;
                let mut expected = Vec::new();
                while at < string.len() {
                    match longest(at) {
                        Some(to) => { expected.push(&string[at..to]); at = to.max(at + 1); }
                        None => at += 1,
                    }
                }
                prop_assert_eq!(ours.find_all(string), expected);
                prop_assert_eq!(ours.longest_prefix(string, true, true).is_some(), from_begin.is_match(string));
            }
        }
    }

    #[test]
    fn any_bytes_are_parsed_without_panic(body: Vec<u8>, string: Vec<u8>) {
        let pattern = Pattern::new(&body, Modes { ignore_case: true, single_line: false });
        let _ = (pattern.matches(&string), pattern.is_in(&string), pattern.find_all(&string));
    }

    #[test]
    fn syntax_is_parsed_without_panic(body in r#"[a\[\]\^\-\\:"(){}|*+?,0-2$.]{0,24}"#, string in "[a-]{0,6}") {
        let pattern = Pattern::new(body.as_bytes(), Modes::default());
        prop_assert_eq!(pattern.is_valid(), pattern.matchers().is_some());
        let _ = (pattern.matches(string.as_bytes()), pattern.split(string.as_bytes(), true, 0));
    }

    #[test]
    fn an_escaped_string_matches_itself(string in "[ -~]{0,12}") {
        prop_assert!(Pattern::new(&escape(string.as_bytes()), Modes::default()).matches(string.as_bytes()));
    }

    #[test]
    fn parts_make_up_the_whole(string in "[a-c,]{0,20}") {
        let commas = Pattern::new(b",+", Modes::default());
        prop_assert_eq!(commas.split(string.as_bytes(), true, 0).concat(), string.as_bytes());
        let replaced = commas.replace(string.as_bytes(), b"", true, usize::MAX).unwrap();
        prop_assert_eq!(commas.split(string.as_bytes(), false, 0).concat(), replaced);
    }
}
