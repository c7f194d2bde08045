//! Names of functions that statements are rewritten to call, and that nobody writes. Whoever computes them finds their names here.

/// `array_like(values, item)`: an array of items of the type of the second argument.
pub const ARRAY_LIKE: &str = "array_like";
/// `x operator ANY (array)`.
pub const COMPARE_ANY: &str = "compare_any";
/// `x operator ALL (array)`.
pub const COMPARE_ALL: &str = "compare_all";
/// `ARRAY(SELECT ..)` over rows of several columns.
pub const ARRAY_OF_ROWS: &str = "array_of_rows";
/// The first argument, as an operand of `=` beside the second one.
pub const OPERAND: &str = "operand_of_equality";
