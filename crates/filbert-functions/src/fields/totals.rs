//! Aggregates of untyped fields.

use std::hash::{Hash, Hasher};
use std::sync::{Arc, LazyLock};

use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Field, FieldRef};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::functions_aggregate::min_max::{max_udaf, min_udaf};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Expr, Operator, Signature, Volatility, WindowFunctionDefinition,
};
use filbert_data::FieldType;

use super::arithmetic;
use super::function::What;
use super::resolve::untyped;
use super::rule::order;
use super::scalar::{Number, Scalar};
use crate::types::{is_untyped, untyped_field};

static MIN: LazyLock<Arc<AggregateUDF>> = LazyLock::new(|| Arc::new(Extreme { of: Of::Fields, least: true }.udaf()));
static MAX: LazyLock<Arc<AggregateUDF>> = LazyLock::new(|| Arc::new(Extreme { of: Of::Fields, least: false }.udaf()));

/// The aggregates that `min` and `max` of members are rewritten to.
pub(super) fn aggregates() -> Vec<AggregateUDF> {
    [true, false].map(|least| Extreme { of: Of::Any, least }.udaf()).to_vec()
}

/// The type of an extreme's argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Of {
    /// Not known yet.
    Any,
    /// Untyped fields.
    Fields,
}

/// The minimum or the maximum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Extreme {
    of: Of,
    least: bool,
}

#[derive(Debug)]
struct ExtremeFunction {
    extreme: Extreme,
    signature: Signature,
}

impl PartialEq for ExtremeFunction {
    fn eq(&self, other: &Self) -> bool {
        self.extreme == other.extreme
    }
}

impl Eq for ExtremeFunction {}

impl Hash for ExtremeFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.extreme.hash(state);
    }
}

impl Extreme {
    fn udaf(self) -> AggregateUDF {
        let signature = Signature::user_defined(Volatility::Immutable);
        AggregateUDF::new_from_impl(ExtremeFunction { extreme: self, signature })
    }

    /// DataFusion's aggregate for typed values.
    fn of_type(self) -> Arc<AggregateUDF> {
        if self.least { min_udaf() } else { max_udaf() }
    }
}

impl AggregateUDFImpl for ExtremeFunction {
    fn name(&self) -> &str {
        match (self.extreme.of, self.extreme.least) {
            (Of::Any, true) => "object_min",
            (Of::Any, false) => "object_max",
            (Of::Fields, true) => "object_field_min",
            (Of::Fields, false) => "object_field_max",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match self.extreme.of {
            Of::Any => self.extreme.of_type().coerce_types(types),
            Of::Fields => Ok(types.to_vec()),
        }
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.extreme.of_type().return_type(types)
    }

    fn return_field(&self, fields: &[FieldRef]) -> Result<FieldRef> {
        match fields {
            [field] if is_untyped(field) || self.extreme.of == Of::Fields => Ok(untyped_field(self.name()).into()),
            fields => self.extreme.of_type().return_field(fields),
        }
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        match self.extreme.of {
            Of::Any => self.extreme.of_type().accumulator(args),
            Of::Fields => Ok(Box::new(Found { least: self.extreme.least, best: None })),
        }
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        match self.extreme.of {
            Of::Any => self.extreme.of_type().state_fields(args),
            Of::Fields => Ok(vec![Arc::new(Field::new("found", DataType::Utf8View, true))]),
        }
    }
}

/// The best value so far, with its sort key.
#[derive(Debug)]
struct Found {
    least: bool,
    best: Option<(String, String)>,
}

/// Calls `take` with each text of an array.
fn each(values: &[ArrayRef], mut take: impl FnMut(&str) -> Result<()>) -> Result<()> {
    let Some(values) = values.first() else { return Ok(()) };
    let texts = datafusion::arrow::compute::cast(values, &DataType::Utf8View)?;
    let Some(texts) = texts.as_any().downcast_ref::<arrow_array::StringViewArray>() else { return Ok(()) };
    texts.iter().flatten().try_for_each(&mut take)
}

impl Accumulator for Found {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        each(values, |text| {
            let Some(key) = Scalar::of_json(text).key() else { return Ok(()) };
            let is_better =
                self.best.as_ref().is_none_or(|(best, _)| if self.least { key < *best } else { key > *best });
            if is_better {
                self.best = Some((key, text.to_owned()));
            }
            Ok(())
        })
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::Utf8View(self.best.as_ref().map(|(_, text)| text.clone())))
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.best.as_ref().map_or(0, |(key, text)| key.len() + text.len())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }
}

/// The sum or the average of untyped fields. Whole numbers are added exactly.
#[derive(Debug)]
pub(crate) struct Summed {
    is_average: bool,
    sum: Option<Number>,
    count: i64,
}

