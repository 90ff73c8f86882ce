//! Hints for DataFusion's errors: similar names, and the supported syntax.

use datafusion::sql::sqlparser::tokenizer::Location;
use datafusion::sql::sqlparser::tokenizer::Token;

use crate::Error;
use crate::error::cast_message;
use crate::error::find;
use crate::error::tokens;

/// Returns a hint if the word at a location is an address or a name with a dot that needs quotes.
pub(crate) fn quoting_hint(sql: &str, at: Location) -> Option<String> {
    let line = sql.lines().nth((at.line as usize).checked_sub(1)?)?;
    let column = (at.column as usize).checked_sub(1)?;
    let chars: Vec<char> = line.chars().collect();
    let is_part = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '/');
    let before = chars.get(..column)?.iter().rev().take_while(|c| is_part(c)).count();
    let after = chars.get(column..)?.iter().take_while(|c| is_part(c)).count();
    let word: String = chars.get(column - before..column + after)?.iter().collect();
    if word.parse::<gannet_base::Addr>().is_ok() || word.parse::<gannet_base::Subnet>().is_ok() {
        return Some(format!("write addresses and networks in single quotes: '{word}'"));
    }
    let is_name = word.starts_with(|c: char| c.is_ascii_alphabetic()) && !word.contains('/');
    (is_name && word.contains('.'))
        .then(|| format!("write names with a dot in double quotes here: \"{word}\""))
}

/// Converts the error of a failed cast, with the location of the value if it is in the query.
pub(crate) fn cast_error(text: &str, sql: &str) -> Error {
    let text = cast_message(text);
    let quoted = text.strip_prefix("cannot cast string '").and_then(|rest| rest.split_once('\''));
    let Some((value, ty)) = quoted else { return Error::query(text) };
    let is_number = ["Int", "UInt", "Float", "Decimal"].iter().any(|kind| ty.contains(kind));
    match find(sql, value).filter(|_| is_number) {
        Some(span) => {
            let is_span = value.starts_with(|c: char| c.is_ascii_digit()) && value.contains(' ');
            let hint = is_span.then(|| format!("INTERVAL '{value}' is a span of time"));
            Error::query(format!("'{value}' is not a number")).with_hint(hint).at(sql, span)
        }
        None => Error::query(text.clone())
            .with_hint(is_number.then(|| {
                "TRY_CAST(value AS BIGINT) is null if a value is not a number".to_owned()
            })),
    }
}

/// Converts the error of a comparison between incompatible types.
pub(crate) fn comparison_error(text: &str) -> Option<Error> {
    let is_comparison = [
        "Cannot infer common argument type for comparison",
        "Can not find compatible types to compare",
    ]
    .iter()
    .any(|begin| text.starts_with(begin));
    if !is_comparison && !text.contains("common type to coerce") {
        return None;
    }
    if text.contains("List(") {
        let hint = "use list_contains(answers, 'value') to find an element, or array_to_string(answers, ',') for a string";
        return Some(
            Error::query("a list cannot be compared with a single value")
                .with_hint(Some(hint.into())),
        );
    }
    if text.contains("Timestamp(") && text.contains("LIKE") {
        let hint = "ts >= '2023-11-14' AND ts < '2023-11-15' is a day, and to_char(ts, '%Y-%m-%d') is a text";
        return Some(Error::query("LIKE needs strings, not times").with_hint(Some(hint.into())));
    }
    text.contains("Boolean").then(|| {
        let hint = "local_orig and NOT local_orig are conditions, and so is local_orig = true";
        Error::query("a boolean can be compared only with booleans").with_hint(Some(hint.into()))
    })
}

/// Converts the error of a column that is neither in GROUP BY nor in an aggregate function.
pub(crate) fn group_error(text: &str, sql: &str) -> Option<Error> {
    let (_, rest) = text.split_once("column \"")?;
    let (full, _) = rest.split_once("\" must appear in the GROUP BY")?;
    let short = full.split_once('.').map_or(full, |(_, name)| name);
    let name = if find(sql, full).is_some() { full } else { short };
    let error =
        Error::query(format!("'{name}' is neither in GROUP BY nor in an aggregate function"));
    let hint = format!(
        "GROUP BY ALL groups by every column that is not aggregated; first_value({name}) is one of its values"
    );
    Some(error.with_hint(Some(hint)).near(name).found_in(sql))
}

