//! `CASE` during planning: a function call, so the operators around it see the common type of its
//! results.
//!
//! DataFusion takes the type of a `CASE` from its first result until type coercion, which is after
//! its planner has chosen operators by operand types. `CASE WHEN c THEN 1 ELSE n END - n` with a
//! `numeric` would be a difference of whole numbers. Statements are rewritten to the function
//! before planning. [`settled`] turns it back into a `CASE` with results of one type.

use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef};
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{DFSchema, DataFusionError, Result, ScalarValue};
use datafusion::functions::core::{coalesce, greatest, least, nullif};
use datafusion::logical_expr::expr::{Case, ScalarFunction};
use datafusion::logical_expr::type_coercion::binary::comparison_coercion;
use datafusion::logical_expr::type_coercion::other::get_coerce_type_for_case_expression;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, Operator, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility, cast,
};
use filbert_grid::query::Dialect;

use super::around::{Around, around, coerced};
use super::numbers::{self, written};
use super::postgres::{dates, operands, operators};
use super::row::{is_text, types_of, wrong_arguments};
use crate::types::is_untyped;

/// `CASE WHEN condition THEN result .. ELSE result END`: alternating conditions and results,
/// followed by the result of `ELSE`.
pub const OF_CONDITIONS: &str = "case_of_conditions";
/// `CASE value WHEN other THEN result .. ELSE result END`: the value, alternating comparands and
/// results, followed by the result of `ELSE`.
pub const OF_VALUE: &str = "case_of_value";

/// The functions.
pub(super) fn functions() -> [ScalarUDF; 2] {
    [OF_CONDITIONS, OF_VALUE].map(|name| {
        ScalarUDF::new_from_impl(Choice { name, signature: Signature::variadic_any(Volatility::Immutable) })
    })
}

/// `COALESCE`, `GREATEST`, `LEAST` and `NULLIF` in the dialects of Hazelcast and CrateDB: numbers,
/// dates and timestamps have the common type that they have as results of `CASE`.
pub(super) fn of_arguments() -> [ScalarUDF; 4] {
    let [coalesce, greatest, least] = [coalesce(), greatest(), least()].map(|inner| around(inner, Common));
    [coalesce, greatest, least, coerced(nullif(), NullIf)]
}

/// The common type of numbers, dates and timestamps; a text beside a date or a timestamp is one.
fn common_of(types: &[DataType]) -> Option<DataType> {
    let known: Vec<&DataType> = types.iter().filter(|found| !found.is_null()).collect();
    numbers::common_type(&known).or_else(|| dates::common_type(&known)).or_else(|| {
        let (texts, others): (Vec<&DataType>, Vec<&DataType>) = known.into_iter().partition(|found| found.is_string());
        let first = others.first().filter(|first| !texts.is_empty() && first.is_temporal())?;
        let are_equal = others.iter().all(|other| other == first);
        dates::common_type(&others).or_else(|| are_equal.then(|| (*first).clone()))
    })
}

#[derive(Debug)]
struct Common;

impl Around for Common {
    fn coerce_types(&self, inner: &ScalarUDF, types: &[DataType]) -> Result<Vec<DataType>> {
        match common_of(types) {
            Some(common) => Ok(vec![common; types.len()]),
            None => inner.coerce_types(types),
        }
    }
}

#[derive(Debug)]
struct NullIf;

impl Around for NullIf {
    fn coerce_types(&self, inner: &ScalarUDF, types: &[DataType]) -> Result<Vec<DataType>> {
        let [value, other] = types else { return Err(wrong_arguments(inner.name(), types)) };
        let common = common_of(types).or_else(|| comparison_coercion(value, other));
        let common = common.ok_or_else(|| wrong_arguments(inner.name(), types))?;
        Ok(vec![common; 2])
    }
}

/// The `CASE` that a call stands for.
pub fn case_of(call: &ScalarFunction) -> Option<Case> {
    let has_value = match call.func.name() {
        OF_CONDITIONS => false,
        OF_VALUE => true,
        _ => return None,
    };
    let mut args = call.args.iter().cloned().map(Box::new);
    let expr = if has_value { args.next() } else { None };
    let (mut when_then_expr, mut else_expr) = (Vec::new(), None);
    while let Some(first) = args.next() {
        match args.next() {
            Some(then) => when_then_expr.push((first, then)),
            None => else_expr = Some(first),
        }
    }
    Some(Case { expr, when_then_expr, else_expr })
}

