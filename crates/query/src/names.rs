//! Resolves the names in a query: Zeek's names with dots need no quotes, and names are case-insensitive.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::ops::ControlFlow;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast;
use datafusion::sql::sqlparser::ast::Expr;
use datafusion::sql::sqlparser::ast::Ident;
use datafusion::sql::sqlparser::ast::ObjectName;
use datafusion::sql::sqlparser::ast::ObjectNamePart;
use datafusion::sql::sqlparser::ast::Query;
use datafusion::sql::sqlparser::ast::Select;
use datafusion::sql::sqlparser::ast::SelectFlavor;
use datafusion::sql::sqlparser::ast::SelectItem;
use datafusion::sql::sqlparser::ast::VisitMut as _;
use datafusion::sql::sqlparser::ast::VisitorMut;
use datafusion::sql::sqlparser::ast::WildcardAdditionalOptions;

use crate::Error;

/// Names that a query declares, and the identifiers that it uses.
#[derive(Debug, Default)]
pub(crate) struct Declared {
    /// Common table expressions, in lower case.
    tables: BTreeSet<String>,
    /// Aliases of columns.
    aliases: BTreeSet<String>,
    /// Identifiers of expressions.
    pub(crate) mentioned: BTreeSet<String>,
}

impl Declared {
    /// Whether a name is that of a common table expression.
    pub(crate) fn has_table(&self, name: &str) -> bool {
        self.tables.contains(&name.to_ascii_lowercase())
    }
}

impl VisitorMut for Declared {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        for table in query.with.iter().flat_map(|with| &with.cte_tables) {
            self.tables.insert(table.alias.name.value.to_ascii_lowercase());
            let columns = table.alias.columns.iter().map(|column| column.name.value.clone());
            self.aliases.extend(columns);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        // `FROM conn` without SELECT selects all columns.
        if select.flavor == SelectFlavor::FromFirstNoSelect {
            select.projection = vec![SelectItem::Wildcard(WildcardAdditionalOptions::default())];
        }
        for item in &select.projection {
            if let SelectItem::ExprWithAlias { alias, .. } = item {
                self.aliases.insert(alias.value.clone());
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::Identifier(ident) => {
                self.mentioned.insert(ident.value.clone());
            }
            Expr::CompoundIdentifier(parts) => {
                self.mentioned.extend(parts.last().map(|part| part.value.clone()));
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// Collects the declarations of a query. Rejects other statements, and unsupported clauses.
pub(crate) fn declared(statement: &mut Statement, sql: &str) -> Result<Declared, Error> {
    let mut declared = Declared::default();
    let query = query(statement)?;
    crate::clauses::check(query, sql)?;
    let _ = query.visit(&mut declared);
    Ok(declared)
}

/// Labels for result columns without a name: the text of their expressions. `None` for a column with a name; empty if
/// the columns are not known from the text (`SELECT *`).
pub(crate) fn labels(statement: &Statement) -> Vec<Option<String>> {
    let Statement::Statement(inner) = statement else { return Vec::new() };
    let ast::Statement::Query(query) = inner.as_ref() else { return Vec::new() };
    let mut body = query.body.as_ref();
    let select = loop {
        match body {
            ast::SetExpr::Select(select) => break select,
            ast::SetExpr::Query(query) => body = query.body.as_ref(),
            ast::SetExpr::SetOperation { left, .. } => body = left.as_ref(),
            _ => return Vec::new(),
        }
    };
    let label = |item: &SelectItem| match item {
        SelectItem::UnnamedExpr(Expr::Identifier(_) | Expr::CompoundIdentifier(_))
        | SelectItem::ExprWithAlias { .. } => Some(None),
        SelectItem::UnnamedExpr(expr) => Some(Some(expr.to_string())),
        _ => None,
    };
    select.projection.iter().map(label).collect::<Option<_>>().unwrap_or_default()
}

/// Returns the query in a statement.
fn query(statement: &mut Statement) -> Result<&mut ast::Statement, Error> {
    match statement {
        Statement::Statement(inner) => match inner.as_ref() {
            ast::Statement::Query(_)
            | ast::Statement::Explain { .. }
            | ast::Statement::ExplainTable { .. } => Ok(&mut **inner),
            _ => Err(not_a_query()),
        },
        Statement::Explain(explain) => query(&mut explain.statement),
        _ => Err(not_a_query()),
    }
}

fn not_a_query() -> Error {
    let what = "only queries are supported: SELECT, WITH, VALUES, EXPLAIN, DESCRIBE, SHOW TABLES, SHOW COLUMNS";
    let hint =
        "use --out FILE to write a result, and WITH name AS (SELECT …) for an intermediate one";
    Error::query(what).with_hint(Some(hint.to_owned()))
}

/// Calls `resolve` for the name of each table; the identifiers that it returns replace the name.
pub(crate) fn tables(
    statement: &mut Statement,
    mut resolve: impl FnMut(&[Ident]) -> Result<Option<Vec<Ident>>, Error>,
) -> Result<(), Error> {
    let flow = ast::visit_relations_mut(query(statement)?, |name: &mut ObjectName| {
        let parts: Option<Vec<Ident>> = name.0.iter().map(|p| p.as_ident().cloned()).collect();
        match parts.map(|parts| resolve(&parts)) {
            Some(Ok(Some(idents))) => {
                name.0 = idents.into_iter().map(ObjectNamePart::Identifier).collect();
            }
            Some(Err(error)) => return ControlFlow::Break(error),
            Some(Ok(None)) | None => {}
        }
        ControlFlow::Continue(())
    });
    match flow {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

/// Makes identifiers of expressions those of the columns.
pub(crate) fn columns<'a>(
    statement: &mut Statement,
    declared: &Declared,
    names: impl Iterator<Item = &'a str>,
) -> Result<(), Error> {
    // Keyed by lower case. If several names differ only in case, only an exact match counts.
    let mut known: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for name in names {
        known.entry(name.to_ascii_lowercase()).or_default().insert(name);
    }
    let canonical = |name: &str| -> Option<&str> {
        let all = known.get(&name.to_ascii_lowercase())?;
        all.get(name).or_else(|| all.first().filter(|_| all.len() == 1)).copied()
    };
    let rename = |ident: &Ident, name: &str| Ident {
        value: name.to_owned(),
        quote_style: Some('"'),
        span: ident.span,
    };
    let _: ControlFlow<()> = ast::visit_expressions_mut(query(statement)?, |expr: &mut Expr| {
        match expr {
            Expr::Identifier(ident)
                if ident.quote_style.is_none() && !declared.aliases.contains(&ident.value) =>
            {
                if let Some(name) = canonical(&ident.value) {
                    *ident = rename(ident, name);
                }
            }
            Expr::CompoundIdentifier(parts) if parts.iter().all(|p| p.quote_style.is_none()) => {
                let joined = |parts: &[Ident]| {
                    let words: Vec<_> = parts.iter().map(|part| &*part.value).collect();
                    canonical(&words.join("."))
                };
                if let Some(name) = joined(parts) {
                    let first = parts.first().map(|first| rename(first, name));
                    if let Some(ident) = first {
                        *expr = Expr::Identifier(ident);
                    }
                } else if let [table, rest @ ..] = &parts[..]
                    && let Some(name) = joined(rest)
                    && let Some(first) = rest.first()
                {
                    let column = rename(first, name);
                    *parts = vec![table.clone(), column];
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    });
    crate::rewrite::expressions(query(statement)?);
    Ok(())
}
