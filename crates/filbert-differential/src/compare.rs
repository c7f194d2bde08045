//! Compares the outcomes of two servers.

use std::collections::BTreeMap;

use crate::outcome::{Answer, Column, Outcome, Row};

/// The kind of a difference in Filbert's outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// Different rows.
    Rows,
    /// The same rows in a different order, although the statement specifies the order.
    Order,
    /// Different column types.
    Types,
    /// Different column names.
    Names,
    /// A different command tag, and so a different number of rows.
    Tag,
    /// Different rows in the table after a change.
    Table,
    /// Filbert accepts a statement that the other server rejects.
    Accepted,
    /// Filbert reports an error about a value, and the other server returns a result.
    Failed,
    /// The second execution of the same statement had a different result.
    Unstable,
    /// The parts of a partitioned query do not add up to the whole.
    Partition,
    /// The state after concurrent changes contradicts the acknowledgements.
    Race,
    /// The error text comes from a library or shows a defect, such as a panic.
    Foreign,
    /// The connection was lost.
    Lost,
    /// No reply in time.
    Timeout,
}

impl Kind {
    const ALL: [Kind; 14] = [
        Kind::Rows,
        Kind::Order,
        Kind::Types,
        Kind::Names,
        Kind::Tag,
        Kind::Table,
        Kind::Accepted,
        Kind::Failed,
        Kind::Unstable,
        Kind::Partition,
        Kind::Race,
        Kind::Foreign,
        Kind::Lost,
        Kind::Timeout,
    ];

    pub(crate) fn named(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// A description of the kind.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Rows => "other rows",
            Kind::Order => "other order",
            Kind::Types => "other types",
            Kind::Names => "other names of columns",
            Kind::Tag => "other command tag",
            Kind::Table => "other rows in the table after a change",
            Kind::Accepted => "accepted, though refused by the other",
            Kind::Failed => "an error about values where the other answers",
            Kind::Unstable => "another answer the second time",
            Kind::Partition => "the parts of a condition are not the whole",
            Kind::Race => "lost in a race",
            Kind::Foreign => "a library's words or a panic",
            Kind::Lost => "connection lost",
            Kind::Timeout => "no answer in time",
        }
    }
}

/// The result of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Same,
    /// Both servers reject the statement.
    BothRefuse,
    /// Filbert rejects the statement, for this cause. This is permitted and counted.
    Refused(String),
    Different(Kind),
}

/// The rules for the comparison of rows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct How {
    pub(crate) is_ordered: bool,
    /// Floats may differ in their last digits.
    pub(crate) is_inexact: bool,
    /// Filbert may accept statements that the other server rejects, and column names may differ.
    pub(crate) is_superset: bool,
    /// Parameters have no declared types. Filbert may find one where the other server finds none or
    /// several.
    pub(crate) is_inferring: bool,
}

/// PostgreSQL's errors if it cannot determine the type of a parameter, or determines one that is
/// not accepted: of ambiguous and unknown functions and operators, and of other types.
const UNDETERMINED: [&str; 6] = ["42P08", "42P18", "42725", "42883", "42804", "42846"];

/// Compares Filbert's outcome with the outcome of the other server.
pub(crate) fn compare(other: &Outcome, filbert: &Outcome, how: How) -> Verdict {
    match (other, filbert) {
        (_, Outcome::Lost(_)) => Verdict::Different(Kind::Lost),
        (_, Outcome::Timeout) => Verdict::Different(Kind::Timeout),
        // A timeout of the other server is not comparable.
        (Outcome::Failure { sqlstate, .. }, _) if sqlstate == "57014" => Verdict::BothRefuse,
        (_, Outcome::Failure { sqlstate, message, rest })
            if sqlstate.starts_with("XX") || is_foreign(message) || is_foreign(rest) =>
        {
            Verdict::Different(Kind::Foreign)
        }
        (Outcome::Answer(_), Outcome::Failure { sqlstate, .. }) if sqlstate.starts_with("22") => {
            Verdict::Different(Kind::Failed)
        }
        (Outcome::Answer(_), Outcome::Failure { sqlstate, message, .. }) => Verdict::Refused(cause(sqlstate, message)),
        (Outcome::Answer(other), Outcome::Answer(filbert)) => answers(other, filbert, how),
        (Outcome::Failure { .. }, Outcome::Answer(_)) if how.is_superset => Verdict::BothRefuse,
        (Outcome::Failure { sqlstate, .. }, Outcome::Answer(_))
            if how.is_inferring && UNDETERMINED.contains(&sqlstate.as_str()) =>
        {
            Verdict::BothRefuse
        }
        (Outcome::Failure { .. }, Outcome::Answer(_)) => Verdict::Different(Kind::Accepted),
        // A failure of the other server to return a result is not comparable.
        _ => Verdict::BothRefuse,
    }
}

