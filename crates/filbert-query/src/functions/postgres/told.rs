//! Types of PostgreSQL that Arrow has not, of expressions that stand for one of several values.
//!
//! Such a type is an entry of a field's metadata, which DataFusion keeps for columns and drops for `CASE`, `coalesce` and the like. Here
//! they get it by PostgreSQL's rules: a function around them, which does nothing, has a field with the metadata. One pass over a plan
//! does it, and only where the type is one of those; plain columns stay as they are.
//!
//! A text of fixed length is kept without the blanks at its end and gets them where it leaves the engine. Where such texts of different
//! lengths come together, each gets its own there already.

use std::sync::Arc;

use arrow_schema::{DataType, FieldRef};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, DataFusionError, Result};
use datafusion::functions::{string, unicode};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::logical_plan::{Projection, Union};
use datafusion::logical_expr::planner::RawBinaryExpr;
use datafusion::logical_expr::sort_properties::ExprProperties;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Distinct, Expr, ExprSchemable, LogicalPlan, Operator, ReturnFieldArgs,
    ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Unnest, Volatility, lit,
};
use datafusion::sql::sqlparser::ast::BinaryOperator;

use super::operators::{binary, call};
use crate::types::{BPCHAR, JSONB, Length, Mark, VARCHAR};

/// Functions whose arguments are of one type, which is that of the result.
const OF_ONE_TYPE: [&str; 5] = ["coalesce", "greatest", "least", "nvl", "ifnull"];
/// A function that makes an array of its arguments.
const ARRAY: &str = "make_array";
/// Functions that give an item of their first argument.
const ITEMS: [&str; 2] = ["array_item", "array_item_of_two"];
/// Functions that give an array like their first argument.
const ARRAYS: [&str; 5] = ["array_section", "array_append", "array_cat", "array_remove", "array_replace"];
/// Aggregates whose results have the blanks of the values that they are given.
const OF_VALUES: [&str; 6] = ["array_agg", "first_value", "last_value", "max", "min", "single_value"];
/// Functions of any type, which see the blanks at the end of a text of fixed length.
const OF_ANY: [&str; 6] = ["concat", "concat_ws", "format", "pg_typeof", "to_json", "to_jsonb"];
/// What blanks are put in order with.
const OF_BLANKS: [&str; 4] = ["told_as", "told_as_varchar", "rpad", "rtrim"];

/// The type of an expression, as far as Arrow has none for it; `None` if any type can be meant: of NULL, and of a text in quotes.
pub(crate) fn mark_of(expression: &Expr, schema: &DFSchema) -> Option<Mark> {
    match expression {
        Expr::Alias(alias) => mark_of(&alias.expr, schema),
        Expr::Literal(scalar, None) if scalar.is_null() || scalar.try_as_str().is_some() => None,
        Expr::Placeholder(placeholder) => {
            let mark = Mark::of(placeholder.field.as_ref()?);
            // A value that is given has what blanks it has.
            let length = if mark.oid == Some(BPCHAR) { Length::Own } else { Length::Unknown };
            Some(Mark { length, ..mark })
        }
        Expr::Cast(cast) => Some(Mark::of(&cast.field)),
        Expr::TryCast(cast) => Some(Mark::of(&cast.field)),
        Expr::ScalarFunction(call) if is_of_array(call) => {
            let array = call.args.first().and_then(|array| mark_of(array, schema)).unwrap_or_default();
            Some(if ITEMS.contains(&call.func.name()) { array.of_item() } else { array })
        }
        _ => match branches(expression) {
            Some(branches) => {
                let common = common(&branches, schema);
                match expression {
                    Expr::ScalarFunction(call) if call.func.name() == ARRAY => common.map(Mark::of_array),
                    Expr::Case(_) if is_nullif(expression) && common.is_some_and(|mark| mark.oid == Some(VARCHAR)) => {
                        Some(Mark::default())
                    }
                    _ => common,
                }
            }
            None => Some(expression.to_field(schema).map_or_else(|_| Mark::default(), |(_, field)| Mark::of(&field))),
        },
    }
}

