//! Dates, times and intervals: operators, functions, casts, and the order of intervals.
//!
//! Arrow's arithmetic and casts of these types differ from PostgreSQL's, and Arrow compares
//! intervals by their parts. Computations with these types therefore become calls of functions in
//! this module: operators at planning ([`Planner`]), casts and comparisons at type coercion
//! ([`Dates`]).
//!
//! | module | content |
//! |---|---|
//! | `cells` | arguments and results, row by row |
//! | `operators` | `+ - * /` |
//! | `calculate` | the arithmetic |
//! | `casts` | casts between these types, and from and to text |
//! | `fields` | `extract`, `date_part`, `date_trunc`, `date_bin` |
//! | `make` | `make_date`, `age`, `justify_days`, `to_timestamp`, `AT TIME ZONE`, .. |
//! | `templates`, `template`, `format`, `parse` | `to_char`, `to_timestamp`, `to_date` |
//! | `unify` | common types of dates and timestamps |
//! | `values` | values that are written to columns |
//! | `series` | `generate_series` of timestamps |
//! | `intervals`, `totals` | comparison, groups, order and sums of intervals |

mod calculate;
mod casts;
mod cells;
mod fields;
mod format;
mod intervals;
mod make;
mod operators;
mod parse;
mod series;
mod template;
mod templates;
mod totals;
mod unify;

use std::sync::Arc;

use datafusion::common::DataFusionError;
use datafusion::common::config::ConfigOptions;
use datafusion::logical_expr::ScalarUDF;
use filbert_data::dates::{DateError, Zone};

pub(crate) use casts::Dates;
pub(super) use intervals::{extreme_of, is_of_intervals, length, length_of};
pub(crate) use operators::Planner;
pub use operators::common_type;
pub(crate) use operators::unify;
pub(super) use totals::total;
pub use unify::CommonTypes;

use crate::context::StatementContext;
use crate::error::{carried, data_error};

/// All functions.
pub(crate) fn functions() -> Vec<ScalarUDF> {
    let groups = [
        operators::functions(),
        casts::functions(),
        fields::functions(),
        make::functions(),
        intervals::functions(),
        templates::functions(),
        series::functions(),
    ];
    groups.into_iter().flatten().map(|function: Arc<ScalarUDF>| function.as_ref().clone()).collect()
}

/// The session's time zone, at planning and at run time. The plan cache has separate plans for it.
fn zone_of(options: &ConfigOptions) -> Zone {
    StatementContext::of(options).map_or(Zone::UTC, StatementContext::zone)
}

/// An error within a plan.
fn wrong(error: &DateError) -> DataFusionError {
    carried(data_error(error.to_string()).with_sqlstate(error.sqlstate()))
}

/// An error within a plan that is not about the text of a value.
fn refused(message: impl Into<String>, sqlstate: &'static str) -> DataFusionError {
    carried(data_error(message).with_sqlstate(sqlstate))
}