fn answers(other: &Answer, filbert: &Answer, how: How) -> Verdict {
    let oids = |answer: &Answer| answer.columns.iter().map(|column| column.oid).collect::<Vec<_>>();
    let names = |answer: &Answer| answer.columns.iter().map(|column| column.name.clone()).collect::<Vec<_>>();
    let floats: Vec<bool> =
        other.columns.iter().map(|column| how.is_inexact && is_inexact(column, how.is_superset)).collect();
    let types = oids(other);
    let (mut of_other, mut of_filbert) = (plain(&other.rows, &types), plain(&filbert.rows, &types));
    if !same_rows(&of_other, &of_filbert, &floats, false) {
        return Verdict::Different(Kind::Rows);
    }
    if oids(other) != oids(filbert) {
        return Verdict::Different(Kind::Types);
    }
    if how.is_ordered {
        // The order of equal numbers is not defined.
        [&mut of_other, &mut of_filbert].into_iter().for_each(|rows| without_signs_of_zeros(rows, &types));
        if !same_rows(&of_other, &of_filbert, &floats, true) {
            return Verdict::Different(Kind::Order);
        }
    }
    if !how.is_superset && names(other) != names(filbert) {
        return Verdict::Different(Kind::Names);
    }
    if other.tag != filbert.tag {
        return Verdict::Different(Kind::Tag);
    }
    Verdict::Same
}

/// Whether the values of a column may be inexact. The columns of a Hazelcast member have the names
/// of their types.
fn is_inexact(column: &Column, is_hazelcast: bool) -> bool {
    match is_hazelcast {
        true => ["Real", "Double", "Decimal"].iter().any(|name| column.name.starts_with(name)),
        false => FLOATS.contains(&column.oid),
    }
}

/// PostgreSQL's type OIDs: `numeric`; `json` and `jsonb`; `real` and `double precision`; arrays.
const NUMERIC: u32 = 1700;
const DOCUMENTS: [u32; 2] = [114, 3802];
const FLOATS: [u32; 2] = [700, 701];
/// Arrays of `numeric`.
const NUMERICS: u32 = 1231;
const ARRAYS: [u32; 6] = [1005, 1007, 1009, 1014, 1015, 1016];
/// The position of the display scale in the hexadecimal text of a binary `numeric`. It follows the
/// number of digit groups, the weight of the first group and the sign, each of two bytes.
const SCALE: std::ops::Range<usize> = 12..16;
/// The position of the null flag in the hexadecimal text of a binary array. It follows the number
/// of dimensions. PostgreSQL also sets the flag for an array from which nulls were cut off.
const MAY_HOLD_NULLS: std::ops::Range<usize> = 8..16;

/// Normalizes rows: removes trailing zeros of numerics, which are a documented decision, and the
/// parts of binary forms that do not belong to the value.
fn plain(rows: &[Row], types: &[u32]) -> Vec<Row> {
    let one = |(index, value): (usize, &Option<String>)| {
        let (text, oid) = (value.as_ref()?, *types.get(index)?);
        Some(match text.strip_prefix("0x") {
            Some(binary) if oid == NUMERIC => format!("0x{}", without(binary, SCALE)),
            Some(binary) if ARRAYS.contains(&oid) => format!("0x{}", without(binary, MAY_HOLD_NULLS)),
            Some(binary) if FLOATS.contains(&oid) => of_bits(binary).unwrap_or_else(|| text.clone()),
            // A binary form that happens to be text.
            None if FLOATS.contains(&oid) && text.parse::<f64>().is_err() => {
                let binary: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
                of_bits(&binary).unwrap_or_else(|| text.clone())
            }
            None if oid == NUMERIC => shortest(text).to_owned(),
            // The binary form of a `jsonb` is its text after a version byte.
            Some(binary) if DOCUMENTS.contains(&oid) => {
                text_of(binary).map_or_else(|| text.clone(), |text| with_shortest_numbers(&text))
            }
            None if DOCUMENTS.contains(&oid) || oid == NUMERICS => with_shortest_numbers(text),
            _ => text.clone(),
        })
    };
    rows.iter().map(|row| row.iter().enumerate().map(one).collect()).collect()
}

