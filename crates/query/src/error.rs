//! Errors of queries, with their location in the query.

use std::fmt;

use arrow_schema::ArrowError;
use arrow_schema::DataType;
use datafusion::common::Column;
use datafusion::common::SchemaError;
use datafusion::error::DataFusionError;
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::Span;
use datafusion::sql::sqlparser::tokenizer::Token;
use datafusion::sql::sqlparser::tokenizer::Tokenizer;

use crate::hints::alias_hint;
use crate::hints::cast_error;
use crate::hints::comparison_error;
use crate::hints::group_error;
use crate::hints::nested_columns_hint;
use crate::hints::other_logs_hint;
use crate::hints::quoting_hint;
use crate::hints::suggestion;
use crate::other_engines::WINDOW_FUNCTIONS;
use crate::other_engines::column;
use crate::other_engines::replacement;

/// Category of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// A file cannot be read, or is neither a capture nor a log.
    Input,
    /// The query is wrong.
    Query,
    /// The query is valid, but its execution failed.
    Run,
    /// The answer could not be written.
    Output,
    /// The query was cancelled.
    Cancelled,
}

/// Line and first column (from 1), length, and the text of the line.
type Position = (usize, usize, usize, String);

/// An error. If its location is known, its text includes the line of the query, with carets below the location.
#[derive(Clone, Debug)]
pub struct Error {
    /// Category of the error.
    pub kind: ErrorKind,
    message: String,
    hint: Option<String>,
    location: Option<Box<Position>>,
    /// A word of the query at the error's location.
    near: Option<String>,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None, location: None, near: None }
    }

    pub(crate) fn input(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Input, message)
    }

    pub(crate) fn query(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Query, message)
    }

    pub(crate) fn output(error: impl fmt::Display) -> Self {
        Self::new(ErrorKind::Output, error.to_string())
    }

    pub(crate) fn with_hint(mut self, hint: Option<String>) -> Self {
        self.hint = hint;
        self
    }

    /// Sets a word of the query that `found_in` locates the error by.
    pub(crate) fn near(mut self, word: impl Into<String>) -> Self {
        self.near = Some(word.into());
        self
    }

    /// Sets the location to that of the word given to `near`.
    pub(crate) fn found_in(self, sql: &str) -> Self {
        let span = self.near.as_deref().and_then(|word| find(sql, word));
        match span {
            Some(span) if self.location.is_none() => self.at(sql, span),
            _ => self,
        }
    }

    /// Sets the location to a span of the query.
    pub(crate) fn at(mut self, sql: &str, span: Span) -> Self {
        let (line, column) = (span.start.line as usize, span.start.column as usize);
        let end = if span.end.line == span.start.line { span.end.column as usize } else { column };
        if let Some(text) = line.checked_sub(1).and_then(|at| sql.lines().nth(at)) {
            // The end of a span is the column after its last character.
            let len = end.saturating_sub(column).max(1);
            self.location = Some(Box::new((line, column.max(1), len, text.to_owned())));
        }
        self
    }

    /// Makes the location relative to a part of the query that begins in `first_line`; removes it if it is outside of
    /// the part.
    #[must_use]
    pub fn in_part(mut self, part: &str, first_line: usize) -> Self {
        self.location = self.location.and_then(|location| {
            let (line, column, len, text) = *location;
            let line = line.checked_sub(first_line - 1).filter(|line| *line > 0)?;
            (line <= part.lines().count()).then(|| Box::new((line, column, len, text)))
        });
        self
    }

    /// Returns a hint on how to correct the query, if any.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// Converts an error of DataFusion.
    pub(crate) fn of(error: &DataFusionError, sql: &str) -> Self {
        match error {
            DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => {
                Self::of(inner, sql)
            }
            DataFusionError::Shared(inner) => Self::of(inner, sql),
            DataFusionError::Collection(all) => match all.first() {
                Some(first) => Self::of(first, sql),
                None => Self::query(error.to_string()),
            },
            DataFusionError::SchemaError(inner, _) => Self::from_schema(inner, sql),
            DataFusionError::SQL(inner, _) => Self::from_parser(&inner.to_string(), sql),
            DataFusionError::Plan(text) => Self::from_plan(text, sql),
            DataFusionError::NotImplemented(text) if text.contains("single SQL statement") => {
                Self::query("give one statement; use - to read several from standard input")
            }
            DataFusionError::NotImplemented(text)
                if text.contains("COUNT DISTINCT with multiple") =>
            {
                let hint = "count(DISTINCT (id.orig_h, id.resp_h)) counts pairs";
                let error = Self::query("count(DISTINCT …) takes one argument");
                error.with_hint(Some(hint.to_owned())).near("count").found_in(sql)
            }
            // The text after a brace is Rust debug output.
            DataFusionError::NotImplemented(text) => {
                Self::query(text.split(" {").next().unwrap_or(text).to_owned())
            }
            DataFusionError::ResourcesExhausted(_) => {
                let hint = "a larger --memory, or a query that sorts, groups and joins fewer rows and columns";
                let error =
                    Self::new(ErrorKind::Run, "the query needs more than the limit of --memory");
                error.with_hint(Some(hint.into()))
            }
            DataFusionError::External(inner) => match inner.downcast_ref::<Self>() {
                Some(own) => own.clone().found_in(sql),
                None => Self::new(ErrorKind::Run, inner.to_string()),
            },
            // A function rejects an argument, such as a network, an interval, or a string that is not a number.
            DataFusionError::Execution(text) => {
                let quoted = text.split('\'').nth(1).unwrap_or_default();
                match find(sql, quoted).filter(|_| !quoted.is_empty()) {
                    Some(span) => Self::query(text.clone()).at(sql, span),
                    None => Self::query(text.clone()),
                }
            }
            DataFusionError::ArrowError(inner, _) => match &**inner {
                ArrowError::IoError(..) => Self::new(ErrorKind::Run, inner.to_string()),
                ArrowError::ExternalError(inner) => match inner.downcast_ref::<Self>() {
                    Some(own) => own.clone().found_in(sql),
                    None => Self::new(ErrorKind::Run, inner.to_string()),
                },
                other => cast_error(&other.to_string(), sql),
            },
            other => {
                let text = first_line(&other.strip_backtrace());
                // An error of a filter that is pushed down into the Parquet reader.
                match text.contains("filter predicate") {
                    true => cast_error(&text, sql),
                    false => Self::new(ErrorKind::Run, text),
                }
            }
        }
    }

    fn from_schema(error: &SchemaError, sql: &str) -> Self {
        match error {
            SchemaError::FieldNotFound { field, valid_fields } => {
                // The part before a dot may be a table, or the first part of a Zeek column's name.
                let full = match &field.relation {
                    Some(relation) => format!("{}.{}", relation.table(), field.name),
                    None => field.name.clone(),
                };
                let known = || valid_fields.iter().map(Column::name);
                if let Some(wrong) = unknown_table(field, valid_fields) {
                    let table = field.relation.as_ref().map_or("", |relation| relation.table());
                    return match find(sql, &full) {
                        Some(span) => wrong.at(sql, span),
                        None => wrong.near(table).found_in(sql),
                    };
                }
                let near = nested_columns_hint(&full, known())
                    .or_else(|| alias_hint(&full, sql))
                    .or_else(|| column(&full).map(|zeek| format!("Zeek calls it {zeek}")))
                    .or_else(|| suggestion(&full, known()))
                    .or_else(|| suggestion(&field.name, known()))
                    .or_else(|| other_logs_hint(&field.name));
                let name = if find(sql, &full).is_some() { &full } else { &field.name };
                let mut all = Self::query(format!("no column is named '{name}'")).with_hint(near);
                if let Some(span) = find(sql, name) {
                    all = all.at(sql, span);
                }
                all
            }
            SchemaError::AmbiguousReference { field } => {
                let name = &field.name;
                let hint = format!("qualify it with the name of its table: conn.{name}");
                let all = Self::query(format!("several tables have a column '{name}'"))
                    .with_hint(Some(hint));
                match find(sql, name) {
                    Some(span) => all.at(sql, span),
                    None => all,
                }
            }
            other => Self::query(other.to_string()),
        }
    }

    /// Converts a parser error. Its text ends with the location: `… at Line: 1, Column: 8`.
    fn from_parser(text: &str, sql: &str) -> Self {
        let text = text.strip_prefix("sql parser error: ").unwrap_or(text);
        let Some((message, location)) = text.rsplit_once(" at Line: ") else {
            let cut = text.strip_prefix("Expected: ").and_then(|t| t.strip_suffix(", found: EOF"));
            return match cut {
                Some(missing) => Self::query(format!("the query ends where {missing} is expected")),
                None => Self::query(text),
            };
        };
        let mut numbers = location.split(|c: char| !c.is_ascii_digit()).filter(|s| !s.is_empty());
        let mut number = || numbers.next().and_then(|n| n.parse().ok()).unwrap_or(0);
        let (line, column) = (number(), number());
        let start = datafusion::sql::sqlparser::tokenizer::Location { line, column };
        let token = tokens(sql).into_iter().find(|(_, span)| span.start == start);
        let span = token.map_or(Span { start, end: start }, |(_, span)| span);
        Self::query(message).with_hint(quoting_hint(sql, start)).at(sql, span)
    }

    /// Converts the error of a call with wrong arguments: `… No function matches the given name and argument types
    /// 'cidr(Utf8)'. …`.
    fn wrong_arguments(text: &str, sql: &str) -> Option<Self> {
        let (_, rest) =
            text.split_once("No function matches the given name and argument types '")?;
        let (name, _) = rest.split_once('(')?;
        let types = rest.get(name.len() + 1..)?.split(")'").next()?;
        let known = crate::functions::FUNCTIONS.iter().find(|function| function.name == name);
        let hint = known.map(|function| format!("{} {}", function.usage, function.doc));
        let types = split_list(types);
        let expected_count = known.map_or(types.len(), |function| {
            split_list(function.usage.split_once('(').map_or("", |(_, rest)| rest)).len()
        });
        let what = match types.len() {
            0 => format!("{name} needs arguments"),
            some if some != expected_count => {
                let s = if expected_count == 1 { "" } else { "s" };
                format!("{name} takes {expected_count} argument{s}, not {some}")
            }
            _ => format!("{name} does not take {}", describe_types(&types)),
        };
        let all = Self::query(what).with_hint(hint);
        Some(match find(sql, name) {
            Some(span) => all.at(sql, span),
            None => all,
        })
    }

    fn from_plan(text: &str, sql: &str) -> Self {
        let text = first_line(text);
        if text.starts_with("No SQL statements") {
            return Self::query("the query is empty");
        }
        if let Some(wrong) = Self::wrong_arguments(&text, sql) {
            return wrong;
        }
        if let Some(wrong) = comparison_error(&text).or_else(|| group_error(&text, sql)) {
            return wrong;
        }
        if let Some(name) = text.strip_prefix("Invalid qualifier ") {
            let hint = "Zeek's id is id.orig_h, id.orig_p, id.resp_h and id.resp_p";
            let error = Self::query(format!("the query has no table '{name}'"));
            let error = error.with_hint(Some(hint.to_owned()).filter(|_| name == "id"));
            return error.near(name).found_in(sql);
        }
        if let Some(name) = text.strip_prefix("Invalid function '") {
            let name = name.split('\'').next().unwrap_or_default();
            let known = crate::functions::FUNCTIONS.iter().map(|f| f.name);
            let instead = replacement(name).map(|instead| format!("use {instead}"));
            if WINDOW_FUNCTIONS.iter().any(|window| window.eq_ignore_ascii_case(name)) {
                let hint = format!("{name}() OVER (PARTITION BY id.orig_h ORDER BY ts)");
                let error = Self::query(format!("{name} needs a window"));
                return error.with_hint(Some(hint)).near(name).found_in(sql);
            }
            let all = Self::query(format!("no function is named '{name}'"))
                .with_hint(instead.or_else(|| suggestion(name, known)));
            return match find(sql, name) {
                Some(span) => all.at(sql, span),
                None => all,
            };
        }
        if let Some(rest) = text.strip_prefix("Projections require unique expression names") {
            let name = rest.split_once("expression \"").map_or("", |(_, rest)| rest);
            let name = name.split("\" at position").next().unwrap_or(name);
            let alias = name.rsplit(" AS ").next().filter(|alias| !alias.contains([')', '"']));
            let name = alias.unwrap_or(name);
            let hint = "give one of them another name: expression AS name";
            // DataFusion's text of an expression differs from the query's.
            let called = name.split('(').next().unwrap_or(name);
            let all = match called == name {
                true => Self::query(format!("two columns are named '{name}'")),
                false => Self::query(format!("two columns are the same {called}(…)")),
            };
            let name = called;
            return all.with_hint(Some(hint.to_owned())).near(name).found_in(sql);
        }
        if text.starts_with("Substring without for/from") {
            let hint = "substr(text, first, count) counts from 1";
            let all = Self::query("substr needs the number of its first character");
            let word = if find(sql, "substr").is_some() { "substr" } else { "substring" };
            return all.with_hint(Some(hint.to_owned())).near(word).found_in(sql);
        }
        // "… call to 'cidr' …": the location is that of the function.
        let quoted =
            text.split('\'').nth(1).filter(|name| text.contains("function") && !name.is_empty());
        let all = Self::query(text.clone());
        match quoted.and_then(|name| find(sql, name)) {
            Some(span) => all.at(sql, span),
            None => all,
        }
    }
}

