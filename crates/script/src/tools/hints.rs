//! Hints that depend on the program: suggested names, parameters, syntax of values.

use crate::ast::ExprKind;
use crate::diagnostics::Diagnostic;
use crate::ids::TypeId;
use crate::program::Program;
use crate::symbols::GlobalKind;
use crate::tools::explain::{UNKNOWN_NAME, explain};
use crate::tools::finding::{operands, source, type_name};
use crate::tools::words;
use crate::types::{Flavor, Tag};

/// The hint for a diagnostic; `message` is its text without the texts of its subjects.
pub(super) fn hint(program: &Program, diagnostic: &Diagnostic, message: &str) -> Option<String> {
    let name = || message.rsplit(' ').next().unwrap_or_default();
    match message {
        "no such field in record" => field(program, diagnostic),
        "handler for non-existing event cannot be invoked" => event(program, diagnostic),
        "use of undeclared alternate prototype" => prototype(program, diagnostic),
        "parameter mismatch" | "indexing mismatch" => parameters(program, diagnostic),
        "conditional in test must be boolean" => assignment(program, diagnostic),
        _ if message.starts_with("syntax error") => syntax(program, diagnostic),
        _ if message.starts_with("unrecognized character") => character(program, diagnostic),
        _ if message.starts_with("orphaned field") => orphan(program, diagnostic, message),
        _ => match explain(message).code {
            UNKNOWN_NAME => foreign(name()).or_else(|| similar(program, name())),
            "type" => values(program, diagnostic),
            _ => None,
        },
    }
}

/// Keywords of other languages with their equivalents, and types that are missing without Zeek's own scripts.
const FOREIGN: &[(&[&str], &str)] = &[
    (&["elif", "elseif", "elsif"], "write `else if`"),
    (&["and"], "write `&&`"),
    (&["or"], "write `||`"),
    (&["not"], "write `!`"),
    (
        &["auto", "let", "my", "var"],
        "`local` declares a variable of a function, `global` one of the script",
    ),
    (
        &["def", "fn", "func", "proc", "sub"],
        "a function is `function name(parameter: type): type { … }`",
    ),
    (&["False", "FALSE", "True", "TRUE", "false", "true"], "values of type `bool` are `T` and `F`"),
    (
        &["None", "NULL", "nil", "null", "undefined"],
        "a value that may be missing is an `&optional` field: `r?$f` tests it, `delete r$f` removes it",
    ),
    (&["import", "include", "require", "use", "using"], "`@load` loads a script"),
    (&["echo", "printf", "println", "puts"], "write `print`"),
    (&["len", "length", "sizeof"], "`|x|` is the size of `x`"),
    (&["class", "struct"], "a record is `type Name: record { … };`"),
    (&["foreach"], "write `for ( x in y )`"),
    (&["catch", "throw", "try"], "an error ends its handler: test for what may fail before"),
    (
        &["connection", "conn_id", "fa_file"],
        "Zeek's scripts declare this type: ZEEKPATH or `--zeek-scripts` names their folder",
    ),
];

fn foreign(word: &str) -> Option<String> {
    let found = FOREIGN.iter().find(|(words, _)| words.contains(&word));
    found.map(|(_, hint)| (*hint).to_owned())
}

/// The probable intention behind an unexpected token.
fn syntax(program: &Program, diagnostic: &Diagnostic) -> Option<String> {
    let token = source(program, diagnostic.span)?;
    if token == "{" && source(program, diagnostic.about.other).as_deref() == Some("=") {
        return Some("the value of a field is `set(…)`, `table(…)` or `vector(…)`".to_owned());
    }
    if token != "&" {
        return foreign(&token);
    }
    let file = program.sources.files.find(diagnostic.span.file)?;
    let behind = file.text.get(diagnostic.span.end as usize..)?;
    let is_letter = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_';
    let name: Vec<u8> = behind.iter().take_while(is_letter).copied().collect();
    let name = String::from_utf8(name).ok().filter(|name| !name.is_empty())?;
    closest(&name, words::ATTRIBUTES.iter().copied())
        .map(|known| format!("no attribute is named `&{name}`: did you mean `&{known}`?"))
}