/// Whether the field that DataFusion gives an expression tells another type than the expression is of.
pub(super) fn loses(expression: &Expr) -> bool {
    match expression {
        Expr::Alias(alias) => loses(&alias.expr),
        Expr::Cast(_) | Expr::TryCast(_) => true,
        Expr::ScalarFunction(call) if is_of_array(call) => true,
        other => branches(other).is_some(),
    }
}

fn is_of_array(call: &ScalarFunction) -> bool {
    ITEMS.contains(&call.func.name()) || ARRAYS.contains(&call.func.name())
}

/// The expressions of which one is the value of this one; `None` for what is of a type of its own.
fn branches(expression: &Expr) -> Option<Vec<&Expr>> {
    match expression {
        Expr::Case(case) => {
            // The other result tells the type first, as PostgreSQL has it.
            let results = case.when_then_expr.iter().map(|(_, then)| then.as_ref());
            Some(case.else_expr.as_deref().into_iter().chain(results).collect())
        }
        Expr::ScalarFunction(call) if OF_ONE_TYPE.contains(&call.func.name()) || call.func.name() == ARRAY => {
            Some(call.args.iter().collect())
        }
        _ => None,
    }
}

fn branches_mut(expression: &mut Expr) -> Vec<&mut Expr> {
    match expression {
        Expr::Case(case) => {
            let results = case.when_then_expr.iter_mut().map(|(_, then)| then.as_mut());
            results.chain(case.else_expr.as_deref_mut()).collect()
        }
        Expr::ScalarFunction(call) => call.args.iter_mut().collect(),
        _ => Vec::new(),
    }
}

/// Whether it is what `nullif(a, b)` is written as. Its operator takes a `varchar` as a `text`.
fn is_nullif(expression: &Expr) -> bool {
    let Expr::Case(case) = expression else { return false };
    let ([(when, then)], Some(otherwise)) = (case.when_then_expr.as_slice(), &case.else_expr) else { return false };
    matches!(then.as_ref(), Expr::Literal(scalar, _) if scalar.is_null())
        && matches!(when.as_ref(), Expr::BinaryExpr(compared) if compared.op == Operator::Eq && compared.left == *otherwise)
}

/// The type that PostgreSQL finds for expressions of which one is taken: texts are of the first one's type.
fn common(branches: &[&Expr], schema: &DFSchema) -> Option<Mark> {
    let marks = branches.iter().filter_map(|branch| mark_of(branch, schema));
    let mark = marks.reduce(both)?;
    let Length::Of(length) = mark.length else { return Some(mark) };
    let is_other = |branch: &&Expr| match branch {
        Expr::Literal(scalar, None) => scalar.try_as_str().flatten().is_some_and(|text| !is_of_length(text, length)),
        _ => false,
    };
    Some(if branches.iter().any(is_other) { Mark { length: Length::Own, ..mark } } else { mark })
}

fn is_of_length(text: &str, length: u32) -> bool {
    u32::try_from(text.chars().count()) == Ok(length)
}

fn both(first: Mark, second: Mark) -> Mark {
    let own = |mark: Mark| Mark { length: Length::Own, ..mark };
    match (first, second) {
        _ if first == second => first,
        _ if !first.is_of_text() || !second.is_of_text() => Mark::default(),
        _ if first.oid == Some(BPCHAR) => own(first),
        _ if first.oid == Some(VARCHAR) && second.oid != Some(19) => first,
        _ => Mark::default(),
    }
}

/// Whether it is a text in quotes.
fn is_text(expression: &Expr) -> bool {
    matches!(expression, Expr::Literal(scalar, _) if scalar.try_as_str().flatten().is_some())
}

/// A text of a type, any if it is `None`, as one of the type that is wanted; whether that is another expression.
fn as_one_of(text: Expr, mark: Option<Mark>, wanted: Mark) -> (Expr, bool) {
    let function = match mark {
        None if wanted.is_uuid() => Some("cast_uuid"),
        None if wanted.oid == Some(JSONB) => Some("cast_jsonb"),
        None if wanted.is_json() => Some("cast_json_document"),
        _ => None,
    };
    if let Some(converted) = function.and_then(|function| call(function, vec![text.clone()])) {
        return (converted, true);
    }
    match (mark, wanted.length) {
        (None, Length::Of(_)) => (rtrim(text), true),
        (Some(Mark { length: Length::Of(length), .. }), Length::Own) => (filled(text, length), true),
        (Some(Mark { length: Length::Own, .. }), Length::Unknown) => (rtrim(text), true),
        _ => (text, false),
    }
}

