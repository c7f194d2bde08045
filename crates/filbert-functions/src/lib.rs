//! Functions and operators of SQL, with a registry for each dialect: what they compute, as which type, and with which errors.
//!
//! The crate knows DataFusion's expressions and Arrow's arrays. It must not know maps, the catalog, how a statement is planned or
//! run: [`context`] and [`ending`] are all that a function sees of its statement.
//!
//! ```text
//!  types, error, named ◄── builder, native, row ◄── functions of each kind ◄── register (one registry for each dialect)
//! ```
//!
//! | here | what |
//! |---|---|
//! | `types`, `pg_types` | SQL's types in Arrow; PostgreSQL's types with their numbers and names |
//! | `error` | errors of statements: made here, or found in what DataFusion reports |
//! | `context`, `ending`, `settings` | the session and the start of a statement; what ends it early; where a plan finds both |
//! | `native`, `row`, `results` | functions over single values; the memory and the time that results take |
//! | `fitting`, `literals` | values as the declared type of their column has them; values that are given as text |
//! | `elements` | `array_like`: arrays whose items are like another value |
//! | `json` | `JSON_VALUE`, `JSON_QUERY`, `JSON_OBJECT`, `JSON_ARRAY`, their aggregates, casts to JSON |
//! | `text` | `POSITION`, patterns of `LIKE`, `CONCAT_WS`, `INITCAP`, .. |
//! | `math` | everything on numbers |
//! | `time` | `EXTRACT`, `TO_TIMESTAMP_TZ`, `TO_EPOCH_MILLIS`, `TO_CHAR` |
//! | `series` | `generate_series`, `generate_stream` |
//! | `around` | functions of DataFusion with a part of them done otherwise |
//! | `apart` | casts of the same expression told apart |
//! | `checked` | `+ - *` that fail instead of wrapping around, and division |
//! | `choices` | `CASE` while a statement is planned |
//! | `conditions` | `AND` and `OR` |
//! | `constants` | arrays that are the same for all rows |
//! | `counted` | operators that become functions which count their results |
//! | `distinct` | `array_agg(DISTINCT ..)`, `string_agg(DISTINCT ..)` |
//! | `fields` | members of objects: `object['member']` |
//! | `joined` | `\|\|` of texts |
//! | `like` | `LIKE` with patterns that are long or computed |
//! | `lists` | conditions that the optimizer does not look into |
//! | `postgres` | functions and operators of PostgreSQL and CrateDB |
//! | `numbers` | functions and operators on numbers in PostgreSQL's dialect |
//! | `totals` | result types of `SUM` and `AVG` |

mod apart;
mod around;
pub mod builder;
mod checked;
pub mod choices;
mod conditions;
mod constants;
pub mod context;
mod counted;
mod distinct;
mod elements;
pub mod ending;
pub mod error;
mod fields;
mod fitting;
mod joined;
mod json;
mod like;
pub mod lists;
pub mod literals;
mod math;
pub mod named;
pub mod native;
mod nearest;
pub mod numbers;
pub mod pg_types;
mod postgres;
mod results;
mod row;
mod series;
pub mod settings;
mod text;
mod time;
mod totals;
pub mod types;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use datafusion::execution::FunctionRegistry;
use datafusion::logical_expr::ScalarUDF;
use datafusion::prelude::SessionContext;
use filbert_grid::query::Dialect;

pub use apart::{AS_CAST, Arguments};
pub use conditions::Conditions;
pub use constants::Constants;
pub use counted::CountedOperators;
pub use distinct::distinct;
pub use elements::told_parameters;
pub use fields::{Fields, value_of_field};
pub use fitting::{fit, postgres_type};
pub use json::{Document, Kind, Node, push_json, push_json_text};
pub use literals::truth_of;
pub use native::taken_as;
pub use nearest::nearest;
pub use postgres::dates::{
    CommonTypes, common_type as common_type_of_dates, may_be_moment, moment_of_column, zone_of_changes,
};
pub use postgres::told::{operand, tell};
pub use postgres::{Keys, Quoted, Values, ValuesRule, compared_with_rows, key_of};
pub use results::value_bytes;

/// The name of the function by which a cast finds the name of an object.
pub const REG_NAME: &str = "reg_name";

/// Makes a session know the functions, and the rules by which operators and aggregates become ours.
///
/// `further` are functions of the same dialect that are made elsewhere: those about the catalog. The one called `reg_name` gives the name of
/// an object's number where a cast asks for it.
pub fn register(context: &SessionContext, dialect: Dialect, further: &[ScalarUDF]) {
    // DataFusion's own: those that take their places count what they make themselves.
    results::bound(context);
    let scalars = [json::functions(), text::functions(), math::functions(), time::functions(), checked::functions()];
    for function in scalars.into_iter().flatten() {
        context.register_udf(function);
    }
    // What tables declare may look into objects, whosever statements it is computed for.
    for function in postgres::clock().into_iter().chain(fields::functions()) {
        context.register_udf(function);
    }
    for aggregate in fields::aggregates() {
        context.register_udaf(aggregate);
    }
    if dialect != Dialect::Hazelcast {
        for function in postgres::functions(dialect).into_iter().chain(further.iter().cloned()) {
            context.register_udf(function);
        }
    }
    for aggregate in totals::aggregates(dialect) {
        context.register_udaf(aggregate);
    }
    // Last, for they take the place of functions of the same names.
    if dialect == Dialect::Postgres {
        let others = postgres::functions_of_one_type().into_iter().chain([postgres::make_array()]);
        for function in numbers::functions().into_iter().chain(others) {
            context.register_udf(function);
        }
        for aggregate in numbers::aggregates().into_iter().chain(postgres::aggregates()) {
            context.register_udaf(aggregate);
        }
        for window in numbers::windows() {
            context.register_udwf(window);
        }
    }
    for function in choices::functions().into_iter().chain([numbers::free::udf()]) {
        context.register_udf(function);
    }
    context.register_udf(apart::udf());
    for (name, function) in series::functions() {
        context.register_udtf(name, function);
    }
    let reg_name = further.iter().find(|function| function.name() == REG_NAME).cloned().map(Arc::new);
    let state = context.state_ref();
    let mut state = state.write();
    // The functions are DataFusion's too, but this kind of registration has an error that cannot be.
    let _ = state.register_expr_planner(Arc::new(checked::Planner { dialect }));
    if dialect != Dialect::Hazelcast {
        let _ = state.register_expr_planner(Arc::new(postgres::dates::Planner { dialect }));
    }
    state.add_analyzer_rule(Arc::new(checked::Checked { dialect, reg_name }));
    if dialect != Dialect::Hazelcast {
        state.add_analyzer_rule(Arc::new(ValuesRule { is_strict: dialect == Dialect::Postgres }));
        state.add_analyzer_rule(Arc::new(postgres::dates::Dates { dialect }));
        state.add_analyzer_rule(Arc::new(Keys));
    }
    // What `TIMESTAMP WITH TIME ZONE` is kept in.
    state.config_mut().options_mut().execution.time_zone = Some("UTC".into());
}
