//! Casts of arrays. Each element is cast as a single value of its type is.
//!
//! Arrow casts elements by its own rules: it shows a timestamp otherwise, knows no session time
//! zone, and truncates numbers. Therefore a function replaces each cast of an array. The function
//! has the cast of one element:
//!
//! ```text
//!  a::varchar(3)[] ── dialect ───────► cast_items(a, cast_varchar(NULL, 3))
//!  a::text[] ─────── planning ─┐            │ planning: the second argument becomes the template
//!                              ▼            ▼
//!                        ItemCast { template }(a)
//!                              │ last rule of the analyzer: the type of the elements is known. The
//!                              │ template of a column of that type passes all rules
//!                              ▼
//!                        ItemCast { template, cast }(a)
//! ```

use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, ListArray, RecordBatch};
use arrow_schema::{DataType, Field, FieldRef, Schema};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::compute::concat;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, DFSchemaRef, DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::execution_props::ExecutionProps;
use datafusion::logical_expr::expr::{Cast, ScalarFunction};
use datafusion::logical_expr::logical_plan::{EmptyRelation, Projection};
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, LogicalPlan, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility, col,
};
use datafusion::optimizer::AnalyzerRule;
use datafusion::physical_expr::create_physical_expr;
use filbert_dialect::calls::CAST_ITEMS;

use super::marked::field_of_items;
use super::operators::call;
use crate::elements::ARRAY_LIKE_UDF;
use crate::named::{map_named, schema_within};
use crate::row::is_text;
use crate::types::{BPCHAR, Mark, innermost, with_innermost};

/// The name of the rule.
pub(crate) const RULE: &str = "casts_of_items";
/// The column of the elements in the cast of one element.
const ITEM: &str = "item";

/// The analyzer rules of a session, as far as they have been set.
pub(crate) type Rules = Arc<OnceLock<Vec<Arc<dyn AnalyzerRule + Send + Sync>>>>;

/// The cast of an array, for its element type that is not known yet.
///
/// `None` if Arrow's cast is right, or if the expression is no cast of an array.
pub(crate) fn planned(expression: &Expr, schema: &DFSchema) -> Option<Expr> {
    match expression {
        Expr::ScalarFunction(call) if call.func.name() == CAST_ITEMS => match call.args.as_slice() {
            [array, template] => Some(of_template(array.clone(), template.clone(), schema)),
            _ => None,
        },
        Expr::Cast(cast) => of_cast(cast, true, schema),
        _ => None,
    }
}

pub(super) fn of_template(array: Expr, template: Expr, schema: &DFSchema) -> Expr {
    let is_quoted = array.get_type(schema).is_ok_and(|found| is_text(&found));
    let array = match is_quoted {
        // The elements of a text are texts.
        true => {
            let args = vec![array, Expr::Literal(ScalarValue::Utf8View(None), None)];
            Expr::ScalarFunction(ScalarFunction::new_udf(ARRAY_LIKE_UDF.clone(), args))
        }
        false => array,
    };
    let field = template.to_field(&DFSchema::empty()).map_or_else(
        |_| Field::new(ITEM, DataType::Utf8View, true),
        |(_, field)| field.as_ref().clone().with_name(ITEM).with_nullable(true),
    );
    ItemCast::new(template, Arc::new(field)).call(array)
}

/// `is_written` = the statement has the cast; types that functions accept cause others.
fn of_cast(cast: &Cast, is_written: bool, schema: &DFSchema) -> Option<Expr> {
    let DataType::List(_) = cast.field.data_type() else { return None };
    let DataType::List(_) = cast.expr.get_type(schema).ok()? else { return None };
    let item = field_of_items(&cast.expr, schema)?;
    let (from, to) = (item.data_type(), innermost(cast.field.data_type()));
    let mark = Mark::of(&cast.field).of_item();
    let drops_blanks = is_written && Mark::of(&item).oid == Some(BPCHAR) && mark.oid != Some(BPCHAR);
    let are_texts = from.is_string() && to.is_string();
    let is_right = from == to || are_texts || from.is_null() || (from.is_integer() && to.is_numeric());
    if is_right && !drops_blanks {
        return None;
    }
    let field = Field::new(ITEM, to.clone(), true).with_metadata(mark.metadata(Default::default()));
    Some(ItemCast::to(Arc::new(field)).call(cast.expr.as_ref().clone()))
}

