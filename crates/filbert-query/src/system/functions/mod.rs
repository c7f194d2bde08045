//! Functions about the session and the catalog, for PostgreSQL and CrateDB. Hazelcast has none.

mod advisory;
mod names;
mod objects;
mod session;
mod waiting;

use datafusion::logical_expr::ScalarUDF;
use filbert_functions::native::{Call, udf};

use super::Scene;

/// All of them.
pub(crate) fn functions() -> Vec<ScalarUDF> {
    let groups = [session::FUNCTIONS, objects::FUNCTIONS, names::FUNCTIONS, advisory::FUNCTIONS];
    groups.into_iter().flatten().chain([&names::REG_NAME]).map(udf).chain(waiting::functions()).collect()
}

/// The content of the catalog, computed once for all rows of a batch.
fn scene<'c>(call: &Call<'c>) -> Option<&'c Scene> {
    call.kept(Scene::of)
}

#[cfg(test)]
mod tests {
    use datafusion::execution::session_state::SessionStateBuilder;
    use datafusion::prelude::SessionContext;
    use filbert_grid::query::Dialect;

    #[test]
    fn no_function_hides_another() {
        for dialect in [Dialect::Postgres, Dialect::Crate] {
            let context = SessionContext::new_with_state(SessionStateBuilder::new().build());
            filbert_functions::register(&context, dialect, &[]);
            let known = context.state();
            let hidden =
                super::functions().into_iter().filter(|found| known.scalar_functions().contains_key(found.name()));
            assert_eq!(
                hidden.map(|found| found.name().to_owned()).collect::<Vec<_>>(),
                Vec::<String>::new(),
                "{dialect:?}"
            );
        }
    }
}
