//! Translates error texts of the planner and the kernels.
//!
//! Their texts never leave the engine. A known text becomes one of ours with an SQLSTATE. Any other
//! text becomes a general message, and the original goes to the log.

use filbert_data::FieldType;
use filbert_grid::query::{SqlError, SqlErrorCode, SqlSubject};

use super::{data_error, parsing_error};

/// Planner errors: a part of the original text, our text, and the SQLSTATE.
const PLANNING: [(&str, &str, &str); 42] = [
    ("Unary operator 'NOT'", "the argument of NOT must be type boolean", "42804"),
    ("Unary operator", "the operator does not take an operand of this type", "42883"),
    ("Negation only supports", "the operator - does not take an operand of this type", "42883"),
    ("non-boolean predicate", "the argument of WHERE must be type boolean", "42804"),
    ("Order by column out of bounds", "a position in ORDER BY is not in the select list", "42P10"),
    ("Order by index starts", "a position in ORDER BY is not in the select list", "42P10"),
    ("Incompatible inputs for Union", "the types of the queries of a set operation do not match", "42804"),
    ("to be an integer or null", "LIMIT and OFFSET must be whole numbers", "42804"),
    ("Aggregate functions are not allowed in the WHERE", "aggregate functions are not allowed in WHERE", "42803"),
    (
        "HAVING clause references",
        "a column in HAVING must appear in GROUP BY or be used in an aggregate function",
        "42803",
    ),
    ("nested inside", "aggregate function calls cannot be nested", "42803"),
    (
        "queries have different number of columns",
        "each query of a set operation must have the same number of columns",
        "42601",
    ),
    ("Inconsistent data length across values list", "VALUES lists must all be the same length", "42601"),
    ("Inconsistent data type across values list", "VALUES types do not match", "42804"),
    ("Values list cannot be", "a list of VALUES cannot be empty", "42601"),
    ("UNION", "the types of the queries of a set operation do not match", "42804"),
    ("subquery must return exactly one column", "subquery must return only one column", "42601"),
    ("Scalar subquery should only return one column", "subquery must return only one column", "42601"),
    ("should only return one column", "subquery must return only one column", "42601"),
    ("Too many columns", "subquery has too many columns", "42601"),
    (
        "ON expressions must appear in select list",
        "SELECT DISTINCT ON expressions must match initial ORDER BY expressions",
        "42P10",
    ),
    (
        "For SELECT DISTINCT, ORDER BY expressions",
        "for SELECT DISTINCT, ORDER BY expressions must appear in select list",
        "42P10",
    ),
    (
        "SELECT DISTINCT ON expressions must match",
        "SELECT DISTINCT ON expressions must match initial ORDER BY expressions",
        "42P10",
    ),
    ("SELECT * with no tables", "SELECT * with no tables specified is not valid", "42601"),
    (
        "RANGE requires exactly one ORDER BY",
        "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column",
        "42P20",
    ),
    ("GROUPS requires an ORDER BY", "GROUPS mode requires an ORDER BY clause", "42P20"),
    ("Invalid window frame", "the bounds of the window frame are not in order", "42P20"),
    ("The window ", "the window does not exist", "42704"),
    ("LIMIT must be", "LIMIT must not be negative", "2201W"),
    ("OFFSET must be", "OFFSET must not be negative", "2201X"),
    ("table function '", "the function that is called in FROM does not exist, or gives no rows", "42883"),
    ("Conflicting types for", "a parameter is used with different types: a cast tells which is meant", "42P08"),
    ("Placeholder", "could not determine data type of a parameter: a cast tells it", "42P18"),
    ("placeholder", "could not determine data type of a parameter: a cast tells it", "42P18"),
    ("must be boolean type", "the argument of AND, OR, NOT or a condition must be type boolean", "42804"),
    ("Filter predicate", "the argument of WHERE must be type boolean", "42804"),
    ("filter predicate", "the argument of WHERE must be type boolean", "42804"),
    (
        "require unique expression names",
        "two columns of a list have the same name and expression: an alias tells them apart",
        "42701",
    ),
    (
        "given as column alias",
        "a list of column names in FROM does not have as many names as there are columns",
        "42P10",
    ),
    ("duplicate", "a name is given twice", "42701"),
    ("Invalid qualifier", "missing FROM-clause entry for the table before .*", "42P01"),
    ("Column in ", "a column must appear in GROUP BY or be used in an aggregate function", "42803"),
];

