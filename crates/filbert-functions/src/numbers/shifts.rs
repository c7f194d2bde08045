//! `lag` and `lead` with the common type of value and default, as in PostgreSQL.
//!
//! DataFusion's functions have the type of the value, and round or reject a default of another
//! type.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow_schema::{DataType, FieldRef};
use datafusion::common::Result;
use datafusion::functions_window::lead_lag::{lag_udwf, lead_udwf};
use datafusion::logical_expr::function::{ExpressionArgs, PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion::logical_expr::{
    LimitEffect, PartitionEvaluator, ReversedUDWF, Signature, Volatility, WindowFunctionDefinition, WindowUDF,
    WindowUDFImpl,
};
use datafusion::physical_expr::PhysicalExpr;

use super::super::row::{is_integer, is_text, wrong_arguments};
use super::common_type;

/// The functions.
pub(in super::super) fn windows() -> Vec<WindowUDF> {
    let signature = Signature::user_defined(Volatility::Immutable);
    let shift = |inner| WindowUDF::new_from_impl(Shift { inner, signature: signature.clone() });
    vec![shift(lag_udwf()), shift(lead_udwf())]
}

/// Whether a function is one of these.
pub fn is_shift(function: &WindowFunctionDefinition) -> bool {
    matches!(function, WindowFunctionDefinition::WindowUDF(function) if function.inner().is::<Shift>())
}

#[derive(Debug)]
struct Shift {
    /// DataFusion's function.
    inner: Arc<WindowUDF>,
    signature: Signature,
}

impl PartialEq for Shift {
    fn eq(&self, other: &Self) -> bool {
        self.inner.name() == other.inner.name()
    }
}

impl Eq for Shift {}

impl Hash for Shift {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.inner.name().hash(state);
    }
}

/// Whether a default of one type may become the other one. A text may be a literal of any type.
fn are_related(one: &DataType, other: &DataType) -> bool {
    let is_list = |found: &DataType| matches!(found, DataType::List(_));
    is_text(one)
        || is_text(other)
        || (is_list(one) && is_list(other))
        || (one.is_temporal() && other.is_temporal())
        || (one.is_binary() && other.is_binary())
}

impl WindowUDFImpl for Shift {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let is_offset = |found: &DataType| is_integer(found) || found.is_null();
        match types {
            [value] => Ok(vec![value.clone()]),
            [value, offset] if is_offset(offset) => Ok(vec![value.clone(), DataType::Int64]),
            [value, offset, default] if is_offset(offset) => {
                let known: Vec<&DataType> = [value, default].into_iter().filter(|found| !found.is_null()).collect();
                let common = match known.as_slice() {
                    [one, other] if one != other => match common_type(&known) {
                        Some(common) => common,
                        None if are_related(one, other) => value.clone(),
                        None => return Err(wrong_arguments(self.inner.name(), types)),
                    },
                    [one, ..] => (*one).clone(),
                    [] => DataType::Null,
                };
                Ok(vec![common.clone(), DataType::Int64, common])
            }
            _ => Err(wrong_arguments(self.inner.name(), types)),
        }
    }

    fn expressions(&self, args: ExpressionArgs<'_>) -> Vec<Arc<dyn PhysicalExpr>> {
        self.inner.inner().expressions(args)
    }

    fn partition_evaluator(&self, args: PartitionEvaluatorArgs<'_>) -> Result<Box<dyn PartitionEvaluator>> {
        self.inner.inner().partition_evaluator(args)
    }

    fn field(&self, args: WindowUDFFieldArgs<'_>) -> Result<FieldRef> {
        self.inner.inner().field(args)
    }

    fn reverse_expr(&self) -> ReversedUDWF {
        self.inner.inner().reverse_expr()
    }

    fn limit_effect(&self, args: &[Arc<dyn PhysicalExpr>]) -> LimitEffect {
        self.inner.inner().limit_effect(args)
    }
}