/// The probable intention behind an invalid character.
fn character(program: &Program, diagnostic: &Diagnostic) -> Option<String> {
    let file = program.sources.files.find(diagnostic.span.file)?;
    let start = diagnostic.span.start as usize;
    let hint = match (file.text.get(start..)?, start) {
        ([b'@', behind @ ..], _) => {
            let is_letter = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'-';
            let name: Vec<u8> = behind.iter().take_while(is_letter).copied().collect();
            let name = String::from_utf8_lossy(&name).into_owned();
            return Some(match closest(&name, words::DIRECTIVES.iter().copied()) {
                Some(known) => format!("no directive is named `@{name}`: did you mean `@{known}`?"),
                None => format!("no directive is named `@{name}`"),
            });
        }
        ([0xef, 0xbb, 0xbf, ..], 0) => {
            "the file begins with a byte order mark: save it as UTF-8 without one"
        }
        ([0xff, 0xfe, ..] | [0xfe, 0xff, ..], 0) => "the file is UTF-16: save it as UTF-8",
        ([b'\'', ..], _) => "strings are between double quotes",
        ([0xe2, 0x80, 0x98..=0x9f, ..], _) => "strings are between plain double quotes",
        ([b'"', ..], _) => {
            "a string ends on its line; quotes and backslashes in it take a backslash"
        }
        ([b'\\', ..], _) => "a statement may have several lines without a backslash",
        _ => return None,
    };
    Some(hint.to_owned())
}

/// The event whose name is similar to that of a handler.
fn event(program: &Program, diagnostic: &Diagnostic) -> Option<String> {
    let name = source(program, diagnostic.span)?;
    let events = program.globals.arena.iter().filter(|(_, global)| match global.kind {
        GlobalKind::Function(func) => {
            program.functions[func].flavor == Flavor::Event && global.span != diagnostic.span
        }
        _ => false,
    });
    closest(&name, events.map(|(_, global)| program.name(global.name)))
        .map(|known| format!("no event is named `{name}`: did you mean `{known}`?"))
}

/// The parameters that a handler or hook must have.
fn prototype(program: &Program, diagnostic: &Diagnostic) -> Option<String> {
    let text = String::from_utf8_lossy(&diagnostic.text).into_owned();
    let name = text.strip_suffix(')')?.rsplit(" and ").next()?;
    let global = program.globals.find(program.names.find(name)?)?;
    let takes = parameter_list(program, program.globals[global].ty);
    Some(format!("`{name}` has the parameters ({takes}); handlers may leave some out"))
}

/// The parameters that a call must provide arguments for.
fn parameters(program: &Program, diagnostic: &Diagnostic) -> Option<String> {
    // The arguments have the span of the call.
    let args = diagnostic.about.exprs.into_iter().flatten().last()?;
    let span = program.exprs[args].span;
    let call = program.exprs.iter().rev().find_map(|(_, expr)| match &expr.kind {
        ExprKind::Call(call) if expr.span == span => Some(call.callee),
        _ => None,
    });
    let callee = &program.exprs[call?];
    let name = source(program, callee.span)?;
    program.types.func(callee.ty)?;
    Some(format!("`{name}` takes ({})", parameter_list(program, callee.ty)))
}

fn parameter_list(program: &Program, function: TypeId) -> String {
    let params = program.types.params(function).iter();
    let all: Vec<_> = params
        .map(|param| format!("{}: {}", program.name(param.name), type_name(program, param.ty)))
        .collect();
    all.join(", ")
}

/// A `=` that should be `==`.
fn assignment(program: &Program, diagnostic: &Diagnostic) -> Option<String> {
    let expr = diagnostic.about.exprs[0]?;
    let is_assignment = matches!(program.exprs[expr].kind, ExprKind::Assign(..));
    is_assignment.then(|| "`=` assigns: `==` compares".to_owned())
}