/// Errors of functions for values that they do not accept.
const COMPUTING: [(&str, &str, &str); 14] = [
    (
        "Scalar subquery returned more than one row",
        "more than one row returned by a subquery used as an expression",
        "21000",
    ),
    ("negative count not allowed", "negative substring length not allowed", "22011"),
    ("negative substring length", "negative substring length not allowed", "22011"),
    ("field position must not be zero", "field position must not be zero", "22023"),
    ("square root of a negative number", "cannot take square root of a negative number", "2201F"),
    ("factorial of a negative number", "factorial of a negative number is undefined", "22003"),
    ("must be at least 1", "the start must be at least 1", "22011"),
    ("invalid Unicode scalar value", "the number is no character's", "54000"),
    ("Regular expression", "invalid regular expression", "2201B"),
    ("Regex", "invalid regular expression", "2201B"),
    ("regex", "invalid regular expression", "2201B"),
    ("null character", "null character not permitted", "54000"),
    ("out-of-domain", "input is out of range", "22003"),
    ("overflow", "value out of range", "22003"),
];

fn known(text: &str, table: &[(&str, &'static str, &'static str)]) -> Option<(&'static str, &'static str)> {
    table.iter().find(|(part, ..)| text.contains(part)).map(|(_, ours, sqlstate)| (*ours, *sqlstate))
}

/// Texts about features that the planner does not have, with the names of the features. Of two
/// texts that occur in one another, the longer one comes first.
const UNSERVED: &[(&str, &str)] = &[
    ("LATERAL syntax is not supported for", "LATERAL at the side of a join that may be extended by nulls"),
    ("Unsupported JOIN operator", "this kind of join"),
    ("UNNEST with ordinality", "WITH ORDINALITY"),
    ("expand to multiple columns are not supported with DISTINCT ON", "* beside DISTINCT ON"),
    ("Multiple recursive references", "more than one reference of a recursive query to itself"),
    ("Recursive CTE", "WITH RECURSIVE"),
    ("undecorrelated Subquery", "a subquery in this place that refers to an outer query"),
    ("Unsupported Subquery plan", "a subquery of this form that refers to an outer query"),
    ("Correlated scalar subquery", "a subquery of this form that refers to an outer query"),
    ("orrelated", "a reference to an outer query in this place"),
    ("outer reference", "a reference to an outer query in this place"),
    ("OuterReferenceColumn", "a reference to a field of a column of an outer query"),
    ("Unsupported OFFSET expression", "OFFSET with a computed number"),
    ("Unsupported LIMIT expression", "LIMIT with a computed number"),
    ("Conflicting ordering requirements", "aggregates with several orders in one SELECT"),
    ("rouping sets with", "GROUPING SETS of so many columns"),
    ("GROUPING aggregate function", "GROUPING in this place"),
    ("not supported in GroupValuesColumn", "GROUP BY and DISTINCT of values of this type"),
    ("data type in sort merge join comparator", "a join by values of this type"),
    ("string_agg", "string_agg with a computed delimiter"),
    ("COUNT DISTINCT with multiple arguments", "count(DISTINCT ..) of several values"),
    ("(DISTINCT)", "DISTINCT in this aggregate"),
    ("used as a sliding accumulator", "this aggregate over a window frame that begins at a later row"),
    ("ser-defined window function not supported", "this window function"),
    ("Unsupported Interval", "this form of INTERVAL"),
    ("Unsupported interval", "this form of INTERVAL"),
    ("nterval operator", "this form of INTERVAL"),
    ("LIMIT not supported in function arguments", "LIMIT within the arguments of a function"),
    ("HAVING not supported in function arguments", "HAVING within the arguments of a function"),
    ("not supported in function arguments", "this clause within the arguments of a function"),
    ("null treatment clause", "IGNORE NULLS twice"),
    ("NULLS are not permitted", "IGNORE NULLS for this function"),
    ("Only a single ordering expression", "WITHIN GROUP with several orders"),
    ("WITHIN GROUP", "WITHIN GROUP for this function"),
    ("Aggregate ORDER BY is not implemented", "ORDER BY within an aggregate that has OVER"),
    ("does not support named arguments", "a named argument of this function"),
    ("tuple", "a row in this place"),
    ("Tuple", "a row in this place"),
    ("ualified wildcard", "t.* in this place"),
    ("GetFieldAccess", "a field of a row in this place"),
    ("Dot access", "a field of a row in this place"),
    ("IsNormalized", "IS NORMALIZED"),
    ("ByteStringLiteral", "a bit string"),
    ("HexStringLiteral", "a bit string"),
    ("FETCH", "this form of FETCH"),
    ("ANY in LIKE", "LIKE ANY"),
];

