//! Functions about the session and the catalog, which PostgreSQL and CrateDB have and Hazelcast has not.

mod names;
mod objects;
mod session;

use datafusion::logical_expr::ScalarUDF;
use filbert_functions::native::{Call, udf};

use super::Scene;

/// All of them.
pub(crate) fn functions() -> Vec<ScalarUDF> {
    let groups = [session::FUNCTIONS, objects::FUNCTIONS, names::FUNCTIONS];
    groups.into_iter().flatten().chain([&names::REG_NAME]).map(udf).collect()
}

/// What the catalog has, for all rows of a batch.
fn scene<'c>(call: &Call<'c>) -> Option<&'c Scene> {
    call.kept(Scene::of)
}
