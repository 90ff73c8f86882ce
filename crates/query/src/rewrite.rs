//! Rewrites SQL expressions as equivalent ones that `arithmetic` plans.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast;
use datafusion::sql::sqlparser::ast::BinaryOperator;
use datafusion::sql::sqlparser::ast::DateTimeField;
use datafusion::sql::sqlparser::ast::Expr;
use datafusion::sql::sqlparser::ast::FunctionArg;
use datafusion::sql::sqlparser::ast::FunctionArgExpr;
use datafusion::sql::sqlparser::ast::FunctionArguments;
use datafusion::sql::sqlparser::ast::Ident;
use datafusion::sql::sqlparser::ast::ObjectName;
use datafusion::sql::sqlparser::ast::UnaryOperator;
use datafusion::sql::sqlparser::ast::Value;

/// Rewrites `-x` as `0 - x`, `x REGEXP y` as `x ~ y`, and `EXTRACT(EPOCH FROM x)` as `epoch(x)`.
pub(crate) fn expressions(statement: &mut ast::Statement) {
    let _: ControlFlow<()> = ast::visit_expressions_mut(statement, |expr| {
        if let Some(other) = rewritten(expr) {
            *expr = other;
        }
        ControlFlow::Continue(())
    });
}

fn rewritten(expr: &mut Expr) -> Option<Expr> {
    match expr {
        Expr::UnaryOp { op: UnaryOperator::Minus, expr }
            if !matches!(**expr, Expr::Value(_) | Expr::Interval(_)) =>
        {
            let zero = Expr::Value(Value::Number("0".to_owned(), false).into());
            let negative = binary(zero, BinaryOperator::Minus, expr.as_ref().clone());
            Some(Expr::Nested(Box::new(negative)))
        }
        Expr::RLike { negated, expr, pattern, .. } => {
            let op = match negated {
                true => BinaryOperator::PGRegexNotMatch,
                false => BinaryOperator::PGRegexMatch,
            };
            let matched = binary(expr.as_ref().clone(), op, pattern.as_ref().clone());
            Some(Expr::Nested(Box::new(matched)))
        }
        Expr::Extract { field: DateTimeField::Epoch, expr, .. } => {
            Some(call("epoch", expr.as_ref().clone()))
        }
        Expr::Function(function) => {
            let name = function.name.0.last()?.as_ident()?;
            let FunctionArguments::List(list) = &function.args else { return None };
            let [
                FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(part))),
                FunctionArg::Unnamed(FunctionArgExpr::Expr(of)),
            ] = &list.args[..]
            else {
                return None;
            };
            let is_epoch = matches!(&part.value, Value::SingleQuotedString(part) if part.eq_ignore_ascii_case("epoch"));
            let is_part =
                ["date_part", "datepart"].iter().any(|n| n.eq_ignore_ascii_case(&name.value));
            (is_epoch && is_part).then(|| call("epoch", of.clone()))
        }
        _ => None,
    }
}

fn binary(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) }
}

fn call(name: &str, argument: Expr) -> Expr {
    let argument = FunctionArg::Unnamed(FunctionArgExpr::Expr(argument));
    let arguments = ast::FunctionArgumentList {
        duplicate_treatment: None,
        args: vec![argument],
        clauses: Vec::new(),
    };
    Expr::Function(ast::Function {
        name: ObjectName::from(vec![Ident::new(name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(arguments),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}