/// The `CASE` that a call stands for. Numbers, dates and timestamps among its results get their
/// common type. In PostgreSQL's dialect string literals get it as well.
///
/// # Errors
/// In PostgreSQL's dialect: the value and another one cannot be compared, or the results have no
/// common type.
pub fn settled(mut case: Case, schema: &DFSchema, dialect: Dialect) -> Result<Expr> {
    if dialect == Dialect::Postgres {
        operands::check(&Expr::Case(case.clone()), schema)?;
    }
    let mut fields = fields_of(&case, schema)?;
    let mut wanted = common(fields.iter().map(|(field, is_quoted)| (field, *is_quoted)));
    // A string literal keeps its digits, and the others get them, too.
    let mut is_exact = false;
    for result in results_mut(&mut case) {
        if let Some(literal) = written::exact(result, &wanted) {
            *result = literal;
            is_exact = true;
        }
    }
    if is_exact {
        fields = fields_of(&case, schema)?;
        wanted = common(fields.iter().map(|(field, is_quoted)| (field, *is_quoted)));
    }
    if dates::common_type(&[&wanted]).is_some() {
        dates::unify(results_mut(&mut case), schema);
    } else if wanted.is_numeric() {
        for (result, (field, _)) in results_mut(&mut case).into_iter().zip(&fields) {
            if field.data_type().is_numeric() && *field.data_type() != wanted && !is_untyped(field) {
                *result = cast(result.clone(), wanted.clone());
            }
        }
    }
    if dialect != Dialect::Hazelcast {
        compare(&mut case, schema);
    }
    if dialect == Dialect::Postgres {
        for result in results_mut(&mut case).into_iter().filter(|result| is_quoted(result)) {
            read(result, &wanted);
        }
    }
    Ok(Expr::Case(case))
}

/// The fields of the results, and whether each is a string literal.
fn fields_of(case: &Case, schema: &DFSchema) -> Result<Vec<(FieldRef, bool)>> {
    results(case).map(|result| Ok((result.to_field(schema)?.1, is_quoted(result)))).collect()
}

/// Gives the comparisons of `CASE value WHEN other` the meaning of the operator `=`, where Arrow
/// compares otherwise: for documents, arrays, UUIDs and bytes.
fn compare(case: &mut Case, schema: &DFSchema) {
    let Some(value) = &case.expr else { return };
    let equal = |other: &Expr| operators::compared(Operator::Eq, (**value).clone(), other.clone(), schema);
    let planned: Vec<Option<Expr>> = case.when_then_expr.iter().map(|(other, _)| equal(other)).collect();
    if planned.iter().all(Option::is_none) {
        return;
    }
    let sides = planned.into_iter().zip(&case.when_then_expr).map(|(equal, (other, _))| match equal {
        Some(Expr::BinaryExpr(equal)) => (equal.left, equal.right),
        _ => (value.clone(), other.clone()),
    });
    let sides: Vec<(Box<Expr>, Box<Expr>)> = sides.collect();
    let whens = case.when_then_expr.iter_mut().map(|(when, _)| when);
    match sides.first().map(|(left, _)| left.clone()) {
        // The value is computed once.
        Some(first) if sides.iter().all(|(left, _)| *left == first) => {
            case.expr = Some(first);
            whens.zip(sides).for_each(|(when, (_, right))| *when = right);
        }
        _ if value.is_volatile() || value.exists(|inner| Ok(is_subquery(inner))).unwrap_or(true) => {}
        _ => {
            case.expr = None;
            whens.zip(sides).for_each(|(when, (left, right))| **when = Expr::eq(*left, *right));
        }
    }
}

fn is_subquery(expression: &Expr) -> bool {
    matches!(expression, Expr::ScalarSubquery(_) | Expr::Exists(_) | Expr::InSubquery(_) | Expr::SetComparison(_))
}

