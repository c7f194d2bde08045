//! PostgreSQL's values: patterns, `jsonb`, texts, arrays, bytes, and casts that DataFusion lacks or
//! defines differently.
//!
//! | module | content |
//! |---|---|
//! | `patterns`, `each` | `LIKE`, `SIMILAR TO`, regular expressions and their functions |
//! | `expressions`, `matcher` | translation and matching of regular expressions |
//! | `json`, `document` | `jsonb` and `json` |
//! | `texts`, `letters`, `digest` | functions of texts and bytes; upper and lower case; MD5 |
//! | `bytes` | digests of bytes, and text encodings |
//! | `dates` | dates, times, time zones, intervals, their text forms and templates |
//! | `arrays`, `array_shapes` | functions and operators of arrays; rectangular nested arrays |
//! | `keys`, `extremes` | comparison by keys: intervals, documents, arrays with nulls |
//! | `aggregates`, `gathered` | types and memory of aggregates that return their values |
//! | `casts` | `varchar(n)`, `char(n)`, `bytea`, `boolean`, and the text of any value |
//! | `constructed` | casts of the elements of an array constructor |
//! | `item_casts` | casts of arrays, by the casts of their elements |
//! | `quoted` | string literals of other types |
//! | `blanks` | comparisons of `char(n)` with lists and rows |
//! | `operators`, `operands` | operators that depend on operand types; undefined operators |
//! | `signatures` | argument types of functions of texts, bytes and arrays |
//! | `marked` | types that Arrow lacks, for `CASE`, `coalesce`, `UNION` and similar expressions |

mod aggregates;
mod array_order;
mod array_shapes;
mod arrays;
mod blanks;
mod bytes;
pub(crate) mod casts;
mod clock;
mod compared_items;
pub(crate) mod constructed;
pub(crate) mod dates;
mod digest;
mod each;
mod expand;
mod expressions;
mod extremes;
mod gathered;
pub(crate) mod item_casts;
mod items;
mod json;
mod keys;
mod letters;
pub(crate) mod marked;
mod matcher;
mod members;
pub(crate) mod operands;
pub(crate) mod operators;
mod patterns;
mod quantified;
mod quoted;
mod rows;
mod signatures;
mod texts;

use datafusion::common::DataFusionError;
use datafusion::logical_expr::ScalarUDF;
use filbert_grid::query::{Dialect, SqlError, SqlErrorCode};

use crate::error::{carried, data_error};
use crate::native;

pub(super) use aggregates::aggregates;
pub use array_shapes::is_nested;
pub(super) use array_shapes::make_array;
pub use keys::{Keys, key_of};
pub use operators::{Values, ValuesRule, compared_with_rows, literal_like};
pub use quoted::Quoted;
pub(super) use quoted::functions as functions_of_one_type;

/// Functions about the time, which Hazelcast's dialect has as well.
pub(super) fn clock() -> Vec<ScalarUDF> {
    clock::FUNCTIONS.iter().map(native::udf).collect()
}

/// All functions of this module.
pub(super) fn functions(dialect: Dialect) -> Vec<ScalarUDF> {
    let values = [
        items::FUNCTIONS,
        members::FUNCTIONS,
        json::FUNCTIONS,
        texts::FUNCTIONS,
        bytes::FUNCTIONS,
        arrays::FUNCTIONS,
        extremes::FUNCTIONS,
    ];
    let groups = values.into_iter().chain([casts::FUNCTIONS, patterns::FUNCTIONS]);
    let native = groups.flatten().map(native::udf);
    native
        .chain(marked::functions())
        .chain([marked::operand::udf()])
        .chain(patterns::functions())
        .chain(letters::functions())
        .chain(dates::functions())
        .chain([
            super::elements::ARRAY_LIKE_UDF.as_ref().clone(),
            constructed::udf(),
            item_casts::udf(),
            expand::udf(),
            rows::udf(),
            super::text::random_uuid(),
        ])
        .chain(quantified::udfs(dialect))
        .collect()
}

/// An error in a value, with its SQLSTATE.
fn refused(sqlstate: &'static str, message: impl Into<String>) -> DataFusionError {
    carried(data_error(message).with_sqlstate(sqlstate))
}

/// The error for an unsupported feature.
fn unserved(message: impl Into<String>) -> DataFusionError {
    carried(SqlError::new(SqlErrorCode::Generic, message).with_sqlstate("0A000"))
}