/// The name of a feature from a text that ends with what the planner found, such as the name of a
/// type.
fn found_in(text: &str) -> Option<String> {
    const ENDINGS: [(&str, &str); 5] = [
        ("Unsupported SQL type ", "the type"),
        ("Unsupported binary operator: ", "the operator"),
        ("Unsupported SQL unary operator ", "the operator"),
        ("Unsupported ast node in sqltorel: ", "an expression of the kind"),
        ("Unsupported ast node ", "a relation of the kind"),
    ];
    ENDINGS.iter().find_map(|(before, what)| {
        let (_, found) = text.split_once(before)?;
        let end = found.find(|char: char| !(char.is_alphanumeric() || "_<>=!@#%^&|~*/+-?".contains(char)));
        let word = found.get(..end.unwrap_or(found.len())).filter(|word| !word.is_empty() && word.len() <= 60)?;
        Some(format!("{what} {word}"))
    })
}

/// The error of a statement that could not be planned.
pub(super) fn planning(text: &str) -> SqlError {
    if let Some(subject) = subject_of_plan(text) {
        let sqlstate = if matches!(subject, SqlSubject::Ungrouped { .. }) { "42803" } else { "42883" };
        return parsing_error(message_of(&subject)).with_sqlstate(sqlstate).about(subject);
    }
    match known(text, &PLANNING) {
        Some((ours, sqlstate)) => parsing_error(ours).with_sqlstate(sqlstate),
        None => unserved(text),
    }
}

/// The error of a feature that the planner does not implement.
pub(super) fn not_implemented(text: &str) -> SqlError {
    match text.split_once("Unsupported CAST from ").and_then(|(_, types)| types.split_once(" to ")) {
        Some((from, to)) => match (arrow_name(from), arrow_name(to)) {
            (Some(from), Some(to)) => parsing_error(format!("cannot cast type {from} to {to}")).with_sqlstate("42846"),
            _ => parsing_error("values of this type cannot be cast to the other type").with_sqlstate("42846"),
        },
        None => unserved(text),
    }
}

/// The error of a statement that uses an unsupported feature. It names the feature if the text of
/// the library tells it.
pub(super) fn unserved(text: &str) -> SqlError {
    let named = UNSERVED.iter().find(|(part, _)| text.contains(part)).map(|(_, feature)| (*feature).to_owned());
    let feature = named.or_else(|| found_in(text)).unwrap_or_else(|| {
        tracing::debug!(what = text, "a statement asks for what is not served");
        "a combination of clauses in this statement".to_owned()
    });
    parsing_error(format!("{feature} is not served")).with_sqlstate("0A000")
}

/// The error of a value that could not be computed.
pub(super) fn computing(text: &str) -> SqlError {
    if let Some(name) = text.strip_prefix("Unsupported data type ").and_then(|rest| rest.rsplit_once("for function ")) {
        let message =
            format!("the function {} does not take arguments of this type", name.1.trim_matches(['`', '.', ' ']));
        return parsing_error(message).with_sqlstate("42883");
    }
    match known(text, &COMPUTING) {
        Some((ours, sqlstate)) => data_error(ours).with_sqlstate(sqlstate),
        None => data_error("a value cannot be computed from the values that were found"),
    }
}

/// The error of a failed cast. The kernel's text contains Arrow types.
pub(super) fn casting(text: &str) -> SqlError {
    if let Some(subject) = miscast(text) {
        if let SqlSubject::OutOfRange { field_type } = &subject {
            let number = text.strip_prefix("Can't cast value ").and_then(|rest| rest.split_once(" to type "));
            let number = number.map_or("a number", |(number, _)| number);
            let message = format!("numeric overflow while converting {number} to {field_type}");
            return data_error(message).with_sqlstate("22003").about(subject);
        }
        return data_error(message_of(&subject)).with_sqlstate("22P02").about(subject);
    }
    if text.starts_with("Casting from ") || text.contains("not supported") {
        return parsing_error("values of this type cannot be cast to the other type").with_sqlstate("42846");
    }
    if text.contains("decimal") || text.contains("Decimal") || text.contains("overflow") {
        return overflowing(text);
    }
    data_error("a value cannot be cast to the type that is asked for").with_sqlstate("22P02")
}

/// The error of an argument that a kernel does not accept.
pub(super) fn argument(text: &str) -> SqlError {
    if text.contains("Decimal") || text.contains("decimal") || text.contains("precision") {
        return overflowing(text);
    }
    computing(text)
}

/// The error of a number that a decimal type has no room for: a declared type, or the type of all
/// numbers without a declared one.
fn overflowing(text: &str) -> SqlError {
    let is_free = text.contains("precision 76") || text.contains("(76, 38)");
    let message = if is_free { "value overflows numeric format" } else { "numeric field overflow" };
    data_error(message).with_sqlstate("22003")
}

