//! Functions that PostgreSQL and CrateDB have and Hazelcast has not, each a row of a table: its name, what it takes, what it gives.

mod clock;
mod json;
mod names;
mod native;
mod objects;
mod session;
mod text;

use datafusion::logical_expr::ScalarUDF;

pub(super) use native::typed;

/// All of them.
pub(super) fn functions() -> Vec<ScalarUDF> {
    let groups = [session::FUNCTIONS, objects::FUNCTIONS, names::FUNCTIONS, text::FUNCTIONS, json::FUNCTIONS];
    groups.into_iter().flatten().map(native::udf).collect()
}

/// Those about the time, which Hazelcast's users have as well.
pub(super) fn clock() -> Vec<ScalarUDF> {
    clock::FUNCTIONS.iter().map(native::udf).collect()
}
