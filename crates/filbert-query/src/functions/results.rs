//! The memory and the time that the results of a function take.
//!
//! A function computes all rows of a batch before anybody sees one of them, so that a short statement could ask for any amount of
//! memory: `repeat('x', 60000000)` of 8192 rows. Whoever makes values counts them here as they come about. What does not fit is refused,
//! and a statement that is over ends between two values.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, cast::AsArray};
use arrow_schema::{DataType, FieldRef};
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};
use datafusion::prelude::SessionContext;
use filbert_data::Value;

use super::row::{Texts, array, rows_of};
use crate::cursor::Limits;
use crate::error::{carried, data_error};
use crate::surroundings::Surroundings;

/// Bytes of the results of one call for one batch of rows, where nobody says otherwise.
const BYTES_MAX: usize = 256 << 20;
/// Bytes of one value. Not a setting: doors and the wire's formats have this limit for a value as well.
const VALUE_BYTES_MAX: usize = 64 << 20;
/// Values that are made between two looks at whether the statement is over.
const VALUES_BETWEEN: usize = 256;
/// Bytes that are made between two such looks.
const BYTES_BETWEEN: usize = 1 << 20;
/// Bytes that a value takes whatever it holds.
const OF_ANY_VALUE: usize = 16;

/// The results of one call, as far as they have been made.
pub(super) struct Results<'c> {
    bytes: usize,
    bytes_max: usize,
    limits: Option<&'c Limits>,
    /// Values and bytes since it was last looked whether the statement is over.
    since: (usize, usize),
}

impl<'c> Results<'c> {
    /// None yet, of a call with these settings.
    pub(super) fn of(options: &'c ConfigOptions) -> Results<'c> {
        let surroundings = Surroundings::of(options);
        let bytes_max = surroundings.map_or(BYTES_MAX, |surroundings| surroundings.server().results_bytes_max);
        Results { bytes: 0, bytes_max, limits: surroundings.and_then(Surroundings::limits), since: (0, 0) }
    }

    /// Counts a value of so many bytes, which is made already or is about to be.
    ///
    /// # Errors
    /// 53200 (out of memory) when all take too much together; 57014 when the statement is over.
    pub(super) fn add(&mut self, bytes: usize) -> Result<()> {
        let bytes = bytes.saturating_add(OF_ANY_VALUE);
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > self.bytes_max {
            let text = format!(
                "the results of a function for one batch of rows take more than {} bytes, a quarter of what a query may use; see \
                 query_memory_bytes_max",
                self.bytes_max
            );
            return Err(carried(data_error(text).with_sqlstate("53200")));
        }
        self.since = (self.since.0 + 1, self.since.1.saturating_add(bytes));
        if self.since.0 >= VALUES_BETWEEN || self.since.1 >= BYTES_BETWEEN {
            self.since = (0, 0);
            if let Some(over) = self.limits.filter(|limits| limits.are_over()) {
                return Err(carried(over.why_over()));
            }
        }
        Ok(())
    }
}

/// The bytes that a value takes, roughly.
pub(super) fn bytes_of(value: &Value<'_>) -> usize {
    match value {
        Value::Text(text) | Value::Json(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        Value::Array(items) => items.iter().map(|item| bytes_of(item) + OF_ANY_VALUE).sum(),
        _ => 0,
    }
}

/// DataFusion's functions whose results can be any number of times as large as what they are given.
const GROWING: [&str; 4] = ["array_repeat", "array_resize", "repeat", "replace"];

/// Has functions of DataFusion refuse, before they begin, what would take too much.
pub(super) fn bound(context: &SessionContext) {
    let known = context.state_ref();
    let growing: Vec<Arc<ScalarUDF>> =
        GROWING.iter().filter_map(|name| known.read().scalar_functions().get(*name).cloned()).collect();
    for inner in growing {
        context.register_udf(ScalarUDF::new_from_impl(Bounded { inner }));
    }
}

/// A function of DataFusion, with a look at the size of its results before.
#[derive(Debug)]
struct Bounded {
    inner: Arc<ScalarUDF>,
}

impl Bounded {
    /// Counts the results of a batch.
    fn check(&self, args: &ScalarFunctionArgs) -> Result<()> {
        let mut results = Results::of(&args.config_options);
        let sizes: Box<dyn Fn(usize) -> usize> = match self.inner.name() {
            "repeat" => {
                let (texts, counts) = (Texts::of(args, 0)?, whole_numbers(args, 1)?);
                Box::new(move |row| texts.get(row).map_or(0, str::len).saturating_mul(number(&counts, row)))
            }
            "replace" => {
                let (whole, from, to) = (Texts::of(args, 0)?, Texts::of(args, 1)?, Texts::of(args, 2)?);
                Box::new(move |row| match (whole.get(row), from.get(row), to.get(row)) {
                    (Some(whole), Some(from), Some(to)) => replaced_bytes(whole, from, to),
                    _ => 0,
                })
            }
            _ => {
                // An item or an array that is repeated.
                let (repeated, counts) = (array(args, 0)?, whole_numbers(args, 1)?);
                let each = repeated.get_array_memory_size() / repeated.len().max(1) + OF_ANY_VALUE;
                Box::new(move |row| number(&counts, row).saturating_mul(each))
            }
        };
        for row in 0..rows_of(args) {
            let bytes = sizes(row);
            check_value(bytes)?;
            results.add(bytes)?;
        }
        Ok(())
    }
}

/// Refuses a value of so many bytes.
///
/// # Errors
/// 54000 (program limit exceeded).
pub(super) fn check_value(bytes: usize) -> Result<()> {
    match bytes <= VALUE_BYTES_MAX {
        true => Ok(()),
        false => {
            let text = format!("requested length too large: at most {VALUE_BYTES_MAX} bytes");
            Err(carried(data_error(text).with_sqlstate("54000")))
        }
    }
}

/// The bytes of a text in which one part is replaced by another.
pub(super) fn replaced_bytes(whole: &str, from: &str, to: &str) -> usize {
    match to.len().checked_sub(from.len()) {
        // It does not grow.
        None | Some(0) => whole.len(),
        // Between all characters, and at both ends.
        Some(more) if from.is_empty() => (whole.chars().count() + 1).saturating_mul(more).saturating_add(whole.len()),
        Some(more) => whole.matches(from).count().saturating_mul(more).saturating_add(whole.len()),
    }
}

fn whole_numbers(args: &ScalarFunctionArgs, at: usize) -> Result<ArrayRef> {
    let numbers = array(args, at)?;
    Ok(datafusion::arrow::compute::cast(&numbers, &DataType::Int64)?)
}

/// A count; 0 for NULL and what is less.
fn number(counts: &ArrayRef, row: usize) -> usize {
    let counts = counts.as_primitive::<arrow_array::types::Int64Type>();
    match counts.is_valid(row) {
        true => usize::try_from(counts.value(row)).unwrap_or(0),
        false => 0,
    }
}

impl PartialEq for Bounded {
    fn eq(&self, other: &Self) -> bool {
        self.inner == other.inner
    }
}

impl Eq for Bounded {}

impl Hash for Bounded {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.inner.hash(state);
    }
}

impl ScalarUDFImpl for Bounded {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(types)
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.inner.return_field_from_args(args)
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        self.inner.simplify(args, info)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.check(&args)?;
        self.inner.invoke_with_args(args)
    }
}