/// Parses a string literal as a value of the common type, unless this is a text.
fn read(quoted: &mut Expr, wanted: &DataType) {
    let value = match wanted.is_numeric() {
        true => Some(cast(quoted.clone(), wanted.clone())),
        false => operators::literal_like(quoted.clone(), &Field::new("", wanted.clone(), true)),
    };
    value.into_iter().for_each(|value| *quoted = value);
}

fn results(case: &Case) -> impl Iterator<Item = &Expr> {
    case.when_then_expr.iter().map(|(_, then)| then.as_ref()).chain(case.else_expr.as_deref())
}

fn results_mut(case: &mut Case) -> Vec<&mut Expr> {
    let results = case.when_then_expr.iter_mut().map(|(_, then)| then.as_mut());
    results.chain(case.else_expr.as_deref_mut()).collect()
}

/// Whether an expression is a string literal, which matches any type.
fn is_quoted(expression: &Expr) -> bool {
    matches!(expression, Expr::Literal(scalar, _) if is_text(&scalar.data_type()))
}

/// The common type of results. The flag of each says whether it is a string literal.
fn common<'f>(fields: impl Iterator<Item = (&'f FieldRef, bool)> + Clone) -> DataType {
    let of_any_type = |(field, is_quoted): &(&FieldRef, bool)| {
        field.data_type().is_null() || *is_quoted || is_untyped(field.as_ref())
    };
    let known: Vec<&DataType> =
        fields.clone().filter(|field| !of_any_type(field)).map(|(field, _)| field.data_type()).collect();
    match known.as_slice() {
        [] => {
            let mut types = fields.map(|(field, _)| field.data_type());
            types.find(|found| !found.is_null()).cloned().unwrap_or(DataType::Null)
        }
        [first, rest @ ..] if rest.iter().all(|other| other == first) => (*first).clone(),
        [first, rest @ ..] => {
            if let Some(numbers) = numbers::common_type(&known).or_else(|| dates::common_type(&known)) {
                return numbers;
            }
            let rest: Vec<DataType> = rest.iter().map(|other| (*other).clone()).collect();
            get_coerce_type_for_case_expression(&rest, Some(first)).unwrap_or_else(|| (*first).clone())
        }
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Choice {
    name: &'static str,
    signature: Signature,
}

impl ScalarUDFImpl for Choice {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    /// The name of the `CASE`, so columns keep their names.
    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let function = Choice { name: self.name, signature: self.signature.clone() };
        let call = ScalarFunction::new_udf(Arc::new(ScalarUDF::new_from_impl(function)), args.to_vec());
        let case = case_of(&call).ok_or_else(|| DataFusionError::Internal("a CASE has no results".to_owned()))?;
        Ok(Expr::Case(case).schema_name().to_string())
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Err(DataFusionError::Internal(format!("{} returns a field", self.name)))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let pairs_from = usize::from(self.name == OF_VALUE);
        let count = args.arg_fields.len().saturating_sub(pairs_from);
        let fields = args.arg_fields.iter().zip(args.scalar_arguments).skip(pairs_from).enumerate();
        // The second argument of each pair, and a last argument without a partner.
        let results = fields.filter(|(at, _)| at % 2 == 1 || at + 1 == count);
        let results =
            results.map(|(_, (field, literal))| (field, literal.filter(|scalar| is_text(&scalar.data_type()))));
        let results: Vec<(&FieldRef, Option<&ScalarValue>)> = results.collect();
        let wanted = common(results.iter().map(|(field, literal)| (*field, literal.is_some())));
        // As in `settled`: a string literal keeps its digits.
        let exact = |literal: &ScalarValue| match written::exact(&Expr::Literal(literal.clone(), None), &wanted) {
            Some(Expr::Literal(number, _)) => Some(Arc::new(Field::new(self.name, number.data_type(), true))),
            _ => None,
        };
        let fields: Vec<(FieldRef, bool)> = results
            .iter()
            .map(|(field, literal)| match literal.and_then(exact) {
                Some(number) => (number, false),
                None => (Arc::clone(field), literal.is_some()),
            })
            .collect();
        let found = common(fields.iter().map(|(field, is_quoted)| (field, *is_quoted)));
        Ok(Arc::new(Field::new(self.name, found, true)))
    }

    /// Called only if a statement uses the function itself.
    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Err(wrong_arguments(self.name, &types_of(&args)))
    }
}
