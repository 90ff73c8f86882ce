//! Clauses that the parser knows and no query executes. A query that has one is refused: its answer would be another.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::BinaryOperator;
use datafusion::sql::sqlparser::ast::ConnectByKind;
use datafusion::sql::sqlparser::ast::Expr;
use datafusion::sql::sqlparser::ast::FunctionArguments;
use datafusion::sql::sqlparser::ast::GroupByExpr;
use datafusion::sql::sqlparser::ast::JoinConstraint;
use datafusion::sql::sqlparser::ast::JoinOperator;
use datafusion::sql::sqlparser::ast::LimitClause;
use datafusion::sql::sqlparser::ast::OrderByExpr;
use datafusion::sql::sqlparser::ast::OrderByKind;
use datafusion::sql::sqlparser::ast::Query;
use datafusion::sql::sqlparser::ast::Select;
use datafusion::sql::sqlparser::ast::SelectItem;
use datafusion::sql::sqlparser::ast::Statement;
use datafusion::sql::sqlparser::ast::TableFactor;
use datafusion::sql::sqlparser::ast::TableWithJoins;
use datafusion::sql::sqlparser::ast::Visit as _;
use datafusion::sql::sqlparser::ast::Visitor;

use crate::Error;
use crate::error::find_tokens;

/// Refuses a statement with such a clause.
pub(crate) fn check(statement: &Statement, sql: &str) -> Result<(), Error> {
    match statement.visit(&mut Clauses) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(Refused { words, hint }) => {
            let error = Error::query(format!("{words} is not supported"));
            let error = error.with_hint(hint.map(str::to_owned));
            Err(match find_tokens(sql, words) {
                Some(span) => error.at(sql, span),
                None => error,
            })
        }
    }
}

/// A clause by its first words.
struct Refused {
    words: &'static str,
    hint: Option<&'static str>,
}

type Checked = ControlFlow<Refused>;

/// Breaks if the query has a clause.
fn refuse(has_clause: bool, words: &'static str) -> Checked {
    refuse_with(has_clause, words, None)
}

fn refuse_with(is_there: bool, words: &'static str, hint: Option<&'static str>) -> Checked {
    match is_there {
        true => ControlFlow::Break(Refused { words, hint }),
        false => ControlFlow::Continue(()),
    }
}

struct Clauses;

impl Visitor for Clauses {
    type Break = Refused;