/// A number without trailing zeros of its fraction.
fn shortest(number: &str) -> &str {
    match number.contains('.') && !number.contains(['e', 'E']) {
        true => number.trim_end_matches('0').trim_end_matches('.'),
        false => number,
    }
}

/// A JSON document with all numbers in shortest form. Quoted texts are unchanged.
fn with_shortest_numbers(document: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(document.len()), document);
    let (mut is_quoted, mut is_escaped) = (false, false);
    while let Some(character) = rest.chars().next() {
        if !is_quoted && character.is_ascii_digit() {
            let is_part = |next: char| next.is_ascii_digit() || matches!(next, '.' | 'e' | 'E' | '+' | '-');
            let (number, after) = rest.split_at(rest.find(|next| !is_part(next)).unwrap_or(rest.len()));
            out.push_str(shortest(number));
            rest = after;
            continue;
        }
        (is_quoted, is_escaped) = match character {
            '"' if !is_escaped => (!is_quoted, false),
            '\\' => (is_quoted, is_quoted && !is_escaped),
            _ => (is_quoted, false),
        };
        out.push(character);
        rest = rest.get(character.len_utf8()..).unwrap_or_default();
    }
    out
}

/// Decodes a hexadecimal text.
fn text_of(binary: &str) -> Option<String> {
    let bytes: Option<Vec<u8>> =
        (0..binary.len()).step_by(2).map(|at| u8::from_str_radix(binary.get(at..at + 2)?, 16).ok()).collect();
    String::from_utf8(bytes?).ok()
}

/// Removes the sign of floating-point zeros.
pub(crate) fn without_signs_of_zeros(rows: &mut [Row], types: &[u32]) {
    for row in rows {
        for (value, _) in row.iter_mut().zip(types).filter(|(_, oid)| FLOATS.contains(oid)) {
            if value.as_deref() == Some("-0") {
                *value = Some("0".to_owned());
            }
        }
    }
}

/// Converts a float from its hexadecimal binary form to the shortest text that identifies it.
fn of_bits(binary: &str) -> Option<String> {
    match binary.len() {
        8 => u32::from_str_radix(binary, 16).ok().map(|bits| f32::from_bits(bits).to_string()),
        16 => u64::from_str_radix(binary, 16).ok().map(|bits| f64::from_bits(bits).to_string()),
        _ => None,
    }
}

/// Removes a part of a hexadecimal binary form.
fn without(binary: &str, part: std::ops::Range<usize>) -> String {
    match (binary.get(..part.start), binary.get(part.end..)) {
        (Some(head), Some(rest)) => format!("{head}{rest}"),
        _ => binary.to_owned(),
    }
}

/// Whether the rows are equal, as lists or as multisets.
pub(crate) fn same_rows(one: &[Row], other: &[Row], floats: &[bool], is_ordered: bool) -> bool {
    let seen = |rows: &[Row]| -> Vec<Row> { rows.iter().map(|row| rounded(row, floats)).collect() };
    let (mut one, mut other) = (seen(one), seen(other));
    if !is_ordered {
        one.sort();
        other.sort();
    }
    one.len() == other.len() && one.iter().zip(&other).all(|(one, other)| same_row(one, other, floats))
}

fn same_row(one: &Row, other: &Row, floats: &[bool]) -> bool {
    one.len() == other.len()
        && one.iter().zip(other).enumerate().all(|(index, (one, other))| {
            one == other
                || (floats.get(index).copied().unwrap_or_default()
                    && one.as_deref().zip(other.as_deref()).is_some_and(is_close))
        })
}