/// A text with the blanks that it is kept without.
fn filled(text: Expr, length: u32) -> Expr {
    unicode::rpad().call(vec![text, lit(i64::from(length))])
}

fn rtrim(text: Expr) -> Expr {
    string::rtrim().call(vec![text])
}

/// A text without blanks that do not count, as what it is.
fn trimmed(text: Expr) -> Expr {
    told_as(rtrim(text), Mark::of_oid(BPCHAR, Length::Unknown))
}

/// Rows without blanks that do not count.
fn without_blanks(plan: Arc<LogicalPlan>) -> Result<LogicalPlan> {
    let columns = plan.schema().columns().into_iter().zip(plan.schema().fields());
    let items = columns.map(|(column, field)| match Mark::of(field).length {
        Length::Own => {
            let (relation, name) = (column.relation.clone(), column.name.clone());
            trimmed(Expr::Column(column)).alias_qualified(relation, name)
        }
        _ => Expr::Column(column),
    });
    let items: Vec<Expr> = items.collect();
    Ok(LogicalPlan::Projection(Projection::try_new(items, plan)?))
}

/// Whether its values have blanks at their end that do not count.
fn has_blanks(expression: &Expr, schema: &DFSchema) -> bool {
    mark_of(expression, schema).is_some_and(|mark| mark.length == Length::Own)
}

/// Tells the types of a plan's expressions.
pub(crate) fn tell(plan: LogicalPlan) -> Result<LogicalPlan> {
    if !is_concerned(&plan)? {
        return Ok(plan);
    }
    let mut pass = Pass::default();
    let transformed = plan.transform_up_with_subqueries(|plan| pass.plan(plan))?;
    Ok(transformed.data)
}