/// How to write a value of the expected type.
fn values(program: &Program, diagnostic: &Diagnostic) -> Option<String> {
    let about = &diagnostic.about;
    let expr = about.exprs[0].or(about.exprs[1])?;
    let types = match operands(program, expr).as_slice() {
        [left, right] => [program.exprs[*left].ty, program.exprs[*right].ty],
        _ => [about.types[1].or(about.types[0])?, program.exprs[expr].ty],
    };
    let [one, other] = types.map(|ty| program.types.tag(ty));
    let is = |a: &[Tag], b: &[Tag]| {
        (a.contains(&one) && b.contains(&other)) || (a.contains(&other) && b.contains(&one))
    };
    let numbers = [Tag::Count, Tag::Int, Tag::Double];
    let hint = if is(&[Tag::Port], &numbers) {
        "a port is written with its protocol: `80/tcp`"
    // `Int`: a string is indexed by numbers, so `in` a string expects one.
    } else if is(&[Tag::Addr, Tag::Subnet], &[Tag::String, Tag::Int]) {
        "addresses and subnets are written without quotes: `10.0.0.1`, `10.0.0.0/8`"
    } else if is(&[Tag::Interval], &numbers) {
        "an interval is written with its unit: `5 sec`"
    } else if is(&[Tag::Time], &numbers) {
        "`double_to_time` makes a time of a number"
    } else if is(&[Tag::Pattern], &[Tag::String]) {
        "a pattern is written between slashes: `/…/`"
    } else if is(&[Tag::Enum], &[Tag::String]) {
        "values of an enum are names without quotes"
    } else if is(&[Tag::Addr], &[Tag::Subnet]) {
        "`in` tests whether an address is in a subnet"
    } else {
        return None;
    };
    Some(hint.to_owned())
}

/// A field of the record type with a similar name.
fn orphan(program: &Program, diagnostic: &Diagnostic, message: &str) -> Option<String> {
    fields(program, diagnostic.about.types[0]?, message.split('"').nth(1)?)
}

/// A global or keyword with a similar name.
fn similar(program: &Program, name: &str) -> Option<String> {
    let names = program.globals.arena.iter().map(|(_, global)| program.name(global.name));
    closest(name, names.chain(words::WORDS.iter().copied()))
        .map(|known| format!("`{known}` has a similar name"))
}

fn field(program: &Program, diagnostic: &Diagnostic) -> Option<String> {
    let base = program.exprs.iter().rev().find_map(|(_, expr)| match expr.kind {
        ExprKind::Field(base, u32::MAX) | ExprKind::HasField(base, u32::MAX)
            if expr.span == diagnostic.span =>
        {
            Some(base)
        }
        _ => None,
    })?;
    let text = String::from_utf8_lossy(&diagnostic.text).into_owned();
    fields(program, program.exprs[base].ty, text.trim_end_matches(')').rsplit('$').next()?)
}

/// The field of a record type with the most similar name, or its first fields.
fn fields(program: &Program, ty: TypeId, name: &str) -> Option<String> {
    let record = program.types.record(ty)?;
    let names = || record.fields.iter().map(|field| program.name(field.name));
    let of = match program.types.data(ty).name {
        Some(_) => format!("`{}`", type_name(program, ty)),
        None => "the record".to_owned(),
    };
    Some(match closest(name, names()) {
        Some(known) => format!("{of} has a field `{known}`"),
        None => {
            let first: Vec<&str> = names().take(8).collect();
            let more = if record.fields.len() > first.len() { ", …" } else { "" };
            format!("fields of {of}: {}{more}", first.join(", "))
        }
    })
}

/// The name with the smallest edit distance to `name`, at most a third of its letters; of several, one with the same
/// first letter.
fn closest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<String> {
    let limit = (name.len() / 3).clamp(1, 4);
    let last = |text: &str| text.rsplit("::").next().unwrap_or_default().to_owned();
    let first = name.chars().next();
    let ranked = names.map(|known| {
        let distance = if last(known) == last(name) { 1 } else { distance(name, known, limit) };
        (distance, known.chars().next() != first, known)
    });
    let best = ranked.filter(|(distance, ..)| *distance <= limit).min();
    best.map(|(.., known)| known.to_owned()).filter(|known| known != name)
}