/// The default message of an error that dialects word differently.
fn message_of(subject: &SqlSubject) -> String {
    match subject {
        SqlSubject::Function { name, arguments: None, nearest: Some(nearest) } => {
            format!("there is no function '{name}', did you mean '{nearest}'?")
        }
        SqlSubject::Function { name, arguments: None, .. } => format!("there is no function '{name}'"),
        SqlSubject::Function { name, arguments: Some(arguments), .. } => format!(
            "Cannot apply '{}' function to [{}] (consider adding an explicit CAST)",
            name.to_uppercase(),
            names(arguments, ", ")
        ),
        SqlSubject::Operator { sign, arguments } => {
            format!("Cannot apply '{sign}' operator to [{}] (consider adding an explicit CAST)", names(arguments, ", "))
        }
        SqlSubject::Ungrouped { name } => {
            format!("the column '{name}' must appear in GROUP BY or be used in an aggregate function")
        }
        SqlSubject::Text { text, field_type } => format!("cannot parse VARCHAR value '{text}' to {field_type}"),
        SqlSubject::OutOfRange { field_type } => {
            format!("numeric overflow while converting to {field_type}: the number is out of range")
        }
        other => format!("the statement cannot be understood: {other:?}"),
    }
}

fn names(types: &[FieldType], between: &str) -> String {
    types.iter().map(ToString::to_string).collect::<Vec<_>>().join(between)
}

/// DataFusion's message for wrong argument types; `name(type, type)` in quotes follows.
const NO_SUCH_SIGNATURE: &str = "No function matches the given name and argument types '";

fn subject_of_plan(text: &str) -> Option<SqlSubject> {
    if let Some((_, rest)) = text.split_once(NO_SUCH_SIGNATURE) {
        let (name, rest) = rest.split_once('(')?;
        let (types, _) = rest.split_once(")'")?;
        let arguments = type_list(types).into_iter().map(arrow_name).collect();
        return Some(SqlSubject::Function { name: name.to_owned(), arguments, nearest: None });
    }
    if let Some(rest) = text.strip_prefix("Invalid function '") {
        let (name, rest) = rest.split_once('\'')?;
        let nearest = rest.split('\'').nth(1).map(str::to_owned);
        return Some(SqlSubject::Function { name: name.to_owned(), arguments: None, nearest });
    }
    let coerced = text.split_once("common type to coerce ").or_else(|| text.split_once("Failed to coerce types "));
    if let Some((_, rest)) = coerced {
        let (types, sign) = rest.split_once(" in ")?;
        let (left, right) = types.split_once(" and ")?;
        let sign = sign.trim_end_matches(" expression").to_owned();
        return Some(SqlSubject::Operator { sign, arguments: vec![arrow_name(left)?, arrow_name(right)?] });
    }
    if text.contains("must appear in the GROUP BY clause") {
        let name = text.split('"').nth(1)?;
        // The library also reports constants, in its own notation.
        let is_name = name.chars().all(|char| char.is_alphanumeric() || matches!(char, '_' | '$' | '.'));
        return is_name.then(|| SqlSubject::Ungrouped { name: name.to_owned() });
    }
    operator(text)
}

/// `.. operation <type> <operator> <type> ..`
fn operator(text: &str) -> Option<SqlSubject> {
    let rest = ["comparison operation ", "boolean operation ", "regex operation ", "concat operation "]
        .iter()
        .chain(&["bitwise operation ", "arithmetic expression ", "AtAt operation ", "arithmetic operation "])
        .chain(&["decimal operation ", "temporal operation ", " operation "])
        .find_map(|kind| Some(text.split_once(kind)?.1))?;
    let rest = rest.split(" to valid types").next()?.split(": ").next()?;
    let (left, rest) = take_type(rest)?;
    let (sign, right) = rest.trim_start().rsplit_once(' ').map_or((rest, ""), |(sign, right)| (sign, right));
    let (sign, right) = match take_type(right) {
        Some((right, _)) => (sign, right),
        // The name of a type may contain spaces.
        None => {
            let (sign, right) = rest.trim_start().split_once(' ')?;
            (sign, take_type(right)?.0)
        }
    };
    Some(SqlSubject::Operator { sign: sign.trim().to_owned(), arguments: vec![arrow_name(left)?, arrow_name(right)?] })
}

