//! The messages for scripts, and that no text makes the parser panic.

use super::{Input, ParseEnd, Parser};
use crate::command::collected;
use crate::evaluate::CheckOnly;
use crate::program::Program;

/// The lines that are said of `code`, and how parsing ended.
fn parse(code: &[u8]) -> (Vec<String>, Result<(), ParseEnd>) {
    let code = code.to_vec();
    // The limits on nesting are for the stack that the command has.
    let thread = std::thread::Builder::new().stack_size(1 << 29).spawn(move || {
        let (diagnostics, all) = collected();
        let mut program = Program { diagnostics, ..Program::default() };
        let mut engine = CheckOnly;
        let result = Parser::new(&mut program, &mut engine, Vec::new())
            .run([Input::Text { name: "x.zeek".to_owned(), code }]);
        let lines =
            all.borrow().iter().map(|d| String::from_utf8_lossy(&d.line()).into_owned()).collect();
        (lines, result)
    });
    thread
        .map(|thread| thread.join())
        .ok()
        .and_then(Result::ok)
        .unwrap_or((Vec::new(), Err(ParseEnd::Fatal)))
}

#[test]
fn right_scripts_are_silent() {
    let code = b"module M;
        export { type R: record { a: count &default=1; b: set[addr] &optional; }; global e: event(r: R); }
        event M::e(r: R) &priority=5 { if ( r?$b && 10.0.0.1 in r$b ) print r$a + 1; }
        function f(x: count, s: string &default=\"\"): count { return x << 2; }
        event zeek_init() {
            local g = function [] (n: count): count { return n; };
            local v = vector(1, 2, 3);
            for ( i, x in v ) print i, |x|, v[1:], f(x);
            switch f(3) { case 1, 2: break; default: print /a|b/ in \"abc\"; break; }
            event M::e([$a=3]); schedule 5 min { M::e(R($a=4)) };
        }";
    assert_eq!(parse(code), (Vec::new(), Ok(())));
}

#[test]
fn wrong_types_are_reported_as_zeek_does() {
    let (lines, _) = parse(b"global s: set[count] = { 1, \"two\" };\nglobal n = 1 + \"a\";");
    assert_eq!(
        lines,
        [
            "error in count and x.zeek, line 1: arithmetic mixed with non-arithmetic (count and two)",
            "error in x.zeek, line 1 and count: type mismatch (two and count)",
            "error in x.zeek, line 1: inconsistent type in set constructor (set(1, two))",
            "error in x.zeek, line 1: type clash in assignment (s = set(1, two))",
            "error in x.zeek, line 2: requires arithmetic operands (1 + a)",
        ]
    );
}

#[test]
fn the_first_syntax_error_ends_parsing() {
    let (lines, result) = parse(b"event zeek_init()\n{\nlocal a = 1\nlocal b = 2;\n}");
    assert_eq!(lines, ["error in x.zeek, line 4: syntax error, at or near \"local\""]);
    assert_eq!(result, Err(ParseEnd::Syntax));
}

#[test]
fn deep_nesting_is_an_error_and_no_overflow() {
    for (open, close) in [("(", ")"), ("!", ""), ("[", "]"), ("-", "")] {
        let code = format!("global x = {}1{};", open.repeat(100_000), close.repeat(100_000));
        let (lines, result) = parse(code.as_bytes());
        assert_eq!(result, Err(ParseEnd::Syntax), "{open}");
        assert_eq!(lines.len(), 1, "{open}");
    }
    let sum = format!("global x = 1{};", " + 1".repeat(100_000));
    assert_eq!(parse(sum.as_bytes()).1, Err(ParseEnd::Syntax));
}

#[test]
fn damaged_scripts_make_no_panic() {
    let seeds: [&[u8]; 3] = [
        b"type R: record { a: count; b: table[string, addr] of vector of R &optional; } &log; redef record R += { c: int &default=3; };",
        b"@if ( T ) event f(a: count, b: string) { when [a] ( a > 3 ) print b; timeout 3 sec { print a; } } @else @endif hook h() { break; }",
        b"function g(x: any): count { local t = table([1, \"a\"] = [$x=1]); for ( [i, j], v in t ) t[i, j] += v; return x as count ? |t| : -1; }",
    ];
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state >> 33).unwrap_or(0) % below.max(1)
    };
    for round in 0..1_500 {
        let mut code = seeds[round % 3].to_vec();
        for _ in 0..=random(6) {
            let at = random(code.len());
            match random(4) {
                0 => drop(code.remove(at)),
                1 => code.insert(at, b"[](){}$&|=,;:\"/@?"[random(17)]),
                2 => code.truncate(at.max(1)),
                _ => {
                    let other = seeds[random(3)];
                    let from = random(other.len());
                    let piece = &other[from..(from + random(30)).min(other.len())];
                    code.splice(at..at, piece.iter().copied());
                }
            }
        }
        let shown = String::from_utf8_lossy(&code).into_owned();
        let (lines, result) = parse(&code);
        assert!(result.is_ok() || !lines.is_empty(), "no word of what is wrong: {shown}");
    }
}
