//! `IN` lists in a form that DataFusion evaluates correctly.
//!
//! Some conditions are hidden from the optimizer, because it would treat lists of expressions as
//! sets of values. Code that looks for conditions on a column reveals them with [`what_is_kept`].
//! Lists of zeros contain both 0.0 and -0.0, which DataFusion's lists distinguish.

use std::sync::{Arc, LazyLock};

use arrow_schema::{DataType, FieldRef};
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{DFSchema, Result, ScalarValue, internal_err};
use datafusion::logical_expr::expr::{InList, ScalarFunction};
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility, lit,
};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;

const NAME: &str = "kept";

static KEPT: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let signature = Signature::uniform(1, vec![DataType::Boolean], Volatility::Immutable);
    Arc::new(ScalarUDF::new_from_impl(Kept { signature }))
});

static OF_EACH_ROW: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let signature = Signature::any(1, Volatility::Immutable);
    Arc::new(ScalarUDF::new_from_impl(OfEachRow { signature }))
});

/// Hides a condition from the optimizer, which then does not merge it with others.
pub fn kept(condition: Expr) -> Expr {
    KEPT.call(vec![condition])
}

/// The hidden condition, if this is one.
pub fn what_is_kept(condition: &Expr) -> Option<&Expr> {
    match condition {
        Expr::ScalarFunction(ScalarFunction { func, args }) if func.name() == NAME => args.first(),
        _ => None,
    }
}

/// A value for each row, which the optimizer does not look into. For an item of a list: DataFusion
/// evaluates lists over no rows, and takes an item that has one value for all of them for a
/// constant, such as `CASE WHEN a THEN 1 ELSE b END`.
pub fn of_each_row(item: Expr) -> Expr {
    OF_EACH_ROW.call(vec![item])
}

/// The list with both zeros of floating-point numbers, if it contains one of them.
pub fn with_both_zeros(mut list: InList) -> InList {
    let zero = |item: &Expr| floating(item).and_then(|scalar| other_zero(&scalar));
    let zeros: Vec<ScalarValue> = list.list.iter().filter_map(zero).collect();
    if let Some(first) =
        zeros.first().filter(|first| zeros.iter().all(|zero| is_negative_zero(zero) == is_negative_zero(first)))
    {
        list.list.push(lit(first.clone()));
    }
    list
}

/// The floating-point number that an expression always has, such as `'-0'::float8`.
pub fn floating(expression: &Expr) -> Option<ScalarValue> {
    let of = |scalar: &ScalarValue| scalar.data_type().is_floating().then(|| scalar.clone());
    match expression {
        Expr::Literal(scalar, _) => of(scalar),
        Expr::Cast(_) | Expr::ScalarFunction(_) if is_fixed(expression) => {
            if !expression.get_type(&DFSchema::empty()).is_ok_and(|of_type| of_type.is_floating()) {
                return None;
            }
            let simplifier = ExprSimplifier::new(SimplifyContext::builder().build());
            match simplifier.simplify(expression.clone()).ok()? {
                Expr::Literal(scalar, _) => of(&scalar),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Whether an expression is the same for all rows and all evaluations.
fn is_fixed(expression: &Expr) -> bool {
    let is_constant = |inner: &Expr| {
        matches!(
            inner,
            Expr::Literal(..) | Expr::Cast(_) | Expr::TryCast(_) | Expr::ScalarFunction(_) | Expr::Negative(_)
        )
    };
    !expression.is_volatile() && !expression.exists(|inner| Ok(!is_constant(inner))).unwrap_or(true)
}

/// The zero with the other sign, for a floating-point zero.
pub fn other_zero(scalar: &ScalarValue) -> Option<ScalarValue> {
    match scalar {
        ScalarValue::Float64(Some(value)) if *value == 0.0 => Some(ScalarValue::Float64(Some(-value))),
        ScalarValue::Float32(Some(value)) if *value == 0.0 => Some(ScalarValue::Float32(Some(-value))),
        _ => None,
    }
}

/// Whether a value is -0.0.
pub fn is_negative_zero(scalar: &ScalarValue) -> bool {
    match scalar {
        ScalarValue::Float64(Some(value)) => *value == 0.0 && value.is_sign_negative(),
        ScalarValue::Float32(Some(value)) => *value == 0.0 && value.is_sign_negative(),
        _ => false,
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Kept {
    signature: Signature,
}

impl ScalarUDFImpl for Kept {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match args.args.into_iter().next() {
            Some(condition) => Ok(condition),
            None => internal_err!("a condition is kept"),
        }
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct OfEachRow {
    signature: Signature,
}

impl ScalarUDFImpl for OfEachRow {
    fn name(&self) -> &str {
        "of_each_row"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types.first() {
            Some(of) => Ok(of.clone()),
            None => internal_err!("an item has values"),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        match args.arg_fields.first() {
            Some(field) => Ok(field.clone()),
            None => internal_err!("an item has values"),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match args.args.into_iter().next() {
            Some(item) => item.into_array(args.number_rows).map(ColumnarValue::Array),
            None => internal_err!("an item has values"),
        }
    }
}
