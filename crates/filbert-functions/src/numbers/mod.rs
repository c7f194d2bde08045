//! Functions and operators on numbers, as in PostgreSQL.
//!
//! | module | content |
//! |---|---|
//! | `digits` | scales of `numeric` results; roots, exponentials and logarithms |
//! | `decimals` | conversions between Arrow's decimals and exact numbers |
//! | `numerics` | functions that are exact for `numeric`, and floating-point otherwise |
//! | `integers` | functions and operators of whole numbers |
//! | `floats` | operators of floating-point numbers that fail on overflow |
//! | `casts` | casts between numbers and texts |
//! | `extremes` | `max` and `min` of floating-point numbers |
//! | `free` | numbers that may get more decimal places |
//! | `spread` | variances and deviations |
//! | `regression` | correlation, covariances, linear regression |
//! | `moments` | moments of floating-point numbers, for both |
//! | `pictures` | `to_char` and `to_number` |
//! | `shifts` | `lag` and `lead` |
//! | `ranks` | values in an order: the most frequent one, and percentiles |
//! | `widths` | numbers with another common type than in DataFusion |
//! | `written` | string literals beside decimals |
//! | `operators` | the functions that replace operators |

pub(super) mod casts;
pub mod decimals;
pub mod digits;
mod extremes;
mod floats;
pub mod free;
mod integers;
mod moments;
mod numerics;
pub(super) mod operators;
mod pictures;
mod ranks;
mod regression;
mod shifts;
mod spread;
mod widths;
pub mod written;

use datafusion::functions_aggregate::bool_and_or::bool_and_udaf;
use datafusion::logical_expr::{AggregateUDF, ScalarUDF};

use super::row::Function;

pub use casts::{assigned, check_range};
pub(crate) use casts::{text_of_double, text_of_real};
pub(super) use extremes::extreme;
pub(super) use floats::{NEGATE, ORDER, one_nan, with_one_nan_each};
pub(super) use numerics::with_scale;
pub(super) use pictures::to_char;
pub use shifts::is_shift;
pub(super) use shifts::windows;
pub use widths::{Widths, common_type, compared_as};

/// The functions. Some replace others with the same name.
pub(super) fn functions() -> Vec<ScalarUDF> {
    let all = [numerics::functions(), integers::functions(), floats::functions(), casts::functions()];
    all.into_iter().flatten().chain(pictures::functions()).map(Function::strict).collect()
}

/// The aggregates. Some replace others with the same name.
pub(super) fn aggregates() -> Vec<AggregateUDF> {
    let every = bool_and_udaf().as_ref().clone().with_aliases(["every"]);
    spread::aggregates().into_iter().chain(regression::aggregates()).chain(ranks::aggregates()).chain([every]).collect()
}