    fn pre_visit_query(&mut self, query: &Query) -> Checked {
        const LIMIT: Option<&str> = Some("LIMIT behind the query takes its first rows");
        refuse(!query.locks.is_empty() || query.for_clause.is_some(), "FOR")?;
        refuse(query.settings.is_some(), "SETTINGS")?;
        let hint = Some("--json, --csv, --parquet and --table choose the format");
        refuse_with(query.format_clause.is_some(), "FORMAT", hint)?;
        refuse_with(query.fetch.is_some(), "FETCH", LIMIT)?;
        if let Some(LimitClause::LimitOffset { limit_by, .. }) = &query.limit_clause {
            let hint = Some(
                "QUALIFY row_number() OVER (PARTITION BY …) <= n takes the first rows of each group",
            );
            refuse_with(!limit_by.is_empty(), "BY", hint)?;
        }
        if let Some(order) = &query.order_by {
            refuse(order.interpolate.is_some(), "INTERPOLATE")?;
            if let OrderByKind::Expressions(all) = &order.kind {
                all.iter().try_for_each(order_by)?;
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> Checked {
        let hint = Some("LIMIT behind the query takes its first rows");
        refuse_with(select.top.is_some(), "TOP", hint)?;
        if let Some(modifiers) = &select.select_modifiers {
            refuse(modifiers.high_priority, "HIGH_PRIORITY")?;
            refuse(modifiers.straight_join, "STRAIGHT_JOIN")?;
            refuse(modifiers.sql_small_result, "SQL_SMALL_RESULT")?;
            refuse(modifiers.sql_big_result, "SQL_BIG_RESULT")?;
            refuse(modifiers.sql_buffer_result, "SQL_BUFFER_RESULT")?;
            refuse(modifiers.sql_no_cache, "SQL_NO_CACHE")?;
            refuse(modifiers.sql_calc_found_rows, "SQL_CALC_FOUND_ROWS")?;
        }
        let hint = Some("SELECT * EXCLUDE (column) leaves out a column");
        refuse_with(select.exclude.is_some(), "EXCLUDE", hint)?;
        refuse(select.into.is_some(), "INTO")?;
        refuse(!select.lateral_views.is_empty(), "LATERAL VIEW")?;
        let hint = Some("WHERE has the same rows");
        refuse_with(select.prewhere.is_some(), "PREWHERE", hint)?;
        if let Some(kind) = select.connect_by.first() {
            let hint = Some("WITH RECURSIVE follows rows that refer to each other");
            let words = match kind {
                ConnectByKind::ConnectBy { .. } => "CONNECT BY",
                ConnectByKind::StartWith { .. } => "START WITH",
            };
            refuse_with(true, words, hint)?;
        }
        let (GroupByExpr::All(modifiers) | GroupByExpr::Expressions(_, modifiers)) =
            &select.group_by;
        if let Some(modifier) = modifiers.first() {
            let words = match modifier.to_string().as_str() {
                "WITH TOTALS" => "WITH TOTALS",
                "WITH ROLLUP" => "WITH ROLLUP",
                "WITH CUBE" => "WITH CUBE",
                _ => "GROUPING SETS",
            };
            let hint = Some("GROUP BY ROLLUP (column) has a row for all groups together");
            refuse_with(true, words, hint)?;
        }
        refuse(!select.cluster_by.is_empty(), "CLUSTER BY")?;
        refuse(!select.distribute_by.is_empty(), "DISTRIBUTE BY")?;
        let hint = Some("ORDER BY sorts rows");
        refuse_with(!select.sort_by.is_empty(), "SORT BY", hint)?;
        refuse(select.value_table_mode.is_some(), "AS")?;
        select.projection.iter().try_for_each(item)?;
        select.from.iter().try_for_each(joins)
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> Checked {
        let sample = Some("WHERE random() < 0.1 takes about a tenth of the rows");
        match factor {
            TableFactor::Table {
                alias,
                args,
                with_hints,
                version,
                with_ordinality,
                partitions,
                json_path,
                sample: sampled,
                index_hints,
                ..
            } => {
                // The parser takes the word as an alias.
                let is_final = |alias: &&datafusion::sql::sqlparser::ast::TableAlias| {
                    !alias.explicit
                        && alias.name.quote_style.is_none()
                        && alias.name.value.eq_ignore_ascii_case("final")
                };
                refuse(alias.as_ref().filter(is_final).is_some(), "FINAL")?;
                refuse(args.as_ref().is_some_and(|args| args.settings.is_some()), "SETTINGS")?;
                refuse(!with_hints.is_empty(), "WITH (")?;
                refuse(*with_ordinality, "WITH ORDINALITY")?;
                refuse(!partitions.is_empty(), "PARTITION")?;
                refuse(json_path.is_some(), "[")?;
                sampling(sampled.is_some(), sample)?;
                refuse(version.is_some(), "AS OF")?;
                refuse(!index_hints.is_empty(), "INDEX")
            }
            TableFactor::Derived { sample: sampled, .. } => sampling(sampled.is_some(), sample),
            TableFactor::Function { with_ordinality, .. } => {
                refuse(*with_ordinality, "WITH ORDINALITY")
            }
            TableFactor::Pivot { .. } => refuse(true, "PIVOT"),
            TableFactor::Unpivot { .. } => refuse(true, "UNPIVOT"),
            TableFactor::MatchRecognize { .. } => refuse(true, "MATCH_RECOGNIZE"),
            TableFactor::JsonTable { .. } => refuse(true, "JSON_TABLE"),
            TableFactor::OpenJsonTable { .. } => refuse(true, "OPENJSON"),
            TableFactor::XmlTable { .. } => refuse(true, "XMLTABLE"),
            TableFactor::SemanticView { .. } => refuse(true, "SEMANTIC_VIEW"),
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> Checked {
        match expr {
            Expr::BinaryOp { op: BinaryOperator::PGOverlap, .. } => {
                refuse_with(true, "&&", Some("write AND"))
            }
            Expr::BinaryOp { op: BinaryOperator::DuckIntegerDivide, .. } => {
                let hint = Some("/ of two integers is an integer");
                refuse_with(true, "//", hint)
            }
            Expr::Like { any: true, .. } => {
                refuse_with(true, "LIKE ANY", Some("write one LIKE for each pattern, with OR"))
            }
            Expr::ILike { any: true, .. } => {
                refuse_with(true, "ILIKE ANY", Some("write one ILIKE for each pattern, with OR"))
            }
            Expr::Function(function) => {
                refuse(!matches!(function.parameters, FunctionArguments::None), ") (")
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

fn sampling(is_sampled: bool, hint: Option<&'static str>) -> Checked {
    refuse_with(is_sampled, "SAMPLE", hint)
}

fn order_by(order: &OrderByExpr) -> Checked {
    refuse(order.with_fill.is_some(), "WITH FILL")
}

fn item(item: &SelectItem) -> Checked {
    let (SelectItem::Wildcard(options) | SelectItem::QualifiedWildcard(_, options)) = item else {
        return ControlFlow::Continue(());
    };
    refuse(options.opt_ilike.is_some(), "ILIKE")?;
    refuse(options.opt_rename.is_some(), "RENAME")?;
    refuse(options.opt_alias.is_some(), "AS")
}

fn joins(table: &TableWithJoins) -> Checked {
    for join in &table.joins {
        refuse(join.global, "GLOBAL")?;
        match &join.join_operator {
            JoinOperator::Semi(_) => {
                refuse_with(true, "SEMI JOIN", Some("write LEFT SEMI JOIN"))?;
            }
            JoinOperator::Anti(_) => {
                refuse_with(true, "ANTI JOIN", Some("write LEFT ANTI JOIN"))?;
            }
            JoinOperator::CrossApply => refuse(true, "CROSS APPLY")?,
            JoinOperator::OuterApply => refuse(true, "OUTER APPLY")?,
            JoinOperator::AsOf { .. } => refuse(true, "ASOF JOIN")?,
            JoinOperator::StraightJoin(_) => refuse(true, "STRAIGHT_JOIN")?,
            JoinOperator::ArrayJoin
            | JoinOperator::LeftArrayJoin
            | JoinOperator::InnerArrayJoin => refuse(true, "ARRAY JOIN")?,
            JoinOperator::CrossJoin(constraint) if *constraint != JoinConstraint::None => {
                refuse_with(true, "CROSS JOIN", Some("a JOIN with a condition is no CROSS JOIN"))?;
            }
            _ => {}
        }
        if let TableFactor::NestedJoin { table_with_joins, .. } = &join.relation {
            joins(table_with_joins)?;
        }
    }
    match &table.relation {
        TableFactor::NestedJoin { table_with_joins, .. } => joins(table_with_joins),
        _ => ControlFlow::Continue(()),
    }
}
