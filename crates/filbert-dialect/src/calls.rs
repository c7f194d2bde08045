//! Names of functions that statements are rewritten to and users do not write. The crates that
//! implement the functions take the names from here.

/// `array_like(values, item)`: an array with elements of the second argument's type.
pub const ARRAY_LIKE: &str = "array_like";
/// `cast_items(array, cast(NULL))`: the array with elements that are cast as the second argument
/// casts NULL.
pub const CAST_ITEMS: &str = "cast_items";
/// An element of an array constructor that is cast. It may be an array itself.
pub const ARRAY_PART: &str = "array_part";
/// `x operator ANY (array)`.
pub const COMPARE_ANY: &str = "compare_any";
/// `x operator ALL (array)`.
pub const COMPARE_ALL: &str = "compare_all";
/// `ARRAY(SELECT ..)` over rows of several columns.
pub const ARRAY_OF_ROWS: &str = "array_of_rows";
/// The first argument, as an operand of `=` beside the second one.
pub const OPERAND: &str = "operand_of_equality";
/// `x::numeric`, with a precision and a scale if these are declared, or those of a literal.
pub const TO_NUMERIC: &str = "to_numeric";
/// `negated() - x`: `-x` as a binary operator, in Hazelcast's dialect. The planner asks for the
/// result types of binary operators alone.
pub const NEGATED: &str = "negated";
/// `absolute() - x`: `ABS(x)` as a binary operator, in Hazelcast's dialect.
pub const ABSOLUTE: &str = "absolute";
/// The column that a join `USING` merges: the first argument, in the common type of both.
pub const MERGED_COLUMN: &str = "merged_column";
