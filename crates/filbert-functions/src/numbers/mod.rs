//! Functions and operators on numbers as PostgreSQL has them.
//!
//! | here | what |
//! |---|---|
//! | `digits` | how many digits results of `numeric` have; roots, exponents and logarithms of them |
//! | `decimals` | numbers of Arrow's decimals as exact numbers and back |
//! | `numerics` | functions that are computed exactly for `numeric`, and in floating point for all else |
//! | `integers` | functions and operators of whole numbers |
//! | `floats` | operators of floating-point numbers, which fail where Java's give infinities |
//! | `casts` | casts between numbers and texts |
//! | `extremes` | `max` and `min` of floating-point numbers |
//! | `free` | numbers that may get more digits behind the point |
//! | `spread` | variances and deviations |
//! | `regression` | correlation, covariances, the line through pairs |
//! | `moments` | what both are of floating-point numbers |
//! | `pictures` | `to_char` and `to_number` |
//! | `shifts` | `lag` and `lead` |
//! | `ranks` | values in an order: the most frequent one, and percentiles |
//! | `widths` | numbers whose common type is another in DataFusion |
//! | `operators` | which function takes an operator's place |

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

use datafusion::functions_aggregate::bool_and_or::bool_and_udaf;
use datafusion::logical_expr::{AggregateUDF, ScalarUDF};

use super::row::Function;

pub use casts::assigned;
pub(crate) use casts::{text_of_double, text_of_real};
pub(super) use extremes::extreme;
pub(super) use floats::{NEGATE, ORDER};
pub(super) use numerics::with_scale;
pub(super) use pictures::to_char;
pub use shifts::is_shift;
pub(super) use shifts::windows;
pub use widths::{Widths, common_type, compared_as};

/// The functions, some of which take the place of others of the same name.
pub(super) fn functions() -> Vec<ScalarUDF> {
    let all = [numerics::functions(), integers::functions(), floats::functions(), casts::functions()];
    all.into_iter().flatten().chain(pictures::functions()).map(Function::strict).collect()
}

/// The aggregates, likewise.
pub(super) fn aggregates() -> Vec<AggregateUDF> {
    let every = bool_and_udaf().as_ref().clone().with_aliases(["every"]);
    spread::aggregates().into_iter().chain(regression::aggregates()).chain(ranks::aggregates()).chain([every]).collect()
}
