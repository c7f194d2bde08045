//! Functions that PostgreSQL and CrateDB have and Hazelcast has not, each a row of a table: its name, what it takes, what it gives.

mod clock;
mod elements;
mod expand;
mod json;
mod names;
pub(super) mod native;
mod objects;
mod quantified;
mod rows;
mod session;
mod text;

use std::sync::{Arc, LazyLock};

use datafusion::logical_expr::ScalarUDF;
use filbert_grid::query::Dialect;

pub(crate) use elements::{ARRAY_LIKE, told_parameters};
pub(crate) use native::taken_as;
pub(crate) use quantified::{COMPARE_ALL, COMPARE_ANY, no_array};
pub(crate) use rows::ARRAY_OF_ROWS;

/// The name of an object's number, for rules that put it in the place of a cast.
pub(super) static REG_NAME: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Arc::new(native::udf(&names::REG_NAME)));

/// [`ARRAY_LIKE`], for expressions that are made when a statement is planned.
pub(super) static ARRAY_LIKE_UDF: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Arc::new(elements::udf()));

/// All of them.
pub(super) fn functions(dialect: Dialect) -> Vec<ScalarUDF> {
    let groups = [session::FUNCTIONS, objects::FUNCTIONS, names::FUNCTIONS, text::FUNCTIONS, json::FUNCTIONS];
    let native = groups.into_iter().flatten().map(native::udf);
    let others = [REG_NAME.as_ref().clone(), ARRAY_LIKE_UDF.as_ref().clone(), expand::udf(), rows::udf()];
    native.chain(others).chain(quantified::udfs(dialect)).chain([super::text::random_uuid()]).collect()
}

/// Those about the time, which Hazelcast's users have as well.
pub(super) fn clock() -> Vec<ScalarUDF> {
    clock::FUNCTIONS.iter().map(native::udf).collect()
}
