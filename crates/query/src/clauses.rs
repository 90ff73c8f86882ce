//! Rejects clauses that the parser accepts but DataFusion ignores, because the result would be wrong.

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

/// Rejects a statement that contains an unsupported clause.
pub(crate) fn check(statement: &Statement, sql: &str) -> Result<(), Error> {
    match statement.visit(&mut Clauses) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(Unsupported { words, hint }) => {
            let error = Error::query(format!("{words} is not supported"));
            let error = error.with_hint(hint.map(str::to_owned));
            Err(match find_tokens(sql, words) {
                Some(span) => error.at(sql, span),
                None => error,
            })
        }
    }
}

/// An unsupported clause, identified by its keywords.
struct Unsupported {
    words: &'static str,
    hint: Option<&'static str>,
}

type Checked = ControlFlow<Unsupported>;

/// Breaks with an error if the query has the clause.
fn reject(has_clause: bool, words: &'static str) -> Checked {
    reject_with(has_clause, words, None)
}

fn reject_with(has_clause: bool, words: &'static str, hint: Option<&'static str>) -> Checked {
    match has_clause {
        true => ControlFlow::Break(Unsupported { words, hint }),
        false => ControlFlow::Continue(()),
    }
}

struct Clauses;

impl Visitor for Clauses {
    type Break = Unsupported;

