//! `merged_column(kept, other)`: the value of the first argument in the common type of both.
//!
//! A join `USING` a column merges two columns. For a row with a match both have the same value. The
//! merged column has the value of the side that keeps all of its rows, and the common type, as in
//! the SQL standard.

use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef};
use datafusion::common::Result;
use datafusion::functions::core::coalesce;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use filbert_dialect::calls::MERGED_COLUMN;
use filbert_grid::query::Dialect;

use crate::postgres;
use crate::row::wrong_arguments;
use crate::types::Mark;

/// The function of a dialect.
pub(super) fn udf(dialect: Dialect) -> ScalarUDF {
    let of_dialect = match dialect {
        Dialect::Postgres => postgres::functions_of_one_type().into_iter().find(|of| of.name() == "coalesce"),
        _ => None,
    };
    let common = of_dialect.map_or_else(coalesce, Arc::new);
    ScalarUDF::new_from_impl(Merged { common, signature: Signature::user_defined(Volatility::Immutable) })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Merged {
    /// The function that determines the common type.
    common: Arc<ScalarUDF>,
    signature: Signature,
}

impl ScalarUDFImpl for Merged {
    fn name(&self) -> &str {
        MERGED_COLUMN
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types {
            [kept, other] if kept == other => Ok(types.to_vec()),
            _ => self.common.coerce_types(types),
        }
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        types.first().cloned().ok_or_else(|| wrong_arguments(MERGED_COLUMN, types))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let [kept, other] = args.arg_fields else { return Err(wrong_arguments(MERGED_COLUMN, &[])) };
        let field = Field::new(MERGED_COLUMN, kept.data_type().clone(), true);
        let is_of_both = Mark::of(kept) == Mark::of(other);
        Ok(Arc::new(if is_of_both { field.with_metadata(kept.metadata().clone()) } else { field }))
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let [kept, other] = args.as_slice() else { return Ok(ExprSimplifyResult::Original(args)) };
        let (of_kept, of_other) = (kept.to_field(info.schema())?.1, other.to_field(info.schema())?.1);
        let is_of_both = of_kept.data_type() == of_other.data_type() && Mark::of(&of_kept) == Mark::of(&of_other);
        Ok(match is_of_both {
            // Conditions on the column itself are for indexes.
            true => ExprSimplifyResult::Simplified(kept.clone()),
            false => ExprSimplifyResult::Original(args),
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        args.args.into_iter().next().ok_or_else(|| wrong_arguments(MERGED_COLUMN, &[]))
    }
}