impl Summed {
    /// Starts with no values.
    pub(crate) fn new(is_average: bool) -> Summed {
        Summed { is_average, sum: None, count: 0 }
    }

    /// The state between the parts of an aggregation.
    pub(crate) fn state_fields() -> Vec<FieldRef> {
        vec![
            Arc::new(Field::new("sum", DataType::Utf8View, true)),
            Arc::new(Field::new("count", DataType::Int64, false)),
        ]
    }

    /// Adds a value; returns whether it was not null.
    fn add(&mut self, text: &str) -> Result<bool> {
        let added = Scalar::of_json(text);
        if added == Scalar::Null {
            return Ok(false);
        }
        let sum = Scalar::Number(self.sum.unwrap_or(Number::Whole(0)));
        self.sum = arithmetic::compute(Operator::Plus, &sum, &added)?;
        Ok(true)
    }
}

impl Accumulator for Summed {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        each(values, |text| {
            self.count += i64::from(self.add(text)?);
            Ok(())
        })
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let made = match self.sum {
            Some(sum) if self.is_average => Some(Number::Double(sum.to_f64() / self.count as f64)),
            sum => sum,
        };
        Ok(ScalarValue::Utf8View(made.map(Number::text)))
    }

    fn size(&self) -> usize {
        size_of::<Self>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![ScalarValue::Utf8View(self.sum.map(Number::text)), ScalarValue::Int64(Some(self.count))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        each(states, |text| self.add(text).map(drop))?;
        if let Some(counts) = states.get(1).and_then(|counts| counts.as_any().downcast_ref::<arrow_array::Int64Array>())
        {
            self.count += counts.iter().flatten().sum::<i64>();
        }
        Ok(())
    }
}

/// An aggregate or a window function, with its arguments in the types that it needs.
pub(super) fn resolve(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    match expr {
        Expr::AggregateFunction(mut call) => {
            let args = std::mem::take(&mut call.params.args);
            let (func, args, changed) = aggregate(&call.func, args, schema);
            (call.func, call.params.args) = (func, args);
            let ordered = order(std::mem::take(&mut call.params.order_by), schema);
            call.params.order_by = ordered.data;
            if let Some(filter) = call.params.filter.take_if(|filter| untyped(filter, schema)) {
                call.params.filter = Some(Box::new(super::resolve::read(*filter, FieldType::Boolean)));
            }
            changed_if(Expr::AggregateFunction(call), changed || ordered.transformed)
        }
        Expr::WindowFunction(mut window) => {
            let mut changed = false;
            if let WindowFunctionDefinition::AggregateUDF(udaf) = &window.fun {
                let args = std::mem::take(&mut window.params.args);
                let (func, args, new) = aggregate(udaf, args, schema);
                window.fun = WindowFunctionDefinition::AggregateUDF(func);
                window.params.args = args;
                changed = new;
            }
            let ordered = order(std::mem::take(&mut window.params.order_by), schema);
            window.params.order_by = ordered.data;
            changed_if(Expr::WindowFunction(window), changed || ordered.transformed)
        }
        other => Transformed::no(other),
    }
}

fn changed_if(expr: Expr, changed: bool) -> Transformed<Expr> {
    if changed { Transformed::yes(expr) } else { Transformed::no(expr) }
}

/// The aggregate for arguments that may be untyped fields; the flag says whether it changed.
fn aggregate(udaf: &Arc<AggregateUDF>, args: Vec<Expr>, schema: &DFSchema) -> (Arc<AggregateUDF>, Vec<Expr>, bool) {
    let of_fields = args.iter().any(|argument| untyped(argument, schema));
    let extreme = match udaf.name() {
        "object_min" | "min" => Some((&MIN, true)),
        "object_max" | "max" => Some((&MAX, false)),
        _ => None,
    };
    match (udaf.name(), extreme) {
        (_, Some((of_fields_udaf, _))) if of_fields => (Arc::clone(of_fields_udaf), args, true),
        ("object_min" | "object_max", Some((_, least))) => (Extreme { of: Of::Any, least }.of_type(), args, true),
        ("sum" | "avg" | "mean" | "count", _) => (Arc::clone(udaf), args, false),
        (name, None) if of_fields && !name.starts_with("json") && !name.starts_with("object") => {
            let as_text = |argument: Expr| match untyped(&argument, schema) {
                true => What::Read { to: FieldType::Varchar, strict: false }.call(vec![argument]),
                false => argument,
            };
            (Arc::clone(udaf), args.into_iter().map(as_text).collect(), true)
        }
        _ => (Arc::clone(udaf), args, false),
    }
}