/// Rounds inexact floats of a row to a few digits, so that rows with close values are sorted alike.
fn rounded(row: &Row, floats: &[bool]) -> Row {
    let value = |(index, value): (usize, &Option<String>)| {
        let number = value.as_ref().filter(|_| floats.get(index).copied().unwrap_or_default())?.parse::<f64>().ok()?;
        let zero_or_number = if number.abs() < 1e-9 { 0.0 } else { number };
        Some(format!("{zero_or_number:.4e}"))
    };
    row.iter().enumerate().map(|(index, text)| value((index, text)).or_else(|| text.clone())).collect()
}

/// Whether two floats differ by no more than two sums of the same numbers in different orders.
fn is_close((one, other): (&str, &str)) -> bool {
    let (Ok(one), Ok(other)) = (one.parse::<f64>(), other.parse::<f64>()) else { return false };
    (one - other).abs() <= 2e-4 * one.abs().max(other.abs())
}

/// Words in error texts that only Arrow, DataFusion, sqlparser or Rust use.
const FOREIGN: [&str; 42] = [
    "DataFusion",
    "datafusion",
    "Arrow",
    "arrow",
    "Utf8",
    "Int8",
    "Int16",
    "Int32",
    "Int64",
    "UInt",
    "Float32",
    "Float64",
    "Decimal128",
    "Decimal256",
    "Date32",
    "Time64",
    "Timestamp(",
    "Interval(",
    "MonthDayNano",
    "ScalarValue",
    "This feature is not implemented",
    "not implemented",
    "nternal error",
    "panicked",
    "cancelled by the user",
    "Optimizer",
    "LogicalPlan",
    "ScalarFunction",
    "type_coercion",
    "unwrap",
    "ParserError",
    "sql parser error",
    "Schema error",
    "Error during planning",
    "Invalid argument error",
    "Physical plan",
    "physical expr",
    "Parser error",
    "Cast error",
    "Compute error",
    "External error",
    "List(",
];

fn is_foreign(text: &str) -> bool {
    FOREIGN.iter().any(|word| text.contains(word))
}

/// The cause of a rejection, without the names and numbers of the statement.
pub(crate) fn cause(sqlstate: &str, message: &str) -> String {
    const CHARACTERS_MAX: usize = 110;
    let mut cause = format!("{sqlstate} ");
    let mut quote = None;
    for character in message.chars() {
        match (quote, character) {
            (Some(open), _) if open == character => {
                quote = None;
                cause.push(character);
            }
            (Some(_), _) => {}
            (None, '"' | '\'') => {
                quote = Some(character);
                cause.push(character);
            }
            (None, digit) if digit.is_ascii_digit() => {
                if !cause.ends_with('9') {
                    cause.push('9');
                }
            }
            (None, other) => cause.push(other),
        }
    }
    cause.chars().take(CHARACTERS_MAX).collect()
}