    fn pre_visit_query(&mut self, query: &Query) -> Checked {
        const LIMIT: Option<&str> = Some("use LIMIT at the end of the query");
        reject(!query.locks.is_empty() || query.for_clause.is_some(), "FOR")?;
        reject(query.settings.is_some(), "SETTINGS")?;
        let hint = Some("use --json, --csv, --parquet or --table for the format");
        reject_with(query.format_clause.is_some(), "FORMAT", hint)?;
        reject_with(query.fetch.is_some(), "FETCH", LIMIT)?;
        if let Some(LimitClause::LimitOffset { limit_by, .. }) = &query.limit_clause {
            let hint = Some(
                "use QUALIFY row_number() OVER (PARTITION BY …) <= n for the first rows of each group",
            );
            reject_with(!limit_by.is_empty(), "BY", hint)?;
        }
        if let Some(order) = &query.order_by {
            reject(order.interpolate.is_some(), "INTERPOLATE")?;
            if let OrderByKind::Expressions(all) = &order.kind {
                all.iter().try_for_each(check_order_by)?;
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> Checked {
        let hint = Some("use LIMIT at the end of the query");
        reject_with(select.top.is_some(), "TOP", hint)?;
        if let Some(modifiers) = &select.select_modifiers {
            reject(modifiers.high_priority, "HIGH_PRIORITY")?;
            reject(modifiers.straight_join, "STRAIGHT_JOIN")?;
            reject(modifiers.sql_small_result, "SQL_SMALL_RESULT")?;
            reject(modifiers.sql_big_result, "SQL_BIG_RESULT")?;
            reject(modifiers.sql_buffer_result, "SQL_BUFFER_RESULT")?;
            reject(modifiers.sql_no_cache, "SQL_NO_CACHE")?;
            reject(modifiers.sql_calc_found_rows, "SQL_CALC_FOUND_ROWS")?;
        }
        let hint = Some("use SELECT * EXCLUDE (column) to leave out a column");
        reject_with(select.exclude.is_some(), "EXCLUDE", hint)?;
        reject(select.into.is_some(), "INTO")?;
        reject(!select.lateral_views.is_empty(), "LATERAL VIEW")?;
        let hint = Some("use WHERE");
        reject_with(select.prewhere.is_some(), "PREWHERE", hint)?;
        if let Some(kind) = select.connect_by.first() {
            let hint = Some("use WITH RECURSIVE to follow rows that refer to each other");
            let words = match kind {
                ConnectByKind::ConnectBy { .. } => "CONNECT BY",
                ConnectByKind::StartWith { .. } => "START WITH",
            };
            reject_with(true, words, hint)?;
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
            let hint = Some("use GROUP BY ROLLUP (column) for a row with totals");
            reject_with(true, words, hint)?;
        }
        reject(!select.cluster_by.is_empty(), "CLUSTER BY")?;
        reject(!select.distribute_by.is_empty(), "DISTRIBUTE BY")?;
        let hint = Some("use ORDER BY");
        reject_with(!select.sort_by.is_empty(), "SORT BY", hint)?;
        reject(select.value_table_mode.is_some(), "AS")?;
        select.projection.iter().try_for_each(check_item)?;
        select.from.iter().try_for_each(check_joins)
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> Checked {
        let sample = Some("use WHERE random() < 0.1 for about a tenth of the rows");
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
                // The parser reads the word as an alias.
                let is_final = |alias: &&datafusion::sql::sqlparser::ast::TableAlias| {
                    !alias.explicit
                        && alias.name.quote_style.is_none()
                        && alias.name.value.eq_ignore_ascii_case("final")
                };
                reject(alias.as_ref().filter(is_final).is_some(), "FINAL")?;
                reject(args.as_ref().is_some_and(|args| args.settings.is_some()), "SETTINGS")?;
                reject(!with_hints.is_empty(), "WITH (")?;
                reject(*with_ordinality, "WITH ORDINALITY")?;
                reject(!partitions.is_empty(), "PARTITION")?;
                reject(json_path.is_some(), "[")?;
                reject_sample(sampled.is_some(), sample)?;
                reject(version.is_some(), "AS OF")?;
                reject(!index_hints.is_empty(), "INDEX")
            }
            TableFactor::Derived { sample: sampled, .. } => {
                reject_sample(sampled.is_some(), sample)
            }
            TableFactor::Function { with_ordinality, .. } => {
                reject(*with_ordinality, "WITH ORDINALITY")
            }
            TableFactor::Pivot { .. } => reject(true, "PIVOT"),
            TableFactor::Unpivot { .. } => reject(true, "UNPIVOT"),
            TableFactor::MatchRecognize { .. } => reject(true, "MATCH_RECOGNIZE"),
            TableFactor::JsonTable { .. } => reject(true, "JSON_TABLE"),
            TableFactor::OpenJsonTable { .. } => reject(true, "OPENJSON"),
            TableFactor::XmlTable { .. } => reject(true, "XMLTABLE"),
            TableFactor::SemanticView { .. } => reject(true, "SEMANTIC_VIEW"),
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> Checked {
        match expr {
            Expr::BinaryOp { op: BinaryOperator::PGOverlap, .. } => {
                reject_with(true, "&&", Some("write AND"))
            }
            Expr::BinaryOp { op: BinaryOperator::DuckIntegerDivide, .. } => {
                let hint = Some("/ of two integers is an integer");
                reject_with(true, "//", hint)
            }
            Expr::Like { any: true, .. } => {
                reject_with(true, "LIKE ANY", Some("write one LIKE for each pattern, with OR"))
            }
            Expr::ILike { any: true, .. } => {
                reject_with(true, "ILIKE ANY", Some("write one ILIKE for each pattern, with OR"))
            }
            Expr::Function(function) => {
                reject(!matches!(function.parameters, FunctionArguments::None), ") (")
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

fn reject_sample(is_sampled: bool, hint: Option<&'static str>) -> Checked {
    reject_with(is_sampled, "SAMPLE", hint)
}

fn check_order_by(order: &OrderByExpr) -> Checked {
    reject(order.with_fill.is_some(), "WITH FILL")
}

fn check_item(item: &SelectItem) -> Checked {
    let (SelectItem::Wildcard(options) | SelectItem::QualifiedWildcard(_, options)) = item else {
        return ControlFlow::Continue(());
    };
    reject(options.opt_ilike.is_some(), "ILIKE")?;
    reject(options.opt_rename.is_some(), "RENAME")?;
    reject(options.opt_alias.is_some(), "AS")
}

fn check_joins(table: &TableWithJoins) -> Checked {
    for join in &table.joins {
        reject(join.global, "GLOBAL")?;
        match &join.join_operator {
            JoinOperator::Semi(_) => {
                reject_with(true, "SEMI JOIN", Some("write LEFT SEMI JOIN"))?;
            }
            JoinOperator::Anti(_) => {
                reject_with(true, "ANTI JOIN", Some("write LEFT ANTI JOIN"))?;
            }
            JoinOperator::CrossApply => reject(true, "CROSS APPLY")?,
            JoinOperator::OuterApply => reject(true, "OUTER APPLY")?,
            JoinOperator::AsOf { .. } => reject(true, "ASOF JOIN")?,
            JoinOperator::StraightJoin(_) => reject(true, "STRAIGHT_JOIN")?,
            JoinOperator::ArrayJoin
            | JoinOperator::LeftArrayJoin
            | JoinOperator::InnerArrayJoin => reject(true, "ARRAY JOIN")?,
            JoinOperator::CrossJoin(constraint) if *constraint != JoinConstraint::None => {
                reject_with(true, "CROSS JOIN", Some("a CROSS JOIN has no condition; use JOIN"))?;
            }
            _ => {}
        }
        if let TableFactor::NestedJoin { table_with_joins, .. } = &join.relation {
            check_joins(table_with_joins)?;
        }
    }
    match &table.relation {
        TableFactor::NestedJoin { table_with_joins, .. } => check_joins(table_with_joins),
        _ => ControlFlow::Continue(()),
    }
}