/// Extracts the message of a failed cast from nested errors: `Cannot cast string 'dns' to value of Int64 type`.
pub(crate) fn cast_message(text: &str) -> String {
    let inner = text.rsplit_once("Error(\"").and_then(|(_, rest)| rest.split("\")").next());
    let text = inner.unwrap_or(text);
    let text = ["Cast error: ", "Parser error: ", "Arrow error: "]
        .iter()
        .fold(text, |text, kind| text.strip_prefix(kind).unwrap_or(text));
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_ascii_lowercase());
    first.into_iter().chain(letters).collect()
}

/// Describes a list of DataFusion's type names.
fn describe_types(types: &[&str]) -> String {
    let word = |ty: &str| match ty.split('(').next().unwrap_or(ty) {
        "Utf8" | "LargeUtf8" | "Utf8View" => "a string".to_owned(),
        "Boolean" => "a boolean".to_owned(),
        "Timestamp" => "a time".to_owned(),
        "List" | "LargeList" => "a list".to_owned(),
        ty if ["Int", "UInt", "Float", "Decimal"].iter().any(|kind| ty.starts_with(kind)) => {
            "a number".to_owned()
        }
        _ => ty.to_owned(),
    };
    types.iter().map(|ty| word(ty)).collect::<Vec<_>>().join(" and ")
}