/// An array with elements that are cast to text.
pub(crate) fn as_texts(array: Expr) -> Expr {
    ItemCast::to(Arc::new(Field::new(ITEM, DataType::Utf8View, true))).call(array)
}

/// `cast_items` as a statement has it. Planning replaces it.
pub(super) fn udf() -> ScalarUDF {
    ScalarUDF::new_from_impl(Written { signature: Signature::any(2, Volatility::Immutable) })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Written {
    signature: Signature,
}

impl ScalarUDFImpl for Written {
    fn name(&self) -> &str {
        CAST_ITEMS
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(DataType::new_list(types.get(1).cloned().unwrap_or(DataType::Null), true))
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Err(DataFusionError::Internal("the cast of an array was not planned".to_owned()))
    }
}

/// The rule that determines the casts of elements. Runs after all rules that change types.
#[derive(Debug)]
pub(crate) struct ItemCasts {
    /// The rules that the cast of one element passes.
    pub(crate) rules: Rules,
}

impl AnalyzerRule for ItemCasts {
    fn name(&self) -> &str {
        RULE
    }

    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
        if !casts_arrays(&plan)? {
            return Ok(plan);
        }
        let transformed = plan.transform_up_with_subqueries(|plan| {
            let schema = schema_within(&plan)?;
            let transformed = map_named(plan, |expression| {
                expression.transform_up(|expression| self.determined(expression, &schema, config))
            })?;
            match transformed.transformed {
                true => transformed.map_data(LogicalPlan::recompute_schema),
                false => Ok(transformed),
            }
        })?;
        Ok(transformed.data)
    }
}

/// Whether a plan casts arrays. Most plans do not, and the schemas of their nodes are not merged.
fn casts_arrays(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expression| {
            found |= expression.exists(|inner| {
                Ok(match inner {
                    Expr::Cast(cast) => matches!(cast.field.data_type(), DataType::List(_)),
                    Expr::ScalarFunction(call) => call.func.name() == CAST_ITEMS,
                    _ => false,
                })
            })?;
            Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })
    })?;
    Ok(found)
}

impl ItemCasts {
    fn determined(&self, expression: Expr, schema: &DFSchema, config: &ConfigOptions) -> Result<Transformed<Expr>> {
        let expression = match &expression {
            Expr::Cast(cast) => of_cast(cast, false, schema).unwrap_or(expression),
            _ => expression,
        };
        let Expr::ScalarFunction(function) = &expression else { return Ok(Transformed::no(expression)) };
        let open = function.func.inner().downcast_ref::<ItemCast>().filter(|found| found.cast.is_none());
        let (Some(open), [array]) = (open, function.args.as_slice()) else { return Ok(Transformed::no(expression)) };
        let Some(item) = field_of_items(array, schema) else { return Ok(Transformed::no(expression)) };
        let item = item.with_name(ITEM);
        let cast = self.cast_of(&open.template, &open.target, item, config)?;
        let resolved = ItemCast { cast: Some(cast), ..open.clone() };
        Ok(Transformed::yes(resolved.call(array.clone())))
    }

