//! Distances of window frames that are no plain numbers: `ROWS $1 PRECEDING`.
//!
//! DataFusion has only constants there. At planning, such a distance becomes a partition key of its
//! window, as the argument of one of these functions, where it has types and gets the values of
//! parameters. A constant key changes no partition. Before the plan runs, the key becomes a bound
//! of the frame.

use arrow_schema::{DataType, FieldRef};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::row::{types_of, wrong_arguments};

/// The function of the first bound of `ROWS` and `GROUPS`.
pub const FIRST_ROW: &str = "first_row_of_frame";
/// The function of the last bound of `ROWS` and `GROUPS`.
pub const LAST_ROW: &str = "last_row_of_frame";
/// The function of the first bound of `RANGE`.
pub const RANGE_START: &str = "start_of_frame";
/// The function of the last bound of `RANGE`.
pub const RANGE_END: &str = "end_of_frame";

pub(crate) fn udfs() -> [ScalarUDF; 4] {
    [FIRST_ROW, LAST_ROW, RANGE_START, RANGE_END]
        .map(|name| ScalarUDF::new_from_impl(Distance { name, signature: Signature::any(1, Volatility::Immutable) }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Distance {
    name: &'static str,
    signature: Signature,
}

impl ScalarUDFImpl for Distance {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Err(DataFusionError::Internal(format!("{} returns a field", self.name)))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        args.arg_fields.first().cloned().ok_or_else(|| DataFusionError::Internal("a value is missing".to_owned()))
    }

    /// Called only if a statement uses the function itself.
    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Err(wrong_arguments(self.name, &types_of(&args)))
    }
}
