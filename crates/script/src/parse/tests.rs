//! The messages for scripts; no input makes the parser panic.

use super::{Input, ParseEnd, Parser};
use crate::command::collected;
use crate::evaluate::CheckOnly;
use crate::program::Program;

/// The messages for `code`, and how parsing ended.
fn parse(code: &[u8]) -> (Vec<String>, Result<(), ParseEnd>) {
    let code = code.to_vec();
    // The limits on nesting assume the command's stack size.
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
fn valid_scripts_have_no_messages() {
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

/// Checks the messages for scripts of one line each.
fn each_is_reported(cases: &[(&str, &[&str])]) {
    for (code, expected) in cases {
        let (lines, _) = parse(code.as_bytes());
        let wanted: Vec<String> =
            expected.iter().map(|line| line.replacen(" @ ", " in x.zeek, line 1: ", 1)).collect();
        assert_eq!(lines, wanted, "{code}");
    }
}

#[test]
fn declarations_are_reported_as_zeek_does() {
    each_is_reported(&[
        (
            "function f(a: count &default=1, b: string) { } event e() { f(5, \"x\"); }",
            &["error @ required parameter 'b' must precede default parameters \
               (record { a:count &default=1, &optional; b:string; })"],
        ),
        (
            "global f: function(a: count); function f(a: string) { }",
            &[
                "error @ incompatible function types \
                 (function(a:string) : void and function(a:count) : void)",
                "error @ use of undeclared alternate prototype (function(a:string) : void and f)",
            ],
        ),
        ("function f() &redef { }", &["error @ illegal attribute for function body (&redef)"]),
        (
            "global e: event(); event e() &deprecated=\"x\" { } event f() { event e(); }",
            &["warning @ deprecated (e): x"],
        ),
        ("event e() { const y: string; }", &["error @ const variable must be initialized (y)"]),
        (
            "global t: table[count] of count &default=function(a: string): count { return 1; };",
            &[
                "warning @ Type mismatch in function argument #0. Expected count, got string. \
                 (function(a:string) : count)",
                "error @ &default function type clash \
                 (&default=function(a:string) : count{ return (1)})",
            ],
        ),
        (
            "const x = 5 &redef; redef x += \"a\";",
            &["error @ requires two arithmetic or two string operands (x += a)"],
        ),
        ("@unload nowhere", &["error @ failed find file associated with @unload nowhere"]),
        ("@load-sigs nowhere", &["error: failed to find file associated with @load-sigs nowhere"]),
        (
            "global s = set(1, \"a\");",
            &["error in count and string: incompatible types (count and string)"],
        ),
        (
            "global a = 5; global b = a = 8;",
            &[
                "error @ bad initializer, first operand should be a list (a = 8)",
                "error @ not a valid initializer (a = 8)",
            ],
        ),
        ("global x = ;", &["error @ no type given (x)"]),
        ("redef record Nope += { a: string &optional; };", &["error @ unknown identifier (Nope)"]),
        (
            "type R: record { a: count; };\nredef record R += { b: count; };",
            &["error @ extension field must be &optional or have &default (R)"],
        ),
        ("redef function f() { }", &["error @ syntax error, at or near \"function\""]),
        ("hook h(a: count): bool { print a; }", &[]),
        ("type S: set[R];", &["error @ identifier not defined: R"]),
        ("@ifdef x", &["error @ syntax error, at or near \"x\""]),
    ]);
}

#[test]
fn statements_are_reported_as_zeek_does() {
    each_is_reported(&[
        (
            "event e() { local x = 5; when ( x > 3 ) { } timeout 5 { } }",
            &[
                "error @ x is used inside \"when\" statement but not captured \
                 (when (3 < x)  timeout 5 )",
                "error @ when timeout requires a time or time interval (5)",
            ],
        ),
        (
            "event e() { local x = 5; when ( local y = x ) { print y; } }",
            &["error @ x is used inside \"when\" statement but not captured \
               (when [y](y = x) { print y})"],
        ),
        (
            "event e() { local s = \"abc\"; s[0:1] = \"y\"; }",
            &["error @ cannot assign to string index expression \
               (s[(coerce 0 to int), (coerce 1 to int)])"],
        ),
        (
            "event e() { local a = 1; local b = 2; [a, b] = [3, 4]; }",
            &["error @ invalid constructor list on RHS of assignment (a, b = 3, 4)"],
        ),
        (
            "event e() { local t = table([1]=\"a\"); t -= set(1); }",
            &["error @ RHS type mismatch for table/set -= (t -= set(1))"],
        ),
        (
            "event e() { local f = function(x: count) { return x; }; }",
            &["error @ return statement cannot have an expression (return (x))"],
        ),
        (
            "event e() { local v = vector(\"a\"); v[0:1] = \"x\"; }",
            &["error @ type clash in assignment (v[0, 1] = x)"],
        ),
        (
            "event e() { local c = set(1); c[5] = 6; }",
            &["error @ illegal assignment target (c[5])"],
        ),
        (
            "global x = 1; event e() { local x = 5; }",
            &["error @ already a global identifier (x)", "error @ already defined (x)"],
        ),
        ("function f(): string { return when ( T ) { return 5; } timeout 5sec { } }", &[]),
        (
            "event e() { if ( T ) { local x = 5; } print x; }",
            &["error @ use of out-of-scope local; move declaration to outer scope (x)"],
        ),
    ]);
}

#[test]
fn locals_last_until_the_braces_around_them_close() {
    each_is_reported(&[
        ("event e() { if ( T ) local x = 5; print x; }", &[]),
        ("event e() { for ( i in set(1) ) local y = i; print y, i; }", &[]),
        (
            "event e() { switch ( 5 ) { case 5: local x = 3; break; default: break; } print x; }",
            &[],
        ),
        ("event e() { { const x = 5; } print x; }", &[]),
        ("event e(a: any) { switch ( a ) { case type count as c: break; } print c; }", &[]),
    ]);
}

#[test]
fn only_statements_follow_statements_at_file_level() {
    each_is_reported(&[
        ("print 1; const x = 5; print x;", &[]),
        ("print 1; global x = 5;", &["error @ syntax error, at or near \"global\""]),
        ("print 1; function f() { }", &["error @ syntax error, at or near \"f\""]),
        (
            "global e: event(); print 1; event e(); event e() { }",
            &["error @ syntax error, at or near \"{\""],
        ),
        ("global e: event(n: count); event e(5);", &["error @ syntax error, at or near \"5\""]),
    ]);
}

#[test]
fn errors_report_the_same_lines_as_zeek() {
    let all = [
        (
            "global s: set[string] = {\n\"a\",\n\"b\",\n5,\n};",
            "error in x.zeek, lines 3-4: type clash in assignment (s = set(a, b, 5))",
        ),
        (
            "global f: function(a: count,\nb: count);\nfunction f(a: count,\nb: string) { }",
            "error in x.zeek, line 4 and x.zeek, line 1: use of undeclared alternate prototype \
             (function(a:count, b:string) : void and f)",
        ),
        (
            "function f(a: count) { }\nfunction f(a: string)\n{\nprint nowhere;\n}",
            "fatal error in x.zeek, line 3: invalid definition of 'f' (see previous errors)",
        ),
        (
            "event e()\n{\nlocal x = 5;\nlocal f = function[x]()\n{\nprint 1;\n};\n}",
            "error in x.zeek, lines 5-7: x is captured but not used inside lambda \
             (function() : void[x]{ print 1})",
        ),
        (
            "event e()\n{\nif ( 5 )\nprint 1 + \"a\";\n}",
            "error in x.zeek, line 3: conditional in test must be boolean (5)",
        ),
        (
            "event e()\n{\nlocal s: set[count, count];\nadd s[1,\n2,\n3];\n}",
            "error in x.zeek, line 3 and x.zeek, line 4: indexing mismatch (list of count,count and 1, 2, 3)",
        ),
    ];
    for (code, wanted) in all {
        let (lines, _) = parse(code.as_bytes());
        assert!(lines.iter().any(|line| line == wanted), "{wanted}: {lines:?}");
    }
}

/// Unreachable handlers and functions are reported by name, handlers first; so are functions that only such a
/// handler calls.
#[test]
fn unreachable_handlers_and_functions_are_reported() {
    let code = "global declared: event(); global handled: event(); event handled() { }\n\
                export { global exported: event(); } event exported() { }\n\
                event by_alone() { } event alone() { schedule 1 sec { by_alone() }; }\n\
                global used: event() &is_used; event used() { }\n\
                hook everywhere() { }\n\
                module M; global called: hook(); hook called() { }\n\
                function f() { } hook own() { f(); } function g() { }\n\
                event raised() { } function h() { event raised(); } event self() { event self(); }\n\
                export { function i() { h(); hook called(); } }";
    let (diagnostics, all) = collected();
    let mut program = Program { diagnostics, ..Program::default() };
    let mut engine = CheckOnly;
    let mut parser = Parser::new(&mut program, &mut engine, Vec::new());
    parser.warn_unused = true;
    // Zeek's scripts declare the events of the engine.
    let base = Input::Text { name: "base/init-bare.zeek".to_owned(), code: Vec::new() };
    let input = Input::Text { name: "x.zeek".to_owned(), code: code.as_bytes().to_vec() };
    assert_eq!(parser.run([base, input]), Ok(()));
    let lines = all.take();
    let lines: Vec<_> =
        lines.iter().map(|d| String::from_utf8_lossy(&d.line()).into_owned()).collect();
    let names = |kind: &str| -> Vec<String> {
        let rest = lines.iter().filter_map(|line| line.split_once(kind));
        rest.map(|(_, name)| name.trim_matches(['(', ')', ' ']).to_owned()).collect()
    };
    assert_eq!(
        names("non-existing event cannot be invoked"),
        ["alone", "by_alone", "declared", "handled", "self"]
    );
    assert_eq!(names("non-existing hook cannot be invoked"), ["M::own"]);
    assert_eq!(names("does not have any callers"), ["M::f", "M::g"]);
}

#[test]
fn sets_in_braces_are_merged() {
    each_is_reported(&[
        ("event e() { local l = set(1); local s: set[count] = { l, l }; s += { l }; }", &[]),
        (
            "event e() { local l = set(1); local s: set[count] = { l, 5 }; }",
            &["error @ requires \"count\" or compatible \"set\" operands (l | 5)"],
        ),
        (
            "event e() { local l = set(1); local t: table[count] of count = { [l] = 5 }; }",
            &["error @ cannot expand constructor elements using a value that depends on local \
               variables (l)"],
        ),
        (
            "global t = { [1, 2] = 3, [4] = 5 };",
            &["error @ different number of indices (list of count,count and list of count)"],
        ),
        (
            "const s: set[port] = { 1/tcp } &redef; redef s += { 5 };",
            &[
                "error in port and x.zeek, line 1: arithmetic mixed with non-arithmetic (port and 5)",
                "error in x.zeek, line 1 and port: type mismatch (5 and port)",
                "error @ inconsistent type in set constructor (set(5))",
                "error @ type clash in assignment (s = set(5))",
            ],
        ),
    ]);
}

#[test]
fn a_record_whose_constructor_failed_is_shown_with_its_fields() {
    let code = b"type R: record { a: count; }; function f(v: vector of R) { }\
        event e() { f(vector(R($a=1), R($b=2))); }";
    let (lines, _) = parse(code);
    let shown = "vector(R($a=1), [$b=2])";
    assert!(lines.last().is_some_and(|line| line.contains(shown)), "{lines:?}");
}

#[test]
fn misplaced_breaks_are_reported_in_scripts_without_other_errors() {
    each_is_reported(&[(
        "function g() { local x: string = 5; break; }",
        &["error @ type clash in assignment (x = 5)"],
    )]);
}

#[test]
fn conditions_of_directives_need_not_be_boolean() {
    each_is_reported(&[
        ("@if ( 0 )\nevent e() { nowhere; }\n@endif", &[]),
        ("@if ( T )\n@else\nnowhere;\n@else\nevent e() { }\n@endif", &[]),
        ("@else @endif", &["error @ @else without @if...", "error @ unbalanced @if... @endif"]),
        ("@if ( \"a\" )\n@else\nevent e() { nowhere; }\n@endif", &[]),
    ]);
}

#[test]
fn the_first_syntax_error_ends_parsing() {
    let (lines, result) = parse(b"event zeek_init()\n{\nlocal a = 1\nlocal b = 2;\n}");
    assert_eq!(lines, ["error in x.zeek, line 4: syntax error, at or near \"local\""]);
    assert_eq!(result, Err(ParseEnd::Syntax));
}

#[test]
fn deep_nesting_is_an_error_and_does_not_overflow_the_stack() {
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
fn damaged_scripts_do_not_panic() {
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
