//! A string that is longer than the limit is an error of the script: its handler ends, and the others run.

mod printed;
mod reported;

/// The maximum length of strings in these tests.
const MAX_STRING: usize = 1 << 16;

/// Built-in functions as Zeek's scripts declare them.
const DECLARED: &str = "global cat: function(va_args: any): string; global cat_sep: function(va_args: any): string; \
    global fmt: function(va_args: any): string; global string_cat: function(va_args: any): string; \
    global join_string_vec: function(vec: any, sep: string): string; \
    global gsub: function(str: string, re: pattern, repl: string): string; \
    global sub: function(str: string, re: pattern, repl: string): string; \
    global subst_string: function(s: string, from: string, to: string): string; \
    global string_to_ascii_hex: function(s: string): string; \
    global encode_base64: function(s: string, a: string &default=\"\"): string; \
    global hexdump: function(data_str: string): string; global to_json: function(val: any): string; \
    global safe_shell_quote: function(source: string): string; \
    global string_fill: function(len: int, source: string): string; \
    global zfill: function(str: string, width: count): string; \
    global ljust: function(str: string, width: count, fill: string): string; \
    global rjust: function(str: string, width: count, fill: string): string;";

/// Runs a handler with `code`, then another handler. Returns the output and the reported messages.
fn run(code: &str) -> (String, String) {
    let code = format!(
        "{DECLARED} global g = \"\";\nglobal all: vector of string;\n\
         event zeek_init() &priority=1\n{{\nlocal s = \"0123456789abcdef0123456789abcdef\";\n{code}\n}}\n\
         event zeek_init() {{ print \"next\"; }}"
    );
    reported::run(&code, |machine| machine.set_max_string(MAX_STRING))
}

#[test]
fn a_string_that_grows_without_end_is_an_error() {
    for grows in [
        "while ( T ) s = s + s;",
        "while ( T ) s += s;",
        "while ( T ) g += \"0123456789abcdef0123456789abcdef\" + s;",
        "while ( T ) s = cat(s, s);",
        "while ( T ) s = cat_sep(\",\", \"\", s, s);",
        "while ( T ) s = cat_sep(s, \"\", \"a\", \"b\");",
        "while ( T ) s = fmt(\"%s%s\", s, s);",
        "while ( T ) s = string_cat(s, s);",
        "while ( T ) s = join_string_vec(vector(s, s), s);",
        "while ( T ) s = gsub(s, /a/, s + s);",
        "while ( T ) s = sub(s, /a/, \"a\" + s);",
        "while ( T ) s = subst_string(s, \"a\", s + s);",
        "while ( T ) s = string_to_ascii_hex(s);",
        "while ( T ) s = encode_base64(s);",
        "while ( T ) s = hexdump(s);",
        "while ( T ) s = to_json(s + \"\\\"\\\"\");",
        "while ( T ) s = safe_shell_quote(s);",
        "while ( T ) { all += s; s = join_string_vec(all, \",\"); }",
    ] {
        let (printed, reported) = run(grows);
        assert_eq!(printed, "next\n", "{grows}: {reported}");
        assert!(
            reported.contains("is longer than 65536, the limit of --max-string ("),
            "{grows}: {reported}"
        );
        assert!(reported.contains("test, line 6"), "{grows}: {reported}");
    }
}

#[test]
fn a_string_that_is_filled_beyond_the_limit_is_an_error() {
    for filled in [
        "print |string_fill(65537, s)|;",
        "print |zfill(s, 65537)|;",
        "print |ljust(s, 65537, \" \")|;",
        "print |rjust(s, 18446744073709551615, \" \")|;",
    ] {
        let (printed, reported) = run(filled);
        assert_eq!(printed, "next\n", "{filled}: {reported}");
        assert!(reported.contains("--max-string"), "{filled}: {reported}");
    }
}

#[test]
fn a_string_of_the_maximum_length_is_no_error() {
    let code = "while ( |s| < 65536 ) s += s;\nprint |s|, |string_fill(65536, s)|, |sub(s, /a/, \"b\")|;\n\
                print |subst_string(s, \"a\", \"b\")|;";
    let (printed, reported) = run(code);
    assert_eq!((printed.as_str(), reported.as_str()), ("65536, 65536, 65536\n65536\nnext\n", ""));
}

#[test]
fn each_string_beyond_the_limit_is_one_error_and_ends_one_handler() {
    for n in [10, 1_000, 100_000] {
        let code = format!(
            "{DECLARED} global made = 0; global others = 0; global e: event(); global show: event();\n\
             event e() &priority=1 {{ print string_fill(65537, \"a\"); ++made; }}\n\
             event e() {{ ++others; }}\n\
             event show() {{ print made, others; }}\n\
             event zeek_done() {{ local i = 0; while ( i < {n} ) {{ event e(); ++i; }} event show(); }}"
        );
        let (printed, reported) =
            reported::run(&code, |machine| machine.set_max_string(MAX_STRING));
        assert_eq!(printed, format!("0, {n}\n"));
        assert_eq!(reported.lines().filter(|line| line.contains("--max-string")).count(), n);
    }
}