/// Whether a plan has what a type can be lost by.
fn is_concerned(plan: &LogicalPlan) -> Result<bool> {
    let (mut is_concerned, mut is_recursive) = (false, false);
    plan.apply_with_subqueries(|plan| {
        // Its rows come back as they are, so that their types cannot be told anew.
        is_recursive |= matches!(plan, LogicalPlan::RecursiveQuery(_));
        is_concerned |= matches!(plan, LogicalPlan::Union(_) | LogicalPlan::Unnest(_));
        plan.apply_expressions(|expression| {
            is_concerned |= expression.exists(|inner| {
                Ok(match inner {
                    Expr::AggregateFunction(call) => call.func.name() == "array_agg",
                    Expr::ScalarFunction(call) if is_of_array(call) || OF_ANY.contains(&call.func.name()) => true,
                    Expr::ScalarFunction(call) if call.args.iter().any(is_subquery) => true,
                    other => branches(other).is_some(),
                })
            })?;
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok(is_concerned && !is_recursive)
}

#[derive(Default)]
struct Pass {
    /// Whether a field has another type now than it was planned with.
    is_changed: bool,
    /// Whether there may be texts with blanks that do not count.
    has_blanks: bool,
}

impl Pass {
    fn plan(&mut self, plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        let plan = match plan {
            LogicalPlan::Union(union) => self.union(union)?,
            LogicalPlan::Distinct(Distinct::All(input)) if self.has_blanks => {
                LogicalPlan::Distinct(Distinct::All(Arc::new(without_blanks(input)?)))
            }
            plan if self.is_changed => plan.recompute_schema()?,
            plan => plan,
        };
        if let LogicalPlan::Unnest(unnest) = plan {
            return self.items(unnest);
        }
        let mut schema = merge_schema(&plan.inputs());
        if let LogicalPlan::TableScan(scan) = &plan {
            schema.merge(&DFSchema::try_from_qualified_schema(scan.table_name.clone(), &scan.source.schema())?);
        }
        let names = NamePreserver::new(&plan);
        // Texts that differ in blanks that do not count are one.
        let is_compared = matches!(plan, LogicalPlan::Sort(_));
        let groups = if let LogicalPlan::Aggregate(aggregate) = &plan { aggregate.group_expr.len() } else { 0 };
        let mut number = 0;
        let transformed = plan.map_expressions(|expression| {
            let name = names.save(&expression);
            let told = expression.transform_up(|expression| self.expression(expression, &schema))?;
            number += 1;
            let is_compared = is_compared || number <= groups;
            let told = match is_compared && self.has_blanks && has_blanks(&told.data, &schema) {
                true => Transformed::yes(trimmed(told.data)),
                false => told,
            };
            Ok(told.update_data(|expression| name.restore(expression)))
        })?;
        let is_changed = transformed.transformed;
        self.is_changed |= is_changed;
        let plan = if is_changed { transformed.data.recompute_schema()? } else { transformed.data };
        Ok(Transformed::yes(plan))
    }

    fn expression(&mut self, expression: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
        let is_cast = matches!(expression, Expr::Cast(_) | Expr::TryCast(_) | Expr::ScalarFunction(_));
        let expression = match self.has_blanks && sees_no_blanks(&expression) {
            true => expression.map_children(|operand| {
                Ok(match has_blanks(&operand, schema) {
                    true if is_cast => Transformed::yes(rtrim(operand)),
                    true => Transformed::yes(trimmed(operand)),
                    false => Transformed::no(operand),
                })
            })?,
            false => Transformed::no(expression),
        };
        let is_changed = expression.transformed;
        let told = match expression.data {
            Expr::AggregateFunction(mut function) if function.func.name() == "array_agg" => {
                let mut has_changed = false;
                for item in &mut function.params.args {
                    has_changed |= self.fill(item, schema);
                }
                Transformed::new_transformed(Expr::AggregateFunction(function), has_changed)
            }
            // A subquery that runs on its own has no type when the call is computed.
            Expr::ScalarFunction(mut call) if call.args.iter().any(is_subquery) && !loses_type(&call) => {
                for argument in call.args.iter_mut().filter(|argument| is_subquery(argument)) {
                    let mark = mark_of(argument, schema).unwrap_or_default();
                    if mark != Mark::default() {
                        *argument = told_as(std::mem::take(argument), mark);
                    }
                }
                Transformed::yes(Expr::ScalarFunction(call))
            }
            Expr::ScalarFunction(mut call) if OF_ANY.contains(&call.func.name()) => {
                let mut has_changed = false;
                for argument in call.args.iter_mut().filter(|_| call.func.name() != "pg_typeof") {
                    has_changed |= self.fill(argument, schema);
                }
                Transformed::new_transformed(Expr::ScalarFunction(call), has_changed)
            }
            Expr::BinaryExpr(compared) if self.is_changed => operator(compared, schema),
            Expr::ScalarFunction(call) if is_of_array(&call) => {
                let call = Expr::ScalarFunction(call);
                let mark = mark_of(&call, schema).unwrap_or_default();
                self.has_blanks |= mark.length == Length::Own;
                match mark == Mark::default() {
                    true => Transformed::no(call),
                    false => Transformed::yes(told_as(call, mark)),
                }
            }
            other if branches(&other).is_some() => self.choice(other, schema),
            other => Transformed::no(other),
        };
        Ok(Transformed::new_transformed(told.data, told.transformed || is_changed))
    }

    /// An expression that stands for one of several.
    fn choice(&mut self, mut choice: Expr, schema: &DFSchema) -> Transformed<Expr> {
        let common = branches(&choice).and_then(|branches| common(&branches, schema));
        let Some(mut wanted) = common else { return Transformed::no(choice) };
        let is_array = matches!(&choice, Expr::ScalarFunction(call) if call.func.name() == ARRAY);
        // Items of an array have their blanks.
        if is_array && wanted.oid == Some(BPCHAR) {
            wanted.length = Length::Own;
        }
        self.has_blanks |= wanted.length == Length::Own;
        let told = match is_array {
            true => wanted.of_array(),
            false => mark_of(&choice, schema).unwrap_or_default(),
        };
        let mut is_changed = false;
        for branch in branches_mut(&mut choice) {
            let mark = mark_of(branch, schema);
            if mark.is_some() || is_text(branch) {
                let (converted, has_changed) = as_one_of(std::mem::take(branch), mark, wanted);
                *branch = converted;
                is_changed |= has_changed;
            }
        }
        match told == Mark::default() {
            true => Transformed::new_transformed(choice, is_changed),
            false => Transformed::yes(told_as(choice, told)),
        }
    }

    /// An item of an array with the blanks at its end.
    fn fill(&mut self, item: &mut Expr, schema: &DFSchema) -> bool {
        let Some(mark @ Mark { length: Length::Of(length), .. }) = mark_of(item, schema) else { return false };
        *item = told_as(filled(std::mem::take(item), length), Mark { length: Length::Own, ..mark });
        self.has_blanks = true;
        true
    }

    /// Rows of the items of arrays.
    fn items(&mut self, unnest: Unnest) -> Result<Transformed<LogicalPlan>> {
        let of = unnest.input.schema().fields();
        let marks = unnest.schema.fields().iter().enumerate().map(|(at, item)| {
            let array = unnest.dependency_indices.get(at).and_then(|at| of.get(*at));
            let array = array.filter(|array| matches!(array.data_type(), DataType::List(_)));
            let is_item = !matches!(item.data_type(), DataType::List(_));
            array.filter(|_| is_item).map_or(Mark::default(), |array| Mark::of(array).of_item())
        });
        let marks: Vec<Mark> = marks.collect();
        if marks.iter().all(|mark| *mark == Mark::default()) {
            return Ok(Transformed::no(LogicalPlan::Unnest(unnest)));
        }
        self.is_changed = true;
        self.has_blanks |= marks.iter().any(|mark| mark.length == Length::Own);
        let items = unnest.schema.columns().into_iter().zip(marks).map(|(column, mark)| {
            if mark == Mark::default() {
                return Expr::Column(column);
            }
            let (relation, name) = (column.relation.clone(), column.name.clone());
            told_as(Expr::Column(column), mark).alias_qualified(relation, name)
        });
        let items: Vec<Expr> = items.collect();
        let input = Arc::new(LogicalPlan::Unnest(unnest));
        Ok(Transformed::yes(LogicalPlan::Projection(Projection::try_new(items, input)?)))
    }

    /// Rows of several queries: columns of the types that they have together.
    fn union(&mut self, union: Union) -> Result<LogicalPlan> {
        let known: Vec<Vec<Option<Mark>>> = union.inputs.iter().map(|input| marks_of(input)).collect();
        let of_column = |at: usize| {
            let mut marks = known.iter().map(|marks| marks.get(at).copied().flatten());
            let is_open = marks.clone().any(|mark| mark.is_none());
            let wanted = marks.by_ref().flatten().reduce(both).unwrap_or_default();
            match wanted.length {
                Length::Of(_) if is_open => Mark { length: Length::Own, ..wanted },
                _ => wanted,
            }
        };
        let wanted: Vec<Mark> = (0..union.schema.fields().len()).map(of_column).collect();
        let is_one = |input: &LogicalPlan| {
            input.schema().fields().iter().zip(&wanted).all(|(field, wanted)| Mark::of(field) == *wanted)
        };
        self.has_blanks |= wanted.iter().any(|wanted| wanted.length == Length::Own);
        // Its own columns do not follow those of its queries by themselves.
        if !self.is_changed && union.inputs.iter().all(|input| is_one(input)) {
            return Ok(LogicalPlan::Union(union));
        }
        self.is_changed = true;
        let mut inputs = Vec::with_capacity(union.inputs.len());
        for (input, known) in union.inputs.iter().zip(&known) {
            if is_one(input) {
                inputs.push(Arc::clone(input));
                continue;
            }
            let columns =
                input.schema().columns().into_iter().zip(input.schema().fields()).zip(known.iter().zip(&wanted));
            let items = columns.map(|((column, field), (known, wanted))| {
                if Mark::of(field) == *wanted {
                    return Expr::Column(column);
                }
                let (relation, name) = (column.relation.clone(), column.name.clone());
                let column = Expr::Column(column);
                let column = match field.data_type().is_null() {
                    true => column,
                    false => as_one_of(column, *known, *wanted).0,
                };
                told_as(column, *wanted).alias_qualified(relation, name)
            });
            let items: Vec<Expr> = items.collect();
            inputs.push(Arc::new(LogicalPlan::Projection(Projection::try_new(items, Arc::clone(input))?)));
        }
        Ok(LogicalPlan::Union(Union::try_new_with_loose_types(inputs)?))
    }
}

/// The types of a plan's columns; `None` where any can be meant.
fn marks_of(plan: &LogicalPlan) -> Vec<Option<Mark>> {
    match plan {
        LogicalPlan::Projection(projection) => {
            let schema = projection.input.schema();
            projection.expr.iter().map(|item| mark_of(item, schema)).collect()
        }
        _ => plan.schema().fields().iter().map(|field| Some(Mark::of(field))).collect(),
    }
}

/// Whether a call is told to be of a type for its arguments.
fn loses_type(call: &ScalarFunction) -> bool {
    OF_ONE_TYPE.contains(&call.func.name()) || call.func.name() == ARRAY || is_of_array(call)
}

fn is_subquery(expression: &Expr) -> bool {
    matches!(expression, Expr::ScalarSubquery(_))
}

/// Whether blanks that do not count must not be seen by what is computed of its operands.
fn sees_no_blanks(expression: &Expr) -> bool {
    match expression {
        Expr::ScalarFunction(call) => {
            let name = call.func.name();
            !OF_BLANKS.contains(&name) && !OF_ANY.contains(&name) && branches(expression).is_none()
        }
        Expr::AggregateFunction(call) => !OF_VALUES.contains(&call.func.name()),
        Expr::BinaryExpr(_) | Expr::InList(_) | Expr::Between(_) => true,
        Expr::Cast(_) | Expr::TryCast(_) => true,
        _ => false,
    }
}

/// An operator of which operands may have got other types than it was planned with.
fn operator(compared: BinaryExpr, schema: &DFSchema) -> Transformed<Expr> {
    let op = match compared.op {
        Operator::Eq => BinaryOperator::Eq,
        Operator::NotEq => BinaryOperator::NotEq,
        Operator::Lt => BinaryOperator::Lt,
        Operator::LtEq => BinaryOperator::LtEq,
        Operator::Gt => BinaryOperator::Gt,
        Operator::GtEq => BinaryOperator::GtEq,
        Operator::StringConcat => BinaryOperator::StringConcat,
        _ => return Transformed::no(Expr::BinaryExpr(compared)),
    };
    let raw = RawBinaryExpr { op, left: compared.left.as_ref().clone(), right: compared.right.as_ref().clone() };
    match binary(&raw, schema) {
        Some(planned) => Transformed::yes(planned),
        None => Transformed::no(Expr::BinaryExpr(compared)),
    }
}

/// An expression that is told to be of a type.
pub(crate) fn told_as(expression: Expr, mark: Mark) -> Expr {
    let func = Arc::new(ScalarUDF::new_from_impl(ToldAs::new("told_as", mark)));
    Expr::ScalarFunction(ScalarFunction { func, args: vec![expression] })
}

/// What statements are rewritten to.
pub(super) fn functions() -> [ScalarUDF; 1] {
    [ScalarUDF::new_from_impl(ToldAs::new("told_as_varchar", Mark::of_oid(VARCHAR, Length::Unknown)))]
}

/// Its argument, as one of a type.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ToldAs {
    name: &'static str,
    mark: Mark,
    signature: Signature,
}

impl ToldAs {
    fn new(name: &'static str, mark: Mark) -> ToldAs {
        ToldAs { name, mark, signature: Signature::any(1, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for ToldAs {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types.first().cloned().unwrap_or(DataType::Null))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let Some(field) = args.arg_fields.first() else {
            return Err(DataFusionError::Internal("a value is missing".to_owned()));
        };
        let metadata = self.mark.metadata(field.metadata().clone());
        Ok(Arc::new(field.as_ref().clone().with_metadata(metadata)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let value = args.args.into_iter().next();
        value.ok_or_else(|| DataFusionError::Internal("a value is missing".to_owned()))
    }

    fn preserves_lex_ordering(&self, _: &[ExprProperties]) -> Result<bool> {
        Ok(true)
    }
}
