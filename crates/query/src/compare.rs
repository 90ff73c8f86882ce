//! Lets `IN` and `BETWEEN` compare times with strings and numbers, like the operators in `arithmetic`.

use std::sync::Arc;

use arrow_array::BooleanArray;
use arrow_schema::DataType;
use datafusion::arrow::compute::kernels::boolean;
use datafusion::arrow::compute::kernels::cmp;
use datafusion::common::DFSchema;
use datafusion::common::ExprSchema as _;
use datafusion::common::ScalarValue;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::Between;
use datafusion::logical_expr::ColumnarValue;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::ExprSchemable as _;
use datafusion::logical_expr::Operator;
use datafusion::logical_expr::ScalarFunctionArgs;
use datafusion::logical_expr::ScalarUDF;
use datafusion::logical_expr::ScalarUDFImpl;
use datafusion::logical_expr::Signature;
use datafusion::logical_expr::Volatility;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::expr_rewriter::FunctionRewrite;
use gannet_base::Subnet;

use crate::Error;
use crate::arithmetic::comparable;

/// Rewrites comparisons that the planner of `arithmetic` does not see, so that their operands have the same type.
#[derive(Debug)]
pub(crate) struct Comparisons;

impl FunctionRewrite for Comparisons {
    fn name(&self) -> &str {
        "comparisons of times"
    }

    fn rewrite(
        &self,
        expr: Expr,
        schema: &DFSchema,
        _: &ConfigOptions,
    ) -> Result<Transformed<Expr>> {
        let comparable_with = |of: &Expr, other: Expr| -> Result<(Expr, Expr)> {
            match (of.get_type(schema), other.get_type(schema)) {
                (Ok(a), Ok(b)) => comparable(of.clone(), &a, other, &b),
                _ => Ok((of.clone(), other)),
            }
        };
        Ok(match expr {
            Expr::InList(InList { mut expr, list, negated }) => {
                list.iter().try_for_each(|item| reject_network(&expr, item, schema))?;
                let mut all = Vec::with_capacity(list.len());
                for item in list {
                    let (of, item) = comparable_with(&expr, item)?;
                    *expr = of;
                    all.push(item);
                }
                Transformed::yes(Expr::InList(InList { expr, list: all, negated }))
            }
            Expr::Between(Between { expr, negated, low, high }) => {
                let (expr, low) = comparable_with(&expr, *low)?;
                let (expr, high) = comparable_with(&expr, *high)?;
                if expr.is_volatile() {
                    let once = ScalarUDF::from(BetweenOnce::new());
                    let args = vec![expr, low, high];
                    let between =
                        Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(once), args));
                    let not = |between| Expr::Not(Box::new(between));
                    return Ok(Transformed::yes(if negated { not(between) } else { between }));
                }
                let [expr, low, high] = [expr, low, high].map(Box::new);
                Transformed::yes(Expr::Between(Between { expr, negated, low, high }))
            }
            Expr::BinaryExpr(mut binary)
                if matches!(binary.op, Operator::IsDistinctFrom | Operator::IsNotDistinctFrom) =>
            {
                let (left, right) = comparable_with(&binary.left, *binary.right)?;
                (binary.left, binary.right) = (Box::new(left), Box::new(right));
                Transformed::yes(Expr::BinaryExpr(binary))
            }
            Expr::BinaryExpr(binary) if matches!(binary.op, Operator::Eq | Operator::NotEq) => {
                reject_network(&binary.left, &binary.right, schema)?;
                reject_network(&binary.right, &binary.left, schema)?;
                Transformed::no(Expr::BinaryExpr(binary))
            }
            expr => Transformed::no(expr),
        })
    }
}

/// Rejects comparing an address with a network for equality: they are never equal.
fn reject_network(of: &Expr, other: &Expr, schema: &DFSchema) -> Result<()> {
    let (Expr::Column(column), Expr::Literal(ScalarValue::Utf8(Some(text)), _)) = (of, other)
    else {
        return Ok(());
    };
    let is_addr = |field: &arrow_schema::FieldRef| {
        field.metadata().get(gannet_columns::TYPE).is_some_and(|ty| ty == "addr")
    };
    let is_network = text.contains('/') && text.parse::<Subnet>().is_ok();
    if !is_network || !schema.field_from_column(column).is_ok_and(is_addr) {
        return Ok(());
    }
    let name = &column.name;
    let error = Error::query(format!("'{text}' is a network, but {name} is a single address"));
    let hint = format!("cidr({name}, '{text}') is true for the addresses of the network");
    Err(error.with_hint(Some(hint)).near(text).into())
}

/// `BETWEEN` of a volatile expression such as `random()`, which is evaluated once.
#[derive(Debug, PartialEq, Eq, Hash)]
struct BetweenOnce {
    signature: Signature,
}

impl BetweenOnce {
    fn new() -> Self {
        Self { signature: Signature::comparable(3, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for BetweenOnce {
    fn name(&self) -> &str {
        "between"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let [value, low, high] = &arrays[..] else {
            return Ok(ColumnarValue::Scalar(ScalarValue::Boolean(None)));
        };
        let at_least: BooleanArray = cmp::gt_eq(value, low)?;
        let at_most = cmp::lt_eq(value, high)?;
        Ok(ColumnarValue::Array(Arc::new(boolean::and_kleene(&at_least, &at_most)?)))
    }
}
