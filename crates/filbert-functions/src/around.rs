//! Wrappers of DataFusion's functions that replace a part of their behaviour.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow_schema::{DataType, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};

/// The replaced part of a function.
pub(super) trait Around: fmt::Debug + Send + Sync + 'static {
    /// The types that arguments are cast to.
    fn coerce_types(&self, inner: &ScalarUDF, types: &[DataType]) -> Result<Vec<DataType>> {
        inner.coerce_types(types)
    }

    /// The field of the result. The fields of the arguments are already coerced; the literals are
    /// as written.
    fn return_field(&self, inner: &ScalarUDF, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        inner.return_field_from_args(args)
    }

    /// The equivalent of a call, if there is one.
    fn simplify(&self, inner: &ScalarUDF, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        inner.simplify(args, info)
    }

    /// The computation.
    fn invoke(&self, inner: &ScalarUDF, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        inner.invoke_with_args(args)
    }
}

/// Wraps a function, and replaces a part of it.
pub(super) fn around(inner: Arc<ScalarUDF>, part: impl Around) -> ScalarUDF {
    ScalarUDF::new_from_impl(Function { inner, part, signature: None })
}

/// Like [`around`], for a function with a signature that does not ask for the types of its
/// arguments.
pub(super) fn coerced(inner: Arc<ScalarUDF>, part: impl Around) -> ScalarUDF {
    let signature = Some(Signature::user_defined(inner.signature().volatility));
    ScalarUDF::new_from_impl(Function { inner, part, signature })
}

#[derive(Debug)]
struct Function<A> {
    inner: Arc<ScalarUDF>,
    part: A,
    /// The signature in the place of that of `inner`.
    signature: Option<Signature>,
}

// Each name has one function.
impl<A> PartialEq for Function<A> {
    fn eq(&self, other: &Self) -> bool {
        self.inner == other.inner
    }
}

impl<A> Eq for Function<A> {}

impl<A> Hash for Function<A> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.inner.hash(state);
    }
}

impl<A: Around> ScalarUDFImpl for Function<A> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        self.signature.as_ref().unwrap_or_else(|| self.inner.signature())
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.part.coerce_types(&self.inner, types)
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.part.return_field(&self.inner, args)
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        self.part.simplify(&self.inner, args, info)
    }

    fn conditional_arguments<'a>(&self, args: &'a [Expr]) -> Option<(Vec<&'a Expr>, Vec<&'a Expr>)> {
        self.inner.conditional_arguments(args)
    }

    fn short_circuits(&self) -> bool {
        self.inner.short_circuits()
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.part.invoke(&self.inner, args)
    }
}