/// Sorts names by their counts, the most frequent first.
pub(crate) fn by_count(counts: &BTreeMap<String, usize>) -> Vec<(&str, usize)> {
    let mut list: Vec<(&str, usize)> = counts.iter().map(|(name, count)| (name.as_str(), *count)).collect();
    list.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    list
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Column;

    fn rows(values: &[&str], oid: u32) -> Outcome {
        let rows = values.iter().map(|value| vec![Some((*value).to_owned())]).collect();
        Outcome::Answer(Answer { columns: vec![Column { name: "c".to_owned(), oid }], rows, ..Answer::default() })
    }

    fn refused(sqlstate: &str, message: &str) -> Outcome {
        Outcome::Failure { sqlstate: sqlstate.to_owned(), message: message.to_owned(), rest: String::new() }
    }

    #[test]
    fn order_counts_where_it_is_told() {
        let ordered = How { is_ordered: true, ..How::default() };
        assert_eq!(compare(&rows(&["1", "2"], 23), &rows(&["2", "1"], 23), How::default()), Verdict::Same);
        assert_eq!(compare(&rows(&["1", "2"], 23), &rows(&["2", "1"], 23), ordered), Verdict::Different(Kind::Order));
        assert_eq!(compare(&rows(&["1"], 23), &rows(&["1"], 20), ordered), Verdict::Different(Kind::Types));
    }

    #[test]
    fn floats_may_differ_where_it_is_allowed() {
        let inexact = How { is_inexact: true, ..How::default() };
        assert_eq!(compare(&rows(&["0.1"], 701), &rows(&["0.10000000000000002"], 701), inexact), Verdict::Same);
        let exact = compare(&rows(&["0.1"], 701), &rows(&["0.10000000000000002"], 701), How::default());
        assert_eq!(exact, Verdict::Different(Kind::Rows));
        assert_eq!(compare(&rows(&["0.1"], 1700), &rows(&["0.11"], 1700), inexact), Verdict::Different(Kind::Rows));
    }

    #[test]
    fn zeros_at_the_end_of_numerics_do_not_count() {
        assert_eq!(compare(&rows(&["1.50", "2.0"], 1700), &rows(&["1.5", "2"], 1700), How::default()), Verdict::Same);
        let (long, short) = ("0x000200000000000200021388", "0x000200000000000100021388");
        assert_eq!(compare(&rows(&[long], 1700), &rows(&[short], 1700), How::default()), Verdict::Same);
        let arrays = compare(&rows(&["{1.50,NULL,2.0}"], 1231), &rows(&["{1.5,NULL,2}"], 1231), How::default());
        assert_eq!(arrays, Verdict::Same);
        let text = compare(&rows(&["1.50"], 25), &rows(&["1.5"], 25), How::default());
        assert_eq!(text, Verdict::Different(Kind::Rows));
        let tens = compare(&rows(&["10"], 1700), &rows(&["1"], 1700), How::default());
        assert_eq!(tens, Verdict::Different(Kind::Rows));
    }

    #[test]
    fn zeros_at_the_end_of_numbers_in_documents_do_not_count() {
        for oid in DOCUMENTS {
            let same = compare(
                &rows(&[r#"{"a": 0.0010, "b": [1.50, "1.50"]}"#], oid),
                &rows(&[r#"{"a": 0.001, "b": [1.5, "1.50"]}"#], oid),
                How::default(),
            );
            assert_eq!(same, Verdict::Same);
            for (one, other) in
                [(r#"["1.50"]"#, r#"["1.5"]"#), ("[10]", "[1]"), ("[1.05]", "[1.5]"), (r#"["\"1.50"]"#, r#"["\"1.5"]"#)]
            {
                let found = compare(&rows(&[one], oid), &rows(&[other], oid), How::default());
                assert_eq!(found, Verdict::Different(Kind::Rows));
            }
        }
        let (long, short) = ("0x015b312e35305d", "0x015b312e355d");
        assert_eq!(compare(&rows(&[long], 3802), &rows(&[short], 3802), How::default()), Verdict::Same);
    }

    #[test]
    fn zeros_of_both_signs_are_in_no_order() {
        let ordered = How { is_ordered: true, ..How::default() };
        assert_eq!(compare(&rows(&["-0", "0", "1"], 701), &rows(&["0", "-0", "1"], 701), ordered), Verdict::Same);
        let other = compare(&rows(&["-0", "1"], 701), &rows(&["0", "1"], 701), ordered);
        assert_eq!(other, Verdict::Different(Kind::Rows));
    }

    #[test]
    fn refusals_are_told_apart() {
        let answer = rows(&["1"], 23);
        let plain = refused("0A000", "\"x\" takes 7 values");
        assert_eq!(compare(&answer, &plain, How::default()), Verdict::Refused("0A000 \"\" takes 9 values".to_owned()));
        let foreign = refused("0A000", "cannot cast Utf8View");
        assert_eq!(compare(&plain, &foreign, How::default()), Verdict::Different(Kind::Foreign));
        assert_eq!(compare(&plain, &answer, How::default()), Verdict::Different(Kind::Accepted));
        assert_eq!(
            compare(&answer, &refused("22003", "out of range"), How::default()),
            Verdict::Different(Kind::Failed)
        );
    }
}