/// The number of letters to change, insert or remove to turn `a` into `b`; a value above `limit` if it is
/// larger.
fn distance(a: &str, b: &str, limit: usize) -> usize {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len().abs_diff(b.len()) > limit || a.len() > 200 {
        return limit + 1;
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = i;
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
        for (j, y) in b.iter().enumerate() {
            let above = row[j + 1];
            row[j + 1] = (above + 1).min(row[j] + 1).min(diagonal + usize::from(x != y));
            diagonal = above;
        }
    }
    row.last().copied().unwrap_or(limit + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::{Input, Parser};
    use crate::tools::finding::findings;
    use crate::vm::Machine;

    /// The hints for the errors of a script.
    fn hints(code: &[u8]) -> Vec<String> {
        let (diagnostics, all) = crate::command::collected();
        let mut program = Program { diagnostics, ..Program::default() };
        let mut machine = Machine::new();
        let input = Input::Text { name: "x.zeek".to_owned(), code: code.to_vec() };
        let mut parser = Parser::new(&mut program, &mut machine, Vec::new());
        parser.warn_unused = true;
        let _ = parser.run([input]);
        let all = findings(&program, &all.borrow());
        all.into_iter().map(|finding| finding.hint.unwrap_or_default()).collect()
    }

    #[test]
    fn characters_that_begin_no_token_have_a_hint() {
        for (code, expected) in [
            (&b"@lod ./x"[..], "no directive is named `@lod`: did you mean `@load`?"),
            (b"@foo", "no directive is named `@foo`"),
            (b"global s = 'x';", "strings are between double quotes"),
            ("global s = “x”;".as_bytes(), "strings are between plain double quotes"),
            (
                b"global s = \"x",
                "a string ends on its line; quotes and backslashes in it take a backslash",
            ),
            (
                b"\xef\xbb\xbfglobal s = 1;",
                "the file begins with a byte order mark: save it as UTF-8 without one",
            ),
            (b"\xff\xfeg\0", "the file is UTF-16: save it as UTF-8"),
            (b"global s = 1 \\\n + 2;", "a statement may have several lines without a backslash"),
            (b"global s = \x01;", ""),
        ] {
            let found = hints(code);
            assert_eq!(
                found.first().map(String::as_str),
                Some(expected),
                "{}",
                code.escape_ascii()
            );
        }
    }

    #[test]
    fn words_of_other_languages_and_misspelled_ones_have_a_hint() {
        for (code, expected) in [
            ("event start() { if ( T and F ) print 1; }", "write `&&`"),
            ("event start() { if ( T ) print 1; elif ( F ) print 2; }", "write `else if`"),
            ("event start() { print true; }", "values of type `bool` are `T` and `F`"),
            ("event start() { prnt 1; }", "`print` has a similar name"),
            (
                "event start(c: connection) { }",
                "Zeek's scripts declare this type: ZEEKPATH or `--zeek-scripts` names their folder",
            ),
            (
                "global t: table[count] of count &creat_expire=1min;",
                "no attribute is named `&creat_expire`: did you mean `&create_expire`?",
            ),
            (
                "export { global known: event(); } event knwn() { }",
                "no event is named `knwn`: did you mean `known`?",
            ),
            (
                "type R: record { ftp: count; http: count; }; event start(r: R) { print r$htp; }",
                "`R` has a field `http`",
            ),
        ] {
            let found = hints(code.as_bytes());
            assert_eq!(found.first().map(String::as_str), Some(expected), "{code}");
        }
    }

    #[test]
    fn values_get_hints_for_the_expected_type() {
        for (condition, expected) in [
            (
                "a == \"10.0.0.1\"",
                "addresses and subnets are written without quotes: `10.0.0.1`, `10.0.0.0/8`",
            ),
            (
                "a in \"10.0.0.0/8\"",
                "addresses and subnets are written without quotes: `10.0.0.1`, `10.0.0.0/8`",
            ),
            ("p == 80", "a port is written with its protocol: `80/tcp`"),
            ("i > 5", "an interval is written with its unit: `5 sec`"),
            ("t > 5", "`double_to_time` makes a time of a number"),
            ("a == n", "`in` tests whether an address is in a subnet"),
            ("c = 2", "`=` assigns: `==` compares"),
        ] {
            let parameters = "a: addr, n: subnet, p: port, i: interval, t: time, c: count";
            let code = format!("event start({parameters}) {{ if ( {condition} ) print 1; }}");
            let found = hints(code.as_bytes());
            assert_eq!(found.first().map(String::as_str), Some(expected), "{condition}");
        }
    }
}