/// Lists the columns whose names begin with `name` and a dot.
pub(crate) fn nested_columns_hint<'a>(
    name: &str,
    known: impl Iterator<Item = &'a str>,
) -> Option<String> {
    let begin = format!("{}.", name.to_ascii_lowercase());
    let mut names: Vec<_> = known.filter(|known| known.starts_with(&begin)).collect();
    names.sort_unstable();
    names.dedup();
    (!names.is_empty()).then(|| format!("its columns are {}", names.join(", ")))
}

/// Returns a hint if the unknown name is an alias of a result column.
pub(crate) fn alias_hint(name: &str, sql: &str) -> Option<String> {
    let tokens = tokens(sql);
    let words: Vec<_> = tokens
        .iter()
        .map(|(token, _)| token)
        .filter(|t| !matches!(t, Token::Whitespace(_)))
        .collect();
    let is = |token: &Token, text: &str| matches!(token, Token::Word(word) if word.value.eq_ignore_ascii_case(text));
    let is_named = words.windows(2).any(|two| is(two[0], "as") && is(two[1], name));
    is_named.then(|| {
        format!("'{name}' is computed by the query: use HAVING for conditions on groups, QUALIFY for those on windows, and repeat the expression in WHERE")
    })
}

/// Lists the logs that have a column of this name; if none has, returns a hint about quotes of strings.
pub(crate) fn other_logs_hint(name: &str) -> Option<String> {
    let has = |schema: &gannet_log::Schema| schema.fields.iter().any(|f| f.name == name);
    let schemas = gannet_engine::schemas();
    let fields = || schemas.iter().flat_map(|schema| &schema.fields).filter(|f| f.name == name);
    if fields().next().is_some() && fields().all(|field| field.optional) {
        return Some(format!(
            "{name} is an optional column: add it to logs with gannet analyze --columns {name}; for captures, a query that names it is enough"
        ));
    }
    let logs: Vec<_> =
        schemas.iter().filter(|schema| has(schema)).map(|s| s.path).take(5).collect();
    Some(match logs.is_empty() {
        true => format!("write strings in single quotes: '{name}'"),
        false => format!("this column exists in {}", logs.join(", ")),
    })
}

/// Suggests the known names closest to an unknown one.
pub(crate) fn suggestion<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    let lower_name = name.to_ascii_lowercase();
    let last = lower_name.rsplit('.').next().unwrap_or(&lower_name);
    let mut near: Vec<(usize, &str)> = Vec::new();
    // The unknown name itself is not suggested, even if another table has a column of this name.
    for candidate in known.filter(|known| !known.eq_ignore_ascii_case(name)) {
        let other = candidate.to_ascii_lowercase();
        let has_same_last = other.rsplit('.').next().is_some_and(|end| end == last);
        let distance_to = if has_same_last { 0 } else { distance(&lower_name, &other) };
        let max_distance = 1 + lower_name.len().min(other.len()) / 3;
        if distance_to <= max_distance && !near.iter().any(|(_, known)| *known == candidate) {
            near.push((distance_to, candidate));
        }
    }
    near.sort_unstable();
    let names: Vec<_> = near.iter().take(3).map(|(_, name)| *name).collect();
    (!names.is_empty()).then(|| format!("did you mean {}?", names.join(", ")))
}

/// The edit distance between two words (Damerau-Levenshtein, optimal string alignment).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) =
        (a.chars().take(64).collect(), b.chars().take(64).collect());
    let mut rows = vec![(0..=b.len()).collect::<Vec<_>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let cost = usize::from(a[i - 1] != b[j - 1]);
            let mut least = (rows[i - 1][j] + 1).min(row[j - 1] + 1).min(rows[i - 1][j - 1] + cost);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows.last().and_then(|row| row.last()).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_suggested() {
        let known = ["id.orig_h", "id.resp_h", "uid", "orig_bytes", "resp_bytes", "ts"];
        let near = |name| suggestion(name, known.into_iter());
        assert_eq!(near("orig_h").as_deref(), Some("did you mean id.orig_h?"));
        assert_eq!(near("udi").as_deref(), Some("did you mean uid?"));
        assert_eq!(near("orig_byte").as_deref(), Some("did you mean orig_bytes?"));
        assert_eq!(near("certificate"), None);
    }
}
