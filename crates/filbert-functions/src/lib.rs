//! Functions and operators of SQL, with a registry for each dialect. They define results, types and
//! errors.
//!
//! The crate knows DataFusion's expressions and Arrow's arrays. It must not know maps, the catalog,
//! or how a statement is planned or run. [`context`] and [`ending`] are all that a function sees of
//! its statement.
//!
//! ```text
//!  types, error, named ◄── builder, native, row ◄── functions of each kind ◄── register
//! ```
//!
//! `register` fills one registry for each dialect.
//!
//! | module | content |
//! |---|---|
//! | `types`, `pg_types` | SQL types in Arrow; PostgreSQL types with their OIDs and names |
//! | `error` | errors of statements: created here, or translated from DataFusion's |
//! | `context`, `ending`, `settings` | statement context; early end; where a plan finds both |
//! | `measured` | the memory that a statement holds, as the allocator counts it |
//! | `native`, `row`, `results` | functions over single values; memory and time of results |
//! | `strict` | functions with the result NULL if an argument is NULL |
//! | `fitting`, `literals` | values fitted to declared types; values parsed from text |
//! | `elements` | `array_like`: arrays with elements of another value's type |
//! | `json` | `JSON_VALUE`, `JSON_QUERY`, `JSON_OBJECT`, `JSON_ARRAY`, their aggregates, casts |
//! | `text` | `POSITION`, patterns of `LIKE`, `CONCAT_WS`, `INITCAP`, .. |
//! | `math` | functions on numbers |
//! | `time` | `EXTRACT`, `TO_TIMESTAMP_TZ`, `TO_EPOCH_MILLIS`, `TO_CHAR` |
//! | `series` | `generate_series`, `generate_stream` |
//! | `around` | wrappers of DataFusion's functions |
//! | `addresses` | the texts of network addresses |
//! | `apart` | distinct names for casts of the same expression |
//! | `checked` | `+ - *` that fail on overflow, and division |
//! | `choices` | `CASE` during planning |
//! | `conditions` | `AND` and `OR` |
//! | `guards`, `fallible` | conditions that guard each other; which expressions can fail |
//! | `constants` | arrays that are the same for all rows |
//! | `counted` | operators that become functions which count their results |
//! | `distinct` | `array_agg(DISTINCT ..)`, `string_agg(DISTINCT ..)` |
//! | `fields` | members of objects: `object['member']` |
//! | `frames` | distances of window frames during planning |
//! | `joined` | `\|\|` of texts |
//! | `like` | `LIKE` with long or computed patterns |
//! | `lists` | conditions that are hidden from the optimizer |
//! | `postgres` | functions and operators of PostgreSQL and CrateDB |
//! | `numbers` | functions and operators on numbers in PostgreSQL's dialect |
//! | `related_types` | types that depend on neighbouring expressions |
//! | `totals`, `float_totals` | result types of `SUM` and `AVG`; floating-point numbers |

mod addresses;
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
pub mod fallible;
mod fields;
mod fitting;
mod float_totals;
pub mod frames;
pub mod guards;
mod joined;
mod json;
mod like;
pub mod lists;
pub mod literals;
mod math;
pub mod measured;
mod merged;
mod moments;
pub mod named;
pub mod native;
mod nearest;
pub mod numbers;
pub mod pg_types;
mod postgres;
mod primary_keys;
mod related_types;
mod results;
mod row;
mod series;
pub mod settings;
mod strict;
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
pub use elements::{field_beside, reported_parameters};
pub use fields::{Fields, value_of_field};
pub use fitting::{fit, postgres_type};
pub use json::{Document, Kind, Node, push_json, push_json_text};
pub use literals::truth_of;
pub use moments::{may_be_timestamp, timestamp_of_column, zone_of_changes};
pub use native::taken_as;
pub use nearest::nearest;
pub use postgres::casts::{bytes_of_text, cast_to_text};
pub use postgres::dates::{CommonTypes, common_type as common_type_of_dates};
pub use postgres::is_nested;
pub use postgres::marked::{field_of, mark_types, operand};
pub use postgres::{Keys, Quoted, Values, ValuesRule, compared_with_rows, key_of, literal_like};
pub use primary_keys::{canonical_key, check_key_type};
pub use related_types::{related_within, with_related_types};
pub use results::value_bytes;

/// The name of the function that a cast calls for the name of an object.
pub const REG_NAME: &str = "reg_name";

/// Registers the functions in a session, and the rules that replace operators and aggregates.
///
/// `further` has functions of the same dialect from elsewhere: the functions about the catalog. The
/// one called `reg_name` returns the name of an object's OID for a cast.
pub fn register(context: &SessionContext, dialect: Dialect, further: &[ScalarUDF]) {
    // Applies to DataFusion's own functions; their replacements count their results themselves.
    results::bound(context);
    if dialect == Dialect::Postgres {
        strict::of_datafusion(context);
    }
    let scalars =
        [json::functions(), text::functions(), math::functions(dialect), time::functions(), checked::functions()];
    for function in scalars.into_iter().flatten() {
        context.register_udf(function);
    }
    // Declarations of tables may use objects, and every dialect evaluates them.
    for function in postgres::clock().into_iter().chain(fields::functions()) {
        context.register_udf(function);
    }
    for aggregate in fields::aggregates() {
        context.register_udaf(aggregate);
    }
    if dialect == Dialect::Hazelcast {
        for function in checked::operators().into_iter().chain([text::section()]) {
            context.register_udf(function);
        }
    }
    if dialect != Dialect::Hazelcast {
        for function in postgres::functions(dialect).into_iter().chain(further.iter().cloned()) {
            context.register_udf(function);
        }
    }
    for aggregate in totals::aggregates(dialect) {
        context.register_udaf(aggregate);
    }
    // Last, because they replace functions of the same names.
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
    if dialect != Dialect::Postgres {
        for function in choices::of_arguments() {
            context.register_udf(function);
        }
    }
    for function in choices::functions().into_iter().chain([numbers::free::udf()]) {
        context.register_udf(function);
    }
    for function in frames::udfs() {
        context.register_udf(function);
    }
    context.register_udf(apart::udf());
    context.register_udf(merged::udf(dialect));
    for (name, function) in series::functions() {
        context.register_udtf(name, function);
    }
    let reg_name = further.iter().find(|function| function.name() == REG_NAME).cloned().map(Arc::new);
    let state = context.state_ref();
    let mut state = state.write();
    // DataFusion returns an error here only in theory.
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
    if dialect == Dialect::Postgres {
        let rules = postgres::item_casts::Rules::default();
        state.add_analyzer_rule(Arc::new(postgres::item_casts::ItemCasts { rules: rules.clone() }));
        // The casts of elements pass all other rules.
        let others = state.analyzer().rules.iter().filter(|rule| rule.name() != postgres::item_casts::RULE);
        let _first = rules.set(others.cloned().collect());
    }
    // The storage zone of `TIMESTAMP WITH TIME ZONE`.
    state.config_mut().options_mut().execution.time_zone = Some("UTC".into());
}
