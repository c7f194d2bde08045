//! Values of each type: common values, which are often equal, and unusual values, which often
//! reveal bugs.

use super::functions::Special;
use crate::random::Random;
use crate::tree::{Dialect, Expr, Literal, Type};

/// Common values, so that conditions select rows.
fn common(kind: Type) -> &'static [&'static str] {
    match kind {
        Type::Int2 | Type::Int4 | Type::Int8 => &["0", "1", "2", "3", "5", "7", "10", "-1", "-4", "33", "100"],
        Type::Numeric => &["0", "1", "0.5", "2.50", "-1.25", "10", "99.99", "0.001", "-7", "3.1"],
        Type::Real | Type::Double => &["0", "1", "0.5", "-2.5", "1.25", "3", "100", "-0.75", "2.5", "1e3"],
        Type::Text | Type::Varchar | Type::Char => {
            &["", "a", "b", "ab", "abc", "A", "Ab", "x y", "10", "-1", "zz", "ba"]
        }
        Type::Bool => &["t", "f"],
        Type::Date => &["2024-01-01", "2024-02-29", "2023-12-31", "2000-01-01", "1999-12-31", "2024-03-10"],
        Type::Timestamp => &[
            "2024-01-01 00:00:00",
            "2024-02-29 12:30:45.5",
            "2023-12-31 23:59:59.999999",
            "2000-01-01 06:00:00",
            "1999-12-31 00:00:01",
        ],
        Type::Timestamptz => &[
            "2024-01-01 00:00:00+00",
            "2024-02-29 12:30:45.5+02",
            "2023-12-31 23:59:59.999999-08",
            "2000-01-01 06:00:00+00",
        ],
        Type::Time => &["00:00:00", "12:30:45.5", "23:59:59.999999", "06:00:00", "01:02:03"],
        Type::Interval => &["1 day", "1 mon", "1 year 2 mons", "-3 days", "01:30:00", "00:00:00", "2 mons -1 day"],
        Type::Uuid => &[
            "00000000-0000-0000-0000-000000000000",
            "123e4567-e89b-12d3-a456-426614174000",
            "ffffffff-ffff-ffff-ffff-ffffffffffff",
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        ],
        Type::Bytea => &["\\x", "\\x00", "\\x01ff", "\\xdeadbeef", "\\x6162"],
        Type::Jsonb => &[
            "{}",
            "[]",
            "null",
            "1",
            "\"a\"",
            "true",
            "{\"a\": 1}",
            "{\"a\": {\"b\": 2}, \"c\": null}",
            "[1, 2, 3]",
            "{\"b\": \"x\", \"a\": [1, {\"k\": 0.5}]}",
            "[null, \"a\", {}]",
        ],
        Type::Ints => &["{}", "{1}", "{1,2,3}", "{1,NULL,3}", "{3,2,1}", "{NULL}", "{5,5}"],
        Type::Texts => &["{}", "{a}", "{a,b}", "{a,NULL}", "{\"x y\",\"\"}", "{b,a,b}"],
    }
}

/// Limits of types, and texts with special characters.
fn odd(kind: Type) -> &'static [&'static str] {
    match kind {
        Type::Int2 => &["32767", "-32768"],
        Type::Int4 => &["2147483647", "-2147483648", "65536"],
        Type::Int8 => &["9223372036854775807", "-9223372036854775808", "4294967296"],
        Type::Numeric => {
            &["123456789012.3456", "-0.0000001", "1234567890123456789", "NaN", "0.00", "1e10", "99999.995"]
        }
        Type::Real => &["NaN", "Infinity", "-Infinity", "-0", "3.4e38", "1e-37", "0.1"],
        Type::Double => &["NaN", "Infinity", "-Infinity", "-0", "1.7e308", "1e-300", "0.1", "123456789.123456789"],
        Type::Text | Type::Varchar => &[
            "%", "_", "\\", "a%b", "a_b", "a\\b", "100%", "\\%", "ä", "Straße", "İ", "日本", "😀", "e\u{301}", "it's",
            "\"q\"", " a ", "a\nb", "\t", "NULL", "{1}", "$1", "--", "ǆ", "ﬁ",
        ],
        Type::Char => &["%", "_a", "ä", " a", "a  ", "日本"],
        Type::Bool => &["t"],
        Type::Date => &["infinity", "-infinity", "0001-01-01", "9999-12-31", "1970-01-01"],
        Type::Timestamp => {
            &["infinity", "-infinity", "0001-01-01 00:00:00", "9999-12-31 23:59:59", "1969-12-31 23:59:59.999999"]
        }
        Type::Timestamptz => &["infinity", "-infinity", "1970-01-01 00:00:00+00", "2024-03-31 01:30:00+00"],
        Type::Time => &["24:00:00", "00:00:00.000001"],
        Type::Interval => &["-1 mon +1 day -00:00:01", "100 years", "00:00:00.000001", "1 mon 30 days"],
        Type::Uuid => &["A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"],
        Type::Bytea => &["\\x5c25", "\\x00ff00", "\\xc3a4"],
        Type::Jsonb => &[
            "{\"a\": 1, \"a\": 2}",
            "\"ä\\n\\u0041\"",
            "1.50",
            "{ \"b\" :1 ,\"aa\": [] }",
            "12345678901234567890",
            "{\"\": 1}",
        ],
        Type::Ints => &["{2147483647}", "{-1,0,1,2,3,4,5}"],
        Type::Texts => &["{\"a,b\",\"\\\"\"}", "{NULL,\"NULL\"}", "{ä,日本}", "{\"\\\\\"}"],
    }
}