/// Splits a list at its commas, except those within parentheses.
fn split_list(list: &str) -> Vec<&str> {
    let (mut items, mut depth, mut start) = (Vec::new(), 0_u32, 0);
    for (at, c) in list.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                items.push(list.get(start..at).unwrap_or_default().trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    items.push(list.get(start..).unwrap_or_default().trim());
    items.retain(|part| !part.is_empty());
    items
}

/// Describes a type.
pub(crate) fn type_name(ty: &DataType) -> String {
    match ty {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "a string".to_owned(),
        DataType::Boolean => "a boolean".to_owned(),
        DataType::Timestamp(..) => "a time".to_owned(),
        DataType::List(_) | DataType::LargeList(_) => "a list".to_owned(),
        ty if ty.is_numeric() => "a number".to_owned(),
        ty => ty.to_string(),
    }
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if let Some((line, column, len, text)) = self.location.as_deref() {
            let margin = line.to_string();
            let before = " ".repeat(column - 1);
            write!(
                f,
                "\n {margin} | {text}\n {:w$} | {before}{}",
                "",
                "^".repeat(*len),
                w = margin.len()
            )?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

impl From<Error> for DataFusionError {
    fn from(error: Error) -> Self {
        Self::External(Box::new(error))
    }
}

pub(crate) fn tokens(sql: &str) -> Vec<(Token, Span)> {
    let tokens = Tokenizer::new(&GenericDialect {}, sql).tokenize_with_location();
    tokens.unwrap_or_default().into_iter().map(|t| (t.token, t.span)).collect()
}

/// Finds a name in a query, as one word or as words separated with dots. A use of the name is preferred to an alias
/// after AS.
pub(crate) fn find(sql: &str, name: &str) -> Option<Span> {
    let tokens = tokens(sql);
    let text = |token: &Token| match token {
        Token::Word(word) => Some(word.value.clone()),
        Token::Period => Some(".".to_owned()),
        Token::SingleQuotedString(text) => Some(text.clone()),
        _ => None,
    };
    let mut alias = None;
    let mut is_alias = false;
    for start in 0..tokens.len() {
        let is_named = is_alias;
        is_alias = match &tokens[start].0 {
            Token::Whitespace(_) => is_alias,
            Token::Word(word) => {
                word.quote_style.is_none() && word.value.eq_ignore_ascii_case("as")
            }
            _ => false,
        };
        let mut joined = String::new();
        for (token, span) in tokens.get(start..).unwrap_or_default() {
            let Some(text) = text(token) else { break };
            joined.push_str(&text);
            if joined.eq_ignore_ascii_case(name) {
                let found = Span { start: tokens[start].1.start, end: span.end };
                if !is_named {
                    return Some(found);
                }
                alias = alias.or(Some(found));
            }
            if joined.len() >= name.len() {
                break;
            }
        }
    }
    alias
}

/// Finds a sequence of words and symbols in a query. The case of words is ignored, quoted words do not match, and
/// `SAMPLE` also matches `TABLESAMPLE`.
pub(crate) fn find_tokens(sql: &str, words: &str) -> Option<Span> {
    let is = |token: &Token, word: &str| match token {
        Token::Word(found) => {
            let found = found.quote_style.is_none().then(|| found.value.to_ascii_uppercase());
            found.is_some_and(|found| found == word || found == format!("TABLE{word}"))
        }
        other => other.to_string() == word,
    };
    let mut tokens = tokens(sql);
    tokens.retain(|(token, _)| !matches!(token, Token::Whitespace(_)));
    let words: Vec<_> = words.split(' ').collect();
    let found = tokens
        .windows(words.len())
        .find(|window| window.iter().zip(&words).all(|((token, _), word)| is(token, word)))?;
    let ((_, first), (_, last)) = (found.first()?, found.last()?);
    Some(Span { start: first.start, end: last.end })
}

/// Returns the error of a qualified column if its table is unknown.
fn unknown_table(field: &Column, valid: &[Column]) -> Option<Error> {
    let table = field.relation.as_ref()?.table();
    let of = |column: &Column| column.relation.as_ref().map(|relation| relation.table().to_owned());
    let prefix = format!("{table}.");
    let is_known = valid.iter().any(|column| {
        of(column).is_some_and(|known| known == table) || column.name.starts_with(&prefix)
    });
    let tables: std::collections::BTreeSet<_> = valid.iter().filter_map(of).collect();
    if is_known || tables.is_empty() {
        return None;
    }
    let names: Vec<_> = tables.into_iter().collect();
    let hint = match field.relation.as_ref()?.schema() {
        // Two dots in a word: a name of a host or an address without quotes.
        Some(_) => format!("write strings in single quotes: '{}'", field.flat_name()),
        None => format!("the tables of the query are {}", names.join(", ")),
    };
    let error = Error::query(format!("the query has no table '{table}'"));
    Some(error.with_hint(Some(hint)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_location_is_shown_if_it_is_in_the_part() {
        let sql = "SELECT uid FROM conn WHERE (\nservise = 'dns'\n)";
        let error = Error::query("no column is named 'servise'");
        let inside = error.clone().at(sql, find(sql, "servise").unwrap());
        let expected = "no column is named 'servise'\n 1 | servise = 'dns'\n   | ^^^^^^^";
        assert_eq!(inside.in_part("servise = 'dns'", 2).to_string(), expected);
        let outside = error.at(sql, find(sql, "conn").unwrap());
        assert_eq!(
            outside.in_part("servise = 'dns'", 2).to_string(),
            "no column is named 'servise'"
        );
    }

    #[test]
    fn descriptions_of_values_and_arguments() {
        let of_filter = "Parquet error: External: Compute error: Error evaluating filter predicate: \
                         ArrowError(CastError(\"Cannot cast string 'dns' to value of Int64 type\"), Some(\"\"))";
        let expected = "cannot cast string 'dns' to value of Int64 type";
        assert_eq!(cast_message(of_filter), expected);
        assert_eq!(cast_message(&format!("Cast error: C{}", &expected[1..])), expected);
        let text = "Failed to coerce arguments to satisfy a call to 'cidr' function: coercion from Utf8 to the \
                    signature Exact(Utf8, Utf8) failed. No function matches the given name and argument types \
                    'cidr(Utf8)'. You might need to add explicit type casts.";
        assert_eq!(
            describe_types(&split_list("Timestamp(Microsecond, Some(\"UTC\")), Int64, Date32")),
            "a time and a number and Date32"
        );
        let error = Error::from_plan(text, "SELECT CIDR(uid)");
        assert_eq!(
            error.to_string(),
            "cidr takes 2 arguments, not 1\n 1 | SELECT CIDR(uid)\n   |        ^^^^"
        );
        let two = text.replace("'cidr(Utf8)'", "'cidr(Int64, Utf8)'");
        assert!(
            Error::from_plan(&two, "SELECT 1")
                .to_string()
                .starts_with("cidr does not take a number and a string")
        );
        assert!(error.hint().is_some_and(|hint| hint.starts_with("cidr(addr, '10.0.0.0/8') ")));
        assert_eq!(
            Error::from_plan("No SQL statements were provided", "").to_string(),
            "the query is empty"
        );
    }

    #[test]
    fn carets_are_below_the_name() {
        let sql = "SELECT uid,\n  id.orig_x FROM conn";
        let span = find(sql, "id.orig_x").unwrap();
        let error = Error::query("no column is named 'id.orig_x'").at(sql, span).to_string();
        let expected =
            "no column is named 'id.orig_x'\n 2 |   id.orig_x FROM conn\n   |   ^^^^^^^^^";
        assert_eq!(error, expected);
    }
}
