//! Operators on numbers and times that DataFusion lacks or defines differently.
//!
//! Integers of all widths are added, subtracted and multiplied as 64-bit integers, and an overflow is an error. The
//! difference of two times is a number of seconds, like the intervals in logs. Seconds can be added to times and
//! subtracted from them. Times can be compared with strings and with seconds since 1970.

use std::sync::Arc;

use arrow_array::Array;
use arrow_array::ArrayRef;
use arrow_array::Datum;
use arrow_array::Float64Array;
use arrow_array::IntervalMonthDayNanoArray;
use arrow_array::TimestampMicrosecondArray;
use arrow_schema::ArrowError;
use arrow_schema::DataType;
use arrow_schema::IntervalUnit;
use arrow_schema::TimeUnit;
use datafusion::arrow::compute::cast;
use datafusion::arrow::compute::kernels::cast_utils::string_to_timestamp_nanos;
use datafusion::arrow::compute::kernels::numeric;
use datafusion::common::DFSchema;
use datafusion::common::ScalarValue;
use datafusion::error::DataFusionError;
use datafusion::error::Result;
use datafusion::logical_expr::ColumnarValue;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::ExprSchemable as _;
use datafusion::logical_expr::ScalarFunctionArgs;
use datafusion::logical_expr::ScalarUDF;
use datafusion::logical_expr::ScalarUDFImpl;
use datafusion::logical_expr::Signature;
use datafusion::logical_expr::Volatility;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::lit;
use datafusion::logical_expr::planner::ExprPlanner;
use datafusion::logical_expr::planner::PlannerResult;
use datafusion::logical_expr::planner::RawBinaryExpr;
use datafusion::physical_expr_common::datum::apply;
use datafusion::sql::sqlparser::ast::BinaryOperator;

use crate::Error;
use crate::functions::as_array;

/// Returns the type of times.
pub(crate) fn utc() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

/// Operation of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Operation {
    /// Add, subtract or multiply two 64-bit integers.
    Add,
    Subtract,
    Multiply,
    /// Add seconds to a time, or subtract them from it.
    AddSeconds,
    SubtractSeconds,
    /// Subtract two times.
    Difference,
    /// Convert seconds since 1970 to a time.
    ToTime,
    /// Convert a time or an interval to seconds.
    Epoch,
}

/// An operator implemented as a scalar function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Operator {
    operation: Operation,
    signature: Signature,
}

impl Operator {
    pub(crate) fn new(operation: Operation) -> Self {
        let count = match operation {
            Operation::ToTime | Operation::Epoch => 1,
            _ => 2,
        };
        Self { operation, signature: Signature::any(count, Volatility::Immutable) }
    }

    fn of(operation: Operation, args: Vec<Expr>) -> Expr {
        let function = Arc::new(ScalarUDF::from(Self::new(operation)));
        Expr::ScalarFunction(ScalarFunction::new_udf(function, args))
    }
}

