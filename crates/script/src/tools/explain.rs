//! Codes of messages, and hints for fixing the cause.

/// The code of messages about undeclared names.
pub const UNKNOWN_NAME: &str = "unknown-name";

/// Code and hint of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Explanation {
    /// The code.
    pub code: &'static str,
    /// How to fix the cause.
    pub hint: Option<&'static str>,
}

/// The code and the hint for a message of the parser.
#[must_use]
pub fn explain(message: &str) -> Explanation {
    let found = MESSAGES.iter().find(|(begin, ..)| message.starts_with(begin));
    let (code, hint) = found.map_or(("error", ""), |(_, code, hint)| (code, hint));
    Explanation { code, hint: Some(hint).filter(|hint| !hint.is_empty()) }
}

/// Prefixes of messages with codes and hints; a longer prefix precedes its own prefixes.
const MESSAGES: &[(&str, &str, &str)] = &[
    ("syntax error", "syntax", ""),
    (
        "unknown identifier",
        UNKNOWN_NAME,
        "declare it with `local` or `global`, or `@load` the script that declares it",
    ),
    (
        "identifier not defined",
        UNKNOWN_NAME,
        "declare the type above, or `@load` the script that declares it",
    ),
    ("no such local identifier", UNKNOWN_NAME, ""),
    ("unknown record identifier", UNKNOWN_NAME, "`@load` the script that declares the record"),
    ("unknown enum identifier", UNKNOWN_NAME, "`@load` the script that declares the enum"),
    ("undeclared variable", UNKNOWN_NAME, ""),
    ("identifier is not exported", "not-exported", "move its declaration into `export { … }`"),
    ("no such field in record", "no-field", ""),
    ("not a record", "not-a-record", "`$` must be followed by a field of the record"),
    (
        "can't find",
        "load",
        "`@load` searches relative to the loading file for names that begin with `.`, else in ZEEKPATH",
    ),
    ("can't open", "load", ""),
    ("already defined", "redefined", "a name is declared once in a function or module"),
    (
        "already a global identifier",
        "redefined",
        "locals cannot have the name of a global of their module",
    ),
    ("duplicate field", "redefined", ""),
    ("use of out-of-scope local", "out-of-scope", "declare the local before the block"),
    (
        "cannot redefine a variable not marked with &redef",
        "not-redef",
        "only variables with `&redef`, and options, can be redefined",
    ),
    ("redef of not-previously-declared", "not-redef", ""),
    (
        "\"redef\" used but not previously defined",
        "not-redef",
        "check its name, or `@load` the script that declares it",
    ),
    ("const is not a modifiable lvalue", "constant", ""),
    (
        "option is not a modifiable lvalue",
        "constant",
        "options are changed by `redef` or `Option::set`",
    ),
    ("const variable must be initialized", "constant", ""),
    ("option variable must be initialized", "constant", ""),
    ("illegal assignment target", "assignment", ""),
    ("can't be assigned to", "assignment", ""),
    ("type clash in assignment", "type", ""),
    ("assignment of non-arithmetic value", "type", ""),
    ("type mismatch", "type", ""),
    ("type clash", "type", ""),
    ("arithmetic mixed with non-arithmetic", "type", ""),
    (
        "over-promotion of arithmetic value",
        "type",
        "a double or int does not fit a smaller number type: convert it, for example with `double_to_count`",
    ),
    ("operands must be of the same type", "type", ""),
    (
        "requires arithmetic operands",
        "type",
        "convert strings with `to_count`, `to_int` or `to_double`; join strings with `cat`",
    ),
    ("requires two arithmetic", "type", ""),
    ("requires boolean", "type", "compare explicitly: `n != 0`, `|s| > 0`, `r?$f`"),
    ("requires", "type", ""),
    (
        "conditional in test must be boolean",
        "type",
        "compare explicitly: `n != 0`, `|s| > 0`, `r?$f`",
    ),
    ("while conditional must be boolean", "type", "compare explicitly: `n != 0`, `|s| > 0`"),
    ("conditional must be boolean", "type", ""),
    ("argument type mismatch", "arguments", ""),
    ("Type mismatch in function argument", "arguments", ""),
    ("Wrong number of arguments", "arguments", ""),
    ("parameter mismatch", "arguments", ""),
    (
        "mismatch between format string",
        "arguments",
        "each `%` conversion of the format takes one argument; `%%` is a percent sign",
    ),
    ("hook cannot be called directly", "call", "write `hook name(…)`"),
    ("hook keyword should only", "call", ""),
    ("event called in expression", "call", "write `event name(…);`"),
    ("not a function", "call", ""),
    ("not an event", "call", "declare it: `global name: event(…);`"),
    (
        "use of undeclared alternate prototype",
        "prototype",
        "the parameters of a handler have the names and types of a declared prototype",
    ),
    (
        "incompatible function types",
        "prototype",
        "declaration and definition must have the same parameters and result",
    ),
    (
        "incompatible types",
        "type",
        "the values of a list, set, table or vector have one type: convert some, or write one record for each",
    ),
    ("redeclaration of function", "prototype", ""),
    ("orphaned field", "record", "the record type has no such field"),
    (
        "non-optional field",
        "record",
        "give the field a value, or declare it `&optional` or with `&default`",
    ),
    (
        "mandatory field",
        "record",
        "give the field a value, or declare it `&optional` or with `&default`",
    ),
    (
        "extension field must be &optional",
        "record",
        "existing values have no value for the new field",
    ),
    ("not an index type", "index", ""),
    ("wrong index size", "index", ""),
    ("indexing mismatch", "index", ""),
    ("no type given", "declaration", "write a type or an initial value"),
    (
        "empty constructor in untyped initialization",
        "declaration",
        "write the type: `local x: table[count] of string = table();`",
    ),
    ("return statement needs expression", "return", ""),
    (
        "return statement cannot have",
        "return",
        "declare the type of the result behind the parameters: `function f(): count`",
    ),
    ("return statement outside", "return", ""),
    ("break statement used outside", "control-flow", ""),
    ("next statement used outside", "control-flow", ""),
    ("case block must end", "control-flow", ""),
    ("duplicate case label", "control-flow", ""),
    (
        "lambda uses outer identifiers",
        "capture",
        "name the outer locals in `[…]` behind `function`",
    ),
    ("expression value ignored", "ignored-value", "the expression has no effect"),
    ("deprecated script", "deprecated", ""),
    ("deprecated", "deprecated", ""),
    ("use of deprecated", "deprecated", ""),
    ("Remove in", "deprecated", ""),
    ("dangerous assignment", "conversion", "the value is truncated at run time"),
    (
        "handler for non-existing event",
        "unknown-event",
        "nothing raises this event: check its name, `@load` the script that declares it, or export it if others raise it",
    ),
    (
        "handler for non-existing hook",
        "unknown-hook",
        "nothing calls this hook: check its name, `@load` the script that declares it, or export it if others call it",
    ),
    (
        "non-exported function does not have any callers",
        "unused-function",
        "remove it, export it, or mark it `&is_used`",
    ),
    ("unrecognized character", "syntax", ""),
    ("pattern not terminated", "syntax", "escape a slash in a pattern with a backslash"),
    ("strings cannot contain NUL", "syntax", ""),
    (
        "DNS lookup of host literal",
        "syntax",
        "a field of a record follows `$`: `c$id`; a `when` with `lookup_hostname` looks up names of hosts",
    ),
    ("bad port number", "syntax", ""),
    ("unbalanced @if", "directive", ""),
    ("@else without @if", "directive", ""),
    ("@pragma", "directive", ""),
    ("incorrect use of directive", "directive", "put the directives around the whole statement"),
    (
        "referencing a local name in @if",
        "directive",
        "`@if` is evaluated while the script is read: only globals have values then",
    ),
    ("memory exhausted", "nesting", "the construct is nested too deeply"),
    ("Type ", "redefined", ""),
    ("&", "attribute", ""),
    ("Using &default and &optional", "attribute", ""),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_prefix_hides_a_later_one() {
        for (at, (text, ..)) in MESSAGES.iter().enumerate() {
            assert!(!MESSAGES[..at].iter().any(|(begin, ..)| text.starts_with(begin)), "{text}");
        }
    }
}
