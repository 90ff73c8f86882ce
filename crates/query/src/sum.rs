//! `sum` with an overflow check: a sum of integers that does not fit in 64 bits is an error.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::BooleanArray;
use arrow_array::Int64Array;
use arrow_schema::DataType;
use arrow_schema::Field;
use arrow_schema::FieldRef;
use datafusion::arrow::compute::CastOptions;
use datafusion::arrow::compute::cast;
use datafusion::arrow::compute::cast_with_options;
use datafusion::common::ScalarValue;
use datafusion::error::DataFusionError;
use datafusion::error::Result;
use datafusion::functions_aggregate::sum::Sum;
use datafusion::logical_expr::Accumulator;
use datafusion::logical_expr::AggregateUDFImpl;
use datafusion::logical_expr::EmitTo;
use datafusion::logical_expr::GroupsAccumulator;
use datafusion::logical_expr::ReversedUDAF;
use datafusion::logical_expr::Signature;
use datafusion::logical_expr::Volatility;
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::logical_expr::function::StateFieldsArgs;
use datafusion::logical_expr::utils::AggregateOrderSensitivity;

use crate::Error;
use crate::functions::as_array;

/// Type that integers are added as. It cannot overflow in practice.
const WIDE_TYPE: DataType = DataType::Decimal128(38, 0);

/// DataFusion's `sum` over widened integers, whose result is narrowed to 64 bits.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct CheckedSum {
    inner: Sum,
    signature: Signature,
}

impl CheckedSum {
    pub(crate) fn new() -> Self {
        Self { inner: Sum::new(), signature: Signature::user_defined(Volatility::Immutable) }
    }
}

fn is_integer(field: &FieldRef) -> bool {
    field.data_type().is_integer()
}

fn widened(field: &FieldRef) -> FieldRef {
    Arc::new(Field::new(field.name(), WIDE_TYPE, true))
}

fn narrow(sums: &ArrayRef) -> Result<ArrayRef> {
    let options = CastOptions { safe: false, ..CastOptions::default() };
    let narrow = cast_with_options(sums, &DataType::Int64, &options);
    narrow.map_err(|_| too_large())
}

fn too_large() -> DataFusionError {
    let hint = "cast the argument to double";
    Error::query("a sum does not fit in bigint").with_hint(Some(hint.to_owned())).near("sum").into()
}

impl AggregateUDFImpl for CheckedSum {
    fn name(&self) -> &str {
        "sum"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let wrong = |what: &str| Err(Error::query(format!("sum {what}")).near("sum").into());
        Ok(vec![match types {
            [ty] if ty.is_integer() || ty.is_null() => DataType::Int64,
            [ty] if ty.is_floating() => DataType::Float64,
            [ty @ (DataType::Duration(_) | DataType::Interval(_))] => ty.clone(),
            [ty] if ty.is_numeric() => ty.clone(),
            [ty] => return wrong(&format!("adds numbers, not {}", crate::error::type_name(ty))),
            _ => return wrong("takes one argument"),
        }])
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(types)
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        if !is_integer(&args.return_field) {
            return self.inner.state_fields(args);
        }
        let return_field = widened(&args.return_field);
        self.inner.state_fields(StateFieldsArgs { return_field, ..args })
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        if !is_integer(&args.return_field) {
            return self.inner.accumulator(args);
        }
        let return_field = widened(&args.return_field);
        let inner = self.inner.accumulator(AccumulatorArgs { return_field, ..args })?;
        Ok(Box::new(WideningAccumulator { inner }))
    }

    fn create_sliding_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn Accumulator>> {
        if args.is_distinct {
            if !is_integer(&args.return_field) {
                let error =
                    Error::query("sum(DISTINCT …) over a sliding window supports only integers");
                let hint = "cast the argument to bigint, or omit DISTINCT";
                return Err(error.with_hint(Some(hint.to_owned())).near("sum").into());
            }
            return Ok(Box::<SlidingDistinctSum>::default());
        }
        if !is_integer(&args.return_field) {
            return self.inner.create_sliding_accumulator(args);
        }
        let return_field = widened(&args.return_field);
        let args = AccumulatorArgs { return_field, ..args };
        Ok(Box::new(WideningAccumulator { inner: self.inner.create_sliding_accumulator(args)? }))
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        self.inner.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        if !is_integer(&args.return_field) {
            return self.inner.create_groups_accumulator(args);
        }
        let return_field = widened(&args.return_field);
        let args = AccumulatorArgs { return_field, ..args };
        Ok(Box::new(WideningAccumulator { inner: self.inner.create_groups_accumulator(args)? }))
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}

/// An accumulator that widens integers before it adds them.
#[derive(Debug)]
struct WideningAccumulator<A> {
    inner: A,
}

fn widen(values: &[ArrayRef]) -> Result<Vec<ArrayRef>> {
    values.iter().map(|array| Ok(cast(array, &WIDE_TYPE)?)).collect()
}

impl Accumulator for WideningAccumulator<Box<dyn Accumulator>> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.inner.update_batch(&widen(values)?)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let sum = self.inner.evaluate()?.to_array()?;
        ScalarValue::try_from_array(&narrow(&sum)?, 0)
    }

    fn size(&self) -> usize {
        self.inner.size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.inner.state()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.inner.merge_batch(states)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.inner.retract_batch(&widen(values)?)
    }

    fn supports_retract_batch(&self) -> bool {
        self.inner.supports_retract_batch()
    }
}

/// Sum of the distinct integers in a sliding window. DataFusion's own accumulator wraps on overflow.
#[derive(Debug, Default)]
struct SlidingDistinctSum {
    /// Number of occurrences of each value in the window.
    counts: HashMap<i64, u64>,
    sum: i128,
}

impl SlidingDistinctSum {
    fn each(&mut self, values: &[ArrayRef], mut value: impl FnMut(&mut Self, i64)) -> Result<()> {
        let values: &Int64Array = as_array(values, 0)?;
        values.iter().flatten().for_each(|number| value(self, number));
        Ok(())
    }
}

impl Accumulator for SlidingDistinctSum {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.each(values, |window, value| {
            let count = window.counts.entry(value).or_default();
            *count += 1;
            if *count == 1 {
                window.sum += i128::from(value);
            }
        })
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        if self.counts.is_empty() {
            return Ok(ScalarValue::Int64(None));
        }
        let sum = i64::try_from(self.sum).map_err(|_| too_large())?;
        Ok(ScalarValue::Int64(Some(sum)))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.counts.capacity() * size_of::<(i64, u64)>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Err(DataFusionError::Internal("a window has no partial sums".to_owned()))
    }

    fn merge_batch(&mut self, _: &[ArrayRef]) -> Result<()> {
        Err(DataFusionError::Internal("a window has no partial sums".to_owned()))
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.each(values, |window, value| {
            let Some(count) = window.counts.get_mut(&value) else { return };
            *count -= 1;
            if *count == 0 {
                window.counts.remove(&value);
                window.sum -= i128::from(value);
            }
        })
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }
}

impl GroupsAccumulator for WideningAccumulator<Box<dyn GroupsAccumulator>> {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        count: usize,
    ) -> Result<()> {
        self.inner.update_batch(&widen(values)?, groups, filter, count)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        narrow(&self.inner.evaluate(emit_to)?)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        self.inner.state(emit_to)
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], count: usize) -> Result<()> {
        self.inner.merge_batch(states, groups, count)
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        self.inner.convert_to_state(&widen(values)?, filter)
    }

    fn size(&self) -> usize {
        self.inner.size()
    }
}