impl ScalarUDFImpl for Operator {
    fn name(&self) -> &str {
        match self.operation {
            Operation::Add | Operation::AddSeconds => "+",
            Operation::Subtract | Operation::SubtractSeconds | Operation::Difference => "-",
            Operation::Multiply => "*",
            Operation::ToTime => "to_timestamp",
            Operation::Epoch => "epoch",
        }
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let names: Vec<_> = args.iter().map(|arg| arg.schema_name().to_string()).collect();
        Ok(match &names[..] {
            [left, right] => format!("{left} {} {right}", self.name()),
            names => format!("{}({})", self.name(), names.join(", ")),
        })
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(match self.operation {
            Operation::Add | Operation::Subtract | Operation::Multiply => DataType::Int64,
            Operation::AddSeconds | Operation::SubtractSeconds | Operation::ToTime => utc(),
            Operation::Difference => DataType::Float64,
            Operation::Epoch => match types {
                [ty] if ty.is_numeric() || ty.is_temporal() || ty.is_null() => DataType::Float64,
                _ => {
                    let error = Error::query("epoch takes a time or an interval");
                    return Err(error.near("epoch").into());
                }
            },
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let wide = |value: &ColumnarValue| value.cast_to(&DataType::Int64, None);
        let values = &args.args;
        let [first, rest @ ..] = &values[..] else { return Err(missing_operand()) };
        if let Some(second) = rest.first() {
            let checked = |f: fn(&dyn Datum, &dyn Datum) -> KernelResult| {
                let (left, right) = (wide(first)?, wide(second)?);
                apply(&left, &right, f).map_err(overflow)
            };
            match self.operation {
                Operation::Add => return checked(numeric::add),
                Operation::Subtract => return checked(numeric::sub),
                Operation::Multiply => return checked(numeric::mul),
                _ => {}
            }
        }
        let is_constant = values.iter().all(|value| matches!(value, ColumnarValue::Scalar(_)));
        let result = evaluate(self.operation, &ColumnarValue::values_to_arrays(values)?)?;
        Ok(match is_constant {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?),
            false => ColumnarValue::Array(result),
        })
    }
}

type KernelResult = std::result::Result<ArrayRef, ArrowError>;

fn missing_operand() -> DataFusionError {
    DataFusionError::Internal("an operator without operands".to_owned())
}

/// Converts the error of an integer overflow; other errors are returned unchanged.
fn overflow(error: DataFusionError) -> DataFusionError {
    let DataFusionError::ArrowError(inner, _) = &error else { return error };
    let ArrowError::ArithmeticOverflow(text) = &**inner else { return error };
    let what = text.strip_prefix("Overflow happened on: ").unwrap_or(text);
    let hint = "cast an operand to double";
    Error::query(format!("{what} does not fit in bigint")).with_hint(Some(hint.to_owned())).into()
}

fn evaluate(operation: Operation, arrays: &[ArrayRef]) -> Result<ArrayRef> {
    let [first, rest @ ..] = arrays else { return Err(missing_operand()) };
    Ok(match operation {
        Operation::Epoch => to_seconds(first)?,
        Operation::ToTime => {
            let seconds = cast(first, &DataType::Float64)?;
            let zero: ArrayRef = Arc::new(
                TimestampMicrosecondArray::from(vec![0; seconds.len()]).with_timezone("UTC"),
            );
            shift_times(&zero, &seconds, 1.0)?
        }
        Operation::AddSeconds => {
            shift_times(first, rest.first().ok_or_else(missing_operand)?, 1.0)?
        }
        Operation::SubtractSeconds => {
            shift_times(first, rest.first().ok_or_else(missing_operand)?, -1.0)?
        }
        _ => {
            let times =
                [cast(first, &utc())?, cast(rest.first().ok_or_else(missing_operand)?, &utc())?];
            let (left, right): (&TimestampMicrosecondArray, &TimestampMicrosecondArray) =
                (as_array(&times, 0)?, as_array(&times, 1)?);
            let between = |(left, right): (Option<i64>, Option<i64>)| {
                Some((i128::from(left?) - i128::from(right?)) as f64 / 1e6)
            };
            Arc::new(left.iter().zip(right).map(between).collect::<Float64Array>())
        }
    })
}

/// Adds seconds to times, or subtracts them, rounded to microseconds.
fn shift_times(times: &ArrayRef, by: &ArrayRef, sign: f64) -> Result<ArrayRef> {
    let arrays = [cast(times, &utc())?, cast(by, &DataType::Float64)?];
    let (times, by): (&TimestampMicrosecondArray, &Float64Array) =
        (as_array(&arrays, 0)?, as_array(&arrays, 1)?);
    let shift = |(time, by): (Option<i64>, Option<f64>)| -> Result<Option<i64>> {
        let (Some(time), Some(by)) = (time, by) else { return Ok(None) };
        let micros = (by * sign * 1e6).round();
        // A double in this range fits in 64 bits.
        let moved = (micros.abs() < 9.2e18).then(|| time.checked_add(micros as i64)).flatten();
        match moved {
            Some(moved) => Ok(Some(moved)),
            None => {
                Err(Error::query(format!("adding {by} seconds gives a time out of range")).into())
            }
        }
    };
    let moved = times.iter().zip(by).map(shift).collect::<Result<TimestampMicrosecondArray>>()?;
    Ok(Arc::new(moved.with_timezone("UTC")))
}

/// Converts times to seconds since 1970, and intervals to seconds.
fn to_seconds(values: &ArrayRef) -> Result<ArrayRef> {
    let micros = |ty: DataType| -> Result<ArrayRef> {
        let whole = cast(&cast(values, &ty)?, &DataType::Int64)?;
        let whole = cast(&whole, &DataType::Float64)?;
        Ok(numeric::div(&whole, &Float64Array::new_scalar(1e6))?)
    };
    match values.data_type() {
        DataType::Timestamp(..) | DataType::Date32 | DataType::Date64 => micros(utc()),
        DataType::Time32(_) | DataType::Time64(_) => {
            micros(DataType::Time64(TimeUnit::Microsecond))
        }
        DataType::Duration(_) => micros(DataType::Duration(TimeUnit::Microsecond)),
        DataType::Interval(_) => {
            let arrays = [cast(values, &DataType::Interval(IntervalUnit::MonthDayNano))?];
            let spans: &IntervalMonthDayNanoArray = as_array(&arrays, 0)?;
            let seconds = spans.iter().map(|span| span.map(interval_seconds));
            Ok(Arc::new(seconds.collect::<Float64Array>()))
        }
        _ => Ok(cast(values, &DataType::Float64)?),
    }
}

/// Returns the seconds of an interval; months count as 30 days.
fn interval_seconds(span: arrow_array::types::IntervalMonthDayNano) -> f64 {
    let days = i64::from(span.months) * 30 + i64::from(span.days);
    days as f64 * 86_400.0 + span.nanoseconds as f64 / 1e9
}

/// Replaces binary operators of DataFusion's planner.
#[derive(Debug)]
pub(crate) struct Planner;

impl ExprPlanner for Planner {
    fn plan_binary_op(
        &self,
        expr: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        let types = (expr.left.get_type(schema), expr.right.get_type(schema));
        let (Ok(left), Ok(right)) = types else { return Ok(PlannerResult::Original(expr)) };
        let RawBinaryExpr { op, left: a, right: b } = expr;
        let original = |op, left, right| PlannerResult::Original(RawBinaryExpr { op, left, right });
        let planned = |operation, a, b| PlannerResult::Planned(Operator::of(operation, vec![a, b]));
        let is_time = |ty: &DataType| matches!(ty, DataType::Timestamp(..));
        Ok(match (&op, &left, &right) {
            (BinaryOperator::Plus, l, r) if l.is_integer() && r.is_integer() => {
                planned(Operation::Add, a, b)
            }
            (BinaryOperator::Minus, l, r) if l.is_integer() && r.is_integer() => {
                planned(Operation::Subtract, a, b)
            }
            (BinaryOperator::Multiply, l, r) if l.is_integer() && r.is_integer() => {
                planned(Operation::Multiply, a, b)
            }
            (BinaryOperator::Plus, l, r) if is_time(l) && r.is_numeric() => {
                planned(Operation::AddSeconds, a, b)
            }
            (BinaryOperator::Plus, l, r) if l.is_numeric() && is_time(r) => {
                planned(Operation::AddSeconds, b, a)
            }
            (BinaryOperator::Minus, l, r) if is_time(l) && r.is_numeric() => {
                planned(Operation::SubtractSeconds, a, b)
            }
            (BinaryOperator::Minus, l, r) if is_time(l) && is_time(r) => {
                planned(Operation::Difference, a, b)
            }
            // A time literal and an interval.
            (BinaryOperator::Plus | BinaryOperator::Minus, _, DataType::Interval(_))
                if text_time(&a).is_some() =>
            {
                original(op, text_time(&a).unwrap_or(a), b)
            }
            (BinaryOperator::Minus, l, _) if is_time(l) && text_time(&b).is_some() => {
                let b = text_time(&b).unwrap_or(b);
                planned(Operation::Difference, a, b)
            }
            (op, l, r) if is_comparison(op) => {
                let (a, b) = comparable(a, l, b, r)?;
                original(op.clone(), a, b)
            }
            _ => original(op, a, b),
        })
    }
}

fn is_comparison(op: &BinaryOperator) -> bool {
    matches!(
        op,
        BinaryOperator::Eq
            | BinaryOperator::NotEq
            | BinaryOperator::Lt
            | BinaryOperator::LtEq
            | BinaryOperator::Gt
            | BinaryOperator::GtEq
    )
}

/// Converts the operands of a comparison: the operand compared with a time to a time, an interval compared with a
/// number to seconds.
pub(crate) fn comparable(a: Expr, l: &DataType, b: Expr, r: &DataType) -> Result<(Expr, Expr)> {
    let is_time = |ty: &DataType| matches!(ty, DataType::Timestamp(..));
    let is_span = |ty: &DataType| matches!(ty, DataType::Interval(_));
    Ok(match (l, r) {
        (l, r) if is_time(l) && !is_time(r) => (a, as_time(b, r)?),
        (l, r) if !is_time(l) && is_time(r) => (as_time(a, l)?, b),
        (l, r) if l.is_numeric() && is_span(r) => (a, Operator::of(Operation::Epoch, vec![b])),
        (l, r) if is_span(l) && r.is_numeric() => (Operator::of(Operation::Epoch, vec![a]), b),
        _ => (a, b),
    })
}

/// Converts an operand that is compared with a time.
fn as_time(expr: Expr, ty: &DataType) -> Result<Expr> {
    if let Some(time) = text_time(&expr) {
        return Ok(time);
    }
    if let Expr::Literal(ScalarValue::Utf8(Some(text)), _) = &expr {
        let hint = "write times like '2023-11-14', '2023-11-14 22:20:05.5' or '2023-11-14T22:20:05Z', or as seconds since 1970";
        let error = Error::query(format!("'{text}' is not a time"));
        return Err(error.with_hint(Some(hint.to_owned())).near(text).into());
    }
    let seconds = match &expr {
        Expr::Literal(ScalarValue::Int64(Some(seconds)), _) => seconds.checked_mul(1_000_000),
        Expr::Literal(ScalarValue::Float64(Some(seconds)), _) if seconds.abs() < 9e12 => {
            Some((seconds * 1e6).round() as i64)
        }
        _ => None,
    };
    Ok(match seconds {
        Some(micros) => time_literal(micros),
        None if ty.is_numeric() => Operator::of(Operation::ToTime, vec![expr]),
        None => expr,
    })
}

fn time_literal(micros: i64) -> Expr {
    lit(ScalarValue::TimestampMicrosecond(Some(micros), Some("UTC".into())))
}

/// Parses a string literal as a time: `2023-11-14`, `2023-11-14 22:20`, with seconds and a fraction, with a time zone,
/// or as seconds since 1970.
fn text_time(expr: &Expr) -> Option<Expr> {
    let Expr::Literal(ScalarValue::Utf8(Some(text)), _) = expr else { return None };
    parse_time(text).map(time_literal)
}

fn parse_time(text: &str) -> Option<i64> {
    let text = text.trim();
    // A year is not read as a number of seconds.
    if text.len() == 4 && text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    if let Ok(seconds) = text.parse::<f64>() {
        return (seconds.abs() < 9e12).then_some((seconds * 1e6).round() as i64);
    }
    // A time without seconds, possibly with a time zone.
    let with_seconds = || {
        let (time, zone) = match text.as_bytes().get(16) {
            None => (text, ""),
            Some(b'Z' | b'z' | b'+' | b'-' | b' ') => text.split_at_checked(16)?,
            Some(_) => return None,
        };
        let whole = format!("{time}:00{}", zone.trim_start());
        string_to_timestamp_nanos(&whole).ok()
    };
    let nanos = string_to_timestamp_nanos(text).ok().or_else(with_seconds)?;
    Some(nanos.div_euclid(1_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_texts_of_several_forms() {
        const TIME: i64 = 1_700_000_400_000_000;
        for text in [
            "2023-11-14 22:20",
            "2023-11-14T22:20",
            "2023-11-14T22:20Z",
            "2023-11-14 23:20+01:00",
            "2023-11-14 22:20:00.000000",
            "1700000400",
            "1700000400.0",
        ] {
            assert_eq!(parse_time(text), Some(TIME), "{text}");
        }
        assert_eq!(parse_time("1970-01-02"), Some(86_400_000_000));
        for wrong in
            ["", "now", "2023", "2023-11-14 22", "2023-11-14 22:20x", "inf", "ääääääääääääää"]
        {
            assert_eq!(parse_time(wrong), None, "{wrong}");
        }
    }
}
