//! Functions of SQL as Hazelcast documents them, where DataFusion has none or others.
//!
//! | here | what |
//! |---|---|
//! | `json` | `JSON_VALUE`, `JSON_QUERY`, `JSON_OBJECT`, `JSON_ARRAY`, their aggregates, casts to JSON |
//! | `text` | `POSITION`, patterns of `LIKE`, `CONCAT_WS`, `INITCAP`, .. |
//! | `math` | everything on numbers |
//! | `time` | `EXTRACT`, `TO_TIMESTAMP_TZ`, `TO_EPOCH_MILLIS`, `TO_CHAR` |
//! | `postgres` | what PostgreSQL computes otherwise: dates, times, intervals |
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
//! | `postgres` | values as PostgreSQL has them: patterns, `jsonb`, texts, arrays, casts |
//! | `results` | the memory and the time that results take |
//! | `server` | what PostgreSQL and CrateDB have: about the session, the catalogs, and expressions |
//! | `numbers` | functions and operators on numbers in PostgreSQL's dialect |
//! | `totals` | result types of `SUM` and `AVG` |

mod apart;
mod around;
mod checked;
pub(crate) mod choices;
mod conditions;
mod constants;
mod counted;
mod distinct;
mod fields;
mod joined;
mod json;
mod like;
pub(crate) mod lists;
mod math;
pub(crate) mod numbers;
mod postgres;
mod results;
mod row;
mod series;
mod server;
mod text;
mod time;
mod totals;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use datafusion::execution::FunctionRegistry;
use datafusion::prelude::SessionContext;
use filbert_grid::query::Dialect;

pub(crate) use apart::{AS_CAST, Arguments};
pub(crate) use conditions::Conditions;
pub(crate) use constants::Constants;
pub(crate) use counted::CountedOperators;
pub(crate) use distinct::distinct;
pub(crate) use fields::{Fields, value_of_field};
pub(crate) use json::{Kind, Node, push_json_text};
pub(crate) use postgres::dates::{
    CommonTypes, common_type as common_type_of_dates, may_be_moment, moment_of_column, zone_of_changes,
};
pub(crate) use postgres::told::{operand, tell};
pub(crate) use postgres::{
    Document, Keys, Quoted, Values, ValuesRule, compared_with_rows, escaped_pattern, key_of, lower, truth_of,
};
pub(crate) use results::value_bytes;
pub(crate) use server::{ARRAY_LIKE, ARRAY_OF_ROWS, COMPARE_ALL, COMPARE_ANY, taken_as, told_parameters};

/// Makes a session know the functions, and the rules by which operators and aggregates become ours.
pub(crate) fn register(context: &SessionContext, dialect: Dialect) {
    // DataFusion's own: those that take their places count what they make themselves.
    results::bound(context);
    let scalars = [json::functions(), text::functions(), math::functions(), time::functions(), checked::functions()];
    for function in scalars.into_iter().flatten() {
        context.register_udf(function);
    }
    // What tables declare may look into objects, whosever statements it is computed for.
    for function in server::clock().into_iter().chain(fields::functions()) {
        context.register_udf(function);
    }
    for aggregate in fields::aggregates() {
        context.register_udaf(aggregate);
    }
    if dialect != Dialect::Hazelcast {
        for function in server::functions(dialect).into_iter().chain(postgres::functions()) {
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
    let state = context.state_ref();
    let mut state = state.write();
    // The functions are DataFusion's too, but this kind of registration has an error that cannot be.
    let _ = state.register_expr_planner(Arc::new(checked::Planner { dialect }));
    if dialect != Dialect::Hazelcast {
        let _ = state.register_expr_planner(Arc::new(postgres::dates::Planner { dialect }));
    }
    state.add_analyzer_rule(Arc::new(checked::Checked { dialect }));
    if dialect != Dialect::Hazelcast {
        state.add_analyzer_rule(Arc::new(ValuesRule { is_strict: dialect == Dialect::Postgres }));
        state.add_analyzer_rule(Arc::new(postgres::dates::Dates { dialect }));
        state.add_analyzer_rule(Arc::new(Keys));
    }
    // What `TIMESTAMP WITH TIME ZONE` is kept in.
    state.config_mut().options_mut().execution.time_zone = Some("UTC".into());
}
