//! An operand in the type that `=` coerces it to, which is the result type of PostgreSQL's
//! `nullif`.
//!
//! At planning, a function reports the type. [`settled`] replaces it by a cast if the type differs
//! in Arrow. For types that Arrow lacks, the pass over the plan replaces it ([`marked`]), because the
//! pass knows them for all nodes below.

use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef};
use datafusion::common::{DFSchema, DataFusionError, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility, cast,
};
use filbert_dialect::calls::OPERAND;

use super::function::marked_as;
use super::{mark_of, rtrim};
use crate::types::{BPCHAR, Length, Mark, VARCHAR, is_untyped};

/// The function that statements are rewritten to.
pub(in crate::postgres) fn udf() -> ScalarUDF {
    ScalarUDF::new_from_impl(Operand { signature: Signature::any(2, Volatility::Immutable) })
}

/// The replacement of a call, unless it depends on types that Arrow lacks; `None` for other calls.
///
/// # Errors
/// An argument has no type.
pub fn settled(call: &ScalarFunction, schema: &DFSchema) -> Result<Option<Expr>> {
    let [operand, other] = call.args.as_slice() else { return Ok(None) };
    // A parameter without a type has one later, and is settled then.
    let is_open = matches!(operand, Expr::Placeholder(parameter) if parameter.field.is_none());
    if call.func.name() != OPERAND || is_open {
        return Ok(None);
    }
    let (own, beside) = (operand.to_field(schema)?.1, other.to_field(schema)?.1);
    let wanted = type_beside(&own, &beside);
    Ok(match own.data_type() {
        of if *of != wanted => Some(cast(operand.clone(), wanted)),
        of if of.is_string() => None,
        _ => Some(operand.clone()),
    })
}

/// The replacement of a call that depends on types that Arrow lacks.
pub(super) fn marked(call: ScalarFunction, schema: &DFSchema) -> Expr {
    let wanted = mark_of_call(&call, schema);
    let Some(operand) = call.args.into_iter().next() else { return Expr::default() };
    let (Some(mark), Some(wanted)) = (mark_of(&operand, schema), wanted) else { return operand };
    match (mark == wanted, mark.length) {
        (true, _) => operand,
        (false, Length::Own) if wanted.oid != Some(BPCHAR) => marked_as(rtrim(operand), wanted),
        (false, _) => marked_as(operand, wanted),
    }
}

/// The type of a call, if Arrow lacks it. A `varchar` is coerced to `text`. A fixed-length text
/// stays one, except beside a `text`.
pub(super) fn mark_of_call(call: &ScalarFunction, schema: &DFSchema) -> Option<Mark> {
    let [operand, other] = call.args.as_slice() else { return None };
    let (mark, beside) = (mark_of(operand, schema)?, mark_of(other, schema));
    let fixed = Some(BPCHAR);
    Some(match (mark.oid, beside) {
        (Some(VARCHAR), Some(beside)) if beside.oid == fixed => Mark::of_oid(BPCHAR, Length::Own),
        (Some(VARCHAR), _) => Mark::default(),
        (oid, Some(beside)) if oid == fixed && beside == Mark::default() => Mark::default(),
        _ => mark,
    })
}

/// The type that an operand is coerced to beside another one. Two whole numbers, two floats and two
/// timestamps are compared without a cast.
fn type_beside(own: &Field, beside: &Field) -> DataType {
    let (of, other) = (own.data_type(), beside.data_type());
    if is_untyped(own) || is_untyped(beside) || !of.is_numeric() || of.is_floating() {
        return of.clone();
    }
    match other {
        other if other.is_floating() => DataType::Float64,
        other if other.is_decimal() && of.is_integer() => DataType::Decimal128(digits(of), 0),
        _ => of.clone(),
    }
}

/// The maximum number of digits of a whole-number type.
fn digits(whole: &DataType) -> u8 {
    match whole {
        DataType::Int8 => 3,
        DataType::Int16 => 5,
        DataType::Int32 => 10,
        _ => 19,
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Operand {
    signature: Signature,
}

impl ScalarUDFImpl for Operand {
    fn name(&self) -> &str {
        OPERAND
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    /// The name of the argument, so columns keep their names.
    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        Ok(args.first().map(|operand| operand.schema_name().to_string()).unwrap_or_default())
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Err(DataFusionError::Internal(format!("{OPERAND} returns a field")))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let [own, beside] = args.arg_fields else {
            return Err(DataFusionError::Internal("an operand is missing".to_owned()));
        };
        let wanted = type_beside(own, beside);
        Ok(Arc::new(own.as_ref().clone().with_data_type(wanted).with_nullable(true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let operand = args.args.into_iter().next();
        operand.ok_or_else(|| DataFusionError::Internal("an operand is missing".to_owned()))
    }
}