/// Chooses a value in text form. `odd_percent` is the percentage of unusual values.
pub(crate) fn text(random: &mut Random, dialect: Dialect, kind: Type, odd_percent: usize) -> &'static str {
    let is_odd = random.chance(odd_percent);
    let text = random.word(if is_odd { odd(kind) } else { common(kind) });
    let is_only_postgres = ["NaN", "infinity", "-infinity", "Infinity", "-Infinity", "-0", "24:00:00"].contains(&text);
    if dialect == Dialect::Hazelcast && is_only_postgres { random.word(common(kind)) } else { text }
}

/// Generates a literal that may become a parameter.
pub(crate) fn literal(random: &mut Random, dialect: Dialect, kind: Type, odd_percent: usize) -> Expr {
    let text = (!random.chance(8)).then(|| text(random, dialect, kind, odd_percent).to_owned());
    // The context determines the type of an untyped NULL, so it is rare.
    let is_cast = random.chance(if text.is_none() { 70 } else { 30 });
    Expr::Literal(Literal { kind, text, is_cast, is_parameter: true })
}

fn given(kind: Type, text: &str, is_parameter: bool) -> Expr {
    Expr::Literal(Literal { kind, text: Some(text.to_owned()), is_cast: false, is_parameter })
}

/// Generates a special-purpose literal.
pub(crate) fn special(random: &mut Random, special: Special) -> Expr {
    let texts: &[&str] = match special {
        Special::Small => return given(Type::Int4, &random.between(-2, 4).to_string(), true),
        Special::Count => return given(Type::Int4, &random.between(0, 5).to_string(), true),
        Special::Pattern => &[
            "%", "a%", "%b", "_", "a_c", "%a%", "", "A%", "\\%", "a\\%b", "a\\_b", "%\\\\%", "_%", "__", "ab", "%日%",
            "!%", "a!_b", "100\\%", "%\\%",
        ],
        Special::Regex => {
            &["a", "^a", "b$", "[a-c]+", "a|b", "(a)(b)?", "^$", "\\d+", "a.c", "\\s", "[^a]", "(x|y)", "\\w{2}"]
        }
        Special::Field => return word(random, &FIELDS),
        Special::TimeField => {
            return word(random, &["hour", "minute", "second", "epoch", "microseconds", "milliseconds"]);
        }
        Special::Trunc => {
            &["year", "month", "day", "hour", "minute", "second", "week", "quarter", "decade", "milliseconds"]
        }
        Special::Format => &[
            "YYYY-MM-DD",
            "HH24:MI:SS",
            "HH12:MI AM",
            "Day",
            "DY",
            "FMMonth DD",
            "YYYY\"y\"",
            "DDD",
            "IYYY-IW",
            "Q",
            "MS US",
            "YY/MM/DD",
            "Mon",
            "SSSS",
            "J",
            "CC",
        ],
        Special::NumberFormat => {
            &["9", "999", "000.00", "FM999.99", "S999", "9,999.9", "999MI", "FM0", "99.99PR", "$99", "L9", "RN"]
        }
        Special::Key => &["a", "b", "c", "k", ""],
        Special::Path => &["{a}", "{a,b}", "{0}", "{a,0}", "{b,-1}", "{}"],
        Special::Zone => &["UTC", "Europe/Berlin", "America/New_York", "+02", "Asia/Kolkata"],
        Special::Number => &["0", "1", "0.5", "2.504", "-1.2499", "9.999", "99.994", "0.00001", "-7.0", "1e2", "1e-5"],
        Special::Numbers => &["{0.5,2.504}", "{}", "{NULL,-1.2499}", "{99.994}", "{1,1e2,0.00001}"],
        Special::JsonPath => &["$", "$.a", "$.a.b", "$[*]", "$[0]", "$.*", "$.a ? (@ > 1)"],
    };
    let text = random.word(texts);
    match special {
        Special::Path => given(Type::Texts, text, false),
        // A JSON path has a separate type, and a text parameter is not converted to it.
        // Beside another type, a literal has no type of its own, but a text parameter has.
        Special::Number | Special::Numbers | Special::JsonPath | Special::Trunc | Special::Zone => {
            given(Type::Text, text, false)
        }
        _ => given(Type::Text, text, true),
    }
}

const FIELDS: [&str; 18] = [
    "year",
    "month",
    "day",
    "hour",
    "minute",
    "second",
    "epoch",
    "dow",
    "doy",
    "week",
    "quarter",
    "isodow",
    "isoyear",
    "decade",
    "century",
    "millennium",
    "milliseconds",
    "microseconds",
];

fn word(random: &mut Random, words: &[&str]) -> Expr {
    Expr::word(random.word(words), Type::Text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_has_values() {
        let mut random = Random::new(3, 3);
        for kind in Type::ALL {
            assert!(!common(kind).is_empty() && !odd(kind).is_empty());
            let _ = literal(&mut random, Dialect::Postgres, kind, 50);
        }
    }
}
