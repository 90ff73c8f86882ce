//! Statements about tables: `SHOW TABLES`, `SHOW COLUMNS FROM conn`, `SUMMARIZE conn`.

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast;
use datafusion::sql::sqlparser::ast::DescribeAlias;
use datafusion::sql::sqlparser::ast::ShowStatementFilter;
use datafusion::sql::sqlparser::ast::ShowStatementFilterPosition;
use datafusion::sql::sqlparser::ast::ShowStatementOptions;

use crate::Error;
use crate::error::find_tokens;

/// Kind of a statement.
pub(crate) enum StatementKind {
    /// `SHOW TABLES`, with a condition on the names.
    Tables(Option<String>),
    /// Any other statement.
    Other,
}

/// Rejects `SUMMARIZE`, which the parser does not know, with a helpful error.
pub(crate) fn reject_summarize(sql: &str) -> Result<(), Error> {
    let mut words = sql.split_whitespace();
    if !words.next().is_some_and(|first| first.eq_ignore_ascii_case("summarize")) {
        return Ok(());
    }
    let table = words.next().unwrap_or("conn").trim_end_matches(';');
    let table = if table.eq_ignore_ascii_case("select") { "conn" } else { table };
    let hint = format!(
        "DESCRIBE {table} lists columns; SELECT count(*), count(DISTINCT uid), min(ts), max(ts) FROM {table} counts values"
    );
    let error = Error::query("SUMMARIZE is not supported").with_hint(Some(hint));
    Err(match find_tokens(sql, "SUMMARIZE") {
        Some(span) => error.at(sql, span),
        None => error,
    })
}

/// Classifies a statement, and replaces `SHOW COLUMNS FROM conn` by `DESCRIBE conn`.
pub(crate) fn classify(statement: &mut Statement, sql: &str) -> Result<StatementKind, Error> {
    let Statement::Statement(inner) = statement else { return Ok(StatementKind::Other) };
    match inner.as_mut() {
        ast::Statement::ShowTables { show_options, .. } => {
            let condition = condition(show_options, "name").map_err(|words| {
                let hint = "use SELECT table_name FROM information_schema.tables WHERE …";
                unsupported(words, hint, sql)
            })?;
            Ok(StatementKind::Tables(condition))
        }
        ast::Statement::ShowColumns { show_options, .. } => {
            let hint = "SELECT column_name FROM information_schema.columns WHERE table_name = 'conn' AND column_name LIKE … \
                        chooses columns";
            if show_options.filter_position.is_some() {
                return Err(unsupported("SHOW COLUMNS", hint, sql));
            }
            let in_table = show_options.show_in.as_ref();
            let Some(table_name) = in_table.and_then(|scope| scope.parent_name.clone()) else {
                let error = Error::query("SHOW COLUMNS needs a table");
                return Err(error.with_hint(Some("SHOW COLUMNS FROM conn".to_owned())));
            };
            **inner = ast::Statement::ExplainTable {
                describe_alias: DescribeAlias::Describe,
                hive_format: None,
                has_table_keyword: false,
                table_name,
            };
            Ok(StatementKind::Other)
        }
        ast::Statement::ShowFunctions { .. } => {
            let hint = "SELECT DISTINCT routine_name FROM information_schema.routines";
            Err(unsupported("SHOW FUNCTIONS", hint, sql))
        }
        _ => Ok(StatementKind::Other),
    }
}

fn unsupported(words: &str, hint: &str, sql: &str) -> Error {
    let what = if words == "SHOW FUNCTIONS" { "" } else { " with a condition" };
    let error = Error::query(format!("{words}{what} is not supported"));
    let error = error.with_hint(Some(hint.to_owned()));
    match find_tokens(sql, words) {
        Some(span) => error.at(sql, span),
        None => error,
    }
}

/// Converts the filter of a SHOW statement to a condition on a column. Returns the unsupported statement as an error.
fn condition(options: &ShowStatementOptions, column: &str) -> Result<Option<String>, &'static str> {
    use ShowStatementFilterPosition::Infix;
    use ShowStatementFilterPosition::Suffix;
    let (Some(Infix(filter) | Suffix(filter)), None, None, None) =
        (&options.filter_position, &options.starts_with, &options.limit, &options.show_in)
    else {
        let is_plain = options.filter_position.is_none()
            && options.starts_with.is_none()
            && options.limit.is_none()
            && options.show_in.is_none();
        return if is_plain { Ok(None) } else { Err("SHOW TABLES") };
    };
    let quoted = |text: &str| format!("'{}'", text.replace('\'', "''"));
    match filter {
        ShowStatementFilter::Like(pattern) | ShowStatementFilter::NoKeyword(pattern) => {
            Ok(Some(format!("{column} LIKE {}", quoted(pattern))))
        }
        ShowStatementFilter::ILike(pattern) => {
            Ok(Some(format!("{column} ILIKE {}", quoted(pattern))))
        }
        ShowStatementFilter::Where(_) => Err("SHOW TABLES"),
    }
}