    /// The cast of one element, after all rules.
    fn cast_of(&self, template: &Expr, target: &FieldRef, item: Field, config: &ConfigOptions) -> Result<ItemExpr> {
        // Elements of fixed-length text have their blanks in arrays, and a cast drops them.
        let value = match Mark::of(&item).oid {
            Some(BPCHAR) => call("cast_char", vec![col(ITEM)]).unwrap_or_else(|| col(ITEM)),
            _ => col(ITEM),
        };
        let mut is_placed = false;
        let over_item = template.clone().transform_up(|inner| {
            let is_place = !is_placed && matches!(&inner, Expr::Literal(value, _) if value.is_null());
            is_placed |= is_place;
            Ok(if is_place { Transformed::yes(value.clone()) } else { Transformed::no(inner) })
        })?;
        let schema = Arc::new(DFSchema::try_from(Schema::new(vec![item]))?);
        let input = LogicalPlan::EmptyRelation(EmptyRelation { produce_one_row: false, schema: Arc::clone(&schema) });
        let mut plan = LogicalPlan::Projection(Projection::try_new(vec![over_item.data], Arc::new(input))?);
        for rule in self.rules.get().into_iter().flatten() {
            plan = rule.analyze(plan, config)?;
        }
        let LogicalPlan::Projection(Projection { mut expr, .. }) = plan else {
            return Err(DataFusionError::Internal("the cast of an element is no projection any more".to_owned()));
        };
        let found = expr.pop().ok_or_else(|| DataFusionError::Internal("the cast of an element is lost".to_owned()))?;
        let expr = found.unalias_nested().data.cast_to(target.data_type(), &schema)?;
        Ok(ItemExpr { expr, schema })
    }
}

/// The cast of one element: an expression over the column [`ITEM`].
#[derive(Clone, Debug, PartialEq, Eq)]
struct ItemExpr {
    expr: Expr,
    schema: DFSchemaRef,
}

impl Hash for ItemExpr {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.expr.hash(state);
    }
}

/// The function: casts the elements of its argument, an array of any number of dimensions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ItemCast {
    signature: Signature,
    /// The cast of an element, with NULL for the element.
    template: Expr,
    /// The elements of the result.
    target: FieldRef,
    /// Set by [`ItemCasts`].
    cast: Option<ItemExpr>,
}

impl ItemCast {
    fn new(template: Expr, target: FieldRef) -> Self {
        ItemCast { signature: Signature::any(1, Volatility::Immutable), template, target, cast: None }
    }

    /// A cast to a type that Arrow has.
    fn to(item: FieldRef) -> Self {
        let null = Expr::Literal(ScalarValue::Null, None);
        ItemCast::new(Expr::Cast(Cast::new_from_field(Box::new(null), item.clone())), item)
    }

    fn call(self, array: Expr) -> Expr {
        let is_immutable = self.cast.as_ref().is_none_or(|cast| is_immutable(&cast.expr));
        let volatility = if is_immutable { Volatility::Immutable } else { Volatility::Stable };
        let function = ItemCast { signature: Signature::any(1, volatility), ..self };
        Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(ScalarUDF::new_from_impl(function)), vec![array]))
    }

    /// The length of fixed-length texts in the result. They have their blanks in arrays.
    fn padded(&self) -> Option<usize> {
        let Expr::ScalarFunction(call) = &self.template else { return None };
        match (call.func.name(), call.args.get(1)) {
            ("cast_char", Some(Expr::Literal(length, _))) => {
                let ScalarValue::Int64(Some(length)) = length.cast_to(&DataType::Int64).ok()? else { return None };
                usize::try_from(length).ok()
            }
            _ => None,
        }
    }
}

fn is_immutable(expr: &Expr) -> bool {
    let is_other = |inner: &Expr| matches!(inner, Expr::ScalarFunction(call) if call.func.signature().volatility != Volatility::Immutable);
    !expr.exists(|inner| Ok(is_other(inner))).unwrap_or(true)
}