/// The type at the start of a text, and the rest.
fn take_type(text: &str) -> Option<(&str, &str)> {
    let mut depth = 0_usize;
    for (at, char) in text.char_indices() {
        match char {
            '(' => depth += 1,
            ')' => depth = depth.checked_sub(1)?,
            ' ' if depth == 0 => return Some((text.get(..at)?, text.get(at..)?)),
            _ => {}
        }
    }
    (!text.is_empty() && depth == 0).then_some((text, ""))
}

/// The types of a list. Their names may contain commas in parentheses.
fn type_list(text: &str) -> Vec<&str> {
    let (mut types, mut depth, mut start) = (Vec::new(), 0_usize, 0);
    for (at, char) in text.char_indices() {
        match char {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                types.extend(text.get(start..at).map(str::trim));
                start = at + 1;
            }
            _ => {}
        }
    }
    types.extend(text.get(start..).map(str::trim).filter(|name| !name.is_empty()));
    types
}

/// Arrow's message for a failed cast.
fn miscast(text: &str) -> Option<SqlSubject> {
    // The second one is of texts as booleans.
    let beginnings = ["Cannot cast string '", "Cannot cast value '"];
    if let Some(rest) = beginnings.iter().find_map(|beginning| text.strip_prefix(beginning)) {
        let (text, rest) = rest.rsplit_once("' to value of ")?;
        let field_type = arrow_name(rest.trim_end_matches(" type"))?;
        return Some(SqlSubject::Text { text: text.to_owned(), field_type });
    }
    let (_, name) = text.strip_prefix("Can't cast value ")?.split_once(" to type ")?;
    Some(SqlSubject::OutOfRange { field_type: arrow_name(name)? })
}

fn arrow_name(name: &str) -> Option<FieldType> {
    let (base, inside) = name.split_once('(').map_or((name, ""), |(base, inside)| (base, inside.trim_end_matches(')')));
    Some(match base {
        "Boolean" => FieldType::Boolean,
        "Int8" => FieldType::TinyInt,
        "Int16" | "UInt8" => FieldType::SmallInt,
        "Int32" | "UInt16" => FieldType::Integer,
        "Int64" | "UInt32" | "UInt64" => FieldType::BigInt,
        "Float16" | "Float32" => FieldType::Real,
        "Float64" => FieldType::Double,
        "Decimal32" | "Decimal64" | "Decimal128" | "Decimal256" => FieldType::Decimal(None),
        "Date32" | "Date64" => FieldType::Date,
        "Time32" | "Time64" => FieldType::Time,
        "Timestamp" if inside.contains("UTC") || inside.contains("Some") => FieldType::TimestampTz,
        "Timestamp" => FieldType::Timestamp,
        "Interval" | "Duration" => FieldType::Interval,
        "Utf8" | "LargeUtf8" | "Utf8View" | "Null" => FieldType::Varchar,
        "Binary" | "LargeBinary" | "BinaryView" | "FixedSizeBinary" => FieldType::Binary,
        "List" | "LargeList" | "FixedSizeList" => {
            let item = inside.rsplit(' ').next().and_then(arrow_name).unwrap_or(FieldType::Varchar);
            FieldType::Array(Box::new(item))
        }
        _ => return None,
    })
}

/// A defect of the engine.
pub(super) fn internal() -> SqlError {
    let text = "the statement failed because of a defect in the server, whose log tells more";
    SqlError::new(SqlErrorCode::Generic, text).with_sqlstate("XX000")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(error: &SqlError, sqlstate: &str, message: &str) {
        assert_eq!((error.sqlstate(), error.message.as_str()), (sqlstate, message));
    }

    #[test]
    fn operators_and_functions_are_told_with_our_types() {
        check(
            &planning("Cannot coerce arithmetic expression Int64 + Timestamp(µs, \"UTC\") to valid types"),
            "42883",
            "Cannot apply '+' operator to [BIGINT, TIMESTAMP WITH TIME ZONE] (consider adding an explicit CAST)",
        );
        check(
            &planning("Cannot infer common argument type for comparison operation Int64 IS DISTINCT FROM Boolean"),
            "42883",
            "Cannot apply 'IS DISTINCT FROM' operator to [BIGINT, BOOLEAN] (consider adding an explicit CAST)",
        );
        check(
            &planning(
                "No function matches the given name and argument types 'f(Decimal128(3, 2), Utf8)'. You might need",
            ),
            "42883",
            "Cannot apply 'F' function to [DECIMAL, VARCHAR] (consider adding an explicit CAST)",
        );
    }

    #[test]
    fn what_is_not_known_is_told_without_the_words_of_a_library() {
        for error in [planning("Xyz"), computing("Xyz"), casting("Xyz"), argument("Xyz")] {
            assert!(!error.message.contains("Xyz"), "{error:?}");
        }
    }
}