impl ScalarUDFImpl for ItemCast {
    fn name(&self) -> &str {
        CAST_ITEMS
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    // Columns have the names of their expressions.
    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let args: Vec<String> = args.iter().map(|array| array.schema_name().to_string()).collect();
        Ok(format!("{CAST_ITEMS}({}, {})", args.join(", "), self.template.schema_name()))
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types.first().map_or(DataType::Null, |array| with_items(array, &self.target)))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let array = args.arg_fields.first().map_or(&DataType::Null, |field| field.data_type());
        let mark = Mark::of(&self.target).of_array();
        let field = Field::new(CAST_ITEMS, with_items(array, &self.target), true);
        Ok(Arc::new(field.with_metadata(mark.metadata(Default::default()))))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let (Some(cast), [array]) = (&self.cast, args.args.as_slice()) else {
            return Err(DataFusionError::Internal("the elements of a cast array have no type".to_owned()));
        };
        let is_constant = matches!(array, ColumnarValue::Scalar(_));
        let arrays = array.to_array(if is_constant { 1 } else { args.number_rows })?;
        let mut props = ExecutionProps::new();
        props.mark_start_execution(Arc::clone(&args.config_options));
        let physical = create_physical_expr(&cast.expr, &cast.schema, &props, &PhysicalPlanningContext::default())?;
        let compute = |items: ArrayRef| {
            let rows = items.len();
            let batch = RecordBatch::try_new(Arc::clone(cast.schema.inner()), vec![items])?;
            let items = physical.evaluate(&batch)?.into_array(rows)?;
            Ok(match self.padded() {
                Some(length) => padded(&items, length),
                None => items,
            })
        };
        let cast = cast_lists(&arrays, &compute)?;
        Ok(match is_constant {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&cast, 0)?),
            false => ColumnarValue::Array(cast),
        })
    }
}

/// The type of an array with other elements, in as many dimensions.
fn with_items(array: &DataType, item: &FieldRef) -> DataType {
    match array {
        DataType::List(_) => with_innermost(array, item.data_type()),
        _ => DataType::new_list(item.data_type().clone(), true),
    }
}

fn cast_lists(arrays: &ArrayRef, compute: &dyn Fn(ArrayRef) -> Result<ArrayRef>) -> Result<ArrayRef> {
    let Some(lists) = arrays.as_list_opt::<i32>() else { return compute(Arc::clone(arrays)) };
    let (offsets, items) = compacted(lists)?;
    let items = match items.data_type() {
        DataType::List(_) => cast_lists(&items, compute)?,
        _ => compute(items)?,
    };
    let field = Arc::new(Field::new_list_field(items.data_type().clone(), true));
    Ok(Arc::new(ListArray::try_new(field, offsets, items, lists.nulls().cloned())?))
}

/// The elements of arrays. Null arrays have none: values that no row has may not be castable.
fn compacted(lists: &ListArray) -> Result<(OffsetBuffer<i32>, ArrayRef)> {
    let offsets = lists.value_offsets();
    let (first, last) = (offsets.first().copied().unwrap_or(0), offsets.last().copied().unwrap_or(0));
    let has_hidden = lists.nulls().is_some_and(|nulls: &NullBuffer| {
        nulls.iter().zip(offsets.windows(2)).any(|(is_valid, ends)| !is_valid && ends.first() != ends.last())
    });
    if !has_hidden {
        let length = usize::try_from(last - first).unwrap_or(0);
        let items = lists.values().slice(usize::try_from(first).unwrap_or(0), length);
        return Ok((OffsetBuffer::from_lengths(lists.offsets().lengths()), items));
    }
    let of_rows = |row: usize| if lists.is_null(row) { None } else { Some(lists.value(row)) };
    let values: Vec<Option<ArrayRef>> = (0..lists.len()).map(of_rows).collect();
    let lengths = OffsetBuffer::from_lengths(values.iter().map(|items| items.as_ref().map_or(0, Array::len)));
    let parts: Vec<&dyn Array> = values.iter().flatten().map(AsRef::as_ref).collect();
    let items = match parts.is_empty() {
        true => lists.values().slice(0, 0),
        false => concat(&parts)?,
    };
    Ok((lengths, items))
}

fn padded(texts: &ArrayRef, length: usize) -> ArrayRef {
    let Some(texts) = texts.as_string_view_opt() else { return Arc::clone(texts) };
    let padded = texts.iter().map(|text| text.map(|text| format!("{text:<length$}")));
    Arc::new(padded.collect::<arrow_array::StringViewArray>())
}
